// SPDX-License-Identifier: Apache-2.0
//
// `coffer run`: flags in, one call, an exit status out.
#pragma once

#include <span>
#include <string_view>

#include "call/run/run_call.h"
#include "isolation/boundary.h"

namespace coffer::cli {

int RunVerb(std::span<const std::string_view> words, isolation::OwnWords own);

// What is said about a call on stderr: its error, warnings, notes unless they are not wanted, and what --trace shows.
void PrintOutcome(const call::RunRequest& request, const call::RunOutcome& outcome);

}  // namespace coffer::cli
