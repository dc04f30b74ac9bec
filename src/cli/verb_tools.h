// SPDX-License-Identifier: Apache-2.0
//
// `coffer tools`: what can be called, what is wrong with a manifest, and a new one to start from.
#pragma once

#include <span>
#include <string_view>

namespace coffer::cli {

int ToolsVerb(std::span<const std::string_view> words);

}  // namespace coffer::cli
