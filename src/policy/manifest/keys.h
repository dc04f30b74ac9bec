// SPDX-License-Identifier: Apache-2.0
//
// Every key a manifest may have, by table: the parser refuses others, and docs/MANIFEST.md must name exactly these.
#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace coffer::policy {

struct KeyTable {
  std::string_view path;  // "files.mount"; "" is the file itself
  std::span<const std::string_view> keys;
};

std::span<const KeyTable> ManifestKeys();

// The keys of one table; empty if there is no such table.
std::vector<std::string_view> KeysOf(std::string_view path);

}  // namespace coffer::policy
