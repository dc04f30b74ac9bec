// SPDX-License-Identifier: Apache-2.0
//
// Which denials look like an attempt to leave the boundary: system calls and destinations.
//
// Of system calls only those that no ordinary program makes by habit: a denied chown is a program that does not know where
// it is, a denied setns is one that does. It judges by names alone, and calls that the kernel refused before the filter saw
// them are not counted.
//
// Of destinations only those that have a meaning on this side alone: metadata services and link-local addresses, and names
// that lead into a network of the operator. A host that no rule names is an ordinary denial, and so is a private address
// that was written as a number. The kind names the target of the attempt.
//
// A request that held a value which must never leave is an incident too, of the kind "leak".
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace coffer::watch {

// "namespace" | "mount" | "process" | "kernel" | "keyring", or nothing: a denial like any other.
std::optional<std::string_view> FindIncident(std::string_view denied_syscall);

// What a denial of such a request has as its rule.
inline constexpr std::string_view kLeakRule = "egress.never_send";
inline constexpr std::string_view kLeakKind = "leak";

// What a denial of datagrams to hosts that may be reached over TCP has as its rule. It is no sign of an attempt, and never
// counts for the breaker: clients try QUIC first by habit.
inline constexpr std::string_view kDatagramRule = "egress.datagram";

// A sentence for each name that is one, for the receipt: "namespace: pivot_root was tried 2 times and denied".
std::vector<std::string> DescribeIncidents(
    const std::vector<std::pair<std::string, uint64_t>>& denied_syscalls);
// The same for requests that were stopped because they held such a value; "" if there are none.
std::string DescribeLeaks(uint64_t requests);

// "metadata" | "link_local" | "internal", or nothing. `host` is what was asked for, a name or an address; `leads_to` the
// address that the name led to and that was refused for it, or "".
std::optional<std::string_view> FindDestination(std::string_view host, std::string_view leads_to);

// The rule of a denial that is one ("egress.metadata"), and back: nothing for every other rule.
std::string RuleOfDestination(std::string_view kind);
std::optional<std::string_view> DestinationOfRule(std::string_view rule);

struct RefusedDestination {
  std::string_view kind;
  std::string_view target;  // "169.254.169.254:80"
  uint64_t count = 1;
};
// One sentence for each kind, however many there are: "metadata: 169.254.169.254:80 and 2 others were tried 5 times and
// refused".
std::vector<std::string> DescribeDestinations(std::span<const RefusedDestination> refused);

}  // namespace coffer::watch
