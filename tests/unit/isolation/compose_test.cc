// SPDX-License-Identifier: Apache-2.0
#include "isolation/compose.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "isolation/compose_prepared.h"
#include "isolation/compose_process.h"
#include "tests/support/run.h"

namespace coffer::isolation {
namespace {

using policy::Access;
using test::TempDir;

std::vector<OpenedMount> At(std::initializer_list<const char*> targets) {
  std::vector<OpenedMount> mounts;
  for (const char* at : targets) {
    OpenedMount mount;
    mount.path.path = "/srv/x";
    mount.path.directory = true;
    mount.at = at;
    mounts.push_back(std::move(mount));
  }
  return mounts;
}

Status Check(std::initializer_list<const char*> targets, const RuntimeSet& runtime = {}) {
  return CheckTargets(At(targets), runtime);
}

TEST(CheckTargets, Table) {
  for (const char* at : {"/data", "/out", "/srv/x", "/tmp/x", "/usr/share/x", "/workspace/src",
                         "/home/me", "/procs", "/etcetera", "/devil", "/inputs"}) {
    EXPECT_TRUE(Check({at}).ok()) << at;
  }
  for (const char* at : {"/", "/etc", "/etc/passwd", "/etc/ssl/certs", "/dev", "/dev/null",
                         "/dev/shm", "/proc", "/proc/1", "/tmp", "/workspace", "/in", "/in/x",
                         "/usr", "/bin", "/lib", "/sbin", "/sys", "/sys/fs"}) {
    const Status checked = Check({at});
    ASSERT_FALSE(checked.ok()) << at;
    EXPECT_EQ(checked.error().code, "policy.mount.target") << at;
    EXPECT_FALSE(Check({"/fine", at}).ok()) << at;
  }
}

TEST(CheckTargets, NoneAboveOrInsideAnother) {
  for (const auto& [first, second] : {std::pair("/a", "/a"), std::pair("/a", "/a/b"),
                                      std::pair("/a/b/c", "/a"), std::pair("/a/b", "/a/b/c/d")}) {
    EXPECT_FALSE(Check({first, second}).ok()) << first << " " << second;
    EXPECT_FALSE(Check({"/z", first, "/y", second}).ok());
  }
  EXPECT_TRUE(Check({"/a", "/ab", "/b/a", "/b/c"}).ok());
}

TEST(CheckTargets, NothingOfTheRuntimeIsHidden) {
  RuntimeSet runtime;
  runtime.files = {{"/usr/bin/dash", "/usr/bin/sh", true, false},
                   {"/opt/py", "/opt/py", false, true}};
  for (const char* at : {"/usr/bin/sh", "/usr/bin", "/opt", "/opt/py", "/opt/py/lib"}) {
    EXPECT_FALSE(Check({at}, runtime).ok()) << at;
  }
  for (const char* at :
       {"/usr/bin/shx", "/usr/bin/other", "/opt/pyx", "/opt/other", "/usr/share"}) {
    EXPECT_TRUE(Check({at}, runtime).ok()) << at;
  }
}

class Compose : public ::testing::Test {
 protected:
  Compose() {
    runtime_.files = {{"/usr/bin/dash", "/usr/bin/sh", true, false},
                      {"/usr/lib/libc.so.6", "/usr/lib/libc.so.6", false, false},
                      {"/usr/lib/python3", "/usr/lib/python3", false, true}};
    runtime_.links = {{"/bin", "usr/bin"}, {"/lib", "usr/lib"}};
    dir_.MakeDir("ro");
    dir_.MakeDir("rw");
    for (const auto& [name, access] :
         {std::pair("ro", Access::kRead), std::pair("rw", Access::kWrite)}) {
      OpenedMount mount;
      mount.path = std::move(OpenHostPath(dir_ / name, access)).value();
      mount.at = std::string("/mnt/deep/") + name;
      mount.access = access;
      mounts_.push_back(std::move(mount));
    }
    mounts_[0].fifos = {"pipe", "a/b/pipe"};
  }
  BoundaryPlan Plan(bool privileged = false) {
    BoundaryPlan plan = BeginContainer(envelope_, privileged);
    EXPECT_TRUE(CompleteContainer(envelope_, runtime_, mounts_, {{"x.py", "print(1)"}}, plan).ok());
    return plan;
  }
  // Both halves of the root, as the child makes them.
  static RootPart WholeRoot(const BoundaryPlan& plan) {
    RootPart whole = plan.root;
    const RootPart& rest = plan.call_root;
    whole.dirs.insert(whole.dirs.end(), rest.dirs.begin(), rest.dirs.end());
    whole.tmpfs.insert(whole.tmpfs.end(), rest.tmpfs.begin(), rest.tmpfs.end());
    whole.files.insert(whole.files.end(), rest.files.begin(), rest.files.end());
    whole.links.insert(whole.links.end(), rest.links.begin(), rest.links.end());
    whole.binds.insert(whole.binds.end(), rest.binds.begin(), rest.binds.end());
    return whole;
  }
  uint64_t RightsAt(const BoundaryPlan& plan, const std::string& path) {
    uint64_t rights = 0;
    for (const LandlockRule& rule : plan.landlock) {
      rights |= rule.path == path ? rule.rights : 0;
    }
    return rights;
  }

