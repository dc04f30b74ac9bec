// SPDX-License-Identifier: Apache-2.0
//
// The whole path on the running kernel: a child installs a filter, hands over its listener, makes calls; the
// recorder answers them. Every refusal has its control: the same call without the filter.
#include "isolation/seccomp/notify.h"

#include <asm/ioctls.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <functional>

#include "base/sys.h"
#include "isolation/seccomp/builtin.h"
#include "isolation/seccomp/install.h"
#include "seccomp_testing.h"

namespace coffer::isolation {
namespace {

using policy::SyscallProfile;
using raw::Syscall;

constexpr int kAnswers = 32;

// What the child found out, in memory that both see.
struct Shared {
  std::atomic<int> listener;  // the child's descriptor number, or a negative errno
  std::atomic<int> taken;
  long answers[kAnswers];
};

struct Outcome {
  int status = 0;
  std::vector<long> answers;
  DenialRecorder recorder;
};

// Runs `body` in a child under `program` while this process serves its listener. The body writes raw answers.
Outcome RunUnder(std::span<const sock_filter> program, const std::function<void(long*)>& body) {
  void* page =
      ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  EXPECT_NE(page, MAP_FAILED);
  auto* shared = new (page) Shared();
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    const long listener = InstallFilter(program);
    shared->listener = static_cast<int>(listener < 0 ? listener : listener + 1);
    while (listener >= 0 && shared->taken == 0) {
      ::sched_yield();
    }
    if (listener < 0) {
      ::_exit(99);
    }
    Syscall(SYS_close, listener);
    body(shared->answers);
    ::_exit(0);
  }
  Outcome outcome;
  while (shared->listener == 0) {
    ::sched_yield();
  }
  EXPECT_GT(shared->listener, 0) << "install failed";
  UniqueFd pidfd(static_cast<int>(Syscall(SYS_pidfd_open, child, 0)));
  UniqueFd listener(
      static_cast<int>(Syscall(SYS_pidfd_getfd, pidfd.get(), shared->listener - 1, 0)));
  EXPECT_TRUE(listener.valid());
  EXPECT_TRUE(outcome.recorder.Serve(listener.get()).ok())
      << "nothing is pending yet: returns at once";
  EXPECT_EQ(outcome.recorder.total(), 0U);
  shared->taken = 1;
  for (bool ended = false; !ended && !outcome.recorder.hung_up();) {
    pollfd waiting[2] = {{listener.get(), POLLIN, 0}, {pidfd.get(), POLLIN, 0}};
    EXPECT_GT(::poll(waiting, 2, 20000), 0) << "the child neither ended nor called";
    ended = waiting[1].revents != 0;
    const Status served = outcome.recorder.Serve(listener.get());
    EXPECT_TRUE(served.ok()) << served.error().message;
    if (!served.ok() || ::testing::Test::HasFailure()) {
      ::kill(child, SIGKILL);
      break;
    }
  }
  ::waitpid(child, &outcome.status, 0);
  // Older kernels (6.1) keep a filter until its last task was waited for.
  EXPECT_TRUE(outcome.recorder.Serve(listener.get()).ok());
  outcome.answers.assign(shared->answers, shared->answers + kAnswers);
  ::munmap(page, sizeof(Shared));
  return outcome;
}

uint64_t CountOf(const DenialRecorder& recorder, std::string_view syscall,
                 std::string_view arguments) {
  for (const DeniedCall& call : recorder.denials()) {
    if (call.syscall == syscall && call.arguments == arguments) {
      return call.count;
    }
  }
  return 0;
}

class Live : public ::testing::TestWithParam<SyscallProfile> {};
INSTANTIATE_TEST_SUITE_P(Profiles, Live,
                         ::testing::Values(SyscallProfile::kStrict, SyscallProfile::kDefault,
                                           SyscallProfile::kCompat));

TEST_P(Live, AllowedCallsWorkAndRefusedOnesAreRecorded) {
  const Outcome outcome = RunUnder(BuiltinFilter(GetParam(), {}), [](long* answer) {
    answer[0] = Syscall(SYS_getppid);
    int ends[2];
    answer[1] = Syscall(SYS_pipe2, raw::Arg(ends), O_CLOEXEC);
    answer[2] = Syscall(SYS_clone3, 0, 0);
    answer[3] = Syscall(SYS_unshare, CLONE_NEWUSER);
    answer[4] = Syscall(SYS_unshare, CLONE_NEWUSER);
    answer[5] = Syscall(SYS_io_uring_setup, 1, 0);
    answer[6] = Syscall(SYS_socket, AF_VSOCK, SOCK_STREAM, 0);
    answer[7] = Syscall(SYS_ioctl, 0, static_cast<long>(0x1'0000'0000 | TIOCSTI), raw::Arg(ends));
    answer[8] = Syscall(SYS_clone, CLONE_NEWNET | SIGCHLD);
    answer[9] = Syscall(9999);
    answer[10] = Syscall(SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, raw::Arg(ends));
    answer[11] = Syscall(SYS_openat, AT_FDCWD, raw::Arg("/"), O_TMPFILE | O_RDWR, 04755);
    answer[12] = Syscall(SYS_openat2, AT_FDCWD, raw::Arg("/"), 0, 0);
  });
  ASSERT_TRUE(WIFEXITED(outcome.status) && WEXITSTATUS(outcome.status) == 0) << outcome.status;
  const std::vector<long>& answer = outcome.answers;
  EXPECT_EQ(answer[0], ::getpid());
  EXPECT_EQ(answer[1], 0);
  EXPECT_EQ(answer[2], -ENOSYS);
  for (const int i : {3, 4, 5, 6, 7, 8, 11}) {
    EXPECT_EQ(answer[static_cast<size_t>(i)], -EPERM) << i;
  }
  EXPECT_EQ(answer[9], -ENOSYS);
  EXPECT_EQ(answer[10], 0);
  EXPECT_EQ(answer[12], -ENOSYS);
  EXPECT_EQ(CountOf(outcome.recorder, "unshare", "CLONE_NEWUSER"), 2U);
  EXPECT_EQ(CountOf(outcome.recorder, "io_uring_setup", "1, null"), 1U);
  EXPECT_EQ(CountOf(outcome.recorder, "socket", "AF_VSOCK, SOCK_STREAM, 0"), 1U);
  EXPECT_EQ(CountOf(outcome.recorder, "ioctl", "0, TIOCSTI"), 1U);
  EXPECT_EQ(CountOf(outcome.recorder, "clone", "CLONE_NEWNET|SIGCHLD"), 1U);
  EXPECT_EQ(outcome.recorder.total(), 7U);
}

TEST(LiveControl, TheSameCallsDoSomethingElseWithoutTheFilter) {
  EXPECT_NE(Syscall(SYS_clone3, 0, 0), -ENOSYS);
  EXPECT_NE(Syscall(SYS_openat2, AT_FDCWD, raw::Arg("/"), 0, 0), -ENOSYS);
  const long io_uring = Syscall(SYS_io_uring_setup, 1, 0);
  EXPECT_TRUE(io_uring == -EFAULT || io_uring == -ENOSYS || io_uring == -EPERM) << io_uring;
  EXPECT_NE(Syscall(SYS_ioctl, -1, TIOCSTI, 0), -EPERM);
}

// Instead of an answer: the call went past the filter, and did nothing.
constexpr long kPast = 1;
#if defined(__x86_64__)
constexpr long kMostPast = 2;  // uretprobe and uprobe, see docs/HONEST_LIMITS.md
#else
constexpr long kMostPast = 0;
#endif

// Answers a number that has no name here, from a process of its own: of the two calls that no filter sees, one ends
// whoever makes it and the other fails with ENXIO.
long AnswerOfUnknown(uint32_t number, long want) {
  const long child = Syscall(SYS_clone, SIGCHLD);
  if (child == 0) {
    const long got = Syscall(number);
    ::_exit(got == want ? 0 : got == -ENXIO ? ENXIO : EINVAL);
  }
  int status = 0;
  Syscall(SYS_wait4, child, raw::Arg(&status), 0, 0);
  if ((WIFSIGNALED(status) && WTERMSIG(status) == SIGILL) ||
      (WIFEXITED(status) && WEXITSTATUS(status) == ENXIO)) {
    return kPast;
  }
  return status == 0 ? want : 0;
}

// Every number the kernel has, with empty arguments: what the filter refuses is refused, and nothing else.
TEST_P(Live, SweepOfAllNumbersAgreesWithTheEvaluator) {
  const std::span<const sock_filter> program = BuiltinFilter(GetParam(), {});
  const SyscallTable& table = NativeSyscalls();
  const Outcome outcome = RunUnder(program, [&](long* answer) {
    for (uint32_t number = 0; number < 600; ++number) {
      const seccomp_data call = Call(table.audit_arch, number);
      const Result<uint32_t> verdict = Evaluate(program, call);
      if (*verdict == SECCOMP_RET_ALLOW) {
        continue;  // some of them would end or stop this process
      }
      const long want = *verdict == SECCOMP_RET_USER_NOTIF
                            ? -EPERM
                            : -static_cast<long>(*verdict & SECCOMP_RET_DATA);
      const long got = table.Find(number).empty() ? AnswerOfUnknown(number, want) : Syscall(number);
      if (got == kPast) {
        ++answer[4];
        continue;
      }
      if (got != want) {
        answer[0] = number;
        answer[1] = got;
        answer[2] = want;
        return;
      }
      ++answer[3];
    }
  });
  ASSERT_TRUE(WIFEXITED(outcome.status) && WEXITSTATUS(outcome.status) == 0) << outcome.status;
  EXPECT_EQ(outcome.answers[1], outcome.answers[2]) << "number " << outcome.answers[0];
  EXPECT_GT(outcome.answers[3], 150);
  EXPECT_LE(outcome.answers[4], kMostPast);
  EXPECT_LE(outcome.recorder.denials().size(), DenialRecorder::kMaxDistinct + 1);
}

TEST(LiveFilter, ThreadsAndChildrenAreUnderTheFilterToo) {
  const Outcome outcome = RunUnder(BuiltinFilter(SyscallProfile::kDefault, {}), [](long* answer) {
    const long child = Syscall(SYS_clone, SIGCHLD);
    if (child == 0) {
      ::_exit(Syscall(SYS_unshare, CLONE_NEWNS) == -EPERM ? 7 : 8);
    }
    int status = 0;
    Syscall(SYS_wait4, child, raw::Arg(&status), 0, 0);
    answer[0] = WEXITSTATUS(status);
  });
  EXPECT_EQ(outcome.answers[0], 7);
  EXPECT_EQ(CountOf(outcome.recorder, "unshare", "CLONE_NEWNS"), 1U);
}

#if defined(__aarch64__)
// A whole AArch32 program: exit(42).
constexpr uint32_t kForeignProgram[] = {
    0x464c457f, 0x00010101, 0,          0,  // ELF, 32 bits, little-endian
    0x00280002, 1,          0x10054,    0x34,    0,
    0x05000000, 0x00200034, 1,          0,  // executable for ARM, entry, one program header
    1,          0,          0x10000,    0x10000, 0x60,
    0x60,       5,          0x1000,      // load all of it, readable and executable
    0xe3a0002a, 0xe3a07001, 0xef000000,  // mov r0, #42; mov r7, #1; svc #0
};
// Runs it, if the kernel does; returns only if it does not.
void CallForeignAbi() {
  const long file = Syscall(SYS_memfd_create, raw::Arg("foreign"), 0);
  Syscall(SYS_write, file, raw::Arg(kForeignProgram), sizeof(kForeignProgram));
  const char* argv[] = {"foreign", nullptr};
  const char* env[] = {nullptr};
  Syscall(SYS_execveat, file, raw::Arg(""), raw::Arg(argv), raw::Arg(env), AT_EMPTY_PATH);
}
#elif defined(__x86_64__)
// exit(42) through the 32-bit entry; returns only if the kernel has none.
void CallForeignAbi() { asm volatile("int $0x80" : : "a"(1), "b"(42) : "memory"); }
#endif

TEST(LiveFilter, AnotherAbiOfTheSameMachineDies) {
  const pid_t control = ::fork();
  if (control == 0) {
    CallForeignAbi();
    ::_exit(1);
  }
  int status = 0;
  ::waitpid(control, &status, 0);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 42) {
    GTEST_SKIP() << "this kernel runs no 32-bit programs";
  }
  const Outcome outcome =
      RunUnder(BuiltinFilter(SyscallProfile::kCompat, {}), [](long*) { CallForeignAbi(); });
  EXPECT_TRUE(WIFSIGNALED(outcome.status) && WTERMSIG(outcome.status) == SIGSYS) << outcome.status;
}

