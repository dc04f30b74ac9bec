// SPDX-License-Identifier: Apache-2.0
//
// A receipt as a story for people: who asked, denials with their reasons, the outcome, and when.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace coffer::audit {

// `seal` is a sentence about the receipt's seal (VerifyReceipt), for its last line.
Result<std::string> TellStory(std::string_view receipt_text, std::string_view seal);

}  // namespace coffer::audit
