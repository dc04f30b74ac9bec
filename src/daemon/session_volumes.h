// SPDX-License-Identifier: Apache-2.0
//
// The file systems of sessions, mounted when they are used.
//
// They go away with the daemon (daemon/own_mounts.h), so after a restart an open session has its
// image and no mount. Every use of a session's files asks for the mount first. Without it nothing
// is read or written: what a call wrote below it would be bounded by nothing, and hidden when the
// mount comes.
#pragma once

#include <condition_variable>
#include <mutex>
#include <set>
#include <string>

#include "base/result.h"
#include "store/session.h"

namespace coffer::daemon {

class SessionVolumes {
 public:
  // `sessions`: their directory. `warden`: the socket to it.
  SessionVolumes(std::string sessions, int warden);

  // On a worker; waits for the warden. Nothing to do for a session that the kernel does not bound. Thread-safe.
  Status Ensure(const store::Session& session);

 private:
  const std::string sessions_;
  const int warden_;
  std::mutex mutex_;  // of what follows
  std::condition_variable opened_;
  std::set<std::string> opening_;  // ids: the warden takes one request at a time for each
};

}  // namespace coffer::daemon
