// SPDX-License-Identifier: Apache-2.0
//
// Looks at --allow, --publish and the flags that belong to them, so that a mistake is found before
// anything starts. The egress process reads the same texts with the same code.
#pragma once

#include <string_view>

#include "base/result.h"
#include "call/run/run_request.h"

namespace coffer::cli {

// kRefused with a hint for a rule, a name or an address that is not one. Sets egress_judging.
Status CheckEgressFlags(call::RunRequest& request);

// --hold-time: whole seconds, from one to an hour.
Result<uint32_t> ParseHoldTime(std::string_view text);
// --publish: PORT, or HOST:PORT.
Result<call::RunRequest::Publish> ParsePublish(std::string_view text);

}  // namespace coffer::cli
