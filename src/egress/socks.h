// SPDX-License-Identifier: Apache-2.0
//
// SOCKS version 5 (RFC 1928) as a client inside a boundary may speak it: no authentication, CONNECT, and a name.
//
// The identity of a client is the socket it came through, so there is nothing to log in with. The name is taken by its
// length and parsed as a whole: a NUL in it ends nothing. A client that resolved a name itself sends an address, which
// is then judged as one. Pure: bytes in, what to answer out.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "policy/host_name.h"

namespace coffer::egress {

// Replies of RFC 1928 section 6.
enum class SocksReply : uint8_t {
  kGranted = 0,
  kFailed = 1,
  kNotAllowed = 2,
  kHostUnreachable = 4,
  kRefused = 5,
  kCommandNotSupported = 7,
  kAddressNotSupported = 8,
};
std::string SocksAnswer(SocksReply reply);

struct SocksStep {
  enum class State : uint8_t { kMore, kDone, kBroken };
  State state = State::kMore;
  size_t consumed = 0;     // bytes of the input, if kDone
  std::string answer;      // to send now; with kBroken the last thing before the connection ends
  policy::HostAndPort to;  // of ReadSocksRequest
  std::string problem;     // of kBroken
};

// The first message: which ways of authentication the client offers. The first byte is 5.
SocksStep ReadSocksGreeting(std::string_view bytes);
// The second: where to. The caller answers with SocksAnswer once that is known.
SocksStep ReadSocksRequest(std::string_view bytes);

}  // namespace coffer::egress
