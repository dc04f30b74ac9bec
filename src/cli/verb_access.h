// SPDX-License-Identifier: Apache-2.0
//
// `coffer access`: lists the hosts that calls of the daemon wait for, and sends the answer of an operator.
#pragma once

#include <span>
#include <string_view>

namespace coffer::cli {

int AccessVerb(std::span<const std::string_view> words);

}  // namespace coffer::cli
