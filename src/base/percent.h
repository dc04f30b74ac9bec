// SPDX-License-Identifier: Apache-2.0
//
// Percent-encoding (RFC 3986 section 2.1) of the paths that stand in URLs and in the URIs of resources.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace coffer {

// A path with everything escaped that has a meaning in a URL or is not printable ASCII; slashes stay.
std::string PercentEncodePath(std::string_view path);

// %XX becomes the byte. Nothing if an escape is broken or is a NUL.
std::optional<std::string> PercentDecode(std::string_view text);

}  // namespace coffer
