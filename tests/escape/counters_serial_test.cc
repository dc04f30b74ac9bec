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

// Takes inotify instances until there are none left, says how many, and holds them until its input ends.
const char kTakeInotify[] =
    "import ctypes, os, sys\n"
    "libc = ctypes.CDLL(None, use_errno=True)\n"
    "n = 0\n"
    "while n < 100000 and libc.inotify_init1(0) >= 0: n += 1\n"
    "print('taken', n, os.strerror(ctypes.get_errno()), flush=True)\n"
    "sys.stdin.read()\n";

int Taken(const std::string& out) {
  const size_t at = out.find("taken ");
  return at == std::string::npos ? -1 : std::stoi(out.substr(at + 6));
}

class CounterEscape : public HostWatchTest {
 protected:
  static Strings TakeAll(const Strings& before) {
    Strings argv = before;
    argv.insert(argv.end(), {"python3", "-c", kTakeInotify});
    return argv;
  }
};

TEST_F(CounterEscape, InotifyInstancesOfTheHostStayTheHosts) {
  RunOptions options;
  options.input = Background::kKeepOpen;
  {
    Background outside(TakeAll({"sh", "-c", "ulimit -n 4096 2>/dev/null; exec \"$@\"", "sh"}),
                       options);
    ASSERT_TRUE(outside.WaitForOutput("\n")) << outside.err();
    EXPECT_GT(Taken(outside.out()), kMostInside)
        << "NO-CONTROL: outside it takes all that its user may have\n"
        << outside.out();
    outside.CloseInput();
    outside.Wait();
  }
  Background inside(TakeAll({CofferPath(), "run", "--open-files", "4096", "--"}), options);
  ASSERT_TRUE(inside.WaitForOutput("\n")) << inside.err();
  EXPECT_GT(Taken(inside.out()), 0) << inside.out();
  EXPECT_LE(Taken(inside.out()), kMostInside) << inside.out();
  const int own = ::inotify_init1(IN_CLOEXEC);
  EXPECT_GE(own, 0) << "the host has none left";
  ::close(own);
  inside.CloseInput();
  EXPECT_EQ(inside.Wait().exit, 0) << inside.err();
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
