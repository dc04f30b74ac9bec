// SPDX-License-Identifier: Apache-2.0
//
// `coffer runtimes [--json]`: the named runtimes, which of them this host has, and what each makes visible.
#pragma once

#include <span>
#include <string_view>

namespace coffer::cli {

// Returns the exit code: 0, 120 for bad arguments, 125 if stdout cannot be written.
int RunRuntimesVerb(std::span<const std::string_view> args);

}  // namespace coffer::cli
