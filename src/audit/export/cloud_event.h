// SPDX-License-Identifier: Apache-2.0
//
// CloudEvents 1.0, structured JSON: what a webhook gets.
//
// An event's id follows from what happened, not from when it was sent: a repeated delivery has the same id and the same
// bytes, so a receiver that gets it twice can tell. No event is larger than 64 KiB; what is too large loses its
// details, never its id, type or call.
#pragma once

#include <string>
#include <string_view>

#include "audit/export/fields.h"

namespace coffer::audit {

inline constexpr size_t kMaxCloudEvent = 64 << 10;
inline constexpr std::string_view kEventPrefix = "io.cofferdam.";

struct CloudEvent {
  std::string id;
  std::string type;    // without the prefix: "call.finished"
  std::string tenant;  // empty: of the whole daemon
  std::string subject;
  Nanos time{0};
  std::string traceparent;  // may be empty
};

// `data` is an object.
std::string FormatCloudEvent(const CloudEvent& event, const Json& data);

// "call.denied" or "call.finished".
std::string_view CallEventType(std::string_view outcome);

// The end of a call, from its receipt: who asked for what, how it ended and why. No arguments, no output.
Result<std::string> CallCloudEvent(std::string_view receipt_json, const TraceContext& trace = {});
// The id that it has.
std::string CallEventId(std::string_view call_id);

}  // namespace coffer::audit