  TempDir dir_;
  policy::Envelope envelope_;
  RuntimeSet runtime_;
  std::vector<OpenedMount> mounts_;
};

TEST_F(Compose, NothingIsWritableButDevicesAndWhatWasAskedFor) {
  for (const BindMount& bind : WholeRoot(Plan()).binds) {
    if (bind.at == "/mnt/deep/rw") {
      EXPECT_TRUE(bind.writable);
      EXPECT_FALSE(bind.executable) << "nobody may write what can then be run";
      EXPECT_FALSE(bind.device);
    } else if (bind.device) {
      EXPECT_TRUE(std::set<std::string>(
                      {"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"})
                      .count(bind.at))
          << bind.at;
      EXPECT_EQ(bind.host, bind.at);
      EXPECT_FALSE(bind.executable);
    } else {
      EXPECT_FALSE(bind.writable) << bind.at;
    }
  }
}

TEST_F(Compose, OnlyTheRuntimeIsExecutable) {
  const BoundaryPlan plan = Plan();
  std::set<std::string> executable;
  for (const BindMount& bind : WholeRoot(plan).binds) {
    if (bind.executable) {
      executable.insert(bind.at);
    }
  }
  EXPECT_EQ(executable,
            (std::set<std::string>{"/usr/bin/sh", "/usr/lib/libc.so.6", "/usr/lib/python3"}));
  for (const LandlockRule& rule : plan.landlock) {
    const bool runtime = rule.path == "/usr";
    EXPECT_EQ((rule.rights & landlock::kExecute) != 0, runtime) << rule.path;
    EXPECT_TRUE((rule.rights & landlock::kExecute) == 0 ||
                (rule.rights & landlock::kWriteFile) == 0)
        << rule.path;
    EXPECT_TRUE(rule.required) << rule.path;
  }
}

TEST_F(Compose, LandlockGrantsWhatTheMountsGrant) {
  const BoundaryPlan plan = Plan();
  EXPECT_EQ(RightsAt(plan, "/mnt/deep/ro"), landlock::kRead);
  EXPECT_EQ(RightsAt(plan, "/mnt/deep/rw"), landlock::kRead | landlock::kChange);
  EXPECT_EQ(RightsAt(plan, "/etc"), landlock::kRead);
  EXPECT_EQ(RightsAt(plan, "/in"), landlock::kRead);
  EXPECT_EQ(RightsAt(plan, "/proc"), landlock::kRead);
  EXPECT_EQ(RightsAt(plan, "/"), landlock::kReadDir) << "or the canary could be read";
  EXPECT_EQ(RightsAt(plan, "/dev") & landlock::kIoctlDev, 0U);
  EXPECT_EQ(RightsAt(plan, plan.landlock_canary), 0U);
  EXPECT_FALSE(plan.landlock_canary.empty());
}

TEST_F(Compose, ParentsComeFirst) {
  const RootPart plan = WholeRoot(Plan());
  std::set<std::string> made = {"/", ""};
  for (const std::string& dir : plan.dirs) {
    EXPECT_TRUE(made.count(dir.substr(0, dir.rfind('/')))) << dir;
    EXPECT_TRUE(made.insert(dir).second) << "twice: " << dir;
  }
  std::set<std::string> links;
  for (const PrivateLink& link : plan.links) {
    EXPECT_FALSE(made.count(link.at)) << "a directory where a link goes: " << link.at;
    links.insert(link.at);
  }
  for (const PrivateTmpfs& tmpfs : plan.tmpfs) {
    EXPECT_TRUE(made.count(tmpfs.at)) << tmpfs.at;
    EXPECT_GT(tmpfs.bytes, 0U) << tmpfs.at;
    EXPECT_GT(tmpfs.inodes, 0U) << tmpfs.at;
  }
  for (const PrivateFile& file : plan.files) {
    EXPECT_TRUE(made.count(file.at.substr(0, file.at.rfind('/')))) << file.at;
    EXPECT_EQ(file.mode & 0222, 0U) << file.at;
  }
  for (const BindMount& bind : plan.binds) {
    const bool cover = bind.at.starts_with("/mnt/deep/ro/");  // lies in what is mounted there
    EXPECT_TRUE(cover || made.count(bind.at.substr(0, bind.at.rfind('/')))) << bind.at;
    EXPECT_TRUE(!bind.directory || made.count(bind.at)) << bind.at;
  }
}

TEST_F(Compose, UserMountsAreComparedWithWhatWasChecked) {
  for (const bool privileged : {false, true}) {
    const BoundaryPlan plan = Plan(privileged);
    for (const BindMount& bind : plan.call_root.binds) {
      if (bind.at == "/mnt/deep/ro" || bind.at == "/mnt/deep/rw") {
        EXPECT_FALSE(bind.follow_links);
        EXPECT_EQ(bind.expected_ino, mounts_[bind.at == "/mnt/deep/rw"].path.ino);
        EXPECT_NE(bind.expected_dev, 0U);
        EXPECT_EQ(bind.supervised, privileged) << bind.at;
      } else if (!bind.at.starts_with("/mnt/deep/")) {
        EXPECT_TRUE(bind.follow_links) << bind.at << ": only the host's own files";
        EXPECT_EQ(bind.supervised, privileged) << bind.at;
      }
    }
    for (const BindMount& bind : plan.root.binds) {
      EXPECT_FALSE(bind.supervised) << bind.at << ": made before anybody was asked";
    }
    EXPECT_EQ(plan.own_uid, privileged);
  }
}

// Init makes the first half before the command is known.
TEST_F(Compose, TheFirstHalfDependsOnTheEnvelopeAlone) {
  const BoundaryPlan plan = BeginContainer(envelope_, true);
  EXPECT_TRUE(plan.call_root.binds.empty() && plan.call_root.files.empty());
  for (const BindMount& bind : plan.root.binds) {
    EXPECT_TRUE(bind.device) << bind.at;
  }
  const BoundaryPlan whole = Plan(true);
  EXPECT_EQ(whole.root.dirs, plan.root.dirs);
  EXPECT_EQ(whole.root.binds.size(), plan.root.binds.size());
  EXPECT_EQ(whole.root.files.size(), plan.root.files.size());
}

// Prepared or made for the call: a boundary sees the same /dev and /etc.
TEST_F(Compose, PreparedTreesReplaceWhatWouldBeMade) {
  BoundaryPlan plan = BeginContainer(envelope_, true, true);
  EXPECT_TRUE(plan.prepared);
  EXPECT_TRUE(plan.root.binds.empty() && plan.root.links.empty());
  ASSERT_TRUE(CompleteContainer(envelope_, runtime_, mounts_, {}, plan).ok());
  ASSERT_GE(plan.call_root.binds.size(), 3U);
  for (const size_t i : {0, 1, 2}) {
    const BindMount& bind = plan.call_root.binds[i];
    EXPECT_EQ(bind.at, std::vector<std::string>({"/dev", "/etc", "/usr"})[i])
        << "before whatever is mounted below it";
    EXPECT_TRUE(bind.prepared && bind.supervised && bind.directory);
    EXPECT_FALSE(bind.writable || bind.executable);
    EXPECT_EQ(bind.device, i == 0);
  }
  const auto named = [](const std::vector<PrivateFile>& files, const std::string& at) {
    for (const PrivateFile& file : files) {
      if (file.at == at) {
        return file.content;
      }
    }
    return std::string("none");
  };
  const RootPart made = WholeRoot(Plan(true));
  ASSERT_EQ(plan.places.size(), 2U);
  ASSERT_EQ(plan.places[0].at, "/etc");
  for (const char* name : {"/passwd", "/group", "/hosts", "/nsswitch.conf"}) {
    const std::vector<PrivateFile>& files = plan.places[0].content.files;
    EXPECT_EQ(named(files, name), named(made.files, std::string("/etc") + name)) << name;
    EXPECT_NE(named(files, name), "none") << name;
  }
  // There is no tree for it after all.
  MakePrivate(plan.places[0], plan);
  EXPECT_EQ(named(plan.call_root.files, "/etc/passwd"), named(made.files, "/etc/passwd"));
  EXPECT_EQ(plan.call_root.binds[0].at, "/dev");
  EXPECT_EQ(plan.call_root.binds[1].at, "/usr");
}

// The places below /usr are in the tree or in the private root, each once, and nothing is mounted on what is not there.
TEST_F(Compose, ThePreparedUsrHoldsThePlacesOfTheRuntime) {
  BoundaryPlan plan = BeginContainer(envelope_, true, true);
  ASSERT_TRUE(CompleteContainer(envelope_, runtime_, mounts_, {}, plan).ok());
  ASSERT_EQ(plan.places.size(), 2U);
  const PreparedPlace usr = plan.places[1];
  ASSERT_EQ(usr.at, "/usr");
  const auto below_usr = [](const std::string& path) { return path.starts_with("/usr/"); };
  EXPECT_TRUE(std::none_of(plan.call_root.dirs.begin(), plan.call_root.dirs.end(), below_usr));
  EXPECT_TRUE(std::any_of(plan.call_root.dirs.begin(), plan.call_root.dirs.end(),
                          [](const std::string& dir) { return dir == "/usr"; }));
  size_t placed = 0;
  for (const BindMount& bind : plan.call_root.binds) {
    if (!below_usr(bind.at)) {
      continue;
    }
    EXPECT_TRUE(bind.placed) << bind.at;
    ++placed;
    const std::string at = bind.at.substr(4);
    const bool there = bind.directory
                           ? std::count(usr.content.dirs.begin(), usr.content.dirs.end(), at) == 1
                           : std::count_if(usr.content.files.begin(), usr.content.files.end(),
                                           [&](const PrivateFile& file) {
                                             return file.at == at && file.content.empty();
                                           }) == 1;
    EXPECT_TRUE(there) << bind.at;
  }
  EXPECT_GT(placed, 0U);
  // Without the tree everything is as if it had never been thought of.
  MakePrivate(usr, plan);
  EXPECT_TRUE(plan.call_root.by_name_in.empty());
  for (const BindMount& bind : plan.call_root.binds) {
    EXPECT_FALSE(bind.by_name) << bind.at;
    EXPECT_TRUE(bind.supervised || !below_usr(bind.at)) << bind.at;
  }
  const RootPart made = WholeRoot(Plan(true));
  for (const std::string& dir : made.dirs) {
    if (below_usr(dir)) {
      EXPECT_EQ(std::count(plan.call_root.dirs.begin(), plan.call_root.dirs.end(), dir), 1) << dir;
    }
  }
}

// Init is nobody on the host: what only root can reach, the supervisor opens.
TEST_F(Compose, InitMountsByNameOnlyWhatEverybodyCanReach) {
  const TempDir dir;
  const std::string open = dir.path() + "/open";
  const std::string shut = dir.path() + "/shut";
  ASSERT_EQ(::mkdir(open.c_str(), 0755), 0);
  ASSERT_EQ(::mkdir(shut.c_str(), 0755), 0);
  ASSERT_EQ(::mkdir((shut + "/in").c_str(), 0755), 0);
  ASSERT_EQ(::chmod(dir.path().c_str(), 0755), 0);
  ASSERT_EQ(::chmod(shut.c_str(), 0700), 0);
  runtime_.files = {{open + "/tool", "/usr/bin/tool", true, false},
                    {shut + "/in/tool", "/usr/bin/other", true, false},
                    {open, "/usr/share/open", true, true},
                    {dir.path() + "/gone/tool", "/usr/bin/gone", true, false},
                    {open + "/far", "/opt/far", true, false}};
  runtime_.links.clear();
  mounts_.clear();
  BoundaryPlan plan = BeginContainer(envelope_, true, true);
  ASSERT_TRUE(CompleteContainer(envelope_, runtime_, mounts_, {}, plan).ok());
  EXPECT_EQ(plan.call_root.by_name_in, "/usr");
  std::set<std::string> by_name;
  for (const BindMount& bind : plan.call_root.binds) {
    EXPECT_NE(bind.by_name, bind.supervised) << bind.at;
    if (bind.by_name) {
      by_name.insert(bind.at);
    }
  }
  EXPECT_EQ(by_name, std::set<std::string>{"/usr/bin/tool"});
}

TEST_F(Compose, AMountOfTheCallersBelowUsrKeepsItPrivate) {
  OpenedMount mount;
  mount.path.path = "/srv/mine";
  mount.path.directory = true;
  mount.at = "/usr/local/mine";
  mounts_.push_back(std::move(mount));
  BoundaryPlan plan = BeginContainer(envelope_, true, true);
  ASSERT_TRUE(CompleteContainer(envelope_, runtime_, mounts_, {}, plan).ok());
  ASSERT_EQ(plan.places.size(), 1U);
  EXPECT_EQ(plan.places[0].at, "/etc");
  EXPECT_EQ(std::count(plan.call_root.dirs.begin(), plan.call_root.dirs.end(), "/usr/local/mine"),
            1);
}

TEST_F(Compose, AUsrThatIsShownWholeIsNotPrepared) {
  runtime_.files = {{"/usr", "/usr", true, true}};
  runtime_.links.clear();
  BoundaryPlan plan = BeginContainer(envelope_, true, true);
  ASSERT_TRUE(CompleteContainer(envelope_, runtime_, mounts_, {}, plan).ok());
  ASSERT_EQ(plan.places.size(), 1U);
}

TEST_F(Compose, WithoutRootOrWithATerminalNothingIsPrepared) {
  EXPECT_FALSE(BeginContainer(envelope_, false, true).prepared);
  envelope_.tty = true;
  EXPECT_FALSE(BeginContainer(envelope_, true, true).prepared);
}

TEST_F(Compose, FifosAreCoveredAfterTheirMount) {
  const RootPart plan = WholeRoot(Plan());
  const auto place = [&](const std::string& at) {
    return std::find_if(plan.binds.begin(), plan.binds.end(),
                        [&](const BindMount& bind) { return bind.at == at; });
  };
  for (const char* at : {"/mnt/deep/ro/pipe", "/mnt/deep/ro/a/b/pipe"}) {
    const auto cover = place(at);
    ASSERT_NE(cover, plan.binds.end()) << at;
    EXPECT_LT(place("/mnt/deep/ro"), cover);
    EXPECT_EQ(cover->host, "/dev/null");
    EXPECT_FALSE(cover->device) << "nodev: it cannot be opened";
    EXPECT_FALSE(cover->writable);
  }
}

TEST_F(Compose, LimitsSizeThePrivatePlaces) {
  envelope_.limits.disk = 12345 << 10;
  envelope_.limits.inodes = 77;
  envelope_.limits.tmp = 54321 << 10;
  for (const PrivateTmpfs& tmpfs : WholeRoot(Plan()).tmpfs) {
    EXPECT_EQ(tmpfs.bytes, tmpfs.at == "/workspace" ? envelope_.limits.disk : envelope_.limits.tmp)
        << tmpfs.at;
    if (tmpfs.at == "/workspace") {
      EXPECT_EQ(tmpfs.inodes, 77U);
    }
  }
}

TEST_F(Compose, TheTerminalIsThereOnlyIfAskedFor) {
  const auto has_tty = [](const BoundaryPlan& plan) {
    return plan.tty || std::any_of(plan.root.binds.begin(), plan.root.binds.end(),
                                   [](const BindMount& bind) { return bind.at == "/dev/tty"; });
  };
  EXPECT_FALSE(has_tty(Plan()));
  envelope_.tty = true;
  EXPECT_TRUE(has_tty(Plan()));
  EXPECT_NE(RightsAt(Plan(), "/dev") & landlock::kIoctlDev, 0U);
}

TEST_F(Compose, TooManyMountsAreRefused) {
  for (int i = 0; i < 600; ++i) {
    runtime_.files.push_back({"/usr/x", "/usr/x" + std::to_string(i), false, false});
  }
  BoundaryPlan plan = BeginContainer(envelope_, false);
  EXPECT_FALSE(CompleteContainer(envelope_, runtime_, {}, {}, plan).ok());
}

TEST_F(Compose, ProcessLevelGrantsByPathAndTakesNoMovedMounts) {
  if (LandlockAbi() == 0) {
    EXPECT_FALSE(ComposeProcess(envelope_, runtime_, {}, "/scratch", false).ok());
    GTEST_SKIP() << "this kernel has no Landlock";
  }
  EXPECT_FALSE(ComposeProcess(envelope_, runtime_, mounts_, "/scratch", false).ok())
      << "a target of its own";
  for (OpenedMount& mount : mounts_) {
    mount.at = mount.path.path;
  }
  EXPECT_FALSE(ComposeProcess(envelope_, runtime_, mounts_, "/scratch", true).ok())
      << "no id-mapping as root";
  EXPECT_FALSE(ComposeProcess(envelope_, runtime_, mounts_, "/scratch", false).ok())
      << "a fifo that cannot be covered";
  for (OpenedMount& mount : mounts_) {
    mount.fifos.clear();
  }
  const Result<BoundaryPlan> plan = ComposeProcess(envelope_, runtime_, mounts_, "/scratch", false);
  ASSERT_TRUE(plan.ok());
  EXPECT_TRUE(plan->root.tmpfs.empty() && plan->call_root.binds.empty());
  EXPECT_EQ(RightsAt(*plan, dir_ / "ro"), landlock::kRead);
  EXPECT_EQ(RightsAt(*plan, dir_ / "rw"), landlock::kRead | landlock::kChange);
  EXPECT_EQ(RightsAt(*plan, "/scratch/workspace") & landlock::kExecute, 0U);
  EXPECT_EQ(RightsAt(*plan, "/usr/bin/dash"), landlock::kRead | landlock::kExecute);
  EXPECT_EQ(RightsAt(*plan, "/") | RightsAt(*plan, "/etc") | RightsAt(*plan, "/proc") |
                RightsAt(*plan, "/scratch"),
            0U);
}

}  // namespace
}  // namespace coffer::isolation
