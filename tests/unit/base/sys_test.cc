// SPDX-License-Identifier: Apache-2.0
#include "base/sys.h"

#include <dirent.h>
#include <errno.h>
#include <gtest/gtest.h>
#include <linux/openat2.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "tests/support/run.h"

namespace coffer::sys {
namespace {

using test::TempDir;

bool ClosesOnExec(int fd) { return (::fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0; }

TEST(Sys, RawAnswersTheNegativeErrno) {
  EXPECT_EQ(raw::Syscall(SYS_close, -1), -EBADF);
  EXPECT_EQ(raw::Syscall(SYS_getpid), ::getpid());
}

TEST(Sys, ReadFileKeepsItsLimit) {
  const TempDir dir;
  const std::string path = dir.Write("f", std::string(10000, 'x'));
  EXPECT_EQ(ReadFile(path, 10000)->size(), 10000U);
  const Result<std::string> longer = ReadFile(path, 9999);
  ASSERT_FALSE(longer.ok());
  EXPECT_EQ(longer.error().sys_errno, EFBIG);
  EXPECT_NE(longer.error().message.find(path), std::string::npos);
  EXPECT_EQ(*ReadFile(dir.Write("empty", ""), 0), "");
  EXPECT_FALSE(ReadFile("/dev/zero", 100000).ok());
}

TEST(Sys, ReadFileWorksWhereSizesAreZero) {
  const Result<std::string> status = ReadFile("/proc/self/status");
  ASSERT_TRUE(status.ok());
  EXPECT_NE(status->find("Pid:"), std::string::npos);
}

TEST(Sys, ErrorsSayWhatAndWhy) {
  const Result<std::string> missing = ReadFile("/nonexistent/file");
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().sys_errno, ENOENT);
  EXPECT_EQ(missing.error().message, "cannot open /nonexistent/file: No such file or directory");
  EXPECT_EQ(missing.error().kind, ErrorKind::kHost);
}

TEST(Sys, OpenNoLinksRefusesLinksAnywhere) {
  const TempDir dir;
  dir.MakeDir("real");
  dir.Write("real/file", "x");
  ASSERT_EQ(::symlink("real", (dir / "link").c_str()), 0);
  ASSERT_EQ(::symlink("file", (dir / "real/alias").c_str()), 0);
  ASSERT_TRUE(OpenNoLinks(AT_FDCWD, dir / "real/file", O_RDONLY).ok()) << "the control";
  ASSERT_TRUE(Open(dir / "link/file", O_RDONLY).ok()) << "the control";
  for (const char* name : {"link/file", "link", "real/alias", "link/alias"}) {
    const Result<UniqueFd> fd = OpenNoLinks(AT_FDCWD, dir / name, O_PATH);
    ASSERT_FALSE(fd.ok()) << name;
    EXPECT_EQ(fd.error().sys_errno, ELOOP) << name;
  }
  EXPECT_FALSE(OpenNoLinks(AT_FDCWD, "/proc/self/exe", O_PATH).ok());
  const UniqueFd held = std::move(Open(dir / "real/file", O_RDONLY)).value();
  EXPECT_FALSE(
      OpenNoLinks(AT_FDCWD, "/proc/thread-self/fd/" + std::to_string(held.get()), O_PATH).ok())
      << "a magic link";
}

TEST(Sys, DescriptorsCloseOnExec) {
  const TempDir dir;
  const std::string path = dir.Write("f", "x");
  EXPECT_TRUE(ClosesOnExec(Open(path, O_RDONLY)->get()));
  EXPECT_TRUE(ClosesOnExec(OpenNoLinks(AT_FDCWD, path, O_RDONLY)->get()));
  const Result<Pipe> pipe = MakePipe();
  ASSERT_TRUE(pipe.ok());
  EXPECT_TRUE(ClosesOnExec(pipe->read_end.get()));
  EXPECT_TRUE(ClosesOnExec(pipe->write_end.get()));
}

TEST(Sys, WriteFileNeverCreatesOrFollowsTheEnd) {
  const TempDir dir;
  EXPECT_FALSE(WriteFile(dir / "new", "x").ok());
  EXPECT_FALSE(test::Exists(dir / "new"));
  const std::string path = dir.Write("old", "");
  ASSERT_TRUE(WriteFile(path, "text").ok());
  EXPECT_EQ(*ReadFile(path), "text");
  EXPECT_FALSE(WriteFile("/dev/full", "x").ok());
}

TEST(Sys, WriteAllGoesOnAfterShortWrites) {
  const Result<Pipe> pipe = MakePipe();
  ASSERT_TRUE(pipe.ok());
  const std::string data(1 << 20, 'x');  // more than a pipe holds
  const pid_t child = ::fork();
  if (child == 0) {
    ::_exit(WriteAll(pipe->write_end.get(), data).ok() ? 0 : 1);
  }
  std::string got;
  while (got.size() < data.size()) {
    char buffer[4096];
    const ssize_t n = ::read(pipe->read_end.get(), buffer, sizeof buffer);
    ASSERT_GT(n, 0);
    got.append(buffer, static_cast<size_t>(n));
  }
  EXPECT_EQ(got, data);
  ::waitpid(child, nullptr, 0);
}

TEST(Sys, ListDirNamesEverything) {
  const TempDir dir;
  for (int i = 0; i < 700; ++i) {  // more than one buffer of the kernel's
    dir.Write("some-rather-long-name-" + std::to_string(i), "");
  }
  dir.MakeDir("d");
  const UniqueFd fd = std::move(Open(dir.path(), O_RDONLY | O_DIRECTORY)).value();
  const Result<std::vector<DirEntry>> entries = ListDir(fd.get());
  ASSERT_TRUE(entries.ok());
  EXPECT_EQ(entries->size(), 701U);
  EXPECT_TRUE(std::any_of(entries->begin(), entries->end(), [](const DirEntry& entry) {
    return entry.name == "d" && entry.type == DT_DIR;
  }));
}

TEST(Sys, OpenAt2DoesNotMindRenamesElsewhere) {
  const TempDir dir;
  dir.Write("file", "");
  dir.Write("first", "");
  const Result<UniqueFd> root = Open(dir / ".", O_PATH | O_DIRECTORY);
  ASSERT_TRUE(root.ok());
  const std::string path = "../././../file";
  std::atomic<bool> stop = false;
  std::thread renames([&] {
    while (!stop) {
      ::rename((dir / "first").c_str(), (dir / "second").c_str());
      ::rename((dir / "second").c_str(), (dir / "first").c_str());
    }
  });
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = RESOLVE_IN_ROOT;
  const auto plain = [&] {
    const UniqueFd fd(static_cast<int>(raw::Syscall(
        SYS_openat2, root->get(), raw::Arg(path.c_str()), raw::Arg(&how), sizeof(how))));
    return fd.valid();
  };
  EXPECT_TRUE(test::WaitUntil([&] { return !plain(); })) << "NO-CONTROL: nothing was in the way";
  for (int i = 0; i < 20'000; ++i) {
    const UniqueFd fd(static_cast<int>(OpenAt2(root->get(), path, O_PATH, RESOLVE_IN_ROOT)));
    ASSERT_TRUE(fd.valid()) << i;
  }
  stop = true;
  renames.join();
}

TEST(Sys, ExistsAndLinksAndDirectories) {
  const TempDir dir;
  EXPECT_FALSE(*Exists(dir / "x"));
  EXPECT_FALSE(*Exists(dir.Write("f", "") + "/below"));
  ASSERT_TRUE(MakeDirAt(AT_FDCWD, dir / "d", 0700).ok());
  EXPECT_TRUE(*Exists(dir / "d"));
  EXPECT_FALSE(MakeDirAt(AT_FDCWD, dir / "d", 0700).ok());
  ASSERT_TRUE(RemoveDirAt(AT_FDCWD, dir / "d").ok());
  EXPECT_FALSE(*Exists(dir / "d"));
  ASSERT_EQ(::symlink("target", (dir / "link").c_str()), 0);
  EXPECT_EQ(*ReadLinkAt(AT_FDCWD, dir / "link"), "target");
  // Documented: a last link is not followed.
  EXPECT_TRUE(*Exists(dir / "link")) << "a dangling link is there";
}

}  // namespace
}  // namespace coffer::sys
