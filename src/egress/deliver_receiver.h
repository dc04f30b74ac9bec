// SPDX-License-Identifier: Apache-2.0
//
// The receivers of the configuration file ([[webhook]] and [otlp]), and the events that each gets. Parsed once.
//
// The list is the whole of what the daemon dials by itself: a host that is not in it is never
// reached, whatever the gateway asks for. The gateway and the egress role each read it at the
// start, from the same file; a change takes effect with the next start. Plain http goes only where
// no third party can listen in: to this host, or, for traces without a secret in their headers, to
// a collector that the operator names. A name leads to addresses of the internet, and to ranges
// that the operator opened. An address that the operator wrote is open by that, also one of a
// private network; link-local addresses, metadata services of clouds and addresses that stand for
// another need their range as well. Nothing here opens the files that hold secrets.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "egress/address_guard.h"
#include "egress/receiver_config.h"
#include "store/receivers.h"

namespace coffer::egress {

struct Receiver {
  enum class Kind : uint8_t { kWebhook, kOtlp };
  Kind kind = Kind::kWebhook;
  std::string name;  // in the outbox: stable for the same URL, and says nothing about it
  bool tls = true;
  std::string host;  // a name, or an address without brackets
  uint16_t port = 443;
  std::string target;      // "/hook?x=1"
  bool this_host = false;  // a loopback address, or localhost, was written
  std::string file;        // of the signature's secret, or of the headers; may be empty
  std::vector<std::string> events;

  // For people: without the path, which may hold a token.
  std::string shown() const;
  // Whether it is told of this: "call.finished", "switch.on".
  bool Wants(std::string_view event) const;
  // For others who work on the same state directory.
  store::KnownReceiver Known() const;
};

// Refused with the URL's place in words if one cannot be used, or may not be dialled.
Result<std::vector<Receiver>> ReceiversOf(std::span<const WebhookConfig> webhooks,
                                          const OtlpConfig& otlp, const AddressGuard& guard);

// Whether this address may be dialled for a receiver.
bool MayDial(const Receiver& receiver, const AddressGuard& guard, const policy::IpAddress& address);

// The names of the receivers of `event`.
std::vector<std::string> NamesOfWanting(std::span<const Receiver> receivers,
                                        std::string_view event);

}  // namespace coffer::egress
