// SPDX-License-Identifier: Apache-2.0
//
// `coffer run --publish`: a port inside is reached on the host's loopback, and the payload reaches nothing by it.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <optional>
#include <sstream>
#include <utility>

#include "tests/support/host.h"
#include "tests/support/verdicts.h"

namespace coffer::test {
namespace {

namespace fs = std::filesystem;

// A connection to that port of the host's loopback; -1 if none can be made.
int Connect(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const timeval limit = {20, 0};  // the number may be another server's by now
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) {
    return fd;
  }
  close(fd);
  return -1;
}

// What a server on that port says; nothing if none can be reached.
std::optional<std::string> Hear(int port) {
  const int fd = Connect(port);
  std::optional<std::string> heard;
  if (fd >= 0) {
    heard.emplace();
    char bytes[256];
    for (ssize_t got = 0; (got = recv(fd, bytes, sizeof bytes, 0)) > 0;) {
      heard->append(bytes, static_cast<size_t>(got));
    }
    close(fd);
  }
  return heard;
}

// A listener of the host, on every address.
class HostServer {
 public:
  HostServer() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    socklen_t size = sizeof address;
    EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(fd_, 8), 0);
    getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
  }
  ~HostServer() { close(fd_); }
  HostServer(const HostServer&) = delete;
  HostServer& operator=(const HostServer&) = delete;
  int port() const { return port_; }
  int Visitors() const {
    int count = 0;
    for (int came = -1; (came = accept(fd_, nullptr, nullptr)) >= 0; ++count) {
      close(came);
    }
    return count;
  }

 private:
  int fd_;
  int port_ = 0;
};

std::string LineOf(const std::string& text, const std::string& start) {
  for (const std::string& line : Lines(text)) {
    if (line.starts_with(start)) {
      return line;
    }
  }
  return "";
}

std::string Joined(const Strings& words) {
  std::string all;
  for (const std::string& word : words) {
    all += word + "\n";
  }
  return all;
}

// {local address, inode} of the listener on that port, from the host's own table.
std::pair<std::string, std::string> ListenerAt(int port) {
  char wanted[16];
  snprintf(wanted, sizeof wanted, ":%04X", port);
  for (const std::string& line : Lines(ReadFile("/proc/net/tcp").value_or(""))) {
    char local[64] = "", remote[64] = "", state[8] = "", inode[32] = "";
    if (sscanf(line.c_str(), " %*s %63s %63s %7s %*s %*s %*s %*s %*s %31s", local, remote, state,
               inode) == 4 &&
        std::string(local).ends_with(wanted) && std::string(state) == "0A") {
      return {local, inode};
    }
  }
  return {};
}

// The processes below `pid`, with the descriptors of each as links.
void Collect(pid_t pid, std::map<pid_t, Strings>& found) {
  std::error_code ignored;
  for (const auto& task :
       fs::directory_iterator("/proc/" + std::to_string(pid) + "/task", ignored)) {
    std::istringstream children(ReadFile(task.path().string() + "/children").value_or(""));
    for (pid_t child = 0; children >> child;) {
      for (const auto& fd :
           fs::directory_iterator("/proc/" + std::to_string(child) + "/fd", ignored)) {
        found[child].push_back(fs::read_symlink(fd.path(), ignored).string());
      }
      found[child];
      Collect(child, found);
    }
  }
}

class PublishEscape : public ::testing::Test {
 protected:
  // Says on which port it listens, answers every connection with `word`, and tries to reach `other` on loopback.
  static std::string Server(const std::string& word, int port, int other) {
    return "import socket\n"
           "l = socket.create_server(('127.0.0.1', " +
           std::to_string(port) +
           "))\n"
           "outward = socket.socket()\n"
           "outward.settimeout(5)\n"
           "print('outward', outward.connect_ex(('127.0.0.1', " +
           std::to_string(other) +
           ")))\n"
           "print('port %d ' % l.getsockname()[1])\n"  // the number in one piece
           "while True:\n"
           "  c, _ = l.accept()\n"
           "  c.sendall(b'" +
           word + "')\n  c.close()\n";
  }
  static Strings Inside(const Strings& flags, const std::string& code) {
    Strings all = {CofferPath(), "run", "--runtime", "python3", "--level", "container"};
    all.insert(all.end(), flags.begin(), flags.end());
    all.insert(all.end(), {"--", "python3", "-uc", code});
    return all;
  }
  // The number after `start` in a line of `said`; 0 if there is none.
  static int NumberAfter(const std::string& said, const std::string& start) {
    const std::string line = LineOf(said, start);
    return line.empty() ? 0 : atoi(line.c_str() + start.size());
  }
  static int Published(const Background& run) {
    return NumberAfter(run.err(), "coffer: note: 127.0.0.1:");
  }
  const std::string word_ = NewToken();
};

