// SPDX-License-Identifier: Apache-2.0
//
// Server-sent events as Streamable HTTP has them: bytes in, the data of each event out.
//
// The bytes are hostile. One event has at most `most` bytes, with its lines of every kind; what is
// longer ends the reading. Comments and events of a type other than "message" are skipped. Pure.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace coffer::gateway {

class EventReader {
 public:
  explicit EventReader(size_t most) : most_(most) {}

  // `event` gets the data of each whole event. False: an event is too long, and nothing more is read.
  bool Feed(std::string_view bytes, const std::function<void(const std::string&)>& event);

  // Of the last event that had one; empty: none.
  const std::string& last_id() const { return last_id_; }
  // How long the server wants to be left alone after the stream has ended.
  std::optional<std::chrono::milliseconds> retry() const { return retry_; }

 private:
  void EndLine(const std::function<void(const std::string&)>& event);
  void TakeField(std::string_view name, std::string_view value);

  const size_t most_;
  bool broken_ = false;
  bool after_return_ = false;  // a line feed now belongs to the line before
  bool at_start_ = true;
  std::string line_;
  std::string data_;
  bool has_data_ = false;
  std::string type_, id_;
  size_t size_ = 0;  // of the event so far
  std::string last_id_;
  std::optional<std::chrono::milliseconds> retry_;
};

}  // namespace coffer::gateway
