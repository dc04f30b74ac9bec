// SPDX-License-Identifier: Apache-2.0
#include "isolation/host_path.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <set>
#include <thread>

#include "isolation/fifo_search.h"
#include "tests/support/run.h"

namespace coffer::isolation {
namespace {

using policy::Access;
using test::TempDir;

TEST(CleanPath, Table) {
  const std::pair<const char*, const char*> accepted[] = {
      {"/", "/"},         {"//", "/"},         {"/.", "/"},        {"/a", "/a"},
      {"/a/", "/a"},      {"//a///b", "/a/b"}, {"/a/./b", "/a/b"}, {"/a/b/.", "/a/b"},
      {"/a..b", "/a..b"}, {"/...", "/..."},    {"/a b", "/a b"},   {"/\xc3\xa4", "/\xc3\xa4"},
  };
  for (const auto& [given, clean] : accepted) {
    const Result<std::string> path = CleanPath(given);
    ASSERT_TRUE(path.ok()) << given;
    EXPECT_EQ(*path, clean) << given;
  }
  for (const char* given : {"", "..", "/..", "/a/..", "/a/../b", "../x", "/a/b/../../c", "/a\nb",
                            "/a\tb", "/\x1b[0m", "/\x7f"}) {
    const Result<std::string> path = CleanPath(given);
    ASSERT_FALSE(path.ok()) << given;
    EXPECT_EQ(path.error().kind, ErrorKind::kRefused) << given;
  }
  EXPECT_FALSE(CleanPath(std::string_view("/a\0b", 4)).ok());
}

TEST(CleanPath, RelativePathsStartWhereWeAre) {
  char* cwd = ::get_current_dir_name();
  EXPECT_EQ(*CleanPath("x/y"), std::string(cwd) + "/x/y");
  EXPECT_EQ(*CleanPath("."), cwd);
  EXPECT_EQ(*CleanPath("./x"), std::string(cwd) + "/x");
  ::free(cwd);
}

std::string CodeOf(const std::string& path, Access access = Access::kRead) {
  const Result<HostPath> opened = OpenHostPath(path, access);
  return opened.ok() ? "ok" : opened.error().code;
}

TEST(HostPath, FilesAndDirectories) {
  const TempDir dir;
  const std::string file = dir.Write("f", "12345");
  const Result<HostPath> opened = OpenHostPath(file, Access::kRead);
  ASSERT_TRUE(opened.ok()) << opened.error().message;
  EXPECT_FALSE(opened->directory);
  EXPECT_EQ(opened->size, 5U);
  EXPECT_EQ(opened->owner, ::getuid());
  struct stat info;
  ASSERT_EQ(::stat(file.c_str(), &info), 0);
  EXPECT_EQ(opened->ino, info.st_ino);
  EXPECT_EQ(opened->dev, info.st_dev);
  const Result<HostPath> tree = OpenHostPath(dir.path() + "//./", Access::kWrite);
  ASSERT_TRUE(tree.ok());
  EXPECT_TRUE(tree->directory);
  EXPECT_EQ(tree->path, dir.path());
}

TEST(HostPath, TheSystemsDirectoriesAreWrittenOnlyWithTheirWord) {
  const auto code = [](const char* path, Access access, Breadth breadth) {
    const Result<HostPath> opened = OpenHostPath(path, access, breadth);
    return opened.ok() ? "ok" : opened.error().code;
  };
  for (const char* path : {"/usr/bin", "/usr/lib", "/etc/alternatives", "/usr/local/lib"}) {
    EXPECT_EQ(code(path, Access::kWrite, Breadth::kNarrow), "policy.path.system") << path;
    EXPECT_EQ(code(path, Access::kRead, Breadth::kNarrow), "ok") << path;
    EXPECT_EQ(code(path, Access::kWrite, Breadth::kSystem), "ok") << "the control: " << path;
  }
  for (const char* path : {"/etc", "/usr", "/"}) {
    EXPECT_EQ(code(path, Access::kWrite, Breadth::kSystem), "policy.path.broad") << path;
  }
}

TEST(HostPath, LinksAreRefusedWithTheRealName) {
  const TempDir dir;
  dir.MakeDir("real");
  dir.Write("real/f", "");
  ASSERT_EQ(::symlink("real", (dir / "link").c_str()), 0);
  for (const char* name : {"link", "link/f"}) {
    const Result<HostPath> opened = OpenHostPath(dir / name, Access::kRead);
    ASSERT_FALSE(opened.ok()) << name;
    EXPECT_EQ(opened.error().code, "policy.path.link");
    EXPECT_NE(opened.error().hint.find(dir / "real"), std::string::npos) << opened.error().hint;
  }
  ASSERT_EQ(::symlink("nowhere", (dir / "dangling").c_str()), 0);
  EXPECT_EQ(CodeOf(dir / "dangling"), "policy.path.link");
}

TEST(HostPath, OnlyFilesAndDirectories) {
  const TempDir dir;
  ASSERT_EQ(::mkfifo((dir / "fifo").c_str(), 0600), 0);
  EXPECT_EQ(CodeOf(dir / "fifo"), "policy.path.kind");
  const int listener = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  (dir / "sock").copy(address.sun_path, sizeof(address.sun_path) - 1);
  ASSERT_EQ(::bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ::close(listener);
  EXPECT_EQ(CodeOf(dir / "sock"), "policy.path.kind");
  EXPECT_EQ(CodeOf("/dev/null"), "policy.path.broad");
  if (::geteuid() == 0 && ::mknod((dir / "null").c_str(), S_IFCHR | 0666, makedev(1, 3)) == 0) {
    EXPECT_EQ(CodeOf(dir / "null"), "policy.path.kind");
  }
}

TEST(HostPath, BroadMissingAndPseudo) {
  for (const char* path :
       {"/", "//", "/.", "/etc/", "/home", "/usr/", "/proc/self", "/sys/kernel", "/run/x"}) {
    EXPECT_EQ(CodeOf(path), "policy.path.broad") << path;
  }
  EXPECT_EQ(CodeOf("/srv/does-not-exist-here"), "policy.path");
  EXPECT_EQ(CodeOf("/srv/../etc"), "policy.path.dotdot");
}

// In a mount namespace of its own; answers 0 if `check` holds, 77 if the host gives none.
int InMountNamespace(const std::function<bool()>& check) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
      ::_exit(77);
    }
    ::_exit(check() ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(HostPath, ABroadDirectoryUnderAnotherNameIsStillBroad) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "binding a directory needs root";
  }
  const TempDir dir;
  const std::string alias = dir.MakeDir("alias");
  EXPECT_EQ(CodeOf(alias), "ok") << "the control";
  EXPECT_EQ(InMountNamespace([&] {
              return ::mount("/etc", alias.c_str(), nullptr, MS_BIND, nullptr) == 0 &&
                     CodeOf(alias) == "policy.path.broad";
            }),
            0);
  EXPECT_EQ(InMountNamespace([&] {
              return ::mount("proc", alias.c_str(), "proc", 0, nullptr) == 0 &&
                     CodeOf(alias) == "policy.path.kind" &&
                     CodeOf(alias + "/sys") == "policy.path.kind";
            }),
            0)
      << "proc under another name";
}

TEST(HostPath, WhatWasOpenedStaysWhenTheNameIsSwapped) {
  const TempDir dir;
  const std::string path = dir.MakeDir("d");
  const Result<HostPath> opened = OpenHostPath(path, Access::kRead);
  ASSERT_TRUE(opened.ok());
  ASSERT_EQ(::rename(path.c_str(), (dir / "moved").c_str()), 0);
  ASSERT_EQ(::symlink("/etc", path.c_str()), 0);
  struct stat info;
  ASSERT_EQ(::fstat(opened->fd.get(), &info), 0);
  EXPECT_EQ(info.st_ino, opened->ino);
}

TEST(FindFifos, FindsAllAndFollowsNoLinks) {
  const TempDir dir;
  const std::string root = dir.MakeDir("root");
  dir.MakeDir("elsewhere");
  ::mkfifo((dir / "elsewhere/hidden").c_str(), 0600);
  dir.MakeDir("root/a");
  dir.MakeDir("root/a/b");
  dir.Write("root/a/file", "");
  ASSERT_EQ(::mkfifo((dir / "root/top").c_str(), 0600), 0);
  ASSERT_EQ(::mkfifo((dir / "root/a/b/deep").c_str(), 0600), 0);
  ASSERT_EQ(::symlink("../elsewhere", (dir / "root/link").c_str()), 0);
  ASSERT_EQ(::symlink("top", (dir / "root/fifolink").c_str()), 0);
  const Result<HostPath> opened = OpenHostPath(root, Access::kRead);
  ASSERT_TRUE(opened.ok());
  const Result<std::vector<CoveredFile>> fifos = FindFifos(*opened);
  ASSERT_TRUE(fifos.ok());
  std::set<std::string> paths;
  for (const CoveredFile& fifo : *fifos) {
    struct stat info{};
    EXPECT_EQ(::lstat((opened->path + "/" + fifo.path).c_str(), &info), 0);
    EXPECT_EQ(fifo.ino, info.st_ino);
    EXPECT_EQ(fifo.dev, info.st_dev);
    paths.insert(fifo.path);
  }
  EXPECT_EQ(paths, (std::set<std::string>{"a/b/deep", "top"}));
}

// Calls `change` without a pause while `look` runs.
void Beside(const std::function<void()>& change, const std::function<void()>& look) {
  std::atomic<bool> done{false};
  std::atomic<long> changes{0};
  std::thread neighbour([&] {
    while (!done) {
      change();
      ++changes;
    }
  });
  while (changes < 10) {
    std::this_thread::yield();
  }
  look();
  done = true;
  neighbour.join();
}

// A directory in which files come and go all the time is looked through like any other.
TEST(FindFifos, FilesThatChangeAllTheTimeDoNotRefuseATree) {
  const TempDir dir;
  const std::string root = dir.MakeDir("root");
  dir.MakeDir("root/busy");
  ASSERT_EQ(::mkfifo((dir / "root/busy/fifo").c_str(), 0600), 0);
  const std::string one = dir.Write("root/busy/one", "");
  const std::string two = dir / "root/busy/two";
  const Result<HostPath> opened = OpenHostPath(root, Access::kRead);
  ASSERT_TRUE(opened.ok());
  Beside(
      [&] {
        ::rename(one.c_str(), two.c_str());
        ::rename(two.c_str(), one.c_str());
      },
      [&] {
        for (int i = 0; i < 20; ++i) {
          const Result<std::vector<CoveredFile>> fifos = FindFifos(*opened);
          ASSERT_TRUE(fifos.ok()) << fifos.error().message;
          ASSERT_EQ(fifos->size(), 1U);
          EXPECT_EQ(fifos->front().path, "busy/fifo");
        }
      });
}

// A neighbour who moves the directory with the fifo back and forth: it is found, or the tree is refused. When the neighbour is
// done, it is found.
TEST(FindFifos, ADirectoryThatIsMovedHidesNothing) {
  const TempDir dir;
  const std::string root = dir.MakeDir("root");
  for (const char* name : {"root/a", "root/b", "root/b/x"}) {
    dir.MakeDir(name);
  }
  ASSERT_EQ(::mkfifo((dir / "root/b/x/fifo").c_str(), 0600), 0);
  const Result<HostPath> opened = OpenHostPath(root, Access::kRead);
  ASSERT_TRUE(opened.ok());
  const std::string one = dir / "root/a/x";
  const std::string two = dir / "root/b/x";
  const auto find = [&](bool may_refuse) {
    const Result<std::vector<CoveredFile>> fifos = FindFifos(*opened);
    if (!fifos.ok() && may_refuse) {
      EXPECT_EQ(fifos.error().code, "policy.path.unchecked");
      return;
    }
    ASSERT_TRUE(fifos.ok()) << fifos.error().message;
    EXPECT_EQ(fifos->size(), 1U);
  };
  Beside(
      [&] {
        ::rename(two.c_str(), one.c_str());
        ::rename(one.c_str(), two.c_str());
      },
      [&] {
        for (int i = 0; i < 30; ++i) {
          find(true);
        }
      });
  find(false);
}

TEST(FindFifos, TooManyAreRefused) {
  const TempDir dir;
  for (size_t i = 0; i <= kMaxFifos; ++i) {
    ASSERT_EQ(::mkfifo((dir / std::to_string(i)).c_str(), 0600), 0);
  }
  const Result<HostPath> opened = OpenHostPath(dir.path(), Access::kRead);
  ASSERT_TRUE(opened.ok());
  EXPECT_FALSE(FindFifos(*opened).ok());
  ::unlink((dir / "0").c_str());
  EXPECT_TRUE(FindFifos(*opened).ok());
}

}  // namespace
}  // namespace coffer::isolation
