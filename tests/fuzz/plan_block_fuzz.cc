// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as the half of a plan that init reads: a block that is called valid can be read as init reads it without leaving its
// memory. The copy has exactly the input's size, so the address sanitizer sees one byte too many.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "isolation/child/plan_block.h"
#include "isolation/child/report.h"

namespace {

using namespace coffer::isolation;

uint64_t g_read = 0;  // the sum of what was read, so that nothing of it is left out

void ReadText(const PlanBlock& block, PackedText text) { g_read += std::strlen(At(block, text)); }

void ReadBytes(const void* bytes, size_t size) {
  for (size_t i = 0; i < size; ++i) {
    g_read += static_cast<const volatile uint8_t*>(bytes)[i];
  }
}

void ReadRoot(const PlanBlock& block) {
  const PackedRoot& root = block.root;
  for (const PackedText dir : At(block, root.dirs)) {
    ReadText(block, dir);
  }
  for (const PackedTmpfs& place : At(block, root.tmpfs)) {
    ReadText(block, place.at);
  }
  for (const PackedFile& file : At(block, root.files)) {
    ReadText(block, file.at);
    ReadBytes(At(block, file.content), file.size);
  }
  for (const PackedLink& link : At(block, root.links)) {
    ReadText(block, link.at);
    ReadText(block, link.target);
  }
  for (const PackedBind& bind : At(block, root.binds)) {
    ReadText(block, bind.host);
    ReadText(block, bind.at);
    ReadText(block, bind.overlay_upper);
    ReadText(block, bind.overlay_work);
  }
  for (const PackedText hidden : At(block, root.hidden)) {
    ReadText(block, hidden);
  }
  for (const PackedCover& cover : At(block, root.covers)) {
    ReadText(block, cover.from);
    ReadText(block, cover.at);
  }
  ReadText(block, root.overlays);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::unique_ptr<char[]> copy(new char[size]);
  std::memcpy(copy.get(), data, size);
  auto* const block = reinterpret_cast<PlanBlock*>(copy.get());
  if (size > sizeof(PlanBlock) && (data[0] & 1) != 0) {
    block->magic = kPlanMagic;  // the fuzzer need not guess these every time
    block->size = size;
    copy[size - 1] = '\0';
  }
  if (!ValidPlanBlock(block, size)) {
    return 0;
  }
  if (block->root.binds.count > kMaxTrees) {
    std::abort();
  }
  ReadRoot(*block);
  ReadText(*block, block->landlock_canary);
  for (const PackedRule& rule : At(*block, block->landlock)) {
    ReadText(*block, rule.path);
  }
  for (const auto& filter : {block->filter, block->unserved_filter}) {
    const auto instructions = At(*block, filter);
    ReadBytes(instructions.data(), instructions.size_bytes());
  }
  ReadBytes(At(*block, block->call), block->size - block->call);
  return 0;
}
