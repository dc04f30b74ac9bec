// SPDX-License-Identifier: Apache-2.0
//
// What of the host's /usr and /etc a call without --runtime does not see: what is not root's own, what is not public,
// fifos and sockets, configuration with secrets; and that set-id programs of /usr are without their privilege.
//
// Each test lays an overlay over /usr and /etc in a mount namespace of its own, so nothing reaches the machine. Each runs
// as root, whose boundary has a uid of its own, and as a user, whose boundary has the user's rights: there the modes of the
// files hide nothing, and what is hidden is hidden by the mount.
#include <fcntl.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "tests/support/host.h"
#include "tests/support/verdicts.h"

namespace coffer::test {
namespace {

namespace fs = std::filesystem;

constexpr uid_t kUser = 48213;

class HostUsrEscape : public LevelTest {
 protected:
  void SetUp() override {
    LevelTest::SetUp();
    if (!IsRoot()) {
      GTEST_SKIP() << "only root can lay files over the host's /usr";
    }
    for (const char* part : {"usr", "usr-work", "etc", "etc-work", "home"}) {
      dir_.MakeDir(part);
    }
    ASSERT_EQ(::chown((dir_ / "home").c_str(), kUser, kUser), 0);
  }

  // A file below "usr" or "etc" of the layer; what is new on the way there is root's and public.
  std::string Lay(const std::string& path, const std::string& content, mode_t mode, uid_t owner = 0,
                  gid_t group = 0) {
    const std::string file = dir_ / path;
    fs::create_directories(fs::path(file).parent_path());
    std::ofstream(file) << content;
    EXPECT_EQ(::chown(file.c_str(), owner, group), 0);
    EXPECT_EQ(::chmod(file.c_str(), mode), 0);
    return "/" + path;
  }

  void GiveTo(const std::string& path, uid_t owner, gid_t group, mode_t mode) {
    const std::string directory = dir_ / path;
    EXPECT_EQ(::chown(directory.c_str(), owner, group), 0);
    EXPECT_EQ(::chmod(directory.c_str(), mode), 0);
  }

  // With the layers on /usr and /etc, as root or as the user.
  RunOptions Layered(bool as_user) const {
    RunOptions options;
    options.environment = Strings{"PATH=/usr/bin:/bin", "HOME=" + (dir_ / "home")};
    options.receipt = dir_ / (as_user ? "home/receipt.json" : "receipt.json");
    const std::string root = dir_.path();
    options.in_child = [root, as_user] {
      if (::unshare(CLONE_NEWNS) != 0 ||
          ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
        _exit(91);
      }
      for (const std::string part : {"usr", "etc"}) {
        const std::string data = "lowerdir=/" + part + ",upperdir=" + root + "/" + part +
                                 ",workdir=" + root + "/" + part + "-work";
        if (::mount("overlay", ("/" + part).c_str(), "overlay", 0, data.c_str()) != 0) {
          _exit(92);
        }
      }
      if (as_user && (::setgroups(0, nullptr) != 0 || ::setresgid(kUser, kUser, kUser) != 0 ||
                      ::setresuid(kUser, kUser, kUser) != 0)) {
        _exit(93);
      }
    };
    return options;
  }

  // Prints what can be read of the files, one after the other.
  static Strings Cat(const Strings& files) {
    Strings command = {"cat"};
    command.insert(command.end(), files.begin(), files.end());
    return command;
  }

  // True if all of them can be read without a boundary, by root and by the user.
  bool ReadableOutside(const Strings& secrets) {
    for (const bool as_user : {false, true}) {
      const RunResult outside = RunProgram(Cat(secrets), Layered(as_user));
      const Strings lines = Lines(outside.out);
      const auto seen = std::count(lines.begin(), lines.end(), token_);
      if (outside.exit != 0 || static_cast<size_t>(seen) != secrets.size()) {
        return false;
      }
    }
    return true;
  }

