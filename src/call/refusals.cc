// SPDX-License-Identifier: Apache-2.0
#include "call/refusals.h"

#include <utility>

#include "call/agent_words.h"

namespace coffer::call {
namespace {

ToolRefusal RefusalOf(store::AdmitVerdict verdict) {
  switch (verdict) {
    case store::AdmitVerdict::kInFlight:
      return ToolRefusal::kInFlight;
    case store::AdmitVerdict::kKeyConflict:
      return ToolRefusal::kKeyConflict;
    case store::AdmitVerdict::kNoSession:
    case store::AdmitVerdict::kNoParent:
      return ToolRefusal::kNotFound;
    case store::AdmitVerdict::kRetryTooSoon:
    case store::AdmitVerdict::kBudgetSpent:
    case store::AdmitVerdict::kRateLimited:
      return ToolRefusal::kRateLimited;
    default:
      return ToolRefusal::kDenied;
  }
}

}  // namespace

ToolReply ReplyOf(ToolRefusal refusal, const Error& error) {
  ToolReply reply;
  reply.refusal = refusal;
  reply.outcome = refusal == ToolRefusal::kFailed ? "error" : "denied";
  reply.error_class = error.code;
  reply.error_message = error.message;
  reply.hint = error.hint;
  return reply;
}

ToolReply FailedReply(const Error& error) {
  ToolReply reply = ReplyOf(ToolRefusal::kFailed, error);
  const bool record = error.code.starts_with("store.") || error.code.starts_with("audit.");
  reply.error_class = record ? kRecordUnavailable : "internal";
  SayToAgent({}, Mentions::kAny, reply);
  return reply;
}

ToolReply ReplyOf(const store::Admission& admission) {
  ToolReply reply =
      ReplyOf(RefusalOf(admission.verdict), Refused(admission.error_class, admission.reason));
  if (admission.retry_after.count() > 0) {
    reply.retry_after_seconds = admission.RetryAfterSeconds();
  }
  return reply;
}

void FillRefusal(const Error& error, Nanos now, const std::string& target, audit::Receipt& receipt,
                 ToolReply& reply) {
  receipt.outcome = reply.outcome;
  receipt.error_class = reply.error_class;
  receipt.error_message = error.message;
  receipt.finished_at = now;
  receipt.duration = receipt.finished_at - receipt.requested_at;
  if (error.kind == ErrorKind::kRefused) {
    audit::Denial denial;
    denial.surface = "policy";
    denial.operation = "call";
    denial.target = target;
    denial.rule = error.code;
    denial.reason = error.message;
    denial.fix = error.hint;
    receipt.denials.push_back(denial);
    reply.denials.push_back(std::move(denial));
  }
}

}  // namespace coffer::call
