// SPDX-License-Identifier: Apache-2.0
//
// Between the gateway and the egress role: one seqpacket message for each thing to be sent, one for how it went.
//
// A request is a header of fixed size and at most 64 KiB of body in one message; it names a
// receiver of the configuration and never a host, so a gateway that was broken into can send
// nonsense to those and reach no other host. An answer is of fixed size. Both sides check every
// length, word and number again.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace coffer::egress {

inline constexpr size_t kMaxDeliverBody = 64 << 10;

struct DeliverHeader {
  uint32_t magic = 0x636f4510;
  uint32_t version = 1;
  uint64_t number = 0;  // comes back in the answer
  int64_t time = 0;     // seconds since 1970: part of the signature
  uint32_t size = 0;    // of the body that follows
  uint32_t reserved = 0;
  char receiver[40] = {};  // its name, NUL-terminated
  char id[120] = {};       // the event's, NUL-terminated; visible ASCII
};
static_assert(sizeof(DeliverHeader) == 192);

enum class DeliverResult : uint32_t {
  kAnswered = 1,  // with a status
  kUnreachable,   // no address, no connection, or it ended before an answer
  kForbidden,     // the name leads to an address that it may not lead to
  kUntrusted,     // the TLS certificate is not good for this host
  kTimeout,
  kUnknown,  // no such receiver
  kBusy,
};
std::string_view DeliverResultText(DeliverResult result);

struct DeliverAnswer {
  uint32_t magic = 0x636f4511;
  uint32_t version = 1;
  uint64_t number = 0;
  uint32_t result = 0;
  uint32_t status = 0;       // 100 to 599 if answered, else 0
  uint32_t retry_after = 0;  // seconds; 0: nothing was said
  uint32_t reserved = 0;
};
static_assert(sizeof(DeliverAnswer) == 32);

// False: the other side has not read enough yet; nothing was sent. An error if `body` is too large
// or the other side is gone.
Result<bool> SendDelivery(int socket, const DeliverHeader& header, std::string_view body);

struct ReceivedDelivery {
  DeliverHeader header;
  std::string body;
  bool ended = false;  // the other role is gone
};
// Blocks. A message that is not exactly as above is an error.
Result<ReceivedDelivery> ReceiveDelivery(int socket);

Status SendAnswer(int socket, const DeliverAnswer& answer);

struct ReceivedAnswer {
  DeliverAnswer answer;
  bool none = false;   // nothing to read now
  bool ended = false;  // the other role is gone
};
// Does not block.
Result<ReceivedAnswer> ReceiveAnswer(int socket);

}  // namespace coffer::egress
