// SPDX-License-Identifier: Apache-2.0
#include "cli/recorded_run.h"

#include <stdlib.h>

#include "base/exit_codes.h"
#include "base/print.h"
#include "call/config_file.h"
#include "call/run/run_call.h"
#include "call/run_record.h"
#include "call/workspace_room.h"
#include "cli/forget_old.h"
#include "cli/local_sessions.h"
#include "cli/session_forwards.h"
#include "cli/state.h"
#include "cli/tools_process.h"
#include "cli/verb_run.h"
#include "isolation/host_path.h"

namespace coffer::cli {
namespace {

// What cannot be recorded does not run.
int NotRecorded(Error error) {
  error.message += "; nothing was run";
  PrintError(error);
  return error.kind == ErrorKind::kRefused ? kExitRefused : kExitFailed;
}

Result<State> OpenState(const std::string& given) {
  TRY_ASSIGN(const std::string directory, isolation::CleanPath(given));
  return State::OpenRecord(directory);
}

// The operator's coffer.toml, if there is one: what the record keeps, and how long.
Result<call::FileConfig> LoadConfig() {
  const std::string usual = call::UsualConfigDir();
  if (usual.empty()) {
    return call::FileConfig();
  }
  TRY_ASSIGN(const std::string file, isolation::CleanPath(usual + "/coffer.toml"));
  return call::LoadConfigFile(file, /*may_be_missing=*/true);
}

// The session's directory becomes /workspace, and what it may still hold bounds the call.
Result<std::optional<LocalSessions::Held>> TakeSession(State& state, call::RunRequest& request) {
  if (request.session.empty()) {
    return std::optional<LocalSessions::Held>();
  }
  if (request.envelope.level == policy::Level::kProcess) {
    return Refused("policy.session", "a session needs mounts, which the process level has not",
                   "leave out --level process");
  }
  // Never the process level instead, where /workspace is a directory that ends with the call.
  request.envelope.level = policy::Level::kContainer;
  TRY_ASSIGN(LocalSessions sessions, LocalSessions::Open(state));
  TRY(sessions.Sweep());
  TRY_ASSIGN(LocalSessions::Held held, sessions.Hold(request.session));
  request.envelope.workspace = held.workspace;
  request.envelope.workspace_access = policy::Access::kWrite;
  TRY(call::NarrowToWorkspace(held.workspace, held.session, request.envelope.limits));
  TRY_ASSIGN(held.ports, ForwardSessionPorts(state.directory(), request.session, request));
  return std::optional<LocalSessions::Held>(std::move(held));
}

Status WriteReceipt(std::optional<audit::ReceiptFile>& receipt, const std::string& text) {
  return receipt ? receipt->Write(text) : Status();
}

}  // namespace

int RecordedRun(call::RunRequest& request, std::optional<audit::ReceiptFile> receipt,
                RunObserver* observer) {
  Result<State> state = OpenState(request.state);
  if (!state.ok()) {
    return NotRecorded(std::move(state.error()));
  }
  // Its files stay locked until the call is over.
  Result<std::optional<LocalSessions::Held>> session = TakeSession(*state, request);
  if (!session.ok()) {
    return NotRecorded(std::move(session.error()));
  }
  const Result<call::FileConfig> config = LoadConfig();
  if (!config.ok()) {
    return NotRecorded(config.error());
  }
  const call::TenantRules& rules = config->RulesOf(store::TenantId::Local());
  const char* const trace = ::getenv("TRACEPARENT");
  call::RunRecord record(state->recorder(), trace == nullptr ? "" : trace,
                         rules.keeps_transcripts ? call::RunRecord::Keeps::kTranscript
                                                 : call::RunRecord::Keeps::kHashes);
  call::ToolReply reply;
  Result<bool> admitted = record.Admit(request, reply);
  if (!admitted.ok()) {
    return NotRecorded(std::move(admitted.error()));
  }
  if (!*admitted) {
    PrintError(Refused(reply.error_class, reply.error_message));
    if (const Status wrote = WriteReceipt(receipt, reply.receipt); !wrote.ok()) {
      PrintError(wrote.error());
    }
    return kExitRefused;
  }
  request.record = &record;
  if (observer != nullptr) {
    record.Observe([observer](const std::string& id) { return observer->Admitted(id); },
                   [observer] { observer->Launched(); });
  }
  std::optional<ToolsProcess> tools;
  if (!request.tools.empty()) {
    request.tools_server = &tools.emplace(
        request, record.asked().identity.call_id,
        ToolsPlace{.state = request.state, .manifests = request.tool_dirs, .config = {}});
  }
  call::RunOutcome outcome = call::RunCall(request);
  if (tools) {
    (void)tools->Finish();  // of a run that failed: its calls are sealed before it all the same
  }
  PrintOutcome(request, outcome);
  if (observer != nullptr) {
    observer->Ended(outcome);
  }
  SayCancelled(outcome);
  const Status sealed = record.End(outcome, reply);
  if (!sealed.ok() && outcome.exit_status != kExitFailed) {
    PrintError(Error{ErrorKind::kHost, "internal",
                     "it ran, and its end could not be recorded: " + sealed.error().message,
                     sealed.error().hint, 0});
  }
  // Without a seal if it could not get one: it still says what happened.
  const Status wrote = WriteReceipt(
      receipt, reply.receipt.empty() ? audit::FormatReceipt(outcome.receipt) : reply.receipt);
  if (!wrote.ok()) {
    PrintError(wrote.error());
  }
  ForgetOld(*state, store::TenantId::Local(), rules.retention);
  return sealed.ok() && wrote.ok() ? outcome.exit_status : kExitFailed;
}

}  // namespace coffer::cli
