// SPDX-License-Identifier: Apache-2.0
//
// The output of the CLI: results on stdout, errors on stderr as `coffer: <class>: <message>`, then a hint.
// A stderr that is not read loses the message after a while; it does not stop the program (base/patient_write.h).
//
// What a payload, a project or an agent wrote may be part of it: on stderr, and on a stdout that is
// a terminal, nothing is printed that a terminal obeys (base/terminal_text.h).
#pragma once

#include <string_view>

#include "base/error.h"

namespace coffer {

void PrintOut(std::string_view text);    // byte for byte, unless stdout is a terminal
void PrintBytes(std::string_view text);  // byte for byte: a tool's own output, colours
void PrintError(std::string_view line);  // one line, a newline is added
void PrintError(const Error& error);

}  // namespace coffer
