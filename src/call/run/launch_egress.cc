// SPDX-License-Identifier: Apache-2.0
#include "call/run/launch_egress.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "base/text.h"
#include "call/run/call_variables.h"
#include "call/run/egress_listeners.h"
#include "call/run/own_addresses.h"
#include "call/run/refusal_note.h"
#include "isolation/etc.h"
#include "policy/synthetic_block.h"
#include "watch/incident.h"

namespace coffer::call {
namespace {

constexpr Nanos kLeastPatience =
    std::chrono::seconds(1);  // a busy machine starts a process in less
constexpr long kMostListed = 256;
constexpr const char* kOthers = "others";  // and port 0: what is beyond the list

// The boundary's own loopback is reached without the proxy.
constexpr const char* kDirect = "localhost,127.0.0.1,::1";
constexpr std::array kProxyNames = {"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY",
                                    "http_proxy", "https_proxy", "all_proxy"};

std::string WhereOf(const EgressEntry& entry) {
  if (entry.host.empty()) {
    return "a request";  // that names no host, or none that can be one
  }
  if (entry.port == 0) {
    return Printable(entry.host);  // a name that was asked for, and no connection
  }
  const bool v6 = entry.host.find(':') != std::string::npos;
  std::string where =
      fmt::format("{}{}{}:{}", v6 ? "[" : "", Printable(entry.host), v6 ? "]" : "", entry.port);
  return entry.method.empty()
             ? where
             : fmt::format("{} {}{}", Printable(entry.method), where, Printable(entry.path));
}

void AddUse(const EgressEntry& entry, audit::Receipt& receipt) {
  audit::NetworkUse use;
  use.host = entry.host;
  use.port = entry.port;
  use.method = entry.method;
  use.path = entry.path;
  use.decision = entry.allowed ? "allow" : "deny";
  use.rule = entry.rule;
  use.error = entry.allowed ? entry.reason : "";
  use.bytes_out = entry.bytes_out;
  use.bytes_in = entry.bytes_in;
  use.duration = std::chrono::milliseconds(entry.millis);
  const auto same = std::find_if(
      receipt.network.begin(), receipt.network.end(), [&](const audit::NetworkUse& other) {
        return other.host == use.host && other.port == use.port && other.method == use.method &&
               other.path == use.path && other.decision == use.decision && other.rule == use.rule &&
               other.error == use.error;
      });
  if (same != receipt.network.end()) {
    same->bytes_out += use.bytes_out;
    same->bytes_in += use.bytes_in;
    same->duration += use.duration;
    ++same->count;
    return;
  }
  // Each decision has a list of its own length: names that are refused must not hide those that were reached.
  const auto listed =
      std::count_if(receipt.network.begin(), receipt.network.end(),
                    [&](const audit::NetworkUse& other) { return other.decision == use.decision; });
  const bool sum = use.host == kOthers && use.port == 0;  // one for each rule
  if (!sum && listed >= kMostListed) {
    EgressEntry beyond;
    beyond.host = kOthers;
    beyond.allowed = entry.allowed;
    beyond.rule = entry.rule;
    beyond.bytes_out = entry.bytes_out;
    beyond.bytes_in = entry.bytes_in;
    beyond.millis = entry.millis;
    AddUse(beyond, receipt);
    return;
  }
  receipt.network.push_back(std::move(use));
}

// Beyond the list. A flood of denials must not hide that there was an incident: of each kind the first is listed, and the
// others are summed up.
void AddIncidentBeyond(audit::Denial denial, std::vector<audit::Denial>& denials) {
  const auto find = [&](const auto& is) {
    return std::find_if(denials.begin(), denials.end(), [&](const audit::Denial& other) {
      return other.rule == denial.rule && is(other);
    });
  };
  if (find([](const audit::Denial&) { return true; }) == denials.end()) {
    denials.push_back(std::move(denial));
    return;
  }
  const auto sum = find([](const audit::Denial& other) { return other.target == kOthers; });
  if (sum != denials.end()) {
    ++sum->count;
    return;
  }
  denial.target = kOthers;
  denial.reason = fmt::format("beyond the {} denials that are listed", kMostListed);
  denial.fix = "";
  denials.push_back(std::move(denial));
}

void AddDenial(const EgressEntry& entry, RunOutcome& outcome, size_t& said) {
  const std::optional<std::string_view> incident =
      watch::FindDestination(entry.host, entry.leads_to);
  audit::Denial denial{"egress",
                       !entry.method.empty()                    ? "request"
                       : entry.port == 0 && !entry.host.empty() ? "resolve"
                                                                : "connect",
                       WhereOf(entry),
                       entry.held_value ? std::string(watch::kLeakRule)
                       : incident       ? watch::RuleOfDestination(*incident)
                                        : "egress",
                       entry.reason,
                       entry.fix,
                       1};
  std::vector<audit::Denial>& denials = outcome.receipt.denials;
  const auto same = std::find_if(denials.begin(), denials.end(), [&](const audit::Denial& other) {
    return other.surface == denial.surface && other.target == denial.target &&
           other.reason == denial.reason;
  });
  if (same != denials.end()) {
    ++same->count;
    return;
  }
  if (++said <= kMostRefusalNotes) {
    outcome.notes.push_back(RefusalNote(denial));
  }
  if (denials.size() < size_t{kMostListed}) {
    denials.push_back(std::move(denial));
  } else if (incident || entry.held_value) {
    AddIncidentBeyond(std::move(denial), denials);
  }
}

// Programs say little about it: a tunnel that failed, a certificate that they do not show.
void AddFailure(const EgressEntry& entry, RunOutcome& outcome) {
  std::string note = fmt::format("{}: {}", WhereOf(entry), Printable(entry.reason));
  std::vector<std::string>& notes = outcome.notes;
  if (notes.size() < 2 * kMostRefusalNotes &&
      std::find(notes.begin(), notes.end(), note) == notes.end()) {
    notes.push_back(std::move(note));
  }
}

}  // namespace

// Programs ask the boundary's resolver, which is there if the kernel can lead its answers to us.
// There is no search list.
void AddResolver(isolation::BoundaryPlan& plan) {
  plan.call_root.files.push_back(
      {"/etc/resolv.conf", fmt::format("nameserver {}\n", policy::kResolverText), 0444});
  for (isolation::PrivateFile& file : plan.root.files) {
    if (file.at == "/etc/nsswitch.conf") {
      file.content = isolation::SwitchWithNames();
    }
  }
}

Result<EgressProcess> StartEgress(const RunRequest& request) {
  const policy::EgressTexts& grants = request.egress;
  EgressOrder order{grants, {}};
  TRY_ASSIGN(order.own, OwnAddresses());
  // The wall time begins with the command. A start that takes longer than that has failed too.
  const Nanos patience =
      std::clamp<Nanos>(request.envelope.limits.wall, kLeastPatience, EgressProcess::kMostPatience);
  return request.egress_door >= 0 ? EgressProcess::Ask(request.egress_door, order, patience)
                                  : EgressProcess::Start(order, patience);
}

void SetProxyVariables(isolation::Call& call) {
  const std::string proxy = fmt::format("http://127.0.0.1:{}", kEgressPort);
  for (const char* const name : kProxyNames) {
    SetVariable(name, proxy, call.env);
  }
  SetVariable("NO_PROXY", kDirect, call.env);
  SetVariable("no_proxy", kDirect, call.env);
  SetVariable("NODE_USE_ENV_PROXY", "1", call.env);  // Node 24 and later; others ignore it
}

Status OpenEgress(egress::Listeners listeners, EgressProcess& process) {
  TRY(process.GiveListeners(listeners));
  listeners = {};  // a connection must not wait for a process that has died
  TRY(process.AwaitReady());
  return {};
}

Status SettleEgress(EgressProcess& process, RunOutcome& outcome) {
  const EgressProcess::End end = process.Finish();
  size_t said = 0;
  for (const EgressEntry& entry : end.log.entries) {
    AddUse(entry, outcome.receipt);
    if (!entry.allowed) {
      AddDenial(entry, outcome, said);
    } else if (!entry.reason.empty() && entry.bytes_in == 0) {
      AddFailure(entry, outcome);
    }
  }
  if (said > kMostRefusalNotes) {
    outcome.notes.push_back(fmt::format("refused: {} more; the receipt has them (--receipt FILE)",
                                        said - kMostRefusalNotes));
  }
  if (end.log.head.omitted > 0) {
    audit::NetworkUse others;
    others.host = kOthers;
    others.decision = kOthers;
    others.bytes_out = end.log.head.bytes_out;
    others.bytes_in = end.log.head.bytes_in;
    others.count = end.log.head.omitted;
    outcome.receipt.network.push_back(std::move(others));
  }
  if (end.early || end.log.broken) {
    return HostFault("egress.ended", "the egress process ended before the call did",
                     "connections that it carried are lost, and its record may be incomplete; run "
                     "the call again");
  }
  return {};
}

}  // namespace coffer::call
