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
#include "base/unique_fd.h"

namespace coffer::isolation {
namespace {

using raw::Arg;
using raw::Syscall;

constexpr Nanos kPause = std::chrono::milliseconds(1);
constexpr Nanos kLongestPause = std::chrono::milliseconds(16);

// A killed process first gives back its memory. Thirty of them with 20,000 mappings each take ten
// seconds and more on a busy machine. One that waits for a dead device never ends.
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

// The fourth field of stat, behind the name in brackets, which can hold anything. 0 if the process is gone.
pid_t ParentOf(pid_t pid) {
  const Result<std::string> text = sys::ReadFile(fmt::format("/proc/{}/stat", pid));
  const size_t name_end = text.ok() ? text->rfind(") ") : std::string::npos;
  pid_t parent = 0;
  if (name_end != std::string::npos && text->size() > name_end + 4) {
    std::from_chars(text->data() + name_end + 4, text->data() + text->size(), parent);
  }
  return parent;
}

struct Descendant {
  pid_t pid = 0;
  pid_t parent = 0;
  bool operator==(const Descendant&) const = default;
};

void AddChildren(pid_t parent, const std::vector<pid_t>& children, std::vector<Descendant>& tree) {
  for (const pid_t child : children) {
    tree.push_back({child, parent});
  }
}

// Kills a process, and adds its children to the tree. Our own child keeps its number until we have waited for it. A
// child of another process may have ended since it was found, and its number may be another process's. So a descriptor
// is opened first: if the process behind it has the same parent, or us, it is the one that we mean. If it can still be
// signalled afterwards, the number was its own while its children were listed.
void KillAndDescend(const Descendant& process, std::vector<Descendant>& tree) {
  const bool own = process.parent == ::getpid();
  UniqueFd fixed;
  if (!own) {
    fixed = UniqueFd(static_cast<int>(std::max(Syscall(SYS_pidfd_open, process.pid, 0), -1L)));
    const pid_t parent = ParentOf(process.pid);
    if (!fixed || (parent != process.parent && parent != ::getpid())) {
      return;
    }
  }
  const std::vector<pid_t> children = ChildrenOf(process.pid);
  const long sent = own ? Syscall(SYS_kill, process.pid, SIGKILL)
                        : Syscall(SYS_pidfd_send_signal, fixed.get(), SIGKILL, 0, 0);
  if (sent == 0) {
    AddChildren(process.pid, children, tree);
  }
}

}  // namespace

Status AdoptOrphans() {
  // A process whose parent ends then becomes our child, not that of the host's init, and
  // EndDescendants finds it.
  const long answer = Syscall(SYS_prctl, PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  if (answer < 0) {
    return sys::ErrnoError("isolation.subreaper", "cannot adopt orphans", answer);
  }
  return {};
}

Status EndDescendants() {
  const Nanos give_up = BootTime() + kPatience;
  std::vector<Descendant> before;
  Nanos pause = kPause;
  for (;;) {
    std::vector<Descendant> tree;
    AddChildren(::getpid(), ChildrenOf(::getpid()), tree);
    if (tree.empty()) {
      return {};
    }
    // Each is killed as soon as it is known: one that forks and exits is gone by the time the whole tree is known.
    for (size_t i = 0; i < tree.size(); ++i) {
      KillAndDescend(Descendant(tree[i]), tree);
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
