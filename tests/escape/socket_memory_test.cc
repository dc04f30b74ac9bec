// SPDX-License-Identifier: Apache-2.0
//
// RS: memory of the kernel that a socket takes and that no cgroup counts: options that keep keys or headers, errors and
// timestamps that wait to be read, datagrams that a program has begun and not sent.
#include <gtest/gtest.h>

#include "tests/support/host.h"
#include "tests/support/verdicts.h"

namespace coffer::test {
namespace {

class SocketMemory : public LevelTest {
 protected:
  static uint64_t Used(const RunResult& result, const char* limit) {
    const Json& figure = result.receipt["limits"][limit]["used"];
    return figure.is_number() ? figure.get<uint64_t>() : 0;
  }
};

// Each option once; "kept" if the kernel took it, and "waits" if an error came back to a queue of the socket.
constexpr char kOptions[] = R"(
import errno, socket, struct
def attempt(name, family, kind, level, option, value):
    try:
        s = socket.socket(family, kind)
        s.setsockopt(level, option, value)
        print(name, 'kept')
    except OSError as e: print(name, errno.errorcode[e.errno])
key = struct.pack('=HH4s120xBBHi80s', socket.AF_INET, 0, bytes([10, 0, 0, 1]), 0, 0, 16, 0, b'k' * 16)
attempt('md5', socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, 14, key)
headers = struct.pack('@Nii', 60000, 255, 0) + bytes(59984)
attempt('headers', socket.AF_INET6, socket.SOCK_DGRAM, socket.IPPROTO_IPV6, 6, headers)
attempt('timestamps', socket.AF_INET, socket.SOCK_DGRAM, socket.SOL_SOCKET, 37, 0x912)
attempt('protocol', socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, 31, b'tls')
attempt('nodelay', socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
try:
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.setsockopt(socket.IPPROTO_IP, 11, 1)
    closed = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    closed.bind(('127.0.0.1', 0))
    port = closed.getsockname()[1]
    closed.close()
    s.sendto(b'x', ('127.0.0.1', port))
    try: s.recvmsg(100, 1000, socket.MSG_ERRQUEUE | socket.MSG_DONTWAIT); print('error waits')
    except BlockingIOError: print('error none')
    s.connect(('127.0.0.1', port))
    try: s.send(b'x'); s.send(b'x'); print('connected told nothing')
    except ConnectionRefusedError: print('connected told')
except OSError as e: print('error', errno.errorcode[e.errno])
)";

TEST_P(SocketMemory, RS_22_OptionsKeepNothing) {
  const Strings command = {"/usr/bin/python3", "-c", kOptions};
  const std::string outside = RunProgram(command).out;
  EXPECT_TRUE(Contains(outside, "timestamps kept") && Contains(outside, "error waits"))
      << "NO-CONTROL\n"
      << outside;
  const RunResult inside = RunCoffer(Flags(), command);
  ExpectRan(inside);
  EXPECT_EQ(Lines(inside.out).size(), container() ? 7U : 6U) << inside.Describe();
  EXPECT_FALSE(Contains(inside.out, "md5 kept") || Contains(inside.out, "headers kept") ||
               Contains(inside.out, "timestamps kept") || Contains(inside.out, "protocol kept") ||
               Contains(inside.out, "error waits"))
      << "OPEN\n"
      << inside.Describe();
  if (container()) {
    EXPECT_TRUE(Contains(inside.out, "timestamps ENOPROTOOPT\n")) << inside.Describe();
    EXPECT_TRUE(Contains(inside.out, "nodelay kept\n")) << inside.Describe();
    EXPECT_TRUE(Contains(inside.out, "error none\nconnected told\n")) << inside.Describe();
  }
}

// Fourteen processes with ninety datagrams each that are never finished, 64 KiB apiece.
constexpr char kUnfinished[] = R"(
import os, socket, time
def hold():
    kept = []
    for _ in range(90):
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.connect(('127.0.0.1', 9))
        for _ in range(9): s.send(bytes(6500), socket.MSG_MORE)
        kept.append(s)
    time.sleep(4)
pids = []
for _ in range(14):
    pid = os.fork()
    if pid == 0:
        hold()
        os._exit(0)
    pids.append(pid)
print('held', sum(os.waitpid(pid, 0)[1] for pid in pids))
)";

TEST_P(SocketMemory, RS_22_DatagramsThatAreNotFinishedCount) {
  if (!container()) {
    EXPECT_FALSE(
        Contains(RunCoffer(Flags(), {"/usr/bin/python3", "-c", kUnfinished}).out, "held 0"))
        << "NO-CONTROL: the process level has no sockets";
    return;
  }
  const auto run = [&](const char* cap) {
    return RunCoffer(Flags({"--memory", cap, "--wall", "200s", "--cpu", "200s"}),
                     {"/usr/bin/python3", "-c", kUnfinished}, {.timeout = Seconds(220)});
  };
  const RunResult control = run("2GiB");
  EXPECT_EQ(control.out, "held 0\n") << "NO-CONTROL\n" << control.Describe();
  if (!control.receipt["limits"].contains("uncounted_memory")) {
    return;  // without a memory cgroup all queues are counted as memory
  }
  EXPECT_LT(Used(control, "memory"), uint64_t{72} << 20) << "the cgroup counts them here";
  EXPECT_GT(Used(control, "uncounted_memory"), uint64_t{48} << 20) << control.Describe();
  const RunResult capped = run("72MiB");
  EXPECT_EQ(capped.ErrorClass(), "limit.memory") << "OPEN\n" << capped.Describe();
}

INSTANTIATE_TEST_SUITE_P(Level, SocketMemory, ::testing::Values("container", "process"),
                         LevelTestName);

}  // namespace
}  // namespace coffer::test
