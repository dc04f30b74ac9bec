// SPDX-License-Identifier: Apache-2.0
//
// The daemon's answer to every question a protocol can ask: gateway::Service over the ladder, the store and the warden.
//
// Lives on the gateway's loop; all work on the store or the disk happens on workers. A call belongs
// to the tenant of the identity that made it, and every look-up is by tenant. A timer ends sessions
// whose time is over and calls that a switch stopped, also if another process set the switch.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>

#include "daemon/calls_inside.h"
#include "daemon/running_call.h"
#include "daemon/service_context.h"
#include "daemon/session_processes.h"
#include "daemon/session_volumes.h"
#include "gateway/service.h"
#include "store/session.h"

namespace coffer::daemon {

struct ServiceOptions {
  uid_t owner = 0;  // a peer of the unix socket with this uid is an operator
  Nanos longest_session = std::chrono::hours(24);     // from when it is made, or extended
  Nanos oldest_session = std::chrono::hours(24 * 7);  // however often it is extended
};

class DaemonService : public gateway::Service {
 public:
  DaemonService(ServiceContext& context, ServiceOptions options);
  ~DaemonService() override;

  void Authenticate(const gateway::Credential& credential,
                    gateway::Reply<gateway::Identity> reply) override;
  void Submit(const gateway::Identity& who, gateway::CallRequest request,
              gateway::Reply<gateway::CallView> reply) override;
  void GetCall(const gateway::Identity& who, const std::string& call_id,
               gateway::Reply<gateway::CallView> reply) override;
  void GetReceipt(const gateway::Identity& who, const std::string& call_id,
                  gateway::Reply<std::string> reply) override;
  void CancelCall(const gateway::Identity& who, const std::string& call_id,
                  gateway::Reply<gateway::CallView> reply) override;
  gateway::WaitHandle WaitEvents(const gateway::Identity& who, const std::string& call_id,
                                 uint64_t after, size_t max_bytes,
                                 gateway::Reply<gateway::EventBatch> reply) override;
  void CheckWatcher(const gateway::Identity& who, gateway::Watched what,
                    gateway::Reply<gateway::Nothing> reply) override;

  void CreateSession(const gateway::Identity& who, gateway::SessionRequest request,
                     gateway::Reply<gateway::SessionView> reply) override;
  void ListSessions(const gateway::Identity& who, gateway::PageRequest page,
                    gateway::Reply<gateway::Page<gateway::SessionView>> reply) override;
  void GetSession(const gateway::Identity& who, const std::string& session_id,
                  gateway::Reply<gateway::SessionView> reply) override;
  void EndSession(const gateway::Identity& who, const std::string& session_id,
                  gateway::Reply<gateway::SessionView> reply) override;

  void ExtendSession(const gateway::Identity& who, const std::string& session_id,
                     std::chrono::seconds lifetime,
                     gateway::Reply<gateway::SessionView> reply) override;

  void ListProcesses(const gateway::Identity& who, const std::string& session_id,
                     gateway::Reply<std::vector<gateway::ProcessView>> reply) override;
  void GetProcess(const gateway::Identity& who, const gateway::ProcessName& name,
                  gateway::Reply<gateway::ProcessView> reply) override;
  void ReadProcessLog(const gateway::Identity& who, const gateway::ProcessName& name,
                      gateway::LogRange range,
                      gateway::Reply<gateway::ProcessLogView> reply) override;
  void SignalProcess(const gateway::Identity& who, const gateway::ProcessName& name,
                     std::optional<int> signal,
                     gateway::Reply<gateway::ProcessView> reply) override;
  // All of them, because the daemon stops.
  void EndProcesses();

  void ListFiles(const gateway::Identity& who, const gateway::FileOwner& owner,
                 const std::string& prefix, gateway::PageRequest page,
                 gateway::Reply<gateway::Page<gateway::FileView>> reply) override;
  void OpenUpload(const gateway::Identity& who, const gateway::FileOwner& owner,
                  const std::string& path, std::optional<uint64_t> size,
                  gateway::Reply<std::shared_ptr<gateway::Upload>> reply) override;
  void OpenDownload(const gateway::Identity& who, const gateway::FileOwner& owner,
                    const std::string& path,
                    gateway::Reply<std::shared_ptr<gateway::Download>> reply) override;
  void RemoveFile(const gateway::Identity& who, const gateway::FileOwner& owner,
                  const std::string& path, gateway::Reply<gateway::Nothing> reply) override;

