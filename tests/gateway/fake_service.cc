// SPDX-License-Identifier: Apache-2.0
#include "tests/gateway/fake_service.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "gateway/mcp/process_tools.h"

namespace coffer::gateway {
namespace {

Refusal Missing(std::string code) {
  return {
      .kind = RefusalKind::kNotFound, .code = std::move(code), .message = "there is no such thing"};
}

CallView Done(std::string stdout_text) {
  CallView call;
  call.identity.call_id = kCallId;
  call.outcome = "success";
  call.result = CallResult{.stdout_text = std::move(stdout_text), .exit_code = 0};
  call.log = audit::LogPosition{7, 8, "sha256:abc"};
  call.identity.tool = "echo";
  call.requested_at = std::chrono::seconds(1'700'000'000);
  return call;
}

SessionView Session() {
  SessionView session;
  session.session_id = kSessionId;
  session.agent = "bot";
  session.created_at = std::chrono::seconds(1'700'000'000);
  session.expires_at = std::chrono::seconds(1'700'003'600);
  return session;
}

KeyView Key() {
  return {.key_id = "k1",
          .role = Role::kAgent,
          .tenant = *store::TenantId::Parse("t1"),
          .agent = "bot"};
}

class FakeUpload : public Upload {
 public:
  FakeUpload(FakeService* service, std::string path) : service_(service), path_(std::move(path)) {}
  ~FakeUpload() override {
    if (!finished_) {
      service_->discarded.insert(path_);
    }
  }
  void Write(std::string bytes, Reply<Nothing> reply) override {
    content_ += bytes;
    if (content_.size() > service_->quota) {
      reply(Refusal{.kind = RefusalKind::kTooLarge,
                    .code = "quota.disk",
                    .message = "the workspace is full"});
      return;
    }
    service_->ReplyWhenAllowed([reply] { reply(Nothing{}); });
  }
  void Finish(Reply<FileView> reply) override {
    finished_ = true;
    service_->files[path_] = content_;
    reply(FileView{.path = path_, .size = content_.size()});
  }

 private:
  FakeService* service_;
  std::string path_;
  std::string content_;
  bool finished_ = false;
};

class FakeDownload : public Download {
 public:
  FakeDownload(std::string path, std::string content) : content_(std::move(content)) {
    view_.path = std::move(path);
    view_.size = content_.size();
  }
  const FileView& file() const override { return view_; }
  void Read(size_t max, Reply<std::string> reply) override {
    std::string piece = content_.substr(at_, max);
    at_ += piece.size();
    reply(std::move(piece));
  }

 private:
  FileView view_;
  std::string content_;
  size_t at_ = 0;
};

}  // namespace

void FakeService::ReplyWhenAllowed(std::function<void()> reply) {
  if (hold) {
    held_.push_back(std::move(reply));
  } else {
    reply();
  }
}

void FakeService::Release() {
  hold = false;
  ReleaseHeld();
}

void FakeService::ReleaseHeld() {
  for (const auto& reply : std::exchange(held_, {})) {
    reply();
  }
}

void FakeService::Note(const Identity& who, const char* method) {
  last_who = who;
  asked.emplace_back(method);
}

Answer<std::shared_ptr<void>> FakeService::Hold(const Asker& asker, size_t bytes) {
  return HoldAnyway(asker, bytes);
}

std::shared_ptr<void> FakeService::HoldAnyway(const Asker& /*asker*/, size_t bytes) {
  bytes_held += bytes;
  return {this, [this, bytes](void*) { bytes_held -= bytes; }};
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): the daemon keeps it
bool FakeService::Offload(const Asker& /*asker*/, std::function<void()> work) {
  ++offloaded;
  work();
  return true;
}

void FakeService::Continue(const Asker& /*asker*/, std::function<void()> work) {
  ++steps;
  work();
}

void FakeService::Authenticate(const Credential& credential, Reply<Identity> reply) {
  last_credential = credential;
  if (credential.verify) {
    ReplyWhenAllowed([reply, verify = credential.verify] { reply(verify()); });
    return;
  }
  if (credential.peer.has_value()) {
    reply(Identity{store::TenantId::Local(),
                   "peer",
                   Role::kOperator,
                   "uid:" + std::to_string(credential.peer->uid),
                   {}});
    return;
  }
  static const std::map<std::string, Role> kKeys = {{"agent-key", Role::kAgent},
                                                    {"approver-key", Role::kApprover},
                                                    {"operator-key", Role::kOperator},
                                                    {"auditor-key", Role::kAuditor},
                                                    {"neighbour-key", Role::kAgent}};
  const auto found = kKeys.find(credential.bearer);
  if (found == kKeys.end()) {
    reply(Refusal{
        .kind = RefusalKind::kUnauthenticated, .code = "auth.key", .message = "no such key"});
    return;
  }
  const char* const tenant = found->first == "neighbour-key" ? "t2" : "t1";
  ReplyWhenAllowed(
      [reply,
       who = Identity{*store::TenantId::Parse(tenant), "bot", found->second, found->first, {}}] {
        reply(who);
      });
}

void FakeService::Submit(const Identity& who, CallRequest request, Reply<CallView> reply) {
  last_who = who;
  submitted.push_back(request);
  if (keep_replies) {
    kept_replies_.push_back(reply);
  }
  if (!request.wait) {
    CallView call;
    call.identity.call_id = kCallId;
    call.state = CallProgress::kQueued;
    reply(std::move(call));
  } else if (request.tool == "echo") {
    reply(Done(request.args_json));
  } else if (request.tool == "big") {
    reply(Done(std::string(1 << 20, 'x')));
  } else if (request.tool == "huge") {
    reply(Done(std::string(8 << 20, '\0')));
  } else if (request.tool == "wait") {
    if (request.watch != nullptr) {
      request.watch->started(kCallId);
    }
    waiting_calls_.push_back(std::move(reply));
  } else if (request.tool == "gated") {
    CallView call;
    call.identity.call_id = kCallId;
    call.state = CallProgress::kGated;
    call.outcome = "gated";
    call.approval = ApprovalView{"a1", "sha256:d", "/console/approvals/a1",
                                 std::chrono::seconds(1'700'000'900)};
    reply(std::move(call));
  } else if (request.tool == "denied") {
    CallView call;
    call.identity.call_id = kCallId;
    call.outcome = "denied";
    call.error = CallError{"policy.schema", "args do not match"};
    call.denials.push_back({.surface = "policy",
                            .operation = "call",
                            .target = "denied",
                            .rule = "input.schema",
                            .reason = "code is missing",
                            .fix = "send code"});
    reply(std::move(call));
  } else if (request.tool == "limited") {
    reply(Refusal{.kind = RefusalKind::kRateLimited,
                  .code = "limit.rate",
                  .message = "too many calls",
                  .retry_after = std::chrono::milliseconds(2500),
                  .call_id = kCallId});
  } else if (request.tool == "inflight") {
    reply(Refusal{.kind = RefusalKind::kInFlight,
                  .code = "idempotency.in_flight",
                  .message = "it is running"});
  } else if (request.tool == "mismatch") {
    reply(Refusal{.kind = RefusalKind::kUnprocessable,
                  .code = "idempotency.mismatch",
                  .message = "another request"});
  } else if (request.tool == "broken") {
    reply(
        Refusal{.kind = RefusalKind::kInternal, .code = "internal", .message = "something failed"});
  } else {
    reply(Missing("tool.unknown"));
  }
}

void FakeService::Finish() {
  for (const auto& reply : std::exchange(waiting_calls_, {})) {
    reply(Done(wait_output));
  }
}

void FakeService::GetCall(const Identity& who, const std::string& call_id, Reply<CallView> reply) {
  Note(who, "GetCall");
  if (call_id != kCallId) {
    reply(Missing("call.unknown"));
    return;
  }
  reply(Done("hello"));
}

void FakeService::GetReceipt(const Identity& who, const std::string&, Reply<std::string> reply) {
  Note(who, "GetReceipt");
  reply(std::string(R"({"schema":"coffer.receipt/1"})"));
}

void FakeService::CancelCall(const Identity& who, const std::string& call_id,
                             Reply<CallView> reply) {
  Note(who, "CancelCall");
  if (call_id != kCallId) {
    reply(Refusal{
        .kind = RefusalKind::kConflict, .code = "call.finished", .message = "it has ended"});
    return;
  }
  CallView call;
  call.identity.call_id = call_id;
  call.state = CallProgress::kRunning;
  reply(std::move(call));
}

bool FakeService::AnswerEvents(uint64_t after, const Reply<EventBatch>& reply) {
  EventBatch batch;
  for (const CallEvent& event : events_) {
    if (event.seq > after && event.seq >= first_event) {
      batch.events.push_back(event);
    }
  }
  batch.gap = after + 1 < first_event;
  batch.finished = events_ended_;
  if (batch.events.empty() && !events_ended_) {
    return false;
  }
  reply(std::move(batch));
  return true;
}

WaitHandle FakeService::WaitEvents(const Identity& who, const std::string& call_id, uint64_t after,
                                   size_t, Reply<EventBatch> reply) {
  Note(who, "WaitEvents");
  if (call_id != kCallId) {
    reply(Missing("call.unknown"));
    return nullptr;
  }
  if (AnswerEvents(after, reply)) {
    return nullptr;
  }
  const int id = next_waiter_++;
  waiters_[id] = {after, std::move(reply)};
  ++event_waits;
  return {nullptr, [this, id](void*) {
            --event_waits;
            waiters_.erase(id);
          }};
}

void FakeService::CheckWatcher(const Identity&, Watched, Reply<Nothing> reply) {
  ++watchers_checked;
  if (watcher_refused) {
    reply(*watcher_refused);
  } else {
    reply(Nothing{});
  }
}

void FakeService::WakeWaiters() {
  std::vector<int> ids;
  for (const auto& [id, waiter] : waiters_) {
    ids.push_back(id);
  }
  for (const int id : ids) {
    if (auto found = waiters_.find(id); found != waiters_.end()) {
      const Waiter waiter = std::move(found->second);
      waiters_.erase(found);
      AnswerEvents(waiter.after, waiter.reply);
    }
  }
}

void FakeService::AddEvent(CallEvent::Kind kind, std::string data) {
  events_.push_back({events_.size() + 1, kind, std::move(data)});
  WakeWaiters();
}

void FakeService::EndEvents() {
  events_ended_ = true;
  WakeWaiters();
}

void FakeService::CreateSession(const Identity& who, SessionRequest request,
                                Reply<SessionView> reply) {
  Note(who, "CreateSession");
  SessionView session = Session();
  session.label = request.label;
  session.max_calls = request.max_calls;
  reply(std::move(session));
}

void FakeService::ListSessions(const Identity& who, PageRequest page,
                               Reply<Page<SessionView>> reply) {
  Note(who, "ListSessions");
  reply(Page<SessionView>{{Session()}, page.cursor.empty() ? "c2" : ""});
}

void FakeService::GetSession(const Identity& who, const std::string& session_id,
                             Reply<SessionView> reply) {
  Note(who, "GetSession");
  if (session_id != kSessionId) {
    reply(Missing("session.unknown"));
    return;
  }
  SessionView session = Session();
  session.time_left = session_time_left;
  session.expires_at = session_expires_at.value_or(session.expires_at);
  reply(std::move(session));
}

void FakeService::EndSession(const Identity& who, const std::string&, Reply<SessionView> reply) {
  Note(who, "EndSession");
  SessionView session = Session();
  session.state = "ended";
  reply(std::move(session));
}

void FakeService::ExtendSession(const Identity& who, const std::string&,
                                std::chrono::seconds lifetime, Reply<SessionView> reply) {
  Note(who, "ExtendSession");
  SessionView session = Session();
  session.expires_at = session.created_at + Nanos(lifetime);
  reply(std::move(session));
}

void FakeService::ListProcesses(const Identity& who, const std::string&,
                                Reply<std::vector<ProcessView>> reply) {
  Note(who, "ListProcesses");
  reply(std::vector<ProcessView>{{.process_id = kCallId, .session_id = kSessionId, .ports = {80}}});
}

void FakeService::GetProcess(const Identity& who, const ProcessName& name,
                             Reply<ProcessView> reply) {
  Note(who, "GetProcess");
  if (name.process_id != kCallId) {
    reply(Refusal{.kind = RefusalKind::kNotFound, .code = "process.unknown", .message = "none"});
    return;
  }
  reply(ProcessView{.process_id = kCallId, .session_id = kSessionId});
}

void FakeService::ReadProcessLog(const Identity& who, const ProcessName&, LogRange range,
                                 Reply<ProcessLogView> reply) {
  Note(who, "ReadProcessLog");
  reply(ProcessLogView{range.offset, range.offset + log_text.size(), log_text, true});
}

void FakeService::SignalProcess(const Identity& who, const ProcessName&, std::optional<int>,
                                Reply<ProcessView> reply) {
  Note(who, "SignalProcess");
  reply(ProcessView{.process_id = kCallId, .session_id = kSessionId});
}

void FakeService::ListFiles(const Identity& who, const FileOwner&, const std::string&, PageRequest,
                            Reply<Page<FileView>> reply) {
  Note(who, "ListFiles");
  Page<FileView> page;
  for (const auto& [path, content] : files) {
    page.items.push_back({.path = path, .size = content.size()});
  }
  reply(std::move(page));
}

void FakeService::OpenUpload(const Identity& who, const FileOwner&, const std::string& path,
                             std::optional<uint64_t> size, Reply<std::shared_ptr<Upload>> reply) {
  Note(who, "OpenUpload");
  if (size.value_or(0) > quota) {
    reply(Refusal{
        .kind = RefusalKind::kTooLarge, .code = "quota.disk", .message = "the workspace is full"});
    return;
  }
  ReplyWhenAllowed([reply, upload = std::shared_ptr<Upload>(
                               std::make_shared<FakeUpload>(this, path))] { reply(upload); });
}

void FakeService::OpenDownload(const Identity& who, const FileOwner&, const std::string& path,
                               Reply<std::shared_ptr<Download>> reply) {
  Note(who, "OpenDownload");
  const auto found = files.find(path);
  if (found == files.end()) {
    reply(Missing("file.unknown"));
    return;
  }
  reply(std::shared_ptr<Download>(std::make_shared<FakeDownload>(path, found->second)));
}

void FakeService::RemoveFile(const Identity& who, const FileOwner&, const std::string& path,
                             Reply<Nothing> reply) {
  Note(who, "RemoveFile");
  if (files.erase(path) == 0) {
    reply(Missing("file.unknown"));
    return;
  }
  reply(Nothing{});
}

void FakeService::ListTools(const Identity& who, Reply<std::vector<ToolView>> reply) {
  Note(who, "ListTools");
  reply(std::vector<ToolView>{
      {.name = "echo", .version = "1.0.0", .summary = "Says it again.", .effect = "read-only"}});
}

void FakeService::GetTool(const Identity& who, const std::string& name, Reply<ToolView> reply) {
  Note(who, "GetTool");
  if (FindProcessTool(name)) {  // no manifest takes their place
    reply(Missing("tool.unknown"));
    return;
  }
  reply(ToolView{.name = name, .effect = "read-only", .input_schema_json = R"({"type":"object"})"});
}

void FakeService::ListToolDefinitions(const Identity& who,
                                      Reply<std::shared_ptr<const Json>> reply) {
  Note(who, "ListToolDefinitions");
  const auto tools =
      std::make_shared<const Json>(Json::array({{{"name", "echo"},
                                                 {"description", tool_description},
                                                 {"inputSchema", {{"type", "object"}}}}}));
  ReplyWhenAllowed([this, reply, tools] {
    wanted.push_back(reply.wanted());
    reply(tools);
  });
}

void FakeService::CreateKey(const Identity& who, KeyRequest request, Reply<NewKey> reply) {
  Note(who, "CreateKey");
  KeyView key = Key();
  key.role = request.role;
  reply(NewKey{std::move(key), "secret"});
}

void FakeService::ListKeys(const Identity& who, Reply<std::vector<KeyView>> reply) {
  Note(who, "ListKeys");
  reply(std::vector<KeyView>{Key()});
}

void FakeService::RevokeKey(const Identity& who, const std::string&, Revocation how,
                            Reply<KeyView> reply) {
  Note(who, how.keys == RevokedKeys::kAndMade ? "RevokeKey with-keys"
            : how.calls == RevokedCalls::kEnd ? "RevokeKey"
                                              : "RevokeKey keep-running");
  reply(Key());
}

void FakeService::ListAudit(const Identity& who, AuditQuery query, Reply<Page<AuditView>> reply) {
  Note(who, "ListAudit");
  AuditView call;
  call.identity.call_id = "01890000-0000-7000-8000-000000000001";
  call.identity.tenant = who.tenant;
  call.identity.tool = query.tool;
  call.state = "finished";
  reply(Page<AuditView>{{std::move(call)}, ""});
}

void FakeService::GetTranscript(const Identity& who, const std::string& call_id,
                                Reply<TranscriptView> reply) {
  Note(who, "GetTranscript");
  reply(TranscriptView{call_id, true,
                       R"({"command":["true"],"code":"","stdin":"","stdout":"","stderr":"",)"
                       R"("cut":[]})"});
}

void FakeService::GetObject(const Identity& who, const std::string& /*hash*/,
                            Reply<std::string> reply) {
  Note(who, "GetObject");
  reply(std::string(R"({"tool":{"name":"python"}})"));
}

void FakeService::GetCheckpoint(const Identity& who, Reply<CheckpointView> reply) {
  Note(who, "GetCheckpoint");
  reply(CheckpointView{"a note", "a key"});
}

void FakeService::ListSwitches(const Identity& who, Reply<std::vector<SwitchView>> reply) {
  Note(who, "ListSwitches");
  reply(std::vector<SwitchView>{});
}

void FakeService::SetSwitch(const Identity& who, const SwitchTarget& target,
                            const std::string& reason, Reply<SwitchView> reply) {
  Note(who, "SetSwitch");
  reply(SwitchView{target, who.tenant, reason, who.key_id, std::chrono::seconds(1'700'000'000)});
}

void FakeService::ListAccess(const Identity& who, Reply<std::vector<AccessView>> reply) {
  Note(who, "ListAccess");
  reply(std::vector<AccessView>{});
}

void FakeService::DecideAccess(const Identity& who, const std::string& access_id,
                               AccessGrant /*decision*/, Reply<AccessView> reply) {
  Note(who, "DecideAccess");
  AccessView view;
  view.id = access_id;
  view.tenant = who.tenant;
  reply(view);
}

void FakeService::ClearSwitch(const Identity& who, const SwitchTarget&, Reply<Nothing> reply) {
  Note(who, "ClearSwitch");
  reply(Nothing{});
}

void FakeService::GetMetrics(const Identity& who, Reply<std::string> reply) {
  Note(who, "GetMetrics");
  reply(std::string("# HELP fake_total Fakes.\n# TYPE fake_total counter\nfake_total 1\n"));
}

Readiness FakeService::GetReadiness() {
  return {ready, {{"store", ready, ready ? "" : "migrating"}}};
}

}  // namespace coffer::gateway
