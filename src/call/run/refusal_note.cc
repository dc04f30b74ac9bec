// SPDX-License-Identifier: Apache-2.0
#include "call/run/refusal_note.h"

#include <fmt/format.h>

#include "base/text.h"

namespace coffer::call {

std::string RefusalNote(const audit::Denial& denial) {
  return fmt::format(
      "refused: {}: {}{}", Escaped(denial.target), Printable(denial.reason),
      denial.fix.empty() ? "" : fmt::format("; to allow it: {}", Printable(denial.fix)));
}

}  // namespace coffer::call
