// SPDX-License-Identifier: Apache-2.0
#include "audit/export/fields.h"

#include <time.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/hash.h"
#include "base/hex.h"

namespace coffer::audit {
namespace {

constexpr std::string_view kSchemaPrefix = "coffer.receipt/";

bool IsTraceId(std::string_view text, size_t digits) {
  return text.size() == digits && IsHex(text) &&
         text.find_first_not_of('0') != std::string_view::npos;
}

std::string FirstGood(size_t digits, std::string_view given, const std::string& own) {
  return IsTraceId(given, digits) ? std::string(given) : IsTraceId(own, digits) ? own : "";
}

}  // namespace

Result<Json> ParseForExport(std::string_view receipt_json) {
  Result<Json> receipt = ParseJson(receipt_json);
  const bool good = receipt.ok() && receipt->is_object() &&
                    TextAt(*receipt, {"schema"}).starts_with(kSchemaPrefix) &&
                    !TextAt(*receipt, {"call_id"}).empty() &&
                    !TextAt(*receipt, {"tenant"}).empty() && !TextAt(*receipt, {"tool"}).empty() &&
                    !TextAt(*receipt, {"outcome"}).empty() &&
                    TimeAt(*receipt, {"requested_at"}).has_value();
  if (!good) {
    return Refused("audit.export", "this is not a receipt",
                   "a receipt is what `--receipt FILE` and GET /v1/calls/ID/receipt give");
  }
  return receipt;
}

const Json& FieldAt(const Json& json, Path path) {
  static const Json kNothing;
  const Json* at = &json;
  for (const char* const key : path) {
    const auto found = at->is_object() ? at->find(key) : at->end();
    if (!at->is_object() || found == at->end()) {
      return kNothing;
    }
    at = &*found;
  }
  return *at;
}

std::string TextAt(const Json& json, Path path) {
  const Json& field = FieldAt(json, path);
  return field.is_string() ? field.get<std::string>() : std::string();
}

std::optional<int64_t> IntAt(const Json& json, Path path) {
  const Json& field = FieldAt(json, path);
  if (field.is_number_unsigned()) {
    return static_cast<int64_t>(std::min<uint64_t>(field.get<uint64_t>(), INT64_MAX));
  }
  return field.is_number_integer() ? std::optional(field.get<int64_t>()) : std::nullopt;
}

std::optional<Nanos> TimeAt(const Json& json, Path path) {
  const std::string text = TextAt(json, path);
  tm parts{};
  int used = 0;
  if (sscanf(text.c_str(), "%4d-%2d-%2dT%2d:%2d:%2d%n", &parts.tm_year, &parts.tm_mon,
             &parts.tm_mday, &parts.tm_hour, &parts.tm_min, &parts.tm_sec, &used) != 6 ||
      parts.tm_year < 1970 || parts.tm_year > 2200) {
    return std::nullopt;
  }
  parts.tm_year -= 1900;
  parts.tm_mon -= 1;
  std::string_view rest = std::string_view(text).substr(static_cast<size_t>(used));
  int64_t fraction = 0;
  if (rest.starts_with('.')) {
    rest.remove_prefix(1);
    int64_t worth = 100'000'000;
    while (!rest.empty() && rest.front() >= '0' && rest.front() <= '9') {
      fraction += (rest.front() - '0') * worth;
      worth /= 10;
      rest.remove_prefix(1);
    }
  }
  if (rest != "Z") {
    return std::nullopt;
  }
  return std::chrono::seconds(::timegm(&parts)) + Nanos(fraction);
}

Span SpanOf(const Json& receipt) {
  Span span;
  span.begin = TimeAt(receipt, {"requested_at"}).value_or(Nanos(0));
  span.end = std::max(span.begin, TimeAt(receipt, {"finished_at"}).value_or(span.begin));
  return span;
}

std::string DerivedId(std::string_view kind, std::string_view id, size_t digits) {
  constexpr size_t kAlgorithm = 7;  // "sha256:"
  return HashOf(std::string(kind) + "\n" + std::string(id)).substr(kAlgorithm, digits);
}

TraceIds TraceIdsOf(const Json& receipt, const TraceContext& trace) {
  const std::string call = TextAt(receipt, {"call_id"});
  const std::string parent = TextAt(receipt, {"parent_id"});
  TraceIds ids;
  ids.span_id = DerivedId("span", call, 16);
  ids.trace_id = FirstGood(32, trace.trace_id, TextAt(receipt, {"trace_id"}));
  if (!ids.trace_id.empty()) {
    // A call that a call made hangs below it; the other one hangs where its agent said.
    ids.parent_span_id =
        !parent.empty() ? DerivedId("span", parent, 16)
                        : FirstGood(16, trace.parent_span_id, TextAt(receipt, {"parent_span"}));
    return ids;
  }
  ids.trace_id = DerivedId("trace", call, 32);
  if (!parent.empty()) {
    ids.linked_trace_id = DerivedId("trace", parent, 32);
    ids.linked_span_id = DerivedId("span", parent, 16);
  }
  return ids;
}

std::string TraceParentOf(const TraceIds& ids) {
  return "00-" + ids.trace_id + "-" + ids.span_id + "-01";
}

}  // namespace coffer::audit
