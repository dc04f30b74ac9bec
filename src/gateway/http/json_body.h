// SPDX-License-Identifier: Apache-2.0
//
// JSON bodies of requests, from bytes to checked values.
//
// Bounds come before building: one pass without memory of its own refuses what is too deep, has too many values, or
// holds a number that a double or a 64-bit integer cannot carry unchanged (a bigger integer would silently become
// another one). Then every member must be known and of its type: a misspelt one is refused, not ignored.
#pragma once

#include <string>
#include <string_view>

#include "gateway/http/limits.h"
#include "gateway/service.h"

namespace coffer::gateway {

// Fills tool, args_json, session_id, parent_id and dry_run.
Answer<CallRequest> ParseCallBody(std::string_view text, const HttpLimits& limits);
Answer<SessionRequest> ParseSessionBody(std::string_view text, const HttpLimits& limits);
Answer<KeyRequest> ParseKeyBody(std::string_view text, const HttpLimits& limits);
// The reason of a kill switch.
Answer<std::string> ParseSwitchBody(std::string_view text, const HttpLimits& limits);

}  // namespace coffer::gateway
