// SPDX-License-Identifier: Apache-2.0
#include "isolation/process_tree.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include "base/sys.h"

namespace coffer::isolation {
namespace {

constexpr int kGenerations = 4;

// Each generation tells its number, leaves the session of the one before, and has a child that waits as well.
[[noreturn]] void Multiply(int told) {
  for (int generation = 1; generation == 1 || ::fork() == 0; ++generation) {
    ::setsid();
    const pid_t self = ::getpid();
    (void)!::write(told, &self, sizeof(self));
    if (generation == kGenerations) {
      break;
    }
  }
  for (;;) {
    ::pause();
  }
}

// In a process of its own, whose descendants are all that it ends.
TEST(EndDescendants, EndsEveryGenerationAndNoOther) {
  const pid_t stranger = ::fork();
  if (stranger == 0) {
    ::pause();
    ::_exit(0);
  }
  const pid_t supervisor = ::fork();
  if (supervisor == 0) {
    Result<sys::Pipe> told = sys::MakePipe();
    if (!told.ok() || !AdoptOrphans().ok()) {
      ::_exit(1);
    }
    if (::fork() == 0) {
      Multiply(told->write_end.get());
    }
    std::array<pid_t, kGenerations> pids{};
    for (pid_t& pid : pids) {
      if (::read(told->read_end.get(), &pid, sizeof(pid)) != sizeof(pid) || ::kill(pid, 0) != 0) {
        ::_exit(2);
      }
    }
    ::kill(pids[1], SIGKILL);  // its child becomes ours
    if (!EndDescendants().ok()) {
      ::_exit(3);
    }
    for (const pid_t pid : pids) {
      if (::kill(pid, 0) == 0) {
        ::_exit(4);
      }
    }
    ::_exit(::kill(stranger, 0) == 0 ? 0 : 5);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(supervisor, &status, 0), supervisor);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ(::waitpid(stranger, &status, WNOHANG), 0) << "it was ended too";
  ::kill(stranger, SIGKILL);
  ::waitpid(stranger, &status, 0);
}

}  // namespace
}  // namespace coffer::isolation
