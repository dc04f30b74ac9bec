// SPDX-License-Identifier: Apache-2.0
#include "call/run/outside_tries.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "call/run/refusal_note.h"
#include "policy/host_name.h"
#include "watch/incident.h"

namespace coffer::call {
namespace {

using Why = isolation::RefusedConnect::Why;

constexpr const char* kNameIt =
    "name the host: --allow HOST[:PORT], in a manifest [[network.allow]]";

std::string ReasonOf(const RunRequest& request) {
  return request.egress.empty() ? "this call has no network"
                                : "hosts are reached by their names only";
}

// `arguments` is the address with its port.
std::optional<std::string_view> IncidentOf(const isolation::DeniedCall& denied) {
  const Result<policy::HostAndPort> to = policy::ParseHostAndPort(denied.arguments);
  return to.ok() ? watch::FindDestination(to->host.text(), "") : std::nullopt;
}

// A name server is looked for before anything is said about the name. With hosts to reach there is
// one, which tells itself what it refused.
std::optional<audit::Denial> DescribeConnect(const RunRequest& request,
                                             const isolation::DeniedCall& denied) {
  const bool names = denied.connect == Why::kNoNames;
  if (!OutsideTries::IsOne(denied) || (names && !request.egress.empty())) {
    return std::nullopt;
  }
  const std::optional<std::string_view> incident = names ? std::nullopt : IncidentOf(denied);
  return audit::Denial{"egress",          names ? "resolve" : "connect",
                       denied.arguments,  incident ? watch::RuleOfDestination(*incident) : "egress",
                       ReasonOf(request), kNameIt,
                       denied.count};
}

// What the kernel refused beyond the connects that the supervisor made.
audit::Denial DescribeUnnamed(const RunRequest& request, bool connects, uint64_t count) {
  return {"egress",
          connects ? "connect" : "send",
          "addresses outside",
          "egress",
          ReasonOf(request) + (connects ? " (the kernel counted connects and datagrams there)"
                                        : ", and over TCP (the kernel counted datagrams there)"),
          kNameIt,
          count};
}

// Only TCP is led out. A client that tries QUIC first does so at hosts that it may reach.
audit::Denial DescribeDatagrams(uint64_t count) {
  return {"egress",
          "send",
          "hosts that were named",
          std::string(watch::kDatagramRule),
          "datagrams (UDP, such as QUIC) are not carried: hosts are reached over TCP",
          "let the program use TCP, as HTTP/1.1 and HTTP/2 do",
          count};
}

// 0 if the kernel does not say it, which `unreadable` then tells.
template <typename Counter>
uint64_t Read(const Counter& counter, bool& unreadable) {
  if (!counter.opened()) {
    return 0;
  }
  const std::optional<uint64_t> count = counter.Count();
  unreadable = unreadable || !count;
  return count.value_or(0);
}

}  // namespace

bool OutsideTries::IsOne(const isolation::DeniedCall& denied) {
  return denied.connect == Why::kNoRoute || denied.connect == Why::kNoNames;
}

OutsideTries::OutsideTries(const RunRequest& request, const Launched& launched,
                           const isolation::DenialRecorder& denials, Counters counters)
    : has_network_(!request.egress.empty()) {
  for (const isolation::DeniedCall& denied : denials.denials()) {
    if (std::optional<audit::Denial> outside = DescribeConnect(request, denied); outside) {
      denials_.push_back(std::move(*outside));
    }
  }
  if (counters == Counters::kLeave) {
    return;
  }
  const uint64_t unrouted = Read(launched.sends, unreadable_);
  const uint64_t known = denials.unrouted_connects();
  const bool serves = launched.plan->serve_connect && launched.boundary->denials_recorded();
  if (unrouted > known) {
    denials_.push_back(DescribeUnnamed(request, !serves, unrouted - known));
  }
  const uint64_t datagrams = Read(launched.datagrams, unreadable_);
  if (datagrams > 0) {
    denials_.push_back(DescribeDatagrams(datagrams));
  }
}

std::optional<std::string> OutsideTries::Note() const {
  if (!has_network_ || denials_.empty()) {
    return std::nullopt;
  }
  audit::Denial first = denials_.front();
  if (denials_.size() > 1) {
    first.target += fmt::format(" and {} more", denials_.size() - 1);
  }
  return RefusalNote(first);
}

std::optional<std::string> IncidentGroupOf(const isolation::DeniedCall& denied) {
  if (denied.connect) {
    const std::optional<std::string_view> kind =
        *denied.connect == Why::kNoRoute ? IncidentOf(denied) : std::nullopt;
    return kind ? std::optional<std::string>(*kind) : std::nullopt;
  }
  return watch::FindIncident(denied.syscall) ? std::optional(denied.syscall) : std::nullopt;
}

}  // namespace coffer::call
