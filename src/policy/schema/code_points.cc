// SPDX-License-Identifier: Apache-2.0
#include "policy/schema/code_points.h"

#include <algorithm>

namespace coffer::policy {
namespace {

constexpr char32_t kLast = 0x10FFFF;

// WhiteSpace and LineTerminator of ECMA-262: with U+FEFF and everything of category Zs.
constexpr std::pair<char32_t, char32_t> kSpaces[] = {
    {0x09, 0x0D},     {0x20, 0x20},     {0xA0, 0xA0},     {0x1680, 0x1680}, {0x2000, 0x200A},
    {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000}, {0xFEFF, 0xFEFF},
};

}  // namespace

void CodePointSet::Add(char32_t first, char32_t last) {
  for (char32_t c = first; c <= last && c < 128; ++c) {
    ascii_[c / 64] |= uint64_t{1} << (c % 64);
  }
  // What it touches becomes one range with it.
  auto from = std::find_if(ranges_.begin(), ranges_.end(),
                           [&](const auto& r) { return r.second + 1 >= first; });
  auto to = from;
  for (; to != ranges_.end() && to->first <= last + 1; ++to) {
    first = std::min(first, to->first);
    last = std::max(last, to->second);
  }
  ranges_.insert(ranges_.erase(from, to), {first, last});
}

void CodePointSet::Add(const CodePointSet& other) {
  for (const auto& [first, last] : other.ranges_) {
    Add(first, last);
  }
}

CodePointSet CodePointSet::Complement() const {
  CodePointSet rest;
  char32_t next = 0;
  for (const auto& [first, last] : ranges_) {
    if (first > next) {
      rest.Add(next, first - 1);
    }
    next = last + 1;
  }
  if (next <= kLast) {
    rest.Add(next, kLast);
  }
  return rest;
}

bool CodePointSet::Has(char32_t c) const {
  if (c < 128) {
    return (ascii_[c / 64] >> (c % 64) & 1) != 0;
  }
  const auto after =
      std::upper_bound(ranges_.begin(), ranges_.end(), c,
                       [](char32_t value, const auto& range) { return value < range.first; });
  return after != ranges_.begin() && c <= (after - 1)->second;
}

CodePointSet ClassOf(char letter) {
  CodePointSet set;
  switch (letter) {
    case 'd':
      set.Add('0', '9');
      return set;
    case 'w':
      set.Add('0', '9');
      set.Add('A', 'Z');
      set.Add('_', '_');
      set.Add('a', 'z');
      return set;
    case 's':
      for (const auto& [first, last] : kSpaces) {
        set.Add(first, last);
      }
      return set;
    default:
      return ClassOf(static_cast<char>(letter | 0x20)).Complement();
  }
}

CodePointSet NotLineTerminators() {
  CodePointSet set;
  set.Add('\n', '\n');
  set.Add('\r', '\r');
  set.Add(0x2028, 0x2029);
  return set.Complement();
}

}  // namespace coffer::policy
