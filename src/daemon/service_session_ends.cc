// SPDX-License-Identifier: Apache-2.0
//
// The part of the service that ends sessions: by hand, by time, or after a crash. Nothing of them stays on the disk.
#include <fcntl.h>

#include <set>

#include "base/sys.h"
#include "call/warden/volumes.h"
#include "daemon/service.h"
#include "daemon/workspace.h"
#include "store/session.h"

namespace coffer::daemon {
namespace {

constexpr std::string_view kPrefix = "session-";  // of a workspace's name, before the session's id

}  // namespace

void DaemonService::EndExpired() {
  Result<std::vector<store::EndedSession>> ended =
      store::EndExpiredSessions(context_.store(), store::AllTenants{});
  if (!ended.ok()) {
    return;
  }
  for (const store::EndedSession& session : *ended) {
    AfterEnd(session, "lifetime");
  }
}

// On a worker.
void DaemonService::AfterEnd(const store::EndedSession& ended, const std::string& by) {
  context_.loop.Post([this, id = ended.session.id, by] {
    StopWhere([&](const call::ReadyCall& call) { return call.request.identity.session_id == id; },
              Refused("policy.cancelled", "cancelled with its session, ended by " + by));
    processes_.Forget(id);
  });
  (void)RemoveFiles(ended.session);  // else by the timer
  if (ended.just_now) {
    (void)context_.recorder().Happened(ended.session.tenant.name(), "session.ended",
                                       {{"by", by}, {"session", ended.session.id}});
  }
}

bool DaemonService::RemoveFiles(const store::Session& session) {
  const Workspace workspace(context_.sessions, session.workspace);
  // Also of a session that is not marked: a crash may have come between the image and the mark. The directory goes last:
  // it is what says that the session is still ending, and where the timer looks for images.
  if (options_.owner == 0 && !session.id.empty() &&
      !call::AskForVolume(context_.warden, call::WardenVerb::kCloseVolume, session.id, 0).ok()) {
    return false;
  }
  return workspace.Remove().ok();
}

void DaemonService::SweepWorkspaces() {
  // First the directories, then the sessions: one that is made in between has its row before its directory.
  const Result<UniqueFd> dir =
      sys::OpenNoLinks(AT_FDCWD, context_.sessions, O_RDONLY | O_DIRECTORY);
  if (!dir.ok()) {
    return;
  }
  const Result<std::vector<sys::DirEntry>> entries = sys::ListDir(dir->get());
  if (!entries.ok() || entries->empty()) {
    return;
  }
  std::set<std::string> open;
  store::PageRequest page{1000, ""};
  do {
    const Result<store::Page<store::Session>> sessions = store::ListSessions(
        context_.store(), store::AllTenants{}, store::SessionFilter::kOpen, page);
    if (!sessions.ok()) {
      return;  // nothing is removed on a guess
    }
    for (const store::Session& session : sessions->rows) {
      open.insert(session.workspace);
    }
    page.cursor = sessions->next;
  } while (!page.cursor.empty());
  for (const sys::DirEntry& entry : *entries) {
    if (!open.contains(entry.name)) {
      store::Session gone;
      gone.workspace = entry.name;
      gone.id = entry.name.starts_with(kPrefix) ? entry.name.substr(kPrefix.size()) : "";
      (void)RemoveFiles(gone);
    }
  }
}

}  // namespace coffer::daemon
