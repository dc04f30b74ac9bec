// SPDX-License-Identifier: Apache-2.0
#include "limits/cgroup/host.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "limits/cgroup/probe.h"
#include "tests/unit/limits/fake_files.h"
#include "tests/unit/limits/test_support.h"

namespace coffer::limits {
namespace {

using policy::Layer;

// Debian 10, Ubuntu 20.04: v1 for the controllers, v2 for systemd alone.
FakeFiles HybridSystemd() {
  FakeFiles files;
  files.texts["/proc/self/cgroup"] =
      "6:memory:/user.slice\n5:pids:/user.slice/user-1000.slice\n4:cpu,cpuacct:/\n3:blkio:/"
      "\n2:freezer:/\n"
      "1:name=systemd:/user.slice/session-1.scope\n0::/user.slice/session-1.scope\n";
  files.texts["/proc/self/mountinfo"] =
      "30 20 0:1 / /sys/fs/cgroup ro - tmpfs tmpfs ro,mode=755\n"
      "31 30 0:2 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
      "32 30 0:3 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd\n"
      "33 30 0:4 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
      "34 30 0:5 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n"
      "35 30 0:6 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
      "36 30 0:7 / /sys/fs/cgroup/blkio rw - cgroup cgroup rw,blkio\n"
      "37 30 0:8 / /sys/fs/cgroup/freezer rw - cgroup cgroup rw,freezer\n";
  files.texts["/sys/fs/cgroup/blkio/blkio.throttle.io_service_bytes"] =
      "8:0 Read 4096\n8:0 Total 4096\nTotal 4096\n";
  files.AddV2("/sys/fs/cgroup/unified", "", "");
  return files;
}

void AllowHybrid(FakeFiles& files) {
  files.writable = {"/sys/fs/cgroup/memory/user.slice",
                    "/sys/fs/cgroup/pids/user.slice/user-1000.slice", "/sys/fs/cgroup/cpu,cpuacct",
                    "/sys/fs/cgroup/blkio", "/sys/fs/cgroup/freezer"};
}

TEST(ProbeCgroups, HybridAsRootUsesV1BelowOurOwnCgroups) {
  FakeFiles files = HybridSystemd();
  AllowHybrid(files);
  const CgroupHost host = ProbeCgroupsWith(files);
  EXPECT_EQ(host.layout, CgroupLayout::kHybrid);
  EXPECT_EQ(host.at(Controller::kMemory).dir, "/sys/fs/cgroup/memory/user.slice");
  EXPECT_EQ(host.at(Controller::kPids).dir, "/sys/fs/cgroup/pids/user.slice/user-1000.slice");
  EXPECT_EQ(host.at(Controller::kCpuacct).dir, "/sys/fs/cgroup/cpu,cpuacct");
  EXPECT_EQ(host.v2_dir, "");
  for (const ControllerPlace& place : host.places) {
    EXPECT_TRUE(place.usable) << place.mount_point << ": " << place.why_not;
    EXPECT_EQ(place.version, CgroupVersion::kV1);
  }
  EXPECT_EQ(host.layers(), policy::LayerSet({Layer::kCgroupMemory, Layer::kCgroupPids,
                                             Layer::kCgroupCpu, Layer::kCgroupIo}));
}

TEST(ProbeCgroups, HybridAsOrdinaryUserNamesEveryMissingController) {
  const CgroupHost host = ProbeCgroupsWith(HybridSystemd());
  EXPECT_EQ(host.layout, CgroupLayout::kHybrid);
  for (const ControllerPlace& place : host.places) {
    EXPECT_FALSE(place.usable);
    EXPECT_NE(place.why_not.find("not writable for this user"), std::string::npos) << place.why_not;
    EXPECT_FALSE(place.fix.empty());
  }
  EXPECT_TRUE(host.layers().empty());
}

TEST(ProbeCgroups, BlkioThatCountsNothingIsNotClaimed) {
  FakeFiles files = HybridSystemd();
  AllowHybrid(files);
  files.texts["/sys/fs/cgroup/blkio/blkio.throttle.io_service_bytes"] = "Total 0\n";
  const CgroupHost host = ProbeCgroupsWith(files);
  EXPECT_FALSE(host.Usable(Controller::kIo));
  EXPECT_FALSE(host.layers().Has(Layer::kCgroupIo));
  EXPECT_NE(host.at(Controller::kIo).why_not.find("counts no I/O"), std::string::npos);
}

TEST(ProbeCgroups, ForACallOnlyWhatEveryCallNeedsIsProbed) {
  FakeFiles files = HybridSystemd();
  AllowHybrid(files);
  const CgroupHost host = ProbeCgroupsWith(files, ProbeDepth::kCall);
  EXPECT_EQ(host.layers(),
            policy::LayerSet({Layer::kCgroupMemory, Layer::kCgroupPids, Layer::kCgroupCpu}));
  EXPECT_EQ(host.at(Controller::kIo).why_not, "not probed");
  EXPECT_EQ(host.v2_dir, "");
}

TEST(ProbeCgroups, ForACallTheUsualMountsNeedNoMountinfo) {
  FakeFiles files = HybridSystemd();
  AllowHybrid(files);
  const std::string mountinfo = files.texts["/proc/self/mountinfo"];
  files.texts.erase("/proc/self/mountinfo");
  EXPECT_EQ(ProbeCgroupsWith(files, ProbeDepth::kCall).at(Controller::kPids).dir,
            "/sys/fs/cgroup/pids/user.slice/user-1000.slice");
  files.in_container = true;  // here the same path may be somebody else's cgroup
  EXPECT_FALSE(ProbeCgroupsWith(files, ProbeDepth::kCall).Usable(Controller::kPids));
  files.texts["/proc/self/mountinfo"] = mountinfo;
  EXPECT_TRUE(ProbeCgroupsWith(files, ProbeDepth::kCall).Usable(Controller::kPids));
}

TEST(ProbeCgroups, ForACallUnusualMountsAreFoundInMountinfo) {
  FakeFiles files;
  files.texts["/proc/self/cgroup"] = "3:memory:/a\n2:pids:/a\n1:cpuacct:/a\n";
  files.texts["/proc/self/mountinfo"] =
      "33 30 0:4 / /cg/m rw - cgroup cgroup rw,memory\n34 30 0:5 / /cg/p rw - cgroup cgroup "
      "rw,pids\n"
      "35 30 0:6 / /cg/c rw - cgroup cgroup rw,cpuacct\n";
  files.writable = {"/cg/m/a", "/cg/p/a", "/cg/c/a"};
  const CgroupHost host = ProbeCgroupsWith(files, ProbeDepth::kCall);
  EXPECT_EQ(host.at(Controller::kMemory).dir, "/cg/m/a");
  EXPECT_EQ(host.layers(),
            policy::LayerSet({Layer::kCgroupMemory, Layer::kCgroupPids, Layer::kCgroupCpu}));
}

TEST(ProbeCgroups, ForACallOnV2TheUsualMountIsFound) {
  FakeFiles files;
  files.texts["/proc/self/cgroup"] = "0::/\n";
  files.AddV2("/sys/fs/cgroup", "memory pids\n", "memory pids\n", "1\n");
  files.MakeRealRoot("/sys/fs/cgroup");
  files.Allow("/sys/fs/cgroup");
  const CgroupHost host = ProbeCgroupsWith(files, ProbeDepth::kCall);
  EXPECT_EQ(host.layout, CgroupLayout::kV2);
  EXPECT_EQ(host.v2_dir, "/sys/fs/cgroup");
  EXPECT_TRUE(host.Usable(Controller::kMemory));
}

TEST(ProbeCgroups, PlainV1) {
  FakeFiles files = HybridSystemd();
  std::string& mounts = files.texts["/proc/self/mountinfo"];
  mounts.erase(mounts.find("31 30"), mounts.find("32 30") - mounts.find("31 30"));
  AllowHybrid(files);
  const CgroupHost host = ProbeCgroupsWith(files);
  EXPECT_EQ(host.layout, CgroupLayout::kV1);
  EXPECT_TRUE(host.Usable(Controller::kMemory));
}

TEST(ProbeCgroups, DockerOnV1SeesItsOwnPartOfTheHierarchyReadOnly) {
  FakeFiles files;
  files.texts["/proc/self/cgroup"] = "3:memory:/docker/abc\n2:pids:/docker/abc\n";
  files.texts["/proc/self/mountinfo"] =
      "33 30 0:4 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n"
      "34 30 0:5 /docker/abc /sys/fs/cgroup/pids ro - cgroup cgroup rw,pids\n";
  files.read_only = true;
  const CgroupHost host = ProbeCgroupsWith(files);
  EXPECT_EQ(host.layout, CgroupLayout::kV1);
  EXPECT_EQ(host.at(Controller::kMemory).dir, "/sys/fs/cgroup/memory");
  EXPECT_FALSE(host.Usable(Controller::kMemory));
  EXPECT_EQ(host.at(Controller::kMemory).why_not, "/sys/fs/cgroup/memory is mounted read-only");
  EXPECT_NE(host.at(Controller::kCpuacct).why_not.find("no cpuacct controller"), std::string::npos);
}

TEST(ProbeCgroups, V2AsRootOnSystemd) {
  FakeFiles files;
  files.texts["/proc/self/cgroup"] = "0::/user.slice/user-0.slice/session-1.scope\n";
  files.texts["/proc/self/mountinfo"] =
      "30 20 0:1 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n";
  files.AddV2("/sys/fs/cgroup/user.slice/user-0.slice", "cpu io memory pids\n", "memory pids\n");
  files.AddV2("/sys/fs/cgroup/user.slice/user-0.slice/session-1.scope", "memory pids\n", "",
              "7\n8\n");
  files.Allow("/sys/fs/cgroup/user.slice/user-0.slice");
  files.Allow("/sys/fs/cgroup/user.slice/user-0.slice/session-1.scope");
  const CgroupHost host = ProbeCgroupsWith(files);
  EXPECT_EQ(host.layout, CgroupLayout::kV2);
  EXPECT_EQ(host.v2_dir, "/sys/fs/cgroup/user.slice/user-0.slice");
  EXPECT_EQ(host.v2_enable, "");
  EXPECT_TRUE(host.v2_enable_io);
  EXPECT_FALSE(host.v2_move_self);
  EXPECT_TRUE(host.Usable(Controller::kMemory));
  EXPECT_TRUE(host.Usable(Controller::kCpuacct));
  EXPECT_TRUE(host.Usable(Controller::kIo));
  EXPECT_TRUE(host.Usable(Controller::kFreezer));
}

TEST(ProbeCgroups, V2InAContainerMovesOnlyIfAlone) {
  FakeFiles files;
  files.texts["/proc/self/cgroup"] = "0::/\n";
  files.texts["/proc/self/mountinfo"] = "30 20 0:1 / /sys/fs/cgroup rw - cgroup2 cgroup rw\n";
  files.AddV2("/sys/fs/cgroup", "memory pids\n", "", "1\n");
  files.Allow("/sys/fs/cgroup");
  const CgroupHost host = ProbeCgroupsWith(files);
  EXPECT_EQ(host.v2_dir, "/sys/fs/cgroup");
  EXPECT_TRUE(host.v2_move_self);
  EXPECT_EQ(host.v2_enable, "+memory +pids");
  files.texts["/sys/fs/cgroup/cgroup.procs"] = "1\n20\n";
  EXPECT_FALSE(ProbeCgroupsWith(files).Usable(Controller::kMemory));
}

TEST(ProbeCgroups, ControllersMaySitOnBothVersions) {
  FakeFiles files;
  files.texts["/proc/self/cgroup"] = "3:memory:/\n0::/\n";
  files.texts["/proc/self/mountinfo"] =
      "33 30 0:4 / /cg/memory rw - cgroup cgroup rw,memory\n"
      "31 30 0:2 / /cg/unified rw - cgroup2 cgroup2 rw\n";
  files.AddV2("/cg/unified", "pids\n", "pids\n", "1\n2\n");
  files.MakeRealRoot("/cg/unified");
  files.Allow("/cg/unified");
  files.writable.insert("/cg/memory");
  const CgroupHost host = ProbeCgroupsWith(files);
  EXPECT_EQ(host.layout, CgroupLayout::kHybrid);
  EXPECT_EQ(host.at(Controller::kMemory).version, CgroupVersion::kV1);
  EXPECT_EQ(host.at(Controller::kPids).version, CgroupVersion::kV2);
  EXPECT_TRUE(host.Usable(Controller::kPids));
  EXPECT_EQ(host.v2_dir, "/cg/unified");
}

TEST(ProbeCgroups, WithoutProcItReportsInsteadOfFailing) {
  const CgroupHost host = ProbeCgroupsWith(FakeFiles());
  EXPECT_EQ(host.layout, CgroupLayout::kNone);
  EXPECT_EQ(host.at(Controller::kMemory).fix, "mount /proc");
}

TEST(ProbeCgroups, WithoutCgroupsItSaysSo) {
  FakeFiles files;
  files.texts["/proc/self/cgroup"] = "";
  files.texts["/proc/self/mountinfo"] = "25 1 0:23 / /sys rw - sysfs sysfs rw\n";
  const CgroupHost host = ProbeCgroupsWith(files);
  EXPECT_EQ(host.layout, CgroupLayout::kNone);
  EXPECT_EQ(host.at(Controller::kPids).why_not, "no cgroup file system is mounted");
}

TEST(ProbeCgroups, ThePrefixAppliesToEveryPathItReturns) {
  TempDir host_root;
  host_root.Write("proc/self/cgroup", "3:memory:/a\n");
  host_root.Write("proc/self/mountinfo", "33 30 0:4 / /cg/memory rw - cgroup cgroup rw,memory\n");
  host_root.Write("cg/memory/a/tasks", "");
  const Result<CgroupHost> host = ProbeCgroups(host_root.path());
  ASSERT_TRUE(host.ok());
  EXPECT_TRUE(host->Usable(Controller::kMemory)) << host->at(Controller::kMemory).why_not;
  EXPECT_EQ(host->at(Controller::kMemory).dir, host_root.path() + "/cg/memory/a");
}

TEST(ProbeCgroups, ThisHostIsDescribedCompletely) {
  const Result<CgroupHost> host = ProbeCgroups();
  ASSERT_TRUE(host.ok());
  EXPECT_NE(host->pid_namespace, 0U);
  for (const ControllerPlace& place : host->places) {
    EXPECT_EQ(place.usable, place.why_not.empty());
    EXPECT_EQ(place.usable, place.fix.empty());
    if (place.usable) {
      EXPECT_EQ(::access(place.dir.c_str(), W_OK), 0) << place.dir;
    }
  }
}

}  // namespace
}  // namespace coffer::limits
