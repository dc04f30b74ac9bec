// SPDX-License-Identifier: Apache-2.0
//
// What the kernel counts per user: a payload that takes all it can get must leave the host its own. As root the boundary's
// user namespace belongs to the boundary's own uid; inside it /proc/sys/user holds smaller limits.
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
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

// Takes what argv[1] names until there is none left or it has argv[2], as the user argv[3] unless that is 0. Says how many and
// why it ended, and holds them until its input ends. A pipe beyond what its user may have is smaller.
const char kTake[] =
    "import ctypes, errno, fcntl, os, platform, resource, signal, sys\n"
    "kind, most, uid = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])\n"
    "libc = ctypes.CDLL(None, use_errno=True)\n"
    "queues = libc if hasattr(libc, 'mq_open') else ctypes.CDLL('librt.so.1', use_errno=True)\n"
    "hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]\n"
    "resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))\n"
    "if uid:\n"
    "  os.setresgid(uid, uid, uid)\n"
    "  os.setresuid(uid, uid, uid)\n"
    "signal.pthread_sigmask(signal.SIG_BLOCK, {40})\n"
    "held, n, word = [], 0, 'all'\n"
    "def check(answer):\n"
    "  if answer < 0: raise OSError(ctypes.get_errno(), '')\n"
    "def pipes():\n"
    "  held.append(os.pipe())\n"
    "  pages = fcntl.fcntl(held[-1][0], 1032) // resource.getpagesize()\n"  // F_GETPIPE_SZ
    "  if pages < 16: raise OSError(errno.ENOBUFS, '')\n"
    "def signals(): check(libc.sigqueue(os.getpid(), 40, None))\n"
    "def timers(): check(libc.timer_create(0, None, ctypes.byref(ctypes.c_void_p())))\n"
    "def queue():\n"
    "  name = b'/coffer-test-%d-%d' % (os.getpid(), n)\n"
    "  check(queues.mq_open(name, os.O_CREAT | os.O_RDWR, 0o600, None))\n"
    "  queues.mq_unlink(name)\n"
    "def inotify(): check(libc.inotify_init1(0))\n"
    "def fanotify(): check(libc.fanotify_init(0x200, 0))\n"
    "x86 = platform.machine() == 'x86_64'\n"
    "def aio(): check(libc.syscall(206 if x86 else 0, 1, ctypes.byref(ctypes.c_ulong(0))))\n"
    "def keys():\n"  // in the process's own keyring
    "  check(libc.syscall(248 if x86 else 217, b'user', b'key%d' % n, b'x', ctypes.c_size_t(1), "
    "-2))\n"
    "def leases():\n"
    "  name = os.environ.get('TMPDIR', '/tmp') + '/coffer-lease-%d-%d' % (os.getpid(), n)\n"
    "  held.append(os.open(name, os.O_RDWR | os.O_CREAT, 0o600))\n"
    "  os.unlink(name)\n"
    "  fcntl.fcntl(held[-1], 1024, fcntl.F_WRLCK)\n"  // F_SETLEASE
    "def semaphores():\n"
    "  one = libc.semget(0, 1, 0o600)\n"
    "  check(one)\n"
    "  libc.semctl(one, 0, 0)\n"  // IPC_RMID
    "take = {'pipes': pipes, 'signals': signals, 'timers': timers, 'queues': queue,\n"
    "        'inotify': inotify, 'fanotify': fanotify, 'aio': aio, 'keys': keys,\n"
    "        'leases': leases, 'semaphores': semaphores}[kind]\n"
    "try:\n"
    "  while n < most:\n"
    "    take()\n"
    "    n += 1\n"
    "except OSError as e: word = errno.errorcode[e.errno]\n"
    "print('taken', n, word, flush=True)\n"
    "sys.stdin.read()\n";

constexpr int kMostPipes = 1024;   // pipe-user-pages-soft, 16,384 pages, in pipes of 16
constexpr int kMostSignals = 256;  // RLIMIT_SIGPENDING inside, for signals and timers together
constexpr int kSomeUser = 47011;   // whom the controls take from: a user with nothing else

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
  options.input = std::string(Background::kKeepOpen, 5);
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
  options.input = std::string(Background::kKeepOpen, 5);
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

// Takes until it is told to end.
class Taker {
 public:
  Taker(Strings argv, const std::string& kind, int most, int uid = 0)
      : process_(With(std::move(argv), kind, most, uid), KeepOpen()) {
    EXPECT_TRUE(process_.WaitForOutput("\n")) << process_.err();
  }
  ~Taker() {
    process_.CloseInput();
    EXPECT_EQ(process_.Wait().exit, 0) << process_.err();
  }
  Taker(const Taker&) = delete;
  Taker& operator=(const Taker&) = delete;

