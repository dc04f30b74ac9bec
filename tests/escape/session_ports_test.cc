// SPDX-License-Identifier: Apache-2.0
//
// Ports of a session's background processes: what comes in through them, and through the keeper's socket, is bounded.
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <utility>

#include "tests/support/host.h"

namespace coffer::test {
namespace {

namespace fs = std::filesystem;

constexpr Seconds kLong(100);

// Asks a keeper for the way to its process's ports, from the directory of its socket: the whole path is too long for one.
const char kAskKeeper[] =
    "import os, socket, struct, sys\n"
    "try:\n"
    "  os.chdir(sys.argv[1])\n"
    "  s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)\n"
    "  s.connect('control')\n"
    "  s.send(struct.pack('=IIi', 0x636f4b10, 1, 0))\n"
    "  print('descriptors', len(socket.recv_fds(s, 12, 2)[1]))\n"
    "except OSError as e: print('refused', e)\n";

// Two descriptors for a receiver that has room for one, as an answer to nothing.
const char kSendTwo[] =
    "import os, socket, struct, sys\n"
    "def two(s): socket.send_fds(s, [struct.pack('=IIi', 0x636f4b10, 9, 0)], [0, 0])\n"
    "a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)\n"
    "two(a)\n"
    "data = b.recvmsg(12, socket.CMSG_SPACE(4))[1][0][2]\n"
    "print('room for one took', len(data) // 4)\n"
    "os.chdir(sys.argv[1])\n"
    "for i in range(20):\n"
    "  s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)\n"
    "  s.connect('control')\n"
    "  two(s)\n"
    "  try: s.recv(12)\n"  // until the keeper has closed it
    "  except ConnectionResetError: pass\n";

// Listens on the port and never reads. A small buffer of its own, so that what is sent lies elsewhere.
const char kNeverReads[] =
    "import socket, sys\n"
    "l = socket.socket()\n"
    "l.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)\n"
    "l.bind(('127.0.0.1', int(sys.argv[1])))\n"
    "l.listen(8)\n"
    "print('listening', l.getsockname()[1], flush=True)\n"
    "kept = []\n"
    "while True: kept.append(l.accept())\n";

// How much one connection to the port takes before it takes nothing more for two seconds.
const char kFill[] =
    "import select, socket, sys\n"
    "s = socket.socket()\n"
    "s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)\n"
    "s.connect(('127.0.0.1', int(sys.argv[1])))\n"
    "s.setblocking(False)\n"
    "sent = 0\n"
    "while sent < 64 << 20 and select.select([], [s], [], 2)[1]: sent += s.send(b'x' * 65536)\n"
    "print('sent', sent)\n";

// The same on the host, through a relay with the buffers that the kernel gives it.
const char kFillThroughARelay[] =
    "import socket, subprocess, sys, threading\n"
    "server = subprocess.Popen([sys.executable, '-c', sys.argv[1], '0'], stdout=subprocess.PIPE)\n"
    "port = int(server.stdout.readline().split()[1])\n"
    "relay = socket.create_server(('127.0.0.1', 0))\n"
    "def carry():\n"
    "  c, _ = relay.accept()\n"
    "  to = socket.create_connection(('127.0.0.1', port))\n"
    "  while True: to.sendall(c.recv(16384))\n"
    "threading.Thread(target=carry, daemon=True).start()\n"
    "subprocess.run([sys.executable, '-c', sys.argv[2], str(relay.getsockname()[1])])\n"
    "server.kill()\n";

// Accepts nothing on 8000, everything on 8001, and says how many connections to 8000 are being tried.
const char kAcceptsNothing[] =
    "import socket, threading, time\n"
    "full = socket.create_server(('127.0.0.1', 8000), backlog=0)\n"
    "other = socket.create_server(('127.0.0.1', 8001))\n"
    "def serve():\n"
    "  while True:\n"
    "    c, _ = other.accept()\n"
    "    c.sendall(b'answer')\n"
    "    c.close()\n"
    "threading.Thread(target=serve, daemon=True).start()\n"
    "print('listening', flush=True)\n"
    "while True:\n"
    "  trying = sum(line.split()[3] == '02' for line in open('/proc/net/tcp'))\n"
    "  if trying >= 12: print('places taken', flush=True)\n"
    "  time.sleep(0.05)\n";

const char kHoldForty[] =
    "import socket, time\n"
    "held = [socket.socket() for _ in range(40)]\n"
    "for s in held: s.setblocking(False); s.connect_ex(('127.0.0.1', 8000))\n"
    "print('held', flush=True)\n"
    "time.sleep(1000)\n";

class SessionPortEscape : public ::testing::Test {
 protected:
  SessionPortEscape() {
    dir_.MakeDir("home");
    options_.environment = {
        {"HOME=" + (dir_ / "home"), "PATH=/usr/bin:/bin", "COFFER_STATE=" + (dir_ / "state")}};
    session_ = FirstLine(Coffer({"sessions", "new"}).out);
  }
  ~SessionPortEscape() override { (void)Coffer({"sessions", "end", session_}); }

