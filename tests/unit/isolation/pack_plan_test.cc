// SPDX-License-Identifier: Apache-2.0
//
// The plan as init reads it is the plan as the supervisor made it, and nothing of a damaged block is believed.
#include "isolation/pack_plan.h"

#include <errno.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <functional>
#include <string>

#include "isolation/child/plan_block.h"
#include "isolation/child/report.h"

namespace coffer::isolation {
namespace {

constexpr sock_filter kAllow = {0x06, 0, 0, 0x7fff0000};

BoundaryPlan SomePlan() {
  BoundaryPlan plan;
  RootPart& root = plan.call_root;
  root.dirs = {"/etc", "/etc/ssl"};
  root.tmpfs = {{"/over", 4096, 7, 0700, true}};
  root.files = {{"/etc/a", std::string("x\0y", 3), 0444}, {"/etc/b", "", 0400}};
  root.links = {{"/bin", "usr/bin"}};
  BindMount bind;
  bind.host = "/usr";
  bind.at = "/usr";
  bind.directory = bind.executable = true;
  bind.expected_ino = 77;
  root.binds.push_back(bind);
  bind.host = "/home/u/p";
  bind.at = "/p";
  bind.writable = bind.supervised = true;
  bind.overlay_upper = "/over/u";
  bind.overlay_work = "/over/w";
  root.binds.push_back(bind);
  root.hidden = {"/usr/src"};
  plan.landlock_abi = 5;
  plan.landlock_canary = "/.coffer/canary";
  plan.landlock = {{"/usr", landlock::kRead}, {"/gone", landlock::kExecute, false, 9}};
  plan.own_filter = {kAllow, kAllow};
  plan.filter = plan.own_filter;
  return plan;
}

Call SomeCall() {
  Call call;
  call.program = "/bin/sh";
  call.argv = {"sh", "-c", "true"};
  call.env = {"A=b"};
  return call;
}

class PackPlan : public ::testing::Test {
 protected:
  PackPlan() {
    Result<std::string> packed = PackCallPlan(SomePlan(), SomeCall());
    EXPECT_TRUE(packed.ok());
    bytes_ = std::move(packed).value();
  }
  PlanBlock& block() { return *reinterpret_cast<PlanBlock*>(bytes_.data()); }
  bool Valid() { return ValidPlanBlock(&block(), bytes_.size()); }
  std::string Text(PackedText at) { return At(block(), at); }

