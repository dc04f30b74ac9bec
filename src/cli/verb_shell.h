// SPDX-License-Identifier: Apache-2.0
//
// `coffer shell`: an interactive boundary for the project in the current directory. It is
// `coffer run --project . --tty` with a shell and without limits of a script: words in, words for
// `coffer run` out, so there is one code path.
#pragma once

#include <span>
#include <string_view>

#include "isolation/boundary.h"

namespace coffer::cli {

int ShellVerb(std::span<const std::string_view> words, isolation::OwnWords own);

}  // namespace coffer::cli
