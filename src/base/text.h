// SPDX-License-Identifier: Apache-2.0
//
// Text that came from outside, made safe to print on one line of a terminal or a log.
#pragma once

#include <string>
#include <string_view>

namespace coffer {

// Control characters, invalid UTF-8 and everything beyond ASCII become \xNN; longer than 200 bytes is cut with "...".
std::string Printable(std::string_view text);
// The same without the cut, for text whose length is bounded already.
std::string Escaped(std::string_view text);

}  // namespace coffer
