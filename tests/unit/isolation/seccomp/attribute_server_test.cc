// SPDX-License-Identifier: Apache-2.0
//
// The server on the running kernel: a child under the filter of the process level changes metadata, and the host's view
// of the files says what came of it.
#include "isolation/seccomp/attribute_server.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <atomic>
#include <functional>

#include "base/sys.h"
#include "isolation/seccomp/install.h"
#include "isolation/seccomp/notify.h"
#include "isolation/seccomp/oci_import.h"
#include "isolation/seccomp/shared_host.h"
#include "seccomp_testing.h"
#include "tests/support/run.h"

namespace coffer::isolation {
namespace {

using policy::SyscallProfile;
using raw::Arg;
using raw::Syscall;

struct SharedFiles {
  std::atomic<int> listener;
  std::atomic<int> taken;
  long answer;
};

class Attributes : public ::testing::Test {
 protected:
  const test::TempDir dir_;
  const std::string tree_ = dir_.MakeDir("tree");
  const std::string file_ = dir_.Write("tree/file", "x", 0600);
  const std::string victim_ = dir_.Write("victim", "x", 0600);
  Profile profile_ = BuiltinProfile(SyscallProfile::kDefault, {});
  uint64_t refused_ = 0;  // by the last call

  static mode_t ModeOf(const std::string& path) {
    struct stat info = {};
    EXPECT_EQ(::lstat(path.c_str(), &info), 0) << path;
    return info.st_mode & 07777;
  }

