// SPDX-License-Identifier: Apache-2.0
//
// A mistake in a file that a person wrote: where it is, what is wrong, and what to write instead.
//
// Checking a file goes on after a mistake, so that one look lists all of them; the list is sorted by position and
// bounded, because the file may be hostile. Everything quoted from the file is made printable first.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace coffer::policy {

// Both count from 1; columns count characters, as editors do.
struct Position {
  uint32_t line = 1;
  uint32_t column = 1;
  auto operator<=>(const Position&) const = default;
};

struct Mistake {
  Position at;
  std::string message;  // "[limits] has no key \"memroy\""
  std::string hint;     // "write memory"; may be empty
  bool operator==(const Mistake&) const = default;
};

inline constexpr size_t kMaxMistakes = 100;

// Whether a value on this line is known to be wrong already: what follows from it is not told again. What is missing is
// told at the beginning of a line, and does not count.
bool IsWrongAlready(const std::vector<Mistake>& mistakes, Position at);

// Collects mistakes; beyond kMaxMistakes it only counts.
class MistakeList {
 public:
  void Add(Position at, std::string message, std::string hint = {});
  bool empty() const { return mistakes_.empty(); }
  // Sorted by position, the same mistake once; says at the end if some were left out.
  std::vector<Mistake> Take();

 private:
  std::vector<Mistake> mistakes_;
  size_t left_out_ = 0;
};

// "tools/x.toml:3:7: what is wrong: what to write".
std::string FormatMistake(std::string_view file, const Mistake& mistake);

// The known word that `word` was probably meant to be, or "".
std::string_view NearestWord(std::string_view word, const std::vector<std::string_view>& known);

}  // namespace coffer::policy
