// SPDX-License-Identifier: Apache-2.0
#include "limits/wall_guard.h"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <utility>

namespace coffer::limits {
namespace {

constexpr long kRepeatNanos = 100'000'000;

// What the handler kills; -1: nothing.
std::atomic<int> g_target{-1};

void KillTarget(int /*signal*/) {
  const int target = g_target.load();
  if (target >= 0) {
    ::syscall(SYS_pidfd_send_signal, target, SIGKILL, nullptr, 0);
  }
}

}  // namespace

Result<WallGuard> WallGuard::Start(int pidfd, Nanos after) {
  struct sigaction action{};
  action.sa_handler = KillTarget;
  action.sa_flags = SA_RESTART;
  sigset_t alarm;
  sigemptyset(&alarm);
  sigaddset(&alarm, SIGALRM);
  sigevent event{};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = SIGALRM;
  WallGuard guard;
  if (::sigaction(SIGALRM, &action, nullptr) != 0 ||
      ::sigprocmask(SIG_UNBLOCK, &alarm, nullptr) != 0 ||
      ::timer_create(CLOCK_BOOTTIME, &event, &guard.timer_) != 0) {
    return HostFault("limits.wall", "cannot set a timer for the wall time");
  }
  guard.armed_ = true;
  g_target = pidfd;
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(after);
  const itimerspec times{{0, kRepeatNanos}, {seconds.count(), (after - seconds).count()}};
  if (::timer_settime(guard.timer_, 0, &times, nullptr) != 0) {
    return HostFault("limits.wall", "cannot set a timer for the wall time");
  }
  return guard;
}

WallGuard::WallGuard(WallGuard&& other) noexcept
    : timer_(other.timer_), armed_(std::exchange(other.armed_, false)) {}

WallGuard::~WallGuard() {
  if (armed_) {
    ::timer_delete(timer_);
    g_target = -1;
  }
}

}  // namespace coffer::limits
