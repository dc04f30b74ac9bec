// SPDX-License-Identifier: Apache-2.0
//
// What the kernel counts per user: a payload that takes all it can get must leave the host its own. As root the boundary's
// user namespace belongs to the boundary's own uid; inside it /proc/sys/user holds smaller limits.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "tests/support/host.h"

namespace coffer::test {
namespace {

constexpr int kMostInside = 64;
constexpr int kMostWatches = 16384;

// Takes inotify instances until there are none left, says how many, and holds them until its input ends.
const char kTakeInotify[] =
    "import ctypes, os, sys\n"
    "libc = ctypes.CDLL(None, use_errno=True)\n"
    "n = 0\n"
    "while n < 100000 and libc.inotify_init1(0) >= 0: n += 1\n"
    "print('taken', n, os.strerror(ctypes.get_errno()), flush=True)\n"
    "sys.stdin.read()\n";

// Adds watches, over as many instances as it may have, until it has one more than a boundary may, or is refused.
const char kTakeWatches[] =
    "import ctypes, os, sys\n"
    "libc = ctypes.CDLL(None, use_errno=True)\n"
    "paths = []\n"
    "for place, _, names in os.walk(b'/usr'):\n"
    "  paths += [place + b'/' + name for name in names]\n"
    "  if len(paths) > 2000: break\n"
    "most = int(sys.argv[1])\n"
    "n, failed = 0, 0\n"
    "while n < most and not failed:\n"
    "  fd = libc.inotify_init1(0)\n"
    "  if fd < 0: break\n"
    "  own = set()\n"  // a second name of a file is no second watch
    "  for path in paths:\n"
    "    if n + len(own) >= most: break\n"
    "    wd = libc.inotify_add_watch(fd, path, 2)\n"
    "    if wd >= 0: own.add(wd)\n"
    "    elif ctypes.get_errno() == 28:\n"  // ENOSPC; a dangling link has no inode to watch
    "      failed = 28\n"
    "      break\n"
    "  n += len(own)\n"
    "print('taken', n, os.strerror(failed), flush=True)\n"
    "sys.stdin.read()\n";

// What a user namespace has left for a process with all power in it and without a filter: fanotify groups, and namespaces
// of each kind. With words, in that of the process argv[1], as its user.
const char kCountersOf[] =
    "import ctypes, errno, os, sys\n"
    "libc = ctypes.CDLL(None, use_errno=True)\n"
    "def said(name, answer):\n"
    "  word = 'made' if answer >= 0 else errno.errorcode[ctypes.get_errno()]\n"
    "  print(name, word, flush=True)\n"
    "if len(sys.argv) > 1:\n"
    "  place = os.open('/proc/%s/ns/user' % sys.argv[1], 0)\n"
    "  uid = os.stat('/proc/' + sys.argv[1]).st_uid\n"
    "  if os.geteuid() == 0: os.setresuid(uid, uid, uid)\n"
    "  said('enter', libc.setns(place, 0x10000000))\n"
    "said('fanotify', libc.fanotify_init(0x200, 0))\n"  // FAN_REPORT_FID: users may have it too
    "kinds = {'user': 0x10000000, 'pid': 0x20000000, 'net': 0x40000000, 'ipc': 0x8000000,\n"
    "         'uts': 0x4000000, 'cgroup': 0x2000000}\n"
    "for name, flag in kinds.items():\n"
    "  pid = os.fork()\n"
    "  if pid == 0:\n"
    "    said(name, libc.unshare(flag))\n"
    "    os._exit(0)\n"
    "  os.waitpid(pid, 0)\n";

int Taken(const std::string& out) {
  const size_t at = out.find("taken ");
  return at == std::string::npos ? -1 : std::stoi(out.substr(at + 6));
}

class CounterEscape : public HostWatchTest {
 protected:
  static Strings Python(Strings argv, const char* code, const Strings& words = {}) {
    argv.insert(argv.end(), {"python3", "-c", code});
    argv.insert(argv.end(), words.begin(), words.end());
    return argv;
  }
};

TEST_F(CounterEscape, InotifyInstancesOfTheHostStayTheHosts) {
  RunOptions options;
  options.input = Background::kKeepOpen;
  {
    Background outside(
        Python({"sh", "-c", "ulimit -n 4096 2>/dev/null; exec \"$@\"", "sh"}, kTakeInotify),
        options);
    ASSERT_TRUE(outside.WaitForOutput("\n")) << outside.err();
    EXPECT_GT(Taken(outside.out()), kMostInside)
        << "NO-CONTROL: outside it takes all that its user may have\n"
        << outside.out();
    outside.CloseInput();
    outside.Wait();
  }
  Background inside(Python({CofferPath(), "run", "--open-files", "4096", "--"}, kTakeInotify),
                    options);
  ASSERT_TRUE(inside.WaitForOutput("\n")) << inside.err();
  EXPECT_GT(Taken(inside.out()), 0) << inside.out();
  EXPECT_LE(Taken(inside.out()), kMostInside) << inside.out();
  const int own = ::inotify_init1(IN_CLOEXEC);
  EXPECT_GE(own, 0) << "the host has none left";
  ::close(own);
  inside.CloseInput();
  EXPECT_EQ(inside.Wait().exit, 0) << inside.err();
}

TEST_F(CounterEscape, InotifyWatchesOfTheHostStayTheHosts) {
  RunOptions options;
  options.input = Background::kKeepOpen;
  const std::string more = std::to_string(kMostWatches + 1);
  {
    Background outside(Python({}, kTakeWatches, {more}), options);
    ASSERT_TRUE(outside.WaitForOutput("\n")) << outside.err();
    EXPECT_GT(Taken(outside.out()), kMostWatches) << "NO-CONTROL\n" << outside.out();
    outside.CloseInput();
    outside.Wait();
  }
  Background inside(
      Python({CofferPath(), "run", "--wall", "200s", "--cpu", "100s", "--"}, kTakeWatches, {more}),
      options);
  ASSERT_TRUE(inside.WaitForOutput("\n")) << inside.err();
  EXPECT_EQ(Taken(inside.out()), kMostWatches) << "OPEN, or refused too early\n" << inside.out();
  EXPECT_TRUE(Contains(inside.out(), "No space left")) << inside.out();
  const int own = ::inotify_init1(IN_CLOEXEC);
  EXPECT_GE(::inotify_add_watch(own, "/usr", IN_MODIFY), 0) << "the host has none left";
  ::close(own);
  inside.CloseInput();
  EXPECT_EQ(inside.Wait().exit, 0) << inside.err();
}

// Labels of IPv6 flows come out of one table of the host's, whatever network namespace asks.
TEST_F(CounterEscape, FlowLabelsOfTheHostStayTheHosts) {
  constexpr char kTakeLabel[] =
      "import errno, socket, struct\n"
      "s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)\n"
      "request = struct.pack('=16sIBBHHHI', socket.inet_pton(socket.AF_INET6, '::1'), 0, 0, 1, 1,"
      " 6, 6, 0)\n"
      "try:\n"
      "  s.setsockopt(41, 32, request)\n"
      "  print('label OPEN')\n"
      "except OSError as e:\n"
      "  print('label', errno.errorcode[e.errno])\n";
  const RunResult control = RunProgram(Python({}, kTakeLabel));
  EXPECT_EQ(control.out, "label OPEN\n") << "NO-CONTROL\n" << control.Describe();
  for (const char* profile : {"default", "compat"}) {
    const RunResult inside = RunCoffer({"--seccomp", profile}, Python({}, kTakeLabel));
    EXPECT_EQ(inside.out, "label ENOPROTOOPT\n") << profile << "\n" << inside.Describe();
  }
}

// Not only the filter refuses them: the boundary's own user namespace has none to give.
TEST_F(CounterEscape, TheBoundarysNamespaceGivesNoFanotifyAndNoNamespaces) {
  const std::string plain =
      RunProgram(Python({"unshare", "--user", "--map-root-user"}, kCountersOf)).out;
  LiveBoundary boundary({"--level", "container"});
  ASSERT_TRUE(boundary.ok()) << boundary.Why();
  const RunResult entered =
      RunProgram(Python({}, kCountersOf, {std::to_string(boundary.payload())}));
  EXPECT_TRUE(Contains(entered.out, "enter made")) << "NO-CONTROL\n" << entered.Describe();
  for (const std::string kind : {"fanotify", "user", "pid", "net", "ipc", "uts", "cgroup"}) {
    EXPECT_TRUE(Contains(plain, kind + " made")) << "NO-CONTROL\n" << plain;
    const char* const full = kind == "fanotify" ? " EMFILE" : " ENOSPC";
    EXPECT_TRUE(Contains(entered.out, kind + full)) << "OPEN\n" << entered.Describe();
  }
  boundary.process().Signal(SIGTERM);
  boundary.process().Wait();
}

TEST_F(CounterEscape, AsRootTheNamespaceIsChargedToTheBoundarysUid) {
  if (!IsRoot()) {
    GTEST_SKIP() << "as an ordinary user the counters are shared with that user";
  }
  LiveBoundary boundary({"--level", "container"});
  ASSERT_TRUE(boundary.ok()) << boundary.Why();
  const std::string space = "/proc/" + std::to_string(boundary.payload()) + "/ns/user";
  // NS_GET_OWNER_UID, from lsns; the host's own namespace is the control.
  const auto owner = [](const std::string& path) {
    return RunProgram({"python3", "-c",
                       "import fcntl, struct, sys\n"
                       "f = open(sys.argv[1])\n"
                       "print(struct.unpack('I', fcntl.ioctl(f, 0xb704, b'\\0' * 4))[0])\n",
                       path})
        .out;
  };
  EXPECT_EQ(owner("/proc/self/ns/user"), "0\n") << "NO-CONTROL: the host's own namespace is root's";
  EXPECT_GE(std::stoul(owner(space)), 0x70000000UL);
  boundary.process().Signal(SIGTERM);  // so that it removes its cgroup
  boundary.process().Wait();
}

}  // namespace
}  // namespace coffer::test
