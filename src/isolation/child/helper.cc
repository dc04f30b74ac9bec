// SPDX-License-Identifier: Apache-2.0
#include "isolation/child/helper.h"

#include <errno.h>
#include <linux/futex.h>
#include <linux/netlink.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clone.h"
#include "base/sys.h"
#include "isolation/child/confine.h"
#include "isolation/child/root.h"

namespace coffer::isolation {
namespace {

using raw::Arg;
using raw::Syscall;

// A socket belongs to the namespace it was made in, whichever process uses it later: the supervisor
// listens and connects inside without ever entering. They land in the descriptor table that it
// still shares.
void MakePortSockets(const Helper& helper) {
  ChildReport& report = *helper.report;
  for (uint32_t i = 0; i < helper.port_sockets && i < kMostPortSockets && report.network >= 0;
       ++i) {
    const long made = Syscall(SYS_socket, AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (made < 0) {
      ::close(report.network);
      report.network = static_cast<int32_t>(made);
    } else {
      report.ports[i] = static_cast<int32_t>(made);
    }
  }
}

void MakeNameSockets(ChildReport& report) {
  struct Kind {
    int family, type, protocol;
  };
  constexpr Kind kKinds[kNameSockets] = {{AF_INET, SOCK_DGRAM, 0},
                                         {AF_NETLINK, SOCK_RAW, NETLINK_ROUTE},
                                         {AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER},
                                         {AF_INET6, SOCK_STREAM, 0}};
  for (uint32_t i = 0; i < kNameSockets; ++i) {
    report.names[i] = static_cast<int32_t>(Syscall(SYS_socket, kKinds[i].family,
                                                   kKinds[i].type | SOCK_CLOEXEC | SOCK_NONBLOCK,
                                                   kKinds[i].protocol));
  }
}

// True if `flag` is set, after a while if it is not yet.
bool IsSet(const std::atomic<uint32_t>& flag, long patience_ns) {
  const timespec look_again{0, patience_ns};  // in case the wake-up itself failed
  if (flag.load(std::memory_order_acquire) == 0) {
    Syscall(SYS_futex, Arg(&flag), FUTEX_WAIT, 0, Arg(&look_again), 0, 0);
  }
  return flag.load(std::memory_order_acquire) != 0;
}

void Set(std::atomic<uint32_t>& flag) {
  flag.store(1, std::memory_order_release);
  Syscall(SYS_futex, Arg(&flag), FUTEX_WAKE, 2, 0, 0, 0);
}

[[noreturn]] void RunHelper(void* given) {
  Helper& helper = *static_cast<Helper*>(given);
  ChildReport* const report = helper.report;
  MakeNetwork(&report->network, &report->network_socket);
  MakePortSockets(helper);
  if (helper.name_sockets && report->network >= 0) {
    MakeNameSockets(*report);
  }
  Set(report->network_made);
  // pivot_root has moved our root as well: "/" is the new one, with the old one on top.
  while (!IsSet(helper.root_left, 10000000)) {
  }
  helper.detached = DetachOldRoot();
  ::_exit(0);
}

}  // namespace

bool NetworkMade(const ChildReport& report) { return IsSet(report.network_made, 1000000); }

long StartHelper(Helper* helper) {
  clone_args args{};
  // The memory is shared because the results are written into the report and into this Helper, the
  // table because the sockets must land where the supervisor finds them.
  args.flags = CLONE_VM | CLONE_FILES;
  args.exit_signal = SIGCHLD;
  args.stack = reinterpret_cast<uint64_t>(helper->stack);
  args.stack_size = sizeof(helper->stack);
  helper->pid = raw::CloneInto(args, RunHelper, helper);
  return helper->pid < 0 ? helper->pid : 0;
}

long EnterNetwork(const Helper& helper) {
  const ChildReport& report = *helper.report;
  while (!NetworkMade(report)) {
    // WNOWAIT leaves it unreaped: AwaitHelper waits for it once more.
    siginfo_t dead{};
    const long asked =
        Syscall(SYS_waitid, P_PID, helper.pid, Arg(&dead), WEXITED | WNOHANG | WNOWAIT | __WALL, 0);
    if (asked < 0 || (dead.si_pid != 0 && report.network_made.load() == 0)) {
      return -ECHILD;  // it was killed
    }
  }
  if (report.network < 0) {
    return report.network;
  }
  const long answer = Syscall(SYS_setns, report.network, CLONE_NEWNET);
  ::close(report.network);
  return answer;
}

void TellRootLeft(Helper* helper) { Set(helper->root_left); }

long AwaitHelper(const Helper& helper) {
  long answer = 0;
  do {
    answer = Syscall(SYS_wait4, helper.pid, 0, 0, 0);
  } while (answer == -EINTR);
  return answer < 0 ? answer : helper.detached;
}

}  // namespace coffer::isolation
