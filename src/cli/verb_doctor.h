// SPDX-License-Identifier: Apache-2.0
//
// `coffer doctor`: what this host can enforce, level by level and layer by layer, and how to fix what it cannot.
#pragma once

#include <span>
#include <string_view>

namespace coffer::cli {

// Exit status 1 if the default level cannot be reached.
int DoctorVerb(std::span<const std::string_view> words);

}  // namespace coffer::cli
