// SPDX-License-Identifier: Apache-2.0
#include "audit/export/cloud_event.h"

#include <nlohmann/json.hpp>

namespace coffer::audit {
namespace {

constexpr size_t kMostEventDenials = 32;

Json Take(const Json& from, std::initializer_list<const char*> keys) {
  Json taken = Json::object();
  for (const char* const key : keys) {
    taken[key] = FieldAt(from, {key});
  }
  return taken;
}

Json DataOf(const Json& receipt) {
  Json data = Take(receipt, {"call_id", "parent_id", "session_id", "tenant", "agent", "user",
                             "tool", "tool_version", "manifest_hash", "envelope_id", "effect",
                             "requested_at", "started_at", "finished_at", "duration_ms", "outcome",
                             "error", "exit", "incidents"});
  data["isolation_level"] = FieldAt(receipt, {"isolation", "level"});
  Json denials = Json::array();
  for (const Json& denial : FieldAt(receipt, {"denials"})) {
    if (denials.size() < kMostEventDenials) {
      denials.push_back(
          Take(denial, {"surface", "operation", "target", "rule", "reason", "count"}));
    }
  }
  data["denials"] = std::move(denials);
  data["log"] = Take(FieldAt(receipt, {"log"}), {"index", "size", "root"});
  return data;
}

}  // namespace

std::string FormatCloudEvent(const CloudEvent& event, const Json& data) {
  Json json;
  json["specversion"] = "1.0";
  json["id"] = event.id;
  json["source"] =
      event.tenant.empty() ? "/cofferdam" : std::string("/cofferdam/tenants/") + event.tenant;
  json["type"] = std::string(kEventPrefix) + event.type;
  json["time"] = FormatTime(event.time);
  if (!event.subject.empty()) {
    json["subject"] = event.subject;
  }
  if (!event.traceparent.empty()) {
    json["traceparent"] = event.traceparent;
  }
  json["datacontenttype"] = "application/json";
  json["data"] = data;
  std::string text = PrintJson(json);
  if (text.size() > kMaxCloudEvent) {
    json["data"] = Take(data, {"call_id", "tool", "outcome"});
    json["data"]["truncated"] = true;
    text = PrintJson(json);
  }
  return text;
}

std::string_view CallEventType(std::string_view outcome) {
  return outcome == "denied" ? "call.denied" : "call.finished";
}

std::string CallEventId(std::string_view call_id) { return "call." + std::string(call_id); }

Result<std::string> CallCloudEvent(std::string_view receipt_json, const TraceContext& trace) {
  TRY_ASSIGN(const Json receipt, ParseForExport(receipt_json));
  CloudEvent event;
  event.id = CallEventId(TextAt(receipt, {"call_id"}));
  event.type = CallEventType(TextAt(receipt, {"outcome"}));
  event.tenant = TextAt(receipt, {"tenant"});
  event.subject = TextAt(receipt, {"call_id"});
  event.time = SpanOf(receipt).end;
  event.traceparent = TraceParentOf(TraceIdsOf(receipt, trace));
  return FormatCloudEvent(event, DataOf(receipt));
}

}  // namespace coffer::audit
