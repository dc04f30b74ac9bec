// SPDX-License-Identifier: Apache-2.0
//
// What the notes about a failed script look for: the script's own text, and words in it.
#pragma once

#include <string>
#include <string_view>

#include "call/run/run_request.h"

namespace coffer::cli {

// Of a script up to 256 KiB; empty for a longer one, for other commands, and beside a mount or with a project: the
// payload may have changed the file there.
std::string ScriptText(const call::RunRequest& request);

// Whether `text` holds `word` with something else around it: no letter, digit or "_".
bool NamesWord(std::string_view text, std::string_view word);

}  // namespace coffer::cli
