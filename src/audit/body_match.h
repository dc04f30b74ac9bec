// SPDX-License-Identifier: Apache-2.0
//
// Whether a stored receipt is the one that the log names, fast enough to ask it of every receipt there is.
//
// The canonical form (seal.h) of a receipt as we write them differs from the stored text only by white space and by the
// members `log` and `signature`. So these are taken out of the text as it stands and the rest is hashed, without reading
// it as JSON. If the hash is the logged one the bytes are; if not, the receipt may still be good and merely be written
// otherwise, and is read properly. White space is only taken out where JSON allows it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace coffer::audit {

// `body` is "sha256:..." as in a leaf.
bool HasBody(std::string_view receipt, std::string_view body);

// For tests: the canonical form if it could be made the fast way. Not canonical if the text's members are not sorted or
// its strings and numbers are not as we write them; its hash tells.
std::optional<std::string> CompactReceipt(std::string_view text);

}  // namespace coffer::audit
