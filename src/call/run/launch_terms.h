// SPDX-License-Identifier: Apache-2.0
//
// What a request asks for and its level cannot give: refused before anything is made.
#pragma once

#include "base/result.h"
#include "call/run/run_request.h"

namespace coffer::call {

// kRefused, with what to leave out or to write instead.
Status CheckTerms(const RunRequest& request, policy::Level level);

}  // namespace coffer::call