  // "1024 ENOBUFS": how many, and why no more.
  std::string Said() {
    const std::string out = process_.out();
    return out.starts_with("taken ") ? out.substr(6, out.find('\n') - 6) : out + process_.err();
  }

 private:
  static Strings With(Strings argv, const std::string& kind, int most, int uid) {
    const Strings words = {"/usr/bin/python3", "-c", kTake, kind, std::to_string(most),
                           std::to_string(uid)};
    argv.insert(argv.end(), words.begin(), words.end());
    return argv;
  }
  static RunOptions KeepOpen() {
    RunOptions options;
    options.input = std::string(Background::kKeepOpen, 5);
    return options;
  }
  Background process_;
};

// A host's process that may have so many files; without coffer.
Strings Outside() { return {"sh", "-c", "ulimit -n 4096 2>/dev/null; exec \"$@\"", "sh"}; }
Strings Inside(const std::string& profile = "default", const std::string& level = "container") {
  return {CofferPath(), "run",       "--level", level, "--open-files",
          "4096",       "--seccomp", profile,   "--"};
}
Strings AtTheProcessLevel(const std::string& profile = "default") {
  return Inside(profile, "process");
}

// The kernel makes every pipe of a user small that has many. As root each boundary is a user of its own.
TEST_F(CounterEscape, PagesOfPipesAreChargedToTheBoundarysUid) {
  if (!IsRoot()) {
    GTEST_SKIP() << "as an ordinary user the counters are shared with that user";
  }
  const std::string full = std::to_string(kMostPipes) + " ENOBUFS";
  {
    Taker first(Outside(), "pipes", 2 * kMostPipes, kSomeUser);
    EXPECT_EQ(first.Said(), full) << "NO-CONTROL";
    Taker second(Outside(), "pipes", 2 * kMostPipes, kSomeUser);
    EXPECT_EQ(second.Said(), "0 ENOBUFS") << "NO-CONTROL: two of one user share";
  }
  Taker first(Inside(), "pipes", 2 * kMostPipes);
  EXPECT_EQ(first.Said(), full);
  Taker second(Inside(), "pipes", 2 * kMostPipes);
  EXPECT_EQ(second.Said(), full) << "OPEN: two boundaries share";
  Taker host(Outside(), "pipes", 2 * kMostPipes, kSomeUser);
  EXPECT_EQ(host.Said(), full) << "OPEN: a user of the host shares with them";
}

// Signals that wait and timers are counted together. What the limit is inside is less than what the host's user has.
TEST_F(CounterEscape, PendingSignalsAndTimersOfTheHostStayTheHosts) {
  const std::string full = std::to_string(kMostSignals) + " EAGAIN";
  for (const char* const kind : {"signals", "timers"}) {
    SCOPED_TRACE(kind);
    {
      Taker outside(Outside(), kind, kMostSignals);
      EXPECT_EQ(outside.Said(), "256 all") << "NO-CONTROL";
      Taker second({"prlimit", "--sigpending=256"}, kind, 2 * kMostSignals);
      EXPECT_EQ(second.Said(), "0 EAGAIN") << "NO-CONTROL: two of one user share";
    }
    Taker inside(Inside(), kind, 4 * kMostSignals);
    EXPECT_EQ(inside.Said(), full) << "OPEN, or refused too early";
    Taker host(Outside(), kind, 4 * kMostSignals);
    EXPECT_EQ(host.Said(), "1024 all") << "the host has none left";
    if (IsRoot()) {
      Taker second(Inside(), kind, 4 * kMostSignals);
      EXPECT_EQ(second.Said(), full) << "OPEN: two boundaries share";
    }
  }
}

// The filter refuses them; where it does not, a boundary may have none.
TEST_F(CounterEscape, MessageQueuesOfTheHostStayTheHosts) {
  Taker outside(Outside(), "queues", 2);
  EXPECT_EQ(outside.Said(), "2 all") << "NO-CONTROL";
  Taker filtered(Inside(), "queues", 2);
  EXPECT_EQ(filtered.Said(), "0 EPERM");
  Taker unfiltered(Inside("compat"), "queues", 2);
  EXPECT_EQ(unfiltered.Said(), "0 EMFILE");
}

