// SPDX-License-Identifier: Apache-2.0
#include "cli/remote_bridge.h"

#include <gtest/gtest.h>

namespace coffer::cli {
namespace {

using std::chrono::milliseconds;

// A server that ends its stream again and again, with `retry: 0`.
TEST(RemoteBridge, AStreamThatSaysNothingIsAskedForLessAndLess) {
  milliseconds pause{0};
  milliseconds all{0};
  int asked = 0;
  while (all < std::chrono::hours(1)) {
    const milliseconds next = NextPause(pause, milliseconds(0), false);
    EXPECT_GE(next, pause);
    EXPECT_LE(next, std::chrono::minutes(1));
    pause = next;
    all += pause;
    ++asked;
  }
  EXPECT_LE(asked, 80) << "in an hour";
  EXPECT_GE(asked, 60) << "it is still asked every minute";
  EXPECT_EQ(NextPause(pause, milliseconds(0), true), milliseconds(200)) << "it has said something";
}

TEST(RemoteBridge, AServerSaysHowLongToWait) {
  EXPECT_EQ(NextPause(milliseconds(0), milliseconds(3000), false), milliseconds(3000));
  EXPECT_EQ(NextPause(milliseconds(60'000), milliseconds(3000), true), milliseconds(3000));
  EXPECT_EQ(NextPause(milliseconds(0), std::nullopt, true), milliseconds(1000));
  EXPECT_EQ(NextPause(milliseconds(0), std::chrono::hours(9), true), std::chrono::minutes(1));
}

}  // namespace
}  // namespace coffer::cli
