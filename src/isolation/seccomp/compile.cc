// SPDX-License-Identifier: Apache-2.0
#include "isolation/seccomp/compile.h"

#include <linux/audit.h>
#include <linux/seccomp.h>
#include <stddef.h>

#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include "isolation/seccomp/emitter.h"

namespace coffer::isolation {
namespace {

using Place = BackwardEmitter::Place;

constexpr uint32_t kX32Bit = 0x40000000;  // arch/x86/include/uapi/asm/unistd.h, __X32_SYSCALL_BIT
constexpr size_t kMaxArguments = 6;

constexpr uint32_t High(uint64_t value) { return static_cast<uint32_t>(value >> 32); }
constexpr uint32_t Low(uint64_t value) { return static_cast<uint32_t>(value); }
// Both architectures are little-endian.
uint32_t LowOffset(uint8_t arg) {
  return static_cast<uint32_t>(offsetof(seccomp_data, args)) + 8U * arg;
}
uint32_t HighOffset(uint8_t arg) { return LowOffset(arg) + 4; }

// What decides about one number: guarded verdicts in order, then a verdict for the rest.
struct Guarded {
  std::vector<Condition> conditions;
  uint32_t verdict = 0;
  bool operator==(const Guarded&) const = default;
};
struct Leaf {
  std::vector<Guarded> guarded;
  uint32_t rest = 0;
  bool operator==(const Leaf&) const = default;
};
struct Range {
  uint32_t first = 0;
  Leaf leaf;
  // How often the tree is walked to here. The kernel walks it once for every number when the filter is installed,
  // and remembers the numbers that are allowed whatever the arguments (Linux 5.11); after that only the others count.
  uint64_t weight = 0;
};
constexpr uint64_t kNumberWeight = 1;
constexpr uint64_t kArgumentWeight = 8;

// One Leaf per number from 0 to the highest, from the rules in order.
std::vector<Leaf> LeavesByNumber(const Profile& profile, const SyscallTable& table) {
  std::vector<Leaf> leaves(table.highest() + 1, Leaf{{}, KernelAction(profile.fallback)});
  std::vector<bool> closed(leaves.size(),
                           false);  // an unconditional rule was met; later ones cannot match
  for (const Rule& rule : profile.rules) {
    const std::optional<uint32_t> number = table.Find(rule.syscall);
    if (!number || closed[*number]) {
      continue;
    }
    Leaf& leaf = leaves[*number];
    if (rule.conditions.empty()) {
      leaf.rest = KernelAction(rule.action);
      closed[*number] = true;
    } else {
      leaf.guarded.push_back({rule.conditions, KernelAction(rule.action)});
    }
  }
  for (Leaf& leaf : leaves) {
    while (!leaf.guarded.empty() && leaf.guarded.back().verdict == leaf.rest) {
      leaf.guarded.pop_back();
    }
  }
  return leaves;
}

std::vector<Range> Ranges(const Profile& profile, const SyscallTable& table) {
  std::vector<Range> ranges;
  const auto append = [&ranges](uint32_t first, Leaf leaf) {
    if (ranges.empty() || !(ranges.back().leaf == leaf)) {
      ranges.push_back({first, std::move(leaf), 0});
    }
    ranges.back().weight += ranges.back().leaf.guarded.empty() ? kNumberWeight : kArgumentWeight;
  };
  std::vector<Leaf> leaves = LeavesByNumber(profile, table);
  for (uint32_t number = 0; number < leaves.size(); ++number) {
    append(number, std::move(leaves[number]));
  }
  append(table.highest() + 1, {{}, KernelAction(profile.beyond)});
  if (table.has_x32) {
    append(kX32Bit, {{}, KernelAction(kKill)});
  }
  return ranges;
}

class Compiler {
 public:
  std::vector<sock_filter> Compile(const std::vector<Range>& ranges, uint32_t audit_arch) {
    const Place tree = Tree(ranges, 0, ranges.size());
    // A tree of one range without conditions is a bare return and does not look at the number.
    const Place number = FallsInto(tree, static_cast<uint32_t>(offsetof(seccomp_data, nr)));
    const Place kill = out_.Return(KernelAction(kKill));
    out_.Jump(BPF_JEQ, audit_arch, number, kill);
    out_.Load(static_cast<uint32_t>(offsetof(seccomp_data, arch)));
    return out_.Finish();
  }

