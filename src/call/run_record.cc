// SPDX-License-Identifier: Apache-2.0
#include "call/run_record.h"

#include <nlohmann/json.hpp>

#include "base/hash.h"
#include "base/json.h"
#include "call/incidents.h"
#include "call/redact.h"
#include "call/run/summary.h"
#include "isolation/protected_paths.h"
#include "store/admission.h"

namespace coffer::call {

RunRecord::RunRecord(Recorder& recorder, std::string_view traceparent, Keeps keeps)
    : recorder_(recorder), keeps_(keeps) {
  TakeTrace(traceparent, asked_.identity);
  asked_.requested_at = recorder.store().Now();
}

Result<bool> RunRecord::Admit(const RunRequest& request, ToolReply& reply) {
  if (!request.session.empty() || !request.tools.empty()) {
    asked_.identity.agent = "cli";  // whose session it is, and whose calls it makes
    asked_.identity.session_id = request.session;
  }
  audit::Receipt receipt = asked_;
  given_ = WordsOf(request);
  envelope_ = policy::CanonicalForm(request.envelope);
  ran_.command = request.command;
  secrets_ = SecretValuesOf(Json(), request.envelope);
  DescribeRequest(request, receipt);
  store::AdmitRequest asked;
  asked.identity = receipt.identity;
  asked.requested_at = receipt.requested_at;
  TRY_ASSIGN(const store::Admission admission, store::AdmitCall(recorder_.store(), asked));
  if (admission.verdict == store::AdmitVerdict::kAdmitted) {
    asked_.identity.call_id = admission.call_id;
    return true;
  }
  if (admission.verdict == store::AdmitVerdict::kNoSession) {
    receipt.identity.session_id.clear();  // nothing goes under a name that is not there
    asked.identity = receipt.identity;
  }
  receipt.blast_radius = TakeOut(given_, std::move(receipt.blast_radius));
  receipt.outcome = reply.outcome = "denied";
  receipt.error_class = reply.error_class = admission.error_class;
  receipt.error_message = reply.error_message = admission.reason;
  receipt.finished_at = recorder_.store().Now();
  receipt.duration = receipt.finished_at - receipt.requested_at;
  receipt.denials.push_back(
      {"policy", "call", receipt.identity.tool, admission.error_class, admission.reason, "", 1});
  reply.denials = receipt.denials;
  TRY(recorder_.Refuse(asked, std::move(receipt), reply));
  return false;
}

Status RunRecord::Start(const audit::Receipt& receipt, const Prepared& prepared) {
  const std::string own[] = {recorder_.store().directory()};
  for (const isolation::OpenedMount& mount : prepared.mounts) {
    if (mount.workspace) {
      continue;  // a session's own directory, named by the store: it lies in the state directory
    }
    TRY(isolation::CheckShowsNone(mount.path, mount.access, own));
  }
  for (const isolation::Input& input : prepared.inputs) {
    if (!prepared.code_hash.empty() && HashOf(input.content) == prepared.code_hash) {
      ran_.code = input.content.substr(0, kTranscriptReads);
    }
  }
  if (before_start_) {
    Status ready = before_start_(asked_.identity.call_id);
    failed_ = !ready.ok();
    TRY(std::move(ready));
  }
  Status wrote = recorder_.Start(receipt, {"", envelope_});
  started_ = wrote.ok();
  failed_ = !wrote.ok();
  if (failed_) {
    // Ours, not the host's isolation: exit status 125, whatever it was.
    Error error = Internal("internal", wrote.error().message + "; nothing was run");
    error.hint = wrote.error().hint;
    return error;
  }
  return {};
}

size_t RunRecord::reads() const { return keeps_ == Keeps::kTranscript ? kTranscriptReads : 0; }

void RunRecord::Streams(std::string in, std::string out, std::string err) {
  ran_.stdin_text = std::move(in);
  ran_.stdout_text = std::move(out);
  ran_.stderr_text = std::move(err);
}

Status RunRecord::End(const RunOutcome& outcome, ToolReply& reply) {
  audit::Receipt receipt = outcome.receipt;
  receipt.incidents = IncidentsOf(receipt);
  // Not granted, or nothing ran: what the sentence names may be anything.
  if (!started_ || receipt.outcome == "denied" || receipt.started_at == Nanos(0)) {
    RedactRefusal(given_, receipt);
  }
  reply.call_id = receipt.identity.call_id;
  TakeOutcome(receipt, reply);
  if (keeps_ == Keeps::kTranscript && receipt.started_at != Nanos(0) &&
      receipt.outcome != "denied") {
    reply.transcript = FormatTranscript(ran_, secrets_);
  }
  const Ending ending = started_  ? Ending::kFinished
                        : failed_ ? Ending::kRefusedForNow
                                  : Ending::kRefused;
  return recorder_.End(ending, receipt, reply);
}

}  // namespace coffer::call
