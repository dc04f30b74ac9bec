// SPDX-License-Identifier: Apache-2.0
//
// How deep a TOML text nests, found without parsing it. It must follow strings and comments exactly as a parser does:
// what it takes for text, the parser must not take for structure. Where the text is not TOML the two may part, but
// there the parser stops.
#include <fmt/format.h>

#include "policy/manifest/toml_tree.h"

namespace coffer::policy {
namespace {

class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  std::vector<Mistake> Scan() {
    while (at_ < text_.size() && mistakes_.empty()) {
      Step();
    }
    return std::move(mistakes_);
  }

 private:
  char Here() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool Ahead(std::string_view word) const { return text_.substr(at_).starts_with(word); }

  void Next() {
    const auto byte = static_cast<unsigned char>(text_[at_++]);
    if (byte == '\n') {
      ++position_.line;
      position_.column = 1;
    } else if ((byte & 0xC0) != 0x80) {
      ++position_.column;
    }
  }

  void Step() {
    switch (Here()) {
      case '#':
        while (at_ < text_.size() && Here() != '\n') {
          Next();
        }
        return;
      case '"':
      case '\'':
        String(Here());
        return;
      case '[':
      case '{':
        dots_ = 0;
        if (++depth_ > kMaxTomlDepth) {
          Stop(fmt::format("nested deeper than {} levels", kMaxTomlDepth));
        }
        break;
      case ']':
      case '}':
        dots_ = 0;
        depth_ -= depth_ > 0 ? 1 : 0;
        break;
      case '\n':
      case ',':
      case '=':
        dots_ = 0;
        break;
      case '.':
        if (++dots_ > kMaxTomlKeyDots) {
          Stop(fmt::format("a key of more than {} parts", kMaxTomlKeyDots + 1));
        }
        break;
      default:
        break;
    }
    Next();
  }

  void String(char quote) {
    const std::string triple(3, quote);
    const bool multi_line = Ahead(triple);
    for (int i = 0; i < (multi_line ? 3 : 1); ++i) {
      Next();
    }
    while (at_ < text_.size()) {
      if (quote == '"' && Here() == '\\') {
        Next();
        if (at_ < text_.size() && (multi_line || Here() != '\n')) {
          Next();
        }
      } else if (!multi_line && Here() == '\n') {
        return;  // not TOML; the parser says so
      } else if (multi_line ? Ahead(triple) : Here() == quote) {
        // Up to two more quotes belong to the text of a multi-line string.
        for (int i = 0; i < (multi_line ? 5 : 1) && Here() == quote; ++i) {
          Next();
        }
        return;
      } else {
        Next();
      }
    }
  }

  void Stop(std::string message) {
    mistakes_.push_back({position_, std::move(message), "a manifest never needs that"});
  }

  std::string_view text_;
  size_t at_ = 0;
  Position position_;
  size_t depth_ = 0;
  size_t dots_ = 0;
  std::vector<Mistake> mistakes_;
};

}  // namespace

std::vector<Mistake> CheckTomlBounds(std::string_view text) {
  if (text.size() > kMaxTomlBytes) {
    return {
        {{}, fmt::format("larger than {} bytes", kMaxTomlBytes), "split it into several tools"}};
  }
  return Scanner(text).Scan();
}

}  // namespace coffer::policy
