// SPDX-License-Identifier: Apache-2.0
//
// One POST to one receiver, from the name to the status: the only code of the daemon that dials.
//
// A delivery has ten seconds for everything. Names are resolved here, and the guard that stands
// before programs inside looks at every address before it is dialled (MayDial in
// deliver_receiver.h). What is dialled is the address that was looked at. Redirects are an answer
// like any other. Of the answer only the head is read, at most 8 KiB; its body is never received. TLS is 1.2
// or newer, the certificate must be good for the host.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "egress/address_guard.h"
#include "egress/deliver_protocol.h"
#include "egress/secrets.h"
#include "net/loop.h"

namespace coffer::egress {

class Dialer {
 public:
  virtual ~Dialer() = default;
  // `done` is called once, on the loop. The body is sent as it is.
  virtual void Post(const DeliverHeader& header, std::string body,
                    std::function<void(const DeliverAnswer&)> done) = 0;
};

// Reads the certificates that this host trusts ($SSL_CERT_FILE, or the usual places), so call it
// while that is possible. Everything given outlives it.
Result<std::unique_ptr<Dialer>> MakeDialer(net::Loop& loop,
                                           const std::vector<EgressReceiver>& receivers,
                                           const AddressGuard& guard);

// "120" or an HTTP date; 0 for anything else. At most a day.
uint32_t ParseRetryAfter(std::string_view text, int64_t now);

}  // namespace coffer::egress