// Three boundaries hold more than one user may have on most hosts, and each has its own.
TEST_F(CounterEscape, SeveralBoundariesLeaveRootItsInotifyInstances) {
  if (!IsRoot()) {
    GTEST_SKIP() << "as an ordinary user the counters are shared with that user";
  }
  {
    Taker first(Outside(), "inotify", 100000, kSomeUser);
    EXPECT_TRUE(first.Said().ends_with(" EMFILE")) << "NO-CONTROL " << first.Said();
    Taker second(Outside(), "inotify", 100000, kSomeUser);
    EXPECT_EQ(second.Said(), "0 EMFILE") << "NO-CONTROL: two of one user share";
  }
  const std::string full = std::to_string(kMostInside) + " EMFILE";
  Taker first(Inside(), "inotify", 100000);
  Taker second(Inside(), "inotify", 100000);
  Taker third(Inside(), "inotify", 100000);
  for (Taker* const taker : {&first, &second, &third}) {
    EXPECT_EQ(taker->Said(), full);
  }
  Taker host(Outside(), "inotify", kMostInside);
  EXPECT_EQ(host.Said(), "64 all") << "OPEN: root has none left";
}

// No namespace counts at the process level. What has no limit of the boundary's own is refused there, in every profile.
TEST_F(CounterEscape, TheProcessLevelTakesNothingThatHasNoLimitOfItsOwn) {
  for (const char* const kind :
       {"inotify", "fanotify", "queues", "keys", "leases", "aio", "semaphores"}) {
    SCOPED_TRACE(kind);
    Taker outside(Outside(), kind, 1);
    EXPECT_EQ(outside.Said(), "1 all") << "NO-CONTROL";
    for (const char* const profile : {"default", "compat"}) {
      Taker inside(AtTheProcessLevel(profile), kind, 1);
      EXPECT_TRUE(inside.Said().starts_with("0 E")) << "OPEN: " << profile << " " << inside.Said();
    }
  }
}

// An ordinary user's boundary counts together with what else waits for that user; the limit inside is all that it may add.
TEST_F(CounterEscape, AtTheProcessLevelPendingSignalsAndTimersAreBounded) {
  const std::string full = std::to_string(kMostSignals) + " EAGAIN";
  for (const char* const kind : {"signals", "timers"}) {
    SCOPED_TRACE(kind);
    {
      Taker outside(Outside(), kind, 4 * kMostSignals);
      EXPECT_EQ(outside.Said(), "1024 all") << "NO-CONTROL";
    }
    Taker inside(AtTheProcessLevel(), kind, 4 * kMostSignals);
    if (IsRoot()) {
      EXPECT_EQ(inside.Said(), full) << "OPEN, or refused too early";
    } else {
      EXPECT_TRUE(inside.Said().ends_with(" EAGAIN")) << inside.Said();
      EXPECT_LE(::atoi(inside.Said().c_str()), kMostSignals) << "OPEN";
      EXPECT_GT(::atoi(inside.Said().c_str()), kMostSignals / 2) << "refused too early";
    }
    Taker host(Outside(), kind, 4 * kMostSignals);
    EXPECT_EQ(host.Said(), "1024 all") << "the host has none left";
    if (IsRoot()) {
      Taker second(AtTheProcessLevel(), kind, 4 * kMostSignals);
      EXPECT_EQ(second.Said(), full) << "OPEN: two boundaries share";
    }
  }
}

// As root a boundary of the process level has a uid of its own too. As an ordinary user it has that user's: its pipes
// make those of the user small, as HONEST_LIMITS says, and those of no other user.
TEST_F(CounterEscape, AtTheProcessLevelPagesOfPipesAreChargedToItsUid) {
  const std::string full = std::to_string(kMostPipes) + " ENOBUFS";
  Taker inside(AtTheProcessLevel(), "pipes", 2 * kMostPipes);
  if (IsRoot()) {
    EXPECT_EQ(inside.Said(), full) << "NO-CONTROL: it takes what a user may have";
    Taker second(AtTheProcessLevel(), "pipes", 2 * kMostPipes);
    EXPECT_EQ(second.Said(), full) << "OPEN: two boundaries share";
    Taker host(Outside(), "pipes", 2 * kMostPipes, kSomeUser);
    EXPECT_EQ(host.Said(), full) << "OPEN: a user of the host shares with them";
  } else {
    EXPECT_TRUE(inside.Said().ends_with(" ENOBUFS")) << "NO-CONTROL: " << inside.Said();
    Taker host(Outside(), "pipes", 2 * kMostPipes);
    EXPECT_EQ(host.Said(), "0 ENOBUFS") << "they are not shared: HONEST_LIMITS says they are";
  }
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
