// SPDX-License-Identifier: Apache-2.0
#include "gateway/http/json_body.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/bounded_json.h"
#include "base/json.h"
#include "base/text.h"
#include "gateway/http/names.h"
#include "policy/manifest/manifest.h"
#include "policy/manifest/mistake.h"
#include "policy/reason.h"

namespace coffer::gateway {
namespace {

Refusal Bad(std::string_view code, std::string message, std::string pointer = {}) {
  Refusal refusal{.kind = RefusalKind::kInvalid, .code = std::string(code), .message = message};
  if (!pointer.empty()) {
    refusal.details.push_back({std::move(pointer), std::move(message)});
  }
  return refusal;
}

// An object with its members, each of which must be asked for.
class Members {
 public:
  static Answer<Members> Read(std::string_view text, const HttpLimits& limits) {
    if (text.size() > limits.body_bytes) {
      return Refusal{.kind = RefusalKind::kTooLarge,
                     .code = "body.too_large",
                     .message = "the body is too large"};
    }
    Result<Json> json = ParseBoundedJson(
        text, {.depth = limits.json_depth, .values = limits.json_values, .exact_integers = true});
    if (!json.ok()) {
      return Bad(json.error().code, json.error().message);
    }
    if (!json->is_object()) {
      return Bad("json.type", "the body must be a JSON object");
    }
    return Members(std::move(*json));
  }

  // Null counts as absent.
  const Json* Find(std::string_view name) {
    known_.emplace_back(name);
    const auto found = json_.find(name);
    return found == json_.end() || found->is_null() ? nullptr : &*found;
  }

  std::optional<std::string> Text(std::string_view name) {
    const Json* value = Find(name);
    if (value == nullptr) {
      return std::nullopt;
    }
    if (!value->is_string()) {
      Wrong(name, "must be a string");
      return std::nullopt;
    }
    return value->get<std::string>();
  }

  std::optional<uint64_t> Number(std::string_view name, uint64_t most) {
    const Json* value = Find(name);
    if (value == nullptr) {
      return std::nullopt;
    }
    if (!value->is_number_unsigned() || value->get<uint64_t>() == 0 ||
        value->get<uint64_t>() > most) {
      Wrong(name, "must be a whole number from 1 to " + std::to_string(most));
      return std::nullopt;
    }
    return value->get<uint64_t>();
  }

  bool Flag(std::string_view name) {
    const Json* value = Find(name);
    if (value != nullptr && !value->is_boolean()) {
      Wrong(name, "must be true or false");
      return false;
    }
    return value != nullptr && value->get<bool>();
  }

  void Wrong(std::string_view name, std::string message) {
    details_.push_back({"/" + std::string(name), std::move(message)});
  }

  // After everything was asked for: what is wrong, all at once.
  std::optional<Refusal> Finish() {
    for (const auto& [name, value] : json_.items()) {
      if (std::find(known_.begin(), known_.end(), name) == known_.end()) {
        details_.push_back(
            {"/" + Printable(name), "is not a member of this request; " + MembersInsteadOf(name)});
        if (details_.size() > 20) {
          break;
        }
      }
    }
    if (details_.empty()) {
      return std::nullopt;
    }
    Refusal refusal =
        Bad("body.invalid", details_.front().pointer + " " + details_.front().message);
    refusal.details = std::move(details_);
    return refusal;
  }

 private:
  explicit Members(Json json) : json_(std::move(json)) {}

  std::string MembersInsteadOf(std::string_view name) const {
    const std::string_view nearest =
        policy::NearestWord(name, std::vector<std::string_view>(known_.begin(), known_.end()));
    return nearest.empty() ? fmt::format("the members are {}", fmt::join(known_, ", "))
                           : fmt::format("did you mean {}?", nearest);
  }

