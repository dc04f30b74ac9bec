// SPDX-License-Identifier: Apache-2.0
//
// Text as a terminal shows it, with nothing in it that a terminal obeys.
//
// Names of files, messages and JSON that coffer prints may hold what a payload wrote. JSON escapes the first 32 control
// characters only. A terminal obeys more: the second set (U+0080 to U+009F, where U+009B stands for ESC [), also as a
// single byte, and marks that turn the direction of a line, so that it reads as another one. All of them become \uNNNN,
// which is the same character in JSON, and a byte that is not UTF-8 becomes \xNN. Letters of all languages stay.
#pragma once

#include <string>
#include <string_view>

namespace coffer {

enum class LineEnds { kKeep, kEscape };  // tabs go with them

std::string TerminalText(std::string_view text, LineEnds ends);

}  // namespace coffer
