// SPDX-License-Identifier: Apache-2.0
#include "audit/export/line.h"

#include <nlohmann/json.hpp>

#include "audit/export/fields.h"
#include "audit/export/ocsf.h"
#include "audit/export/otlp.h"
#include "base/json.h"

namespace coffer::audit {
namespace {

constexpr std::string_view kNames[] = {"jsonl", "ocsf", "otlp"};

std::string Join(const std::vector<Json>& documents) {
  std::string lines;
  for (const Json& document : documents) {
    lines += (lines.empty() ? "" : "\n") + PrintJson(document);
  }
  return lines;
}

}  // namespace

std::optional<ExportFormat> FindExportFormat(std::string_view name) {
  for (size_t i = 0; i < std::size(kNames); ++i) {
    if (kNames[i] == name) {
      return static_cast<ExportFormat>(i);
    }
  }
  return std::nullopt;
}

Result<std::string> ExportLine(ExportFormat format, std::string_view receipt_json,
                               const TraceContext& trace) {
  TRY_ASSIGN(const Json receipt, ParseForExport(receipt_json));
  switch (format) {
    case ExportFormat::kJsonLines:
      return PrintJson(receipt);
    case ExportFormat::kOcsf:
      return Join(OcsfEvents(receipt, trace));
    case ExportFormat::kOtlp:
      return PrintJson(OtlpRequest(OtlpSpans(receipt, trace)));
  }
  return Internal("internal.export", "an unknown format");
}

}  // namespace coffer::audit
