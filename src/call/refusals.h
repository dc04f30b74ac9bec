// SPDX-License-Identifier: Apache-2.0
//
// Answers to requests that do not run: in the words of ToolReply, and as their receipts tell them.
#pragma once

#include <string>

#include "audit/receipt.h"
#include "base/error.h"
#include "call/tool_call.h"
#include "store/admission.h"

namespace coffer::call {

inline constexpr const char* kEndNotSeen =
    "the call was started and its end was not seen; look at what it was to change";

ToolReply ReplyOf(ToolRefusal refusal, const Error& error);
// The store or the host failed. The agent learns that, and no details of the host.
ToolReply FailedReply(const Error& error);
// The verdict of admission, with the time to wait.
ToolReply ReplyOf(const store::Admission& admission);

// A refusal, as its receipt and its answer show it. `target` is the tool or host that the request named.
void FillRefusal(const Error& error, Nanos now, const std::string& target, audit::Receipt& receipt,
                 ToolReply& reply);

}  // namespace coffer::call
