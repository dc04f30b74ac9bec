// SPDX-License-Identifier: Apache-2.0
//
// The secrets that webhooks are signed with, and the headers of collectors. Only the egress role holds them.
//
// They are read by the process that becomes the egress role, before it gives up the right to do so; the monitor and the
// gateway never have them. A secret lies in memory that is locked, not dumped, and wiped when it goes. As an ordinary
// user every role has that user's rights, and could read the files itself.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "egress/deliver_receiver.h"

namespace coffer::egress {

// Bytes that cannot be copied or printed by accident.
class Secret {
 public:
  Secret() = default;
  explicit Secret(std::string_view bytes);
  bool empty() const { return size_ == 0; }
  std::string_view bytes() const { return {bytes_.get(), size_}; }

 private:
  struct Wipe {
    void operator()(char* bytes) const;
  };
  std::unique_ptr<char, Wipe> bytes_;
  size_t size_ = 0;
};

struct EgressReceiver {
  Receiver receiver;
  Secret secret;                                             // of a webhook; may be empty
  std::vector<std::pair<std::string, std::string>> headers;  // of a collector
};

// The receivers with what their files hold. Needs the rights of the operator who starts the daemon.
Result<std::vector<EgressReceiver>> LoadSecrets(std::vector<Receiver> receivers);

// "Name: value" lines; empty lines and those that begin with # are left out.
Result<std::vector<std::pair<std::string, std::string>>> ParseHeaders(std::string_view text);

// "t=TIME,v1=HEX": HMAC-SHA256 over ID.TIME.BODY.
std::string SignatureOf(const Secret& secret, std::string_view id, int64_t time,
                        std::string_view body);

}  // namespace coffer::egress
