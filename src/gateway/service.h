// SPDX-License-Identifier: Apache-2.0
//
// What the protocols (HTTP, later MCP and the console) need from the rest of Cofferdam: plain values and one interface.
//
// The gateway parses bytes and checks roles; the Service decides and acts. It gets an Identity that came from the
// channel (key, token, socket), and answers with that identity's tenant only, to an agent with its own calls only. An
// id of another is kNotFound, like one that does not exist (all_tenants sees more). The gateway never sees a path, a
// store or a process.
//
// Threads: every method is called on the loop's thread (net/loop.h) and must not block it; what takes longer than about
// a millisecond goes to another thread. A Reply (gateway/answer.h) is invoked at most once, on the loop's thread,
// possibly before the method returns; another thread hands over what its Prepare returned with Executor::Post. The
// client may be gone by then, and the Server too: a Reply stays safe to invoke. A reading whose client is gone need not
// be done, and its Reply not be invoked; what changes something is done all the same, and a call goes on.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "audit/receipt.h"
#include "base/clock.h"
#include "base/json.h"
#include "gateway/access_view.h"
#include "gateway/answer.h"
#include "gateway/call_events.h"
#include "gateway/identity.h"
#include "store/call_identity.h"

namespace coffer::gateway {

// ---- calls ----

// A call whose client can give it up before it knows the call's id.
struct CallWatch {
  std::atomic<bool> unwanted{false};  // set on the loop's thread: what has not begun does not begin
  // On the loop's thread, when the call runs and can be cancelled. Not called for one that is refused.
  std::function<void(const std::string& call_id)> started;
};

struct CallRequest {
  std::string tool;  // checked against the alphabet of names, not for existence
  std::string args_json =
      "{}";  // one JSON object: bounded depth and size, valid UTF-8, no duplicate keys
  std::optional<std::string> session_id;
  std::optional<std::string> parent_id;
  bool dry_run = false;
  std::optional<std::string> idempotency_key;  // 1 to 255 visible ASCII characters
  std::optional<std::string> traceparent;      // valid W3C trace context
  bool wait =
      true;  // false (Prefer: respond-async): reply as soon as the call is recorded and has an id
  bool without_network = false;  // "network": []
  std::string limits_json;       // an object: smaller limits than the manifest's; "": none
  std::string reason;            // what it is for, as the agent says (policy/reason.h); "": nothing
  bool background = false;       // a process of the session: it is never waited for
  std::vector<uint16_t> ports;   // on which the session's later calls reach it
  // Of a protocol whose ids are unique within a session: the key of a request that has none of its own. "": none
  std::string request_id;
  std::shared_ptr<CallWatch> watch;  // may be nothing
};

struct CallResult {
  std::string stdout_text;  // any bytes: what is not UTF-8 is replaced on the way out
  std::string stderr_text;
  std::optional<int> exit_code;
  std::optional<int> exit_signal;
  std::string structured_json;  // "" is null
  bool truncated = false;       // there was more output than the tool's limit lets through
};

struct CallError {
  std::string error_class;  // such as "limit.wall", "policy.schema"
  std::string message;
};

struct ApprovalView {
  std::string id;
  std::string digest;
  std::string url;
  Nanos expires_at{0};
};

enum class CallProgress { kQueued, kGated, kRunning, kFinished };

// What the caller may see of a call. A denied call is a CallView with outcome "denied", not a Refusal.
struct CallView {
  store::CallIdentity identity;  // POST shows the call's id; GET also tool, session and parent
  CallProgress state = CallProgress::kFinished;
  std::string
      outcome;  // success | error | denied | gated | terminated | unknown; "" while queued or running
  std::optional<CallResult> result;
  std::optional<CallError> error;
  std::vector<audit::Denial> denials;
  std::optional<audit::LogPosition> log;
  std::optional<ApprovalView> approval;  // when gated
  bool replayed = false;  // the stored result of an earlier request with this Idempotency-Key
  std::optional<int64_t> retry_after;  // seconds, of a denial that waiting helps against

  std::vector<audit::ExportedFile> exported;  // of a call that has just ended

