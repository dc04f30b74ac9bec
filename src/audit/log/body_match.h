// SPDX-License-Identifier: Apache-2.0
//
// Whether a stored receipt is the one that the log names, fast enough to ask it of every receipt there is.
//
// The canonical form (seal.h) of a receipt as we write them has the same tokens as the stored text,
// without white space, with the members in order, and with `log` and `signature` empty. So the
// tokens are put in order as they stand and hashed, without being made into values. If the hash is
// the logged one the bytes are; if not, the receipt may still be good and merely be written
// otherwise, and is read properly.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace coffer::audit {

// The receipt's canonical form if its hash is `body`, "sha256:..." as in a leaf; nothing if it is another receipt.
std::optional<std::string> MatchBody(std::string_view receipt, std::string_view body);

// The canonical form, if it could be made the fast way and strings and numbers are as we write them.
std::optional<std::string> CompactReceipt(std::string_view text);

}  // namespace coffer::audit