  static std::string FirstLine(const std::string& text) { return text.substr(0, text.find('\n')); }
  static long Number(const std::string& text, const std::string& word) {
    const size_t at = text.find(word + " ");
    return at == std::string::npos ? -1 : atol(text.c_str() + at + word.size() + 1);
  }
  RunResult Coffer(Strings words) {
    words.insert(words.begin(), CofferPath());
    return RunProgram(words, options_);
  }
  static Strings Python(const Strings& before, const char* code, const Strings& words = {}) {
    Strings all = before;
    all.insert(all.end(), {"python3", "-uc", code});
    all.insert(all.end(), words.begin(), words.end());
    return all;
  }
  // A process with these ports that has printed `listening`; its directory in the state.
  std::string Start(const Strings& ports, const char* code, const Strings& words = {}) {
    Strings all = {"sessions", "start", session_};
    for (const std::string& port : ports) {
      all.insert(all.end(), {"--port", port});
    }
    all.push_back("--");
    const RunResult started = Coffer(Python(all, code, words));
    EXPECT_EQ(started.exit, 0) << started.Describe();
    process_ = FirstLine(started.out);
    EXPECT_TRUE(LogHas("listening"));
    return dir_ / ("state/processes/" + session_ + "/" + process_);
  }
  bool LogHas(const std::string& text) {
    return WaitUntil(
        [&] { return Contains(Coffer({"sessions", "log", session_, process_}).out, text); }, kLong);
  }
  // The one of its processes that no other of them has started.
  pid_t Keeper() const {
    const std::vector<pid_t> all = FindProcesses(session_, Supervisors::kCount);
    for (const pid_t pid : all) {
      if (std::find(all.begin(), all.end(), LookAt(pid).parent) == all.end()) {
        return pid;
      }
    }
    return -1;
  }
  Strings InSession() { return {"run", "--session", session_, "--wall", "200s", "--"}; }

