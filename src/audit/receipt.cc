// SPDX-License-Identifier: Apache-2.0
#include "audit/receipt.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/json.h"

namespace coffer::audit {
namespace {

constexpr const char* kSchema = "coffer.receipt/1";

Json Optional(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json IsolationOf(const Receipt& receipt) {
  Json missing = Json::array();
  for (const MissingLayer& layer : receipt.missing) {
    missing.push_back(
        {{"layer", layer.layer}, {"reason", layer.reason}, {"stand_in", Optional(layer.stand_in)}});
  }
  Json published = Json::array();
  for (const PublishedPort& port : receipt.published) {
    published.push_back({{"host", port.host}, {"inside", port.inside}});
  }
  return {{"level", Optional(receipt.level)}, {"layers", receipt.layers},
          {"floor", receipt.floor},           {"missing", std::move(missing)},
          {"runtimes", receipt.runtimes},     {"program", Optional(receipt.program)},
          {"published", std::move(published)}};
}

Json LimitsOf(const Receipt& receipt) {
  Json limits = Json::object();
  for (const auto& [name, use] : receipt.limits) {
    limits[name] = {{"cap", use.cap},
                    {"used", use.used ? Json(*use.used) : Json(nullptr)},
                    {"breached", use.breached},
                    {"enforced", use.enforced},
                    {"unit", use.unit}};
  }
  return limits;
}

Json DenialsOf(const Receipt& receipt) {
  Json denials = Json::array();
  for (const Denial& denial : receipt.denials) {
    denials.push_back({{"surface", denial.surface},
                       {"operation", denial.operation},
                       {"target", denial.target},
                       {"rule", denial.rule},
                       {"reason", denial.reason},
                       {"fix", Optional(denial.fix)},
                       {"count", denial.count}});
  }
  return denials;
}

Json NetworkOf(const Receipt& receipt) {
  Json network = Json::array();
  for (const NetworkUse& use : receipt.network) {
    network.push_back(
        {{"host", use.host},
         {"port", use.port},
         {"method", Optional(use.method)},
         {"path", Optional(use.path)},
         {"decision", use.decision},
         {"rule", Optional(use.rule)},
         {"error", Optional(use.error)},
         {"bytes_out", use.bytes_out},
         {"bytes_in", use.bytes_in},
         {"duration_ms",
          std::chrono::duration_cast<std::chrono::milliseconds>(use.duration).count()},
         {"count", use.count}});
  }
  return network;
}

Json AccessOf(const Receipt& receipt) {
  const auto time = [](Nanos at) { return at.count() != 0 ? Json(FormatTime(at)) : Json(nullptr); };
  Json access = Json::array();
  for (const AccessRequest& request : receipt.access) {
    access.push_back({{"id", request.id},
                      {"host", request.host},
                      {"port", request.port},
                      {"opens", request.opens},
                      {"requested_at", time(request.requested_at)},
                      {"decision", request.decision},
                      {"by", Optional(request.by)},
                      {"decided_at", time(request.decided_at)},
                      {"minutes", request.minutes != 0 ? Json(request.minutes) : Json(nullptr)},
                      {"ended", Optional(request.ended)},
                      {"ended_at", time(request.ended_at)}});
  }
  return access;
}

Json SyscallsOf(const Receipt& receipt) {
  Json denied = Json::object();
  for (const auto& [name, count] : receipt.syscalls_denied) {
    denied[name] = count;
  }
  return {{"denied", std::move(denied)},
          {"summary", Json::object()},
          {"recorded", receipt.denials_recorded}};
}

Json ToJson(const Receipt& receipt) {
  Json steps = Json::object();
  for (const auto& [name, micros] : receipt.steps_us) {
    steps[name] = micros;
  }
  Json json;
  json["schema"] = kSchema;
  const store::CallIdentity& identity = receipt.identity;
  json["call_id"] = identity.call_id;
  json["parent_id"] = Optional(identity.parent_id);
  json["session_id"] = Optional(identity.session_id);
  json["trace_id"] = Optional(identity.trace_id);
  json["parent_span"] = Optional(identity.parent_span);
  json["tenant"] = identity.tenant.name();
  json["agent"] = Optional(identity.agent);
  json["user"] = identity.user;
  json["reason"] = Optional(identity.reason);
  json["tool"] = identity.tool;
  json["tool_version"] = Optional(receipt.tool_version);
  json["manifest_hash"] = Optional(receipt.manifest_hash);
  json["envelope_id"] = receipt.envelope_id;
  json["effect"] = receipt.effect;
  json["blast_radius"] = receipt.blast_radius;
  json["args_hash"] = receipt.args_hash;
  json["args_redacted"] = receipt.args_redacted;
  json["code_hash"] = Optional(receipt.code_hash);
  json["requested_at"] = FormatTime(receipt.requested_at);
  json["started_at"] =
      receipt.started_at.count() != 0 ? Json(FormatTime(receipt.started_at)) : Json(nullptr);
  json["finished_at"] = FormatTime(receipt.finished_at);
  json["duration_ms"] =
      static_cast<double>(
          std::chrono::duration_cast<std::chrono::microseconds>(receipt.duration).count()) /
      1000.0;
  json["isolation"] = IsolationOf(receipt);
  json["limits"] = LimitsOf(receipt);
  json["denials"] = DenialsOf(receipt);
  json["scan"] = {{"verdict", nullptr}, {"findings", Json::array()}};
  json["approval"] = {{"state", nullptr}, {"digest", nullptr}, {"chain", Json::array()}};
  json["leases"] = Json::array();
  json["network"] = NetworkOf(receipt);
  json["access"] = AccessOf(receipt);
  json["syscalls"] = SyscallsOf(receipt);
  Json bound = Json::array();
  for (const BoundPath& entry : receipt.bound) {
    bound.push_back({{"path", entry.path},
                     {"class", entry.path_class},
                     {"why", entry.why},
                     {"count", entry.count}});
  }
  Json exported = Json::array();
  for (const ExportedFile& file : receipt.exported) {
    exported.push_back({{"path", file.path}, {"size", file.size}, {"sha256", file.sha256}});
  }
  Json left_out = Json::array();
  for (const LeftOut& left : receipt.left_out) {
    left_out.push_back({{"why", left.why}, {"count", left.count}, {"path", left.path}});
  }
  json["files"] = {
      {"bound", std::move(bound)},
      {"exec", receipt.exec},
      {"overlay", receipt.overlay},
      {"planted", receipt.planted},
      {"staged",
       {{"added", Json::array()}, {"changed", Json::array()}, {"removed", Json::array()}}},
      {"exported", std::move(exported)},
      {"left_out", std::move(left_out)}};
  json["output"] = {{"bytes", receipt.output_bytes},
                    {"produced", receipt.output_produced},
                    {"truncated", receipt.output_truncated},
                    {"sha256", Optional(receipt.output_sha256)},
                    {"stderr_sha256", Optional(receipt.stderr_sha256)},
                    {"result_sha256", Optional(receipt.result_sha256)},
                    {"transcript_sha256", Optional(receipt.transcript_sha256)},
                    {"redactions", Json::array()},
                    {"findings", Json::array()},
                    {"provenance", "untrusted"}};
  json["incidents"] = receipt.incidents;
  json["outcome"] = receipt.outcome;
  json["error"] = receipt.error_class.empty()
                      ? Json(nullptr)
                      : Json({{"class", receipt.error_class}, {"message", receipt.error_message}});
  json["exit"] = {{"code", receipt.exit_code ? Json(*receipt.exit_code) : Json(nullptr)},
                  {"signal", receipt.exit_signal ? Json(*receipt.exit_signal) : Json(nullptr)}};
  json["cost"] = {{"steps_us", std::move(steps)}};
  json["log"] = {{"index", nullptr}, {"size", nullptr}, {"root", nullptr}};
  json["signature"] = nullptr;
  return json;
}

}  // namespace

std::string FormatReceipt(const Receipt& receipt) { return PrintJson(ToJson(receipt), 2) + "\n"; }

}  // namespace coffer::audit
