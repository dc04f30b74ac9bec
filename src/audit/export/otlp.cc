// SPDX-License-Identifier: Apache-2.0
#include "audit/export/otlp.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace coffer::audit {
namespace {

constexpr int kInternal = 1;     // SPAN_KIND_INTERNAL
constexpr int kStatusUnset = 0;  // instrumentation says "ok" only if an operator decided so
constexpr int kStatusError = 2;
constexpr size_t kMostSpanDenials = 64;

std::string Number(int64_t value) { return std::to_string(value); }
std::string Time(Nanos time) { return std::to_string(std::max<int64_t>(time.count(), 0)); }

class Attributes {
 public:
  void Add(const char* key, const std::string& text) {
    if (!text.empty()) {
      list_.push_back({{"key", key}, {"value", {{"stringValue", text}}}});
    }
  }
  void Add(const char* key, std::optional<int64_t> number) {
    if (number) {
      list_.push_back({{"key", key}, {"value", {{"intValue", Number(*number)}}}});
    }
  }
  void AddFlag(const char* key, bool flag) {
    list_.push_back({{"key", key}, {"value", {{"boolValue", flag}}}});
  }
  void AddList(const char* key, const Json& texts) {
    Json values = Json::array();
    for (const Json& text : texts) {
      if (text.is_string()) {
        values.push_back({{"stringValue", text}});
      }
    }
    if (!values.empty()) {
      list_.push_back({{"key", key}, {"value", {{"arrayValue", {{"values", std::move(values)}}}}}});
    }
  }
  Json Take() { return std::move(list_); }

 private:
  Json list_ = Json::array();
};

// The class of what went wrong; nothing for a success.
std::string ErrorType(const Json& receipt) {
  const std::string outcome = TextAt(receipt, {"outcome"});
  if (outcome == "success") {
    return "";
  }
  const std::string error = TextAt(receipt, {"error", "class"});
  return !error.empty() ? error : outcome;
}

Json StatusOf(const Json& receipt) {
  if (ErrorType(receipt).empty()) {
    return {{"code", kStatusUnset}};
  }
  const std::string message = TextAt(receipt, {"error", "message"});
  return message.empty() ? Json{{"code", kStatusError}}
                         : Json{{"code", kStatusError}, {"message", message}};
}

Json AttributesOf(const Json& receipt) {
  Attributes made;
  made.Add("gen_ai.operation.name", std::string("execute_tool"));
  made.Add("gen_ai.tool.name", TextAt(receipt, {"tool"}));
  made.Add("gen_ai.tool.call.id", TextAt(receipt, {"call_id"}));
  made.Add("gen_ai.tool.type", std::string("function"));
  made.Add("gen_ai.agent.name", TextAt(receipt, {"agent"}));
  made.Add("error.type", ErrorType(receipt));
  made.Add("coffer.outcome", TextAt(receipt, {"outcome"}));
  made.Add("coffer.tenant", TextAt(receipt, {"tenant"}));
  made.Add("coffer.session", TextAt(receipt, {"session_id"}));
  made.Add("coffer.parent", TextAt(receipt, {"parent_id"}));
  made.Add("coffer.user", TextAt(receipt, {"user"}));
  made.Add("coffer.tool.version", TextAt(receipt, {"tool_version"}));
  made.Add("coffer.effect", TextAt(receipt, {"effect"}));
  made.Add("coffer.isolation.level", TextAt(receipt, {"isolation", "level"}));
  made.AddList("coffer.isolation.layers", FieldAt(receipt, {"isolation", "layers"}));
  made.Add("coffer.manifest", TextAt(receipt, {"manifest_hash"}));
  made.Add("coffer.envelope", TextAt(receipt, {"envelope_id"}));
  made.Add("coffer.args_hash", TextAt(receipt, {"args_hash"}));
  made.Add("coffer.approval.state", TextAt(receipt, {"approval", "state"}));
  made.Add("coffer.exit.code", IntAt(receipt, {"exit", "code"}));
  made.Add("coffer.exit.signal", IntAt(receipt, {"exit", "signal"}));
  made.Add("coffer.output.bytes", IntAt(receipt, {"output", "bytes"}));
  made.Add("coffer.denials", static_cast<int64_t>(FieldAt(receipt, {"denials"}).size()));
  made.Add("coffer.incidents", static_cast<int64_t>(FieldAt(receipt, {"incidents"}).size()));
  for (const auto& [name, use] : FieldAt(receipt, {"limits"}).items()) {
    if (FieldAt(use, {"breached"}) == true) {
      made.AddFlag(("coffer.limit." + name + ".breached").c_str(), true);
    }
  }
  made.Add("coffer.log.index", IntAt(receipt, {"log", "index"}));
  return made.Take();
}

Json DenialEvents(const Json& receipt, Nanos at) {
  Json events = Json::array();
  for (const Json& denial : FieldAt(receipt, {"denials"})) {
    if (events.size() == kMostSpanDenials) {
      break;
    }
    Attributes made;
    made.Add("coffer.denial.surface", TextAt(denial, {"surface"}));
    made.Add("coffer.denial.operation", TextAt(denial, {"operation"}));
    made.Add("coffer.denial.rule", TextAt(denial, {"rule"}));
    made.Add("coffer.denial.count", IntAt(denial, {"count"}));
    events.push_back(
        {{"timeUnixNano", Time(at)}, {"name", "coffer.denial"}, {"attributes", made.Take()}});
  }
  return events;
}

Json Below(const TraceIds& ids, const char* name, Span span) {
  return {{"traceId", ids.trace_id},
          {"spanId", DerivedId(name, ids.span_id, 16)},
          {"parentSpanId", ids.span_id},
          {"name", name},
          {"kind", kInternal},
          {"startTimeUnixNano", Time(span.begin)},
          {"endTimeUnixNano", Time(span.end)},
          {"attributes", Json::array()},
          {"status", {{"code", kStatusUnset}}}};
}

// What is known of the inside: when the command began, and how long after its birth the boundary
// entered each stage. The last stage is entered when the command begins.
void AddSteps(const Json& receipt, const TraceIds& ids, Span whole, std::vector<Json>& spans) {
  const std::optional<Nanos> started = TimeAt(receipt, {"started_at"});
  if (!started) {
    return;
  }
  const auto within = [&](Nanos time) { return std::clamp(time, whole.begin, whole.end); };
  const Json& steps = FieldAt(receipt, {"cost", "steps_us"});
  const Nanos running = within(*started);
  Nanos last{0};
  for (const auto& [name, micros] : steps.items()) {
    if (micros.is_number_integer()) {
      last = std::max(last, Nanos(std::chrono::microseconds(micros.get<int64_t>())));
    }
  }
  const Nanos born = within(running - last);
  spans.push_back(Below(ids, "coffer.decide", {whole.begin, born}));
  if (last.count() > 0) {
    Json events = Json::array();
    for (const auto& [name, micros] : steps.items()) {
      if (micros.is_number_integer()) {
        const Nanos at = born + std::chrono::microseconds(micros.get<int64_t>());
        events.push_back({{"timeUnixNano", Time(std::clamp(at, born, running))}, {"name", name}});
      }
    }
    spans.push_back(Below(ids, "coffer.launch", {born, running}));
    spans.back()["events"] = std::move(events);
  }
  spans.push_back(Below(ids, "coffer.run", {running, whole.end}));
}

}  // namespace