  void ListTools(const gateway::Identity& who,
                 gateway::Reply<std::vector<gateway::ToolView>> reply) override;
  void GetTool(const gateway::Identity& who, const std::string& name,
               gateway::Reply<gateway::ToolView> reply) override;
  void ListToolDefinitions(const gateway::Identity& who,
                           gateway::Reply<std::shared_ptr<const Json>> reply) override;

  void CreateKey(const gateway::Identity& who, gateway::KeyRequest request,
                 gateway::Reply<gateway::NewKey> reply) override;
  void ListKeys(const gateway::Identity& who,
                gateway::Reply<std::vector<gateway::KeyView>> reply) override;
  void RevokeKey(const gateway::Identity& who, const std::string& key_id, gateway::Revocation how,
                 gateway::Reply<gateway::KeyView> reply) override;
  void ListAccess(const gateway::Identity& who,
                  gateway::Reply<std::vector<gateway::AccessView>> reply) override;
  void DecideAccess(const gateway::Identity& who, const std::string& access_id,
                    gateway::AccessGrant decision,
                    gateway::Reply<gateway::AccessView> reply) override;
  void ListSwitches(const gateway::Identity& who,
                    gateway::Reply<std::vector<gateway::SwitchView>> reply) override;
  void SetSwitch(const gateway::Identity& who, const gateway::SwitchTarget& target,
                 const std::string& reason, gateway::Reply<gateway::SwitchView> reply) override;
  void ClearSwitch(const gateway::Identity& who, const gateway::SwitchTarget& target,
                   gateway::Reply<gateway::Nothing> reply) override;
  void GetMetrics(const gateway::Identity& who, gateway::Reply<std::string> reply) override;
  void ListAudit(const gateway::Identity& who, gateway::AuditQuery query,
                 gateway::Reply<gateway::Page<gateway::AuditView>> reply) override;
  void GetCheckpoint(const gateway::Identity& who,
                     gateway::Reply<gateway::CheckpointView> reply) override;
  void GetTranscript(const gateway::Identity& who, const std::string& call_id,
                     gateway::Reply<gateway::TranscriptView> reply) override;
  void GetObject(const gateway::Identity& who, const std::string& hash,
                 gateway::Reply<std::string> reply) override;
  gateway::Readiness GetReadiness() override;
  std::optional<gateway::Refusal> CheckRoom(const gateway::Asker& asker) override;
  gateway::Answer<std::shared_ptr<void>> Hold(const gateway::Asker& asker, size_t bytes) override;
  std::shared_ptr<void> HoldAnyway(const gateway::Asker& asker, size_t bytes) override;
  bool Offload(const gateway::Asker& asker, std::function<void()> work) override;
  void Continue(const gateway::Asker& asker, std::function<void()> work) override;

  size_t running() const { return calls_.size(); }
  // On a worker: reads the manifests again.
  void ReloadTools();

 private:
  struct Flight {
    std::unique_ptr<RunningCall> call;  // null while it is sealed
    std::shared_ptr<EventLog> log;
    gateway::Reply<gateway::CallView> reply;  // empty once answered
    call::ToolRequest request;
    std::optional<Error> stopped;  // it is being killed: why, and by whom
    std::string told;  // the manifest of which the operator was told that it allows less
    gateway::Identity who;
    std::unique_ptr<CallsInside> inside;  // the calls that its program makes; null: it makes none
    uint64_t number = 0;  // of a call that its parent's program makes: among those; 0: it is none
  };
  // A request on its way to being a call.
  struct Submission {
    gateway::Identity who;
    std::shared_ptr<call::ToolRequest> asked;
    bool wait = false;
    gateway::Reply<gateway::CallView> reply;  // empty for a call that a call's program makes
    std::shared_ptr<gateway::CallWatch> watch;
    Nanos arrived{0};
    uint64_t number = 0;                          // as in Flight
    std::shared_ptr<std::atomic<bool>> unwanted;  // of such a call
    std::shared_ptr<void> room;                   // of its arguments
  };
  using Submitted = std::shared_ptr<const Submission>;
  // The way from the relay of a call (calls_inside.h), and what the code inside is told of the tools there.
  struct RelayEnd {
    UniqueFd socket;
    std::string tools;
  };