  // None of `secrets` can be read inside; `open` can.
  void ExpectHidden(Strings secrets, const std::string& open) {
    secrets.push_back(open);
    for (const bool as_user : {false, true}) {
      const RunResult inside = RunCoffer(Flags(), Cat(secrets), Layered(as_user));
      EXPECT_TRUE(Contains(inside.out, "everybody may read this")) << inside.Describe();
      EXPECT_FALSE(Contains(inside.out, token_))
          << "OPEN" << (as_user ? " as a user: " : ": ") << inside.Describe();
    }
  }

  TempDir dir_;
  const std::string token_ = NewToken();
};

TEST_P(HostUsrEscape, FS_40_WhatIsNotRootsOwnIsHidden) {
  const std::string open = Lay("usr/local/share/note", "everybody may read this\n", 0644);
  const std::string theirs = Lay("usr/local/theirs/a", token_ + "\n", 0644, kUser, kUser);
  GiveTo("usr/local/theirs", kUser, kUser, 0755);
  const std::string deeper = Lay("usr/local/lib/theirs/a", token_ + "\n", 0644, kUser, kUser);
  GiveTo("usr/local/lib/theirs", kUser, kUser, 0755);
  const std::string top = Lay("usr/theirs/a", token_ + "\n", 0644);
  GiveTo("usr/theirs", 0, kUser, 0775);  // a group may write there
  const std::string configuration = Lay("usr/local/etc/app.conf", token_ + "\n", 0644);
  const Strings secrets = {theirs, deeper, top, configuration};
  ASSERT_TRUE(ReadableOutside(secrets)) << "NO-CONTROL";
  ExpectHidden(secrets, open);
}

TEST_P(HostUsrEscape, FS_40_WhatIsNotPublicIsHidden) {
  const std::string open = Lay("usr/local/share/note", "everybody may read this\n", 0644);
  const std::string closed = Lay("usr/local/closed/a", token_ + "\n", 0644);
  GiveTo("usr/local/closed", 0, kUser, 0750);  // the user's group may
  const std::string file = Lay("usr/local/a-file", token_ + "\n", 0640, 0, kUser);
  ASSERT_TRUE(ReadableOutside({closed, file})) << "NO-CONTROL";
  ExpectHidden({closed, file}, open);
}

TEST_P(HostUsrEscape, FS_40_ConfigurationThatIsNotPublicIsHidden) {
  const std::string open = Lay("etc/java-99-test/public", "everybody may read this\n", 0644);
  const std::string closed = Lay("etc/java-99-test/password", token_ + "\n", 0640, 0, kUser);
  const std::string npm = Lay("etc/npmrc", token_ + "\n", 0644);
  const std::string pip = Lay("etc/pip.conf", token_ + "\n", 0644);
  const std::string git = Lay("etc/gitconfig", token_ + "\n", 0644);
  const std::string maven = Lay("etc/maven/settings.xml", token_ + "\n", 0644);
  const Strings secrets = {closed, npm, pip, git, maven};
  ASSERT_TRUE(ReadableOutside(secrets)) << "NO-CONTROL";
  if (!container()) {
    // It cannot cover a file, so the whole directory is left out.
    const std::string other = Lay("etc/java-98-test/public", "everybody may read this\n", 0644);
    ExpectHidden(secrets, other);
    return;
  }
  ExpectHidden(secrets, open);
}

TEST_P(HostUsrEscape, FS_40_AFifoInUsrCarriesNothing) {
  const std::string fifo = dir_ / "usr/local/share/pipe";
  fs::create_directories(dir_ / "usr/local/share");
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0666), 0);
  ASSERT_EQ(::chmod(fifo.c_str(), 0666), 0);
  // Both ends at once, so that nothing waits for another process.
  const Strings open = {"python3", "-c",
                        "import os, stat\n"
                        "f = os.open('/usr/local/share/pipe', os.O_RDWR | os.O_NONBLOCK)\n"
                        "print('fifo', stat.S_ISFIFO(os.fstat(f).st_mode))\n"};
  for (const bool as_user : {false, true}) {
    const RunResult outside = RunProgram(open, Layered(as_user));
    ASSERT_EQ(outside.out, "fifo True\n") << "NO-CONTROL: " << outside.Describe();
    const RunResult inside = RunCoffer(Flags(), open, Layered(as_user));
    EXPECT_TRUE(Contains(inside.err, "PermissionError")) << "OPEN: " << inside.Describe();
  }
}

