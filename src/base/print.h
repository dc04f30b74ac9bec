// SPDX-License-Identifier: Apache-2.0
//
// What the CLI says: results on stdout, errors on stderr as `coffer: <class>: <message>`, then a hint.
#pragma once

#include <string_view>

#include "base/error.h"

namespace coffer {

void PrintOut(std::string_view text);    // as it is
void PrintError(std::string_view line);  // one line, a newline is added
void PrintError(const Error& error);

}  // namespace coffer
