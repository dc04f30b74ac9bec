// SPDX-License-Identifier: Apache-2.0
//
// Every key a manifest may have, by table: the parser refuses others, and docs/MANIFEST.md must name exactly these.
#pragma once

#include <string_view>
#include <vector>

namespace coffer::policy {

// The keys of one table ("files.mount"; "" is the file itself, and * stands for any name); empty if there is no such
// table.
std::vector<std::string_view> KeysOf(std::string_view path);

}  // namespace coffer::policy
