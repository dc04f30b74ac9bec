// SPDX-License-Identifier: Apache-2.0
#include "policy/export_pattern.h"

#include <algorithm>

#include "base/utf8.h"

namespace coffer::policy {
namespace {

constexpr size_t kLongestExportName = 255;

// C0, DEL and C1 (two bytes in UTF-8: 0xc2, then 0x80 to 0x9f).
bool HasControl(std::string_view text) {
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte < 0x20 || byte == 0x7f ||
        (byte == 0xc2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xa0)) {
      return true;
    }
  }
  return false;
}

}  // namespace

std::vector<std::string> PartsOf(std::string_view path) {
  std::vector<std::string> parts;
  for (size_t start = 0; start <= path.size();) {
    const size_t end = std::min(path.find('/', start), path.size());
    parts.emplace_back(path.substr(start, end - start));
    start = end + 1;
  }
  return parts;
}

bool IsExportPath(std::string_view path) {
  if (path.empty() || path.size() > kLongestExportPath || !IsUtf8(path) || HasControl(path)) {
    return false;
  }
  const std::vector<std::string> parts = PartsOf(path);
  return parts.size() <= kDeepestExport &&
         std::none_of(parts.begin(), parts.end(), [](const std::string& part) {
           return part.empty() || part == "." || part == ".." || part.size() > kLongestExportName;
         });
}

bool IsExportPattern(std::string_view pattern) {
  if (pattern.ends_with("/**")) {
    pattern.remove_suffix(3);
  } else if (pattern == "**") {
    return true;
  }
  return IsExportPath(pattern) && pattern.find("**") == std::string_view::npos;
}

bool MatchesPart(std::string_view part, std::string_view name) {
  // Only the last star needs another try: what an earlier one took can be taken by it instead.
  size_t at = 0, in = 0;
  size_t star = std::string_view::npos, taken = 0;
  while (in < name.size()) {
    if (at < part.size() && part[at] == '*') {
      star = at++;
      taken = in;
    } else if (at < part.size() && part[at] == name[in]) {
      ++at;
      ++in;
    } else if (star != std::string_view::npos) {
      at = star + 1;
      in = ++taken;
    } else {
      return false;
    }
  }
  return part.find_first_not_of('*', at) == std::string_view::npos;
}

}  // namespace coffer::policy
