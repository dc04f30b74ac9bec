// SPDX-License-Identifier: Apache-2.0
#include "egress/watched_values.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <utility>

#include "base/base64.h"
#include "base/hex.h"

namespace coffer::egress {
namespace {

constexpr size_t kMostLineEnds = 2;  // CR LF. More of them in a row end a spelling that has begun

bool IsLineEnd(unsigned char byte) { return byte == '\r' || byte == '\n'; }

std::string Replaced(std::string text, char from, char to) {
  std::replace(text.begin(), text.end(), from, to);
  return text;
}

std::string Upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

// The digits of base64 that the value alone decides if `before` bytes come before it in its group of three.
std::string InBase64(std::string_view value, size_t before) {
  const std::string text = Base64Of(std::string(before, '\0') + std::string(value));
  const size_t first = (before * 8 + 5) / 6;
  const size_t last = (before + value.size()) * 8 / 6;
  return text.substr(first, last - first);
}

// What a program leaves as it is when it escapes all the rest, beside letters and digits: RFC 3986, forms (of browsers and
// Java), encodeURIComponent, and Python's quote.
constexpr std::string_view kUnescaped[] = {"-_.~", "*-._", "-_.!~*'()", "-_.~/"};

std::string PercentEncoded(std::string_view value, std::string_view unescaped,
                           std::string_view space, bool capitals) {
  std::string text;
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0 || unescaped.find(c) != std::string_view::npos) {
      text += c;
    } else if (c == ' ') {
      text += space;
    } else {
      const std::string digits = HexOf({&c, 1});
      text += '%';
      text += capitals ? Upper(digits) : digits;
    }
  }
  return text;
}

std::set<std::string> SpellingsOf(const std::string& value) {
  std::set<std::string> spellings = {value, HexOf(value), Upper(HexOf(value))};
  const auto add_escaped = [&](const std::string& text) {
    for (const std::string_view unescaped : kUnescaped) {
      for (const std::string_view space : {"%20", "+"}) {
        spellings.insert(PercentEncoded(text, unescaped, space, /*capitals=*/true));
        spellings.insert(PercentEncoded(text, unescaped, space, /*capitals=*/false));
      }
    }
  };
  add_escaped(value);
  for (size_t before = 0; before < 3; ++before) {
    const std::string digits = InBase64(value, before);
    spellings.insert(digits);
    spellings.insert(Replaced(Replaced(digits, '+', '-'), '/', '_'));
    add_escaped(digits);
  }
  return spellings;
}

// Escapes decoded once; "%" that begins none stays.
std::string Decoded(std::string_view text) {
  std::string decoded;
  decoded.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const int high = text[i] == '%' && i + 2 < text.size() ? EitherCaseHexValue(text[i + 1]) : -1;
    const int low = high < 0 ? -1 : EitherCaseHexValue(text[i + 2]);
    if (low < 0) {
      decoded += text[i];
    } else {
      decoded += static_cast<char>(high << 4 | low);
      i += 2;
    }
  }
  return decoded;
}

}  // namespace

WatchedValues::WatchedValues(const std::vector<policy::NeverSendValue>& values) : nodes_(1) {
  for (const policy::NeverSendValue& value : values) {
    for (const std::string& spelling : SpellingsOf(value.value)) {
      Add(spelling, value.line);
    }
  }
  Connect();
}

void WatchedValues::Add(std::string_view spelling, size_t line) {
  State state = 0;
  for (const char c : spelling) {
    const auto byte = static_cast<unsigned char>(c);
    const State child = ChildOf(state, byte);
    state = child != 0 ? child : AddChild(state, byte);
  }
  if (nodes_[state].line == 0) {
    nodes_[state].line = static_cast<uint32_t>(line);
  }
}

WatchedValues::State WatchedValues::ChildOf(State state, unsigned char byte) const {
  const Node& node = nodes_[state];
  if (node.branches) {
    return tables_[node.child][byte];
  }
  return node.byte == byte ? node.child : 0;
}

