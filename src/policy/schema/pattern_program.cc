// SPDX-License-Identifier: Apache-2.0
//
// From the tree of a pattern to its automaton (Thompson's construction), repetitions written out.
#include "policy/schema/pattern_program.h"

#include <algorithm>
#include <utility>

#include "policy/schema/pattern.h"

namespace coffer::policy {
namespace {

using Kind = PatternTree::Kind;
using Op = PatternProgram::Op;

class Builder {
 public:
  explicit Builder(const PatternTree& tree) : tree_(tree) {}

  // Goes on, without adding anything, when there are too many states.
  void Emit(uint32_t index) {
    const PatternTree::Node& node = tree_.nodes[index];
    switch (node.kind) {
      case Kind::kSequence:
        for (const uint32_t part : node.parts) {
          Emit(part);
        }
        break;
      case Kind::kAlternatives:
        Alternatives(node);
        break;
      case Kind::kRepeat:
        Repeat(node);
        break;
      case Kind::kSet:
        Add({Op::kSet, node.set});
        break;
      case Kind::kBegin:
        Add({Op::kBegin});
        break;
      case Kind::kEnd:
        Add({Op::kEnd});
        break;
      case Kind::kWordBoundary:
        Add({Op::kWordBoundary});
        break;
      case Kind::kNotWordBoundary:
        Add({Op::kNotWordBoundary});
        break;
    }
  }
  void Add(PatternProgram::State state) {
    if (!full()) {
      states_.push_back(state);
    }
  }
  bool full() const { return states_.size() > kMaxPatternStates; }
  std::vector<PatternProgram::State>& states() { return states_; }

 private:
  uint32_t here() const { return static_cast<uint32_t>(states_.size()); }

  void Alternatives(const PatternTree::Node& node) {
    std::vector<uint32_t> ends;
    for (size_t i = 0; i < node.parts.size() && !full(); ++i) {
      const bool last = i + 1 == node.parts.size();
      const uint32_t split = here();
      if (!last) {
        Add({Op::kSplit, split + 1});
      }
      Emit(node.parts[i]);
      if (!last) {
        ends.push_back(here());
        Add({Op::kJump});
        states_[split].b = here();
      }
    }
    for (const uint32_t end : ends) {
      if (end < here()) {
        states_[end].a = here();
      }
    }
  }

  void Repeat(const PatternTree::Node& node) {
    const uint32_t body = node.parts[0];
    for (uint32_t i = 0; i < node.least && !full(); ++i) {
      Emit(body);
    }
    std::vector<uint32_t> splits;
    if (node.most == kUnbounded) {
      splits.push_back(here());
      Add({Op::kSplit, here() + 1});
      Emit(body);
      Add({Op::kJump, splits[0]});
    }
    for (uint32_t i = node.least; node.most != kUnbounded && i < node.most && !full(); ++i) {
      splits.push_back(here());
      Add({Op::kSplit, here() + 1});
      Emit(body);
    }
    for (const uint32_t split : splits) {
      if (split < here()) {
        states_[split].b = here();
      }
    }
  }

  const PatternTree& tree_;
  std::vector<PatternProgram::State> states_;
};

bool BeginsAtTheBeginning(const PatternTree& tree, uint32_t index) {
  const PatternTree::Node& node = tree.nodes[index];
  const auto begins = [&](uint32_t part) { return BeginsAtTheBeginning(tree, part); };
  switch (node.kind) {
    case Kind::kBegin:
      return true;
    case Kind::kSequence:
      return !node.parts.empty() && begins(node.parts[0]);
    case Kind::kAlternatives:
      return std::all_of(node.parts.begin(), node.parts.end(), begins);
    case Kind::kRepeat:
      return node.least > 0 && begins(node.parts[0]);
    default:
      return false;
  }
}

}  // namespace

Result<PatternProgram> MakeProgram(PatternTree tree) {
  Builder builder(tree);
  builder.Emit(tree.root);
  builder.Add({Op::kMatch});
  if (builder.full()) {
    return Refused("schema.pattern", "the pattern is too large with its repetitions written out",
                   "repeat less; maxLength bounds a length more cheaply");
  }
  PatternProgram program;
  program.states = std::move(builder.states());
  program.anchored = BeginsAtTheBeginning(tree, tree.root);
  program.sets = std::move(tree.sets);
  return program;
}

}  // namespace coffer::policy
