// SPDX-License-Identifier: Apache-2.0
//
// The search: every state that the automaton may be in, moved along one code point at a time.
#include "policy/schema/pattern.h"

#include <utility>
#include <vector>

#include "policy/schema/pattern_program.h"

namespace coffer::policy {
namespace {

constexpr char32_t kNone = 0xFFFFFFFF;  // before the first and after the last character

using Op = PatternProgram::Op;

bool IsWord(char32_t c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
}

char32_t Next(std::string_view text, size_t& at) {
  if (at == text.size()) {
    return kNone;
  }
  const auto lead = static_cast<unsigned char>(text[at++]);
  if (lead < 0x80) {
    return lead;
  }
  int more = lead < 0xE0 ? 1 : (lead < 0xF0 ? 2 : 3);
  char32_t c = lead & (0x3FU >> more);
  for (; more > 0 && at < text.size(); --more) {
    c = (c << 6) | (static_cast<unsigned char>(text[at++]) & 0x3FU);
  }
  return c;
}

class Simulation {
 public:
  Simulation(const PatternProgram& program, uint64_t most_work)
      : program_(program), most_work_(most_work), seen_(program.states.size(), 0) {}

  Pattern::Search Run(std::string_view text) {
    std::vector<uint32_t> now;
    std::vector<uint32_t> then;
    size_t at = 0;
    char32_t c = Next(text, at);
    ++round_;
    Enter(0, kNone, c, now);
    while (!found_ && c != kNone && work_ <= most_work_ && !(now.empty() && program_.anchored)) {
      const char32_t after = Next(text, at);
      ++round_;
      then.clear();
      for (const uint32_t state : now) {
        ++work_;
        if (program_.sets[program_.states[state].a].Has(c)) {
          Enter(state + 1, c, after, then);
        }
      }
      if (!program_.anchored) {
        Enter(0, c, after, then);
      }
      c = after;
      std::swap(now, then);
    }
    return {.found = found_, .ended = found_ || work_ <= most_work_, .work = work_};
  }

 private:
  // Adds `state`, or what can be reached from it between the two characters without reading one.
  void Enter(uint32_t state, char32_t before, char32_t after, std::vector<uint32_t>& into) {
    pending_.push_back(state);
    while (!pending_.empty()) {
      const uint32_t at = pending_.back();
      pending_.pop_back();
      if (seen_[at] == round_) {
        continue;
      }
      seen_[at] = round_;
      ++work_;
      const PatternProgram::State& here = program_.states[at];
      switch (here.op) {
        case Op::kSet:
          into.push_back(at);
          break;
        case Op::kSplit:
          pending_.push_back(here.b);
          pending_.push_back(here.a);
          break;
        case Op::kJump:
          pending_.push_back(here.a);
          break;
        case Op::kBegin:
          Pass(before == kNone, at);
          break;
        case Op::kEnd:
          Pass(after == kNone, at);
          break;
        case Op::kWordBoundary:
          Pass(IsWord(before) != IsWord(after), at);
          break;
        case Op::kNotWordBoundary:
          Pass(IsWord(before) == IsWord(after), at);
          break;
        case Op::kMatch:
          found_ = true;
          break;
      }
    }
  }
  void Pass(bool holds, uint32_t at) {
    if (holds) {
      pending_.push_back(at + 1);
    }
  }

  const PatternProgram& program_;
  uint64_t most_work_;
  uint64_t work_ = 0;
  uint64_t round_ = 0;
  bool found_ = false;
  std::vector<uint64_t> seen_;  // in which round a state was entered last
  std::vector<uint32_t> pending_;
};

}  // namespace

Pattern::Pattern(std::string source, std::shared_ptr<const PatternProgram> program)
    : source_(std::move(source)), program_(std::move(program)) {}

Result<Pattern> Pattern::Compile(std::string_view ecma) {
  TRY_ASSIGN(PatternTree tree, ParsePattern(ecma));
  TRY_ASSIGN(PatternProgram program, MakeProgram(std::move(tree)));
  return Pattern(std::string(ecma), std::make_shared<const PatternProgram>(std::move(program)));
}

Pattern::Search Pattern::Find(std::string_view text, uint64_t most_work) const {
  return Simulation(*program_, most_work).Run(text);
}

}  // namespace coffer::policy
