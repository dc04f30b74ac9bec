// SPDX-License-Identifier: Apache-2.0
//
// Messages of MCP as server-sent events: each message is one event. A message is one line, so no
// byte of a tool can forge a line of the stream. Used on the loop's thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "gateway/http/message.h"

namespace coffer::gateway {

class McpEventStream : public BodyStream {
 public:
  // Around a message without the end of its line.
  static constexpr std::string_view kBegin = "event: message\ndata: ";
  static constexpr std::string_view kEnd = "\n\n";

  // A notification; dropped while the client does not read.
  void Add(const std::string& line) {
    if (text_.size() < kMostUnsent) {
      AddEvent(line);
    }
    Deliver();
  }
  // The answer, or nothing: the stream ends without one.
  void End(const std::string& line) {
    if (!line.empty()) {
      AddEvent(line);
    }
    ended_ = true;
    Deliver();
  }
  // The event of the answer, which is made while it is sent.
  void EndWith(std::shared_ptr<BodyStream> rest) {
    rest_ = std::move(rest);
    Deliver();
  }
  void Next(std::function<void(Piece)> next) override {
    next_ = std::move(next);
    Deliver();
  }

 private:
  static constexpr size_t kMostUnsent = 65536;
  void AddEvent(const std::string& line) { (text_ += kBegin) += line + "\n"; }
  void Deliver() {
    if (next_ == nullptr) {
      return;
    }
    const bool ends = ended_ && rest_ == nullptr;
    if (!text_.empty() || ends) {
      std::exchange(next_, nullptr)({std::exchange(text_, {}), ends, false});
    } else if (rest_ != nullptr) {
      rest_->Next(std::exchange(next_, nullptr));
    }
  }
  std::string text_;
  std::shared_ptr<BodyStream> rest_;  // after the text
  bool ended_ = false;
  std::function<void(Piece)> next_;
};

}  // namespace coffer::gateway
