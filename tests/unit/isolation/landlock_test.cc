// SPDX-License-Identifier: Apache-2.0
#include "isolation/landlock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "tests/support/run.h"

namespace coffer::isolation {
namespace {

using test::TempDir;

class Landlock : public ::testing::Test {
 protected:
  void SetUp() override {
    if (LandlockAbi() == 0) {
      GTEST_SKIP() << "this kernel has no Landlock";
    }
    dir_.MakeDir("read");
    dir_.MakeDir("write");
    dir_.MakeDir("none");
    for (const char* name : {"read/f", "write/f", "none/f"}) {
      dir_.Write(name, "text", 0666);
    }
  }
  // Runs `check` twice in children: free, where everything must work, and confined. The children answer with a word.
  static std::string InChild(const std::vector<LandlockRule>* rules,
                             const std::function<bool()>& check) {
    const pid_t child = ::fork();
    if (child == 0) {
      uint32_t failed = 0;
      if (rules != nullptr && (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
                               EnforceLandlock(LandlockAbi(), *rules, &failed) != 0)) {
        ::_exit(2);
      }
      ::_exit(check() ? 0 : 1);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    switch (WIFEXITED(status) ? WEXITSTATUS(status) : -1) {
      case 0:
        return "allowed";
      case 1:
        return "denied";
      case 2:
        return "not enforced";
      default:
        return "crashed";
    }
  }
  std::string Confined(const std::function<bool()>& check) {
    EXPECT_EQ(InChild(nullptr, check), "allowed") << "the control";
    const std::vector<LandlockRule> rules = {
        {dir_ / "read", landlock::kRead},
        {dir_ / "write", landlock::kRead | landlock::kChange},
        {dir_ / "read/f", landlock::kRead | landlock::kChange,
         true},  // rights of directories are left out on a file
        {"/nonexistent", landlock::kRead, false},
    };
    return InChild(&rules, check);
  }
  static bool Opens(const std::string& path, int flags) {
    const int fd = ::open(path.c_str(), flags | O_CLOEXEC, 0600);
    ::close(fd);
    return fd >= 0;
  }

  TempDir dir_;
};

TEST_F(Landlock, PathsWithoutARuleAreClosed) {
  EXPECT_EQ(Confined([&] { return Opens(dir_ / "none/f", O_RDONLY); }), "denied");
  EXPECT_EQ(Confined([&] { return Opens(dir_ / "none", O_RDONLY | O_DIRECTORY); }), "denied");
  EXPECT_EQ(Confined([&] { return Opens("/etc/passwd", O_RDONLY); }), "denied");
  EXPECT_EQ(Confined([&] { return ::execl("/bin/true", "true", nullptr) == 0; }), "denied");
}

TEST_F(Landlock, RulesGrantWhatTheySay) {
  EXPECT_EQ(Confined([&] { return Opens(dir_ / "read", O_RDONLY | O_DIRECTORY); }), "allowed");
  EXPECT_EQ(Confined([&] { return Opens(dir_ / "write/f", O_WRONLY | O_TRUNC); }), "allowed");
  EXPECT_EQ(Confined([&] { return Opens(dir_ / "read/f", O_WRONLY); }), "allowed")
      << "its own rule";
  EXPECT_EQ(Confined([&] { return Opens(dir_ / "read/new", O_WRONLY | O_CREAT); }), "denied");
  EXPECT_EQ(Confined([&] { return Opens(dir_ / "write/new", O_WRONLY | O_CREAT); }), "allowed");
  EXPECT_EQ(Confined([&] {
              ::unlink((dir_ / "write/pipe").c_str());
              return ::mkfifo((dir_ / "write/pipe").c_str(), 0600) == 0;
            }),
            "denied");
  EXPECT_EQ(Confined([&] {
              return ::rename((dir_ / "read/f").c_str(), (dir_ / "read/f2").c_str()) == 0 &&
                     ::rename((dir_ / "read/f2").c_str(), (dir_ / "read/f").c_str()) == 0;
            }),
            "denied");
}

TEST_F(Landlock, MovingBetweenTreesCannotGainRights) {
  if (LandlockAbi() < 2) {
    GTEST_SKIP() << "before ABI 2 every move is refused";
  }
  EXPECT_EQ(Confined([&] {
              ::unlink((dir_ / "none/linked").c_str());
              return ::link((dir_ / "write/f").c_str(), (dir_ / "none/linked").c_str()) == 0;
            }),
            "denied");
}

TEST_F(Landlock, NoTcpAtAll) {
  if (LandlockAbi() < 4) {
    GTEST_SKIP() << "TCP rules need ABI 4";
  }
  EXPECT_EQ(Confined([] {
              const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
              sockaddr_in address{};
              address.sin_family = AF_INET;
              address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
              return ::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
            }),
            "denied");
}

TEST_F(Landlock, FailuresAreReportedWithTheRule) {
  const std::vector<LandlockRule> rules = {{dir_ / "read", landlock::kRead},
                                           {dir_ / "missing", landlock::kRead}};
  EXPECT_EQ(InChild(nullptr,
                    [&] {
                      uint32_t failed = 99;
                      ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
                      return EnforceLandlock(LandlockAbi(), rules, &failed) == -ENOENT &&
                             failed == 1 && Opens(dir_ / "none/f", O_RDONLY);
                    }),
            "allowed")
      << "a required path that is missing: an error, and nothing was enforced";
  uint32_t failed = 0;
  EXPECT_EQ(EnforceLandlock(0, {}, &failed), -ENOSYS);
}

TEST_F(Landlock, ChildrenInheritTheDomain) {
  EXPECT_EQ(Confined([&] {
              const pid_t child = ::fork();
              if (child == 0) {
                ::_exit(Opens(dir_ / "none/f", O_RDONLY) ? 0 : 1);
              }
              int status = 0;
              ::waitpid(child, &status, 0);
              return WIFEXITED(status) && WEXITSTATUS(status) == 0;
            }),
            "denied");
}

}  // namespace
}  // namespace coffer::isolation