  // Shown by GET only.
  bool dry_run = false;
  Nanos requested_at{0};
  Nanos finished_at{0};  // 0: not yet
};

// ---- sessions, files, tools ----

template <typename T>
struct Page {
  std::vector<T> items;
  std::string next;  // cursor of the following page; "" is the last
};

struct PageRequest {
  size_t limit = 100;  // 1 to 1000
  std::string cursor;  // as given out before; [A-Za-z0-9._-], at most 128 characters
};

struct SessionRequest {
  std::optional<std::chrono::seconds> lifetime;  // refused beyond what the service allows
  std::optional<uint64_t> max_calls;
  std::string label;
};

struct SessionView {
  std::string session_id;
  store::TenantId tenant = store::TenantId::None();
  std::string agent;
  std::string label;
  std::string state = "open";  // open | ending (its files are being removed) | ended
  Nanos created_at{0};
  Nanos expires_at{0};
  Nanos time_left{0};  // until it expires, by the clock that ends it; the host's may have been set
  Nanos ended_at{0};   // 0: not yet
  uint64_t calls = 0;
  std::optional<uint64_t> max_calls;
  uint64_t max_bytes = 0;  // of its files; 0: not bounded
  uint64_t max_files = 0;
  bool enforced = false;  // by the kernel; otherwise watched
};

// ---- background processes of sessions ----

struct ProcessName {
  std::string session_id;
  std::string process_id;  // the id of its call
};

struct ProcessView {
  std::string process_id;
  std::string session_id;
  std::string tool;
  std::string state = "running";  // running | ended
  std::vector<uint16_t> ports;
  Nanos started_at{0};
  Nanos ended_at{0};    // 0: not yet
  std::string outcome;  // as of a call; "" while it runs
  std::optional<int> exit_code;
  std::optional<int> exit_signal;
  std::string error_class;
  std::string error_message;
};

struct LogRange {
  uint64_t offset = 0;
  size_t limit = 65536;
  std::chrono::seconds follow{0};  // how long to wait if nothing is there yet
};

// What the process printed, stdout and stderr in the order in which they came.
struct ProcessLogView {
  uint64_t offset = 0;
  uint64_t next = 0;   // where to go on
  std::string text;    // any bytes
  bool ended = false;  // nothing comes after `next`
};

// The owner of files: the workspace of a session, or the exports of a call.
struct FileOwner {
  enum class Kind { kSession, kCall };
  Kind kind = Kind::kSession;
  std::string id;
};

// `path` is relative, normal ("a/b": no empty, "." or ".." part), at most 1024 bytes. A file that a tool made may have
// any name; one that is uploaded has valid UTF-8 without control characters. Links never lead out of the workspace.
struct FileView {
  std::string path;
  uint64_t size = 0;
  std::string sha256;  // "sha256:..."; "" if not known
  Nanos modified_at{0};
};

// A file being written. Destroyed without Finish: nothing of it remains.
class Upload {
 public:
  virtual ~Upload() = default;
  // One at a time: the next Write or Finish comes after the reply. The quota is checked here.
  virtual void Write(std::string bytes, Reply<Nothing> reply) = 0;
  virtual void Finish(Reply<FileView> reply) = 0;
};

// A file being read; its size does not change while it is open.
class Download {
 public:
  virtual ~Download() = default;
  virtual const FileView& file() const = 0;
  // At most `max` bytes; "" is the end. One at a time.
  virtual void Read(size_t max, Reply<std::string> reply) = 0;
};

struct ToolView {
  std::string name;
  std::string version;
  std::string owner;
  std::string summary;
  std::string effect;
  std::string state =
      "ready";  // ready | disabled | stale (the last good version of a file that has mistakes)
  std::string problem;  // why it is not ready: "x.toml:3:7: ..." without the directory
  std::string manifest_hash;
  // Shown by GET /v1/tools/{name} only.
  std::string blast_radius;       // the sentence
  std::string blast_radius_json;  // "" is null
  std::string input_schema_json;  // "" is null
};

// ---- operators ----

struct KeyRequest {
  Role role = Role::kAgent;
  std::string agent;
  std::string label;
  std::optional<std::chrono::seconds> expires_in;
};

// Whether calls that a revoked key has made go on or are killed.
enum class RevokedCalls { kEnd, kKeepRunning };
// Which keys are revoked: the one that is named, or also those that it has made, and those that they have made.
enum class RevokedKeys { kNamed, kAndMade };
struct Revocation {
  RevokedCalls calls = RevokedCalls::kEnd;
  RevokedKeys keys = RevokedKeys::kNamed;
};

struct KeyView {
  std::string key_id;
  Role role = Role::kAgent;
  store::TenantId tenant = store::TenantId::None();
  std::string agent;
  std::string label;
  std::string made_by;  // the key, token or uid that asked for it; "": made before this was kept
  bool all_tenants = false;
  Nanos created_at{0};
  Nanos expires_at{0};  // 0: never
  Nanos revoked_at{0};  // 0: not
};

struct NewKey {
  KeyView view;
  std::string secret;  // shown once
};

// A kill switch: calls of the tool, agent, session or tenant that it names are refused, and running ones are killed.
// kBreaker is a pause of the circuit breaker, "TOOL:AGENT", which refuses new calls only. It can be lifted, not set.
struct SwitchTarget {
  enum class Scope { kTool, kAgent, kSession, kTenant, kBreaker };
  Scope scope = Scope::kTool;
  std::string name;
};

struct SwitchView {
  SwitchTarget target;
  std::optional<store::TenantId> tenant;  // whose; nothing: it stops all of them
  std::string reason;
  std::string set_by;  // key id
  Nanos set_at{0};
  Nanos until{0};  // 0: until it is lifted
};

// ---- the record ----

// Empty fields do not filter.
struct AuditQuery {
  std::string tenant;  // only with all_tenants, or one's own
  std::string tool;
  std::string agent;
  std::string session_id;
  std::string trace_id;
  std::string outcome;
  std::string error_class;
  std::string approval;
  bool denied = false;
  std::string since;  // base/moment.h
  std::string until;
  PageRequest page;
};

struct AuditView {
  store::CallIdentity identity;
  std::string state;
  std::string outcome;  // "" while it has none
  std::string error_class;
  uint64_t denials = 0;
  std::string approval;
  Nanos requested_at{0};
  Nanos finished_at{0};               // 0: not yet
  std::optional<uint64_t> log_index;  // of its receipt
  // "good": the view equals the seal. "open": the call has not ended and has no seal. "broken": the store
  // differs from the seal, and only the call's existence is shown.
  std::string seal = "open";
};

// What a call ran and what it printed, as the record keeps it.
struct TranscriptView {
  std::string call_id;
  bool kept =
      false;  // false: the tool or the tenant keeps hashes only, nothing ran, or it was forgotten
  std::string transcript_json;  // "" is null
};

struct CheckpointView {
  std::string note;  // a signed note
  std::string key;   // the public key, as text
};

struct ReadinessCheck {
  std::string name;  // "store", "warden"
  bool ok = false;
  std::string detail;  // no host path
};

struct Readiness {
  bool ready = false;
  std::vector<ReadinessCheck> checks;
};

// ---- the interface ----

// Ends a wait when it is dropped: the reply that belongs to it is then never invoked.
using WaitHandle = std::shared_ptr<void>;

class Service {
 public:
  virtual ~Service() = default;