TEST_F(PublishEscape, TheWayLeadsInwardsOnly) {
  const HostServer host;
  Background outside({"python3", "-uc", Server(word_, 0, host.port())});
  ASSERT_TRUE(outside.WaitForOutput("port ")) << outside.err();
  EXPECT_EQ(host.Visitors(), 1) << "NO-CONTROL: the same code reaches the host without a boundary";
  EXPECT_EQ(Hear(NumberAfter(outside.out(), "port ")), word_) << "NO-CONTROL";
  outside.Signal(SIGKILL);
  outside.Wait();

  Background inside(Inside({"--publish", "0:8000"}, Server(word_, 8000, host.port())));
  ASSERT_TRUE(inside.WaitForOutput("port ")) << inside.err();
  const int port = Published(inside);
  ASSERT_GT(port, 0) << inside.err();
  for (int i = 0; i < 40; ++i) {  // more than the forwarder has sockets
    ASSERT_EQ(Hear(port), word_) << i << "\n" << inside.err();
  }
  EXPECT_EQ(host.Visitors(), 0) << "OPEN: a server of the host was reached from inside";
  EXPECT_FALSE(Contains(inside.out(), "outward 0")) << "OPEN\n" << inside.out();
  inside.Signal(SIGTERM);
  inside.Wait();
  EXPECT_NE(Hear(port), word_) << "OPEN: the port outlived its call";
}

TEST_F(PublishEscape, OnlyTheForwarderHoldsTheHostsListener) {
  Background inside(Inside({"--publish", "0:8000"}, Server(word_, 8000, 1)));
  ASSERT_TRUE(inside.WaitForOutput("port ")) << inside.err();
  const int port = Published(inside);
  ASSERT_GT(port, 0) << inside.err();
  std::pair<std::string, std::string> listener;
  ASSERT_TRUE(WaitUntil([&] {  // a table that changes while it is read may lack a line
    listener = ListenerAt(port);
    return !listener.first.empty();
  }));
  const auto& [address, inode] = listener;
  EXPECT_TRUE(address.starts_with("0100007F:")) << "OPEN: not on 127.0.0.1 alone: " << address;
  std::map<pid_t, Strings> processes;
  Collect(inside.pid(), processes);
  size_t forwarders = 0;
  size_t payload = 0;
  for (const auto& [pid, fds] : processes) {
    const std::string status = ReadFile("/proc/" + std::to_string(pid) + "/status").value_or("");
    if (status.empty() || Contains(LineOf(status, "State:"), "Z")) {
      continue;  // it has ended meanwhile
    }
    // Init and what it started are in a pid namespace of their own; the forwarder is in ours.
    const bool within = Contains(LineOf(status, "NSpid:").substr(7), "\t");
    const bool holds = Contains(Joined(fds), "socket:[" + inode + "]");
    (within ? payload : forwarders) += 1;
    EXPECT_FALSE(within && holds) << "OPEN: " << status;
    if (!within) {
      EXPECT_TRUE(holds || !IsRoot()) << "NO-CONTROL: only root may look at its descriptors";
      EXPECT_EQ(LineOf(status, "CapEff:"), "CapEff:\t0000000000000000");
      EXPECT_EQ(LineOf(status, "CapPrm:"), "CapPrm:\t0000000000000000");
      EXPECT_EQ(LineOf(status, "NoNewPrivs:"), "NoNewPrivs:\t1");
      EXPECT_EQ(LineOf(status, "Seccomp:"), "Seccomp:\t2");
      EXPECT_FALSE(Contains(LineOf(status, "Uid:"), "\t0\t")) << status;
    }
  }
  EXPECT_EQ(forwarders, 1U);
  EXPECT_GE(payload, 2U) << "init and the command";
}

TEST_F(PublishEscape, WithoutTheFlagNothingListensOutside) {
  Background published(Inside({"--publish", "0:8000"}, Server(word_, 8000, 1)));
  ASSERT_TRUE(published.WaitForOutput("port ")) << published.err();
  const int port = Published(published);
  EXPECT_EQ(Hear(port), word_) << "NO-CONTROL";
  published.Signal(SIGTERM);
  published.Wait();
  // The same number, now free again.
  Background plain(Inside({}, Server(word_, port, 1)));
  ASSERT_TRUE(plain.WaitForOutput("port ")) << plain.err();
  EXPECT_NE(Hear(port), word_) << "OPEN";
}

