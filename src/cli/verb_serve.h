// SPDX-License-Identifier: Apache-2.0
//
// `coffer serve` hands over to `cofferd`, which lies beside it; `coffer warden` is what cofferd starts for the one role
// that needs privilege.
#pragma once

#include <span>
#include <string_view>

namespace coffer::cli {

int ServeVerb(std::span<const std::string_view> words);
int WardenVerb(std::span<const std::string_view> words);

}  // namespace coffer::cli
