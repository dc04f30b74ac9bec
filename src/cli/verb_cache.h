// SPDX-License-Identifier: Apache-2.0
//
// `coffer cache`: the directories that --cache keeps between the calls of a project.
#pragma once

#include <span>
#include <string_view>

namespace coffer::cli {

int CacheVerb(std::span<const std::string_view> words);

}  // namespace coffer::cli