std::vector<Json> OtlpSpans(const Json& receipt, const TraceContext& trace) {
  const TraceIds ids = TraceIdsOf(receipt, trace);
  const Span whole = SpanOf(receipt);
  Json span = {{"traceId", ids.trace_id}, {"spanId", ids.span_id}};
  if (!ids.parent_span_id.empty()) {
    span["parentSpanId"] = ids.parent_span_id;
  }
  span["name"] = "execute_tool " + TextAt(receipt, {"tool"});
  span["kind"] = kInternal;
  span["startTimeUnixNano"] = Time(whole.begin);
  span["endTimeUnixNano"] = Time(whole.end);
  span["attributes"] = AttributesOf(receipt);
  span["events"] = DenialEvents(receipt, whole.end);
  if (!ids.linked_trace_id.empty()) {
    span["links"] = {{{"traceId", ids.linked_trace_id}, {"spanId", ids.linked_span_id}}};
  }
  span["status"] = StatusOf(receipt);
  std::vector<Json> spans = {std::move(span)};
  AddSteps(receipt, ids, whole, spans);
  return spans;
}

Json OtlpRequest(std::vector<Json> spans) {
  Attributes resource;
  resource.Add("service.name", std::string("cofferdam"));
  resource.Add("service.version", std::string(COFFER_VERSION));
  Json request;
  Json scope = {{"scope", {{"name", "cofferdam"}, {"version", COFFER_VERSION}}},
                {"spans", std::move(spans)}};
  Json one = {{"resource", {{"attributes", resource.Take()}}}, {"scopeSpans", Json::array()}};
  one["scopeSpans"].push_back(std::move(scope));
  request["resourceSpans"] = Json::array();
  request["resourceSpans"].push_back(std::move(one));
  return request;
}

}  // namespace coffer::audit
