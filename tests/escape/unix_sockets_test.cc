// SPDX-License-Identifier: Apache-2.0
//
// UNIX sockets: inside they work, and nothing of the host is reached by them, whatever the kind of socket, the call, the
// name, and whatever changes while the supervisor looks (connect_server.h).
#include <fcntl.h>
#include <gtest/gtest.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/support/host.h"
#include "tests/support/verdicts.h"

namespace coffer::test {
namespace {

// A socket of the host that counts who came.
class HostSocket {
 public:
  HostSocket(const std::string& path, int type)
      : fd_(socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)), type_(type) {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
    EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0) << path;
    chmod(path.c_str(), 0777);
    if (type != SOCK_DGRAM) {
      EXPECT_EQ(listen(fd_, 64), 0);
    }
  }
  ~HostSocket() { close(fd_); }
  HostSocket(const HostSocket&) = delete;
  HostSocket& operator=(const HostSocket&) = delete;

  int Visitors() const {
    int count = 0;
    char byte = 0;
    while (true) {
      const long came =
          type_ == SOCK_DGRAM ? recv(fd_, &byte, 1, 0) : accept(fd_, nullptr, nullptr);
      if (came < 0) {
        return count;
      }
      ++count;
      if (type_ != SOCK_DGRAM) {
        close(static_cast<int>(came));
      }
    }
  }

 private:
  int fd_;
  int type_;
};

class UnixSocketEscape : public LevelTest {
 protected:
  TempDir dir_;
  const std::string shared_ = dir_.MakeDir("shared", 0755);
  const std::string at_ = container() ? "/data" : shared_;
  Strings Ro() const { return Flags({"--ro", container() ? shared_ + ":/data" : shared_}); }
  Strings Rw() const { return Flags({"--rw", container() ? shared_ + ":/data" : shared_}); }
  // As root the process level takes no mounts; there every path is a name without.
  std::vector<Strings> Mounted() const {
    return container() || !IsRoot() ? std::vector<Strings>{Ro(), Rw()}
                                    : std::vector<Strings>{Flags()};
  }
};

TEST_P(UnixSocketEscape, FS_25_EveryKindOfSocketAndEveryCall) {
  const HostSocket datagrams(shared_ + "/d", SOCK_DGRAM);
  const HostSocket packets(shared_ + "/p", SOCK_SEQPACKET);
  const HostSocket stream(shared_ + "/s", SOCK_STREAM);
  EXPECT_TRUE(Contains(RunOutside({"unix-datagrams", shared_ + "/d"}).out, "pair-sendmsg: OPEN"));
  EXPECT_GE(datagrams.Visitors(), 9) << "NO-CONTROL: socket and pair by each call, and raw";
  RunOutside({"connect-unix", shared_ + "/s"});
  EXPECT_EQ(stream.Visitors(), 1) << "NO-CONTROL";
  for (const Strings& flags : Mounted()) {
    for (const char* name : {"/d", "/p", "/s"}) {
      const RunResult sent = RunProbe(flags, {"unix-datagrams", at_ + name});
      const RunResult connected = RunProbe(flags, {"connect-unix", at_ + name});
      EXPECT_EQ(datagrams.Visitors() + packets.Visitors() + stream.Visitors(), 0)
          << "OPEN: " << name << "\n"
          << sent.Describe() << connected.Describe();
      for (const std::string& line : Lines(sent.out)) {
        // A pair of packets ignores the address: it talks to its other end.
        EXPECT_TRUE(!Contains(line, "OPEN") || line.starts_with("seqpacket-send")) << line;
      }
      EXPECT_TRUE(Contains(connected.out, "REFUSED errno=EPERM"))
          << "a name that is not there proves nothing\n"
          << connected.Describe();
    }
  }
}