TEST(LiveFilter, ACallerKilledWhileWaitingDoesNotStopTheRecorder) {
  const Outcome outcome = RunUnder(BuiltinFilter(SyscallProfile::kDefault, {}), [](long* answer) {
    for (int i = 0; i < 50; ++i) {
      const long child = Syscall(SYS_clone, SIGCHLD);
      if (child == 0) {
        for (;;) {
          Syscall(SYS_unshare, CLONE_NEWIPC);
        }
      }
      for (int spin = 0; spin < i; ++spin) {
        ::sched_yield();
      }
      Syscall(SYS_kill, child, SIGKILL);
      Syscall(SYS_wait4, child, 0, 0, 0);
      ++answer[0];
    }
  });
  EXPECT_EQ(outcome.answers[0], 50);
  EXPECT_TRUE(WIFEXITED(outcome.status) && WEXITSTATUS(outcome.status) == 0);
}

TEST(LiveFilter, ServeDoesNotWaitWhenNothingIsPending) {
  const Outcome outcome = RunUnder(BuiltinFilter(SyscallProfile::kDefault, {}),
                                   [](long* answer) { answer[0] = Syscall(SYS_getppid); });
  EXPECT_EQ(outcome.recorder.total(), 0U);
  EXPECT_TRUE(outcome.recorder.hung_up());
  DenialRecorder recorder;
  EXPECT_FALSE(recorder.Serve(12345).ok()) << "not a descriptor";
  Result<sys::Pipe> pipe = sys::MakePipe();
  ASSERT_TRUE(pipe.ok());
  EXPECT_TRUE(recorder.Serve(pipe->read_end.get()).ok()) << "nothing to read: returns at once";
  EXPECT_EQ(recorder.total(), 0U);
}

