// SPDX-License-Identifier: Apache-2.0
//
// A call as OpenTelemetry spans, in the JSON form of OTLP 1.x, after the GenAI conventions for `execute_tool`.
//
// The call's span is named `execute_tool TOOL`; below it `coffer.decide`, `coffer.launch` and
// `coffer.run`, as far as the receipt knows their times, and the boundary's own stages as events of
// `coffer.launch`. Denials are events without their targets, which may hold what a tool was given.
// Approval and isolation have no convention yet: those attributes are ours, `coffer.*`. Ids are
// lower-case hex, 64-bit numbers are strings, enums are numbers, as the format demands.
#pragma once

#include <vector>

#include "audit/export/fields.h"

namespace coffer::audit {

// The call's span first, then those below it.
std::vector<Json> OtlpSpans(const Json& receipt, const TraceContext& trace);

// An ExportTraceServiceRequest: what is POSTed to a collector's /v1/traces.
Json OtlpRequest(std::vector<Json> spans);

}  // namespace coffer::audit
