// SPDX-License-Identifier: Apache-2.0
#include "daemon/role.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "isolation/landlock.h"
#include "tests/support/run.h"

namespace coffer::daemon {
namespace {

// What a process says after it gave up writing outside `state`: one bit for each attempt that worked.
int Attempts(const test::TempDir& dir, bool enforced) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    if (enforced && !EnforceWritesOnlyIn(dir / "state", dir / "run").ok()) {
      ::_exit(100);
    }
    const auto writes = [](const std::string& path) {
      const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
      return fd >= 0 && ::write(fd, "x", 1) == 1;
    };
    const std::pair<int, std::function<bool()>> attempts[] = {
        {1, [&] { return writes(dir / "config/backdoor.toml"); }},
        {2, [&] { return writes(dir / "config/coffer.toml"); }},
        {4, [&] { return ::rename((dir / "state/a").c_str(), (dir / "config/a").c_str()) == 0; }},
        {8, [&] { return writes(dir / "state/b"); }},
        {16, [&] { return ::unlink((dir / "run/coffer.sock").c_str()) == 0; }},
        {32,
         [&] { return ::open((dir / "config/coffer.toml").c_str(), O_RDONLY | O_CLOEXEC) >= 0; }},
    };
    int worked = 0;
    for (const auto& [bit, attempt] : attempts) {
      worked |= attempt() ? bit : 0;
    }
    ::_exit(worked);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(pid, &status, 0), pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// Started by an ordinary user the gateway has that user's uid, and still cannot write the user's manifests.
TEST(RoleWrites, OnlyTheStateDirectoryCanBeChanged) {
  if (isolation::LandlockAbi() < 2) {
    GTEST_SKIP() << "the kernel has no Landlock that knows renames";
  }
  const auto make = [](const test::TempDir& dir) {
    for (const char* name : {"state", "config", "run"}) {
      dir.MakeDir(name);
    }
    dir.Write("state/a", "");
    dir.Write("config/coffer.toml", "");
    dir.Write("run/coffer.sock", "");
  };
  const test::TempDir bounded;
  make(bounded);
  EXPECT_EQ(Attempts(bounded, true), 8 | 16 | 32);
  const test::TempDir control;
  make(control);
  EXPECT_EQ(Attempts(control, false), 63) << "without it everything works";
}

}  // namespace
}  // namespace coffer::daemon
