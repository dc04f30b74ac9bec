// SPDX-License-Identifier: Apache-2.0
#include "isolation/child/helper.h"

#include <errno.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace coffer::isolation {
namespace {

class HelperTest : public testing::Test {
 protected:
  // A helper that makes nothing; `report_` is as the supervisor leaves it.
  void Start() {
    helper_.report = &report_;
    helper_.pid = ::fork();
    if (helper_.pid == 0) {
      for (;;) {
        ::pause();
      }
    }
    ASSERT_GT(helper_.pid, 0);
  }
  void Kill() { ::kill(static_cast<pid_t>(helper_.pid), SIGKILL); }

  ChildReport report_{};
  Helper helper_;
};

// Otherwise init would wait for ever, and the supervisor with it.
TEST_F(HelperTest, ADeadOneThatMadeNothingIsAnError) {
  Start();
  EXPECT_FALSE(NetworkMade(report_)) << "the control: it lives, and has made nothing yet";
  Kill();
  EXPECT_EQ(EnterNetwork(helper_), -ECHILD);
  EXPECT_EQ(AwaitHelper(helper_), -ECHILD) << "it has not detached the old root either";
  EXPECT_EQ(::waitpid(static_cast<pid_t>(helper_.pid), nullptr, 0), -1) << "it was reaped";
}

TEST_F(HelperTest, WhatItSaysCountsAlsoIfItIsDead) {
  Start();
  report_.network = -ENOSPC;
  report_.network_made = 1;
  Kill();
  EXPECT_EQ(EnterNetwork(helper_), -ENOSPC);
  helper_.detached = 0;
  EXPECT_EQ(AwaitHelper(helper_), 0);
}

// A real one, which makes a network or says why it cannot. It must not be told that the old root was left: there is none here
// but the host's. So it waits, and is killed.
TEST_F(HelperTest, TellsWhatItMade) {
  helper_.report = &report_;
  report_.network_made = 0;
  report_.network = INT32_MIN;
  ASSERT_EQ(StartHelper(&helper_), 0);
  while (!NetworkMade(report_)) {
  }
  Kill();
  EXPECT_EQ(AwaitHelper(helper_), -ECHILD) << "the old root is not gone";
  EXPECT_NE(report_.network, INT32_MIN);
  for (const int fd : {report_.network, report_.network_socket}) {
    if (fd >= 0) {
      ::close(fd);
    }
  }
}

}  // namespace
}  // namespace coffer::isolation