  // Whether new work of the tenant is taken (none: of a client that is not known yet).
  bool HasRoom(const Lane& lane);
  void AuthenticatePeer(uid_t uid, gateway::Reply<gateway::Identity> reply);
  void CancelVisible(const gateway::Identity& who, const std::string& call_id,
                     const gateway::Reply<gateway::CallView>& reply);
  // Makes the files of the request's session reachable.
  Status OpenSession(const call::ToolRequest& request);
  // On a worker: up the ladder, and into a boundary.
  void Climb(const Submitted& submitted);
  // From a worker: there is no call, or none any more.
  void AnswerSubmitted(const Submitted& submitted, const call::ToolReply& reply);
  void RefuseSubmitted(const Submitted& submitted, const gateway::Refusal& refusal);
  // On a worker: for a call whose program calls tools; no socket for any other.
  Result<RelayEnd> OpenRelay(call::ReadyCall& ready, UniqueFd& theirs) const;
  void Watch(const std::shared_ptr<call::ReadyCall>& ready,
             const std::shared_ptr<call::RunChannels>& channels, const Submitted& submitted,
             const std::shared_ptr<RelayEnd>& relay);
  std::unique_ptr<CallsInside> ServeInside(const std::string& call_id, const call::ReadyCall& ready,
                                           RelayEnd relay);
  bool BeginInner(const gateway::Identity& who, const InnerCall& call);
  // From a worker: the answer for the program that made the call.
  void EndInner(const gateway::Identity& who, const store::CallIdentity& inner, uint64_t number,
                const call::ToolReply& reply, Nanos cpu_used);
  void End(const std::string& call_id);
  void KeepRecent(const std::string& call_id, const std::shared_ptr<EventLog>& log);
  // Kills a call that runs. `why` goes into its receipt; the first reason stays.
  void Stop(const std::string& call_id, const Error& why);
  void StopWhere(const std::function<bool(const call::ReadyCall&)>& stopped, const Error& why);
  void Tick();
  void CheckSwitches();
  // What is wrong with a switch for that target, or nothing.
  std::optional<gateway::Refusal> FindMistake(const store::TenantId& tenant,
                                              const gateway::SwitchTarget& target);
  void KillIfStopped(const std::string& call_id, const call::ToolRequest& request);
  void EndExpired();
  // What a session's end brings with it: its calls are killed, its files removed, and the log says by whom.
  void AfterEnd(const store::EndedSession& ended, const std::string& by);
  // Removes the workspaces of sessions that ended elsewhere, or before a crash.
  void SweepWorkspaces();
  // Removes what is left of an ended session; true if nothing is. On a worker.
  bool RemoveFiles(const store::Session& session);
  gateway::SessionView ShowSession(const store::Session& session) const;
  gateway::Answer<gateway::SessionView> MakeSession(const gateway::Identity& who,
                                                    const store::SessionRequest& asked);
  // Looks how full the disk is and what tenants keep, and makes room.
  void KeepRoom();
  void SettleDead();
  void TellNarrowed();
  void PruneOld();
  gateway::Answer<gateway::ProcessView> FindProcess(const gateway::Identity& who,
                                                    const gateway::ProcessName& name) const;
  void FollowLog(const gateway::ProcessName& name, const gateway::LogRange& range, Nanos deadline,
                 const gateway::Reply<gateway::ProcessLogView>& reply);
  std::vector<gateway::AccessView> AccessOf(const gateway::Identity& who) const;
  // Goes to the log and to receivers of events, so that no operator has to poll.
  void TellAsked(const std::string& call_id, const egress::AccessNotice& notice);
  // A call of this tenant that runs here, or null.
  Flight* FindFlight(const gateway::Identity& who, const std::string& call_id);

  ServiceContext& context_;
  const ServiceOptions options_;
  std::map<std::string, Flight> calls_;
  SessionProcesses processes_;
  std::map<uint64_t, std::shared_ptr<void>> followers_;  // clients that wait for more of a log
  uint64_t next_follower_ = 0;
  // Events of calls that ended recently, for watchers that come late.
  std::deque<std::pair<std::string, std::shared_ptr<EventLog>>> recent_;
  std::shared_ptr<EventRoom> event_room_ = std::make_shared<EventRoom>();
  // Of keys that were good before, by their hash: only for whose turn it is, never for what they may.
  std::unordered_map<size_t, Lane> lanes_;
  std::shared_ptr<void> timer_;
  std::atomic<int64_t> switch_generation_{-1};
  std::atomic<bool> volumes_ok_{true};  // sessions can have file systems of their own
  SessionVolumes volumes_;
  std::atomic<bool> store_ok_{true};
  std::atomic<bool> log_ok_{true};
  std::atomic<bool> behind_{false};  // no worker is free to look at either
  std::atomic<uint32_t> ticks_{0};
  std::atomic<Nanos> next_prune_{Nanos(0)};
};

}  // namespace coffer::daemon
