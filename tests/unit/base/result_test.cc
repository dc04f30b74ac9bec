// SPDX-License-Identifier: Apache-2.0
#include "base/result.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "base/unique_fd.h"

namespace coffer {
namespace {

Result<int> Half(int number) {
  if (number % 2 != 0) {
    return Refused("test.odd", "odd", "give an even number");
  }
  return number / 2;
}

Result<int> Quarter(int number, int* steps) {
  TRY_ASSIGN(const int half, Half(number));
  ++*steps;
  TRY_ASSIGN(const int quarter, Half(half));
  ++*steps;
  return quarter;
}

Status Check(int number, bool* went_on) {
  TRY(Half(number));
  *went_on = true;
  return {};
}

TEST(Result, TryAssignStopsAtTheFirstError) {
  int steps = 0;
  EXPECT_EQ(*Quarter(8, &steps), 2);
  EXPECT_EQ(steps, 2);
  steps = 0;
  const Result<int> failed = Quarter(6, &steps);
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(steps, 1);
  EXPECT_EQ(failed.error().code, "test.odd");
  EXPECT_EQ(failed.error().hint, "give an even number");
  EXPECT_EQ(failed.error().kind, ErrorKind::kRefused);
}

TEST(Result, TryPassesTheErrorOn) {
  bool went_on = false;
  EXPECT_FALSE(Check(1, &went_on).ok());
  EXPECT_FALSE(went_on);
  EXPECT_TRUE(Check(2, &went_on).ok());
  EXPECT_TRUE(went_on);
}

TEST(Result, MovesValuesThatCannotBeCopied) {
  const auto make = []() -> Result<std::unique_ptr<std::string>> {
    return std::make_unique<std::string>("x");
  };
  const auto take = [&]() -> Result<std::unique_ptr<std::string>> {
    TRY_ASSIGN(auto owned, make());
    return owned;
  };
  EXPECT_EQ(**take(), "x");
}

bool IsOpen(int fd) { return ::fcntl(fd, F_GETFD) >= 0; }

TEST(UniqueFd, ClosesOnce) {
  const int number = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ASSERT_GE(number, 0);
  {
    UniqueFd first(number);
    UniqueFd second(std::move(first));
    EXPECT_FALSE(first.valid());  // NOLINT(bugprone-use-after-move): this is what is tested
    EXPECT_TRUE(IsOpen(number));
    UniqueFd& self = second;
    second = std::move(self);
    EXPECT_TRUE(IsOpen(number));
  }
  EXPECT_FALSE(IsOpen(number));
}

TEST(UniqueFd, ReleaseGivesItAway) {
  int number = -1;
  {
    UniqueFd fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    number = fd.Release();
  }
  ASSERT_TRUE(IsOpen(number));
  UniqueFd(number).Reset();
  EXPECT_FALSE(IsOpen(number));
}

}  // namespace
}  // namespace coffer