  TempDir dir_;
  RunOptions options_;
  std::string session_;
  std::string process_;
};

TEST_F(SessionPortEscape, AKeeperKeepsNoDescriptorThatItDidNotAskFor) {
  const std::string place = Start({"8000"}, kNeverReads, {"8000"});
  const std::string open = "/proc/" + std::to_string(Keeper()) + "/fd";
  const auto count = [&] {
    return std::distance(fs::directory_iterator(open), fs::directory_iterator());
  };
  const auto before = count();
  const RunResult sent = RunProgram(Python({}, kSendTwo, {place}));
  EXPECT_TRUE(Contains(sent.out, "room for one took 2")) << "NO-CONTROL\n" << sent.Describe();
  EXPECT_EQ(sent.exit, 0) << sent.Describe();
  EXPECT_TRUE(WaitUntil([&] { return count() <= before; }, kLong)) << "OPEN: it has " << count();
}

// A caller may have a second state directory, and mount the first without a thought.
TEST_F(SessionPortEscape, NoPayloadReachesAKeeper) {
  const std::string place = Start({"8000"}, kNeverReads, {"8000"});
  const RunResult outside = RunProgram(Python({}, kAskKeeper, {place}));
  EXPECT_TRUE(Contains(outside.out, "descriptors 1")) << "NO-CONTROL\n" << outside.Describe();
  const std::string container = "--level=container";
  RunOptions other = options_;
  other.environment->back() = "COFFER_STATE=" + (dir_ / "other");
  for (const char* const flag : {"--ro", "--rw"}) {
    for (const std::string& level : {container, std::string("--level=process")}) {
      Strings argv = {CofferPath(), "run", level};
      // As root the process level takes no mounts.
      if (level == container || !IsRoot()) {
        argv.insert(argv.end(), {flag, dir_ / "state/processes"});
      }
      argv.push_back("--");
      const RunResult inside = RunProgram(Python(argv, kAskKeeper, {place}), other);
      EXPECT_TRUE(Contains(inside.out, "refused")) << level << flag << "\n" << inside.Describe();
    }
  }
}

// Nothing but a regular file is opened there, so nothing there can make a verb wait.
TEST_F(SessionPortEscape, AFifoAmongTheKeepersFilesHoldsNoVerbUp) {
  const std::string place = Start({"8000"}, kNeverReads, {"8000"});
  options_.timeout = Seconds(30);
  const Strings list = {"sessions", "processes", session_};
  const Strings log = {"sessions", "log", session_, process_};
  for (const auto& [name, verb] : {std::pair("about", list), std::pair("log", log)}) {
    const std::string file = place + "/" + name;
    EXPECT_EQ(Coffer(verb).exit, 0) << "the verb works";
    fs::rename(file, file + ".old");
    ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
    RunOptions short_time;
    short_time.timeout = Seconds(1);
    EXPECT_TRUE(RunProgram({"cat", file}, short_time).timed_out) << "NO-CONTROL";
    const RunResult asked = Coffer(verb);
    EXPECT_EQ(asked.exit, 120) << "OPEN " << name << "\n" << asked.Describe();
    EXPECT_TRUE(Contains(asked.err, "a fifo")) << asked.Describe();
    fs::rename(file + ".old", file);
  }
}

// What lies in the forwarder's sockets is charged to no boundary.
TEST_F(SessionPortEscape, AForwarderHoldsLittle) {
  constexpr long kMost = 3 << 19;
  const RunResult plain = RunProgram(Python({}, kFillThroughARelay, {kNeverReads, kFill}));
  EXPECT_GT(Number(plain.out, "sent"), kMost) << "NO-CONTROL\n" << plain.Describe();
  Start({"8000"}, kNeverReads, {"8000"});
  const RunResult filled = Coffer(Python(InSession(), kFill, {"8000"}));
  EXPECT_GT(Number(filled.out, "sent"), 0) << filled.Describe();
  EXPECT_LE(Number(filled.out, "sent"), kMost) << "OPEN\n" << filled.Describe();
}

// By itself the kernel tries for more than two minutes.
TEST_F(SessionPortEscape, AServerThatAcceptsNothingHoldsNoPlace) {
  Start({"8000", "8001"}, kAcceptsNothing);
  Strings argv = Python(InSession(), kHoldForty);
  argv.insert(argv.begin(), CofferPath());
  Background holder(argv, options_);
  ASSERT_TRUE(holder.WaitForOutput("held")) << holder.err();
  ASSERT_TRUE(LogHas("places taken")) << "NO-CONTROL: the places are not taken";
  const RunResult other = Coffer(Python(InSession(),
                                        "import socket\n"
                                        "s = socket.create_connection(('127.0.0.1', 8001))\n"
                                        "s.settimeout(60)\n"
                                        "print(s.recv(10))\n"));
  EXPECT_EQ(other.out, "b'answer'\n") << "OPEN\n" << other.Describe();
  holder.Signal(SIGTERM);
  holder.Wait();
}

}  // namespace
}  // namespace coffer::test