TEST_P(UnixSocketEscape, FS_25_SocketsThatTheCallerHasOpen) {
  // The filter keeps a payload from making such a socket; one that it is given would do as well.
  const HostSocket datagrams(shared_ + "/d", SOCK_DGRAM);
  RunOptions options;
  options.in_child = [] {
    const int open = socket(AF_UNIX, SOCK_DGRAM, 0);
    if (dup2(open, 0) < 0 || dup2(open, 37) < 0) {
      _exit(99);
    }
  };
  const RunResult outside = RunOutside({"unix-inherited", shared_ + "/d"}, options);
  EXPECT_GE(datagrams.Visitors(), 2) << "NO-CONTROL\n" << outside.Describe();
  for (const Strings& flags : Mounted()) {
    const RunResult inside = RunProbe(flags, {"unix-inherited", at_ + "/d"}, options);
    EXPECT_TRUE(Contains(inside.out, "tried")) << inside.Describe();
    EXPECT_FALSE(Contains(inside.out, "OPEN")) << inside.Describe();
    EXPECT_EQ(datagrams.Visitors(), 0) << "OPEN\n" << inside.Describe();
  }
}

TEST_P(UnixSocketEscape, FS_25_ProcessLevelWithoutMounts) {
  // Without a private root every path of the host is a name, mounted or not.
  const HostSocket datagrams(dir_ / "d", SOCK_DGRAM);
  RunOutside({"unix-datagrams", dir_ / "d"});
  EXPECT_GE(datagrams.Visitors(), 9) << "NO-CONTROL";
  const RunResult result = RunProbe(Flags(), {"unix-datagrams", dir_ / "d"});
  EXPECT_EQ(datagrams.Visitors(), 0) << "OPEN\n" << result.Describe();
  EXPECT_EQ(result.exit, 0) << result.Describe();
}

// At the container level, where there are UNIX sockets to connect and to bind.
class HostSocketEscape : public ::testing::Test {
 protected:
  TempDir dir_;
  const std::string shared_ = dir_.MakeDir("shared", 0755);
  static Strings Flags(Strings more = {}) {
    more.insert(more.begin(), {"--level", "container"});
    return more;
  }
  Strings Ro() const { return Flags({"--ro", shared_ + ":/data"}); }
  Strings Rw() const { return Flags({"--rw", shared_ + ":/data"}); }
};

TEST_F(HostSocketEscape, FS_25_TheRefusalIsInTheReceipt) {
  const HostSocket stream(shared_ + "/s", SOCK_STREAM);
  RunOutside({"connect-unix", shared_ + "/s"});
  EXPECT_EQ(stream.Visitors(), 1) << "NO-CONTROL";
  ASSERT_EQ(symlink("s", (shared_ + "/link").c_str()), 0);
  for (const char* name : {"/data/s", "/data/link", "/data/../data/./s", "/workspace/../data/s"}) {
    const RunResult result =
        RunProbe(Flags({"--ro", shared_ + ":/data", "--trace"}), {"connect-unix", name});
    EXPECT_TRUE(Contains(result.out, "REFUSED errno=EPERM")) << result.Describe();
    EXPECT_EQ(DeniedCount(result.receipt, "connect"), 1) << result.Describe();
    const std::string target = std::string("connect(AF_UNIX, \"") + name + "\")";
    EXPECT_TRUE(Contains(result.receipt["denials"].dump(-1), "isolation.host_socket"));
    EXPECT_TRUE(Contains(result.err, "refused 1x " + target)) << result.Describe();
  }
  EXPECT_EQ(stream.Visitors(), 0);
}

TEST_F(HostSocketEscape, FS_25_NothingThatChangesMeanwhileDecides) {
  // The address in memory and a link in /tmp change under the call, between a socket of the payload's and the host's.
  const HostSocket stream(shared_ + "/s", SOCK_STREAM);
  const std::string own = dir_ / "own";
  const std::string outside =
      RunOutside({"unix-race", own, shared_ + "/s", dir_ / "link", "2"}).out;
  EXPECT_GT(stream.Visitors(), 0) << "NO-CONTROL: the host was never reached\n" << outside;
  EXPECT_FALSE(Contains(outside, "own 0 ")) << "NO-CONTROL: the race never changed\n" << outside;
  const RunResult result = RunProbe(Ro(), {"unix-race", "/tmp/own", "/data/s", "/tmp/link", "4"});
  EXPECT_EQ(stream.Visitors(), 0) << "OPEN\n" << result.Describe();
  EXPECT_TRUE(Contains(result.out, "tries")) << result.Describe();
  EXPECT_FALSE(Contains(result.out, "own 0 ")) << "it never reached itself\n" << result.Describe();
}

