// SPDX-License-Identifier: Apache-2.0
//
// The other half of receipt.cc: JSON back to a Receipt, for tools that read receipts and for the round-trip tests.
#include <time.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "audit/receipt.h"
#include "base/json.h"

namespace coffer::audit {
namespace {

// Thrown and caught in this file only: nlohmann's accessors throw on a wrong type anyway.
[[noreturn]] void Bad(const std::string& what) { throw std::invalid_argument(what); }

std::string Text(const Json& json, const char* key) {
  const Json& value = json.at(key);
  return value.is_null() ? std::string() : value.get<std::string>();
}

// A field that receipts of earlier versions do not have.
std::string LaterText(const Json& json, const char* key) {
  return json.contains(key) ? Text(json, key) : std::string();
}

Nanos Time(const Json& json, const char* key) {
  const std::string text = Text(json, key);
  if (text.empty()) {
    return Nanos(0);
  }
  tm parts{};
  int millis = 0;
  char end = 0;
  if (text.size() != 24 ||
      sscanf(text.c_str(), "%4d-%2d-%2dT%2d:%2d:%2d.%3d%c", &parts.tm_year, &parts.tm_mon,
             &parts.tm_mday, &parts.tm_hour, &parts.tm_min, &parts.tm_sec, &millis, &end) != 8 ||
      end != 'Z') {
    Bad(std::string(key) + " is not a time");
  }
  if (parts.tm_year < 1970 || parts.tm_year > 2200) {
    Bad(std::string(key) + " is out of range");  // nanoseconds since 1970 must fit in 64 bits
  }
  parts.tm_year -= 1900;
  parts.tm_mon -= 1;
  const Nanos time = std::chrono::seconds(::timegm(&parts)) + std::chrono::milliseconds(millis);
  if (FormatTime(time) != text) {
    Bad(std::string(key) + " is not a time");
  }
  return time;
}

void ReadIsolation(const Json& json, Receipt& receipt) {
  receipt.level = Text(json, "level");
  receipt.layers = json.at("layers").get<std::vector<std::string>>();
  receipt.floor = json.at("floor").get<std::vector<std::string>>();
  receipt.runtimes = json.at("runtimes").get<std::vector<std::string>>();
  receipt.program = json.contains("program") ? Text(json, "program") : std::string();
  if (const auto published = json.find("published"); published != json.end()) {
    for (const Json& port : *published) {
      receipt.published.push_back(
          {port.at("host").get<uint64_t>(), port.at("inside").get<uint64_t>()});
    }
  }
  for (const Json& missing : json.at("missing")) {
    receipt.missing.push_back(
        {Text(missing, "layer"), Text(missing, "reason"), Text(missing, "stand_in")});
  }
}

void ReadBound(const Json& files, Receipt& receipt) {
  receipt.exec = files.contains("exec") && files.at("exec").get<bool>();
  receipt.overlay = files.contains("overlay") && files.at("overlay").get<bool>();
  for (const Json& file : files.at("exported")) {
    receipt.exported.push_back(
        {Text(file, "path"), file.at("size").get<uint64_t>(), Text(file, "sha256")});
  }
  if (const auto left_out = files.find("left_out"); left_out != files.end()) {
    for (const Json& left : *left_out) {
      receipt.left_out.push_back(
          {Text(left, "why"), left.at("count").get<uint64_t>(), Text(left, "path")});
    }
  }
  const auto bound = files.find("bound");
  if (bound == files.end()) {
    return;  // written before there was such a list
  }
  if (const auto planted = files.find("planted"); planted != files.end()) {
    receipt.planted = planted->get<std::vector<std::string>>();
  }
  for (const Json& entry : *bound) {
    receipt.bound.push_back({Text(entry, "path"), Text(entry, "class"), Text(entry, "why"),
                             entry.at("count").get<uint64_t>()});
  }
}

void ReadLimits(const Json& json, Receipt& receipt) {
  for (const auto& [name, use] : json.items()) {
    CapUse cap;
    cap.cap = use.at("cap").get<uint64_t>();
    if (!use.at("used").is_null()) {
      cap.used = use.at("used").get<uint64_t>();
    }
    cap.breached = use.at("breached").get<bool>();
    // Receipts that were sealed before there was the field do not claim it.
    cap.enforced = use.contains("enforced") && use.at("enforced").get<bool>();
    cap.unit = Text(use, "unit");
    receipt.limits.emplace_back(name, cap);
  }
}

void ReadNetwork(const Json& json, Receipt& receipt) {
  for (const Json& entry : json) {
    NetworkUse use;
    use.host = Text(entry, "host");
    use.port = entry.at("port").get<uint64_t>();
    use.method = Text(entry, "method");
    use.path = Text(entry, "path");
    use.decision = Text(entry, "decision");
    use.rule = Text(entry, "rule");
    use.error = Text(entry, "error");
    use.bytes_out = entry.at("bytes_out").get<uint64_t>();
    use.bytes_in = entry.at("bytes_in").get<uint64_t>();
    use.duration = std::chrono::milliseconds(entry.at("duration_ms").get<uint32_t>());
    use.count = entry.at("count").get<uint64_t>();
    receipt.network.push_back(std::move(use));
  }
}

void ReadAccess(const Json& json, Receipt& receipt) {
  for (const Json& entry : json) {
    AccessRequest request;
    request.id = entry.at("id").get<uint64_t>();
    request.host = Text(entry, "host");
    request.port = entry.at("port").get<uint64_t>();
    request.opens = Text(entry, "opens");
    request.requested_at = Time(entry, "requested_at");
    request.decision = Text(entry, "decision");
    request.by = Text(entry, "by");
    request.decided_at = Time(entry, "decided_at");
    request.minutes = entry.at("minutes").is_null() ? 0 : entry.at("minutes").get<uint64_t>();
    request.ended = Text(entry, "ended");
    request.ended_at = Time(entry, "ended_at");
    receipt.access.push_back(std::move(request));
  }
}

Receipt FromJson(const Json& json) {
  Receipt receipt;
  if (Text(json, "schema") != "coffer.receipt/1") {
    Bad("schema is not coffer.receipt/1");
  }
  receipt.identity.call_id = Text(json, "call_id");
  receipt.identity.parent_id = Text(json, "parent_id");
  receipt.identity.session_id = Text(json, "session_id");
  receipt.identity.trace_id = Text(json, "trace_id");
  receipt.identity.parent_span = Text(json, "parent_span");
  Result<store::TenantId> tenant = store::TenantId::Parse(Text(json, "tenant"));
  if (!tenant.ok()) {
    Bad("tenant is not a tenant's name");
  }
  receipt.identity.tenant = std::move(tenant).value();
  receipt.identity.agent = Text(json, "agent");
  receipt.identity.user = Text(json, "user");
  receipt.identity.reason = LaterText(json, "reason");
  receipt.identity.tool = Text(json, "tool");
  receipt.tool_version = Text(json, "tool_version");
  receipt.manifest_hash = Text(json, "manifest_hash");
  receipt.envelope_id = Text(json, "envelope_id");
  receipt.effect = Text(json, "effect");
  receipt.blast_radius = Text(json, "blast_radius");
  receipt.args_hash = Text(json, "args_hash");
  receipt.args_redacted = json.at("args_redacted").get<std::vector<std::string>>();
  receipt.code_hash = Text(json, "code_hash");
  receipt.requested_at = Time(json, "requested_at");
  receipt.started_at = Time(json, "started_at");
  receipt.finished_at = Time(json, "finished_at");
  const double millis = json.at("duration_ms").get<double>();
  if (!(millis >= 0 && millis < 1e12)) {
    Bad("duration_ms is out of range");
  }
  receipt.duration = std::chrono::microseconds(std::llround(millis * 1000.0));
  ReadIsolation(json.at("isolation"), receipt);
  ReadLimits(json.at("limits"), receipt);
  ReadBound(json.at("files"), receipt);
  ReadNetwork(json.at("network"), receipt);
  if (json.contains("access")) {  // receipts of earlier versions have none
    ReadAccess(json.at("access"), receipt);
  }
  for (const Json& denial : json.at("denials")) {
    receipt.denials.push_back({Text(denial, "surface"), Text(denial, "operation"),
                               Text(denial, "target"), Text(denial, "rule"), Text(denial, "reason"),
                               Text(denial, "fix"), denial.at("count").get<uint64_t>()});
  }
  for (const auto& [name, count] : json.at("syscalls").at("denied").items()) {
    receipt.syscalls_denied.emplace_back(name, count.get<uint64_t>());
  }
  receipt.denials_recorded = json.at("syscalls").at("recorded").get<bool>();
  const Json& output = json.at("output");
  receipt.output_bytes = output.at("bytes").get<uint64_t>();
  receipt.output_produced = output.at("produced").get<uint64_t>();
  receipt.output_truncated = output.at("truncated").get<bool>();
  receipt.output_sha256 = Text(output, "sha256");
  receipt.stderr_sha256 = Text(output, "stderr_sha256");
  receipt.result_sha256 = Text(output, "result_sha256");
  receipt.transcript_sha256 = LaterText(output, "transcript_sha256");
  receipt.incidents = json.at("incidents").get<std::vector<std::string>>();
  receipt.outcome = Text(json, "outcome");
  if (const Json& error = json.at("error"); !error.is_null()) {
    receipt.error_class = Text(error, "class");
    receipt.error_message = Text(error, "message");
  }
  const Json& exit = json.at("exit");
  if (!exit.at("code").is_null()) {
    receipt.exit_code = exit.at("code").get<int>();
  }
  if (!exit.at("signal").is_null()) {
    receipt.exit_signal = exit.at("signal").get<int>();
  }
  for (const auto& [step, micros] : json.at("cost").at("steps_us").items()) {
    receipt.steps_us.emplace_back(step, micros.get<int64_t>());
  }
  return receipt;
}

}  // namespace

Result<Receipt> ParseReceipt(std::string_view text) {
  TRY_ASSIGN(const Json json, ParseJson(text));
  try {
    return FromJson(json);
  } catch (const std::exception& problem) {
    return Refused("audit.receipt.parse", std::string("not a receipt: ") + problem.what());
  }
}

}  // namespace coffer::audit
