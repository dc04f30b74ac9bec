// SPDX-License-Identifier: Apache-2.0
#include "call/run/begin.h"

#include <utility>

namespace coffer::call {
namespace {

// Mounts decide about cgroups and limits, and looking through them can take long: a signal must
// still end this process then. A server of tools is started between the cgroup and init. Ports of a
// session and published ones are refused or made by the launch rung.
bool BeginsAhead(const RunRequest& request) {
  const policy::Envelope& envelope = request.envelope;
  return envelope.level != policy::Level::kProcess && envelope.mounts.empty() &&
         envelope.workspace.empty() && request.project.empty() && request.caches.empty() &&
         request.out_dir.empty() && request.tools_server == nullptr && request.ports.empty() &&
         request.forwards.empty() && request.publish.empty();
}

Status Begin(const RunRequest& request, Begun& begun) {
  ::sigprocmask(SIG_BLOCK, nullptr, &begun.mask);
  TRY_ASSIGN(begun.signals, CatchSignals());
  const Prepared nothing;  // no mounts
  return BeginBoundary(request, nothing, policy::Level::kContainer, begun.cgroups, begun.launched);
}

// As if it had never begun: signals that wait are delivered.
void End(std::optional<Begun>& begun) {
  const sigset_t mask = begun->mask;
  begun.reset();
  ::sigprocmask(SIG_SETMASK, &mask, nullptr);
}

}  // namespace

std::optional<Begun> BeginAhead(const RunRequest& request) {
  if (!BeginsAhead(request)) {
    return std::nullopt;
  }
  std::optional<Begun> begun(std::in_place);
  if (!Begin(request, *begun).ok()) {
    End(begun);
  }
  return begun;
}

void HeedSignals(std::optional<Begun>& begun) {
  sigset_t pending;
  if (!begun || ::sigpending(&pending) != 0) {
    return;
  }
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2}) {
    if (::sigismember(&pending, signal) == 1 && ::sigismember(&begun->mask, signal) == 0) {
      End(begun);
      return;
    }
  }
}

}  // namespace coffer::call