TEST_F(HostSocketEscape, FS_25_ASocketThatAppearsLater) {
  Background waiting({CofferPath(), "run", "--quiet", "--runtime", "python3", "--ro",
                      shared_ + ":/data", "--", "python3", "-uc",
                      "import socket, time\n"
                      "print('ready')\n"
                      "end = time.time() + 5\n"
                      "last = ''\n"
                      "while time.time() < end and 'not permitted' not in last:\n"
                      "  s = socket.socket(socket.AF_UNIX)\n"
                      "  try: s.connect('/data/late'); last = 'CONNECTED'; break\n"
                      "  except OSError as e: last = str(e)\n"
                      "print(last)\n"});
  ASSERT_TRUE(waiting.WaitForOutput("ready"));
  const HostSocket stream(shared_ + "/late", SOCK_STREAM);
  RunOutside({"connect-unix", shared_ + "/late"});
  EXPECT_EQ(stream.Visitors(), 1) << "NO-CONTROL";
  const RunResult result = waiting.Wait(Seconds(30));
  EXPECT_TRUE(Contains(result.out, "Operation not permitted")) << result.Describe();
  EXPECT_EQ(stream.Visitors(), 0) << "OPEN\n" << result.Describe();
}

TEST_F(HostSocketEscape, FS_25_NoSocketIsLeftForProgramsOfTheHost) {
  EXPECT_TRUE(Contains(RunOutside({"bind-unix", dir_ / "control"}).out, "OPEN")) << "NO-CONTROL";
  const RunResult result = RunProbe(Rw(), {"bind-unix", "/data/planted"});
  EXPECT_TRUE(Contains(result.out, "REFUSED")) << result.Describe();
  EXPECT_FALSE(Exists(shared_ + "/planted")) << "OPEN";
}

// The other side of it: everything of the boundary's own works, beside a mount and without.
TEST_F(HostSocketEscape, OwnSocketsWork) {
  NothingIsAttacked("programs that talk to themselves");
  const std::string code =
      "import multiprocessing as m, socket, struct, threading, os\n"
      "def serve(l):\n"
      "  c, _ = l.accept()\n"
      "  uid = struct.unpack('3i', c.getsockopt(socket.SOL_SOCKET, 17, 12))[1] if "
      "l.family == socket.AF_UNIX else os.getuid()\n"
      "  c.sendall(b'hello' if uid == os.getuid() else b'stranger')\n"
      "  c.close()\n"
      "def talk(family, kind, name):\n"
      "  l = socket.socket(family, kind); l.bind(name); l.listen(1)\n"
      "  t = threading.Thread(target=serve, args=(l,)); t.start()\n"
      "  s = socket.socket(family, kind); s.settimeout(60); s.connect(l.getsockname())\n"
      "  print(s.recv(10)); t.join()\n"
      "if __name__ == '__main__':\n"
      "  os.chdir('/workspace')\n"
      "  talk(socket.AF_UNIX, 1, '/tmp/s'); talk(socket.AF_UNIX, 1, 'relative')\n"
      "  talk(socket.AF_UNIX, 5, '/workspace/packets'); talk(socket.AF_UNIX, 1, '\\0abstract')\n"
      "  talk(socket.AF_INET, 1, ('127.0.0.1', 0)); talk(socket.AF_INET6, 1, ('::1', 0))\n"
      "  m.set_start_method('forkserver')\n"
      "  with m.Manager() as manager: print(manager.list([1, 2]))\n";
  for (const Strings& flags : {Flags({"--runtime", "python3"}),
                               Flags({"--runtime", "python3", "--ro", shared_ + ":/data"})}) {
    const std::string script = dir_.Write("script.py", code, 0644);
    Strings command = flags;
    // Python starts three interpreters: more than 10 s of CPU time where the machine is emulated.
    command.insert(command.begin(), {CofferPath(), "run", "--cpu", "2m", "--wall", "2m"});
    command.push_back(script);
    RunOptions patient;
    patient.timeout = Seconds(150);
    const RunResult result = RunProgram(command, patient);
    EXPECT_EQ(result.out, "b'hello'\nb'hello'\nb'hello'\nb'hello'\nb'hello'\nb'hello'\n[1, 2]\n")
        << result.Describe();
  }
}

INSTANTIATE_TEST_SUITE_P(Level, UnixSocketEscape, ::testing::Values("container", "process"),
                         LevelTestName);

}  // namespace
}  // namespace coffer::test
