// SPDX-License-Identifier: Apache-2.0
//
// The second hello of a TLS 1.3 client.
//
// A server may answer the first hello by asking for another one (HelloRetryRequest, RFC 8446 section 4.1.4), and then serves
// the name in the second. A client can bring any server to ask: it offers a key that the server does not take. So a spliced
// tunnel has to see the second hello too. It comes in the clear. Before it may come records that a client sends without
// waiting for the server: a changed cipher, which means nothing in TLS 1.3, and early data, which the server throws away.
//
// Both functions look at bytes that the peer chose; the sizes of TLS bound what they wait for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace coffer::egress {

enum class ServerAnswer : uint8_t {
  kMore,       // it is not known yet
  kAsksAgain,  // for a second hello
  kOther,      // anything else: no message of the client in the clear names a server any more
};
// `bytes` is everything the server has sent so far.
ServerAnswer ReadServerAnswer(std::string_view bytes);

// How many bytes at the front of what a client sends are whole records that may come before its second hello.
size_t SizeBeforeSecondHello(std::string_view bytes);
// Whether the record at the front is neither: the hello, or what is refused in its place. Needs one byte.
bool IsSecondHelloNext(std::string_view bytes);

}  // namespace coffer::egress
