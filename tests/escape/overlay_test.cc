// SPDX-License-Identifier: Apache-2.0
//
// --ro-overlay: behind an overlay the locks, sockets and fifos of a read-only directory are the boundary's own.
//
// A lock that the host holds is what the payload asks for, without waiting: it is refused where both have the same inode,
// and granted where they have not. So nothing here depends on who is first.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/unique_fd.h"
#include "tests/support/host.h"
#include "tests/support/verdicts.h"

namespace coffer::test {
namespace {

class OverlayEscape : public HostWatchTest {
 protected:
  TempDir dir_;
  const std::string shared_ = dir_.MakeDir("shared", 0755);
  const Strings plain_ = {"--level", "container", "--ro", shared_ + ":/data"};

  static Strings With(Strings flags) {
    flags.emplace_back("--ro-overlay");
    return flags;
  }

  // A kernel without overlays must say so and run nothing. True if that is so.
  bool NoOverlays() const {
    if (Contains(ReadFile("/proc/filesystems").value_or(""), "\toverlay\n")) {
      return false;
    }
    const RunResult result = RunProbe(With(plain_), {"args", "it-ran"});
    if (result.exit == 0) {
      return false;  // it was loaded now
    }
    EXPECT_EQ(result.exit, 120) << result.Describe();
    EXPECT_TRUE(Contains(result.err, "--ro-overlay")) << result.Describe();
    EXPECT_FALSE(Contains(result.out, "it-ran")) << result.Describe();
    return true;
  }
};

TEST_F(OverlayEscape, SH_11_LocksOfAReaderDoNotHoldUpTheHost) {
  const std::string path = dir_.Write("shared/file", "x", 0644);
  if (NoOverlays()) {
    return;
  }
  const UniqueFd file(open(path.c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(flock(file.get(), LOCK_EX | LOCK_NB), 0);
  struct flock range = {};
  range.l_type = F_WRLCK;
  ASSERT_EQ(fcntl(file.get(), F_SETLK, &range), 0);
  const RunResult shared = RunProbe(plain_, {"locks", "/data/file"});
  const RunResult apart = RunProbe(With(plain_), {"locks", "/data/file"});
  for (const char* kind : {"exclusive", "shared", "posix", "ofd"}) {
    EXPECT_TRUE(Contains(shared.out, std::string(kind) + ": REFUSED"))
        << "NO-CONTROL: without the overlay it is the host's lock\n"
        << shared.Describe();
    EXPECT_TRUE(Contains(apart.out, std::string(kind) + ": OPEN"))
        << "OPEN: the lock is the host's\n"
        << apart.Describe();
  }
  EXPECT_EQ(apart.receipt["files"]["overlay"], true) << apart.Describe();
  EXPECT_EQ(shared.receipt["files"]["overlay"], false) << shared.Describe();
}

TEST_F(OverlayEscape, SH_11_DatagramsReachNoSocketOfTheHost) {
  if (NoOverlays()) {
    return;
  }
  const std::string path = shared_ + "/datagrams";
  const UniqueFd receiver(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  ASSERT_EQ(bind(receiver.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  chmod(path.c_str(), 0777);
  char byte = 0;
  EXPECT_TRUE(Contains(RunOutside({"pair-datagram", path}).out, "send: OPEN")) << "NO-CONTROL";
  EXPECT_EQ(recv(receiver.get(), &byte, 1, 0), 1) << "NO-CONTROL";
  const RunResult result = RunProbe(With(plain_), {"pair-datagram", "/data/datagrams"});
  EXPECT_TRUE(Contains(result.out, "send: REFUSED")) << result.Describe();
  EXPECT_TRUE(Contains(result.out, "connect: REFUSED")) << result.Describe();
  EXPECT_LT(recv(receiver.get(), &byte, 1, 0), 0) << "OPEN: the host's socket got a message\n"
                                                  << result.Describe();
  // Beside a directory that can be written the old rule stands.
  const RunResult both = RunProbe(With({"--level", "container", "--ro", shared_ + ":/data", "--rw",
                                        dir_.MakeDir("written", 0755) + ":/written"}),
                                  {"pair-datagram", "/data/datagrams"});
  EXPECT_TRUE(Contains(both.out, "pair: REFUSED")) << both.Describe();
}

TEST_F(OverlayEscape, SH_11_NothingIsWrittenThroughAnOverlay) {
  const std::string path = dir_.Write("shared/file", "x", 0666);
  chmod(shared_.c_str(), 0777);
  chmod(path.c_str(), 0666);
  if (NoOverlays()) {
    return;
  }
  EXPECT_TRUE(Contains(RunOutside({"write", path, "x"}).out, "OPEN")) << "NO-CONTROL";
  struct stat before = {};
  ASSERT_EQ(stat(path.c_str(), &before), 0);
  const Strings script = {
      "sh", "-c",
      "for f in 'echo y > /data/file' 'echo y > /data/new' 'rm -f /data/file' 'mkdir /data/d' "
      "'chmod 600 /data/file' 'touch /data/file' 'ln /data/file /data/l' 'mv /data/file /data/n' "
      "'echo y > /usr/new' 'mkdir /usr/d'; do "
      "(eval \"$f\") 2>/dev/null && echo \"WROTE $f\"; done; ls /data; cat /data/file"};
  const RunResult result = RunCoffer(With(plain_), script);
  EXPECT_EQ(result.out, "file\nx") << "OPEN\n" << result.Describe();
  struct stat after = {};
  ASSERT_EQ(stat(path.c_str(), &after), 0);
  EXPECT_EQ(after.st_ctim.tv_nsec, before.st_ctim.tv_nsec) << "OPEN: the host's file changed";
  EXPECT_EQ(after.st_ctim.tv_sec, before.st_ctim.tv_sec) << "OPEN: the host's file changed";
  EXPECT_EQ(access((shared_ + "/new").c_str(), F_OK), -1) << "OPEN";
}

// What test suites clean up along their path: a name that is not there. A plain read-only mount says EROFS.
TEST_F(OverlayEscape, AMissingNameIsMissing) {
  NothingIsAttacked("which error a program gets");
  if (NoOverlays()) {
    return;
  }
  const Strings script = {"sh", "-c", "unlink /data/none; unlink /usr/lib/none; rmdir /data/none"};
  const RunResult plain = RunCoffer(plain_, script);
  EXPECT_TRUE(Contains(plain.err, "Read-only file system")) << plain.Describe();
  const RunResult result = RunCoffer(With(plain_), script);
  EXPECT_TRUE(Contains(result.err, "No such file or directory")) << result.Describe();
  EXPECT_FALSE(Contains(result.err, "Read-only")) << result.Describe();
}

TEST_F(OverlayEscape, ADeclaredToolMayAskForIt) {
  NothingIsAttacked("the way through a manifest");
  if (NoOverlays()) {
    return;
  }
  dir_.MakeDir("home");
  RunOptions options;
  options.environment = {
      {"HOME=" + (dir_ / "home"), "PATH=/usr/bin:/bin", "COFFER_STATE=" + (dir_ / "state")}};
  const auto answer = [&](const std::string& name, const std::string& files) {
    dir_.MakeDir(name);
    dir_.Write(name + "/remove.toml",
               "[tool]\nname = \"remove\"\nversion = \"1\"\neffect = \"read-only\"\n"
               "[input]\nschema = { type = \"object\" }\n"
               "[run]\nruntime = \"bash\"\n"
               "argv = [\"bash\", \"-c\", \"rmdir /data/none 2>&1; true\"]\n" +
                   files + "[[files.mount]]\nhost = \"" + shared_ +
                   "\"\nat = \"/data\"\nmode = \"read\"\n",
               0644);
    return RunProgram({CofferPath(), "call", "remove", "--tools", dir_ / name}, options);
  };
  const RunResult plain = answer("plain", "");
  EXPECT_TRUE(Contains(plain.out, "Read-only file system")) << plain.Describe();
  const RunResult behind = answer("behind", "[files]\noverlay = true\n");
  EXPECT_TRUE(Contains(behind.out, "No such file or directory")) << behind.Describe();
}

TEST_F(OverlayEscape, WhatCannotBeDoneIsRefused) {
  NothingIsAttacked("what the caller is told");
  const std::string file = dir_.Write("shared/file", "x", 0644);
  const RunResult single = RunProbe(
      {"--level", "container", "--ro-overlay", "--ro", file + ":/data"}, {"args", "it-ran"});
  EXPECT_EQ(single.exit, 120) << single.Describe();
  EXPECT_TRUE(Contains(single.err, "single file")) << single.Describe();
  EXPECT_TRUE(Contains(single.err, "--in")) << single.Describe();
  const RunResult process = RunProbe({"--level", "process", "--ro-overlay"}, {"args", "it-ran"});
  EXPECT_EQ(process.exit, 120) << process.Describe();
  EXPECT_TRUE(Contains(process.err, "needs the container level")) << process.Describe();
}

}  // namespace
}  // namespace coffer::test
