// SPDX-License-Identifier: Apache-2.0
#include "isolation/process_tree.h"

#include <errno.h>
#include <fmt/format.h>
#include <linux/prctl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/sys.h"

namespace coffer::isolation {
namespace {

using raw::Arg;
using raw::Syscall;

constexpr Nanos kPause = std::chrono::milliseconds(1);
constexpr Nanos kLongestPause = std::chrono::milliseconds(16);

// A killed process first gives back its memory. Thirty of them with 20,000 mappings each take ten seconds and more on a busy
// machine. One that waits for a dead device never ends.
constexpr Nanos kPatience = std::chrono::minutes(1);

std::vector<pid_t> ChildrenOf(pid_t pid) {
  std::vector<pid_t> children;
  const Result<std::string> text = sys::ReadFile(fmt::format("/proc/{0}/task/{0}/children", pid));
  if (!text.ok()) {
    return children;
  }
  const char* at = text->data();
  const char* const end = at + text->size();
  while (at < end) {
    pid_t child = 0;
    const auto [rest, problem] = std::from_chars(at, end, child);
    if (problem == std::errc()) {
      children.push_back(child);
    }
    at = rest + 1;
  }
  return children;
}

}  // namespace

Status AdoptOrphans() {
  const long answer = Syscall(SYS_prctl, PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  if (answer < 0) {
    return sys::ErrnoError("isolation.subreaper", "cannot adopt orphans", answer);
  }
  return {};
}

Status EndDescendants() {
  const Nanos give_up = BootTime() + kPatience;
  std::vector<pid_t> before;
  Nanos pause = kPause;
  for (;;) {
    std::vector<pid_t> tree = ChildrenOf(::getpid());
    if (tree.empty()) {
      return {};
    }
    // Each is killed as soon as it is known: one that forks and exits is gone by the time the whole tree is known.
    for (size_t i = 0; i < tree.size(); ++i) {
      const std::vector<pid_t> below = ChildrenOf(tree[i]);
      (void)Syscall(SYS_kill, tree[i], SIGKILL);
      tree.insert(tree.end(), below.begin(), below.end());
    }
    int status = 0;
    while (Syscall(SYS_wait4, -1, Arg(&status), WNOHANG, 0) > 0) {
    }
    if (BootTime() > give_up) {
      return HostFault("isolation.kill", "a process of the call could not be ended");
    }
    // Those that were killed before fork no more. While only they are left, looking often would take their processor.
    pause = tree == before ? std::min(2 * pause, kLongestPause) : kPause;
    before = std::move(tree);
    timespec rest{0, pause.count()};
    (void)Syscall(SYS_ppoll, 0, 0, Arg(&rest), 0, 0);
  }
}

}  // namespace coffer::isolation