WatchedValues::State WatchedValues::AddChild(State state, unsigned char byte) {
  const auto made = static_cast<State>(nodes_.size());
  nodes_.emplace_back().length = static_cast<uint16_t>(nodes_[state].length + 1);
  Node& node = nodes_[state];
  if (node.branches) {
    tables_[node.child][byte] = made;
  } else if (node.child == 0) {
    node.child = made;
    node.byte = byte;
  } else {
    Branches& table = tables_.emplace_back();
    table[node.byte] = node.child;
    table[byte] = made;
    node.child = static_cast<State>(tables_.size() - 1);
    node.branches = true;
  }
  return made;
}

// Breadth first: what a prefix falls back to is shorter, and complete when it is needed.
void WatchedValues::Connect() {
  std::vector<State> order = {0};
  for (size_t i = 0; i < order.size(); ++i) {
    const State parent = order[i];
    const auto connect = [&](State child, unsigned char byte) {
      order.push_back(child);
      Node& node = nodes_[child];
      node.fail = parent == 0 ? 0 : Next(nodes_[parent].fail, byte);
      node.line = node.line != 0 ? node.line : nodes_[node.fail].line;
    };
    if (!nodes_[parent].branches) {
      if (nodes_[parent].child != 0) {
        connect(nodes_[parent].child, nodes_[parent].byte);
      }
      continue;
    }
    for (size_t byte = 0; byte < 256; ++byte) {
      if (const State child = tables_[nodes_[parent].child][byte]; child != 0) {
        connect(child, static_cast<unsigned char>(byte));
      }
    }
  }
}

WatchedValues::State WatchedValues::Next(State state, unsigned char byte) const {
  for (;;) {
    if (const State child = ChildOf(state, byte); child != 0) {
      return child;
    }
    if (state == 0) {
      return 0;
    }
    state = nodes_[state].fail;
  }
}

WatchedValues::State WatchedValues::Step(State state, unsigned char byte, size_t& line_ends) const {
  if (IsLineEnd(byte)) {
    return ++line_ends > kMostLineEnds ? 0 : state;
  }
  line_ends = 0;
  return Next(state, byte);
}

size_t WatchedValues::FindIn(std::string_view text) const {
  State state = 0;
  size_t line_ends = 0;
  for (const char c : text) {
    state = Step(state, static_cast<unsigned char>(c), line_ends);
    if (nodes_[state].line != 0) {
      return nodes_[state].line;
    }
  }
  return 0;
}

size_t WatchedValues::FindInTarget(std::string_view target) const {
  const std::string decoded = Decoded(target);
  // In a query "+" may stand for a space.
  const std::string spaced = Decoded(Replaced(std::string(target), '+', ' '));
  for (const std::string_view text :
       {target, std::string_view(decoded), std::string_view(spaced)}) {
    if (const size_t line = FindIn(text); line != 0) {
      return line;
    }
  }
  return 0;
}

std::string WatchedStream::Pass(std::string piece) {
  if (found_ != 0) {
    return "";
  }
  for (const char c : piece) {
    state_ = values_.Step(state_, static_cast<unsigned char>(c), line_ends_);
    if (const size_t line = values_.nodes_[state_].line; line != 0) {
      found_ = line;
      held_.clear();
      return "";
    }
  }
  if (held_.empty() && state_ == 0) {
    return piece;
  }
  held_ += piece;
  const size_t passes = held_.size() - Undecided();
  std::string passed = held_.substr(0, passes);
  held_.erase(0, passes);
  return passed;
}

std::string WatchedStream::Rest() { return std::exchange(held_, {}); }

// How many bytes at the end may be the beginning of a spelling, with the line ends between them.
size_t WatchedStream::Undecided() const {
  size_t size = 0;
  for (size_t left = values_.nodes_[state_].length; left > 0; ++size) {
    left -= IsLineEnd(static_cast<unsigned char>(held_[held_.size() - 1 - size])) ? 0 : 1;
  }
  return size;
}

}  // namespace coffer::egress
