// SPDX-License-Identifier: Apache-2.0
//
// A pattern on its way: the tree that the parser makes, and the automaton that it becomes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "policy/schema/code_points.h"

namespace coffer::policy {

inline constexpr uint32_t kUnbounded = 0xFFFFFFFF;

struct PatternTree {
  enum class Kind : uint8_t {
    kSequence,
    kAlternatives,
    kRepeat,
    kSet,
    kBegin,
    kEnd,
    kWordBoundary,
    kNotWordBoundary
  };
  struct Node {
    Kind kind = Kind::kSequence;  // an empty sequence matches nothing in particular
    std::vector<uint32_t> parts;  // nodes; of a repeat, one
    uint32_t set = 0;
    uint32_t least = 0, most = 0;
  };
  std::vector<Node> nodes;
  std::vector<CodePointSet> sets;
  uint32_t root = 0;
};

struct PatternProgram {
  enum class Op : uint8_t {
    kSet,
    kSplit,
    kJump,
    kBegin,
    kEnd,
    kWordBoundary,
    kNotWordBoundary,
    kMatch
  };
  struct State {
    Op op = Op::kMatch;
    uint32_t a = 0;  // kSet: which; kJump, kSplit: where to
    uint32_t b = 0;  // kSplit: or where to
  };
  std::vector<State> states;
  std::vector<CodePointSet> sets;
  bool anchored = false;  // matches at the beginning or not at all
};

Result<PatternTree> ParsePattern(std::string_view ecma);
Result<PatternProgram> MakeProgram(PatternTree tree);

}  // namespace coffer::policy
