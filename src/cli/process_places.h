// SPDX-License-Identifier: Apache-2.0
//
// The background processes of the command line's sessions, as they lie in the state directory:
// processes/SESSION/PROCESS/, with
//
//   about    what it is; there once the process can be reached
//   log      what it printed, at most as much as its --output allows
//   control  the keeper's socket (process_control.h): what is connected to lives
//   end      how it ended, in the keeper's words; a keeper that was killed leaves none, and the end is unknown
//
// No payload sees the state directory, so none can write here, but for the text of its own log. The
// directories are the caller's own and closed to others, and what is not counts as tampered with:
// as root the state directory itself may belong to the daemon's gateway, which has no privilege.
// Everything goes with its session.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "base/result.h"
#include "base/unique_fd.h"

namespace coffer::cli {

struct ProcessInfo {
  std::string id;  // of its call
  std::string session;
  std::vector<std::string> command;
  std::vector<uint16_t> ports;
  Nanos started_at{0};
  bool running = false;
  // When it has ended.
  Nanos ended_at{0};
  std::string outcome;  // as of a call
  std::optional<int> exit_code;
  std::optional<int> exit_signal;
  std::string error_class;
  std::string error_message;
};

// With the names that the daemon's API has.
Json ProcessJson(const ProcessInfo& process);

class ProcessPlaces {
 public:
  // Makes the directory if it is not there.
  static Result<ProcessPlaces> Open(const std::string& state);

  // The sessions that have a directory here.
  Result<std::vector<std::string>> Sessions() const;
  // Makes the session's directory and locks it until the descriptor is closed: for one start, or one end, at a time.
  enum class Wait : uint8_t { kYes, kNo };  // kNo: an empty descriptor if another verb has it
  Result<UniqueFd> LockSession(const std::string& session, Wait wait) const;
  // In the order in which they were started. None if there is no such session.
  Result<std::vector<ProcessInfo>> List(const std::string& session) const;
  // Its directory. Refused if the session has no such process.
  Result<UniqueFd> OpenProcess(const std::string& session, const std::string& process) const;

  // What the keeper writes. MakeProcess makes the directory; its log is empty.
  Result<UniqueFd> MakeProcess(const std::string& session, const std::string& process) const;
  static Status WriteAbout(int dir, const ProcessInfo& process);
  static Status WriteEnd(int dir, const ProcessInfo& process);
  Status RemoveProcess(const std::string& session, const std::string& process) const;

  // Kills what runs in the session, waits until it is gone and removes the directory. `lock` is LockSession's.
  Status EndSession(const std::string& session, int lock) const;

 private:
  explicit ProcessPlaces(UniqueFd directory) : directory_(std::move(directory)) {}

  UniqueFd directory_;
};

}  // namespace coffer::cli
