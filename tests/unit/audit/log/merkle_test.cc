// SPDX-License-Identifier: Apache-2.0
//
// The tree against RFC 9162's own recursive definition, for every size and every leaf, however the batches are cut.
#include "audit/log/merkle.h"

#include <gtest/gtest.h>

namespace coffer::audit {
namespace {

std::string Line(uint64_t n) { return "{\"seq\":" + std::to_string(n) + "}"; }

std::vector<Hash> Leaves(uint64_t count) {
  std::vector<Hash> leaves;
  for (uint64_t i = 0; i < count; ++i) {
    leaves.push_back(LeafHash(Line(i)));
  }
  return leaves;
}

size_t Split(size_t size) {  // the largest power of two below it
  size_t half = 1;
  while (half * 2 < size) {
    half *= 2;
  }
  return half;
}

// 2.1.1
Hash Root(std::span<const Hash> leaves) {
  if (leaves.empty()) {
    return Frontier().Root();
  }
  if (leaves.size() == 1) {
    return leaves[0];
  }
  const size_t k = Split(leaves.size());
  return NodeHash(Root(leaves.first(k)), Root(leaves.subspan(k)));
}

// 2.1.3.1
std::vector<Hash> Path(size_t m, std::span<const Hash> leaves) {
  if (leaves.size() == 1) {
    return {};
  }
  const size_t k = Split(leaves.size());
  std::vector<Hash> path = m < k ? Path(m, leaves.first(k)) : Path(m - k, leaves.subspan(k));
  path.push_back(m < k ? Root(leaves.subspan(k)) : Root(leaves.first(k)));
  return path;
}

TEST(MerkleTest, KnownAnswers) {
  // Of nothing, and of the empty leaf: the first values in the test data of Certificate Transparency.
  EXPECT_EQ(HexOf(Frontier().Root()),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(HexOf(LeafHash("")),
            "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d");
  // The eight inputs of the same, whose root is published there.
  const std::vector<std::string> inputs = {
      "",
      std::string(1, '\0'),
      "\x10",
      "\x20\x21",
      "\x30\x31",
      "\x40\x41\x42\x43",
      "\x50\x51\x52\x53\x54\x55\x56\x57",
      "\x60\x61\x62\x63\x64\x65\x66\x67\x68\x69\x6a\x6b\x6c\x6d\x6e\x6f"};
  Frontier frontier;
  for (const std::string& input : inputs) {
    frontier.Append(LeafHash(input));
  }
  EXPECT_EQ(HexOf(frontier.Root()),
            "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328");
}

TEST(MerkleTest, FrontierIsTheRecursiveRoot) {
  const std::vector<Hash> leaves = Leaves(130);
  Frontier frontier;
  for (size_t size = 0; size <= leaves.size(); ++size) {
    EXPECT_EQ(frontier.Root(), Root(std::span(leaves).first(size))) << size;
    EXPECT_EQ(frontier.size(), size);
    if (size < leaves.size()) {
      frontier.Append(leaves[size]);
    }
  }
}

TEST(MerkleTest, ABatchProvesItsLeavesWhateverWasBefore) {
  const std::vector<Hash> leaves = Leaves(36);
  for (size_t before = 0; before < leaves.size(); ++before) {
    Frontier frontier;
    for (size_t i = 0; i < before; ++i) {
      frontier.Append(leaves[i]);
    }
    for (size_t size = before + 1; size <= leaves.size(); ++size) {
      const auto all = std::span(leaves).first(size);
      const BatchTree tree(frontier, all.subspan(before));
      ASSERT_EQ(tree.size(), size);
      ASSERT_EQ(tree.root(), Root(all)) << before << " " << size;
      for (size_t index = before; index < size; ++index) {
        const std::vector<Hash> proof = tree.Proof(index);
        ASSERT_EQ(proof, Path(index, all)) << before << " " << size << " " << index;
        ASSERT_TRUE(VerifyInclusion(index, size, leaves[index], proof, tree.root()));
      }
    }
  }
}

TEST(MerkleTest, NothingElseIsProven) {
  const std::vector<Hash> leaves = Leaves(21);
  const BatchTree tree(Frontier(), leaves);
  for (uint64_t index = 0; index < leaves.size(); ++index) {
    std::vector<Hash> proof = tree.Proof(index);
    const auto holds = [&](uint64_t at, uint64_t size, const Hash& leaf) {
      return VerifyInclusion(at, size, leaf, proof, tree.root());
    };
    ASSERT_TRUE(holds(index, 21, leaves[index]));
    EXPECT_FALSE(holds(index, 21, leaves[(index + 1) % 21]));
    EXPECT_FALSE(holds(21, 21, leaves[index]));
    EXPECT_FALSE(holds(index, 0, leaves[index]));
    for (uint64_t other = 0; other < 21; ++other) {
      EXPECT_EQ(holds(other, 21, leaves[index]), other == index);
    }
    for (size_t part = 0; part < proof.size(); ++part) {
      proof[part][31] ^= 1;
      EXPECT_FALSE(holds(index, 21, leaves[index]));
      proof[part][31] ^= 1;
    }
    proof.push_back(leaves[0]);
    EXPECT_FALSE(holds(index, 21, leaves[index]));
    proof.pop_back();
    proof.pop_back();
    EXPECT_FALSE(holds(index, 21, leaves[index]));
  }
}

}  // namespace
}  // namespace coffer::audit
