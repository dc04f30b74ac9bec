// SPDX-License-Identifier: Apache-2.0
//
// Sessions of the command line: a workspace that `coffer call --session` and `coffer run --session`
// share, without a daemon.
//
// A session is a row of the store and a directory below the state directory that only the caller
// may enter; the row says how long it lives and how much it may hold, and a call in it is admitted
// like any other (store/admission.h). The directory comes into a boundary as its /workspace,
// through the same door as every other path. A call holds a shared lock on it while it runs. Files
// are removed under the exclusive lock, after the row says that the session has ended, so no call
// ever starts on a workspace that is being removed. What could not be removed then is removed by
// the next sweep; there is one whenever sessions are made, listed, used or ended. Sessions of a
// daemon's agents are left to the daemon.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "call/config_file.h"
#include "cli/process_places.h"
#include "cli/state.h"
#include "store/session.h"

namespace coffer::cli {

// The agent that every call of the command line acts as.
inline constexpr const char* kCliAgent = "cli";

// The code of Hold's refusal while another process has the files for itself.
inline constexpr const char* kSessionLocked = "policy.session.locked";

class LocalSessions {
 public:
  // `state` outlives it. Makes the directory of workspaces if it is not there.
  static Result<LocalSessions> Open(State& state);

  // What a new session asks for unless the user says otherwise: the most that the tenant's rules allow, for a day.
  static constexpr Nanos kUsualLifetime = std::chrono::hours(24);
  Result<store::SessionRequest> UsualRequest(const call::TenantRules& rules) const;
  // The row, then the directory. Refused if the tenant's sessions have no room for another.
  Result<store::Session> Make(store::SessionRequest request);

  // A session that is open, with its workspace locked until the descriptor is closed. Refused: unknown, ended, or not
  // the command line's.
  struct Held {
    store::Session session;
    std::string workspace;  // absolute
    UniqueFd lock;
    // Of the call that holds it: channels to the session's processes (session_forwards.h).
    std::vector<UniqueFd> ports;
  };
  Result<Held> Hold(const std::string& id);

  struct File {
    std::string path;  // hostile text
    uint64_t size = 0;
    Nanos modified_at{0};
  };
  // Regular files whose paths begin with `prefix`, sorted, at most `most`; `more` says that there
  // are others. Follows no link.
  struct Listing {
    std::vector<File> files;
    bool more = false;
  };
  Result<Listing> List(const std::string& id, const std::string& prefix, size_t most);

  // False: a call still uses the files; a later sweep removes them.
  Result<bool> RemoveFiles(const store::Session& session);

  // Kills the session's background processes, and removes what is kept of them. With kNo nothing happens while another
  // verb starts or ends one.
  Status EndProcesses(const std::string& id, ProcessPlaces::Wait wait);

  // Ends the command line's sessions whose time is over, and removes files and processes of those that have ended.
  Status Sweep();

 private:
  LocalSessions(State& state, UniqueFd directory)
      : state_(state), directory_(std::move(directory)) {}
  Result<store::Session> FindOwn(const std::string& id);
  Status SweepProcesses();

  State& state_;
  UniqueFd directory_;  // of the workspaces
};

}  // namespace coffer::cli
