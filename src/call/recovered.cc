// SPDX-License-Identifier: Apache-2.0
#include "call/recovered.h"

#include "audit/receipt.h"
#include "store/call.h"

namespace coffer::call {
namespace {

audit::Receipt ReceiptOf(const store::Call& call) {
  audit::Receipt receipt;
  receipt.call_id = call.id;
  receipt.parent_id = call.parent_id;
  receipt.session_id = call.session_id;
  receipt.tenant = call.tenant.name();
  receipt.agent = call.agent;
  receipt.user = call.user;
  receipt.tool = call.tool;
  receipt.tool_version = call.tool_version;
  receipt.manifest_hash = call.manifest_hash;
  receipt.envelope_id = call.envelope_id;
  receipt.effect = call.effect.empty() ? receipt.effect : call.effect;
  receipt.args_hash = call.args_hash;
  receipt.requested_at = call.requested_at;
  receipt.started_at = call.started_at.value_or(Nanos(0));
  receipt.finished_at = call.finished_at.value_or(call.requested_at);
  receipt.duration = receipt.finished_at - receipt.requested_at;
  receipt.outcome = store::OutcomeName(call.outcome.value_or(store::Outcome::kUnknown));
  receipt.error_class = call.error_class.empty() ? "internal" : call.error_class;
  receipt.error_message = call.error_message;
  return receipt;
}

}  // namespace

Status SettleRecovered(store::Store& store, std::span<const store::RecoveredCall> calls) {
  for (const store::RecoveredCall& left : calls) {
    // Refused if another process was faster; then there is one.
    (void)store::AddReceipt(store, left.call.tenant, left.call.id,
                            audit::FormatReceipt(ReceiptOf(left.call)));
    TRY(store::FinishCleanup(store, left.call.tenant, left.call.id));
  }
  return {};
}

}  // namespace coffer::call
