// SPDX-License-Identifier: Apache-2.0
//
// Messages of MCP as server-sent events: each message is one event. A message is one line, so no
// byte of a tool can forge a line of the stream. Used on the loop's thread.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "gateway/http/message.h"

namespace coffer::gateway {

class McpEventStream : public BodyStream {
 public:
  // A notification; dropped while the client does not read.
  void Add(const std::string& line) {
    if (text_.size() < kMostUnsent) {
      text_ += "event: message\ndata: " + line + "\n";
    }
    Deliver();
  }
  // The answer, or nothing: the stream ends without one.
  void End(const std::string& line) {
    if (!line.empty()) {
      text_ += "event: message\ndata: " + line + "\n";
    }
    ended_ = true;
    Deliver();
  }
  void Next(std::function<void(Piece)> next) override {
    next_ = std::move(next);
    Deliver();
  }

 private:
  static constexpr size_t kMostUnsent = 65536;
  void Deliver() {
    if (next_ != nullptr && (!text_.empty() || ended_)) {
      std::exchange(next_, nullptr)({std::exchange(text_, {}), ended_, false});
    }
  }
  std::string text_;
  bool ended_ = false;
  std::function<void(Piece)> next_;
};

}  // namespace coffer::gateway
