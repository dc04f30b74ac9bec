// SPDX-License-Identifier: Apache-2.0
//
// A path as a word of a sentence, so that what redacts sentences finds where it ends (call/redact.h).
#pragma once

#include <string>

namespace coffer {

// In quotes, and with no quote of its own: nothing in it ends them.
inline std::string InQuotes(const std::string& name) {
  std::string words = "\"";
  for (const char c : name) {
    words += c == '"' ? std::string("\\x22") : std::string(1, c);
  }
  return words + '"';
}

// In quotes if it has a space or a quote in it. A name that need not be a path is always to be in quotes: InQuotes.
inline std::string PathInWords(const std::string& path) {
  return path.find_first_of(" \"") == std::string::npos ? path : InQuotes(path);
}

}  // namespace coffer