 private:
  // A load that continues at `target`, wherever that is.
  Place FallsInto(Place target, uint32_t offset) {
    if (target + 1 != out_.size()) {
      out_.Goto(target);
    }
    return out_.Load(offset);
  }

  // Decides among ranges [begin, end) with the number in the accumulator. Splits where both sides weigh the same.
  Place Tree(const std::vector<Range>& ranges, size_t begin, size_t end) {
    if (end - begin == 1) {
      return LeafCode(ranges[begin].leaf);
    }
    uint64_t total = 0;
    for (size_t i = begin; i < end; ++i) {
      total += ranges[i].weight;
    }
    size_t middle = begin + 1;
    for (uint64_t left = ranges[begin].weight; middle + 1 < end; ++middle) {
      const uint64_t with_next = left + ranges[middle].weight;
      if (with_next + left > total) {  // one more would be further from the half
        break;
      }
      left = with_next;
    }
    const Place upper = Tree(ranges, middle, end);
    const Place lower = Tree(ranges, begin, middle);
    return out_.Jump(BPF_JGE, ranges[middle].first, upper, lower);
  }

  Place LeafCode(const Leaf& leaf) {
    if (leaf.guarded.empty()) {
      return out_.Return(leaf.rest);
    }
    for (const auto& [known, place] : leaves_) {
      if (known == leaf) {
        return place;
      }
    }
    const Place place = Alternatives(leaf.guarded, 0, out_.Return(leaf.rest));
    leaves_.emplace_back(leaf, place);
    return place;
  }

  // Tries `guarded` in order, ignoring the first `depth` conditions of each, which are known to hold; then `next`.
  // Neighbours that begin with the same condition test it once.
  Place Alternatives(std::span<const Guarded> guarded, size_t depth, Place next) {
    for (size_t end = guarded.size(); end > 0;) {
      const Guarded& last = guarded[end - 1];
      size_t begin = end - 1;
      if (last.conditions.size() == depth) {
        next = out_.Return(last.verdict);
      } else if (IsWordTest(last, depth)) {
        next = WordTests(guarded, depth, end, next, &begin);
      } else {
        while (begin > 0 && guarded[begin - 1].conditions.size() > depth &&
               guarded[begin - 1].conditions[depth] == last.conditions[depth]) {
          --begin;
        }
        const Place inner = Alternatives(guarded.subspan(begin, end - begin), depth + 1, next);
        next = ConditionCode(last.conditions[depth], inner, next);
      }
      end = begin;
    }
    return next;
  }

  // The last condition, and one that compares a word for equality: a prctl option, an ioctl command, a protocol.
  static bool IsWordTest(const Guarded& guarded, size_t depth) {
    if (guarded.conditions.size() != depth + 1) {
      return false;
    }
    const Condition& test = guarded.conditions[depth];
    return test.compare == Compare::kEqual && Low(test.mask) != 0 && High(test.mask) == 0 &&
           High(test.value) == 0;
  }
  // All such tests of the same word that end at `end`, with one load for all of them.
  Place WordTests(std::span<const Guarded> guarded, size_t depth, size_t end, Place next,
                  size_t* begin) {
    const Condition& last = guarded[end - 1].conditions[depth];
    size_t at = end;
    while (at > 0 && IsWordTest(guarded[at - 1], depth) &&
           guarded[at - 1].conditions[depth].arg == last.arg &&
           guarded[at - 1].conditions[depth].mask == last.mask) {
      --at;
    }
    *begin = at;
    if (end - at == 1) {
      return ConditionCode(last, out_.Return(guarded[at].verdict), next);
    }
    for (size_t stop = end; stop > at;) {
      size_t start = stop - 1;
      while (start > at && guarded[start - 1].verdict == guarded[start].verdict) {
        --start;
      }
      std::vector<uint32_t> values;
      for (size_t i = start; i < stop; ++i) {
        values.push_back(Low(guarded[i].conditions[depth].value));
      }
      next = IsOneOf(std::move(values), out_.Return(guarded[start].verdict), next);
      stop = start;
    }
    return LoadWord(LowOffset(last.arg), Low(last.mask), next);
  }

