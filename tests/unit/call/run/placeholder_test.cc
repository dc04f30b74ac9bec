// SPDX-License-Identifier: Apache-2.0
#include "call/run/placeholder.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "tests/support/temp_dir.h"

namespace coffer::call {
namespace {

class PlaceholderTest : public ::testing::Test {
 protected:
  bool Exists() const { return ::faccessat(parent_.get(), "held", F_OK, AT_SYMLINK_NOFOLLOW) == 0; }

  const test::TempDir dir_;
  const UniqueFd parent_{::open(dir_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  const Placeholder::Kind kind_{true, ""};
};

TEST_F(PlaceholderTest, TheLastOneRemovesIt) {
  Result<Placeholder> first = Placeholder::Make(parent_.get(), "held", kind_);
  ASSERT_TRUE(first.ok() && first->made());
  Result<Placeholder> second = Placeholder::Make(parent_.get(), "held", kind_);
  ASSERT_TRUE(second.ok() && second->made());
  first->Remove();
  EXPECT_TRUE(Exists());
  second->Remove();
  EXPECT_FALSE(Exists());
}

// Calls of one project begin and end at any time. No call may take another one that begins or ends for a change of the project.
TEST_F(PlaceholderTest, CallsThatComeAndGoRefuseNoOther) {
  std::atomic<int> refused = 0;
  std::atomic<int> missing = 0;
  std::vector<std::thread> calls;
  for (int i = 0; i < 4; ++i) {
    calls.emplace_back([&] {
      for (int round = 0; round < 200; ++round) {
        const Result<Placeholder> made = Placeholder::Make(parent_.get(), "held", kind_);
        refused += made.ok() ? 0 : 1;
        missing += !made.ok() || (made->made() && Exists()) ? 0 : 1;
      }
    });
  }
  for (std::thread& call : calls) {
    call.join();
  }
  EXPECT_EQ(refused, 0);
  EXPECT_EQ(missing, 0) << "it is there as long as anybody holds it";
  EXPECT_FALSE(Exists());
}

// The control: something else of that name is refused, however long one waits.
TEST_F(PlaceholderTest, WhatIsNotOursIsRefused) {
  ASSERT_EQ(::mkdirat(parent_.get(), "held", 0755), 0);
  const Result<Placeholder> made = Placeholder::Make(parent_.get(), "held", kind_);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().code, "policy.project.changed");
  EXPECT_TRUE(Exists());
}

}  // namespace
}  // namespace coffer::call
