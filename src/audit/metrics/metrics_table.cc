// SPDX-License-Identifier: Apache-2.0
#include "audit/metrics/metrics_table.h"

#include <iterator>

namespace coffer::audit {
namespace {

using enum MetricKind;
using Words = const std::string_view[];

constexpr Words kOutcomes = {"success", "error", "denied", "gated", "terminated", "unknown"};

// Error classes. The part behind the dot is a label of its own only where an operator would act on it.
constexpr Words kClasses = {"policy",
                            "scan",
                            "approval",
                            "limit.cpu",
                            "limit.wall",
                            "limit.memory",
                            "limit.processes",
                            "limit.disk",
                            "limit.output",
                            "limit.rate",
                            "limit.concurrency",
                            "isolation",
                            "credential",
                            "egress",
                            "output",
                            "audit",
                            "internal"};

constexpr Words kSurfaces = {"isolation", "limits", "policy", "credentials",  "approval",
                             "egress",    "scan",   "output", "observability"};

constexpr Words kRules = {
    // the boundary
    "seccomp.strict", "seccomp.default", "seccomp.compat", "seccomp.imported", "isolation",
    "isolation.floor", "isolation.level",
    // mistakes in the request
    "policy", "policy.args", "policy.args.option", "policy.args.path", "policy.args.schema",
    "policy.command", "policy.mount", "policy.narrow", "policy.path", "policy.runtime",
    "policy.surface", "policy.template", "policy.tool", "policy.workspace",
    // by whom, how often
    "policy.budget", "policy.cycle", "policy.depth", "policy.idempotency", "policy.parent",
    "policy.retry", "policy.session", "policy.switch", "policy.breaker", "limit.concurrency",
    "limit.rate",
    // surfaces that have rules of their own
    "approval", "credential", "egress", "egress.metadata", "egress.link_local", "egress.internal",
    "egress.never_send", "output", "scan"};

constexpr Words kCaps = {"cpu",  "wall", "memory", "processes",       "open_files",
                         "disk", "io",   "output", "uncounted_memory"};

constexpr Words kIncidentKinds = {"namespace", "mount",      "process",  "kernel", "keyring",
                                  "metadata",  "link_local", "internal", "leak"};
constexpr Words kAlertKinds = {"rate", "duration", "denials", "cpu", "memory", "output"};

constexpr Words kDeliveryResults = {"sent", "failed", "dropped"};
constexpr Words kMethods = {"GET", "HEAD", "POST", "PUT", "DELETE"};
constexpr Words kStatusClasses = {"1xx", "2xx", "3xx", "4xx", "5xx"};
constexpr Words kVersions = {COFFER_VERSION};

constexpr MetricLabel kByTool[] = {{"tool", {}}};
constexpr MetricLabel kByToolAndOutcome[] = {{"tool", {}}, {"outcome", kOutcomes}};
constexpr MetricLabel kByClass[] = {{"class", kClasses}};
constexpr MetricLabel kBySurfaceAndRule[] = {{"surface", kSurfaces}, {"rule", kRules}};
constexpr MetricLabel kByToolAndCap[] = {{"tool", {}}, {"cap", kCaps}};
constexpr MetricLabel kByIncident[] = {{"kind", kIncidentKinds}};
constexpr MetricLabel kByAlert[] = {{"kind", kAlertKinds}};
constexpr MetricLabel kByRequest[] = {
    {"route", {}}, {"method", kMethods}, {"status", kStatusClasses}};
constexpr MetricLabel kByResult[] = {{"result", kDeliveryResults}};
constexpr MetricLabel kByVersion[] = {{"version", kVersions}};

// Seconds. A boundary starts in milliseconds; a call takes as long as its tool; an append is one fsync at most.
constexpr double kShort[] = {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01,
                             0.025,  0.05,    0.1,    0.25,  0.5,    1,     2.5};
constexpr double kLong[] = {0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1,
                            2.5,   5,    10,    30,   60,  120,  300};

constexpr MetricSpec kSpecs[] = {
    {"coffer_calls_total",
     "Calls that ended, by tool and outcome.",
     kCounter,
     kByToolAndOutcome,
     {},
     true,
     false},
    {"coffer_call_errors_total",
     "Calls that ended with an error, by its class.",
     kCounter,
     kByClass,
     {},
     true,
     false},
    {"coffer_call_duration_seconds", "From the request to the end of a call that ran.", kHistogram,
     kByTool, kLong, false, false},
    {"coffer_sandbox_start_seconds",
     "From the making of a boundary until its command runs.",
     kHistogram,
     {},
     kShort,
     true,
     false},
    {"coffer_queue_wait_seconds",
     "From the arrival of a request until its boundary is asked for: queue, decision and record.",
     kHistogram,
     {},
     kShort,
     true,
     false},
    {"coffer_policy_eval_seconds",
     "Evaluation of one request against its manifest.",
     kHistogram,
     {},
     kShort,
     true,
     false},
    {"coffer_calls_running", "Calls whose boundary is there now.", kGauge, {}, {}, true, false},
    {"coffer_denials_total",
     "Operations and requests that were refused, by surface and rule.",
     kCounter,
     kBySurfaceAndRule,
     {},
     false,
     false},
    {"coffer_cap_breaches_total",
     "Calls that reached a cap, by tool and cap.",
     kCounter,
     kByToolAndCap,
     {},
     true,
     false},
    {"coffer_incidents_total",
     "Calls that tried something that looks like an escape or a leak, by kind.",
     kCounter,
     kByIncident,
     {},
     true,
     false},
    {"coffer_alerts_total",
     "Measures that left their baseline, by measure.",
     kCounter,
     kByAlert,
     {},
     true,
     false},
    {"coffer_breaker_trips_total",
     "Pauses of an agent's calls of a tool by the circuit breaker, by tool.",
     kCounter,
     kByTool,
     {},
     true,
     false},
    {"coffer_audit_append_seconds",
     "Appending one record to the audit log, the fsync included.",
     kHistogram,
     {},
     kShort,
     true,
     false},
    {"coffer_audit_log_size", "Records in the audit log.", kGauge, {}, {}, true, true},
    {"coffer_audit_pending",
     "Receipts of calls that ended and could not be written yet; nothing starts before they are.",
     kGauge,
     {},
     {},
     true,
     true},
    {"coffer_audit_lost_total",
     "Receipts that could not be written and were too many to be kept.",
     kCounter,
     {},
     {},
     true,
     true},
    {"coffer_http_requests_total",
     "Answers to HTTP requests, by route, method and status class.",
     kCounter,
     kByRequest,
     {},
     false,
     false},
    {"coffer_deliveries_total",
     "Events for receivers: taken by one, attempts that failed, given up.",
     kCounter,
     kByResult,
     {},
     true,
     true},
    {"coffer_build_info",
     "1; the label says which version this is.",
     kGauge,
     kByVersion,
     {},
     true,
     false,
     1},
    {"process_resident_memory_bytes",
     "Memory of the gateway that is resident.",
     kGauge,
     {},
     {},
     true,
     true},
    {"process_open_fds", "Descriptors that the gateway has open.", kGauge, {}, {}, true, true},
    {"process_cpu_seconds_total",
     "CPU time of the gateway, user and system.",
     kCounter,
     {},
     {},
     true,
     true},
    {"process_start_time_seconds",
     "When the gateway started, in seconds since 1970.",
     kGauge,
     {},
     {},
     true,
     true},
};
static_assert(std::size(kSpecs) == static_cast<size_t>(Metric::kStartTime) + 1);

}  // namespace

std::span<const MetricSpec> MetricSpecs() { return kSpecs; }

}  // namespace coffer::audit