  // Why no new work of the asker is taken now (memory is past its budget), with a time to come
  // back. Cheap: asked for each request, before its tenant is known and again when it is.
  virtual std::optional<Refusal> CheckRoom(const Asker& /*asker*/) { return std::nullopt; }
  // Memory that a body takes until the handle is dropped: the asker's key's and tenant's. Refused if
  // one of them has its share. From any thread.
  virtual Answer<std::shared_ptr<void>> Hold(const Asker& /*asker*/, size_t /*bytes*/) {
    return std::shared_ptr<void>(std::make_shared<int>());
  }
  // The same for an answer, which is there already. From any thread.
  virtual std::shared_ptr<void> HoldAnyway(const Asker& /*asker*/, size_t /*bytes*/) {
    return std::make_shared<int>();
  }
  // Runs what takes long (making or parsing a large body) on another thread, in the turn of the asker's tenant. False
  // if the tenant has its share of work waiting; then it never runs. Here: at once.
  // NOLINTNEXTLINE(performance-unnecessary-value-param): the daemon keeps it
  [[nodiscard]] virtual bool Offload(const Asker& /*asker*/, std::function<void()> work) {
    work();
    return true;
  }

  // The same for one step of an answer that was begun: never refused. One at a time for each request.
  // NOLINTNEXTLINE(performance-unnecessary-value-param): the daemon keeps it
  virtual void Continue(const Asker& /*asker*/, std::function<void()> work) { work(); }

  // Once per request, before its body is read. kUnauthenticated without a valid credential.
  virtual void Authenticate(const Credential& credential, Reply<Identity> reply) = 0;

  virtual void Submit(const Identity& who, CallRequest request, Reply<CallView> reply) = 0;
  virtual void GetCall(const Identity& who, const std::string& call_id, Reply<CallView> reply) = 0;
  // The receipt as one JSON document. kConflict while the call goes on.
  virtual void GetReceipt(const Identity& who, const std::string& call_id,
                          Reply<std::string> reply) = 0;
  // The view after the cancellation was accepted; kConflict if the call had finished.
  virtual void CancelCall(const Identity& who, const std::string& call_id,
                          Reply<CallView> reply) = 0;
  // Replies when there is an event with seq > after, or nothing will follow; at most about max_bytes of them (one
  // event at least). The gateway asks again after it has written them, so a slow client costs the service nothing.
  [[nodiscard]] virtual WaitHandle WaitEvents(const Identity& who, const std::string& call_id,
                                              uint64_t after, size_t max_bytes,
                                              Reply<EventBatch> reply) = 0;
  // Whether the identity may still watch a call that runs, or get the last words of one that has
  // ended. An answer that goes on asks again and again: its key is revoked or expires, or a switch
  // stops its agent, long after the request was let in. The refusal says which.
  virtual void CheckWatcher(const Identity& who, Watched what, Reply<Nothing> reply) = 0;

