// SPDX-License-Identifier: Apache-2.0
//
// Exclusive locks on what may only be read: a payload that holds one makes programs of the host wait that lock before they
// write. Locks on what may be written are ordinary ones, shared with the host.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "base/unique_fd.h"
#include "tests/support/host.h"
#include "tests/support/verdicts.h"

namespace coffer::test {
namespace {

class LockEscape : public LevelTest {
 protected:
  TempDir dir_;
  const std::string read_ = dir_.MakeDir("read", 0755);
  const std::string written_ = dir_.MakeDir("written", 0755);
  const std::string read_file_ = dir_.Write("read/file", "x", 0644);
  const std::string written_file_ = dir_.Write("written/file", "x", 0644);

  // The races take a slow machine half a minute.
  Strings Both() const { return Slowly({"--ro", read_, "--rw", written_}); }
  Strings AllWritten() const { return Slowly({"--rw", read_, "--rw", written_}); }
  Strings Slowly(Strings mounts) const {
    mounts.insert(mounts.end(), {"--wall", "300s", "--cpu", "300s"});
    return Flags(mounts);
  }

  // How often the host found `file` locked while `run` ran.
  template <typename Run>
  static int BusyDuring(const std::string& file, Run run) {
    std::atomic<bool> done = false;
    int busy = 0;
    std::thread host([&] {
      const UniqueFd own(open(file.c_str(), O_RDWR | O_CLOEXEC));
      while (!done) {
        if (flock(own.get(), LOCK_EX | LOCK_NB) == 0) {
          flock(own.get(), LOCK_UN);
        } else {
          ++busy;
        }
        usleep(100);
      }
    });
    run();
    done = true;
    host.join();
    return busy;
  }
};

TEST_P(LockEscape, SH_12_AReaderTakesNoExclusiveLock) {
  if (MountsAreRefused(Both())) {
    return;
  }
  const RunResult attack = RunProbe(Both(), {"locks", read_file_});
  EXPECT_TRUE(Contains(attack.out, "exclusive: REFUSED")) << "OPEN\n" << attack.Describe();
  EXPECT_TRUE(Contains(attack.out, "shared: OPEN")) << "NO-CONTROL\n" << attack.Describe();
  EXPECT_TRUE(Contains(attack.receipt.dump(), "isolation.read_only_lock")) << attack.Describe();
  const RunResult control = RunProbe(Both(), {"locks", written_file_});
  EXPECT_TRUE(Contains(control.out, "exclusive: OPEN")) << "NO-CONTROL\n" << control.Describe();
  EXPECT_FALSE(Contains(control.receipt.dump(), "isolation.read_only_lock")) << control.Describe();
}

// Without a mount there are still the host's files of the runtime.
TEST_P(LockEscape, SH_12_NorOnTheFilesOfARuntime) {
  for (const Strings& runtime : {Strings{}, Strings{"--runtime", "python3"}}) {
    const RunResult attack = RunCoffer(Flags(runtime), {"python3", "-c", R"(
import errno, fcntl, os, tempfile
for name in (os.__file__, tempfile.mkstemp(dir=".")[1]):
    for how in (fcntl.LOCK_SH, fcntl.LOCK_EX):
        try:
            fcntl.flock(os.open(name, os.O_RDONLY), how | fcntl.LOCK_NB)
            print("OPEN")
        except OSError as e:
            print(errno.errorcode[e.errno])
)"});
    // Shared, then exclusive, on a file of the runtime; the control is a file of its own.
    EXPECT_EQ(attack.out, "OPEN\nEROFS\nOPEN\nEAGAIN\n") << "NO-CONTROL\n" << attack.Describe();
  }
}

// Each lock that waits costs the supervisor a descriptor.
TEST_P(LockEscape, SH_12_ACrowdThatWaitsIsBounded) {
  if (MountsAreRefused(Both())) {
    return;
  }
  Strings flags = Both();
  flags.insert(flags.end(), {"--processes", "600", "--open-files", "600", "--memory", "512MiB"});
  const UniqueFd own(open(written_file_.c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(flock(own.get(), LOCK_EX | LOCK_NB), 0);
  const RunResult few = RunProbe(flags, {"lock-crowd", written_file_, "100", "1"});
  EXPECT_EQ(few.out, "turned away: none\n") << "NO-CONTROL\n" << few.Describe();
  const RunResult crowd = RunProbe(flags, {"lock-crowd", written_file_, "400", "30"});
  EXPECT_EQ(crowd.out, "turned away: some\n") << "OPEN\n" << crowd.Describe();
}

TEST_P(LockEscape, SH_12_AnExchangedDescriptorLocksNothingElse) {
  if (MountsAreRefused(Both())) {
    return;
  }
  const Strings race = {"lock-race", read_file_, written_file_};
  const RunOptions slowly{.timeout = Seconds(330)};
  RunResult attack;
  const int busy = BusyDuring(read_file_, [&] { attack = RunProbe(Both(), race, slowly); });
  EXPECT_TRUE(Contains(attack.out, "raced")) << attack.Describe();
  EXPECT_EQ(busy, 0) << "OPEN: the host met a lock on a file that is only read";
  const int control = BusyDuring(read_file_, [&] { RunProbe(AllWritten(), race, slowly); });
  EXPECT_GT(control, 0) << "NO-CONTROL: the same race where both may be written";
}

// They can be written, and are the host's own inodes. No other program takes an exclusive lock on one, so a shared one can be had.
TEST_P(LockEscape, SH_12_ADeviceTakesNoExclusiveLock) {
  for (const char* device : {"/dev/null", "/dev/zero", "/dev/urandom"}) {
    const RunResult attack = RunProbe(Flags(), {"locks", device});
    EXPECT_TRUE(Contains(attack.out, "exclusive: REFUSED errno=EROFS")) << "OPEN\n"
                                                                        << attack.Describe();
    EXPECT_TRUE(Contains(attack.out, "shared: OPEN")) << "NO-CONTROL\n" << attack.Describe();
  }
}

TEST_P(LockEscape, LocksOnWhatMayBeWrittenAreTheHosts) {
  if (MountsAreRefused(Both())) {
    return;
  }
  const std::string script = R"(
import fcntl, os, signal, sys
path = sys.argv[1]
def locked(how):
    file = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(file, how)
        return file
    except BlockingIOError:
        os.close(file)
class Late(Exception):
    pass
def late(*_):
    raise Late
signal.signal(signal.SIGALRM, late)
print("held by the host:", locked(fcntl.LOCK_EX | fcntl.LOCK_NB), flush=True)
signal.setitimer(signal.ITIMER_REAL, 0.2)
try:
    locked(fcntl.LOCK_EX)
    print("no signal")
except Late:
    print("a signal ends the wait", flush=True)
first = locked(fcntl.LOCK_EX)
print("got it", flush=True)
ready, wake = os.pipe()
child = os.fork()
if child == 0:
    os.close(first)
    second = os.open(path, os.O_RDONLY)
    print("child:", "free" if locked(fcntl.LOCK_EX | fcntl.LOCK_NB) else "held", flush=True)
    os.write(wake, b"x")
    fcntl.flock(second, fcntl.LOCK_EX)
    print("child: got it", flush=True)
    os._exit(0)
os.read(ready, 1)
os.close(first)
os.waitpid(child, 0)
)";
  // The host holds the lock until the payload said that a signal ended its wait.
  const UniqueFd own(open(written_file_.c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(flock(own.get(), LOCK_EX | LOCK_NB), 0);
  RunResult result;
  Strings words = {"sh",    "-c",   "python3 -c \"$1\" \"$2\" | tee \"$3/seen\"",
                   "sh",    script, written_file_,
                   written_};
  std::thread run([&] { result = RunCoffer(Both(), words); });
  for (int tries = 0; tries < 3000; ++tries) {
    if (Contains(ReadFile(written_ + "/seen").value_or(""), "ends the wait")) {
      break;
    }
    usleep(10000);
  }
  flock(own.get(), LOCK_UN);
  run.join();
  EXPECT_EQ(result.out,
            "held by the host: None\na signal ends the wait\ngot it\nchild: held\n"
            "child: got it\n")
      << "NO-CONTROL: where it may write, a payload locks as ever\n"
      << result.Describe();
}

INSTANTIATE_TEST_SUITE_P(Level, LockEscape, ::testing::Values("container", "process"),
                         LevelTestName);

}  // namespace
}  // namespace coffer::test
