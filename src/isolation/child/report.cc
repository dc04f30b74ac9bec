// SPDX-License-Identifier: Apache-2.0
#include "isolation/child/report.h"

#include <string.h>

namespace coffer::isolation {

const char* StageName(Stage stage) {
  static constexpr const char* kNames[] = {
      "start",
      "starting the network",
      "waiting for an identity",
      "taking the identity",
      "bounding kernel counters",
      "mounting the private root",
      "populating the private root",
      "attaching devices",
      "mounting /proc",
      "waiting for the plan",
      "opening a mount",
      "pivot_root",
      "populating for the call",
      "attaching a mount",
      "opening a terminal",
      "hostname",
      "keyring",
      "session",
      "bounding set",
      "Landlock rules",
      "waiting for admission",
      "sealing the private root",
      "joining the cgroup",
      "cgroup namespace",
      "entering the network",
      "capabilities",
      "no_new_privs",
      "Landlock",
      "seccomp",
      "probing Landlock",
      "descriptors",
      "rlimits",
      "detaching the old root",
      "ready",
      "reading the call",
      "starting the command",
      "controlling terminal",
      "working directory",
      "exec",
      "running",
      "done",
  };
  static_assert(sizeof(kNames) / sizeof(kNames[0]) == kStageCount);
  const auto index = static_cast<uint32_t>(stage);
  return index < kStageCount ? kNames[index] : "an unknown stage";
}

bool ValidCallBlock(const CallBlock* block, uint64_t capacity) {
  if (capacity < sizeof(CallBlock) || block->magic != kCallMagic || block->size == 0 ||
      block->size > capacity - sizeof(CallBlock)) {
    return false;
  }
  if (block->argc == 0 || block->argc > kMaxArguments || block->envc > kMaxArguments ||
      block->program >= block->size || block->cwd >= block->size || block->tty > 1) {
    return false;
  }
  const char* strings = reinterpret_cast<const char*>(block + 1);
  if (strings[block->size - 1] != '\0') {
    return false;
  }
  // With the last byte a NUL, walking argc + envc strings ends inside the block if there are that many.
  uint64_t at = 0;
  for (uint64_t i = 0; i < static_cast<uint64_t>(block->argc) + block->envc; ++i) {
    if (at >= block->size) {
      return false;
    }
    at += strlen(strings + at) + 1;
  }
  return true;
}

}  // namespace coffer::isolation
