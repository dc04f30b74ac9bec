// SPDX-License-Identifier: Apache-2.0
#include "audit/log/merkle.h"

#include <algorithm>
#include <array>

#include "audit/log/merkle_sha256.h"

namespace coffer::audit {

Hash Sha256Of(std::string_view bytes) { return FastSha256({}, bytes); }

Hash LeafHash(std::string_view line) { return FastSha256({"\0", 1}, line); }

Hash NodeHash(const Hash& left, const Hash& right) {
  std::array<char, 65> bytes;
  bytes[0] = 1;
  std::copy(left.begin(), left.end(), bytes.begin() + 1);
  std::copy(right.begin(), right.end(), bytes.begin() + 33);
  return FastSha256({}, {bytes.data(), bytes.size()});
}

void Frontier::Append(const Hash& leaf) {
  Hash node = leaf;
  for (uint64_t rest = size_; (rest & 1) != 0; rest >>= 1) {
    node = NodeHash(nodes_.back(), node);
    nodes_.pop_back();
  }
  nodes_.push_back(node);
  ++size_;
}

Hash Frontier::Root() const {
  if (nodes_.empty()) {
    return Sha256Of({});
  }
  Hash root = nodes_.back();
  for (size_t i = nodes_.size() - 1; i-- > 0;) {
    root = NodeHash(nodes_[i], root);
  }
  return root;
}

// Level by level: first what the frontier has there (at most one node matters, the last complete one), then the new.
BatchTree::BatchTree(const Frontier& before, std::span<const Hash> leaves)
    : size_(before.size() + leaves.size()) {
  size_t unused =
      before.nodes().size();  // the frontier's nodes, from the right: the smallest is the lowest
  for (size_t level = 0; level == 0 || (size_ - 1) >> (level - 1) != 0; ++level) {
    NodeRow here;
    const bool old = level < 64 && (before.size() >> level & 1) != 0;
    here.first = (before.size() >> level) - (old ? 1 : 0);
    if (old) {
      here.nodes.push_back(before.nodes()[--unused]);
    }
    if (level == 0) {
      here.nodes.insert(here.nodes.end(), leaves.begin(), leaves.end());
    } else {
      const uint64_t begin = before.size() >> level;
      for (uint64_t index = begin; index < size_ >> level; ++index) {
        here.nodes.push_back(NodeHash(Node(level - 1, 2 * index), Node(level - 1, 2 * index + 1)));
      }
    }
    levels_.push_back(std::move(here));
    if (level == 0) {
      edge_.push_back(leaves.back());
    } else {
      const uint64_t below = (size_ - 1) >> (level - 1);
      edge_.push_back((below & 1) != 0 ? NodeHash(Node(level - 1, below - 1), edge_.back())
                                       : edge_.back());
    }
  }
}

const Hash& BatchTree::Node(size_t level, uint64_t index) const {
  const NodeRow& here = levels_[level];
  return here.nodes[index - here.first];
}

std::vector<Hash> BatchTree::Proof(uint64_t index) const {
  std::vector<Hash> proof;
  uint64_t last = size_ - 1;
  for (size_t level = 0; last != 0; ++level, index >>= 1, last >>= 1) {
    if ((index & 1) != 0) {
      proof.push_back(Node(level, index - 1));
    } else if (index < last) {
      proof.push_back(index + 1 == last ? edge_[level] : Node(level, index + 1));
    }
  }
  return proof;
}

bool VerifyInclusion(uint64_t index, uint64_t size, const Hash& leaf, std::span<const Hash> proof,
                     const Hash& root) {
  if (index >= size) {
    return false;
  }
  uint64_t last = size - 1;
  Hash node = leaf;
  for (const Hash& sibling : proof) {
    if (last == 0) {
      return false;
    }
    if ((index & 1) != 0 || index == last) {
      node = NodeHash(sibling, node);
      while ((index & 1) == 0 && index != 0) {
        index >>= 1;
        last >>= 1;
      }
    } else {
      node = NodeHash(node, sibling);
    }
    index >>= 1;
    last >>= 1;
  }
  return last == 0 && node == root;
}

}  // namespace coffer::audit
