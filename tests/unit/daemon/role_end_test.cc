// SPDX-License-Identifier: Apache-2.0
#include "daemon/role_end.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/unique_fd.h"

namespace coffer::daemon {
namespace {

using std::chrono::milliseconds;

TEST(RoleEnd, IsItsStatusOrNothing) {
  const pid_t ends = ::fork();
  if (ends == 0) {
    ::_exit(7);
  }
  const std::optional<int> status = WaitForRoleEnd(ends, milliseconds(10'000));
  ASSERT_TRUE(status);
  EXPECT_EQ(WEXITSTATUS(*status), 7);
  const pid_t stays = ::fork();
  if (stays == 0) {
    ::pause();
    ::_exit(0);
  }
  EXPECT_FALSE(WaitForRoleEnd(stays, milliseconds(50)));
  ::kill(stays, SIGKILL);
  EXPECT_TRUE(WaitForRoleEnd(stays, milliseconds(10'000)));
}

// The kernel keeps the end of a traced process for its tracer, and tells a pidfd before.
TEST(RoleEnd, IsSeenBehindATracer) {
  int go[2] = {-1, -1};
  ASSERT_EQ(::pipe(go), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    char byte = 0;
    ::close(go[1]);
    ::_exit(::read(go[0], &byte, 1) == 1 ? 7 : 8);
  }
  int traced[2] = {-1, -1};
  ASSERT_EQ(::pipe(traced), 0);
  const pid_t tracer = ::fork();
  if (tracer == 0) {
    const bool seized = ::ptrace(PTRACE_SEIZE, child, 0, 0) == 0;
    (void)!::write(traced[1], seized ? "y" : "n", 1);
    // Late: that is what a busy tracer is.
    const timespec late{0, 300'000'000};
    ::nanosleep(&late, nullptr);
    int status = 0;
    ::waitpid(child, &status, __WALL);
    ::_exit(0);
  }
  char answer = 0;
  ASSERT_EQ(::read(traced[0], &answer, 1), 1);
  if (answer != 'y') {
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    ::waitpid(tracer, nullptr, 0);
    GTEST_SKIP() << "this host lets no process trace";
  }
  const UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
  ASSERT_EQ(::write(go[1], "g", 1), 1);
  pollfd ended{pidfd.get(), POLLIN, 0};
  ASSERT_EQ(::poll(&ended, 1, 10'000), 1);
  EXPECT_EQ(::waitpid(child, nullptr, WNOHANG), 0)
      << "the control: it has ended, and is not ours yet";
  const std::optional<int> status = WaitForRoleEnd(child, milliseconds(20'000));
  ASSERT_TRUE(status) << "it was taken for one that still runs";
  EXPECT_EQ(WEXITSTATUS(*status), 7);
  ::waitpid(tracer, nullptr, 0);
}

}  // namespace
}  // namespace coffer::daemon
