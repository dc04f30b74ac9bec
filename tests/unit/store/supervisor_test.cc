// SPDX-License-Identifier: Apache-2.0
#include "store/supervisor.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/store/store_fixture.h"

namespace coffer::store {
namespace {

TEST(SupervisorTest, ThisProcessIsAliveAndAnotherWithItsPidIsNot) {
  const Supervisor me = Must(ThisProcess());
  EXPECT_EQ(me.pid, ::getpid());
  EXPECT_GT(me.start_time, 0u);
  EXPECT_EQ(me.boot_id.size(), 36u);
  EXPECT_TRUE(Must(IsAlive(me)));
  Supervisor reused = me;
  reused.start_time += 1;
  EXPECT_FALSE(Must(IsAlive(reused)));
  Supervisor before_the_restart = me;
  before_the_restart.boot_id = "00000000-0000-0000-0000-000000000000";
  EXPECT_FALSE(Must(IsAlive(before_the_restart)));
}

TEST(SupervisorTest, ANameCannotPretendToBeAStartTime) {
  ASSERT_EQ(::prctl(PR_SET_NAME, ") Z 1 2 3 4 5", 0, 0, 0), 0);
  const Supervisor me = Must(ThisProcess());
  EXPECT_TRUE(Must(IsAlive(me)));
  ::prctl(PR_SET_NAME, "unit_tests", 0, 0, 0);
  EXPECT_EQ(Must(ThisProcess()), me);
}

TEST(SupervisorTest, AZombieIsGone) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  const Supervisor other = Must(SupervisorOf(child));
  EXPECT_TRUE(Must(IsAlive(other)));
  ::kill(child, SIGKILL);
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  EXPECT_FALSE(Must(IsAlive(other))) << "dead and not reaped";
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_FALSE(Must(IsAlive(other)));
  EXPECT_FALSE(SupervisorOf(child).ok());
}

}  // namespace
}  // namespace coffer::store
