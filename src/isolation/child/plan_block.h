// SPDX-License-Identifier: Apache-2.0
//
// A plan in the form in which init reads it: one block of bytes without pointers.
//
// Init carries out a plan in two halves. The first is packed before the clone, and init reads it
// from its copy of the memory. The second is packed when the call is known, which may be after the
// clone: it comes as a sealed memory file, which neither side can change and the supervisor never
// reads back (pack_plan.h). Both halves have this layout. Offsets count from the block's first
// byte. Init is given blocks by its own supervisor only; it still believes none of it before
// ValidPlanBlock. The payload never has these pages: execve drops them.
//
// Read in the child after clone: no heap, no locks, no formatting.
#pragma once

#include <linux/filter.h>

#include <cstdint>
#include <span>

namespace coffer::isolation {

inline constexpr uint32_t kPlanMagic = 0xc0ffe704;

// `count` records in a row.
template <class Record>
struct PackedList {
  uint64_t offset;
  uint64_t count;
};

// The offset of a string that ends with a NUL.
using PackedText = uint64_t;

struct PackedTmpfs {
  PackedText at;
  uint64_t bytes;
  uint64_t inodes;
  uint32_t mode;
  uint32_t executable;
};

struct PackedFile {
  PackedText at;
  uint64_t content;  // the offset of `size` bytes
  uint64_t size;
  uint32_t mode;
  uint32_t reserved;
};

struct PackedLink {
  PackedText at;
  PackedText target;
};

struct PackedCover {
  PackedText from;
  PackedText at;
};

// The members of BindMount (plan.h) that init needs.
struct PackedBind {
  PackedText host;
  PackedText at;
  PackedText overlay_upper;  // "" without an overlay
  PackedText overlay_work;
  uint64_t expected_dev;
  uint64_t expected_ino;
  uint64_t place_dev;
  uint64_t place_ino;
  uint64_t device;
  uint8_t directory;
  uint8_t writable;
  uint8_t executable;
  uint8_t supervised;
  uint8_t covers;
  uint8_t link;
  uint8_t usable_device;
  uint8_t reserved;
};

struct PackedRule {
  PackedText path;
  uint64_t rights;
  uint32_t required;
  int32_t fd;
};

struct PackedRoot {
  PackedList<PackedText> dirs;
  PackedList<PackedTmpfs> tmpfs;
  PackedList<PackedFile> files;
  PackedList<PackedLink> links;
  PackedList<PackedBind> binds;
  PackedList<PackedText> hidden;
  PackedList<PackedCover> covers;
  PackedText overlays;  // "" if there are none
};

struct PlanBlock {
  uint32_t magic;
  int32_t landlock_abi;
  uint64_t size;  // of the whole block; its last byte is a NUL
  PackedRoot root;
  PackedList<PackedRule> landlock;
  PackedText landlock_canary;
  PackedList<sock_filter> filter;
  PackedList<sock_filter> unserved_filter;
  uint64_t call;  // the offset of the CallBlock, which takes the rest; `size` if there is none
};

// True if every offset, list and string lies inside the block. `capacity` is the size of its memory.
bool ValidPlanBlock(const PlanBlock* block, uint64_t capacity);

// What is in a valid block.
inline const char* At(const PlanBlock& block, uint64_t offset) {
  return reinterpret_cast<const char*>(&block) + offset;
}
template <class Record>
std::span<const Record> At(const PlanBlock& block, const PackedList<Record>& list) {
  return {reinterpret_cast<const Record*>(At(block, list.offset)), list.count};
}

}  // namespace coffer::isolation