  std::string bytes_;
};

TEST_F(PackPlan, ARootArrivesAsItWasMade) {
  ASSERT_TRUE(Valid());
  const PackedRoot& root = block().root;
  ASSERT_EQ(root.dirs.count, 2U);
  EXPECT_EQ(Text(At(block(), root.dirs)[1]), "/etc/ssl");
  ASSERT_EQ(root.tmpfs.count, 1U);
  const PackedTmpfs& place = At(block(), root.tmpfs)[0];
  EXPECT_TRUE(Text(place.at) == "/over" && place.bytes == 4096 && place.inodes == 7 &&
              place.mode == 0700 && place.executable == 1);
  ASSERT_EQ(root.files.count, 2U);
  const PackedFile& file = At(block(), root.files)[0];
  EXPECT_EQ(Text(file.at), "/etc/a");
  EXPECT_EQ(std::string(At(block(), file.content), file.size), std::string("x\0y", 3));
  EXPECT_EQ(At(block(), root.files)[1].size, 0U);
  EXPECT_EQ(Text(At(block(), root.links)[0].target), "usr/bin");
  ASSERT_EQ(root.binds.count, 2U);
  const PackedBind& usr = At(block(), root.binds)[0];
  EXPECT_TRUE(Text(usr.host) == "/usr" && usr.directory == 1 && usr.writable == 0 &&
              usr.executable == 1 && usr.supervised == 0 && usr.expected_ino == 77 &&
              Text(usr.overlay_upper).empty());
  const PackedBind& other = At(block(), root.binds)[1];
  EXPECT_TRUE(Text(other.at) == "/p" && other.writable == 1 && other.supervised == 1 &&
              Text(other.overlay_upper) == "/over/u" && Text(other.overlay_work) == "/over/w");
  EXPECT_EQ(Text(At(block(), root.hidden)[0]), "/usr/src");
  EXPECT_EQ(Text(root.overlays), "");
}

TEST_F(PackPlan, RulesFilterAndCallArriveAsTheyWereMade) {
  ASSERT_TRUE(Valid());
  EXPECT_EQ(block().landlock_abi, 5);
  EXPECT_EQ(Text(block().landlock_canary), "/.coffer/canary");
  ASSERT_EQ(block().landlock.count, 2U);
  const PackedRule& rule = At(block(), block().landlock)[1];
  EXPECT_TRUE(Text(rule.path) == "/gone" && rule.rights == landlock::kExecute &&
              rule.required == 0 && rule.fd == 9);
  ASSERT_EQ(block().filter.count, 2U);
  EXPECT_EQ(At(block(), block().filter)[1].k, kAllow.k);
  EXPECT_EQ(block().unserved_filter.count, 0U);
  const auto* call = reinterpret_cast<const CallBlock*>(At(block(), block().call));
  ASSERT_TRUE(ValidCallBlock(call, block().size - block().call));
  EXPECT_EQ(call->argc, 3U);
  EXPECT_STREQ(reinterpret_cast<const char*>(call + 1) + call->program, "/bin/sh");
}

TEST_F(PackPlan, AFirstHalfHasARootAndNoCall) {
  bytes_ = PackRoot(SomePlan().call_root);
  ASSERT_TRUE(Valid());
  EXPECT_EQ(Text(At(block(), block().root.dirs)[0]), "/etc");
  EXPECT_EQ(block().call, block().size);
  bytes_ = PackRoot({});
  EXPECT_TRUE(Valid());
}

TEST_F(PackPlan, DamagedBlocksAreRefused) {
  const std::pair<const char*, std::function<void(PlanBlock&)>> cases[] = {
      {"magic", [](PlanBlock& b) { b.magic ^= 1; }},
      {"size beyond its memory", [](PlanBlock& b) { ++b.size; }},
      {"size of nothing", [](PlanBlock& b) { b.size = sizeof(PlanBlock); }},
      {"list beyond the end", [](PlanBlock& b) { b.root.dirs.count = b.size; }},
      {"list that wraps around", [](PlanBlock& b) { b.root.binds.count = ~0ULL / 8; }},
      {"list from beyond the end", [](PlanBlock& b) { b.landlock.offset = b.size + 8; }},
      {"crooked list", [](PlanBlock& b) { b.root.links.offset += 1; }},
      {"filter beyond the end", [](PlanBlock& b) { b.filter.count = b.size; }},
      {"second filter", [](PlanBlock& b) { b.unserved_filter.offset = ~7ULL; }},
      {"canary", [](PlanBlock& b) { b.landlock_canary = b.size; }},
      {"overlays", [](PlanBlock& b) { b.root.overlays = ~0ULL; }},
      {"call beyond the end", [](PlanBlock& b) { b.call = b.size + 8; }},
      {"crooked call", [](PlanBlock& b) { b.call += 1; }},
      {"text of a directory",
       [](PlanBlock& b) { const_cast<PackedText&>(At(b, b.root.dirs)[0]) = b.size; }},
      {"content of a file",
       [](PlanBlock& b) { const_cast<PackedFile&>(At(b, b.root.files)[0]).size = b.size; }},
      {"content that wraps around",
       [](PlanBlock& b) { const_cast<PackedFile&>(At(b, b.root.files)[0]).content = ~0ULL; }},
      {"host of a mount",
       [](PlanBlock& b) { const_cast<PackedBind&>(At(b, b.root.binds)[1]).host = b.size; }},
      {"path of a rule",
       [](PlanBlock& b) { const_cast<PackedRule&>(At(b, b.landlock)[0]).path = b.size; }},
  };
  for (const auto& [what, damage] : cases) {
    const std::string whole = bytes_;
    ASSERT_TRUE(Valid());
    damage(block());
    EXPECT_FALSE(Valid()) << what;
    bytes_ = whole;
  }
  bytes_.back() = 'x';
  EXPECT_FALSE(Valid()) << "no end of the last string";
  for (size_t size = 0; size < sizeof(PlanBlock); ++size) {
    EXPECT_FALSE(ValidPlanBlock(&block(), size));
  }
}

TEST_F(PackPlan, WhatIsSealedCanBeReadAndNotChanged) {
  Result<UniqueFd> file = SealInMemory(bytes_);
  ASSERT_TRUE(file.ok()) << file.error().message;
  std::string read(bytes_.size() + 1, '\0');
  EXPECT_EQ(::pread(file->get(), read.data(), read.size(), 0), static_cast<ssize_t>(bytes_.size()));
  read.resize(bytes_.size());
  EXPECT_EQ(read, bytes_);
  EXPECT_EQ(::pwrite(file->get(), "x", 1, 0), -1);
  EXPECT_EQ(errno, EPERM);
  EXPECT_EQ(::ftruncate(file->get(), 0), -1);
  EXPECT_EQ(::ftruncate(file->get(), 1 << 20), -1);
  EXPECT_EQ(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file->get(), 0), MAP_FAILED);
  // The control: an unsealed one takes all of these.
  const int plain = ::memfd_create("plain", MFD_CLOEXEC);
  ASSERT_GE(plain, 0);
  EXPECT_EQ(::pwrite(plain, "x", 1, 0), 1);
  EXPECT_EQ(::ftruncate(plain, 1 << 20), 0);
  ::close(plain);
}

}  // namespace
}  // namespace coffer::isolation
