// SPDX-License-Identifier: Apache-2.0
//
// What the relay of a call with [calls] (cli/relay_calls.h) and the gateway (daemon/calls_inside.h)
// send to each other: frames with a head of fixed size, and a body whose length it says.
//
// The relay reads what a payload writes, so it may have been broken into, and the gateway trusts no
// byte of it: a frame that is not exactly as here ends the conversation. A frame does not say whose
// call it is. That follows from the socket. Both ends are one build; there is no negotiation.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "call/tool_call.h"

namespace coffer::call {

struct InsideFrame {
  enum class Kind : uint32_t {
    kTools = 1,    // gateway: the first frame; body: the answer of tools/list
    kCall = 2,     // relay: tool, key, traceparent; body: the arguments
    kCancel = 3,   // relay: the answer to `number` is not wanted any more; it comes all the same
    kReply = 4,    // gateway: how call `number` ended; body: EncodeReply
    kRefusal = 5,  // gateway: there is no call for `number`; body: why, in words
  };
  Kind kind = Kind::kTools;
  uint64_t number = 0;      // of a call, chosen by the relay; never used twice
  std::string tool;         // at most kMostInsideText bytes, as the two that follow
  std::string key;          // the same for a request that is repeated
  std::string traceparent;  // empty: none
  std::string body;
};

inline constexpr size_t kMostInsideText = 71;
inline constexpr size_t kMostInsideArgs = 1 << 20;

enum class InsidePeer : uint8_t { kRelay, kGateway };

// Texts that are too long are cut.
std::string EncodeInsideFrame(const InsideFrame& frame);

class InsideFrameReader {
 public:
  // `peer` sends; what is not its to send is an Error.
  explicit InsideFrameReader(InsidePeer peer) : peer_(peer) {}
  void Add(std::string_view bytes) { bytes_.append(bytes); }
  // The next whole frame, or nothing yet. An Error: this is no such conversation, and nothing after it is read.
  Result<std::optional<InsideFrame>> Next();
  size_t pending() const { return bytes_.size(); }  // of a frame that is not whole

 private:
  const InsidePeer peer_;
  std::string bytes_;
};

// A reply as far as the code inside is told of it; what it printed may be any bytes.
std::string EncodeInsideReply(const ToolReply& reply);
Result<ToolReply> DecodeInsideReply(std::string_view bytes);
// The whole frame of kind kReply.
std::string EncodeInsideReplyFrame(uint64_t number, const ToolReply& reply);

}  // namespace coffer::call
