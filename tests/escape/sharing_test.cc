// SPDX-License-Identifier: Apache-2.0
//
// Host directories that are shared on purpose (--ro, --rw, --out, --in): what a payload plants there, what lies there
// already, and what happens to the name while coffer looks at it.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/fs.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "tests/support/host.h"
#include "tests/support/verdicts.h"

namespace coffer::test {
namespace {

namespace fs = std::filesystem;

class SharingEscape : public LevelTest {
 protected:
  TempDir dir_;
  const std::string shared_ = dir_.MakeDir("shared", 0755);
  // At the process level there is no other place for it than its own.
  const std::string at_ = container() ? "/data" : shared_;
  Strings Ro() const { return Flags({"--ro", container() ? shared_ + ":/data" : shared_}); }
  Strings Rw() const { return Flags({"--rw", container() ? shared_ + ":/data" : shared_}); }

  // The process level cannot id-map: as root it shares nothing for writing, and says so. Then there is nothing to
  // attack, which is asserted here; true if that is so.
  bool SharingIsRefused() const {
    if (container() || !IsRoot()) {
      return false;
    }
    const RunResult result = RunProbe(Rw(), {"args", "it-ran"});
    EXPECT_EQ(result.exit, 120) << result.Describe();
    EXPECT_TRUE(Contains(result.err, "--level container")) << result.Describe();
    EXPECT_FALSE(Contains(result.out, "it-ran"));
    return true;
  }

