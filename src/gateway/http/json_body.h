// SPDX-License-Identifier: Apache-2.0
//
// JSON bodies of requests, from bytes to checked values.
//
// The one pass that builds the value (base/bounded_json.h) stops at what is too deep, has too many values, or holds an
// integer that 64 bits cannot carry unchanged: it would silently become another one. Then every member must be known
// and of its type: a misspelt one is refused, not ignored.
#pragma once

#include <string>
#include <string_view>

#include "gateway/http/limits.h"
#include "gateway/service.h"

namespace coffer::gateway {

// Fills tool, args_json, session_id, parent_id, dry_run and limits_json.
Answer<CallRequest> ParseCallBody(std::string_view text, const HttpLimits& limits);
Answer<SessionRequest> ParseSessionBody(std::string_view text, const HttpLimits& limits);
// How long a session is to live from now.
Answer<std::chrono::seconds> ParseExtendBody(std::string_view text, const HttpLimits& limits);
// A call that is a background process: its session is in the path. Fills tool, args_json, limits_json and ports.
Answer<CallRequest> ParseProcessBody(std::string_view text, const HttpLimits& limits);
// "TERM", "HUP", ...: the number of a signal that a process may be sent.
Answer<int> ParseSignalBody(std::string_view text, const HttpLimits& limits);
Answer<KeyRequest> ParseKeyBody(std::string_view text, const HttpLimits& limits);
// What an operator says to a request for access.
Answer<AccessGrant> ParseAccessBody(std::string_view text, const HttpLimits& limits);
// The reason of a kill switch.
Answer<std::string> ParseSwitchBody(std::string_view text, const HttpLimits& limits);

}  // namespace coffer::gateway
