// SPDX-License-Identifier: Apache-2.0
//
// A workspace full of traps, and what is taken out of it. Every attack has its control: what a collector that follows
// names would have read.
#include "output/exports.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <thread>

#include "base/hash.h"
#include "base/unique_fd.h"
#include "policy/export_pattern.h"
#include "tests/support/run.h"

namespace coffer::output {
namespace {

using test::Contains;
using test::IsRoot;

class ExportsTest : public ::testing::Test {
 protected:
  ExportsTest() : workspace_(dir_.path() + "/workspace") {
    EXPECT_EQ(::mkdir(workspace_.c_str(), 0755), 0);
  }
  std::string At(const std::string& name) const { return workspace_ + "/" + name; }
  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(At(name), std::ios::binary) << text;
  }
  void MakeDir(const std::string& name) const { ASSERT_EQ(::mkdir(At(name).c_str(), 0755), 0); }
  Exports Collect(const std::vector<std::string>& patterns) const {
    const UniqueFd root(::open(workspace_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    return CollectExports(root.get(), patterns);
  }
  static std::vector<std::string> PathsOf(const Exports& exports) {
    std::vector<std::string> paths;
    for (const ExportBody& file : exports.files) {
      paths.push_back(file.path);
    }
    return paths;
  }
  // How many were left out for a reason that has `words`.
  static uint64_t LeftOut(const Exports& exports, const std::string& words) {
    uint64_t count = 0;
    for (const NotExported& left : exports.left_out) {
      count += Contains(left.why, words) ? left.count : 0;
    }
    return count;
  }

  test::TempDir dir_;
  const std::string workspace_;
};

using Paths = std::vector<std::string>;

TEST_F(ExportsTest, WhatThePatternsName) {
  MakeDir("plots");
  MakeDir("plots/old");
  Write("report.html", "<p>");
  Write("plots/a.png", "A");
  Write("plots/b.txt", "B");
  Write("plots/old/c.png", "");
  Write("secret", "not named");
  EXPECT_EQ(PathsOf(Collect({"report.html"})), Paths{"report.html"});
  EXPECT_EQ(PathsOf(Collect({"plots/*.png"})), Paths{"plots/a.png"});
  EXPECT_EQ(PathsOf(Collect({"plots/**"})),
            (Paths{"plots/a.png", "plots/b.txt", "plots/old/c.png"}));
  EXPECT_EQ(PathsOf(Collect({"*/*/c.png"})), Paths{"plots/old/c.png"});
  EXPECT_EQ(PathsOf(Collect({"report.html", "*.html", "**"})).size(), 5U) << "each once";
  const Exports none = Collect({"missing", "missing/**", "report.html/below"});
  EXPECT_TRUE(none.files.empty());
  EXPECT_TRUE(none.left_out.empty()) << "a tool need not make everything";
  const Exports one = Collect({"report.html"});
  EXPECT_EQ(one.files[0].bytes, "<p>");
  EXPECT_EQ(one.files[0].sha256, HashOf("<p>"));
}

TEST_F(ExportsTest, LinksLeadNowhere) {
  const std::string outside = dir_.Write("outside", "of another", 0644);
  ASSERT_EQ(::mkdir((dir_.path() + "/elsewhere").c_str(), 0755), 0);
  dir_.Write("elsewhere/file", "of another", 0644);
  ASSERT_EQ(::symlink(outside.c_str(), At("absolute").c_str()), 0);
  ASSERT_EQ(::symlink("../outside", At("relative").c_str()), 0);
  ASSERT_EQ(::symlink("../elsewhere", At("directory").c_str()), 0);
  ASSERT_EQ(::symlink("/proc/self/root/etc/passwd", At("magic").c_str()), 0);
  Write("plain", "mine");
  ASSERT_EQ(::symlink("plain", At("inner").c_str()), 0);
  EXPECT_EQ(test::ReadFile(At("absolute")), "of another") << "the control: by name it is read";
  EXPECT_EQ(test::ReadFile(At("directory/file")), "of another") << "the control";
  for (const char* pattern : {"absolute", "relative", "magic", "inner"}) {
    const Exports exports = Collect({pattern});
    EXPECT_TRUE(exports.files.empty()) << pattern;
    EXPECT_EQ(LeftOut(exports, "not a regular file"), 1U) << pattern;
  }
  EXPECT_TRUE(Collect({"directory/file", "directory/**"}).files.empty());
  EXPECT_EQ(PathsOf(Collect({"**"})), Paths{"plain"});
}

TEST_F(ExportsTest, NothingButRegularFilesIsOpened) {
  ASSERT_EQ(::mkfifo(At("fifo").c_str(), 0644), 0);
  const UniqueFd server(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  ASSERT_LT(At("socket").size(), sizeof(name.sun_path));
  At("socket").copy(name.sun_path, sizeof(name.sun_path) - 1);
  ASSERT_EQ(::bind(server.get(), reinterpret_cast<sockaddr*>(&name), sizeof(name)), 0);
  MakeDir("directory");
  // A writer of the fifo that waits for its reader: opening the fifo, even without waiting, would let it go.
  std::atomic<bool> released = false;
  std::thread writer([&] {
    const UniqueFd end(::open(At("fifo").c_str(), O_WRONLY | O_CLOEXEC));
    released = true;
  });
  const Exports exports = Collect({"fifo", "socket", "directory", "*"});
  EXPECT_TRUE(exports.files.empty());
  EXPECT_GE(LeftOut(exports, "not a regular file"), 3U);
  EXPECT_FALSE(released) << "the fifo was opened";
  // The control: an opened fifo releases it.
  const UniqueFd reader(::open(At("fifo").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  writer.join();
  EXPECT_TRUE(released);
}

TEST_F(ExportsTest, AHoleCountsWithItsLength) {
  Write("hole", "");
  ASSERT_EQ(::truncate(At("hole").c_str(), 10LL << 30), 0);
  struct stat info{};
  ASSERT_EQ(::stat(At("hole").c_str(), &info), 0);
  ASSERT_LT(info.st_blocks, 1024) << "the control: it takes no room on the disk";
  Write("small", "x");
  const Exports exports = Collect({"**"});
  EXPECT_EQ(PathsOf(exports), Paths{"small"});
  EXPECT_EQ(LeftOut(exports, "MiB together"), 1U);
}

TEST_F(ExportsTest, TheSumIsBounded) {
  const std::string third(policy::kMostExportBytes / 3 + 1, 'x');
  for (const char* name : {"a", "b", "c"}) {
    Write(name, third);
  }
  Write("d", "small");
  const Exports exports = Collect({"*"});
  EXPECT_EQ(PathsOf(exports), (Paths{"a", "b", "d"})) << "what still fits is taken";
  EXPECT_EQ(LeftOut(exports, "MiB together"), 1U);
  ASSERT_EQ(::unlink(At("a").c_str()), 0);
  EXPECT_EQ(PathsOf(Collect({"*"})), (Paths{"b", "c", "d"})) << "the control";
}

TEST_F(ExportsTest, TheNumberIsBounded) {
  MakeDir("many");
  for (int i = 0; i < 25'000; ++i) {
    const UniqueFd made(::open(At("many/" + std::to_string(i)).c_str(), O_CREAT | O_WRONLY, 0644));
    ASSERT_TRUE(made.valid());
  }
  const Exports exports = Collect({"many/**"});
  EXPECT_EQ(exports.files.size(), policy::kMostExports);
  EXPECT_GT(LeftOut(exports, "more than 64 files"), 10'000U);
  EXPECT_LT(LeftOut(exports, "more than 64 files"), 20'000U) << "not every name is looked at";
  EXPECT_EQ(LeftOut(exports, "too many names"), 1U);
}

TEST_F(ExportsTest, NamesThatCannotBeToldAreLeftOut) {
  Write("a\nb", "1");
  Write("\xff\xfe", "2");
  Write("esc\x1b[31m", "3");
  MakeDir("d\r");
  Write("d\r/file", "4");
  Write("good", "5");
  const Exports exports = Collect({"**"});
  EXPECT_EQ(PathsOf(exports), Paths{"good"});
  EXPECT_EQ(LeftOut(exports, "control characters"), 4U);
  for (const NotExported& left : exports.left_out) {
    EXPECT_TRUE(std::all_of(left.path.begin(), left.path.end(), [](char c) {
      return c >= ' ' && c <= '~';
    })) << left.path;
  }
}

TEST_F(ExportsTest, DepthIsBounded) {
  std::string path = "d";
  for (int i = 0; i < 100; ++i) {
    MakeDir(path);
    Write(path + "/file", "x");
    path += "/d";
  }
  const Exports exports = Collect({"d/**"});
  EXPECT_EQ(exports.files.size(), policy::kDeepestExport - 1);
  EXPECT_EQ(LeftOut(exports, "parts"), 1U);
}

// On a host that allows it, a link to a file that its maker may not read is as good as the file for a reader who is root.
TEST_F(ExportsTest, AHardLinkToAnotherUsersFileIsLeftOut) {
  if (!IsRoot()) {
    GTEST_SKIP() << "only root can give the workspace to another user";
  }
  const std::string roots = dir_.Write("roots", "root's own", 0600);
  ASSERT_EQ(::link(roots.c_str(), At("link").c_str()), 0);
  EXPECT_EQ(PathsOf(Collect({"link"})), Paths{"link"}) << "the control: of the same owner";
  ASSERT_EQ(::chown(workspace_.c_str(), 48213, 48213), 0);
  const Exports exports = Collect({"link"});
  EXPECT_TRUE(exports.files.empty());
  EXPECT_EQ(LeftOut(exports, "another user"), 1U);
}

TEST_F(ExportsTest, AFileWithoutRightsIsLeftOutOrRead) {
  Write("closed", "x");
  ASSERT_EQ(::chmod(At("closed").c_str(), 0), 0);
  const Exports exports = Collect({"closed"});
  EXPECT_EQ(exports.files.size() + LeftOut(exports, "cannot be opened"), 1U);
  EXPECT_EQ(exports.files.size(), IsRoot() ? 1U : 0U);
}

// Another process of the session puts a link, a fifo and another file in the place of a file, again and again. Whatever
// the moment, what is taken is one of the regular files as a whole, with its own hash.
TEST_F(ExportsTest, AFileThatIsSwappedMeanwhile) {
  const std::string outside = dir_.Write("outside", "of another", 0644);
  const std::string one(200'000, '1');
  const std::string two(300'000, '2');
  Write("one", one);
  Write("two", two);
  ASSERT_EQ(::symlink(outside.c_str(), At("to-outside").c_str()), 0);
  ASSERT_EQ(::mkfifo(At("pipe").c_str(), 0644), 0);
  ASSERT_EQ(::link(At("one").c_str(), At("target").c_str()), 0);
  std::atomic<bool> stop = false;
  std::atomic<int> rounds = 0;
  std::thread attacker([&] {
    const auto put = [&](const char* what) {
      // rename: the name is never missing, and never half there.
      const std::string fresh = At(std::string(what) + ".new");
      EXPECT_EQ(::linkat(AT_FDCWD, At(what).c_str(), AT_FDCWD, fresh.c_str(), 0), 0);
      EXPECT_EQ(::rename(fresh.c_str(), At("target").c_str()), 0);
      ::unlink(fresh.c_str());  // rename leaves it if both are the same file
    };
    while (!stop) {
      for (const char* what : {"to-outside", "one", "pipe", "two"}) {
        put(what);
      }
      ++rounds;
    }
  });
  int taken = 0, looks = 0;
  while (looks < 300 || rounds < 50) {
    ++looks;
    const Exports exports = Collect({"target"});
    for (const ExportBody& file : exports.files) {
      ++taken;
      ASSERT_TRUE(file.bytes == one || file.bytes == two) << file.bytes.size();
      ASSERT_EQ(file.sha256, HashOf(file.bytes));
    }
  }
  stop = true;
  attacker.join();
  EXPECT_LE(taken, looks);
  // The control, whatever the scheduler did above: with the link in its place a reader by name reads the other file.
  ASSERT_EQ(::unlink(At("target").c_str()), 0);
  ASSERT_EQ(::symlink(outside.c_str(), At("target").c_str()), 0);
  EXPECT_EQ(test::ReadFile(At("target")), "of another");
  EXPECT_TRUE(Collect({"target"}).files.empty());
}

TEST_F(ExportsTest, AWorkspaceThatIsGoneIsSaid) {
  const Exports exports = CollectExports(-1, {"a"});
  EXPECT_TRUE(exports.files.empty());
  EXPECT_EQ(exports.left_out.size(), 1U);
}

}  // namespace
}  // namespace coffer::output
