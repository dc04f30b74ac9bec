// SPDX-License-Identifier: Apache-2.0
//
// Writes a BPF program from its end to its beginning.
//
// BPF jumps only forward, and a conditional jump reaches 255 instructions. Written backwards, every target already
// has a place when a jump to it is written, so the distance is known: a target that is too far away gets a stepping
// stone (a copy of a return, or an unconditional jump, whose offset has 32 bits) right behind the jump.
// Nothing falls into a stepping stone by accident, because only loads and masks fall through, and each is written
// directly before the instruction that uses it.
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace coffer::isolation {

class BackwardEmitter {
 public:
  // An instruction, counted from the program's end.
  using Place = size_t;

  Place Load(uint32_t offset) { return Put(BPF_LD | BPF_W | BPF_ABS, offset); }  // falls through
  Place And(uint32_t mask) { return Put(BPF_ALU | BPF_AND | BPF_K, mask); }      // falls through
  Place Goto(Place target) {
    return Put(BPF_JMP | BPF_JA, static_cast<uint32_t>(code_.size() - target - 1));
  }
  // A return of `verdict` that a jump written next can reach.
  Place Return(uint32_t verdict);
  // `operation` is BPF_JEQ, BPF_JGT, BPF_JGE or BPF_JSET.
  Place Jump(uint16_t operation, uint32_t value, Place if_true, Place if_false);

  size_t size() const { return code_.size(); }
  std::vector<sock_filter> Finish() const { return {code_.rbegin(), code_.rend()}; }

 private:
  Place Put(uint16_t code, uint32_t k, uint8_t jt = 0, uint8_t jf = 0) {
    code_.push_back({code, jt, jf, k});
    return code_.size() - 1;
  }
  bool Reaches(Place target) const { return code_.size() - target - 1 <= kReach; }
  Place SteppingStone(Place target);

  // Two less than 255, so that the stepping stones of one jump do not push its other target out of reach.
  static constexpr size_t kReach = 253;

  std::vector<sock_filter> code_;  // last instruction first
  std::map<uint32_t, Place> returns_;
};

}  // namespace coffer::isolation
