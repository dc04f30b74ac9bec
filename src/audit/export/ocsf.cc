// SPDX-License-Identifier: Apache-2.0
#include "audit/export/ocsf.h"

#include <nlohmann/json.hpp>

namespace coffer::audit {
namespace {

constexpr const char* kVersion = "1.5.0";
constexpr int kApiActivity = 6003;
constexpr int kDetectionFinding = 2004;
constexpr size_t kMostFindings = 64;

struct Word {
  int id;
  const char* caption;
};
constexpr Word kSeverities[] = {{0, "Unknown"}, {1, "Informational"}, {2, "Low"},
                                {3, "Medium"},  {4, "High"},          {5, "Critical"}};

// What an outcome is in OCSF's words.
struct Verdict {
  const char* outcome;
  int severity;
  Word status, action, disposition;
};
constexpr Verdict kVerdicts[] = {
    {"success", 1, {1, "Success"}, {1, "Allowed"}, {1, "Allowed"}},
    {"error", 2, {2, "Failure"}, {1, "Allowed"}, {27, "Error"}},
    {"denied", 3, {2, "Failure"}, {2, "Denied"}, {2, "Blocked"}},
    {"gated", 1, {0, "Unknown"}, {3, "Observed"}, {23, "Challenge"}},
    {"terminated", 3, {2, "Failure"}, {2, "Denied"}, {24, "Access Revoked"}},
    {"unknown", 3, {0, "Unknown"}, {0, "Unknown"}, {0, "Unknown"}},
};

const Verdict& VerdictOf(const std::string& outcome) {
  for (const Verdict& verdict : kVerdicts) {
    if (outcome == verdict.outcome) {
      return verdict;
    }
  }
  return std::end(kVerdicts)[-1];
}

int64_t Millis(Nanos time) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(time).count();
}

void Put(Json& object, const char* key, const std::string& text) {
  if (!text.empty()) {
    object[key] = text;
  }
}

void Put(Json& object, const char* key, const std::optional<int64_t>& number) {
  if (number) {
    object[key] = *number;
  }
}

void Put(Json& object, const char* id, const char* caption, const Word& word) {
  object[id] = word.id;
  object[caption] = word.caption;
}

Json Metadata(const Json& receipt, const TraceIds& ids, const std::string& uid) {
  Json metadata = {{"version", kVersion},
                   {"product",
                    {{"name", "Cofferdam"},
                     {"vendor_name", "Cofferdam"},
                     {"version", COFFER_VERSION},
                     {"feature", {{"name", "audit"}}}}},
                   {"profiles", {"security_control"}},
                   {"uid", uid},
                   {"log_name", "coffer.receipt"},
                   {"correlation_uid", ids.trace_id}};
  metadata["tenant_uid"] = TextAt(receipt, {"tenant"});
  Put(metadata, "sequence", IntAt(receipt, {"log", "index"}));
  return metadata;
}

Json Actor(const Json& receipt) {
  Json actor = Json::object();
  const std::string user = TextAt(receipt, {"user"});
  const std::string agent = TextAt(receipt, {"agent"});
  actor["app_name"] = agent.empty() ? "coffer" : agent;
  if (!user.empty()) {
    actor["user"] = {{"uid", user}};
  }
  if (const std::string session = TextAt(receipt, {"session_id"}); !session.empty()) {
    actor["session"] = {{"uid", session}};
  }
  return actor;
}

Json Api(const Json& receipt) {
  Json service = {{"name", "cofferdam"}};
  Put(service, "version", TextAt(receipt, {"tool_version"}));
  Put(service, "uid", TextAt(receipt, {"manifest_hash"}));
  Json api = {{"operation", TextAt(receipt, {"tool"})},
              {"service", std::move(service)},
              {"request", {{"uid", TextAt(receipt, {"call_id"})}}}};
  Json response = Json::object();
  Put(response, "code", IntAt(receipt, {"exit", "code"}));
  Put(response, "error", TextAt(receipt, {"error", "class"}));
  Put(response, "error_message", TextAt(receipt, {"error", "message"}));
  if (!response.empty()) {
    api["response"] = std::move(response);
  }
  return api;
}

Json Unmapped(const Json& receipt, const TraceIds& ids) {
  Json unmapped = Json::object();
  Put(unmapped, "coffer.outcome", TextAt(receipt, {"outcome"}));
  Put(unmapped, "coffer.parent", TextAt(receipt, {"parent_id"}));
  Put(unmapped, "coffer.effect", TextAt(receipt, {"effect"}));
  Put(unmapped, "coffer.blast_radius", TextAt(receipt, {"blast_radius"}));
  Put(unmapped, "coffer.isolation.level", TextAt(receipt, {"isolation", "level"}));
  Put(unmapped, "coffer.manifest", TextAt(receipt, {"manifest_hash"}));
  Put(unmapped, "coffer.envelope", TextAt(receipt, {"envelope_id"}));
  Put(unmapped, "coffer.args_hash", TextAt(receipt, {"args_hash"}));
  Put(unmapped, "coffer.output.sha256", TextAt(receipt, {"output", "sha256"}));
  Put(unmapped, "coffer.output.bytes", IntAt(receipt, {"output", "bytes"}));
  Put(unmapped, "coffer.approval.state", TextAt(receipt, {"approval", "state"}));
  Put(unmapped, "coffer.log.index", IntAt(receipt, {"log", "index"}));
  Put(unmapped, "coffer.log.size", IntAt(receipt, {"log", "size"}));
  Put(unmapped, "coffer.log.root", TextAt(receipt, {"log", "root"}));
  unmapped["coffer.span_id"] = ids.span_id;
  Json breached = Json::array();
  for (const auto& [name, use] : FieldAt(receipt, {"limits"}).items()) {
    if (FieldAt(use, {"breached"}) == true) {
      breached.push_back(name);
    }
  }
  if (!breached.empty()) {
    unmapped["coffer.limits.breached"] = std::move(breached);
  }
  return unmapped;
}

// What every event has, whatever its class.
Json Event(const Word& category, const Word& kind, const Word& activity, int severity, Nanos time) {
  Json event;
  event["category_uid"] = category.id;
  event["category_name"] = category.caption;
  event["class_uid"] = kind.id;
  event["class_name"] = kind.caption;
  event["activity_id"] = activity.id;
  event["activity_name"] = activity.caption;
  event["type_uid"] = kind.id * 100 + activity.id;
  event["severity_id"] = severity;
  event["severity"] = kSeverities[severity].caption;
  event["time"] = Millis(time);
  return event;
}

Json CallEvent(const Json& receipt, const TraceIds& ids) {
  const std::string outcome = TextAt(receipt, {"outcome"});
  const std::string tool = TextAt(receipt, {"tool"});
  const Verdict& verdict = VerdictOf(outcome);
  const Span span = SpanOf(receipt);
  // OCSF has no activity for executing; a tool that only reads is at least a read.
  const Word activity =
      TextAt(receipt, {"effect"}) == "read-only" ? Word{2, "Read"} : Word{99, "Execute"};
  Json event = Event({6, "Application Activity"}, {kApiActivity, "API Activity"}, activity,
                     verdict.severity, span.end);
  event["type_name"] = std::string("API Activity: ") + (activity.id == 2 ? "Read" : "Other");
  event["start_time"] = Millis(span.begin);
  event["end_time"] = Millis(span.end);
  event["duration"] = Millis(span.end - span.begin);
  Put(event, "status_id", "status", verdict.status);
  Put(event, "status_code", TextAt(receipt, {"error", "class"}));
  Put(event, "status_detail", TextAt(receipt, {"error", "message"}));
  Put(event, "action_id", "action", verdict.action);
  Put(event, "disposition_id", "disposition", verdict.disposition);
  event["message"] = "tool " + tool + ": " + outcome;
  event["actor"] = Actor(receipt);
  event["api"] = Api(receipt);
  event["src_endpoint"] = {{"name", event["actor"]["app_name"]}};
  event["metadata"] = Metadata(receipt, ids, TextAt(receipt, {"call_id"}));
  event["unmapped"] = Unmapped(receipt, ids);
  return event;
}

struct Finding {
  int severity;
  Word action, disposition;
  std::string title, description, rule, type;
  Json unmapped = Json::object();
};

Json FindingEvent(const Json& receipt, const TraceIds& ids, size_t number, const Finding& finding) {
  const Span span = SpanOf(receipt);
  Json event = Event({2, "Findings"}, {kDetectionFinding, "Detection Finding"}, {1, "Create"},
                     finding.severity, span.end);
  event["type_name"] = "Detection Finding: Create";
  event["is_alert"] = true;
  Put(event, "status_id", "status", {1, "New"});
  Put(event, "action_id", "action", finding.action);
  Put(event, "disposition_id", "disposition", finding.disposition);
  event["message"] = finding.title;
  const std::string uid = TextAt(receipt, {"call_id"}) + "." + std::to_string(number);
  Json info = {{"uid", uid},
               {"title", finding.title},
               {"created_time", Millis(span.end)},
               {"types", {finding.type}}};
  Put(info, "desc", finding.description);
  if (!finding.rule.empty()) {
    info["analytic"] = {
        {"name", finding.rule}, {"uid", finding.rule}, {"type_id", 1}, {"type", "Rule"}};
  }
  event["finding_info"] = std::move(info);
  Json evidence = {{"actor", Actor(receipt)}, {"api", Api(receipt)}};
  event["evidences"] = Json::array({std::move(evidence)});
  event["metadata"] = Metadata(receipt, ids, uid);
  event["unmapped"] = finding.unmapped;
  event["unmapped"]["coffer.call"] = TextAt(receipt, {"call_id"});
  return event;
}

Finding DenialFinding(const Json& denial) {
  Finding finding{3, {2, "Denied"}, {2, "Blocked"}, "", "", "", "isolation", Json::object()};
  finding.title = "isolation refused " + TextAt(denial, {"operation"});
  finding.description = TextAt(denial, {"reason"});
  finding.rule = TextAt(denial, {"rule"});
  Put(finding.unmapped, "coffer.denial.operation", TextAt(denial, {"operation"}));
  Put(finding.unmapped, "coffer.denial.target", TextAt(denial, {"target"}));
  Put(finding.unmapped, "coffer.denial.count", IntAt(denial, {"count"}));
  return finding;
}

Finding IncidentFinding(const Json& incident) {
  Finding finding{4, {3, "Observed"}, {15, "Detected"}, "", "", "", "incident", Json::object()};
  const std::string kind =
      incident.is_string() ? incident.get<std::string>() : TextAt(incident, {"kind"});
  finding.title = kind.empty() ? "incident" : "incident: " + kind;
  finding.description = TextAt(incident, {"reason"});
  finding.rule = TextAt(incident, {"rule"});
  finding.unmapped["coffer.incident"] = incident;
  return finding;
}

}  // namespace

std::vector<Json> OcsfEvents(const Json& receipt, const TraceContext& trace) {
  const TraceIds ids = TraceIdsOf(receipt, trace);
  std::vector<Json> events = {CallEvent(receipt, ids)};
  const auto add = [&](const Finding& finding) {
    if (events.size() <= kMostFindings) {
      events.push_back(FindingEvent(receipt, ids, events.size(), finding));
    }
  };
  for (const Json& incident : FieldAt(receipt, {"incidents"})) {
    add(IncidentFinding(incident));
  }
  for (const Json& denial : FieldAt(receipt, {"denials"})) {
    if (TextAt(denial, {"surface"}) == "isolation") {
      add(DenialFinding(denial));
    }
  }
  return events;
}

}  // namespace coffer::audit
