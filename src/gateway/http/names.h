// SPDX-License-Identifier: Apache-2.0
//
// What may stand in a path of the API: ids, names and relative file paths, checked before they are used.
//
// The alphabets are narrow on purpose: an id that passes here can be part of a file name, a query or a log line without
// quoting. That it exists, and whose it is, is the service's business.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/percent.h"

namespace coffer::gateway {

// A UUID in lower case, as base/ids.h makes them.
bool IsId(std::string_view text);

// Agents, tenants, keys: letters, digits and ._:@- , starting with a letter or digit, at most 128 characters.
bool IsName(std::string_view text);

// "sha256:" and 64 hexadecimal digits in lower case, as base/hash.h makes them.
bool IsHash(std::string_view text);

// A page's cursor: [A-Za-z0-9._-], at most 128 characters.
bool IsCursor(std::string_view text);

// What a file that is there may be called: "a/b.txt", any bytes but NUL; at most 1024 bytes; no
// part empty, ".", ".." or longer than 255 bytes. A tool may have made any such name, and it can be
// fetched and removed.
bool IsFilePath(std::string_view text);
// What a file that is uploaded may be called: the same, at most 32 parts, and valid UTF-8 without control characters.
bool IsNewFilePath(std::string_view text);

}  // namespace coffer::gateway
