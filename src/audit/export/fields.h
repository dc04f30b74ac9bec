// SPDX-License-Identifier: Apache-2.0
//
// Reading a receipt for an export: every look-up answers, with nothing where the receipt has nothing.
//
// Receipts of older and newer versions are exported too, so only what makes a document a receipt is demanded.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "audit/export/line.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/result.h"

namespace coffer::audit {

// A JSON object with the schema of a receipt, a call, a tenant, a tool and an outcome.
Result<Json> ParseForExport(std::string_view receipt_json);

using Path = std::initializer_list<const char*>;
const Json& FieldAt(const Json& json, Path path);  // a null if there is no such field
std::string TextAt(const Json& json, Path path);   // "" if it is not a string
std::optional<int64_t> IntAt(const Json& json, Path path);
std::optional<Nanos> TimeAt(const Json& json, Path path);  // RFC 3339, UTC

// When it began and ended; an end before the begin (a clock that was set) counts as the begin.
struct Span {
  Nanos begin{0}, end{0};
};
Span SpanOf(const Json& receipt);

// The ids of a call in a trace: given, the receipt's own, or derived from its id.
struct TraceIds {
  std::string trace_id;
  std::string span_id;
  std::string parent_span_id;   // empty: it is a root
  std::string linked_trace_id;  // of the parent call where it is in a trace of its own; else empty
  std::string linked_span_id;
};
TraceIds TraceIdsOf(const Json& receipt, const TraceContext& trace);
// "00-<trace>-<span>-01".
std::string TraceParentOf(const TraceIds& ids);

// The first bytes of SHA-256 over `kind`, a newline and `id`, as hex digits: never all zeros in practice.
std::string DerivedId(std::string_view kind, std::string_view id, size_t digits);

}  // namespace coffer::audit
