// SPDX-License-Identifier: Apache-2.0
//
// RS: directories of the host that are not on a plain disk: what is put there must be counted, or must not be possible.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "tests/support/host.h"
#include "tests/support/verdicts.h"

namespace coffer::test {
namespace {

constexpr uid_t kUser = 48231;

constexpr char kSetAttribute[] = R"(
import errno, os, sys
name = sys.argv[1] + "/file"
open(name, "w").close()
try:
    os.setxattr(name, "user.note", b"x" * 1000)
    print("attribute: OPEN")
except OSError as e:
    print("attribute: REFUSED", e.errno == errno.EOPNOTSUPP)
)";

// Root prepares mounts that only this test sees; an ordinary user makes the calls.
class HostMounts : public LevelTest {
 protected:
  void SetUp() override {
    LevelTest::SetUp();
    if (!IsRoot()) {
      GTEST_SKIP() << "only root mounts file systems";
    }
    ASSERT_EQ(chmod(dir_.path().c_str(), 0755), 0);
    std::filesystem::copy_file(CofferPath(), coffer_);
    ASSERT_EQ(chmod(coffer_.c_str(), 0755), 0);
    for (const std::string& dir : {outer_, inner_, plain_}) {
      ASSERT_EQ(mkdir(dir.c_str(), 0755), 0);
      ASSERT_EQ(chown(dir.c_str(), kUser, kUser), 0);
    }
    const RunResult simple = RunAsUser(plain_, {"true"});
    ASSERT_EQ(simple.exit, 0) << "an ordinary user cannot use this level\n" << simple.Describe();
  }

  // In a mount namespace of its own, with a file system at inner_.
  template <typename Run>
  void WithMount(Run run, const char* type = "tmpfs", const char* options = "size=64m,mode=0777") {
    std::thread([&] {
      ASSERT_EQ(unshare(CLONE_NEWNS), 0);
      ASSERT_EQ(mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr), 0);
      ASSERT_EQ(mount("none", inner_.c_str(), type, 0, options), 0);
      run();
    }).join();
  }

  RunResult RunAsUser(const std::string& writable, const Strings& command) const {
    const std::string id = std::to_string(kUser);
    Strings argv = {"/usr/bin/setpriv",
                    "--reuid=" + id,
                    "--regid=" + id,
                    "--clear-groups",
                    "/usr/bin/env",
                    "-i",
                    "PATH=/usr/bin:/bin",
                    "HOME=" + dir_.path() + "/home",
                    coffer_,
                    "run",
                    "--level",
                    container() ? "container" : "process",
                    "--rw",
                    writable + ":" + writable,
                    "--"};
    argv.insert(argv.end(), command.begin(), command.end());
    return RunProgram(argv);
  }

  TempDir dir_;
  const std::string coffer_ = dir_.path() + "/coffer";
  const std::string plain_ = dir_.path() + "/plain";
  const std::string outer_ = dir_.path() + "/outer";
  const std::string inner_ = outer_ + "/inner";
};

// Attributes of files in a tmpfs are kernel memory that stays, and no block of the file shows them.
TEST_P(HostMounts, RS_07_NoAttributesWhereTheyAreNotCounted) {
  WithMount([this] {
    const RunResult outside = RunProgram({"/usr/bin/python3", "-c", kSetAttribute, inner_});
    if (Contains(outside.out, "attribute: REFUSED True")) {
      GTEST_SKIP() << "attributes in a tmpfs need Linux 6.6";
    }
    EXPECT_TRUE(Contains(outside.out, "attribute: OPEN")) << "NO-CONTROL\n" << outside.Describe();
    ASSERT_EQ(unlink((inner_ + "/file").c_str()), 0);
    const RunResult inside = RunAsUser(inner_, {"python3", "-c", kSetAttribute, inner_});
    EXPECT_TRUE(Contains(inside.out, "attribute: REFUSED True")) << inside.Describe();
  });
}

// At the process level there is no mount namespace to leave it out of.
TEST_P(HostMounts, RS_07_NoFileSystemBelowAWritableDirectory) {
  const std::string file = inner_ + "/file";
  const RunResult before = RunAsUser(outer_, {"touch", file});
  EXPECT_EQ(before.exit, 0) << "NO-CONTROL\n" << before.Describe();
  WithMount([&] {
    const RunResult inside = RunAsUser(outer_, {"touch", file});
    EXPECT_NE(inside.exit, 0) << inside.Describe();
    EXPECT_TRUE(Contains(inside.err, "another file system is mounted")) << inside.Describe();
    EXPECT_FALSE(std::filesystem::exists(file)) << "OPEN";
  });
}

// A file of hugetlbfs that is mapped takes huge pages of the host, with no flag that a filter sees, and the message queues of the
// host are not the boundary's.
TEST_P(HostMounts, SH_06_NoFileOfAPoolOfTheHost) {
  const std::string file = inner_ + "/file";
  for (const auto& [type, options] :
       {std::pair{"hugetlbfs", "mode=0777"}, std::pair{"mqueue", ""}}) {
    SCOPED_TRACE(type);
    WithMount(
        [&] {
          ASSERT_EQ(chmod(inner_.c_str(), 0777), 0);
          const RunResult outside = RunProgram({"/usr/bin/touch", file});
          EXPECT_EQ(outside.exit, 0) << "NO-CONTROL\n" << outside.Describe();
          EXPECT_EQ(unlink(file.c_str()), 0) << "NO-CONTROL";
          const RunResult inside = RunAsUser(inner_, {"touch", file});
          EXPECT_EQ(inside.exit, 120) << inside.Describe();
          EXPECT_TRUE(Contains(inside.err, "policy.path.kind")) << inside.Describe();
          EXPECT_FALSE(std::filesystem::exists(file)) << "OPEN";
        },
        type, options);
  }
}

INSTANTIATE_TEST_SUITE_P(Level, HostMounts, ::testing::Values("container", "process"),
                         LevelTestName);

}  // namespace
}  // namespace coffer::test
