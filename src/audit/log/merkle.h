// SPDX-License-Identifier: Apache-2.0
//
// The Merkle tree of RFC 9162, 2.1: leaf = SHA-256(0x00 line), node = SHA-256(0x01 left right).
//
// A log only ever grows at its right edge, so all that must be kept of what is already there is its Frontier: the
// largest complete subtrees, at most 64 hashes. From it and the leaves of a batch follow the new root, the proofs of
// those leaves, and the next frontier. Nothing here holds the whole tree, so memory does not grow with the log.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "audit/log/encoding.h"

namespace coffer::audit {

Hash Sha256Of(std::string_view bytes);
Hash LeafHash(std::string_view line);
Hash NodeHash(const Hash& left, const Hash& right);

class Frontier {
 public:
  Frontier() = default;
  // `nodes` from left (largest) to right, one for each bit of `size`; what does not fit is the caller's fault.
  Frontier(uint64_t size, std::vector<Hash> nodes) : size_(size), nodes_(std::move(nodes)) {}

  void Append(const Hash& leaf);
  uint64_t size() const { return size_; }
  const std::vector<Hash>& nodes() const { return nodes_; }
  Hash Root() const;  // of nothing: SHA-256 of nothing

 private:
  uint64_t size_ = 0;
  std::vector<Hash> nodes_;
};

// A frontier and the leaves (at least one) that were appended to it, as one tree.
class BatchTree {
 public:
  BatchTree(const Frontier& before, std::span<const Hash> leaves);

  uint64_t size() const { return size_; }
  const Hash& root() const { return edge_.back(); }
  // Of one of the batch's leaves, in the tree of size(): from the leaf up.
  std::vector<Hash> Proof(uint64_t index) const;

 private:
  const Hash& Node(size_t level, uint64_t index) const;

  struct NodeRow {
    uint64_t first = 0;       // index of nodes[0] in its level
    std::vector<Hash> nodes;  // complete subtrees
  };
  uint64_t size_ = 0;
  std::vector<NodeRow> levels_;
  std::vector<Hash> edge_;  // the last node of each level, complete or not; the last is the root
};

// RFC 9162, 2.1.3.2.
bool VerifyInclusion(uint64_t index, uint64_t size, const Hash& leaf, std::span<const Hash> proof,
                     const Hash& root);

}  // namespace coffer::audit