  // What `body` answers in a child under the filter, served from here.
  long Confined(const std::function<long()>& body) {
    BoundaryPlan plan;
    plan.level = policy::Level::kProcess;
    plan.landlock = {{tree_, landlock::kRead | landlock::kChange},
                     {dir_.path(), landlock::kRead},
                     {"/dev/null", landlock::kReadFile | landlock::kWriteFile}};
    auto served = Compile(profile_, NativeSyscalls());
    Profile narrow = profile_;
    KeepToOwnProcess(7, narrow);
    const auto program = Compile(narrow, NativeSyscalls());
    EXPECT_TRUE(served.ok() && program.ok());
    plan.served = std::move(served).value();

    auto* shared = static_cast<SharedFiles*>(::mmap(
        nullptr, sizeof(SharedFiles), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    const pid_t child = ::fork();
    if (child == 0) {
      ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
      const long listener = InstallFilter(*program);
      shared->listener = static_cast<int>(listener < 0 ? -1 : listener + 1);
      while (shared->taken == 0) {
        ::sched_yield();
      }
      shared->answer = body();
      ::_exit(0);
    }
    while (shared->listener == 0) {
      ::sched_yield();
    }
    EXPECT_GT(shared->listener, 0);
    const UniqueFd pidfd(static_cast<int>(Syscall(SYS_pidfd_open, child, 0)));
    const UniqueFd listener(
        static_cast<int>(Syscall(SYS_pidfd_getfd, pidfd.get(), shared->listener - 1, 0)));
    DenialRecorder recorder;
    recorder.ServeCalls(plan, ::geteuid(), {}, 0);
    shared->taken = 1;
    for (bool ended = false; !ended;) {
      pollfd waiting[2] = {{listener.get(), POLLIN, 0}, {pidfd.get(), POLLIN, 0}};
      EXPECT_GT(::poll(waiting, 2, 20000), 0);
      ended = waiting[1].revents != 0;
      EXPECT_TRUE(recorder.Serve(listener.get()).ok());
    }
    ::waitpid(child, nullptr, 0);
    refused_ = recorder.total();
    const long answer = shared->answer;
    ::munmap(shared, sizeof(SharedFiles));
    return answer;
  }

  static long Chmod(const std::string& path, mode_t mode, int at = AT_FDCWD) {
    return Syscall(SYS_fchmodat, at, Arg(path.c_str()), mode);
  }
};

TEST_F(Attributes, InsideByEveryKindOfName) {
  EXPECT_EQ(Confined([&] { return Chmod(file_, 0640); }), 0);
  EXPECT_EQ(ModeOf(file_), 0640U);
  EXPECT_EQ(Confined([&] { return ::chdir(tree_.c_str()) + Chmod("file", 0604); }), 0);
  EXPECT_EQ(ModeOf(file_), 0604U);
  EXPECT_EQ(Confined([&] {
              const int above = ::open(dir_.path().c_str(), O_RDONLY | O_DIRECTORY);
              return Chmod("tree//./file", 0611, above);
            }),
            0);
  EXPECT_EQ(ModeOf(file_), 0611U);
  EXPECT_EQ(Confined([&] { return Syscall(SYS_fchmod, ::open(file_.c_str(), O_RDONLY), 0622); }),
            0);
  EXPECT_EQ(ModeOf(file_), 0622U);
  EXPECT_EQ(Confined([&] {
              const int fd = ::open(file_.c_str(), O_PATH | O_NOFOLLOW);
              return Chmod("/proc/self/fd/" + std::to_string(fd), 0633);
            }),
            0)
      << "as libc does it";
  EXPECT_EQ(ModeOf(file_), 0633U);
  EXPECT_EQ(Confined([&] { return Chmod(tree_, 0750); }), 0) << "the tree itself";
  EXPECT_EQ(ModeOf(tree_), 0750U);
  EXPECT_EQ(refused_, 0U);
}

TEST_F(Attributes, OutsideIsRefusedAndRecorded) {
  ASSERT_EQ(::symlink(victim_.c_str(), (tree_ + "/absolute").c_str()), 0);
  ASSERT_EQ(::symlink("../victim", (tree_ + "/relative").c_str()), 0);
  ASSERT_EQ(::symlink("/proc/self/root", (tree_ + "/magic").c_str()), 0);
  for (const std::string& way :
       {victim_, tree_ + "/absolute", tree_ + "/relative", tree_ + "/../victim",
        tree_ + "/magic" + victim_, dir_.path(), std::string("/dev/null"), tree_ + "2"}) {
    EXPECT_EQ(Confined([&] { return Chmod(way, 0666); }), -EPERM) << way;
    EXPECT_EQ(refused_, 1U) << way;
  }
  EXPECT_EQ(ModeOf(victim_), 0600U);
  for (const char* way : {"/proc/self/fd/", "/proc/self/fd/0", "/proc/self/fd/../fd/"}) {
    EXPECT_EQ(Confined([&] {
                const int fd = ::open(victim_.c_str(), O_PATH);
                return Chmod(way + std::to_string(fd), 0666);
              }),
              -EPERM)
        << way;
  }
  for (const int flags : {O_RDONLY, O_PATH}) {
    EXPECT_EQ(Confined([&] {
                const int fd = ::open(victim_.c_str(), flags);
                return Syscall(SYS_utimensat, fd, Arg(""), 0, AT_EMPTY_PATH);
              }),
              -EPERM);
  }
  EXPECT_EQ(Confined([&] { return Syscall(SYS_fchmod, ::open(victim_.c_str(), O_RDONLY), 0666); }),
            -EPERM);
  EXPECT_EQ(ModeOf(victim_), 0600U);
  // Control: without the filter each of the links leads there.
  EXPECT_EQ(Chmod(tree_ + "/relative", 0666), 0);
  EXPECT_EQ(ModeOf(victim_), 0666U);
}

TEST_F(Attributes, TheKernelsOwnAnswers) {
  EXPECT_EQ(Confined([&] { return Chmod(tree_ + "/none", 0600); }), -ENOENT);
  EXPECT_EQ(Confined([&] { return Chmod(file_ + "/below", 0600); }), -ENOTDIR);
  EXPECT_EQ(Confined([&] { return Chmod("", 0600); }), -ENOENT);
  EXPECT_EQ(Confined([&] { return Syscall(SYS_fchmod, 77, 0600); }), -EBADF);
  EXPECT_EQ(refused_, 0U);
  EXPECT_EQ(Confined([&] { return Syscall(SYS_fchmodat, AT_FDCWD, 8, 0600); }), -EPERM)
      << "memory that cannot be read";
  EXPECT_EQ(refused_, 1U);
  EXPECT_EQ(Confined([&] {
              const int fd = ::open(file_.c_str(), O_RDONLY);
              ::unlink(file_.c_str());
              return Syscall(SYS_fchmod, fd, 0600);
            }),
            -EPERM)
      << "a file without a name lies in no tree";
}

TEST_F(Attributes, TheProfileStillDecides) {
  const auto own = [&] {
    return Syscall(SYS_fchownat, AT_FDCWD, Arg(file_.c_str()), static_cast<int>(::getuid()), -1, 0);
  };
  EXPECT_EQ(Confined(own), 0);
  EXPECT_EQ(Confined([&] { return Chmod(file_, 04755); }), -EPERM) << "setuid";
  EXPECT_EQ(refused_, 1U);
  profile_ = BuiltinProfile(SyscallProfile::kStrict, {});
  EXPECT_EQ(Confined(own), -EPERM) << "strict has no owners";
  EXPECT_EQ(refused_, 1U);
  Result<Profile> imported = ImportOciProfile(
      R"({"defaultAction": "SCMP_ACT_ALLOW",
          "syscalls": [{"names": ["fchmodat"], "action": "SCMP_ACT_ERRNO", "errnoRet": 1}]})",
      NativeImportContext({}));
  ASSERT_TRUE(imported.ok()) << imported.error().message;
  profile_ = std::move(imported).value();
  EXPECT_EQ(Confined([&] { return Chmod(file_, 0644); }), -EPERM);
  EXPECT_EQ(Confined([&] { return Syscall(SYS_fchmod, ::open(file_.c_str(), O_RDONLY), 0644); }),
            0);
  EXPECT_EQ(ModeOf(file_), 0644U);
}

TEST_F(Attributes, TimesAndOwners) {
  const timespec past[2] = {{1000, 1}, {2000, 2}};
  EXPECT_EQ(
      Confined([&] { return Syscall(SYS_utimensat, AT_FDCWD, Arg(file_.c_str()), Arg(past), 0); }),
      0);
  struct stat info = {};
  ASSERT_EQ(::stat(file_.c_str(), &info), 0);
  EXPECT_EQ(info.st_atim.tv_sec, 1000);
  EXPECT_EQ(info.st_mtim.tv_sec, 2000);
  EXPECT_EQ(info.st_mtim.tv_nsec, 2);
  EXPECT_EQ(Confined([&] { return Syscall(SYS_utimensat, AT_FDCWD, Arg(file_.c_str()), 0, 0); }),
            0);
  ASSERT_EQ(::stat(file_.c_str(), &info), 0);
  EXPECT_GT(info.st_mtim.tv_sec, 1000000);
  for (const auto& [uid, gid] : {std::pair{12345, -1}, {-1, 12345}, {0, 12345}}) {
    EXPECT_EQ(
        Confined([&] { return Syscall(SYS_fchownat, AT_FDCWD, Arg(file_.c_str()), uid, gid, 0); }),
        -EPERM)
        << "nothing is given away, not even by root";
  }
}

TEST_F(Attributes, ExtendedAttributesOfTheUserOnly) {
  const auto set = [&](const char* name) {
    return Confined(
        [&] { return Syscall(SYS_setxattr, Arg(file_.c_str()), Arg(name), Arg("value"), 5, 0); });
  };
  const long plain = Syscall(SYS_setxattr, Arg(file_.c_str()), Arg("user.plain"), Arg("v"), 1, 0);
  EXPECT_EQ(set("user.note"), plain) << "what the file system says";
  if (plain == 0) {
    char value[16] = {};
    EXPECT_EQ(::getxattr(file_.c_str(), "user.note", value, sizeof value), 5);
    EXPECT_STREQ(value, "value");
    EXPECT_EQ(
        Confined([&] { return Syscall(SYS_removexattr, Arg(file_.c_str()), Arg("user.note")); }),
        0);
    EXPECT_LT(::getxattr(file_.c_str(), "user.note", value, sizeof value), 0);
  }
  EXPECT_EQ(set("security.capability"), -EPERM);
  EXPECT_EQ(set("trusted.note"), -EPERM);
  EXPECT_EQ(set("system.posix_acl_access"), -EOPNOTSUPP);
}

TEST_F(Attributes, FilesOfOthersStayAsTheyAre) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "only root can make a file of another user";
  }
  ASSERT_EQ(::chown(file_.c_str(), 12345, 12345), 0);
  EXPECT_EQ(Confined([&] { return Chmod(file_, 0666); }), -EPERM);
  EXPECT_EQ(ModeOf(file_), 0600U);
  EXPECT_EQ(Chmod(file_, 0666), 0) << "the control: root itself may";
}

}  // namespace
}  // namespace coffer::isolation
