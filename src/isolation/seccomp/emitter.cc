// SPDX-License-Identifier: Apache-2.0
#include "isolation/seccomp/emitter.h"

namespace coffer::isolation {

BackwardEmitter::Place BackwardEmitter::Return(uint32_t verdict) {
  const auto known = returns_.find(verdict);
  if (known != returns_.end() && Reaches(known->second)) {
    return known->second;
  }
  return returns_[verdict] = Put(BPF_RET | BPF_K, verdict);
}

BackwardEmitter::Place BackwardEmitter::SteppingStone(Place target) {
  if (code_[target].code == (BPF_RET | BPF_K)) {
    return Return(code_[target].k);
  }
  return Goto(target);
}

BackwardEmitter::Place BackwardEmitter::Jump(uint16_t operation, uint32_t value, Place if_true,
                                             Place if_false) {
  if (if_true == if_false) {
    return if_true;  // nothing to decide
  }
  if (!Reaches(if_true)) {
    if_true = SteppingStone(if_true);
  }
  if (!Reaches(if_false)) {
    if_false = SteppingStone(if_false);
  }
  const size_t here = code_.size();
  return Put(BPF_JMP | operation | BPF_K, value, static_cast<uint8_t>(here - if_true - 1),
             static_cast<uint8_t>(here - if_false - 1));
}

}  // namespace coffer::isolation
