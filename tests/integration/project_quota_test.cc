// SPDX-License-Identifier: Apache-2.0
//
// Where the file system has project quotas the kernel keeps a call to its disk cap, instead of a watch. Kernels without them
// skip this by name; the virtual machine has them.
#include "limits/project_quota.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/fs.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

#include "base/unique_fd.h"
#include "policy/envelope.h"
#include "tests/support/run.h"

namespace coffer::test {
namespace {

constexpr uid_t kUser = 48219;

// Writes 20 MiB into a file that lost its name, then 20 MiB into one that has one.
constexpr char kWriter[] = R"(
import errno, os, sys
os.chdir(sys.argv[1])
def fill(name, keep):
    file = os.open(name, os.O_WRONLY | os.O_CREAT)
    if not keep:
        os.unlink(name)
    try:
        for _ in range(320):
            os.write(file, b"x" * 65536)
        print("OPEN")
    except OSError as e:
        print(errno.errorcode[e.errno])
    os.close(file)
fill("gone", False)
os.makedirs("sub/deeper")
os.mkfifo("sub/fifo")
fill("sub/deeper/named", True)
)";

class ProjectQuotas : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!IsRoot()) {
      GTEST_SKIP() << "only root sets quotas";
    }
    const std::string image = dir_.path() + "/image";
    disk_ = dir_.MakeDir("disk", 0755);
    const UniqueFd file(open(image.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    ASSERT_EQ(ftruncate(file.get(), 96 << 20), 0);
    const RunResult made = RunProgram(
        {"/usr/sbin/mkfs.ext4", "-q", "-O", "quota,project", "-E", "quotatype=prjquota", image});
    if (made.exit != 0) {
      GTEST_SKIP() << "mkfs.ext4 is missing, or knows no project quotas: " << made.err;
    }
    const RunResult mounted = RunProgram({"/usr/bin/mount", "-o", "loop,prjquota", image, disk_});
    if (mounted.exit != 0) {
      GTEST_SKIP() << "this kernel has no project quotas: " << mounted.err;
    }
    mounted_ = true;
    out_ = disk_ + "/out";
    ASSERT_EQ(mkdir(out_.c_str(), 0755), 0);
  }
  void TearDown() override {
    if (mounted_) {
      EXPECT_EQ(RunProgram({"/usr/bin/umount", disk_}).exit, 0);
    }
  }

  static fsxattr Attributes(const std::string& path) {
    fsxattr attributes{};
    const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    EXPECT_EQ(ioctl(file.get(), FS_IOC_FSGETXATTR, &attributes), 0) << path;
    return attributes;
  }
  static bool InAProject(const std::string& path) {
    const fsxattr attributes = Attributes(path);
    return attributes.fsx_projid != 0 || (attributes.fsx_xflags & FS_XFLAG_PROJINHERIT) != 0;
  }
  Strings Flags() const {
    return {"--rw", out_, "--disk", "5MiB", "--cpu", "100s", "--wall", "100s"};
  }
  static Json Disk(const RunResult& result) { return result.receipt["limits"]["disk"]; }

  TempDir dir_;
  std::string disk_;
  std::string out_;
  bool mounted_ = false;
};

TEST_F(ProjectQuotas, TheKernelRefusesWhatIsBeyondTheCap) {
  const RunResult result = RunCoffer(Flags(), {"python3", "-c", kWriter, out_});
  EXPECT_EQ(result.exit, 0) << result.Describe();
  EXPECT_EQ(result.out, "EDQUOT\nEDQUOT\n") << result.Describe();
  EXPECT_EQ(Disk(result)["enforced"], true) << result.Describe();
  EXPECT_EQ(Disk(result)["breached"], true) << result.Describe();
  EXPECT_TRUE(Contains(result.receipt["isolation"]["layers"].dump(), "disk-quota"));
  // Nothing of it stays.
  for (const char* name : {"", "/sub", "/sub/deeper", "/sub/deeper/named"}) {
    EXPECT_FALSE(InAProject(out_ + name)) << name;
  }
  const std::string other = disk_ + "/other";
  ASSERT_TRUE(UniqueFd(open(other.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600)).valid());
  EXPECT_EQ(rename(other.c_str(), (out_ + "/sub/other").c_str()), 0);
}

