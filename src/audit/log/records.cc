// SPDX-License-Identifier: Apache-2.0
#include "audit/log/records.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/json.h"

namespace coffer::audit {
namespace {

bool IsMemberName(const std::string& name) {
  return !name.empty() && name.size() <= 64 && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
  });
}

// The members as they are printed; a map sorts them by the bytes of their names.
class MembersText {
 public:
  MembersText& Text(const char* name, const std::string& text) {
    members_[name] = text.empty() ? "null" : PrintJson(Json(text));
    return *this;
  }
  MembersText& Number(const char* name, int64_t value) {
    members_[name] = std::to_string(value);
    return *this;
  }
  MembersText& Flag(const char* name, bool value) {
    members_[name] = value ? "true" : "false";
    return *this;
  }
  MembersText& Object(const char* name, std::string json) {
    members_[name] = std::move(json);
    return *this;
  }

  // With a gap where the number of the record goes.
  Result<LeafText> Leaf(const char* kind, Nanos at, const std::string& tenant) {
    Number("v", 1).Text("kind", kind).Text("tenant", tenant);
    Number("at", (at == Nanos(0) ? WallTime() : at).count());
    members_["seq"] = "";
    LeafText leaf;
    std::string* part = &leaf.before;
    char separator = '{';
    for (const auto& [name, value] : members_) {
      *part += fmt::format("{}\"{}\":{}", separator, name, value);
      separator = ',';
      if (name == "seq") {
        part = &leaf.after;
      }
    }
    *part += '}';
    constexpr size_t kMostDigits = 19;
    if (leaf.before.size() + leaf.after.size() + kMostDigits > kMaxLeafBytes) {
      return Refused("audit.record", "a record of the log may have 65,535 bytes",
                     "shorten the names in the request");
    }
    return leaf;
  }

 private:
  std::map<std::string, std::string> members_;
};

}  // namespace

Result<LeafText> FormatLeaf(const DecisionRecord& record) {
  return MembersText()
      .Text("call", record.identity.call_id)
      .Text("parent", record.identity.parent_id)
      .Text("session", record.identity.session_id)
      .Text("agent", record.identity.agent)
      .Text("user", record.identity.user)
      .Text("tool", record.identity.tool)
      .Text("tool_version", record.tool_version)
      .Text("manifest", record.manifest)
      .Text("envelope", record.envelope)
      .Text("effect", record.effect)
      .Text("args_hash", record.args_hash)
      .Text("shown", record.shown)
      .Text("decision", record.decision)
      .Text("trace", record.identity.trace_id)
      .Leaf("decision", record.at, record.identity.tenant.name());
}

Result<LeafText> FormatLeaf(const ReceiptRecord& record) {
  MembersText members;
  members.Text("call", record.identity.call_id)
      .Text("tool", record.identity.tool)
      .Text("outcome", record.outcome)
      .Text("class", record.error_class)
      .Flag("ran", record.ran)
      .Text("body", record.body)
      .Text("trace", record.identity.trace_id);
  if (!record.ran) {
    members.Text("agent", record.identity.agent)
        .Text("user", record.identity.user)
        .Text("session", record.identity.session_id)
        .Text("parent", record.identity.parent_id);
  }
  if (record.recovered) {
    members.Flag("recovered", true);
  }
  return members.Leaf("receipt", record.at, record.identity.tenant.name());
}

Result<LeafText> FormatLeaf(const EventRecord& record) {
  std::map<std::string, std::string> sorted;
  for (const auto& [name, value] : record.detail) {
    if (!IsMemberName(name)) {
      return Internal("audit.record", "a detail of an event may not be called that");
    }
    const auto* text = std::get_if<std::string>(&value);
    if (text == nullptr) {
      sorted[name] = std::to_string(std::get<int64_t>(value));
    } else {
      sorted[name] = text->empty() ? "null" : PrintJson(Json(*text));
    }
  }
  std::string detail;
  for (const auto& [name, value] : sorted) {
    detail += fmt::format("{}\"{}\":{}", detail.empty() ? "" : ",", name, value);
  }
  return MembersText()
      .Text("name", record.name)
      .Object("detail", "{" + detail + "}")
      .Leaf("event", record.at, record.tenant);
}

}  // namespace coffer::audit
