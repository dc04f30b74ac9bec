// SPDX-License-Identifier: Apache-2.0
//
// As the first process of a container the monitor is given every process that loses its parent. None of them is a role.
#include <gtest/gtest.h>
#include <signal.h>

#include "tests/daemon/daemon.h"

namespace coffer::test {
namespace {

TEST(CrashFirstProcess, AKilledRunnersOrphansDoNotEndTheDaemon) {
  Daemon daemon;
  ASSERT_TRUE(daemon.StartAsFirst());
  const std::string id =
      daemon.Call(daemon.key(), Bash("echo began; sleep 300"), kAsync).At("call_id");
  const auto state = [&] { return daemon.Ask("GET", "/v1/calls/" + id, daemon.key()).At("state"); };
  pid_t init = 0;
  ASSERT_TRUE(WaitUntil(
      [&] {
        for (const pid_t runner : daemon.Runners()) {
          for (const pid_t child : ChildrenOf(runner)) {
            init = child;
          }
        }
        return init != 0 && state() == "running";
      },
      Seconds(30)));
  for (const pid_t runner : daemon.Runners()) {
    ::kill(runner, SIGKILL);
  }
  // The control: the boundary's init ends behind its runner, and the monitor is the one that waits for it.
  EXPECT_TRUE(WaitUntil([&] { return !IsAlive(init); }, Seconds(30)));
  EXPECT_TRUE(WaitUntil([&] { return state() == "finished"; }, Seconds(30)));
  const HttpAnswer next = daemon.Call(daemon.key(), Bash("echo next"));
  EXPECT_EQ(next.Outcome(), "success") << next.text << daemon.Said();
  EXPECT_EQ(daemon.Stop(), 0) << daemon.Said();
}

// A role that is killed still ends it.
TEST(CrashFirstProcess, AKilledRoleEndsTheDaemon) {
  Daemon daemon;
  ASSERT_TRUE(daemon.StartAsFirst());
  ::kill(daemon.Find(RoleOf::kWarden), SIGKILL);
  EXPECT_TRUE(daemon.Gone(Seconds(30)));
}

}  // namespace
}  // namespace coffer::test
