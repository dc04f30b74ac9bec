// SPDX-License-Identifier: Apache-2.0
//
// The question of a DNS query, and the answers that a resolver inside a boundary gives (RFC 1035).
//
// Only names and synthetic addresses leave this code: an allowed name is answered with an address
// that stands for it inside the boundary, every other name does not exist, and every type but A and
// AAAA has no data. So no HTTPS record is ever answered, and no query is sent on. A query has one
// question, no compression and nothing behind it but one OPT record; what else comes is an error.
// Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "policy/host_name.h"

namespace coffer::egress {

struct DnsQuestion {
  enum class Type : uint16_t { kA = 1, kAaaa = 28, kOther = 0 };
  uint16_t id = 0;
  bool recursion_desired = false;
  Type type = Type::kOther;
  std::optional<policy::HostName> name;  // nothing: well formed, and not a host name
  std::string wire;                      // the question as it came, to be repeated in the answer
};

// Refused if it is not a query that can be answered; then nothing is sent back.
Result<DnsQuestion> ParseDnsQuery(std::string_view message);

enum class DnsAnswer : uint8_t { kNoData, kNoName, kRefused };
std::string MakeDnsAnswer(const DnsQuestion& question, DnsAnswer answer);
// `address` is of the family that was asked for.
std::string MakeDnsAnswer(const DnsQuestion& question, const policy::IpAddress& address,
                          uint32_t seconds);

}  // namespace coffer::egress
