// SPDX-License-Identifier: Apache-2.0
//
// A session without a file system of its own: what its files hold is taken from what the next call may add.
#include "call/workspace_room.h"

#include <gtest/gtest.h>

#include "limits/volume.h"
#include "tests/support/temp_dir.h"

namespace coffer::call {
namespace {

constexpr uint64_t kSessionBytes = 4ULL << 20;
constexpr uint64_t kSessionFiles = limits::VolumeFiles(kSessionBytes);

policy::Limits NarrowedLimits(const test::TempDir& dir, uint64_t bytes) {
  store::Session session;
  session.bytes = bytes;
  policy::Limits limits;
  limits.disk = limits.tmp = 100ULL << 20;
  limits.inodes = 10'000;
  EXPECT_TRUE(NarrowToWorkspace(dir.path(), session, limits).ok());
  return limits;
}

TEST(WorkspaceRoom, FilesOfEarlierCallsAreTakenFromThoseOfTheNext) {
  const test::TempDir dir;
  const uint64_t empty = NarrowedLimits(dir, kSessionBytes).inodes;
  EXPECT_LE(empty, kSessionFiles);
  EXPECT_GE(empty, kSessionFiles - 1) << "at most the directory itself is counted";
  uint64_t made = 0;
  for (const uint64_t more : {300, 300, 300}) {
    for (const uint64_t until = made + more; made < until; ++made) {
      dir.Write("f" + std::to_string(made), "");
    }
    EXPECT_EQ(NarrowedLimits(dir, kSessionBytes).inodes, empty - made);
  }
  for (; made < kSessionFiles + 10; ++made) {
    dir.Write("f" + std::to_string(made), "");
  }
  const uint64_t least = NarrowedLimits(dir, kSessionBytes).inodes;
  EXPECT_GT(least, 0U) << "so that a call can remove some";
  EXPECT_LE(least, 16U);
  EXPECT_EQ(NarrowedLimits(dir, 0).inodes, 10'000U) << "the control: a session without a size";
}

TEST(WorkspaceRoom, AndSoAreTheirBytes) {
  const test::TempDir dir;
  dir.Write("f", std::string(3ULL << 20, 'x'));
  const policy::Limits limits = NarrowedLimits(dir, kSessionBytes);
  EXPECT_LE(limits.disk, 1ULL << 20);
  EXPECT_EQ(limits.tmp, limits.disk);
  EXPECT_EQ(NarrowedLimits(dir, 0).disk, 100ULL << 20) << "the control";
}

}  // namespace
}  // namespace coffer::call
