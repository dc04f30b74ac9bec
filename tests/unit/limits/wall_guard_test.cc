// SPDX-License-Identifier: Apache-2.0
#include "limits/wall_guard.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/unique_fd.h"

namespace coffer::limits {
namespace {

class WallGuardTest : public ::testing::Test {
 protected:
  WallGuardTest() {
    child_ = ::fork();
    if (child_ == 0) {
      ::usleep(300000);
      ::_exit(7);
    }
    pidfd_ = UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, child_, 0)));
  }
  // Waits without any loop that looks at the time, as a supervisor that is stuck.
  int StatusOfChild() const {
    int status = 0;
    while (::waitpid(child_, &status, 0) < 0) {
    }
    return status;
  }

  pid_t child_ = -1;
  UniqueFd pidfd_;
};

TEST_F(WallGuardTest, KillsWhileTheCallerIsStuck) {
  const Result<WallGuard> guard = WallGuard::Start(pidfd_.get(), std::chrono::milliseconds(20));
  ASSERT_TRUE(guard.ok());
  const int status = StatusOfChild();
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
}

TEST_F(WallGuardTest, ControlWithoutOneItGoesOn) {
  const int status = StatusOfChild();
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7) << status;
}

TEST_F(WallGuardTest, AGuardThatIsGoneKillsNothing) {
  {
    const Result<WallGuard> guard = WallGuard::Start(pidfd_.get(), std::chrono::milliseconds(100));
  }
  const int status = StatusOfChild();
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7) << status;
}

}  // namespace
}  // namespace coffer::limits
