// SPDX-License-Identifier: Apache-2.0
//
// The background processes of sessions: which there are, what they printed, and how other calls of
// the session reach them.
//
// A process is a call like any other: it was admitted, it runs under the warden, and its receipt
// comes at its end. Here is what only a process has. Its channel (call/run/port_forwarder.h) is
// given to later calls of the same session and to no other call. What has ended is kept until its
// session ends, the newest few. Thread-safe.
#pragma once

#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "call/ladder.h"
#include "gateway/service.h"

namespace coffer::daemon {

class SessionProcesses {
 public:
  static constexpr size_t kMostRunning = 8;  // of one session
  static constexpr size_t kMostKept = 32;    // of one session, with those that ended

  // Descriptors that a launch gives away; they may be closed once it was asked for.
  using Given = std::vector<UniqueFd>;

  // For a call that is about to be launched: adds the ports of its session's processes to
  // `call.run`, and if it is a process itself, makes its place here. Refused if the session has too
  // many, or has a port already.
  Result<Given> Connect(call::ReadyCall& call);
  // What it printed, as it comes.
  void Print(const std::string& call_id, std::string_view text);
  void End(const std::string& call_id, const call::ToolReply& reply);
  // The session is over.
  void Forget(const std::string& session_id);

  std::vector<gateway::ProcessView> List(const std::string& session_id) const;
  std::optional<gateway::ProcessView> Find(const std::string& session_id,
                                           const std::string& process_id) const;
  // From `offset` on, at most `limit` bytes; nothing if there is no such process.
  std::optional<gateway::ProcessLogView> ReadLog(const std::string& session_id,
                                                 const std::string& process_id, uint64_t offset,
                                                 size_t limit) const;

 private:
  struct Process {
    gateway::ProcessView view;
    std::string log;
    UniqueFd channel;  // ours; closed at its end
  };
  struct Place {
    std::string session;
    std::list<Process>::iterator process;
  };
  Status MakeRoom(std::list<Process>& processes, const call::RunRequest& run);

  mutable std::mutex mutex_;
  std::map<std::string, std::list<Process>> sessions_;
  std::map<std::string, Place> places_;  // by the call's id
};

}  // namespace coffer::daemon
