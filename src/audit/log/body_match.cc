// SPDX-License-Identifier: Apache-2.0
#include "audit/log/body_match.h"

#include <algorithm>
#include <vector>

#include "audit/log/merkle_sha256.h"
#include "audit/seal.h"
#include "base/ascii.h"
#include "base/hash.h"

namespace coffer::audit {
namespace {

constexpr int kDeepest = 64;

bool IsSpace(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }
bool IsPlain(char c) {
  return IsDigit(c) || (c >= 'a' && c <= 'z') || c == '-' || c == '+' || c == '.' || c == 'E';
}

// What stands between the quotes of a string that is well made, and plain: ASCII, with no escapes but \" and \\.
bool IsSimple(std::string_view inside) {
  for (size_t i = 0; i < inside.size(); ++i) {
    if (inside[i] < ' ' || inside[i] > '~') {
      return false;
    }
    if (inside[i] == '\\') {
      ++i;
      if (i == inside.size() || (inside[i] != '"' && inside[i] != '\\')) {
        return false;
      }
    }
  }
  return true;
}

// The first eight bytes as a number that sorts as they do.
uint64_t FirstBytes(std::string_view name) {
  uint64_t number = 0;
  for (size_t i = 0; i < 8; ++i) {
    number = number << 8 | (i < name.size() ? static_cast<unsigned char>(name[i]) : 0U);
  }
  return number;
}

// One pass over the text; tokens are copied as they are, members are put in order. False: not that way.
//
// Whether a token is well made is told by the hash, except in `log` and `signature`, which are left out of it: there it
// has to be a literal, an integer, or a string that needs no escapes but \" and \\ (strict_).
class Compactor {
 public:
  explicit Compactor(std::string_view text) : text_(text) {
    out_.reserve(text.size());
    members_.reserve(128);
  }

  std::optional<std::string> Run() {
    Space();
    if (!Value(0)) {
      return std::nullopt;
    }
    Space();
    return at_ == text_.size() ? std::optional(std::move(out_)) : std::nullopt;
  }

 private:
  struct Member {
    std::string_view name;  // without its quotes
    uint64_t first_bytes;   // of the name: nearly always enough to sort by
    size_t begin;           // in out_: the name, the colon and the value
    size_t end;
  };

  char Next() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void Space() {
    size_t at = at_;
    while (at < text_.size() && IsSpace(text_[at])) {
      ++at;
    }
    at_ = at;
  }
  // A separator, with the space around it.
  bool Take(char c) {
    Space();
    if (Next() != c) {
      return false;
    }
    ++at_;
    Space();
    return true;
  }

  bool String(std::string_view& word) {
    if (Next() != '"') {
      return false;
    }
    const char* const end = text_.data() + text_.size();
    const char* const begin = text_.data() + at_;
    const char* c = begin + 1;
    for (; c < end && *c != '"'; ++c) {
      if (*c == '\\') {
        ++c;
        if (c == end) {
          return false;
        }
      }
    }
    if (c == end) {
      return false;
    }
    word = {begin, static_cast<size_t>(c + 1 - begin)};
    at_ += word.size();
    return !strict_ || IsSimple(word.substr(1, word.size() - 2));
  }

  // A number, true, false or null.
  bool Plain() {
    const size_t begin = at_;
    while (at_ < text_.size() && IsPlain(text_[at_])) {
      ++at_;
    }
    const std::string_view word = text_.substr(begin, at_ - begin);
    out_.append(word);
    if (!strict_) {
      return !word.empty();
    }
    const bool integer = std::all_of(word.begin(), word.end(), IsDigit) &&
                         (word.size() == 1 || (word.size() > 1 && word[0] != '0'));
    return integer || word == "null" || word == "true" || word == "false";
  }

  bool Value(int depth) {
    if (depth > kDeepest) {
      return false;
    }
    switch (Next()) {
      case '"': {
        std::string_view word;
        const bool there = String(word);
        out_.append(word);
        return there;
      }
      case '{':
        return Object(depth);
      case '[':
        return Array(depth);
      default:
        return Plain();
    }
  }

  bool Array(int depth) {
    out_.push_back('[');
    ++at_;
    Space();
    for (bool first = true; Next() != ']'; first = false) {
      if (!first) {
        if (!Take(',')) {
          return false;
        }
        out_.push_back(',');
      }
      if (!Value(depth + 1)) {
        return false;
      }
      Space();
    }
    out_.push_back(']');
    ++at_;
    return true;
  }

  // The value of `log` or `signature`: looked at, and left out.
  bool Sealed() {
    const size_t before = out_.size();
    strict_ = true;
    const bool good = Value(1);
    strict_ = false;
    out_.resize(before);
    out_.append("null");
    return good;
  }

  bool Object(int depth) {
    const size_t start = out_.size();
    const size_t first = members_.size();
    ++at_;
    Space();
    while (Next() != '}') {
      std::string_view quoted;
      if ((members_.size() > first && !Take(',')) || !String(quoted)) {
        return false;
      }
      const std::string_view name = quoted.substr(1, quoted.size() - 2);
      const size_t begin = out_.size();
      out_.append(quoted).push_back(':');
      const bool sealed = depth == 0 && (name == "log" || name == "signature");
      if (name.find('\\') != std::string_view::npos || !Take(':') ||
          !(sealed ? Sealed() : Value(depth + 1))) {
        return false;
      }
      members_.push_back({name, FirstBytes(name), begin, out_.size()});
      Space();
    }
    ++at_;
    return Sorted(start, first);
  }

  // Puts the members from `first` on, which were written from `start` on, in the order of their names, in braces.
  bool Sorted(size_t start, size_t first) {
    const auto begin = members_.begin() + static_cast<std::ptrdiff_t>(first);
    std::sort(begin, members_.end(), [](const Member& a, const Member& b) {
      return a.first_bytes != b.first_bytes ? a.first_bytes < b.first_bytes : a.name < b.name;
    });
    sorted_.assign(1, '{');
    for (auto one = begin; one != members_.end(); ++one) {
      if (one != begin) {
        if (one->name == (one - 1)->name) {
          return false;
        }
        sorted_.push_back(',');
      }
      sorted_.append(out_, one->begin, one->end - one->begin);
    }
    sorted_.push_back('}');
    members_.resize(first);
    out_.resize(start);
    out_.append(sorted_);
    return true;
  }

  const std::string_view text_;
  size_t at_ = 0;
  bool strict_ = false;
  std::string out_;
  std::vector<Member> members_;  // of all objects that are open
  std::string sorted_;
};

}  // namespace

std::optional<std::string> CompactReceipt(std::string_view text) { return Compactor(text).Run(); }

std::optional<std::string> MatchBody(std::string_view receipt, std::string_view body) {
  if (std::optional<std::string> compact = CompactReceipt(receipt);
      compact && "sha256:" + HexOf(FastSha256({}, *compact)) == body) {
    return compact;
  }
  Result<std::string> canonical = CanonicalReceipt(receipt);
  if (!canonical.ok() || HashOf(*canonical) != body) {
    return std::nullopt;
  }
  return std::move(canonical).value();
}

}  // namespace coffer::audit