// Tries the port of the other call in every spelling, directly and by each of its own proxy's protocols.
constexpr const char* kTriesPort = R"(
import socket, struct, sys
port = int(sys.argv[1])
def said(s):
    s.settimeout(20)
    got = b''
    try:
        while piece := s.recv(256): got += piece
    except OSError: pass
    s.close()
    return got.decode('latin-1').replace('\r\n', ' ')
def proxy(*lines):
    s = socket.create_connection(('127.0.0.1', 3128), 20)
    s.sendall(''.join(line + '\r\n' for line in (*lines, '')).encode())
    return said(s)
def socks(request):
    s = socket.create_connection(('127.0.0.1', 3128), 20)
    s.sendall(b'\5\1\0' + request + struct.pack('>H', port))
    return said(s)
def tell(name, what):
    try: print(name, '|', what())
    except OSError as e: print(name, '|', e)
for host in ('127.0.0.1', '127.1', '2130706433', '0x7f000001', '0.0.0.0', 'localhost', 'localhost.', '[::1]', '[::]',
             '[::ffff:127.0.0.1]', '[::ffff:7f00:1]', '[64:ff9b::7f00:1]', 'pub.test', 'pub.test.', 'PUB.test'):
    tell('connect ' + host, lambda: proxy(f'CONNECT {host}:{port} HTTP/1.1', f'Host: {host}:{port}'))
    tell('forward ' + host, lambda: proxy(f'GET http://{host}:{port}/ HTTP/1.1', f'Host: {host}:{port}'))
for name in (b'127.0.0.1', b'localhost', b'pub.test'):
    tell('socks ' + name.decode(), lambda: socks(b'\5\1\0\3' + bytes([len(name)]) + name))
tell('socks4 bytes', lambda: socks(b'\5\1\0\1' + bytes([127, 0, 0, 1])))
tell('socks6 bytes', lambda: socks(b'\5\1\0\4' + bytes(15) + b'\1'))
for family, at in ((socket.AF_INET, '127.0.0.1'), (socket.AF_INET, '127.0.0.2'), (socket.AF_INET, '0.0.0.0'),
                   (socket.AF_INET6, '::1'), (socket.AF_INET6, '::ffff:127.0.0.1')):
    def direct():
        s = socket.socket(family); s.settimeout(20); s.connect((at, port)); return said(s)
    tell('direct ' + at, direct)
for name in ('pub.test', 'localhost'):
    tell('by name ' + name, lambda: said(socket.create_connection((name, port), 20)))
)";

// A call's own proxy is no way to the published port of another, unless its operator opened that address by name.
TEST_F(PublishEscape, NW_08_AnotherCallReachesItNeitherByItsProxyNorWithoutOne) {
  const std::string serves =
      "import socket\n"
      "l = socket.create_server(('127.0.0.1', 8000))\n"
      "print('port 8000 ')\n"
      "visitors = 0\n"
      "while True:\n"
      "  c, _ = l.accept()\n"
      "  visitors += 1\n"
      "  c.sendall(b'" +
      word_ + " %d' % visitors)\n  c.close()\n";
  Background served(Inside({"--publish", "0:8000"}, serves));
  ASSERT_TRUE(served.WaitForOutput("port ")) << served.err();
  const int port = Published(served);
  ASSERT_GT(port, 0) << served.err();
  int visits = 0;
  const auto visit = [&] { return Hear(port) == word_ + " " + std::to_string(++visits); };
  const std::string at = std::to_string(port);
  const auto tries = [&](Strings flags) {
    Strings all = {"--runtime", "python3",           "--level",
                   "container", "--allow",           "tcp://pub.test:" + at,
                   "--resolve", "pub.test=127.0.0.1"};
    all.insert(all.end(), flags.begin(), flags.end());
    return RunCoffer(all, {"python3", "-c", kTriesPort, at});
  };
  EXPECT_TRUE(visit()) << "NO-CONTROL: the host reaches it";
  for (const Strings& flags : {Strings{}, Strings{"--allow", "tcp://127.0.0.1:" + at},
                               Strings{"--allow", "http://pub.test:" + at + "/**"}}) {
    const RunResult run = tries(flags);
    EXPECT_GE(Lines(run.out).size(), 40U) << "NO-CONTROL: it did not try all\n" << run.Describe();
    EXPECT_FALSE(Contains(run.out, word_)) << "OPEN\n" << run.out;
    EXPECT_TRUE(visit()) << "OPEN: it had another visitor\n" << run.out;
    EXPECT_FALSE(run.receipt["denials"].empty()) << run.Describe();
  }
  const RunResult opened = tries({"--dangerously-allow-address", "127.0.0.1/32"});
  EXPECT_TRUE(Contains(opened.out, word_)) << "NO-CONTROL: opened by its operator\n"
                                           << opened.Describe();
  EXPECT_FALSE(Contains(LineOf(opened.out, "direct 127.0.0.1"), word_)) << "OPEN\n" << opened.out;
}

