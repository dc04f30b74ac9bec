// SPDX-License-Identifier: Apache-2.0
#include "egress/watchdog.h"

#include <gtest/gtest.h>

#include <boost/asio/steady_timer.hpp>

namespace coffer::egress {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

class WatchdogTest : public ::testing::Test {
 protected:
  // Runs the loop until a watchdog expired, or for `time`.
  void RunFor(milliseconds time) {
    net::asio::steady_timer end(net::ContextOf(*loop_), time);
    end.async_wait([this](net::error_code) { loop_->Stop(); });
    loop_->Run();
  }

  const std::unique_ptr<net::Loop> loop_ = net::MakeLoop();
  const net::IoExecutor executor_ = net::ContextOf(*loop_).get_executor();
  int ends_ = 0;
  Watchdog watchdog_{executor_, [this] { ++ends_; }};
};

TEST_F(WatchdogTest, ExpiresOnce) {
  watchdog_.Within(milliseconds(5));
  RunFor(milliseconds(200));
  EXPECT_TRUE(watchdog_.expired());
  EXPECT_EQ(ends_, 1);
}

TEST_F(WatchdogTest, ALongerTimeReplacesAShorterOne) {
  watchdog_.Within(milliseconds(5));
  watchdog_.Within(hours(1));
  RunFor(milliseconds(200));
  EXPECT_FALSE(watchdog_.expired());
}

TEST_F(WatchdogTest, AShorterTimeReplacesALongerOne) {
  watchdog_.Within(hours(1));
  watchdog_.Within(milliseconds(5));
  RunFor(milliseconds(200));
  EXPECT_EQ(ends_, 1);
}

// The first timer is over, and the time that was set meanwhile is waited for too.
TEST_F(WatchdogTest, TheTimeThatWasSetLastIsKept) {
  watchdog_.Within(milliseconds(5));
  watchdog_.Within(milliseconds(60));
  RunFor(milliseconds(1000));
  EXPECT_EQ(ends_, 1);
}

TEST_F(WatchdogTest, StoppedItDoesNotExpireAndCanBeSetAgain) {
  watchdog_.Within(milliseconds(5));
  watchdog_.Stop();
  RunFor(milliseconds(100));
  EXPECT_FALSE(watchdog_.expired());
  watchdog_.Within(milliseconds(5));
  RunFor(milliseconds(1000));
  EXPECT_EQ(ends_, 1);
}

TEST_F(WatchdogTest, ATimeThatIsOverExpiresAtOnce) {
  watchdog_.Until(BootTime() - milliseconds(5));
  RunFor(milliseconds(200));
  EXPECT_EQ(ends_, 1);
}

TEST_F(WatchdogTest, DroppedItDoesNothing) {
  int ends = 0;
  {
    Watchdog dropped(executor_, [&ends] { ++ends; });
    dropped.Within(milliseconds(5));
  }
  RunFor(milliseconds(100));
  EXPECT_EQ(ends, 0);
}

}  // namespace
}  // namespace coffer::egress
