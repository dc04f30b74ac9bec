// SPDX-License-Identifier: Apache-2.0
#include "isolation/child/init.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/prctl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <iterator>

#include "base/clock.h"
#include "base/exit_codes.h"
#include "base/sys.h"
#include "isolation/child/confine.h"

namespace coffer::isolation {
namespace {

using raw::Arg;
using raw::Syscall;

// Read by the signal handler; init is single-threaded and serves one payload in its life.
volatile sig_atomic_t g_payload = 0;
// Signals that came while the payload had no number yet: it may run, and be known to run, before vfork returns here.
volatile sig_atomic_t g_early[32] = {};

void Enter(ChildReport* report, Stage stage) {
  report->entered_ns[static_cast<uint32_t>(stage)] = BootTime().count();
  report->stage.store(static_cast<uint32_t>(stage), std::memory_order_release);
}

void ForwardToPayload(int signal) {
  if (g_payload > 0) {
    ::syscall(SYS_kill, -g_payload, signal);  // the payload leads its own process group
  } else {
    g_early[signal & 31] = 1;
  }
}

void ForwardEarlySignals() {
  for (int signal = 1; signal < 32; ++signal) {
    if (g_early[signal] != 0) {
      ForwardToPayload(signal);
    }
  }
}

void CatchForwardedSignals() {
  struct sigaction action{};
  action.sa_handler = ForwardToPayload;
  action.sa_flags = SA_RESTART;
  for (const int signal :
       {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH, SIGCONT, SIGALRM}) {
    sigaction(signal, &action, nullptr);
  }
  // The supervisor takes its signals from a descriptor and had them blocked when it cloned us.
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

void EndEverything(int /*signal*/) {
  ::syscall(SYS_kill, -1, SIGKILL);
  ::_exit(1);
}

// Whatever loses its parent comes to init, so killing the children until there are none ends their children too.
void EndChildren(int /*signal*/) {
  char list[4096];
  for (;;) {
    const long size = ::syscall(SYS_pread64, kExtraFd, list, sizeof(list), 0);
    pid_t pid = 0;
    for (long i = 0; i < size; ++i) {
      if (list[i] != ' ') {
        pid = pid * 10 + (list[i] - '0');
      } else {
        ::syscall(SYS_kill, pid, SIGKILL);
        pid = 0;
      }
    }
    if (::syscall(SYS_wait4, -1, nullptr, 0, nullptr) < 0) {
      ::_exit(1);  // no process is left
    }
  }
}

// There is no pid namespace to die with us. Within our Landlock domain, or with a uid of our own,
// kill(-1) reaches the boundary's processes and no others. Otherwise (an ordinary user before Linux
// 6.12) it would reach all of the caller's.
void EndAllWithSupervisor(InitEnding ending) {
  struct sigaction action{};
  action.sa_handler = ending == InitEnding::kKillReach ? EndEverything : EndChildren;
  // A signal with a handler: SIGKILL as parent-death signal would end init and leave its children.
  sigaction(SIGRTMIN, &action, nullptr);
  Syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGRTMIN, 0, 0, 0);
}

// argv and envp as the kernel wants them: here, or if they are many, in an anonymous mapping.
struct Vectors {
  char** argv = nullptr;
  char** envp = nullptr;
  char* few[48] = {};
};

bool BuildVectors(const CallBlock* call, Vectors* vectors) {
  const size_t pointers = static_cast<size_t>(call->argc) + call->envc + 2;
  char** slots = vectors->few;
  if (pointers > std::size(vectors->few)) {
    const long map = Syscall(SYS_mmap, 0, static_cast<long>(pointers * sizeof(char*)),
                             PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map < 0 && map > -4096) {
      return false;
    }
    slots = reinterpret_cast<char**>(map);
  }
  char* string = const_cast<char*>(reinterpret_cast<const char*>(call + 1));
  vectors->argv = slots;
  vectors->envp = slots + call->argc + 1;
  for (uint32_t i = 0; i < call->argc; ++i, string += strlen(string) + 1) {
    vectors->argv[i] = string;
  }
  for (uint32_t i = 0; i < call->envc; ++i, string += strlen(string) + 1) {
    vectors->envp[i] = string;
  }
  return true;  // the slots are zeroed, so both vectors end in a null pointer
}

struct ExecContext {
  ChildReport* report;
  const CallBlock* call;
  Vectors vectors;
};

// Runs in the vfork child: it borrows init's memory until execve, so it must not return.
[[noreturn]] void ExecPayload(const ExecContext& given) {
  ChildReport* const report = given.report;
  const CallBlock* const call = given.call;
  const char* strings = reinterpret_cast<const char*>(call + 1);
  Enter(report, Stage::kTerminal);
  long answer = Syscall(SYS_setsid);
  if (answer >= 0 && call->tty != 0) {
    answer = Syscall(SYS_ioctl, 0, TIOCSCTTY, 0);
  }
  if (answer >= 0) {
    // vfork shares the memory and copies the descriptor table, so init keeps what is closed here.
    answer = Syscall(SYS_close_range, 3, ~0U, 0);
  }
  if (answer >= 0) {
    Enter(report, Stage::kWorkingDir);
    answer = Syscall(SYS_chdir, Arg(strings + call->cwd));
  }
  if (answer >= 0) {
    Enter(report, Stage::kExec);
    answer = Syscall(SYS_execve, Arg(strings + call->program), Arg(given.vectors.argv),
                     Arg(given.vectors.envp));
  }
  report->exec_error = static_cast<int32_t>(-answer);
  ::_exit(kExitNotFound);
}

// Waits for the payload; everything else that dies meanwhile is reaped on the way. 0 and its status, or -errno.
long ReapUntil(pid_t payload, int32_t* status) {
  for (;;) {
    int ended_with = 0;
    const long dead = Syscall(SYS_wait4, -1, Arg(&ended_with), 0, 0);
    if (dead == payload) {
      *status = ended_with;
      return 0;
    }
    if (dead < 0 && dead != -EINTR) {
      return dead;
    }
  }
}

bool TellReady() {
  const char word = 'R';
  return Syscall(SYS_sendto, kControlFd, Arg(&word), 1, MSG_NOSIGNAL, 0, 0) == 1;
}

// An end of file means that the supervisor is gone.
bool ReadGo() {
  char word = 0;
  long got = 0;
  do {
    got = Syscall(SYS_recvfrom, kControlFd, Arg(&word), 1, 0, 0, 0);
  } while (got == -EINTR);
  return got == 1 && word == 'S';
}

}  // namespace

void HeedEverySignal() {
  struct sigaction action{};
  action.sa_handler = SIG_DFL;
  for (int signal = 1; signal < 32; ++signal) {
    if (signal != SIGKILL && signal != SIGSTOP) {
      sigaction(signal, &action, nullptr);
    }
  }
}

void RunInit(const ChildContext& context, const PlanBlock& plan, const InitDuty& duty) {
  ChildReport* const report = context.report;
  g_payload = 0;
  for (volatile sig_atomic_t& early : g_early) {
    early = 0;
  }
  Enter(report, Stage::kReady);
  if (!TellReady() || !ReadGo()) {
    ::_exit(1);
  }
  Enter(report, Stage::kCall);
  const auto* const call = reinterpret_cast<const CallBlock*>(At(plan, plan.call));
  ExecContext exec{report, call, {}};
  if (!ValidCallBlock(call, plan.size - plan.call) || !BuildVectors(call, &exec.vectors)) {
    report->error = EINVAL;
    ::_exit(1);
  }
  Enter(report, Stage::kSpawn);
  if (const long answer = EnforceNotDumpable(); answer < 0) {
    report->error = static_cast<int32_t>(-answer);
    ::_exit(1);
  }
  CatchForwardedSignals();
  if (duty.ending != InitEnding::kDie) {
    EndAllWithSupervisor(duty.ending);
  }
  // vfork: init is stopped until execve, so the stack may be shared and nothing is copied.
  const pid_t payload = ::vfork();
  if (payload == 0) {
    ExecPayload(exec);
  }
  if (payload < 0) {
    report->error = EAGAIN;
  }
  if (report->error != 0) {
    ::_exit(1);
  }
  g_payload = payload;
  ForwardEarlySignals();
  Enter(report, Stage::kRunning);
  // Nothing of the payload's stays open here: its end of file must be its own.
  Syscall(SYS_close_range, 0, kControlFd - 1, 0);
  Syscall(SYS_close_range, duty.ending == InitEnding::kKillChildren ? kExtraFd + 1 : kControlFd + 1,
          ~0U, 0);

  if (const long answer = ReapUntil(payload, &report->wait_status); answer < 0) {
    report->error = static_cast<int32_t>(-answer);
    ::_exit(1);
  }
  Enter(report, Stage::kDone);
  report->ended = 1;
  ::_exit(0);
}

}  // namespace coffer::isolation
