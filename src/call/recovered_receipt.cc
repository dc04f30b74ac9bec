// SPDX-License-Identifier: Apache-2.0
#include "call/recovered_receipt.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "store/recovery.h"

namespace coffer::call {
namespace {

std::string TextIn(const Json& record, const char* name) {
  const Json value = record.value(name, Json());
  return value.is_string() ? value.get<std::string>() : "";
}

// The call's end in the log, written by the process that ran it: the store never got it. A receipt
// of an earlier recovery is none.
struct LoggedEnd {
  uint64_t seq = 0;
  Nanos at{0};
  std::string outcome;
  std::string error_class;
};
std::optional<LoggedEnd> LoggedEndOf(const Json& record) {
  const Json seq = record.value("seq", Json());
  const Json at = record.value("at", Json());
  if (record.value("recovered", Json()) == Json(true) || !seq.is_number_unsigned() ||
      !at.is_number_integer()) {
    return std::nullopt;
  }
  return LoggedEnd{seq.get<uint64_t>(), Nanos(at.get<int64_t>()), TextIn(record, "outcome"),
                   TextIn(record, "class")};
}

// As they were written when it started.
Result<std::vector<std::string>> RecordedArgs(store::Store& store, const store::Call& call) {
  std::vector<std::string> words;
  TRY_ASSIGN(const std::optional<std::string> text,
             store::FindArgs(store, call.identity.tenant, call.identity.call_id));
  const Result<Json> list = ParseJson(text.value_or("[]"));
  if (list.ok() && list->is_array()) {
    for (const Json& word : *list) {
      words.push_back(word.is_string() ? word.get<std::string>() : PrintJson(word));
    }
  }
  return words;
}

void FillRan(const store::Call& call, const std::string& decision,
             const std::optional<LoggedEnd>& end, audit::Receipt& receipt) {
  receipt.tool_version = call.tool_version;
  receipt.manifest_hash = call.manifest_hash;
  receipt.envelope_id = call.envelope_id;
  receipt.effect = call.effect.empty() ? receipt.effect : call.effect;
  receipt.started_at = call.started_at.value_or(Nanos(0));
  if (const Result<Json> decided = ParseJson(decision); decided.ok() && decided->is_object()) {
    receipt.args_hash = TextIn(*decided, "args_hash");
  }
  receipt.outcome = "unknown";
  receipt.error_class = "internal";
  receipt.error_message =
      end ? fmt::format(
                "coffer was killed when the end of the call was in the log (record {}: {}) "
                "and not yet in the store; what it printed and used is lost",
                end->seq, end->outcome + (end->error_class.empty() ? "" : ", " + end->error_class))
          : store::kKilledWhileRunning;
}

void FillRefused(bool only_store, const std::optional<LoggedEnd>& end, audit::Receipt& receipt) {
  receipt.identity.reason.clear();
  if (end) {
    receipt.outcome = end->outcome;
    receipt.error_class = end->error_class;
    receipt.error_message = fmt::format(
        "coffer was killed when this refusal was in the log (record {}) and not yet in the store; "
        "its words are lost",
        end->seq);
    return;
  }
  receipt.outcome = "error";
  receipt.error_class = "internal";
  receipt.error_message = store::kKilledBefore;
  if (only_store) {
    receipt.error_message += "; who asked for what is known from the store alone";
  }
}

}  // namespace

Result<RecoveredReceipt> RecoverReceipt(store::Store& store, const store::Call& call,
                                        const audit::CallRecords& before) {
  RecoveredReceipt recovered;
  recovered.ran = call.started_at.has_value();
  std::optional<LoggedEnd> end;
  if (const Result<Json> record = ParseJson(before.receipt); record.ok() && record->is_object()) {
    recovered.ran = record->value("ran", Json()) == Json(true);
    end = LoggedEndOf(*record);
  }
  audit::Receipt& receipt = recovered.receipt;
  receipt.identity = call.identity;
  receipt.requested_at = call.requested_at;
  receipt.finished_at = end ? end->at : call.finished_at.value_or(call.requested_at);
  receipt.duration = receipt.finished_at - receipt.requested_at;
  if (recovered.ran) {
    FillRan(call, before.decision, end, receipt);
    TRY_ASSIGN(receipt.args_redacted, RecordedArgs(store, call));
  } else {
    FillRefused(before.decision.empty(), end, receipt);
  }
  return recovered;
}

}  // namespace coffer::call