  Json json_;
  std::vector<std::string> known_;
  std::vector<RefusalDetail> details_;
};

std::string ReadLabel(Members* members, std::string_view name, size_t most) {
  std::string label = members->Text(name).value_or("");
  const auto control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  if (label.size() > most || std::any_of(label.begin(), label.end(), control)) {
    members->Wrong(name, "must be one line of at most " + std::to_string(most) + " bytes");
  }
  return label;
}

std::optional<std::string> ReadId(Members* members, std::string_view name) {
  std::optional<std::string> id = members->Text(name);
  if (id.has_value() && !IsId(*id)) {
    members->Wrong(name, "is not an id");
  }
  return id;
}

// What a call and a process have in common.
CallRequest ReadCall(Members* members) {
  CallRequest request;
  const std::optional<std::string> tool = members->Text("tool");
  if (!tool.has_value() || !policy::IsToolName(*tool)) {
    members->Wrong("tool", "must be the name of a tool: lower-case letters, digits and dashes");
  } else {
    request.tool = *tool;
  }
  for (const auto& [name, place] :
       {std::pair("args", &request.args_json), std::pair("limits", &request.limits_json)}) {
    const Json* const object = members->Find(name);
    if (object != nullptr && object->is_object()) {
      *place = PrintJson(*object);
    } else if (object != nullptr) {
      members->Wrong(name, "must be an object");
    }
  }
  // A call may ask for less network than its manifest gives.
  if (const Json* network = members->Find("network"); network != nullptr) {
    request.without_network = true;
    if (*network != Json::array()) {
      members->Wrong("network",
                     "must be [], which is none; without it the tool has its manifest's");
    }
  }
  request.reason = members->Text("reason").value_or("");
  if (const Status reason = policy::CheckReason(request.reason); !reason.ok()) {
    members->Wrong("reason", fmt::format("must be one line of at most {} bytes, without control "
                                         "characters or invisible ones",
                                         policy::kMostReasonBytes));
  }
  return request;
}

std::vector<uint16_t> ReadPorts(Members* members) {
  std::vector<uint16_t> ports;
  const Json* const list = members->Find("ports");
  if (list == nullptr) {
    return ports;
  }
  for (const Json& port : list->is_array() ? *list : Json::array({nullptr})) {
    if (!port.is_number_unsigned() || port.get<uint64_t>() < 1 || port.get<uint64_t>() > 65535) {
      members->Wrong("ports", "must be a list of port numbers");
      break;
    }
    ports.push_back(port.get<uint16_t>());
  }
  return ports;
}

constexpr uint64_t kLongestSession = uint64_t{24} * 3600;  // seconds
constexpr uint64_t kTenYears = 10ULL * 366 * 86400;

}  // namespace

Answer<CallRequest> ParseCallBody(std::string_view text, const HttpLimits& limits) {
  Answer<Members> read = Members::Read(text, limits);
  if (!read.ok()) {
    return read.refusal();
  }
  Members& members = read.value();
  CallRequest request = ReadCall(&members);
  request.session_id = ReadId(&members, "session_id");
  request.parent_id = ReadId(&members, "parent_id");
  request.dry_run = members.Flag("dry_run");
  if (std::optional<Refusal> refusal = members.Finish(); refusal.has_value()) {
    return *refusal;
  }
  return request;
}

Answer<SessionRequest> ParseSessionBody(std::string_view text, const HttpLimits& limits) {
  SessionRequest request;
  if (text.empty()) {
    return request;
  }
  Answer<Members> read = Members::Read(text, limits);
  if (!read.ok()) {
    return read.refusal();
  }
  Members& members = read.value();
  if (const auto seconds = members.Number("lifetime_seconds", kLongestSession);
      seconds.has_value()) {
    request.lifetime = std::chrono::seconds(*seconds);
  }
  request.max_calls = members.Number("max_calls", 1'000'000'000);
  request.label = ReadLabel(&members, "label", 200);
  if (std::optional<Refusal> refusal = members.Finish(); refusal.has_value()) {
    return *refusal;
  }
  return request;
}

Answer<std::chrono::seconds> ParseExtendBody(std::string_view text, const HttpLimits& limits) {
  Answer<Members> read = Members::Read(text, limits);
  if (!read.ok()) {
    return read.refusal();
  }
  Members& members = read.value();
  const std::optional<uint64_t> seconds = members.Number("lifetime_seconds", kTenYears);
  if (!seconds && members.Find("lifetime_seconds") == nullptr) {
    members.Wrong("lifetime_seconds", "is needed: how long the session is to live from now");
  }
  if (std::optional<Refusal> refusal = members.Finish(); refusal.has_value()) {
    return *refusal;
  }
  return std::chrono::seconds(seconds.value_or(0));
}

Answer<CallRequest> ParseProcessBody(std::string_view text, const HttpLimits& limits) {
  Answer<Members> read = Members::Read(text, limits);
  if (!read.ok()) {
    return read.refusal();
  }
  Members& members = read.value();
  CallRequest request = ReadCall(&members);
  request.ports = ReadPorts(&members);
  if (std::optional<Refusal> refusal = members.Finish(); refusal.has_value()) {
    return *refusal;
  }
  return request;
}

Answer<int> ParseSignalBody(std::string_view text, const HttpLimits& limits) {
  constexpr std::pair<std::string_view, int> kSignals[] = {{"TERM", SIGTERM}, {"INT", SIGINT},
                                                           {"QUIT", SIGQUIT}, {"HUP", SIGHUP},
                                                           {"USR1", SIGUSR1}, {"USR2", SIGUSR2}};
  Answer<Members> read = Members::Read(text, limits);
  if (!read.ok()) {
    return read.refusal();
  }
  Members& members = read.value();
  const std::string name = members.Text("signal").value_or("");
  const auto found = std::find_if(std::begin(kSignals), std::end(kSignals),
                                  [&](const auto& one) { return one.first == name; });
  if (found == std::end(kSignals)) {
    members.Wrong("signal", "must be one of TERM, INT, QUIT, HUP, USR1, USR2; DELETE kills");
  }
  if (std::optional<Refusal> refusal = members.Finish(); refusal.has_value()) {
    return *refusal;
  }
  return found->second;
}

Answer<KeyRequest> ParseKeyBody(std::string_view text, const HttpLimits& limits) {
  Answer<Members> read = Members::Read(text, limits);
  if (!read.ok()) {
    return read.refusal();
  }
  Members& members = read.value();
  KeyRequest request;
  const std::optional<Role> role = store::FindRole(members.Text("role").value_or(""));
  if (!role.has_value()) {
    members.Wrong("role", "must be one of agent, approver, operator, auditor");
  }
  request.role = role.value_or(Role::kAuditor);
  request.agent = members.Text("agent").value_or("");
  if (!request.agent.empty() && !IsName(request.agent)) {
    members.Wrong("agent", "is not a name");
  }
  request.label = ReadLabel(&members, "label", 200);
  if (const auto seconds = members.Number("expires_in_seconds", kTenYears); seconds.has_value()) {
    request.expires_in = std::chrono::seconds(*seconds);
  }
  if (std::optional<Refusal> refusal = members.Finish(); refusal.has_value()) {
    return *refusal;
  }
  return request;
}

Answer<AccessGrant> ParseAccessBody(std::string_view text, const HttpLimits& limits) {
  constexpr uint64_t kMostMinutes = uint64_t{24} * 60;
  Answer<Members> read = Members::Read(text, limits);
  if (!read.ok()) {
    return read.refusal();
  }
  Members& members = read.value();
  AccessGrant decision;
  const std::string word = members.Text("decision").value_or("");
  if (word != "grant" && word != "deny") {
    members.Wrong("decision", "must be grant or deny");
  }
  decision.grant = word == "grant";
  decision.minutes = members.Number("minutes", kMostMinutes).value_or(0);
  if (decision.minutes > 0 && !decision.grant) {
    members.Wrong("minutes", "belongs to a grant");
  }
  if (std::optional<Refusal> refusal = members.Finish(); refusal.has_value()) {
    return *refusal;
  }
  return decision;
}

Answer<std::string> ParseSwitchBody(std::string_view text, const HttpLimits& limits) {
  Answer<Members> read = Members::Read(text, limits);
  if (!read.ok()) {
    return read.refusal();
  }
  Members& members = read.value();
  std::string reason = ReadLabel(&members, "reason", 500);
  if (reason.empty()) {
    members.Wrong("reason", "is needed: the record shows it to its readers");
  }
  if (std::optional<Refusal> refusal = members.Finish(); refusal.has_value()) {
    return *refusal;
  }
  return reason;
}

}  // namespace coffer::gateway
