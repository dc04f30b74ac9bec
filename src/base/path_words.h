// SPDX-License-Identifier: Apache-2.0
//
// A path as a word of a sentence, so that what redacts sentences finds where it ends (call/redact.h).
#pragma once

#include <string>

namespace coffer {

// In quotes if it has a space in it.
inline std::string PathInWords(const std::string& path) {
  return path.find(' ') == std::string::npos ? path : '"' + path + '"';
}

}  // namespace coffer
