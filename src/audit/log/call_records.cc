// SPDX-License-Identifier: Apache-2.0
#include "audit/log/call_records.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "audit/canonical_fields.h"
#include "audit/log/log_lines.h"
#include "audit/log/records.h"
#include "audit/log/records_scan.h"
#include "base/hash.h"
#include "base/hex.h"
#include "base/json.h"

namespace coffer::audit {
namespace {

constexpr uint64_t kReadBack = 8 << 20;
static_assert(kReadBack > 2 * kMaxLeafBytes);

using NamePair = std::pair<std::string_view, std::string_view>;
// The members of a decision that the receipt has too, by both names.
constexpr NamePair kBothHave[] = {{"parent", "parent_id"},
                                  {"session", "session_id"},
                                  {"agent", "agent"},
                                  {"user", "user"},
                                  {"tool", "tool"},
                                  {"trace", "trace_id"},
                                  {"effect", "effect"},
                                  {"tool_version", "tool_version"},
                                  {"envelope", "envelope_id"},
                                  {"manifest", "manifest_hash"}};
constexpr size_t kAtAdmission = 6;  // of those are known then
// Of these the record of a receipt has the last two, and the others if the call did not run.
constexpr size_t kWhoAsked = 4;

std::string_view OrNull(std::string_view json) { return json == "\"\"" ? "null" : json; }

std::string HashOfShown(std::string_view args_redacted, std::string_view reason_json) {
  return HashOf(fmt::format("[{},{}]", args_redacted, OrNull(reason_json)));
}

class Names {
 public:
  void Add(std::string_view name) {
    if (std::find(names_.begin(), names_.end(), name) == names_.end()) {
      names_.push_back(name);
    }
  }
  void Compare(std::span<const NamePair> members, const CanonicalFields& record,
               const CanonicalFields& receipt) {
    for (const auto& [one, other] : members) {
      if (OrNull(record.At(one)) != OrNull(receipt.At(other))) {
        Add(one);
      }
    }
  }
  std::string Text() const {
    std::string text;
    for (const std::string_view name : names_) {
      text += (text.empty() ? "" : ", ") + std::string(name);
    }
    return text;
  }

 private:
  std::vector<std::string_view> names_;
};

// One line, from the end of the log towards its beginning: what comes later is earlier.
void TakeRecord(const LeafFacts& facts, CallRecordsByKey& sought, size_t& undecided) {
  if (facts.kind == LeafFacts::Kind::kEvent) {
    return;
  }
  const auto found = sought.find(CallKey(facts.tenant, facts.call));
  if (found == sought.end()) {
    return;
  }
  if (facts.kind == LeafFacts::Kind::kReceipt) {
    found->second.receipt = facts.line;
    return;
  }
  undecided -= found->second.decision.empty() ? 1 : 0;
  found->second.decision = facts.line;
}

}  // namespace

// No name of a tenant has a newline.
std::string CallKey(std::string_view tenant, std::string_view call) {
  std::string key;
  key.reserve(tenant.size() + 1 + call.size());
  return key.append(tenant).append("\n").append(call);
}

Nanos IdTime(std::string_view id) {
  int64_t millis = 0;
  if (id.size() != 36 || id[8] != '-' || id[13] != '-' || id[14] != '7') {
    return Nanos::min();
  }
  for (size_t i = 0; i < 13; ++i) {
    const int digit = i == 8 ? 0 : HexValue(id[i]);
    if (digit < 0) {
      return Nanos::min();
    }
    millis = i == 8 ? millis : millis * 16 + digit;
  }
  constexpr int64_t kMost = INT64_MAX / 1'000'000;
  return std::chrono::milliseconds(std::min(millis, kMost));
}

Status ReadCallRecords(int records, uint64_t end, Nanos since, CallRecordsByKey& sought) {
  size_t undecided = sought.size();
  std::string text;
  while (end > 0 && undecided > 0) {
    const uint64_t begin = end > kReadBack ? end - kReadBack : 0;
    text.resize(end - begin);
    TRY(ReadAt(records, text.data(), text.size(), begin));
    // The first line may begin before: it is the last one of what is read next.
    const size_t first = begin == 0 ? 0 : text.find('\n') + 1;
    bool recent = false;
    for (size_t line_end = text.size(); line_end > first;) {
      const size_t newline = line_end < 2 ? std::string::npos : text.rfind('\n', line_end - 2);
      const size_t line_begin = newline == std::string::npos ? 0 : newline + 1;
      const std::string_view line(text.data() + line_begin, line_end - line_begin - 1);
      LeafFacts facts;
      if (line.starts_with('{') && ScanLeaf(line, facts) == nullptr) {
        recent = recent || Nanos(facts.at) >= since;
        TakeRecord(facts, sought, undecided);
      }
      line_end = line_begin;
    }
    if (!recent || first == text.size()) {
      break;
    }
    end = begin + first;
  }
  return {};
}

std::string ShownHash(std::string_view args_redacted, std::string_view reason) {
  return HashOfShown(args_redacted, PrintJson(Json(std::string(reason))));
}

std::string Contradictions(const CallRecords& before, std::string_view canonical, bool ran) {
  const CanonicalFields receipt(canonical);
  const std::span<const NamePair> members(kBothHave);
  Names names;
  if (!before.decision.empty()) {
    const CanonicalFields decision(before.decision);
    // A call that was killed between its decision and its start has a row that does not know the
    // tool's part of it.
    names.Compare(ran ? members : members.first(kAtAdmission), decision, receipt);
    const std::string_view shown = decision.At("shown");  // earlier versions had none
    if (ran && shown != "null" &&
        !Says(shown, HashOfShown(receipt.At("args_redacted"), receipt.At("reason")))) {
      names.Add("shown");
    }
  } else if (ran) {
    names.Add("decision");
  }
  if (before.receipt.empty()) {
    return names.Text();
  }
  const CanonicalFields first(before.receipt);
  if (first.At("ran") != (ran ? "true" : "false")) {
    names.Add("ran");
  }
  names.Compare(members.subspan(kWhoAsked, 2), first, receipt);
  if (!ran && before.decision.empty()) {
    names.Compare(members.first(kWhoAsked), first, receipt);
    if (!before.receipt.starts_with("{\"agent\":")) {
      names.Add("agent");  // of an earlier version: it does not say who asked
    }
  }
  const std::string_view outcome = receipt.At("outcome");
  const bool same_end = first.At("outcome") == outcome &&
                        first.At("class") == CanonicalFields(receipt.At("error")).At("class");
  if (!same_end && !(ran && outcome == "\"unknown\"")) {
    names.Add("outcome");
  }
  return names.Text();
}

}  // namespace coffer::audit
