// SPDX-License-Identifier: Apache-2.0
#include "gateway/mcp/event_reader.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace coffer::gateway {
namespace {

constexpr size_t kLongestId = 1024;
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

// It goes into a field of a head later, so it has no character that ends one.
bool IsEventId(std::string_view id) {
  return id.size() <= kLongestId &&
         std::all_of(id.begin(), id.end(), [](char c) { return c > 0x20 && c < 0x7f; });
}

}  // namespace

bool EventReader::Feed(std::string_view bytes,
                       const std::function<void(const std::string&)>& event) {
  while (!bytes.empty() && !broken_) {
    if (std::exchange(after_return_, false) && bytes.front() == '\n') {
      bytes.remove_prefix(1);
      continue;
    }
    const size_t end = bytes.find_first_of("\r\n");
    const std::string_view piece = bytes.substr(0, end);
    size_ += piece.size();
    if (size_ > most_) {
      broken_ = true;
      break;
    }
    line_ += piece;
    if (end == std::string_view::npos) {
      break;
    }
    after_return_ = bytes[end] == '\r';
    bytes.remove_prefix(end + 1);
    EndLine(event);
  }
  return !broken_;
}

void EventReader::EndLine(const std::function<void(const std::string&)>& event) {
  std::string whole = std::exchange(line_, {});
  std::string_view line = whole;
  if (std::exchange(at_start_, false) && line.starts_with(kByteOrderMark)) {
    line.remove_prefix(kByteOrderMark.size());
  }
  if (line.starts_with(':')) {
    size_ -= std::min(size_, whole.size());
    return;
  }
  if (!line.empty()) {
    const size_t colon = line.find(':');
    std::string_view value = colon == std::string_view::npos ? "" : line.substr(colon + 1);
    if (value.starts_with(' ')) {
      value.remove_prefix(1);
    }
    TakeField(line.substr(0, colon), value);
    return;
  }
  size_ = 0;
  if (!id_.empty()) {
    last_id_ = std::exchange(id_, {});
  }
  const std::string data = std::exchange(data_, {});
  const std::string type = std::exchange(type_, {});
  if (std::exchange(has_data_, false) && !data.empty() && (type.empty() || type == "message")) {
    event(data);
  }
}

void EventReader::TakeField(std::string_view name, std::string_view value) {
  if (name == "data") {
    if (std::exchange(has_data_, true)) {
      data_ += '\n';
    }
    data_ += value;
  } else if (name == "event") {
    type_ = value;
  } else if (name == "id" && IsEventId(value)) {
    id_ = value;
  } else if (name == "retry") {
    uint32_t millis = 0;
    const auto [end, problem] = std::from_chars(value.data(), value.data() + value.size(), millis);
    if (problem == std::errc() && end == value.data() + value.size()) {
      retry_ = std::chrono::milliseconds(millis);
    }
  }
}

}  // namespace coffer::gateway
