// SPDX-License-Identifier: Apache-2.0
//
// `coffer run`: flags in, one call, an exit status out.
#pragma once

#include <span>
#include <string_view>

#include "audit/receipt.h"
#include "isolation/boundary.h"

namespace coffer::cli {

int RunVerb(std::span<const std::string_view> words, isolation::OwnWords own);

// What --trace shows.
void PrintTrace(const audit::Receipt& receipt);

}  // namespace coffer::cli
