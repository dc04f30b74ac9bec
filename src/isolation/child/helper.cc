// SPDX-License-Identifier: Apache-2.0
#include "isolation/child/helper.h"

#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clone.h"
#include "base/sys.h"
#include "isolation/child/confine.h"

namespace coffer::isolation {
namespace {

using raw::Arg;
using raw::Syscall;

void Post(std::atomic<uint32_t>& flag) {
  flag.store(1, std::memory_order_release);
  Syscall(SYS_futex, Arg(&flag), FUTEX_WAKE, 1, 0, 0, 0);
}

void Await(std::atomic<uint32_t>& flag) {
  const timespec look_again{0, 1000000};  // in case the wake-up itself failed
  while (flag.load(std::memory_order_acquire) == 0) {
    Syscall(SYS_futex, Arg(&flag), FUTEX_WAIT, 0, Arg(&look_again), 0, 0);
  }
}

[[noreturn]] void RunHelper(void* given) {
  auto* const helper = static_cast<Helper*>(given);
  helper->report->helped.store(1, std::memory_order_release);
  helper->network = MakeNetwork();
  Post(helper->made);
  ReturnProcessor(helper->report);
  ::_exit(0);
}

}  // namespace

void ReturnProcessor(ChildReport* report) {
  report->asks.store(1);
  if (report->awaits_ask.load() != 0) {
    Syscall(SYS_futex, Arg(&report->asks), FUTEX_WAKE, 1, 0, 0, 0);
  }
}

long StartHelper(Helper* helper) {
  clone_args args{};
  args.flags = CLONE_VM | CLONE_FILES;
  args.exit_signal = SIGCHLD;
  args.stack = reinterpret_cast<uint64_t>(helper->stack);
  args.stack_size = sizeof(helper->stack);
  helper->pid = raw::CloneInto(args, RunHelper, helper);
  return helper->pid < 0 ? helper->pid : 0;
}

long EnterNetwork(Helper* helper) {
  Await(helper->made);
  if (helper->network < 0) {
    return helper->network;
  }
  const long answer = Syscall(SYS_setns, helper->network, CLONE_NEWNET);
  ::close(static_cast<int>(helper->network));
  return answer;
}

long AwaitHelper(const Helper& helper) {
  long answer = 0;
  do {
    answer = Syscall(SYS_wait4, helper.pid, 0, 0, 0);
  } while (answer == -EINTR);
  return answer < 0 ? answer : 0;
}

}  // namespace coffer::isolation