  static struct stat StatOf(const std::string& path) {
    struct stat info = {};
    EXPECT_EQ(lstat(path.c_str(), &info), 0) << path;
    return info;
  }
};

TEST_P(SharingEscape, FilesWrittenBelongToTheDirectorysOwner) {
  if (SharingIsRefused()) {
    return;
  }
  NothingIsAttacked("who owns what a call leaves");
  const RunResult result = RunProbe(Rw(), {"write", at_ + "/result", "done"});
  EXPECT_TRUE(Contains(result.out, "OPEN")) << result.Describe();
  EXPECT_EQ(ReadFile(shared_ + "/result"), "done");
  const struct stat info = StatOf(shared_ + "/result");
  EXPECT_EQ(info.st_uid, geteuid());
  EXPECT_EQ(info.st_gid, getegid());
}

TEST_P(SharingEscape, FS_16_NoSetuidFileIsPlantedForTheHost) {
  if (SharingIsRefused()) {
    return;
  }
  const std::string own = dir_ / "own";
  EXPECT_TRUE(Contains(RunOutside({"copy", ProbePath(), own, "6755"}).out, "chmod: OPEN"));
  EXPECT_EQ(StatOf(own).st_mode & 06000, 06000U) << "NO-CONTROL";

  // By copying itself, by chmod of what is there, by creating with the bits set, by fchmodat2 and by a directory.
  fs::copy_file(ProbePath(), shared_ + "/there");
  const RunResult copied = RunProbe(Rw(), {"copy", "/proc/self/exe", at_ + "/evil", "6755"});
  const RunResult changed = RunProbe(Rw(), {"setattr", at_ + "/there"});
  const RunResult python =
      RunCoffer(Rw(), {"python3", "-c",
                       "import os\n"
                       "for name, mode in (('a', 0o4755), ('b', 0o2755), ('c', 0o6777)):\n"
                       "  p = '" +
                           at_ +
                           "/' + name\n"
                           "  try: os.close(os.open(p, os.O_CREAT | os.O_WRONLY, mode))\n"
                           "  except OSError as e: print(e)\n"
                           "  try: os.chmod(p, mode)\n"
                           "  except OSError as e: print(e)\n"
                           "  try: os.mkdir(p + 'd', mode); os.chmod(p + 'd', mode)\n"
                           "  except OSError as e: print(e)\n"
                           "  try: os.mknod(p + 'n', mode | 0o100000)\n"
                           "  except OSError as e: print(e)\n"
                           "print('tried')\n"});
  EXPECT_TRUE(Contains(python.out, "tried")) << python.Describe();
  EXPECT_EQ(copied.exit, 0) << copied.Describe();
  EXPECT_EQ(changed.exit, 0) << changed.Describe();
  for (const auto& entry : fs::directory_iterator(shared_)) {
    const struct stat info = StatOf(entry.path());
    EXPECT_EQ(info.st_mode & (S_ISUID | (S_ISDIR(info.st_mode) ? 0 : S_ISGID)), 0U)
        << entry.path() << " has a setuid or setgid bit on the host, owner " << info.st_uid << "\n"
        << copied.Describe() << changed.Describe();
    EXPECT_EQ(info.st_uid, geteuid()) << entry.path();
  }
}

TEST_P(SharingEscape, FS_04_SymlinksLeadNowhere) {
  if (SharingIsRefused()) {
    return;
  }
  const std::string flag = NewToken();
  const std::string canary = dir_.Write("canary", flag, 0666);
  ASSERT_EQ(symlink(canary.c_str(), (shared_ + "/there").c_str()), 0);
  ASSERT_EQ(symlink("../canary", (shared_ + "/up").c_str()), 0);
  EXPECT_TRUE(Contains(RunOutside({"open-read", shared_ + "/there"}).out, flag)) << "NO-CONTROL";
  EXPECT_TRUE(Contains(RunOutside({"open-read", shared_ + "/up"}).out, flag)) << "NO-CONTROL";
  const RunResult read =
      RunProbe(Rw(), {"open-read", at_ + "/there", at_ + "/up", at_ + "/../canary"});
  EXPECT_FALSE(Contains(read.out, flag)) << read.Describe();
  EXPECT_EQ(read.exit, 0) << read.Describe();
  const RunResult written = RunProbe(Rw(), {"write", at_ + "/there", "owned"});
  EXPECT_FALSE(Contains(written.out, "OPEN")) << written.Describe();
  EXPECT_EQ(ReadFile(canary), flag);
}

TEST_P(SharingEscape, FS_05_TheSharedNameIsSwappedWhileCofferLooks) {
  if (SharingIsRefused()) {
    return;
  }
  // A flipper exchanges the directory with a link that leads out of the directory above it, as fast as it can; a payload
  // writes into what it was given. Whatever coffer opens, it must be the directory or nothing. (A link that stays below
  // the directory that holds it is followed: what it leads to could be written by the same hands.)
  const std::string target = dir_.MakeDir("target", 0777);
  const std::string above = dir_.MakeDir("shared", 0777);
  const std::string name = dir_.MakeDir("shared/flip", 0777);
  const std::string link = above + "/flip-link";
  ASSERT_EQ(symlink(target.c_str(), link.c_str()), 0);
  const pid_t flipper = fork();
  if (flipper == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (true) {
      renameat2(AT_FDCWD, name.c_str(), AT_FDCWD, link.c_str(), RENAME_EXCHANGE);
    }
  }
  // Control: plain opening by name does land in the target now and then.
  int control_hits = 0;
  WaitUntil(
      [&] {
        for (int i = 0; i < 1000 && control_hits == 0; ++i) {
          const int fd = open((name + "/control").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
          if (fd >= 0) {
            close(fd);
          }
          control_hits += Exists(target + "/control") ? 1 : 0;
        }
        return control_hits > 0;
      },
      Seconds(10));
  int tries = 0;
  int ran = 0;
  const auto end = std::chrono::steady_clock::now() + Seconds(25);
  const std::string inside = container() ? "/data" : name;
  while (tries < 10000 && std::chrono::steady_clock::now() < end) {
    const RunResult result = RunProgram({CofferPath(), "run", "--level", level(), "--rw",
                                         container() ? name + ":/data" : name, "--quiet", "--",
                                         ProbePath(), "write", inside + "/owned", "x"});
    ++tries;
    ran += Contains(result.out, "OPEN") ? 1 : 0;
    if (Exists(target + "/owned")) {
      break;
    }
  }
  kill(flipper, SIGKILL);
  waitpid(flipper, nullptr, 0);
  EXPECT_GT(control_hits, 0) << "NO-CONTROL: the race was never won outside either";
  EXPECT_FALSE(Exists(target + "/owned"))
      << "OPEN: the payload wrote through the link at try " << tries;
  EXPECT_GT(ran, 0) << "the payload never ran, so the race was not run";
  RecordProperty("tries", tries);
  RecordProperty("ran", ran);
}

TEST_P(SharingEscape, FS_05_AFileIsSwappedInsideASharedDirectory) {
  if (SharingIsRefused()) {
    return;
  }
  // The same from within: the payload flips a name in its --rw directory; the host's canary must stay unread.
  const std::string flag = NewToken();
  const std::string canary = dir_.Write("canary", flag, 0666);
  const auto script = [&](const std::string& directory) {
    return "import os, time\n"
           "d = '" +
           directory +
           "/'\n"
           "open(d + 'file', 'w').write('plain')\n"
           "os.symlink('" +
           canary +
           "', d + 'link')\n"
           "end = time.time() + 3\n"
           "hits = tries = 0\n"
           "while time.time() < end:\n"
           "  tries += 1\n"
           "  os.rename(d + 'link', d + 'x'); os.rename(d + 'file', d + 'link')\n"
           "  os.rename(d + 'x', d + 'file')\n"
           "  for n in ('file', 'link'):\n"
           "    try: hits += '" +
           flag +
           "'[::-1] == open(d + n).read()[::-1]\n"
           "    except OSError: pass\n"
           "print('hits', hits, 'tries', tries)\n";
  };
  const std::string outside = RunProgram({"python3", "-c", script(dir_.MakeDir("control"))}).out;
  EXPECT_TRUE(Contains(outside, "tries") && !Contains(outside, "hits 0 ")) << "NO-CONTROL";
  const RunResult result = RunCoffer(Rw(), {"python3", "-c", script(at_)});
  EXPECT_TRUE(Contains(result.out, "hits 0 tries")) << result.Describe();
  EXPECT_EQ(ReadFile(canary), flag);
}

TEST_P(SharingEscape, FS_07_HardLinksDoNotCarryReadOnlyFilesOut) {
  if (SharingIsRefused()) {
    return;
  }
  const std::string other = dir_.MakeDir("other", 0755);
  const std::string file = dir_.Write("shared/file", "read only", 0666);
  EXPECT_TRUE(Contains(RunOutside({"link", file, other + "/control"}).out, "OPEN")) << "NO-CONTROL";
  const Strings flags = container()
                            ? Flags({"--ro", shared_ + ":/data", "--rw", other + ":/out-dir"})
                            : Flags({"--ro", shared_, "--rw", other});
  const std::string to = container() ? "/out-dir/h" : other + "/h";
  const RunResult result = RunProbe(flags, {"link", at_ + "/file", to});
  EXPECT_TRUE(Contains(result.out, "REFUSED")) << result.Describe();
  EXPECT_FALSE(Exists(other + "/h"));
}

TEST_P(SharingEscape, FS_25_SocketsInASharedTreeDoNotConnect) {
  if (SharingIsRefused()) {
    return;
  }
  const std::string path = shared_ + "/s";
  const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  chmod(path.c_str(), 0777);
  ASSERT_EQ(listen(listener, 8), 0);
  EXPECT_TRUE(Contains(RunOutside({"connect-unix", path}).out, "OPEN")) << "NO-CONTROL";
  EXPECT_GE(accept(listener, nullptr, nullptr), 0);
  for (const Strings& flags : {Ro(), Rw()}) {
    const RunResult result = RunProbe(flags, {"connect-unix", at_ + "/s"});
    EXPECT_TRUE(Contains(result.out, "REFUSED")) << result.Describe();
    EXPECT_LT(accept(listener, nullptr, nullptr), 0) << "OPEN: the host's server was reached\n"
                                                     << result.Describe();
  }
  close(listener);
}

TEST_P(SharingEscape, FS_25_DatagramsOfAPairDoNotReachTheHost) {
  const std::string path = shared_ + "/datagrams";
  const int receiver = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  ASSERT_EQ(bind(receiver, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  chmod(path.c_str(), 0777);
  char byte = 0;
  const RunResult outside = RunOutside({"pair-datagram", path});
  EXPECT_TRUE(Contains(outside.out, "send: OPEN")) << "NO-CONTROL";
  EXPECT_TRUE(Contains(outside.out, "connect: OPEN")) << "NO-CONTROL";
  EXPECT_EQ(recv(receiver, &byte, 1, 0), 1) << "NO-CONTROL";
  std::vector<Strings> all;
  if (!SharingIsRefused()) {
    all = {Ro(), Rw()};
  }
  if (!container()) {
    all.push_back(Flags());  // the path exists there whether it is granted or not
  }
  for (const Strings& flags : all) {
    const RunResult result = RunProbe(flags, {"pair-datagram", at_ + "/datagrams"});
    EXPECT_TRUE(Contains(result.out, "pair: REFUSED")) << result.Describe();
    EXPECT_LT(recv(receiver, &byte, 1, 0), 0) << "OPEN: the host's socket got a message\n"
                                              << result.Describe();
  }
  close(receiver);
}

TEST_P(SharingEscape, FS_25_FifosInASharedTreeCarryNothing) {
  if (SharingIsRefused()) {
    return;
  }
  const std::string path = shared_ + "/fifo";
  ASSERT_EQ(mkfifo(path.c_str(), 0666), 0);
  chmod(path.c_str(), 0666);
  const int reader = open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  ASSERT_GE(reader, 0);
  EXPECT_TRUE(Contains(RunOutside({"open-write", path}).out, "OPEN")) << "NO-CONTROL";
  for (const Strings& flags : {Ro(), Rw()}) {
    const RunResult result = RunProbe(flags, {"open-write", at_ + "/fifo"});
    if (!container()) {  // nothing can be put over it there, so such a tree is not taken at all
      EXPECT_EQ(result.exit, 120) << result.Describe();
      EXPECT_TRUE(Contains(result.err, "holds a fifo")) << result.Describe();
      continue;
    }
    EXPECT_TRUE(Contains(result.out, "REFUSED")) << result.Describe();
  }
  close(reader);
}

// A directory that cannot be listed and can be entered: a name in it that the payload knows is as good as any.
TEST_P(SharingEscape, FS_25_AFifoInAClosedDirectory) {
  if (SharingIsRefused()) {
    return;
  }
  const std::string closed = shared_ + "/closed";
  const std::string path = closed + "/fifo";
  ASSERT_EQ(mkdir(closed.c_str(), 0755), 0);
  ASSERT_EQ(mkfifo(path.c_str(), 0666), 0);
  chmod(path.c_str(), 0666);
  const int reader = open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  ASSERT_GE(reader, 0);
  ASSERT_EQ(chmod(closed.c_str(), 0311), 0);
  EXPECT_TRUE(Contains(RunOutside({"open-write", path}).out, "OPEN")) << "NO-CONTROL";
  for (const Strings& flags : {Ro(), Rw()}) {
    const RunResult result = RunProbe(flags, {"open-write", at_ + "/closed/fifo"});
    if (IsRoot()) {  // root lists it, and covers the fifo
      EXPECT_TRUE(Contains(result.out, "REFUSED")) << "OPEN: " << result.Describe();
    } else {
      EXPECT_EQ(result.exit, 120) << result.Describe();
      EXPECT_EQ(result.ErrorClass(), "policy.path.unchecked") << result.Describe();
    }
  }
  chmod(closed.c_str(), 0755);
  close(reader);
}

// Deeper than any path can say: there nothing can be mounted over it, so the tree is not taken.
TEST_P(SharingEscape, FS_25_AFifoThatLiesTooDeep) {
  if (SharingIsRefused()) {
    return;
  }
  const std::string name(200, 'd');
  const auto make = [&](const std::string& tree, int levels) {
    EXPECT_EQ(mkdir(tree.c_str(), 0755), 0);
    int at = open(tree.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; i < levels; ++i) {
      EXPECT_EQ(mkdirat(at, name.c_str(), 0755), 0);
      const int below = openat(at, name.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
      close(at);
      at = below;
    }
    EXPECT_EQ(mknodat(at, "fifo", S_IFIFO | 0666, 0), 0);
    close(at);
  };
  if (container()) {  // the process level takes no tree with a fifo
    make(shared_ + "/few", 3);
    const RunResult few = RunProbe(Ro(), {"args", "it-ran"});
    EXPECT_TRUE(Contains(few.out, "it-ran")) << "NO-CONTROL: " << few.Describe();
  }
  make(shared_ + "/many", 40);
  for (const Strings& flags : {Ro(), Rw()}) {
    const RunResult result = RunProbe(flags, {"args", "it-ran"});
    EXPECT_EQ(result.exit, 120) << result.Describe();
    EXPECT_EQ(result.ErrorClass(), "policy.path.fifo") << result.Describe();
    EXPECT_FALSE(Contains(result.out, "it-ran")) << "OPEN: " << result.Describe();
  }
}

TEST_P(SharingEscape, FS_13_DevicesInASharedTreeDoNotOpen) {
  if (SharingIsRefused()) {
    return;
  }
  if (!IsRoot()) {
    // Only root can put one there; what an ordinary user can prove is that no node can be made inside.
    EXPECT_TRUE(
        Contains(RunProbe(Rw(), {"mknod", "c", "1", "5", at_ + "/zero"}).out, "mknod: REFUSED"));
    return;
  }
  const std::string path = shared_ + "/zero";
  ASSERT_EQ(mknod(path.c_str(), S_IFCHR | 0666, makedev(1, 5)), 0);
  chmod(path.c_str(), 0666);
  EXPECT_TRUE(Contains(RunOutside({"open-write", path}).out, "OPEN")) << "NO-CONTROL";
  for (const Strings& flags : {Ro(), Rw()}) {
    const RunResult result = RunProbe(flags, {"open-write", at_ + "/zero"});
    EXPECT_TRUE(Contains(result.out, "REFUSED")) << result.Describe();
  }
}

TEST_P(SharingEscape, FS_19_WithoutExecFilesInASharedTreeDoNotRun) {
  if (SharingIsRefused()) {
    return;
  }
  fs::copy_file(ProbePath(), shared_ + "/program");
  chmod((shared_ + "/program").c_str(), 0755);
  EXPECT_TRUE(Contains(RunOutside({"exec", shared_ + "/program", "ids"}).out, "ids "))
      << "NO-CONTROL";
  Strings strict = Rw();
  strict.push_back("--no-exec");
  const RunResult result = RunProbe(strict, {"exec", at_ + "/program", "ids"});
  EXPECT_TRUE(Contains(result.out, "exec: REFUSED")) << result.Describe();
  EXPECT_EQ(result.receipt["files"]["exec"], false) << result.Describe();
  const RunResult allowed = RunProbe(Rw(), {"exec", at_ + "/program", "ids"});
  EXPECT_TRUE(Contains(allowed.out, "ids ")) << "without --no-exec it runs: " << allowed.Describe();
  EXPECT_EQ(allowed.receipt["files"]["exec"], true) << allowed.Describe();
}

TEST_P(SharingEscape, FS_30_StrangeNamesAreJustNames) {
  NothingIsAttacked("odd names come through, and a receipt survives them");
  if (SharingIsRefused()) {
    return;
  }
  for (const std::string& name :
       {std::string("new\nline"), std::string("esc\033[31m"), std::string("-rf"),
        std::string(255, 'n'), std::string("bad\xff\xfeutf8"), std::string("a:b")}) {
    dir_.Write("shared/" + name, "content of it", 0644);
  }
  const RunResult result = RunProbe(Ro(), {"list", at_});
  EXPECT_EQ(result.exit, 0) << result.Describe();
  EXPECT_TRUE(Contains(result.out, std::string(255, 'n'))) << result.Describe();
  EXPECT_TRUE(result.receipt.is_object()) << "a receipt that survives odd names";
}

INSTANTIATE_TEST_SUITE_P(Level, SharingEscape, ::testing::Values("container", "process"),
                         LevelTestName);

}  // namespace
}  // namespace coffer::test
