// SPDX-License-Identifier: Apache-2.0
#include "isolation/child/plan_block.h"

#include <algorithm>

#include "isolation/child/report.h"

namespace coffer::isolation {
namespace {

bool Holds(const PlanBlock& block, PackedText text) { return text < block.size; }

template <class Record>
bool Holds(const PlanBlock& block, const PackedList<Record>& list) {
  return list.offset <= block.size && list.offset % alignof(Record) == 0 &&
         list.count <= (block.size - list.offset) / sizeof(Record);
}

// A list that lies inside and whose records `good` accepts.
template <class Record, class Good>
bool Holds(const PlanBlock& block, const PackedList<Record>& list, const Good& good) {
  if (!Holds(block, list)) {
    return false;
  }
  const std::span<const Record> records = At(block, list);
  return std::all_of(records.begin(), records.end(), good);
}

bool ValidRoot(const PlanBlock& block) {
  const PackedRoot& root = block.root;
  const auto text = [&block](PackedText offset) { return Holds(block, offset); };
  return root.binds.count <= kMaxTrees && Holds(block, root.dirs, text) &&
         Holds(block, root.tmpfs, [&](const PackedTmpfs& place) { return text(place.at); }) &&
         Holds(block, root.files,
               [&](const PackedFile& file) {
                 return text(file.at) && file.content <= block.size &&
                        file.size <= block.size - file.content;
               }) &&
         Holds(block, root.links,
               [&](const PackedLink& link) { return text(link.at) && text(link.target); }) &&
         Holds(block, root.binds,
               [&](const PackedBind& bind) {
                 return text(bind.host) && text(bind.at) && text(bind.overlay_upper) &&
                        text(bind.overlay_work);
               }) &&
         Holds(block, root.hidden, text) &&
         Holds(block, root.covers,
               [&](const PackedCover& cover) { return text(cover.from) && text(cover.at); }) &&
         text(root.overlays);
}

}  // namespace

bool ValidPlanBlock(const PlanBlock* block, uint64_t capacity) {
  if (capacity < sizeof(PlanBlock) || block->magic != kPlanMagic ||
      block->size <= sizeof(PlanBlock) || block->size > capacity ||
      *At(*block, block->size - 1) != '\0') {
    return false;
  }
  return ValidRoot(*block) && Holds(*block, block->landlock_canary) &&
         Holds(*block, block->landlock,
               [block](const PackedRule& rule) { return Holds(*block, rule.path); }) &&
         Holds(*block, block->filter) && Holds(*block, block->unserved_filter) &&
         block->call <= block->size && block->call % alignof(CallBlock) == 0;
}

}  // namespace coffer::isolation
