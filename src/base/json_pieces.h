// SPDX-License-Identifier: Apache-2.0
//
// A large JSON text that is made piece by piece while it is sent. Until then it is held as what it
// is made from: a byte of output can take six in JSON, and a client may read slowly or leave.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/json.h"

namespace coffer {

class JsonPieces {
 public:
  static constexpr size_t kPieceBytes = 65536;

  // JSON text as it is.
  void Raw(std::string_view text);
  // A large one: it is taken, not copied.
  void RawWhole(std::string text);
  void Value(const Json& value);
  // Any bytes, as a JSON string; what is not UTF-8 is replaced. Takes them: they are not copied.
  void Text(std::string bytes);
  // The same without its quotes: a part of a string that Raw begins and ends. Bytes that stand at
  // several places are held, and counted, once.
  void TextInside(std::shared_ptr<const std::string> bytes);
  // Another text, after this one.
  void Append(JsonPieces text);
  // The items of a list, with commas between them. `next` appends the JSON of one more item each
  // time it is called, and returns false when there is none. Until then they are what it holds,
  // about `source_bytes`.
  using NextItem = std::function<bool(std::string*)>;
  void Items(NextItem next, size_t source_bytes);

  // Of what the text is made from.
  size_t source_bytes() const { return source_bytes_; }
  // At most kPieceBytes; nothing at the end.
  std::string Next();
  // All that is left, at once: for a text that is small, or that one reader waits for.
  std::string Rest();

 private:
  struct Part {
    std::string bytes;
    bool is_json = true;
    NextItem next_item = nullptr;               // instead of bytes
    std::shared_ptr<const std::string> shared;  // instead of bytes
    bool is_begun = false;                      // an item was taken, so that a comma is due
  };
  void AppendSlice(std::string* piece);
  void AppendItem(std::string* piece);

  std::deque<Part> parts_;
  size_t at_ = 0;  // in the first part
  std::string left_over_;
  size_t source_bytes_ = 0;
};

// How many of the first `most` bytes can be cut off without cutting a character in two.
size_t CutAtCharacter(std::string_view bytes, size_t most);

}  // namespace coffer
