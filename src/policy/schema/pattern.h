// SPDX-License-Identifier: Apache-2.0
//
// A Pattern is a regular expression of JSON Schema (ECMA-262 with the u flag) that is searched for in linear time.
//
// Our parser knows the regular part of ECMA-262 and refuses the rest with the reason: no lookaround, no
// backreferences, no \p. What it accepts becomes a small automaton that is simulated, all its states at once, one
// code point after the other: it cannot backtrack, needs memory for its states only, and counts what it does, so that
// the caller can stop it. Not anchored, as JSON Schema wants it. There is no library behind it because this is linked
// into `coffer`, whose start is part of every call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace coffer::policy {

inline constexpr size_t kMaxPatternBytes = 2048;
inline constexpr int kMaxPatternGroups = 32;  // inside one another
// A repetition, or repetitions inside one another multiplied.
inline constexpr uint32_t kMaxPatternRepeat = 1000;
// Of the automaton, repetitions written out.
inline constexpr size_t kMaxPatternStates = 5000;

struct PatternProgram;  // policy/schema/pattern_program.h

class Pattern {
 public:
  // The error's message says where and why; its hint what to write instead.
  static Result<Pattern> Compile(std::string_view ecma);

  struct Search {
    bool found = false;
    bool ended = true;  // false: `most_work` was not enough to know
    uint64_t work = 0;  // states visited
  };
  // Whether it is anywhere in `text`, which is valid UTF-8.
  Search Find(std::string_view text, uint64_t most_work) const;
  const std::string& source() const { return source_; }

 private:
  Pattern(std::string source, std::shared_ptr<const PatternProgram> program);
  std::string source_;
  std::shared_ptr<const PatternProgram> program_;
};

}  // namespace coffer::policy
