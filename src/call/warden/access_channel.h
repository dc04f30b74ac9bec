// SPDX-License-Identifier: Apache-2.0
//
// How a runner asks the gateway for access, and how the gateway answers: on the call's report
// socket, before the report.
//
// Both ways go messages of fixed size. The runner forwards what the egress role asks; the role itself holds a decision
// against its own open requests, which only rules with `ask` make. So a gateway that was broken into can grant what a
// manifest says may be asked for, for one host and port at a time, and nothing else.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "call/run/held_access.h"

namespace coffer::call {

struct AccessFrame {
  uint64_t magic = 0x6163636573732d31;
  uint32_t kind = 0;  // AccessNotice::Kind
  uint32_t id = 0;
  uint32_t port = 0;
  uint32_t reserved = 0;
  char host[256] = {};  // NUL-terminated
  char opens[512] = {};
};
struct AccessReply {
  uint64_t magic = 0x6163636573732d32;
  uint32_t id = 0;
  uint32_t choice = 0;  // AccessChoice
  uint32_t minutes = 0;
  uint32_t reserved = 0;
  char by[128] = {};  // the decider
};

AccessFrame FrameOf(const egress::AccessNotice& notice);
// Nothing if it is malformed: a runner may have been broken into.
std::optional<egress::AccessNotice> NoticeOf(const AccessFrame& frame);

// In the gateway. False if the runner is gone or does not read; never waits.
bool SendAccessReply(int socket, const AccessAnswer& answer);

// In the runner: the operators decide. `socket` outlives it.
class ChannelAccess : public AccessDecider {
 public:
  explicit ChannelAccess(int socket) : socket_(socket) {}

  void Ask(const egress::AccessNotice& asked) override { Send(asked); }
  void Withdraw(const egress::AccessNotice& over) override { Send(over); }
  int fd() const override { return broken_ ? -1 : socket_; }
  std::optional<AccessAnswer> Read() override;
  bool holds_terminal() const override { return false; }

 private:
  void Send(const egress::AccessNotice& notice);

  const int socket_;
  std::string read_;
  bool broken_ = false;
};

}  // namespace coffer::call
