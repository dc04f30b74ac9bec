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

// The request that the words make, with everything read that they name but stdin and the receipt.
// `usual` are words that count unless a profile or `words` says otherwise.
Result<call::RunRequest> ReadRunWords(std::span<const std::string_view> usual,
                                      std::span<const std::string_view> words,
                                      isolation::OwnWords own);

// --state, COFFER_STATE, or the usual state directory.
std::string StateOf(const call::RunRequest& request);

// Puts into the receipt of a call that a signal to this process ended: cancelled, by whom.
void SayCancelled(call::RunOutcome& outcome);

// What is said about a call on stderr: its error, warnings, notes unless they are not wanted, and what --trace shows.
void PrintOutcome(const call::RunRequest& request, const call::RunOutcome& outcome);

}  // namespace coffer::cli
