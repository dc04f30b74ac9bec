// SPDX-License-Identifier: Apache-2.0
//
// The first message of a TLS client, read as far as needed to know which server it asks for.
//
// A spliced tunnel was opened for one name; the server behind the address decides by the server
// name in this message (SNI), so both must be equal. The message is in the clear and comes whole
// before anything is sent upstream. It is read strictly: what does not parse, has a field twice or
// bytes left over is refused. An encrypted name (ECH) hides behind the outer one, which is checked;
// clients that only pretend to use it (GREASE) look the same.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "policy/host_name.h"

namespace coffer::egress {

inline constexpr size_t kMostHelloBytes = 16 << 10;

struct ClientHello {
  std::optional<std::string> server_name;  // as sent; not yet parsed
  std::vector<std::string> protocols;      // ALPN: "h2", "http/1.1"
  bool encrypted_name = false;             // there is an ECH field, real or not
};

struct ClientHelloStep {
  enum class State : uint8_t { kMore, kDone, kBroken };
  State state = State::kMore;
  ClientHello hello;    // of kDone
  size_t size = 0;      // of kDone: of its records; what follows them is another message
  std::string problem;  // of kBroken
};

// `bytes` is everything the client has sent so far. At most kMostHelloBytes are waited for.
ClientHelloStep ReadClientHello(std::string_view bytes);

// Whether the message asks for `host`: "sni_missing" or "authority_mismatch" if it does not. For an address there is no
// server name (RFC 6066 section 3).
std::optional<Error> CheckServerName(const ClientHello& hello, const policy::HostName& host);

// Whether the client names protocols (ALPN) and HTTP/1.1 is not one of them: HTTP/2 alone, or none of HTTP.
bool OffersOtherProtocolsOnly(const ClientHello& hello);

}  // namespace coffer::egress