  virtual void CreateSession(const Identity& who, SessionRequest request,
                             Reply<SessionView> reply) = 0;
  virtual void ListSessions(const Identity& who, PageRequest page,
                            Reply<Page<SessionView>> reply) = 0;
  virtual void GetSession(const Identity& who, const std::string& session_id,
                          Reply<SessionView> reply) = 0;
  virtual void EndSession(const Identity& who, const std::string& session_id,
                          Reply<SessionView> reply) = 0;

  // Its end moves to that long from now, never beyond the longest session and never nearer. kRefused with the bound.
  virtual void ExtendSession(const Identity& who, const std::string& session_id,
                             std::chrono::seconds lifetime, Reply<SessionView> reply) = 0;

  // Processes are started by Submit. Those that have ended are listed until their session ends.
  virtual void ListProcesses(const Identity& who, const std::string& session_id,
                             Reply<std::vector<ProcessView>> reply) = 0;
  virtual void GetProcess(const Identity& who, const ProcessName& name,
                          Reply<ProcessView> reply) = 0;
  virtual void ReadProcessLog(const Identity& who, const ProcessName& name, LogRange range,
                              Reply<ProcessLogView> reply) = 0;
  // The view as it was before the signal; without one it is killed. kConflict if it has ended.
  virtual void SignalProcess(const Identity& who, const ProcessName& name,
                             std::optional<int> signal, Reply<ProcessView> reply) = 0;

  // Only paths that begin with `prefix`.
  virtual void ListFiles(const Identity& who, const FileOwner& owner, const std::string& prefix,
                         PageRequest page, Reply<Page<FileView>> reply) = 0;
  // `size` if the client said how much it will send. Only sessions have files that can be written.
  virtual void OpenUpload(const Identity& who, const FileOwner& owner, const std::string& path,
                          std::optional<uint64_t> size, Reply<std::shared_ptr<Upload>> reply) = 0;
  virtual void OpenDownload(const Identity& who, const FileOwner& owner, const std::string& path,
                            Reply<std::shared_ptr<Download>> reply) = 0;
  virtual void RemoveFile(const Identity& who, const FileOwner& owner, const std::string& path,
                          Reply<Nothing> reply) = 0;

  virtual void ListTools(const Identity& who, Reply<std::vector<ToolView>> reply) = 0;
  virtual void GetTool(const Identity& who, const std::string& name, Reply<ToolView> reply) = 0;
  // Those that can be called now, as MCP describes tools (gateway/mcp/tool_json.h): a list.
  virtual void ListToolDefinitions(const Identity& who,
                                   Reply<std::shared_ptr<const Json>> reply) = 0;

  // Of the identity's own tenant.
  virtual void CreateKey(const Identity& who, KeyRequest request, Reply<NewKey> reply) = 0;
  virtual void ListKeys(const Identity& who, Reply<std::vector<KeyView>> reply) = 0;
  virtual void RevokeKey(const Identity& who, const std::string& key_id, Revocation how,
                         Reply<KeyView> reply) = 0;

  // Of calls that run now. The decision answers with the request that it was about.
  virtual void ListAccess(const Identity& who, Reply<std::vector<AccessView>> reply) = 0;
  virtual void DecideAccess(const Identity& who, const std::string& access_id, AccessGrant decision,
                            Reply<AccessView> reply) = 0;

  virtual void ListSwitches(const Identity& who, Reply<std::vector<SwitchView>> reply) = 0;
  virtual void SetSwitch(const Identity& who, const SwitchTarget& target, const std::string& reason,
                         Reply<SwitchView> reply) = 0;
  virtual void ClearSwitch(const Identity& who, const SwitchTarget& target,
                           Reply<Nothing> reply) = 0;

  // Prometheus' text format: the identity's tenant, or the sums over all for one who sees them.
  virtual void GetMetrics(const Identity& who, Reply<std::string> reply) = 0;

  virtual void ListAudit(const Identity& who, AuditQuery query, Reply<Page<AuditView>> reply) = 0;
  virtual void GetCheckpoint(const Identity& who, Reply<CheckpointView> reply) = 0;
  virtual void GetTranscript(const Identity& who, const std::string& call_id,
                             Reply<TranscriptView> reply) = 0;
  // A manifest or envelope in canonical form, by the hash that receipts name. JSON.
  virtual void GetObject(const Identity& who, const std::string& hash,
                         Reply<std::string> reply) = 0;

  // Cheap: probes ask often, without a credential.
  virtual Readiness GetReadiness() = 0;
};

}  // namespace coffer::gateway
