// SPDX-License-Identifier: Apache-2.0
#include "isolation/compose.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <set>

#include "isolation/compose_process.h"
#include "tests/support/run.h"

namespace coffer::isolation {
namespace {

using policy::Access;
using test::TempDir;

std::vector<OpenedMount> EntryAt(std::initializer_list<const char*> targets) {
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
  return CheckTargets(EntryAt(targets), runtime);
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

// A project in a directory that is read-only, both where they are on the host.
TEST(CheckTargets, OnlyAProjectLiesInWhatIsShownAroundIt) {
  const auto made = [] {
    std::vector<OpenedMount> mounts = EntryAt({"/srv/all", "/srv/all/a/b"});
    for (OpenedMount& mount : mounts) {
      mount.path.path = mount.at;
    }
    mounts[1].project = true;
    mounts[1].access = Access::kWrite;
    return mounts;
  };
  std::vector<OpenedMount> mounts = made();
  EXPECT_TRUE(CheckTargets(mounts, {}).ok());
  std::swap(mounts[0], mounts[1]);
  EXPECT_FALSE(CheckTargets(mounts, {}).ok()) << "the outer one would hide the project";
  const auto refused = [&](const std::function<void(std::vector<OpenedMount>&)>& change) {
    std::vector<OpenedMount> changed = made();
    change(changed);
    return !CheckTargets(changed, {}).ok();
  };
  EXPECT_TRUE(refused([](auto& all) { all[1].project = false; }));
  EXPECT_TRUE(refused([](auto& all) { all[0].access = Access::kWrite; }));
  EXPECT_TRUE(refused([](auto& all) { all[0].project = true; }));
  EXPECT_TRUE(refused([](auto& all) { all[0].path.path = "/srv/other"; }));
  EXPECT_TRUE(refused([](auto& all) { all[1].path.path = "/srv/other"; }));
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

const ScratchPlace kScratch{"/scratch"};

class Compose : public ::testing::Test {
 protected:
  Compose() {
    AddFile({"/usr/bin/dash", "/usr/bin/sh", true, false});
    AddFile({"/usr/lib/libc.so.6", "/usr/lib/libc.so.6", false, false});
    AddFile({"/usr/lib/python3", "/usr/lib/python3", false, true});
    runtime_.set.links = {{"/bin", "usr/bin"}, {"/lib", "usr/lib"}};
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
    mounts_[0].fifos = {{"pipe", 5, 6}, {"a/b/pipe", 5, 7}};
  }
  // As if it had been opened: composing looks at nothing but what the examination found.
  void AddFile(const RuntimeFile& file) {
    HostPath path;
    path.path = file.host;
    path.directory = file.directory;
    path.dev = 77;
    path.ino = ++last_inode_;
    runtime_.set.files.push_back(file);
    runtime_.paths.push_back(std::move(path));
    runtime_.fifos.emplace_back();
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
  OpenedRuntime runtime_;
  ino_t last_inode_ = 1000;
  std::vector<OpenedMount> mounts_;
};

TEST_F(Compose, NothingIsWritableButDevicesAndWhatWasAskedFor) {
  for (const BindMount& bind : WholeRoot(Plan()).binds) {
    if (bind.at == "/mnt/deep/rw") {
      EXPECT_TRUE(bind.writable);
      EXPECT_FALSE(bind.executable) << "nobody may write what can then be run";
      EXPECT_EQ(bind.device, 0U);
    } else if (bind.usable_device) {
      EXPECT_TRUE(std::set<std::string>({"/dev/null", "/dev/zero", "/dev/full", "/dev/random",
                                         "/dev/urandom", "/dev/tty"})
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
  EXPECT_NE(RightsAt(plan, "/dev") & landlock::kIoctlDev, 0U) << "its own terminals";
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

TEST_F(Compose, EveryMountIsComparedWithWhatWasExamined) {
  for (const bool privileged : {false, true}) {
    const BoundaryPlan plan = Plan(privileged);
    for (const BindMount& bind : plan.call_root.binds) {
      if (bind.at.starts_with("/mnt/deep/ro/")) {
        EXPECT_NE(bind.device, 0U) << "the cover of a fifo";
        continue;
      }
      const bool mount = bind.at.starts_with("/mnt/deep/");
      EXPECT_EQ(bind.device, 0U) << bind.at;
      EXPECT_NE(bind.expected_dev, 0U) << bind.at;
      EXPECT_NE(bind.expected_ino, 0U) << bind.at;
      EXPECT_EQ(bind.supervised, privileged) << bind.at;
      EXPECT_EQ(bind.id_mapped, mount) << bind.at;
      if (mount) {
        EXPECT_EQ(bind.expected_ino, mounts_[bind.at == "/mnt/deep/rw"].path.ino);
      }
    }
    for (const BindMount& bind : plan.root.binds) {
      EXPECT_FALSE(bind.supervised) << bind.at;
    }
    EXPECT_EQ(plan.own_uid, privileged);
  }
}

// Init makes the first half before the command is known.
TEST_F(Compose, TheFirstHalfDependsOnTheEnvelopeAlone) {
  const BoundaryPlan plan = BeginContainer(envelope_, true);
  EXPECT_TRUE(plan.call_root.binds.empty() && plan.call_root.files.empty());
  for (const BindMount& bind : plan.root.binds) {
    EXPECT_NE(bind.device, 0U) << bind.at;
  }
  const BoundaryPlan whole = Plan(true);
  EXPECT_EQ(whole.root.dirs, plan.root.dirs);
  EXPECT_EQ(whole.root.binds.size(), plan.root.binds.size());
  EXPECT_EQ(whole.root.files.size(), plan.root.files.size());
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
    EXPECT_NE(cover->place_ino, 0U) << "the boundary is not made if it is moved meanwhile";
    EXPECT_FALSE(cover->usable_device) << "nodev: it cannot be opened";
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

TEST_F(Compose, StdioIsATerminalOnlyIfAskedFor) {
  EXPECT_FALSE(Plan().tty);
  envelope_.tty = true;
  EXPECT_TRUE(Plan().tty);
}

TEST_F(Compose, EveryBoundaryCanMakeTerminals) {
  const BoundaryPlan plan = Plan();
  EXPECT_TRUE(std::any_of(plan.root.binds.begin(), plan.root.binds.end(),
                          [](const BindMount& bind) { return bind.at == "/dev/tty"; }));
  EXPECT_NE(RightsAt(plan, "/dev") & landlock::kIoctlDev, 0U);
}

TEST_F(Compose, WhatCoversProcIsReadInItsPlaceOnly) {
  const BoundaryPlan plan = Plan();
  ASSERT_FALSE(plan.proc.empty());
  for (const ProcCover& cover : plan.proc) {
    const bool covers = cover.at.starts_with("/proc/");
    EXPECT_NE(covers, cover.from.starts_with("/proc/")) << cover.at;
    EXPECT_EQ(RightsAt(plan, covers ? cover.from : cover.at), 0U) << cover.at;
  }
}

TEST_F(Compose, TmpHoldsMoreFilesIfItIsLarger) {
  const auto inodes = [&](uint64_t bytes) {
    envelope_.limits.tmp = bytes;
    const RootPart root = WholeRoot(Plan());
    const auto tmp = std::find_if(root.tmpfs.begin(), root.tmpfs.end(),
                                  [](const PrivateTmpfs& place) { return place.at == "/tmp"; });
    return tmp->inodes;
  };
  EXPECT_EQ(inodes(1 << 20), 4096U);
  EXPECT_GT(inodes(1 << 30), 100000U);
}

TEST_F(Compose, OnlyReadOnlyDirectoriesOfTheCallersLieBehindAnOverlay) {
  EXPECT_TRUE(Plan().call_root.overlays.empty());
  for (HostPath& path : runtime_.paths) {
    path.path_class = PathClass::kSystem;
  }
  envelope_.overlay = true;
  const BoundaryPlan plan = Plan();
  const RootPart& root = plan.call_root;
  std::vector<std::string> behind;
  for (const BindMount& bind : root.binds) {
    if (!bind.overlay_upper.empty()) {
      behind.push_back(bind.at);
      for (const std::string& directory : {bind.overlay_upper, bind.overlay_work}) {
        EXPECT_TRUE(directory.starts_with(root.overlays + "/")) << directory;
        EXPECT_NE(std::find(root.dirs.begin(), root.dirs.end(), directory), root.dirs.end());
        EXPECT_EQ(RightsAt(plan, directory), 0U);
      }
    }
  }
  EXPECT_EQ(behind, std::vector<std::string>{"/mnt/deep/ro"});
  ASSERT_EQ(root.tmpfs.size(), 1U) << "the layers have a place of their own";
  EXPECT_EQ(root.tmpfs[0].at, root.overlays);
}

TEST_F(Compose, ASingleFileHasNoOverlay) {
  envelope_.overlay = true;
  dir_.Write("file", "x");
  OpenedMount mount;
  mount.path = std::move(OpenHostPath(dir_ / "file", Access::kRead)).value();
  mount.at = "/mnt/file";
  envelope_.mounts.push_back({dir_ / "file", mount.at});
  mounts_.push_back(std::move(mount));
  BoundaryPlan plan = BeginContainer(envelope_, false);
  const Status status = CompleteContainer(envelope_, runtime_, mounts_, {}, plan);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, "policy.mount.overlay");
}

TEST_F(Compose, TooManyMountsAreRefused) {
  for (int i = 0; i < 600; ++i) {
    AddFile({"/usr/x", "/usr/x" + std::to_string(i), false, false});
  }
  BoundaryPlan plan = BeginContainer(envelope_, false);
  EXPECT_FALSE(CompleteContainer(envelope_, runtime_, {}, {}, plan).ok());
}

TEST_F(Compose, ProcessLevelGrantsByPathAndTakesNoMovedMounts) {
  if (LandlockAbi() == 0) {
    EXPECT_FALSE(ComposeProcess(envelope_, runtime_, {}, kScratch, false).ok());
    GTEST_SKIP() << "this kernel has no Landlock";
  }
  EXPECT_FALSE(ComposeProcess(envelope_, runtime_, mounts_, kScratch, false).ok())
      << "a target of its own";
  for (OpenedMount& mount : mounts_) {
    mount.at = mount.path.path;
  }
  EXPECT_FALSE(ComposeProcess(envelope_, runtime_, mounts_, kScratch, true).ok())
      << "no id-mapping as root";
  EXPECT_FALSE(ComposeProcess(envelope_, runtime_, mounts_, kScratch, false).ok())
      << "a fifo that cannot be covered";
  for (OpenedMount& mount : mounts_) {
    mount.fifos.clear();
  }
  const Result<BoundaryPlan> plan = ComposeProcess(envelope_, runtime_, mounts_, kScratch, false);
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
