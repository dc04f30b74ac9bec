// SPDX-License-Identifier: Apache-2.0
//
// CR, and descriptors: what belongs to the caller and must not be found, used or changed.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <termios.h>
#include <unistd.h>

#include <filesystem>

#include "tests/support/host.h"
#include "tests/support/verdicts.h"

namespace coffer::test {
namespace {

class SecretEscape : public LevelTest {};

TEST_P(SecretEscape, CR_01_TheEnvironmentIsBuiltFromNothing) {
  RunOptions options;
  options.environment = Strings{"PATH=/usr/bin:/bin", "AWS_SECRET_ACCESS_KEY=leak1",
                                "GITHUB_TOKEN=leak2", "HOME=/leak3",
                                "USER=leak4",         "HTTP_PROXY=leak5"};
  EXPECT_TRUE(Contains(RunProgram({"env"}, options).out, "leak1")) << "NO-CONTROL";
  const RunResult result = RunCoffer(Flags({"--env", "WANTED=yes"}), {"env"}, options);
  EXPECT_EQ(result.exit, 0) << result.Describe();
  EXPECT_FALSE(Contains(result.out, "leak")) << result.Describe();
  EXPECT_TRUE(Contains(result.out, "WANTED=yes")) << result.Describe();
  EXPECT_LE(Lines(result.out).size(), 12U) << result.Describe();
}

TEST_P(SecretEscape, CR_02_CredentialsInTheHomeDirectory) {
  TempDir home;
  const std::string flag = NewToken();
  Strings verb = {"open-read"};
  for (const char* name :
       {".ssh/id_rsa", ".aws/credentials", ".config/gcloud/key.json", ".netrc", ".npmrc",
        ".docker/config.json", ".kube/config", ".pgpass", ".git-credentials"}) {
    std::filesystem::create_directories(std::filesystem::path(home / name).parent_path());
    home.Write(name, flag);
    verb.push_back(home / name);
  }
  for (const char* system :
       {"/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/run/secrets", "/root/.ssh/id_rsa"}) {
    verb.emplace_back(system);
  }
  EXPECT_TRUE(Contains(RunOutside(verb).out, flag)) << "NO-CONTROL";
  RunOptions options = {.cwd = home.path()};
  options.environment = Strings{"PATH=/usr/bin:/bin", "HOME=" + home.path()};
  const RunResult result = RunProbe(Flags(), verb, options);
  EXPECT_FALSE(Contains(result.out, "OPEN")) << result.Describe();
  EXPECT_FALSE(Contains(result.out, flag));
  EXPECT_TRUE(Contains(result.out, "REFUSED")) << result.Describe();
}

TEST_P(SecretEscape, CR_02_DirectoriesWithCredentialsAreNotShared) {
  TempDir home;
  const Strings plain = Flags({"--ro", home.MakeDir("plain")});
  if (MountsAreRefused(plain)) {
    return;
  }
  EXPECT_EQ(RunProbe(plain, {"exit", "0"}).exit, 0) << "NO-CONTROL: no directory is shared";
  for (const char* name : {".ssh", ".aws", ".gnupg", ".kube", ".docker"}) {
    const std::string path = home.MakeDir(name);
    const RunResult result = RunProbe(Flags({"--ro", path}), {"exit", "0"});
    EXPECT_EQ(result.exit, 120) << path << "\n" << result.Describe();
  }
}

TEST_P(SecretEscape, CR_12_OnesOwnMemoryOnly) {
  // The memory of a process of the same user, and of another boundary's payload: outside the kernel lets us open both.
  Background witness({ProbePath(), "wait", "witness"});
  ASSERT_TRUE(witness.WaitForOutput("ready"));
  LiveBoundary other(Flags());
  ASSERT_TRUE(other.ok()) << other.Why();
  const Strings control = {"mem-write", std::to_string(witness.pid()),
                           std::to_string(other.payload())};
  const RunResult open = RunOutside(control);
  const auto outside = ParseAttempts(open.out);
  EXPECT_EQ(outside.size(), control.size() - 1) << "NO-CONTROL\n" << open.Describe();
  for (const auto& [pid, attempt] : outside) {
    EXPECT_TRUE(attempt.state == Attempt::State::kOpen || TracingIsForbidden())
        << "NO-CONTROL: the memory of " << pid;
  }
  // The supervisor's, init's and the host's first process as well.
  Strings verb = control;
  for (const pid_t pid : {other.supervisor(), other.init(), pid_t{1}}) {
    verb.push_back(std::to_string(pid));
  }
  const RunResult result = RunProbe(Flags(), verb);
  const auto attempts = ParseAttempts(result.out);
  EXPECT_EQ(attempts.size(), verb.size() - 1) << result.Describe();
  for (const auto& [pid, attempt] : attempts) {
    EXPECT_EQ(attempt.state, Attempt::State::kRefused) << pid << "\n" << result.Describe();
  }
}

TEST_P(SecretEscape, CR_13_AgentSockets) {
  TempDir dir;
  const std::string path = dir / "agent";
  const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(listen(listener, 8), 0);
  EXPECT_TRUE(Contains(RunOutside({"connect-unix", path}).out, "OPEN")) << "NO-CONTROL";
  ASSERT_GE(accept(listener, nullptr, nullptr), 0);
  RunOptions options;
  options.environment = Strings{"PATH=/usr/bin:/bin", "SSH_AUTH_SOCK=" + path,
                                "DBUS_SESSION_BUS_ADDRESS=unix:path=" + path,
                                "GPG_AGENT_INFO=" + path, "DOCKER_HOST=unix://" + path};
  const RunResult env = RunCoffer(Flags(), {"env"}, options);
  EXPECT_TRUE(Contains(env.out, "PATH=")) << env.Describe();
  EXPECT_FALSE(Contains(env.out, path)) << env.Describe();
  const RunResult result = RunProbe(Flags(), {"connect-unix", path}, options);
  EXPECT_TRUE(Contains(result.out, "REFUSED")) << result.Describe();
  EXPECT_LT(accept(listener, nullptr, nullptr), 0) << "OPEN: the agent was reached";
  // Asking for the socket itself is refused with the reason.
  const RunResult shared = RunProbe(Flags({"--ro", path}), {"exit", "0"});
  EXPECT_EQ(shared.exit, 120) << shared.Describe();
  EXPECT_TRUE(Contains(shared.err, "socket")) << shared.Describe();
  close(listener);
}

TEST_P(SecretEscape, StdinThatIsAWritableFileIsNotWritten) {
  TempDir dir;
  const std::string file = dir.Write("input", "untouched", 0666);
  RunOptions options;
  options.in_child = [file] { dup2(open(file.c_str(), O_RDWR), 0); };
  const Strings shell = {
      "sh", "-c", "printf evil >&0; printf evil >/proc/self/fd/0; printf evil >/dev/stdin; exit 0"};
  const RunResult control = RunProgram(shell, options);
  EXPECT_NE(ReadFile(file), "untouched") << "NO-CONTROL: " << control.Describe();
  dir.Write("input", "untouched", 0666);
  const RunResult result = RunCoffer(Flags(), shell, options);
  ExpectRan(result);
  EXPECT_EQ(ReadFile(file), "untouched") << "OPEN\n" << result.Describe();
}

TEST_P(SecretEscape, StdoutIsNotAWayToReadOrTruncateAFile) {
  TempDir dir;
  const std::string flag = NewToken();
  const std::string file = dir.Write("log", flag + "\n", 0666);
  RunOptions options;
  options.in_child = [file] {
    const int fd = open(file.c_str(), O_RDWR | O_APPEND);
    dup2(fd, 1);
  };
  const Strings python = {"python3", "-c",
                          "import os, sys\n"
                          "for way in ('/proc/self/fd/1', '/dev/stdout'):\n"
                          "  try: sys.stderr.write(open(way, 'r').read(100))\n"
                          "  except OSError as e: sys.stderr.write(str(e))\n"
                          "try: os.ftruncate(1, 0)\n"
                          "except OSError as e: sys.stderr.write(str(e))\n"
                          "try: os.lseek(1, 0, 0); sys.stderr.write(os.read(1, 100).decode())\n"
                          "except OSError as e: sys.stderr.write(str(e))\n"};
  RunOptions bounded = options;
  bounded.timeout = Seconds(20);
  RunResult control = RunProgram(python, bounded);
  EXPECT_TRUE(Contains(control.err, flag)) << "NO-CONTROL: it cannot be read\n"
                                           << control.Describe();
  EXPECT_FALSE(Contains(ReadFile(file).value_or(""), flag)) << "NO-CONTROL: it is not truncated";
  dir.Write("log", flag + "\n", 0666);
  const RunResult result = RunCoffer(Flags({"--wall", "5s"}), python, bounded);
  ExpectRan(result);
  EXPECT_FALSE(Contains(result.err, flag)) << "OPEN: the log was read\n" << result.Describe();
  EXPECT_TRUE(Contains(ReadFile(file).value_or(""), flag)) << "OPEN: the log was truncated\n"
                                                           << result.Describe();
}

TEST_P(SecretEscape, SC_10_TheCallersTerminalIsNotInside) {
  const int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  ASSERT_GE(master, 0);
  ASSERT_EQ(grantpt(master) | unlockpt(master), 0);
  const std::string name = ptsname(master);
  RunOptions options;
  options.in_child = [name] {
    setsid();
    const int slave = open(name.c_str(), O_RDWR);
    ioctl(slave, TIOCSCTTY, 0);
    dup2(slave, 0);
  };
  EXPECT_TRUE(Contains(RunOutside({"tty-fd", "0"}, options).out, "tiocsti: OPEN")) << "NO-CONTROL";
  const RunResult result = RunProbe(Flags({"--wall", "10s"}), {"tty-fd", "0"}, options);
  EXPECT_TRUE(Contains(result.out, "isatty 0")) << "the caller's terminal is inside\n"
                                                << result.Describe();
  EXPECT_FALSE(Contains(result.out, "OPEN")) << result.Describe();
  const RunResult tty = RunProbe(Flags(), {"open-write", "/dev/tty"}, options);
  EXPECT_FALSE(Contains(tty.out, "OPEN")) << tty.Describe();
  close(master);
}

TEST_P(SecretEscape, DescriptorsOfferedOverStdinDoNotArrive) {
  // Somebody gives coffer a socket as stdin and offers a descriptor on it.
  TempDir dir;
  const std::string file = dir.Write("secret", "s");
  const auto offer = [&](RunOptions& options, int pair[2]) {
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    const int fd = open(file.c_str(), O_RDWR | O_CLOEXEC);
    char byte = 'x';
    iovec data = {&byte, 1};
    char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr message = {};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(head), &fd, sizeof fd);
    ASSERT_EQ(sendmsg(pair[0], &message, 0), 1);
    close(fd);
    const int end = pair[1];
    options.in_child = [end] { dup2(end, 0); };
  };
  int outside[2], inside[2];
  RunOptions options;
  offer(options, outside);
  EXPECT_TRUE(Contains(RunOutside({"scm-receive"}, options).out, "OPEN")) << "NO-CONTROL";
  RunOptions second;
  offer(second, inside);
  close(outside[0]);
  close(outside[1]);
  const RunResult result = RunProbe(Flags({"--wall", "5s"}), {"scm-receive"}, second);
  ExpectRan(result);
  EXPECT_FALSE(Contains(result.out, "OPEN")) << result.Describe();
  close(inside[0]);
  close(inside[1]);
}

TEST_P(SecretEscape, ErrorsSeenInsideHoldNoHostPath) {
  TempDir dir;
  const std::string shared = dir.MakeDir("shared");
  dir.Write("shared/file", "x", 0000);
  EXPECT_TRUE(
      Contains(RunProgram({"sh", "-c", "cat " + shared + "/none 2>&1; true"}).out, dir.path()))
      << "NO-CONTROL";
  const Strings flags = container() ? Flags({"--ro", shared + ":/data"}) : Flags();
  const RunResult result = RunCoffer(
      flags,
      {"sh", "-c", "cat /data/none /data/file /proc/self/maps /etc/passwd 2>&1; id 2>&1; true"});
  ExpectRan(result);
  EXPECT_TRUE(Contains(result.out, "/data/none")) << result.Describe();
  EXPECT_FALSE(Contains(result.out, dir.path())) << result.Describe();
}

INSTANTIATE_TEST_SUITE_P(Level, SecretEscape, ::testing::Values("container", "process"),
                         LevelTestName);

}  // namespace
}  // namespace coffer::test