// A directory that the user's group may enter, that a user owns, or that an access control list lets a user write: none of
// them is shown, whatever the modes of the files in it say.
TEST_P(HostUsrEscape, FS_41_ParentsThatAreNotTheSystemsOwn) {
  const std::string directory = "usr/local/lib/vendor";
  const std::string open = Lay("usr/local/share/note", "everybody may read this\n", 0644);
  const std::string secret = Lay(directory + "/tools/secret", token_ + "\n", 0644);
  const auto shown = [&](bool as_user) {
    const RunResult result = RunCoffer(Flags(), Cat({secret, open}), Layered(as_user));
    EXPECT_TRUE(Contains(result.out, "everybody may read this")) << result.Describe();
    return Contains(result.out, token_);
  };
  // A list that lets the user write, as setfacl makes it: version 2; owner, user, group, mask, others.
  const auto entry = [](uint16_t tag, uint16_t rights, uint32_t id) {
    std::string bytes(8, '\0');
    memcpy(bytes.data(), &tag, 2);
    memcpy(bytes.data() + 2, &rights, 2);
    memcpy(bytes.data() + 4, &id, 4);
    return bytes;
  };
  const uint32_t none = 0xffffffff;
  const std::string list = std::string("\2\0\0\0", 4) + entry(1, 7, none) + entry(2, 7, kUser) +
                           entry(4, 5, none) + entry(16, 7, none) + entry(32, 5, none);
  const std::string path = dir_ / directory;
  for (const bool as_user : {false, true}) {
    EXPECT_TRUE(shown(as_user)) << "NO-CONTROL: it is root's and public";
    GiveTo(directory, 0, kUser, 0750);
    EXPECT_FALSE(shown(as_user)) << "OPEN: others may not enter it";
    GiveTo(directory, kUser, kUser, 0755);
    EXPECT_FALSE(shown(as_user)) << "OPEN: it is a user's";
    GiveTo(directory, 0, 0, 0755);
    // On a file system without lists no user can be let in by one.
    if (::setxattr(path.c_str(), "system.posix_acl_access", list.data(), list.size(), 0) != 0) {
      ASSERT_EQ(errno, EOPNOTSUPP);
      continue;
    }
    EXPECT_FALSE(shown(as_user)) << "OPEN: a list lets a user write to it";
    EXPECT_EQ(::removexattr(path.c_str(), "system.posix_acl_access"), 0);
    GiveTo(directory, 0, 0, 0755);
  }
}

// Ends with the process that started it: then another is its parent.
[[noreturn]] void ServeToken(const char* path, const std::string& token) {
  for (int fd = 0; fd < 256; ++fd) {
    close(fd);
  }
  const int listener = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  strncpy(address.sun_path, path, sizeof address.sun_path - 1);
  if (bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      chmod(path, 0777) != 0 || listen(listener, 8) != 0) {
    _exit(1);
  }
  const pid_t parent = getppid();
  while (getppid() == parent && parent != 1) {  // 1: it has ended already
    pollfd waiting = {listener, POLLIN, 0};
    const int peer = poll(&waiting, 1, 100) == 1 ? accept(listener, nullptr, nullptr) : -1;
    if (peer >= 0) {
      (void)!write(peer, token.data(), token.size());
      close(peer);
    }
  }
  _exit(0);
}

