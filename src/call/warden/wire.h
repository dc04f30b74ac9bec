// SPDX-License-Identifier: Apache-2.0
//
// A request to run a boundary, and its result, as the bytes that roles send to each other.
//
// The sender is another role of ours, but it may have been broken into: every length and every
// value is checked, and what does not decode completely is refused. One layout, versioned; there is
// no negotiation, because both ends are one build. So the warden never parses JSON, TOML or HTTP.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "audit/receipt.h"
#include "base/exit_codes.h"
#include "base/result.h"
#include "base/wire_bytes.h"
#include "call/run/run_request.h"
#include "policy/export_pattern.h"

namespace coffer::call {

// The parts of a RunRequest that one role may choose for another: all but the place of the receipt and the terminal.
std::string EncodeRun(const RunRequest& request);
Result<RunRequest> DecodeRun(std::string_view bytes);

// How a boundary ended, for the role that asked for it.
struct RunReport {
  int32_t exit_status = kExitFailed;
  std::optional<Error> error;
  audit::Receipt receipt;            // how it went (wire_receipt.h); the asking role knows the rest
  std::vector<std::string> exports;  // the bytes of receipt.exported, in its order
};
// The length of the report, the report, and the exported bytes behind it.
inline constexpr size_t kMaxReportBytes =
    sizeof(uint64_t) + kMaxWireBytes + policy::kMostExportBytes;
std::string EncodeReport(const RunReport& report);
// Does not hash the exported bytes: CheckExports does, where there is time for it.
Result<RunReport> DecodeReport(std::string_view bytes);

// An Error: the bytes differ from the list of exported files, or could not be kept.
Status CheckExports(const RunReport& report);

}  // namespace coffer::call
