// SPDX-License-Identifier: Apache-2.0
//
// The parts of a text between separators: of a line of /etc/passwd, of a PATH.
#pragma once

#include <string_view>
#include <vector>

namespace coffer {

// "a::b" by ':' is {"a", "", "b"}; an empty text is one empty part. The parts point into `text`.
std::vector<std::string_view> SplitText(std::string_view text, char separator);

}  // namespace coffer