int CountOf(const std::string& text, const std::string& part) {
  int count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

TEST_P(HostUsrEscape, FS_25_ASocketDeepInUsrIsNotReached) {
  constexpr const char* kSocket = "/usr/local/share/service/run/socket";
  fs::create_directories(dir_ / "usr/local/share/service/run");
  const Strings talk = {
      "python3", "-c",
      "import socket, time\n"
      "s = socket.socket(socket.AF_UNIX)\n"
      "for i in range(50):\n"
      "  e = s.connect_ex('" +
          std::string(kSocket) +
          "')\n"
          "  if e not in (2, 111): break\n"
          "  time.sleep(0.1)\n"
          "print('errno', e)\n"
          "for make in (lambda: socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM),\n"
          "    lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0]):\n"
          "  for send in ('sendto', 'sendmsg'):\n"
          "    try:\n"
          "      d = make()\n"
          "      d.sendto(b'x', '" +
          std::string(kSocket) + "') if send == 'sendto' else d.sendmsg([b'x'], [], 0, '" +
          std::string(kSocket) +
          "')\n"
          "    except OSError as e: print('datagram', e.errno)\n"
          "print(s.recv(100))\n"};
  for (const bool as_user : {false, true}) {
    RunOptions options = Layered(as_user);
    options.in_child = [layers = options.in_child, token = token_] {
      layers();
      if (fork() == 0) {
        ServeToken(kSocket, token);  // a program of the host, as far as the boundary is concerned
      }
    };
    if (as_user) {
      GiveTo("usr/local/share/service/run", kUser, kUser, 0755);
    }
    const RunResult outside = RunProgram(talk, options);
    ASSERT_TRUE(Contains(outside.out, token_)) << "NO-CONTROL: " << outside.Describe();
    // EPROTOTYPE: each of the four found the socket, which takes no datagrams.
    ASSERT_EQ(CountOf(outside.out, "datagram 91\n"), 4) << "NO-CONTROL: " << outside.Describe();
    fs::remove(dir_ / "usr/local/share/service/run/socket");
    const RunResult inside = RunCoffer(Flags(), talk, options);
    fs::remove(dir_ / "usr/local/share/service/run/socket");
    ExpectRan(inside);
    EXPECT_FALSE(Contains(inside.out, token_)) << "OPEN: " << inside.Describe();
    EXPECT_FALSE(Contains(inside.out, "datagram 91")) << "OPEN: " << inside.Describe();
    if (container()) {
      EXPECT_TRUE(Contains(inside.out, "errno 1\n")) << inside.Describe();
      EXPECT_EQ(CountOf(inside.out, "datagram 1\n"), 4) << inside.Describe();
    } else {  // no socket at all
      EXPECT_TRUE(Contains(inside.err, "PermissionError: [Errno 1]")) << inside.Describe();
    }
  }
}

TEST_P(HostUsrEscape, FS_16_SetuidProgramsOfUsrHaveNoPrivilege) {
  const std::string program = dir_ / "usr/local/bin/setuid-probe";
  fs::create_directories(dir_ / "usr/local/bin");
  fs::copy_file(ProbePath(), program);
  ASSERT_EQ(::chmod(program.c_str(), 06755), 0);
  const RunResult control = RunProgram({"/usr/local/bin/setuid-probe", "ids"}, Layered(true));
  ASSERT_TRUE(Contains(control.out, "euid=0")) << "NO-CONTROL: " << control.Describe();
  for (const bool as_user : {false, true}) {
    // As the command it is refused; started by another program it has no privilege.
    const RunResult typed =
        RunCoffer(Flags(), {"/usr/local/bin/setuid-probe", "ids"}, Layered(as_user));
    EXPECT_EQ(typed.exit, 126) << typed.Describe();
    const RunResult inside =
        RunCoffer(Flags(), {"sh", "-c", "exec /usr/local/bin/setuid-probe ids"}, Layered(as_user));
    ASSERT_TRUE(Contains(inside.out, "ids ")) << inside.Describe();
    EXPECT_FALSE(Contains(inside.out, "euid=0 ")) << "OPEN: " << inside.Describe();
  }
}

INSTANTIATE_TEST_SUITE_P(Level, HostUsrEscape, ::testing::Values("container", "process"),
                         LevelTestName);

}  // namespace
}  // namespace coffer::test
