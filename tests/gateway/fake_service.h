// SPDX-License-Identifier: Apache-2.0
//
// A Service that does nothing and remembers everything: what the gateway is tested against.
//
// What a call does is chosen by the tool's name (see Submit). Like a real one it is used on the loop's thread only.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "gateway/service.h"

namespace coffer::gateway {

inline const std::string kCallId = "01890a5d-ac96-774b-bcce-b302099a8057";
inline const std::string kSessionId = "01890a5d-ac96-774b-bcce-b302099a8058";
inline const std::string kOtherId = "01890a5d-ac96-774b-bcce-b302099a8059";

class FakeService : public Service {
 public:
  Answer<std::shared_ptr<void>> Hold(const Asker& asker, size_t bytes) override;
  std::shared_ptr<void> HoldAnyway(const Asker& asker, size_t bytes) override;
  void Continue(const Asker& asker, std::function<void()> work) override;
  bool Offload(const Asker& asker, std::function<void()> work) override;
  std::atomic<int> offloaded = 0;
  std::atomic<size_t> bytes_held = 0;
  std::atomic<int> steps = 0;  // of answers that were begun

  // Keys: "agent-key", "approver-key", "operator-key", "auditor-key". A unix peer is an operator.
  void Authenticate(const Credential& credential, Reply<Identity> reply) override;

  // Tools: echo, gated, limited, inflight, mismatch, denied, broken (internal), wait (see Finish), big (output of a MiB), huge (of 8 MiB
  // that is six times as long in JSON).
  void Submit(const Identity& who, CallRequest request, Reply<CallView> reply) override;
  void GetCall(const Identity& who, const std::string& call_id, Reply<CallView> reply) override;
  void GetReceipt(const Identity& who, const std::string& call_id,
                  Reply<std::string> reply) override;
  void CancelCall(const Identity& who, const std::string& call_id, Reply<CallView> reply) override;
  WaitHandle WaitEvents(const Identity& who, const std::string& call_id, uint64_t after,
                        size_t max_bytes, Reply<EventBatch> reply) override;
  void CheckWatcher(const Identity& who, Watched what, Reply<Nothing> reply) override;

  void CreateSession(const Identity& who, SessionRequest request,
                     Reply<SessionView> reply) override;
  void ListSessions(const Identity& who, PageRequest page, Reply<Page<SessionView>> reply) override;
  void GetSession(const Identity& who, const std::string& session_id,
                  Reply<SessionView> reply) override;
  void EndSession(const Identity& who, const std::string& session_id,
                  Reply<SessionView> reply) override;

  void ExtendSession(const Identity& who, const std::string& session_id,
                     std::chrono::seconds lifetime, Reply<SessionView> reply) override;
  void ListProcesses(const Identity& who, const std::string& session_id,
                     Reply<std::vector<ProcessView>> reply) override;
  void GetProcess(const Identity& who, const ProcessName& name, Reply<ProcessView> reply) override;
  void ReadProcessLog(const Identity& who, const ProcessName& name, LogRange range,
                      Reply<ProcessLogView> reply) override;
  void SignalProcess(const Identity& who, const ProcessName& name, std::optional<int> signal,
                     Reply<ProcessView> reply) override;

  void ListFiles(const Identity& who, const FileOwner& owner, const std::string& prefix,
                 PageRequest page, Reply<Page<FileView>> reply) override;
  void OpenUpload(const Identity& who, const FileOwner& owner, const std::string& path,
                  std::optional<uint64_t> size, Reply<std::shared_ptr<Upload>> reply) override;
  void OpenDownload(const Identity& who, const FileOwner& owner, const std::string& path,
                    Reply<std::shared_ptr<Download>> reply) override;
  void RemoveFile(const Identity& who, const FileOwner& owner, const std::string& path,
                  Reply<Nothing> reply) override;

  void ListTools(const Identity& who, Reply<std::vector<ToolView>> reply) override;
  void GetTool(const Identity& who, const std::string& name, Reply<ToolView> reply) override;
  void ListToolDefinitions(const Identity& who, Reply<std::shared_ptr<const Json>> reply) override;
  void CreateKey(const Identity& who, KeyRequest request, Reply<NewKey> reply) override;
  void ListKeys(const Identity& who, Reply<std::vector<KeyView>> reply) override;
  void RevokeKey(const Identity& who, const std::string& key_id, Revocation how,
                 Reply<KeyView> reply) override;
  void ListAudit(const Identity& who, AuditQuery query, Reply<Page<AuditView>> reply) override;
  void GetCheckpoint(const Identity& who, Reply<CheckpointView> reply) override;
  void GetTranscript(const Identity& who, const std::string& call_id,
                     Reply<TranscriptView> reply) override;
  void GetObject(const Identity& who, const std::string& hash, Reply<std::string> reply) override;
  void ListSwitches(const Identity& who, Reply<std::vector<SwitchView>> reply) override;
  void SetSwitch(const Identity& who, const SwitchTarget& target, const std::string& reason,
                 Reply<SwitchView> reply) override;
  void ListAccess(const Identity& who, Reply<std::vector<AccessView>> reply) override;
  void DecideAccess(const Identity& who, const std::string& access_id, AccessGrant decision,
                    Reply<AccessView> reply) override;
  void ClearSwitch(const Identity& who, const SwitchTarget& target, Reply<Nothing> reply) override;
  void GetMetrics(const Identity& who, Reply<std::string> reply) override;
  Readiness GetReadiness() override;

  // Answers the calls of the tool `wait`.
  void Finish();
  // Adds an event of kCallId and answers who waits for it.
  void AddEvent(CallEvent::Kind kind, std::string data);
  void EndEvents();

  std::vector<CallRequest> submitted;
  Nanos session_time_left{0};
  std::optional<Nanos> session_expires_at;
  std::vector<std::string> asked;  // names of the other methods that were called
  std::optional<Credential> last_credential;
  Identity last_who;
  std::map<std::string, std::string> files;
  std::set<std::string> discarded;  // uploads that were not finished
  size_t quota = 1 << 20;
  uint64_t first_event = 1;                // events before this are forgotten
  size_t event_waits = 0;                  // waits that are open
  std::optional<Refusal> watcher_refused;  // what CheckWatcher says
  size_t watchers_checked = 0;
  bool ready = true;
  std::string wait_output = "waited";  // of the tool `wait`
  bool keep_replies = false;           // Submit's, after they were invoked
  std::string log_text = "hello";      // of each process
  std::string tool_description = "says it";
  std::vector<bool> wanted;  // for each reply of ListToolDefinitions: does a client wait for it

  // Authenticate, ListToolDefinitions, OpenUpload and Upload::Write reply only in Release
  bool hold = false;
  void Release();      // and hold no more
  void ReleaseHeld();  // what follows is held again
  size_t held() const { return held_.size(); }
  // Now, or in Release.
  void ReplyWhenAllowed(std::function<void()> reply);

 private:
  struct Waiter {
    uint64_t after = 0;
    Reply<EventBatch> reply;
  };
  void Note(const Identity& who, const char* method);
  bool AnswerEvents(uint64_t after, const Reply<EventBatch>& reply);
  void WakeWaiters();

  std::vector<std::function<void()>> held_;
  std::vector<Reply<CallView>> waiting_calls_;
  std::vector<Reply<CallView>> kept_replies_;
  std::vector<CallEvent> events_;
  bool events_ended_ = false;
  std::map<int, Waiter> waiters_;
  int next_waiter_ = 0;
};

}  // namespace coffer::gateway