TEST_F(ProjectQuotas, TheNumberOfFilesIsBoundedToo) {
  ASSERT_EQ(chmod(out_.c_str(), 0777), 0);
  // How many files an ordinary user can make there, of 100.
  const auto make_files = [&] {
    const pid_t child = fork();
    if (child == 0) {
      int made = 0;
      if (setresgid(kUser, kUser, kUser) == 0 && setresuid(kUser, kUser, kUser) == 0) {
        for (; made < 100; ++made) {
          const std::string name = out_ + "/" + std::to_string(made);
          if (!UniqueFd(open(name.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600)).valid()) {
            break;
          }
        }
      }
      _exit(made);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WEXITSTATUS(status);
  };
  policy::Limits caps;
  caps.inodes = 20;
  {
    const std::optional<limits::ProjectQuota> quota =
        limits::ProjectQuota::Take(UniqueFd(open(out_.c_str(), O_PATH | O_CLOEXEC)).get(), caps);
    ASSERT_TRUE(quota.has_value());
    EXPECT_FALSE(quota->Full());
    EXPECT_EQ(make_files(), 20);
    EXPECT_TRUE(quota->Full());
  }
  EXPECT_FALSE(InAProject(out_));
  EXPECT_EQ(make_files(), 100) << "NO-CONTROL";
}

TEST_F(ProjectQuotas, ADirectoryWithFilesIsWatched) {
  ASSERT_TRUE(
      UniqueFd(open((out_ + "/old").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600)).valid());
  const RunResult result = RunCoffer(Flags(), {"python3", "-c", kWriter, out_});
  EXPECT_EQ(result.ErrorClass(), "limit.disk") << "NO-CONTROL\n" << result.Describe();
  EXPECT_EQ(Disk(result)["enforced"], false) << result.Describe();
  EXPECT_FALSE(InAProject(out_));
}

TEST_F(ProjectQuotas, WhatAKilledSupervisorLeftIsTakenAway) {
  Background killed({CofferPath(), "run", "--rw", out_, "--disk", "5MiB", "--", "sh", "-c",
                     "mkdir " + out_ + "/sub; echo made; sleep 100"});
  ASSERT_TRUE(killed.WaitForOutput("made")) << killed.err();
  // A neighbour that has the same directory leaves the wall of the first one alone.
  const RunResult beside = RunCoffer(Flags(), {"true"});
  EXPECT_EQ(Disk(beside)["enforced"], false) << beside.Describe();
  EXPECT_TRUE(InAProject(out_));
  killed.Signal(SIGKILL);
  killed.Wait();
  EXPECT_TRUE(InAProject(out_)) << "NO-CONTROL";
  EXPECT_TRUE(InAProject(out_ + "/sub")) << "NO-CONTROL";
  EXPECT_EQ(RunCoffer(Flags(), {"true"}).exit, 0);
  EXPECT_FALSE(InAProject(out_));
  EXPECT_FALSE(InAProject(out_ + "/sub"));
}

TEST_F(ProjectQuotas, AnAdministratorsProjectIsLeftAlone) {
  fsxattr attributes = Attributes(out_);
  attributes.fsx_projid = 7;
  attributes.fsx_xflags |= FS_XFLAG_PROJINHERIT;
  const UniqueFd file(open(out_.c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_EQ(ioctl(file.get(), FS_IOC_FSSETXATTR, &attributes), 0);
  const RunResult result = RunCoffer(Flags(), {"true"});
  EXPECT_EQ(result.exit, 0) << result.Describe();
  EXPECT_EQ(Disk(result)["enforced"], false) << result.Describe();
  EXPECT_EQ(Attributes(out_).fsx_projid, 7U);
}

}  // namespace
}  // namespace coffer::test
