// SPDX-License-Identifier: Apache-2.0
//
// A large JSON text, written piece by piece, so that it is never held as one string beside what it was made from: each piece
// can be sent and freed by itself.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>

#include "base/json.h"

namespace coffer::gateway {

class JsonPieces {
 public:
  static constexpr size_t kPieceBytes = 65536;

  // JSON text as it is.
  void Raw(std::string_view text);
  void Value(const Json& value);
  // Any bytes, as a JSON string; what is not UTF-8 is replaced.
  void Text(std::string_view bytes);

  std::deque<std::string> Take() { return std::move(pieces_); }

 private:
  std::deque<std::string> pieces_;
};

// How many of the first `most` bytes can be cut off without cutting a character in two.
size_t CutAtCharacter(std::string_view bytes, size_t most);

}  // namespace coffer::gateway
