// SPDX-License-Identifier: Apache-2.0
//
// The answer to a request whose idempotency key was used before: the stored answer of the first call, compared with its
// seal.
#pragma once

#include <string_view>

#include "call/recorder.h"
#include "call/tool_call.h"
#include "store/admission.h"

namespace coffer::call {

// The call is never run again, also if its end was not seen or its stored data differs from its seal.
ToolReply Replay(Recorder& recorder, const ToolRequest& request, std::string_view args_hash,
                 const store::Admission& admission);

}  // namespace coffer::call