  // Continues at `yes` if the accumulator is one of `values`, else at `no`. Three or more in a row are one interval.
  Place IsOneOf(std::vector<uint32_t> values, Place yes, Place no) {
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
    for (size_t end = values.size(); end > 0;) {
      size_t begin = end - 1;
      while (begin > 0 && values[begin - 1] + 1 == values[begin]) {
        --begin;
      }
      if (end - begin < 3) {
        begin = end - 1;
        no = out_.Jump(BPF_JEQ, values[begin], yes, no);
      } else {
        no = out_.Jump(BPF_JGE, values[begin], out_.Jump(BPF_JGT, values[end - 1], no, yes), no);
      }
      end = begin;
    }
    return no;
  }

  // Continues at `yes` if the condition holds, else at `no`.
  Place ConditionCode(const Condition& test, Place yes, Place no) {
    switch (test.compare) {
      case Compare::kEqual:
        return EqualCode(test, yes, no);
      case Compare::kNotEqual:
        return EqualCode(test, no, yes);
      case Compare::kGreater:
        return OrderCode(test, BPF_JGT, yes, no);
      case Compare::kGreaterEqual:
        return OrderCode(test, BPF_JGE, yes, no);
      case Compare::kLess:
        return OrderCode(test, BPF_JGE, no, yes);
      case Compare::kLessEqual:
        return OrderCode(test, BPF_JGT, no, yes);
    }
    return no;
  }

  Place EqualCode(const Condition& test, Place yes, Place no) {
    const Place low = WordEqual(LowOffset(test.arg), Low(test.mask), Low(test.value), yes, no);
    return WordEqual(HighOffset(test.arg), High(test.mask), High(test.value), low, no);
  }
  Place WordEqual(uint32_t offset, uint32_t mask, uint32_t value, Place yes, Place no) {
    if (mask == 0) {
      return value == 0 ? yes : no;
    }
    if (value == 0 && mask != UINT32_MAX) {
      return FallsInto(out_.Jump(BPF_JSET, mask, no, yes), offset);
    }
    return LoadWord(offset, mask, out_.Jump(BPF_JEQ, value, yes, no));
  }

  // `low_operation` is BPF_JGT or BPF_JGE and decides if the upper halves are equal.
  Place OrderCode(const Condition& test, uint16_t low_operation, Place yes, Place no) {
    const Place low = LoadWord(LowOffset(test.arg), Low(test.mask),
                               out_.Jump(low_operation, Low(test.value), yes, no));
    const Place equal = out_.Jump(BPF_JEQ, High(test.value), low, no);
    return LoadWord(HighOffset(test.arg), High(test.mask),
                    out_.Jump(BPF_JGT, High(test.value), yes, equal));
  }

  Place LoadWord(uint32_t offset, uint32_t mask, Place next) {
    if (mask == UINT32_MAX) {
      return FallsInto(next, offset);
    }
    if (next + 1 != out_.size()) {
      out_.Goto(next);
    }
    out_.And(mask);
    return out_.Load(offset);
  }

  BackwardEmitter out_;
  std::vector<std::pair<Leaf, Place>> leaves_;  // written once, however many numbers share it
};

}  // namespace

uint32_t KernelAction(Action action) {
  switch (action.kind) {
    case ActionKind::kAllow:
      return SECCOMP_RET_ALLOW;
    case ActionKind::kNotify:
      return SECCOMP_RET_USER_NOTIF;
    case ActionKind::kErrno:
      return SECCOMP_RET_ERRNO | (action.error & SECCOMP_RET_DATA);
    case ActionKind::kKill:
      break;
  }
  return SECCOMP_RET_KILL_PROCESS;
}

Result<std::vector<sock_filter>> Compile(const Profile& profile, const SyscallTable& table) {
  if (table.by_number.empty()) {
    return Internal("seccomp.table", "there is no table of system calls to compile for");
  }
  for (const Rule& rule : profile.rules) {
    for (const Condition& condition : rule.conditions) {
      if (condition.arg >= kMaxArguments) {
        return Refused("seccomp.argument", "rule for " + rule.syscall + " tests argument " +
                                               std::to_string(condition.arg) +
                                               "; the last one is 5");
      }
    }
  }
  std::vector<sock_filter> program = Compiler().Compile(Ranges(profile, table), table.audit_arch);
  if (program.size() > BPF_MAXINSNS) {
    return Refused("seccomp.too-long",
                   "the seccomp profile needs " + std::to_string(program.size()) +
                       " instructions and the kernel takes 4096",
                   "use fewer conditions on arguments");
  }
  return program;
}

}  // namespace coffer::isolation
