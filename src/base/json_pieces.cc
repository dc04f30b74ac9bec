// SPDX-License-Identifier: Apache-2.0
#include "base/json_pieces.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json_text.h"

namespace coffer {
namespace {

// A byte becomes six at most ("\u0000").
constexpr size_t kSliceBytes = JsonPieces::kPieceBytes / 8;

}  // namespace

size_t CutAtCharacter(std::string_view bytes, size_t most) {
  if (bytes.size() <= most) {
    return bytes.size();
  }
  size_t cut = most;
  // A character has at most three bytes after its first; more of them are not UTF-8, wherever they are cut.
  for (int i = 0; i < 3 && cut > 0 && (static_cast<unsigned char>(bytes[cut]) & 0xc0) == 0x80;
       ++i) {
    --cut;
  }
  return (static_cast<unsigned char>(bytes[cut]) & 0xc0) == 0x80 || cut == 0 ? most : cut;
}

void JsonPieces::Raw(std::string_view text) {
  if (parts_.empty() || !parts_.back().is_json || parts_.back().next_item != nullptr) {
    parts_.emplace_back();
  }
  parts_.back().bytes += text;
  source_bytes_ += text.size();
}

void JsonPieces::RawWhole(std::string text) {
  source_bytes_ += text.size();
  parts_.push_back({.bytes = std::move(text)});
}

void JsonPieces::Value(const Json& value) { Raw(PrintJson(value)); }

void JsonPieces::Text(std::string bytes) {
  Raw("\"");
  source_bytes_ += bytes.size();
  parts_.push_back({.bytes = std::move(bytes), .is_json = false});
  Raw("\"");
}

void JsonPieces::TextInside(std::shared_ptr<const std::string> bytes) {
  const bool is_counted = std::any_of(parts_.begin(), parts_.end(),
                                      [&](const Part& part) { return part.shared == bytes; });
  source_bytes_ += is_counted ? 0 : bytes->size();
  parts_.push_back({.bytes = {}, .is_json = false, .shared = std::move(bytes)});
}

void JsonPieces::Append(JsonPieces text) {
  source_bytes_ += text.source_bytes_;
  std::move(text.parts_.begin(), text.parts_.end(), std::back_inserter(parts_));
}

void JsonPieces::Items(NextItem next, size_t source_bytes) {
  source_bytes_ += source_bytes;
  parts_.push_back({.bytes = {}, .next_item = std::move(next)});
}

std::string JsonPieces::Next() {
  std::string piece = std::exchange(left_over_, {});
  while (piece.size() < kPieceBytes && !parts_.empty()) {
    if (parts_.front().next_item != nullptr) {
      AppendItem(&piece);
    } else {
      AppendSlice(&piece);
    }
  }
  if (piece.size() > kPieceBytes) {
    left_over_ = piece.substr(kPieceBytes);
    piece.resize(kPieceBytes);
  }
  return piece;
}

std::string JsonPieces::Rest() {
  std::string rest;
  for (std::string piece = Next(); !piece.empty(); piece = Next()) {
    rest += piece;
  }
  return rest;
}

void JsonPieces::AppendItem(std::string* piece) {
  Part& part = parts_.front();
  const size_t before = piece->size();
  if (part.is_begun) {
    piece->push_back(',');
  }
  if (!part.next_item(piece)) {
    piece->resize(before);
    parts_.pop_front();
    return;
  }
  part.is_begun = true;
}

void JsonPieces::AppendSlice(std::string* piece) {
  const Part& part = parts_.front();
  const std::string_view rest =
      std::string_view(part.shared != nullptr ? *part.shared : part.bytes).substr(at_);
  size_t size = 0;
  if (part.is_json) {
    size = std::min(rest.size(), kPieceBytes);
    *piece += rest.substr(0, size);
  } else {
    size = CutAtCharacter(rest, kSliceBytes);
    std::string quoted;
    quoted.reserve(size * 2);
    AppendJsonText(rest.substr(0, size), &quoted);
    *piece += std::string_view(quoted).substr(1, quoted.size() - 2);
  }
  at_ += size;
  if (size == rest.size()) {
    parts_.pop_front();
    at_ = 0;
  }
}

}  // namespace coffer
