// SPDX-License-Identifier: Apache-2.0
//
// Which files of /workspace a call exports (files.exports): paths relative to it, part by part.
//
// In a part `*` stands for any text within that one name; `**` as the last part stands for everything below. What a
// pattern says is text only. The files themselves are hostile: output/exports.h opens them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace coffer::policy {

// Bounds of what one call exports. The gateway holds all of it in memory for a moment.
inline constexpr size_t kMostExports = 64;
inline constexpr size_t kMostExportBytes = 8 << 20;
inline constexpr size_t kMostExportPatterns = 32;
inline constexpr size_t kLongestExportPath = 512;
inline constexpr size_t kDeepestExport = 16;  // parts

// A path that a receipt, a URL and a row of the store can hold as it is: valid UTF-8 without
// control characters, relative, no part that is empty, ".", ".." or longer than 255 bytes, and
// within the bounds above.
bool IsExportPath(std::string_view path);

// Such a path, in which the last part may be `**`, and no other part has two stars in a row.
bool IsExportPattern(std::string_view pattern);

// "a/b" is {"a", "b"}.
std::vector<std::string> PartsOf(std::string_view path);
// `part` is one part of a pattern, not `**`.
bool MatchesPart(std::string_view part, std::string_view name);

}  // namespace coffer::policy
