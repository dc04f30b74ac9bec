// SPDX-License-Identifier: Apache-2.0
#include "call/ladder.h"

#include <nlohmann/json.hpp>

#include "base/exit_codes.h"
#include "base/json.h"
#include "call/asked.h"
#include "call/ended_receipt.h"
#include "call/refusals.h"
#include "call/transcript.h"
#include "store/tenant.h"

namespace coffer::call {

const Ladder::Rung Ladder::kRungs[] = {
    // evaluate: what does not fit takes nothing from the rates of calls
    &Ladder::Understand,     // one JSON object, a tool that exists, a key where one is needed
    &Ladder::FindWorkspace,  // the session's
    &Ladder::EvaluateArgs,   // against the schema; the envelope and the blast radius
    // admit
    &Ladder::CheckHost,  // the log can be written, the disk and the host have room
    &Ladder::Admit,      // switches, repetition, session, parent, retries, budgets, rates
    &Ladder::Decide,     // what the evaluation said, and no more than a parent call has
    &Ladder::Rehearse,   // a dry run ends here
    // scan, gate: no surface yet
    // record
    &Ladder::Record,  // nothing happens that is not on disk before
                      // lease: no surface yet
};

std::variant<ReadyCall, ToolReply> Ladder::Climb(const ToolRequest& request) {
  Asked asked = Describe(request);
  for (const Rung rung : kRungs) {
    if (std::optional<ToolReply> answer = (this->*rung)(asked)) {
      return std::move(*answer);
    }
  }
  return std::move(asked.call);
}

// launch. Watch is the launcher's and the collector's (call/run/supervise.h, call/warden/collect.h).
std::variant<RunChannels, ToolReply> Ladder::Launch(ReadyCall& call, Launcher& launcher) {
  const Result<std::optional<store::Tenant>> tenant =
      store::FindTenant(store_, call.request.identity.tenant);
  if (!tenant.ok() || !*tenant) {
    return DescendUnlaunched(
        call, tenant.ok() ? Internal("internal", "the call has no tenant") : tenant.error());
  }
  call.run.tenant = (*tenant)->number;
  Result<RunChannels> channels = launcher.Launch(call.call_id(), call.run, call.stdin_text);
  if (!channels.ok()) {
    return DescendUnlaunched(call, channels.error());
  }
  return std::move(channels).value();
}

ToolReply Ladder::Descend(const ReadyCall& call, Collected collected) {
  {
    const std::lock_guard lock(mutex_);
    // From here on no call can name it as its parent.
    running_.erase(call.call_id());
  }
  ToolReply reply;
  reply.call_id = call.call_id();
  reply.transcript = TranscriptOf(call, collected);
  reply.stdout_text = std::move(collected.stdout_text);
  reply.stderr_text = std::move(collected.stderr_text);

  // inspect: no surface yet

  // settle
  audit::Receipt receipt;
  Ending ending = Ending::kFinished;
  if (collected.report && !CheckExports(*collected.report).ok()) {
    // A runner that reports files which did not come is not believed in anything: its end counts as not seen.
    collected.report.reset();
  }
  if (collected.report) {
    receipt = EndedReceipt(call.receipt, std::move(collected.report->receipt), store_.Now());
    reply.exports = std::move(collected.report->exports);
    reply.hint = collected.report->error ? collected.report->error->hint : "";
    // The files of a session that ended are removed while its calls are killed, and a watch of the
    // disk may see that first.
    const bool by_itself = !receipt.error_class.empty() && receipt.error_class != "limit.disk";
    if (collected.stopped && receipt.outcome == "terminated" && !by_itself) {
      receipt.error_class = collected.stopped->code;
      receipt.error_message = collected.stopped->message;
    }
  } else {
    // It may have run, wholly or in part: that is not known, and it is never run again on its own.
    ending = Ending::kLost;
    receipt = LostReceipt(call.receipt, store_.Now());
    reply.refusal = ToolRefusal::kFailed;
    if (collected.stopped) {  // killed before its runner could report
      receipt.error_class = collected.stopped->code;
      receipt.error_message = collected.stopped->message + "; " + receipt.error_message;
    }
  }
  TakeOutcome(receipt, reply);
  if (collected.report && collected.report->error) {
    SayToAgent(HostWordsOf(call.run), Mentions::kAny, reply);
  }

  // seal
  if (const Status wrote = recorder_.End(ending, receipt, reply); !wrote.ok()) {
    // It ran; that its end cannot be written must not look like success.
    ToolReply failed = FailedReply(wrote.error());
    failed.call_id = call.call_id();
    failed.admitted = true;
    failed.outcome = "unknown";
    failed.receipt = reply.receipt;
    return failed;
  }
  return reply;
}

std::string Ladder::TranscriptOf(const ReadyCall& call, const Collected& collected) const {
  // Without a report it may have run; a refusal says nothing of what it refuses.
  const bool ran = !collected.report || (collected.report->receipt.started_at != Nanos(0) &&
                                         collected.report->receipt.outcome != "denied");
  if (!ran || call.tool->manifest.tool.record == policy::RecordKind::kHashes ||
      (options_.keeps_transcripts && !options_.keeps_transcripts(call.request.identity.tenant))) {
    return {};
  }
  const Result<Json> args = ParseJson(call.request.args_json);
  Transcript text;
  text.command = call.run.command;
  text.stdin_text = call.stdin_text;
  text.stdout_text = collected.stdout_text;
  text.stderr_text = collected.stderr_text;
  return FormatTranscript(text, SecretValuesOf(args.ok() ? *args : Json(), call.run.envelope));
}

ToolReply Ladder::DescendUnlaunched(const ReadyCall& call, const Error& error) {
  audit::Receipt receipt;
  receipt.outcome = error.kind == ErrorKind::kRefused ? "denied" : "error";
  receipt.error_class = error.code;
  receipt.error_message = error.message;
  receipt.finished_at = store_.Now();
  Collected collected;
  collected.report = RunReport{kExitFailed, error, std::move(receipt), {}};
  ToolReply reply = Descend(call, std::move(collected));
  reply.refusal = ToolRefusal::kFailed;
  return reply;
}

}  // namespace coffer::call
