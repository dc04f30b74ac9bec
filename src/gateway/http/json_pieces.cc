// SPDX-License-Identifier: Apache-2.0
#include "gateway/http/json_pieces.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json_text.h"

namespace coffer::gateway {
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
  while (!text.empty()) {
    if (pieces_.empty() || pieces_.back().size() >= kPieceBytes) {
      pieces_.emplace_back();
    }
    std::string& last = pieces_.back();
    const size_t fits = std::min(text.size(), kPieceBytes - last.size());
    last += text.substr(0, fits);
    text.remove_prefix(fits);
  }
}

void JsonPieces::Value(const Json& value) { Raw(PrintJson(value)); }

void JsonPieces::Text(std::string_view bytes) {
  Raw("\"");
  while (!bytes.empty()) {
    const size_t size = CutAtCharacter(bytes, kSliceBytes);
    std::string quoted;
    quoted.reserve(size * 2);
    AppendJsonText(bytes.substr(0, size), &quoted);
    Raw(std::string_view(quoted).substr(1, quoted.size() - 2));
    bytes.remove_prefix(size);
  }
  Raw("\"");
}

}  // namespace coffer::gateway