TEST(Install, RefusesAnEmptyOrOversizedProgram) {
  EXPECT_EQ(InstallFilter({}), -EINVAL);
  EXPECT_EQ(InstallFilter(BuiltinFilter(SyscallProfile::kImported, {})), -EINVAL);
  const std::vector<sock_filter> huge(4097, BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  EXPECT_EQ(InstallFilter(huge), -EINVAL);
  EXPECT_EQ(InstallFilterUnrecorded(huge), -EINVAL);
}

TEST(Install, UnrecordedRefusesWithoutASupervisor) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (InstallFilterUnrecorded(BuiltinFilter(SyscallProfile::kStrict, {})) != 0) {
      ::_exit(1);
    }
    ::_exit(Syscall(SYS_unshare, CLONE_NEWUSER) == -EPERM && Syscall(SYS_getpid) > 0 &&
                    Syscall(SYS_clone3, 0, 0) == -ENOSYS
                ? 0
                : 2);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(Install, ASecondListenerIsBusy) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    const std::vector<sock_filter> open = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    ::_exit(InstallFilter(open) >= 0 && InstallFilter(open) == -EBUSY ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(Recorder, CountsTheSameCallOnce) {
  DenialRecorder recorder;
  const auto number = static_cast<uint32_t>(SyscallNumber("unshare"));
  for (int i = 0; i < 3; ++i) {
    recorder.Record(Call(0, number, {CLONE_NEWUSER}));
  }
  recorder.Record(Call(0, number, {CLONE_NEWNS}));
  ASSERT_EQ(recorder.denials().size(), 2U);
  EXPECT_EQ(recorder.denials()[0].count, 3U);
  EXPECT_EQ(recorder.denials()[1].arguments, "CLONE_NEWNS");
}

TEST(Recorder, AFloodOfDifferentCallsIsOneBucket) {
  DenialRecorder recorder;
  for (uint64_t i = 0; i < 10000; ++i) {
    recorder.Record(Call(0, 5000, {i}));
  }
  ASSERT_EQ(recorder.denials().size(), DenialRecorder::kMaxDistinct + 1);
  EXPECT_EQ(recorder.denials().back().syscall, "others");
  EXPECT_EQ(recorder.denials().back().count, 10000 - DenialRecorder::kMaxDistinct);
  EXPECT_EQ(recorder.denials()[0].syscall, "syscall_5000");
  recorder.Record(Call(0, 5000, {3}));
  EXPECT_EQ(recorder.denials()[3].count, 2U) << "known calls are still counted one by one";
  EXPECT_EQ(recorder.total(), 10001U);
}

TEST(Recorder, TheFirstOfAGroupIsListedBehindAFlood) {
  const auto unshare = static_cast<uint32_t>(SyscallNumber("unshare"));
  const auto flood = [&](DenialRecorder& recorder) {
    for (uint64_t i = 0; i < 1000; ++i) {
      recorder.Record(Call(0, 5000, {i}));
    }
    recorder.Record(Call(0, unshare, {CLONE_NEWUSER}));
    recorder.Record(Call(0, 5000, {1000}));
    recorder.Record(Call(0, unshare, {CLONE_NEWUSER}));
    recorder.Record(Call(0, unshare, {CLONE_NEWNS}));
  };
  DenialRecorder control;
  flood(control);
  EXPECT_EQ(control.denials().size(), DenialRecorder::kMaxDistinct + 1) << "NO-CONTROL";
  DenialRecorder recorder;
  recorder.ListBeyond([](const DeniedCall& denied) {
    return denied.syscall == "unshare" ? std::optional(denied.syscall) : std::nullopt;
  });
  flood(recorder);
  ASSERT_EQ(recorder.denials().size(), DenialRecorder::kMaxDistinct + 2);
  const DeniedCall& listed = recorder.denials()[DenialRecorder::kMaxDistinct];
  EXPECT_EQ(listed.syscall, "unshare");
  EXPECT_EQ(listed.arguments, "CLONE_NEWUSER");
  EXPECT_EQ(listed.count, 2U);
  EXPECT_EQ(recorder.denials().back().syscall, "others");
  EXPECT_EQ(recorder.denials().back().count, 1000 - DenialRecorder::kMaxDistinct + 2);
  EXPECT_EQ(recorder.total(), control.total());
}

}  // namespace
}  // namespace coffer::isolation
