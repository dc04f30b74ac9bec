// SPDX-License-Identifier: Apache-2.0
#include "audit/sealed_call.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "audit/canonical_fields.h"
#include "audit/seal.h"
#include "base/hash.h"
#include "base/json.h"

namespace coffer::audit {
namespace {

template <typename Number>
bool SaysNumber(std::string_view json, const std::optional<Number>& value) {
  return json == (value ? std::to_string(*value) : "null");
}

bool SaysTime(std::string_view json, const std::optional<Nanos>& value) {
  return value ? Says(json, FormatTime(*value)) : json == "null";
}

std::string_view StateOf(bool ran, std::string_view outcome) {
  return !ran ? "refused" : outcome == "\"unknown\"" ? "unknown" : "finished";
}

// The log's record of a sealed receipt, out of the receipt itself: VerifyReceipt has found it good.
struct Place {
  bool ran = false;
  LogPosition position;
};
std::optional<Place> PlaceOf(std::string_view receipt) {
  const Result<Json> document = ParseJson(receipt);
  if (!document.ok()) {
    return std::nullopt;
  }
  const Json log = document->value("log", Json::object());
  const Json line = log.value("leaf", Json());
  const Result<Json> leaf = ParseJson(line.is_string() ? line.get<std::string>() : "");
  const Json index = log.value("index", Json());
  const Json size = log.value("size", Json());
  const Json root = log.value("root", Json());
  if (!leaf.ok() || !leaf->is_object() || !index.is_number_unsigned() ||
      !size.is_number_unsigned() || !root.is_string()) {
    return std::nullopt;
  }
  return Place{leaf->value("ran", Json()) == Json(true),
               {index.get<uint64_t>(), size.get<uint64_t>(), root.get<std::string>()}};
}

SealedCall Broken(const store::Call& row, std::string problem) {
  SealedCall sealed;
  sealed.state = SealState::kBroken;
  sealed.call.identity.call_id = row.identity.call_id;
  sealed.call.identity.tenant = row.identity.tenant;
  sealed.call.state = row.state;
  sealed.problem = std::move(problem);
  return sealed;
}

// What the row does not have, or has from another clock.
void FillFrom(const Receipt& receipt, store::Call& call) {
  call.tool_version = receipt.tool_version;
  call.manifest_hash = receipt.manifest_hash;
  call.envelope_id = receipt.envelope_id;
  call.effect = receipt.effect;
  call.args_hash = receipt.args_hash;
  call.started_at =
      receipt.started_at == Nanos(0) ? std::nullopt : std::optional(receipt.started_at);
}

// `exported` is the receipt's list, as JSON text.
void CompareFiles(const std::vector<store::StoredFile>& stored, std::string_view exported,
                  Differences& found) {
  if (stored.empty() && (exported == "[]" || exported == "null")) {
    return;
  }
  const Result<Json> list = ParseJson(exported);
  std::vector<store::StoredFile> sealed;
  if (list.ok() && list->is_array()) {
    for (const Json& file : *list) {
      const Json path = file.value("path", Json());
      const Json size = file.value("size", Json());
      const Json sha256 = file.value("sha256", Json());
      if (path.is_string() && size.is_number_unsigned() && sha256.is_string()) {
        sealed.push_back(
            {path.get<std::string>(), size.get<uint64_t>(), sha256.get<std::string>()});
      }
    }
  }
  for (const store::StoredFile& file : stored) {
    if (std::find(sealed.begin(), sealed.end(), file) == sealed.end() && found.file.empty()) {
      found.file = file.path;
    }
  }
  found.file_gone = std::any_of(sealed.begin(), sealed.end(), [&](const store::StoredFile& file) {
    return std::none_of(stored.begin(), stored.end(),
                        [&](const store::StoredFile& one) { return one.path == file.path; });
  });
}

}  // namespace

std::string_view SealStateName(SealState state) {
  switch (state) {
    case SealState::kOpen:
      return "open";
    case SealState::kGood:
      return "good";
    case SealState::kBroken:
      break;
  }
  return "broken";
}

Differences FindDifferences(const store::StoredCall& stored, std::string_view canonical, bool ran,
                            uint64_t index) {
  const CanonicalFields receipt(canonical);
  const store::Call& row = stored.call;
  Differences found;
  const auto expect = [&](std::string_view column, bool same) {
    if (!same) {
      found.columns.push_back(column);
    }
  };
  // What is decided before a call starts is written into its row when it starts.
  const auto decided = [&](std::string_view column, const std::string& value) {
    expect(column, (!ran && value.empty()) || Says(receipt.At(column), value));
  };
  const CanonicalFields error(receipt.At("error"));
  const CanonicalFields exit(receipt.At("exit"));
  const CanonicalFields output(receipt.At("output"));
  const std::string_view outcome = receipt.At("outcome");
  const std::string_view cpu = CanonicalFields(receipt.At("limits", "cpu")).At("used");

  expect("id", Says(receipt.At("call_id"), row.identity.call_id));
  expect("tenant", Says(receipt.At("tenant"), row.identity.tenant.name()));
  expect("parent_id", Says(receipt.At("parent_id"), row.identity.parent_id));
  expect("session_id", Says(receipt.At("session_id"), row.identity.session_id));
  expect("trace_id", Says(receipt.At("trace_id"), row.identity.trace_id));
  expect("agent", Says(receipt.At("agent"), row.identity.agent));
  expect("user", Says(receipt.At("user"), row.identity.user));
  expect("reason", Says(receipt.At("reason"), row.identity.reason));
  expect("tool", Says(receipt.At("tool"), row.identity.tool));
  decided("tool_version", row.tool_version);
  decided("manifest_hash", row.manifest_hash);
  decided("envelope_id", row.envelope_id);
  decided("effect", row.effect);
  expect("state", store::CallStateName(row.state) == StateOf(ran, outcome));
  expect("outcome", row.outcome && Says(outcome, store::OutcomeName(*row.outcome)));
  expect("error_class", Says(error.At("class"), row.error_class));
  expect("error_message", Says(error.At("message"), row.error_message));
  expect("exit_code", SaysNumber(exit.At("code"), row.exit_code));
  expect("exit_signal", SaysNumber(exit.At("signal"), row.exit_signal));
  expect("requested_at", SaysTime(receipt.At("requested_at"), row.requested_at));
  // A call that was started and could not be launched has no start in its receipt.
  expect("started_at", receipt.At("started_at") == "null"
                           ? ran || !row.started_at
                           : SaysTime(receipt.At("started_at"), row.started_at));
  expect("finished_at", SaysTime(receipt.At("finished_at"), row.finished_at));
  expect("cpu", (cpu == "null" ? "0" : cpu) == std::to_string(row.cpu.count()));
  expect("bytes_out", output.At("bytes") == std::to_string(row.bytes_out));
  expect("denials", receipt.CountOf("denials") == row.denials);
  expect("approval", Says(receipt.At("approval", "state"), row.approval));
  expect("log_index", stored.log_index == static_cast<int64_t>(index));
  expect("args", stored.args ? *stored.args == receipt.At("args_redacted") : !ran);

  const std::string_view result = output.At("result_sha256");
  found.result = stored.result && !Says(result, HashOf(*stored.result));
  found.result_gone = !stored.result && result != "null";
  const std::string_view transcript = output.At("transcript_sha256");
  found.transcript = stored.transcript && !Says(transcript, HashOf(*stored.transcript));
  found.transcript_gone = !stored.transcript && transcript != "null";
  if (stored.files) {
    CompareFiles(*stored.files, receipt.At("files", "exported"), found);
  }
  return found;
}

std::string NamesOf(const Differences& differences) {
  return fmt::format("{}", fmt::join(differences.columns, ", "));
}

Result<SealedCall> ReadSealedCall(store::Store& store, const store::Call& row,
                                  const PublicKey& key) {
  if (!store::HasEnded(row.state)) {
    SealedCall open;
    open.call = row;
    return open;
  }
  TRY_ASSIGN(store::StoredCall stored, store::ReadStored(store, row));
  if (!stored.receipt) {
    return Broken(row, "it has ended and its receipt is not there");
  }
  if (const Status sealed = VerifyReceipt(*stored.receipt, key); !sealed.ok()) {
    return Broken(row, sealed.error().message);
  }
  const Result<Receipt> receipt = ParseReceipt(*stored.receipt);
  const Result<std::string> canonical = CanonicalReceipt(*stored.receipt);
  const std::optional<Place> place = PlaceOf(*stored.receipt);
  if (!receipt.ok() || !canonical.ok() || !place) {
    return Broken(row, "its receipt cannot be read");
  }
  const Differences found = FindDifferences(stored, *canonical, place->ran, place->position.index);
  if (!found.columns.empty()) {
    return Broken(row, "its row differs from its seal: " + NamesOf(found));
  }
  if (found.result) {
    return Broken(row, "its stored result is not the one that was sealed");
  }
  if (found.transcript) {
    return Broken(row, "its stored transcript is not the one that was sealed");
  }
  SealedCall good;
  good.state = SealState::kGood;
  good.call = row;
  FillFrom(*receipt, good.call);
  good.receipt = std::move(*stored.receipt);
  good.log = place->position;
  good.result = std::move(stored.result);
  good.transcript = std::move(stored.transcript);
  return good;
}

}  // namespace coffer::audit
