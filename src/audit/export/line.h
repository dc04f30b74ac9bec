// SPDX-License-Identifier: Apache-2.0
//
// A receipt in other formats: JSON lines, OCSF events for a SIEM, OTLP spans for a collector.
//
// Pure: a receipt's text goes in, text comes out; nothing is read, sent or remembered, so the same
// receipt always gives the same bytes, also its span and event ids. Arguments and output never
// leave: a receipt holds only hashes and redacted forms of them, and not even the redacted forms
// are exported (JSON lines, which are the receipt itself, are the exception). What a receipt does
// not know is left out. Nothing here checks a signature: see `coffer audit verify-receipt`.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace coffer::audit {

enum class ExportFormat { kJsonLines, kOcsf, kOtlp };

// "jsonl", "ocsf" or "otlp".
std::optional<ExportFormat> FindExportFormat(std::string_view name);

// Where a call belongs in the caller's trace (W3C trace context), from the `traceparent` that came with it. Empty: the
// receipt's own `trace_id` and `parent_span` if it has them, otherwise derived from the call's id. What is not hex of
// the right length, or all zeros, counts as empty.
struct TraceContext {
  std::string trace_id;        // 32 hex digits
  std::string parent_span_id;  // 16 hex digits
};

// Lines without the last newline, each one whole document: one for jsonl and otlp (an ExportTraceServiceRequest); for
// OCSF the call's event and then one for each finding. Refused if the text is no receipt.
Result<std::string> ExportLine(ExportFormat format, std::string_view receipt_json,
                               const TraceContext& trace = {});

}  // namespace coffer::audit
