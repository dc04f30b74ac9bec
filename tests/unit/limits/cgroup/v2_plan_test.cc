// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "limits/cgroup/probe.h"
#include "tests/unit/limits/fake_files.h"

namespace coffer::limits {
namespace {

constexpr ControllerBits kBoth = Bit(Controller::kMemory) | Bit(Controller::kPids);
const CgroupMount kMount{true, 0, "/", "/cg"};

// systemd, as it comes: the root and the slices distribute, the scopes hold the processes.
FakeFiles Systemd() {
  FakeFiles files;
  files.AddV2("/cg", "cpuset cpu io memory pids\n", "cpuset cpu io memory pids\n", "1\n");
  files.MakeRealRoot("/cg");
  files.AddV2("/cg/user.slice", "cpuset cpu io memory pids\n", "cpu memory pids\n");
  files.AddV2("/cg/user.slice/user-1000.slice", "cpu memory pids\n", "memory pids\n");
  files.AddV2("/cg/user.slice/user-1000.slice/session-2.scope", "memory pids\n", "", "77\n78\n");
  files.AddV2("/cg/user.slice/user-1000.slice/user@1000.service", "memory pids\n", "memory pids\n");
  files.AddV2("/cg/user.slice/user-1000.slice/user@1000.service/app.slice", "memory pids\n",
              "memory pids\n");
  files.AddV2("/cg/user.slice/user-1000.slice/user@1000.service/app.slice/run-1.scope",
              "memory pids\n", "", "99\n");
  return files;
}

TEST(PlanV2, RootInASessionUsesTheNearestSliceSoThatItsLimitsStillHold) {
  FakeFiles files = Systemd();
  for (const char* dir : {"/cg", "/cg/user.slice", "/cg/user.slice/user-1000.slice",
                          "/cg/user.slice/user-1000.slice/session-2.scope"}) {
    files.Allow(dir);
  }
  const V2Plan plan = PlanV2(files, kMount, "/user.slice/user-1000.slice/session-2.scope");
  EXPECT_EQ(plan.dir, "/cg/user.slice/user-1000.slice");
  EXPECT_EQ(plan.enabled & kBoth, kBoth);
  EXPECT_FALSE(plan.move_self);
}

TEST(PlanV2, AnOrdinaryUserInASessionHasNothing) {
  FakeFiles files = Systemd();
  files.Allow(
      "/cg/user.slice/user-1000.slice/user@1000.service");  // delegated, but we are not in it
  const V2Plan plan = PlanV2(files, kMount, "/user.slice/user-1000.slice/session-2.scope");
  EXPECT_EQ(plan.dir, "");
  EXPECT_NE(plan.fix.find("systemd-run --user --scope -p Delegate=yes"), std::string::npos);
}

TEST(PlanV2, AnOrdinaryUserInAScopeOfItsManagerUsesTheSliceAbove) {
  FakeFiles files = Systemd();
  const std::string service = "/cg/user.slice/user-1000.slice/user@1000.service";
  files.Allow(service);
  files.Allow(service + "/app.slice");
  files.Allow(service + "/app.slice/run-1.scope");
  const V2Plan plan =
      PlanV2(files, kMount, "/user.slice/user-1000.slice/user@1000.service/app.slice/run-1.scope");
  EXPECT_EQ(plan.dir, service + "/app.slice");
  EXPECT_FALSE(plan.move_self);
}

TEST(PlanV2, TheCommonAncestorsProcsFileMustBeWritable) {
  FakeFiles files = Systemd();
  files.writable.insert(
      "/cg/user.slice/user-1000.slice");  // the directory alone is not enough to be born there
  const V2Plan plan = PlanV2(files, kMount, "/user.slice/user-1000.slice/session-2.scope");
  EXPECT_EQ(plan.dir, "");
}

TEST(PlanV2, ADelegatedScopeThatHoldsOnlyUsIsUsedAfterMovingToALeaf) {
  FakeFiles files;
  files.AddV2("/cg", "memory pids\n", "memory pids\n");
  files.MakeRealRoot("/cg");
  files.AddV2("/cg/run.scope", "memory pids\n", "", "42\n");
  files.Allow("/cg/run.scope");
  const V2Plan plan = PlanV2(files, kMount, "/run.scope");
  EXPECT_EQ(plan.dir, "/cg/run.scope");
  EXPECT_TRUE(plan.move_self);
  EXPECT_EQ(plan.can_enable & kBoth, kBoth);
}

TEST(PlanV2, ADelegatedScopeWithOthersInItIsNotAndTheFixSaysWhy) {
  FakeFiles files;
  files.AddV2("/cg", "memory pids\n", "memory pids\n");
  files.MakeRealRoot("/cg");
  files.AddV2("/cg/run.scope", "memory pids\n", "", "41\n42\n");
  files.Allow("/cg/run.scope");
  const V2Plan plan = PlanV2(files, kMount, "/run.scope");
  EXPECT_EQ(plan.dir, "");
  EXPECT_NE(plan.why_not.find("/cg/run.scope holds other processes"), std::string::npos);
  EXPECT_NE(plan.fix.find("mkdir /cg/run.scope/init"), std::string::npos);
}

TEST(PlanV2, TheRealRootMayDistributeWhileItHoldsProcesses) {
  FakeFiles files;
  files.AddV2("/cg", "memory pids io\n", "", "1\n2\n3\n");
  files.MakeRealRoot("/cg");
  files.Allow("/cg");
  const V2Plan plan = PlanV2(files, kMount, "/");
  EXPECT_EQ(plan.dir, "/cg");
  EXPECT_FALSE(plan.move_self);
  EXPECT_EQ(plan.can_enable, kBoth | Bit(Controller::kIo));
}

TEST(PlanV2, TheRootOfAContainerIsNotTheRealRoot) {
  FakeFiles files;
  files.AddV2("/cg", "memory pids\n", "", "1\n");
  files.Allow("/cg");
  const V2Plan plan = PlanV2(files, kMount, "/");
  EXPECT_EQ(plan.dir, "/cg");
  EXPECT_TRUE(plan.move_self);
}

TEST(PlanV2, OnceWeMovedToALeafTheParentServes) {
  FakeFiles files;
  files.AddV2("/cg", "memory pids\n", "memory pids\n");
  files.AddV2("/cg/coffer-supervisor-5-1", "memory pids\n", "", "5\n");
  files.Allow("/cg");
  files.Allow("/cg/coffer-supervisor-5-1");
  const V2Plan plan = PlanV2(files, kMount, "/coffer-supervisor-5-1");
  EXPECT_EQ(plan.dir, "/cg");
  EXPECT_FALSE(plan.move_self);
  EXPECT_EQ(plan.can_enable & kBoth, 0U);
}

TEST(PlanV2, SomeControllersAreBetterThanNone) {
  FakeFiles files;
  files.AddV2("/cg", "pids\n", "pids\n");
  files.MakeRealRoot("/cg");
  files.AddV2("/cg/a", "pids\n", "", "9\n");
  files.Allow("/cg");
  files.Allow("/cg/a");
  const V2Plan plan = PlanV2(files, kMount, "/a");
  EXPECT_EQ(plan.dir, "/cg");
  EXPECT_EQ(plan.enabled, Bit(Controller::kPids));
}

TEST(PlanV2, AReadOnlyMountIsNamed) {
  FakeFiles files = Systemd();
  files.read_only = true;
  const V2Plan plan = PlanV2(files, kMount, "/user.slice/user-1000.slice/session-2.scope");
  EXPECT_EQ(plan.dir, "");
  EXPECT_EQ(plan.why_not, "/cg is mounted read-only");
}

TEST(PlanV2, ACgroupOutsideTheNamespaceCannotBeUsed) {
  const V2Plan plan = PlanV2(Systemd(), kMount, "/../elsewhere");
  EXPECT_EQ(plan.dir, "");
  EXPECT_NE(plan.why_not.find("not visible"), std::string::npos);
}

}  // namespace
}  // namespace coffer::limits
