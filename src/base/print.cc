// SPDX-License-Identifier: Apache-2.0
#include "base/print.h"

#include <unistd.h>

#include <string>

#include "base/patient_write.h"
#include "base/sys.h"
#include "base/terminal_text.h"

namespace coffer {
namespace {

// One line, whatever the message holds: a file name may carry a newline or an escape sequence.
std::string OneLine(std::string_view text) { return TerminalText(text, LineEnds::kEscape); }

}  // namespace

void PrintOut(std::string_view text) {
  if (::isatty(STDOUT_FILENO) == 1) {
    PrintBytes(TerminalText(text, LineEnds::kKeep));
  } else {
    PrintBytes(text);
  }
}

void PrintBytes(std::string_view text) { (void)sys::WriteAll(STDOUT_FILENO, text); }

void PrintError(std::string_view line) {
  (void)sys::WritePatiently(STDERR_FILENO, OneLine(line) + "\n");
}

void PrintError(const Error& error) {
  std::string text = "coffer: " + error.code + ": " + OneLine(error.message) + "\n";
  if (!error.hint.empty()) {
    text += "  hint: " + OneLine(error.hint) + "\n";
  }
  (void)sys::WritePatiently(STDERR_FILENO, text);
}

}  // namespace coffer
