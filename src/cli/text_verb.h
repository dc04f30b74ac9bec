// SPDX-License-Identifier: Apache-2.0
//
// The shape of a verb that looks something up or changes one thing and then says one text: flags, help, act, say.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "call/verb_flags.h"

namespace coffer::cli {

// `act` has at least one word to go by. The exit status: 0, 120 refused, 125 failed.
int RunTextVerb(std::string_view verb, std::string_view usage,
                std::span<const call::FlagSpec> specs, std::span<const std::string_view> words,
                const std::function<Result<std::string>(const call::VerbFlags&)>& act);

// Says the error. Returns the exit status: 120 refused, 125 failed.
int FailVerb(const Error& error);

// What a verb says to a word it does not know: the nearest of those it does, or all of them.
Error UnknownAction(std::string_view verb, std::string_view word,
                    const std::vector<std::string_view>& known);

}  // namespace coffer::cli
