// SPDX-License-Identifier: Apache-2.0
//
// The ends of private files go behind what is there, and nowhere else. A mount within another one lies over the inode that
// was examined, or nowhere.
#include "isolation/child/root.h"

#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "base/sys.h"
#include "base/unique_fd.h"
#include "isolation/child/plan_block.h"
#include "isolation/pack_plan.h"
#include "tests/support/temp_dir.h"

namespace coffer::isolation {
namespace {

class AppendToFilesTest : public ::testing::Test {
 protected:
  long Append(const std::string& at, const std::string& end) {
    RootPart part;
    part.files = {{"/etc/a", "1", 0444}, {at, end, 0444}};
    const std::string block = PackRoot(part);
    const UniqueFd root = sys::OpenAt(AT_FDCWD, dir_.path(), O_PATH | O_DIRECTORY).value();
    return AppendToFiles(*reinterpret_cast<const PlanBlock*>(block.data()), root.get(), &item_);
  }
  std::string Content(const std::string& name) {
    const Result<std::string> text = sys::ReadFile(dir_ / name, 100);
    return text.ok() ? *text : "";
  }

  test::TempDir dir_;
  uint32_t item_ = 77;
};

TEST_F(AppendToFilesTest, GoesBehindWhatIsThere) {
  dir_.Write("etc/a", "0");
  dir_.Write("etc/b", "one\n");
  EXPECT_EQ(Append("/etc/b", std::string("two\0", 4)), 0);
  EXPECT_EQ(Content("etc/a"), "01");
  EXPECT_EQ(Content("etc/b"), std::string("one\ntwo\0", 8));
  EXPECT_EQ(item_, 2u);
}

TEST_F(AppendToFilesTest, MakesNoFileAndFollowsNoLink) {
  dir_.Write("etc/a", "0");
  dir_.Write("elsewhere", "kept");
  dir_.Link("etc/link", "../elsewhere");
  dir_.MakeDir("etc/dir");
  EXPECT_EQ(Append("/etc/missing", "x"), -ENOENT);
  EXPECT_EQ(item_, 1u) << "the first one was there";
  EXPECT_EQ(Append("/etc/link", "x"), -ELOOP);
  EXPECT_EQ(Append("/etc/dir", "x"), -EISDIR);
  EXPECT_EQ(Content("elsewhere"), "kept");
  EXPECT_EQ(Content("etc/missing"), "");
}

// A directory is mounted on itself, read-only, while another program exchanges it for another one. It is exchanged back
// after that.
class AttachedPlaces : public ::testing::Test {
 protected:
  enum class Compared : uint8_t { kNo, kYes };

  // The number of the error of writing to "held", 0 if that was open; ESTALE: nothing was attached.
  int WriteAfterExchange(Compared compared) {
    int words[2] = {-1, -1};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, words), 0);
    UniqueFd ours(words[0]);
    UniqueFd theirs(words[1]);
    const pid_t child = ::fork();
    if (child == 0) {
      ours.Reset();
      ::_exit(InChild(compared, theirs.get()));
    }
    theirs.Reset();
    // The neighbour is outside of the mount namespace: the kernel renames no mount points of one's own.
    char word = 0;
    while (::recv(ours.get(), &word, 1, 0) == 1) {
      EXPECT_EQ(::renameat2(AT_FDCWD, (dir_ / "held").c_str(), AT_FDCWD, (dir_ / "other").c_str(),
                            RENAME_EXCHANGE),
                0);
      EXPECT_EQ(::send(ours.get(), &word, 1, MSG_NOSIGNAL), 1);
    }
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status));
    return WEXITSTATUS(status);
  }

 private:
  static bool Exchange(int neighbour) {
    char word = 'x';
    return ::send(neighbour, &word, 1, MSG_NOSIGNAL) == 1 && ::recv(neighbour, &word, 1, 0) == 1;
  }
  int Write(const std::string& name) const {
    const UniqueFd file(::open((dir_ / name).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    return file ? 0 : errno;
  }
  int InChild(Compared compared, int neighbour) const {
    if (::unshare(::geteuid() == 0 ? CLONE_NEWNS : CLONE_NEWUSER | CLONE_NEWNS) != 0 ||
        ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
      return kNoNamespace;
    }
    struct stat info{};
    if (::stat((dir_ / "held").c_str(), &info) != 0) {
      return 201;
    }
    RootPart part;
    BindMount bind;
    bind.host = bind.at = dir_ / "held";
    bind.directory = true;
    bind.expected_dev = info.st_dev;
    bind.expected_ino = info.st_ino;
    if (compared == Compared::kYes) {
      bind.place_dev = info.st_dev;
      bind.place_ino = info.st_ino;
    }
    part.binds.push_back(bind);
    const std::string block = PackRoot(part);
    const auto& plan = *reinterpret_cast<const PlanBlock*>(block.data());
    const UniqueFd root = sys::OpenAt(AT_FDCWD, "/", O_PATH | O_DIRECTORY).value();
    int32_t trees[kMaxTrees];
    uint32_t item = 0;
    if (OpenSources(plan, nullptr, trees, &item) != 0 || !Exchange(neighbour)) {
      return 202;
    }
    const long attached = AttachBinds(plan, trees, root.get(), &item);
    if (!Exchange(neighbour)) {
      return 203;
    }
    if (attached == 0 && Write("other/x") != EROFS) {
      return 204;
    }
    return attached == 0 ? Write("held/x") : static_cast<int>(-attached);
  }

 protected:
  void SetUp() override {
    dir_.MakeDir("held");
    dir_.MakeDir("other");
  }

  static constexpr int kNoNamespace = 200;
  test::TempDir dir_;
};

TEST_F(AttachedPlaces, AreTheInodesThatWereExamined) {
  const int open = WriteAfterExchange(Compared::kNo);
  if (open == kNoNamespace) {
    GTEST_SKIP() << "this host gives no mount namespace";
  }
  EXPECT_EQ(open, 0) << "NO-CONTROL: the mount did not lie over the other one";
  EXPECT_EQ(::unlink((dir_ / "held/x").c_str()), 0);
  EXPECT_EQ(WriteAfterExchange(Compared::kYes), ESTALE);
  EXPECT_NE(::access((dir_ / "held/x").c_str(), F_OK), 0) << "OPEN";
}

}  // namespace
}  // namespace coffer::isolation