// Clients that half-close and are then reset, while the server inside says nothing to any of them.
TEST_F(PublishEscape, ClientsThatAreGoneHoldNoPlace) {
  const std::string silent =
      "import socket\n"
      "l = socket.create_server(('127.0.0.1', 8000), backlog=64)\n"
      "print('port 8000 ')\n"
      "kept = []\n"
      "while True:\n"
      "  c, _ = l.accept()\n"
      "  kept.append(c)\n"
      "  word = c.recv(100)\n"
      "  print('got %s ' % word.decode())\n"
      "  if word.startswith(b'say'): c.sendall(word); c.close()\n";
  Background inside(Inside({"--publish", "0:8000"}, silent));
  ASSERT_TRUE(inside.WaitForOutput("port ")) << inside.err();
  const int port = Published(inside);
  ASSERT_GT(port, 0) << inside.err();
  for (int i = 0; i < 20; ++i) {  // the forwarder has 16 places
    const std::string word = "client" + std::to_string(i);
    const int fd = Connect(port);
    ASSERT_GE(fd, 0);
    ASSERT_EQ(send(fd, word.data(), word.size(), 0), static_cast<ssize_t>(word.size()));
    shutdown(fd, SHUT_WR);
    ASSERT_TRUE(inside.WaitForOutput("got " + word + " ")) << "OPEN: no place for " << word;
    const linger reset = {1, 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    close(fd);
  }
  const int fd = Connect(port);
  EXPECT_EQ(send(fd, "say", 3, 0), 3);
  char answer[8] = "";
  EXPECT_EQ(recv(fd, answer, sizeof answer - 1, 0), 3) << "NO-CONTROL: a client that stays";
  close(fd);
}

TEST_F(PublishEscape, ItIsSaidBeforeAndRecorded) {
  NothingIsAttacked("what the caller is told");
  const RunResult run = RunCoffer({"--level", "container", "--publish", "0:8000"}, {"/bin/true"});
  ASSERT_EQ(run.exit, 0) << run.Describe();
  const Json& ports = run.receipt["isolation"]["published"];
  ASSERT_EQ(ports.size(), 1U) << run.Describe();
  EXPECT_EQ(ports[0]["inside"], 8000);
  EXPECT_TRUE(Contains(run.err, "127.0.0.1:" + ports[0]["host"].dump() + " leads to port 8000"))
      << run.Describe();
  EXPECT_TRUE(Contains(run.receipt["blast_radius"].get<std::string>(),
                       "is reached from this host on a free port of 127.0.0.1 (port 8000 inside)"))
      << run.Describe();
}

TEST_F(PublishEscape, WhatCannotBePublishedIsRefused) {
  NothingIsAttacked("mistakes of the caller");
  const HostServer taken;
  const std::string port = std::to_string(taken.port());
  const std::pair<Strings, std::string> mistakes[] = {
      {{"--publish", port}, "--publish 0:PORT"},
      {{"--publish", "0:8000", "--level", "process"}, "--publish needs the container level"},
      {{"--publish", "0"}, "is not PORT or HOST:PORT"},
      {{"--publish", "65536"}, "is not PORT or HOST:PORT"},
      {{"--publish", "8000:"}, "is not PORT or HOST:PORT"},
      {{"--publish", "127.0.0.1:8000"}, "is not PORT or HOST:PORT"},
  };
  for (const auto& [flags, said] : mistakes) {
    const RunResult run = RunCoffer(flags, {"/bin/true"});
    EXPECT_EQ(run.exit, 120) << run.Describe();
    EXPECT_TRUE(Contains(run.err, said)) << run.Describe();
  }
}

}  // namespace
}  // namespace coffer::test
