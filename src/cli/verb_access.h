// SPDX-License-Identifier: Apache-2.0
//
// `coffer access`: what calls of the daemon wait for, and the answer of an operator.
#pragma once

#include <span>
#include <string_view>

namespace coffer::cli {

int AccessVerb(std::span<const std::string_view> words);

}  // namespace coffer::cli
