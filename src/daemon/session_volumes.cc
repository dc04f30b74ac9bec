// SPDX-License-Identifier: Apache-2.0
#include "daemon/session_volumes.h"

#include <fcntl.h>

#include "base/sys.h"
#include "call/warden/volumes.h"
#include "limits/volume.h"

namespace coffer::daemon {

SessionVolumes::SessionVolumes(std::string sessions, int warden)
    : sessions_(std::move(sessions)), warden_(warden) {}

Status SessionVolumes::Ensure(const store::Session& session) {
  if (!session.enforced) {
    return {};
  }
  TRY_ASSIGN(const UniqueFd dir, sys::OpenNoLinks(AT_FDCWD, sessions_, O_RDONLY | O_DIRECTORY));
  if (limits::IsMounted(dir.get(), session.workspace)) {
    return {};
  }
  std::unique_lock lock(mutex_);
  opened_.wait(lock, [&] { return !opening_.contains(session.id); });
  if (limits::IsMounted(dir.get(), session.workspace)) {
    return {};
  }
  opening_.insert(session.id);
  lock.unlock();
  Status mounted =
      call::AskForVolume(warden_, call::WardenVerb::kOpenVolume, session.id, session.bytes);
  lock.lock();
  opening_.erase(session.id);
  opened_.notify_all();
  return mounted;
}

}  // namespace coffer::daemon
