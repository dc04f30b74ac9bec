// SPDX-License-Identifier: Apache-2.0
//
// Init without a supervisor. Its socket closes before the kernel sends anybody a signal, and in between init may have
// started the payload: then nobody else would end it where there is no pid namespace.
#include "isolation/child/init.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <string>

#include "isolation/pack_plan.h"
#include "tests/support/run.h"

namespace coffer::isolation {
namespace {

class InitTest : public ::testing::Test {
 protected:
  InitTest() {
    Call call;
    call.program = "/bin/sh";
    call.cwd = dir_.path();
    // One that its parent left, too.
    call.argv = {"sh", "-c",
                 "(sleep 0.3; echo lived >> mark) & sleep 0.3; echo lived >> mark; wait"};
    Result<std::string> packed = PackCallPlan(BoundaryPlan(), call);
    EXPECT_TRUE(packed.ok());
    plan_ = std::move(packed).value();
  }

  // What init does when its go is there; `heard`: and somebody still listens.
  [[noreturn]] void BeInit(bool heard, int output) {
    int ends[2] = {-1, -1};
    const int children = ::open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
    if (children < 0 || ::prctl(PR_SET_CHILD_SUBREAPER, 1) != 0 ||
        ::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) != 0 || ::send(ends[1], "S", 1, 0) != 1) {
      ::_exit(90);
    }
    const int control = ::fcntl(ends[0], F_DUPFD, 100);
    const int list = ::fcntl(children, F_DUPFD, 100);
    const int other = ::fcntl(ends[1], F_DUPFD, 100);
    ::close(ends[0]);
    ::close(ends[1]);
    if (!heard) {
      ::close(other);
    }
    if (::dup2(output, STDOUT_FILENO) < 0 || ::dup2(control, kControlFd) < 0 ||
        ::dup2(list, kExtraFd) < 0) {
      ::_exit(91);
    }
    ::close(control);
    BoundaryPlan plan;
    ChildContext context;
    context.plan = &plan;
    context.report = report_.get();
    RunInit(context, *reinterpret_cast<const PlanBlock*>(plan_.data()),
            {.ending = InitEnding::kKillChildren});
  }
  // Returns when init and everything it started are gone.
  int ExitOfInit(bool heard) {
    int output[2] = {-1, -1};
    EXPECT_EQ(::pipe2(output, O_CLOEXEC), 0);
    const pid_t init = ::fork();
    if (init == 0) {
      BeInit(heard, output[1]);
    }
    ::close(output[1]);
    int status = -1;
    EXPECT_EQ(::waitpid(init, &status, 0), init);
    char byte = 0;
    EXPECT_EQ(::read(output[0], &byte, 1), 0) << "nobody has its stdout any more";
    ::close(output[0]);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  test::TempDir dir_;
  std::unique_ptr<ChildReport> report_ = std::make_unique<ChildReport>();
  std::string plan_;
};

TEST_F(InitTest, WhatItStartedComesToItsEndIfSomebodyListens) {
  EXPECT_EQ(ExitOfInit(true), 0);
  EXPECT_EQ(test::ReadFile(dir_ / "mark").value_or(""), "lived\nlived\n");
}

TEST_F(InitTest, WhatItStartedEndsWithItIfNobodyListens) {
  EXPECT_EQ(ExitOfInit(false), 1);
  EXPECT_EQ(test::ReadFile(dir_ / "mark").value_or(""), "");
}

}  // namespace
}  // namespace coffer::isolation
