// SPDX-License-Identifier: Apache-2.0
//
// The path of an HTTP request, in the one form that is judged and sent.
//
// Escapes of letters that need none are decoded, all others written in capitals, dot segments resolved, double slashes
// made one. What servers read differently is refused: escapes that are broken, NUL, control characters, backslashes, a
// climb above the root, "..;" (Java servers cut at the semicolon), escapes of escapes, and bytes that are not UTF-8. An
// escaped slash stays, since registries use it in names; a pattern must then cover both readings.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace coffer::policy {

class UrlPath {
 public:
  UrlPath() = default;
  // `text` begins with "/" and holds neither query nor fragment.
  static Result<UrlPath> Parse(std::string_view text);

  // What is sent, logged and shown: "/v1/a%20b".
  const std::string& text() const { return text_; }
  // "/v1/x"; "*" is one part, "**" as the last is any number of them: "/v1/**" covers "/v1/" and all below, not "/v1".
  bool Matches(std::string_view pattern) const;

 private:
  std::string text_ = "/";
  std::vector<std::string> parts_ = {""};        // decoded, with escaped slashes inside parts
  std::vector<std::string> split_parts_ = {""};  // the same with escaped slashes taken as slashes
};

// True for a pattern that covers every path.
bool IsEveryPath(std::string_view pattern);

}  // namespace coffer::policy
