// SPDX-License-Identifier: Apache-2.0
//
// A file name as directories compare it in which case does not count (ext4 and f2fs with casefold, HFS+, APFS).
//
// There `.VSCODE`, `.v` U+017F `code` and `.g` U+200C `it` are `.vscode` and `.git`: letters are
// folded by Unicode's rules, and characters that no font shows are left out. Only what can become
// an ASCII letter matters here, because protected names are ASCII.
#pragma once

#include <string>
#include <string_view>

namespace coffer::policy {

// Lower case, without ignorable code points. Bytes that are not UTF-8 stay as they are.
std::string FoldedName(std::string_view name);

}  // namespace coffer::policy
