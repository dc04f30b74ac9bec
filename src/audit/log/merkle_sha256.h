// SPDX-License-Identifier: Apache-2.0
//
// SHA-256 with the processor's own instructions where it has them (ARMv8 sha2), libsodium's otherwise.
//
// Only for the tree, where verifying a long log is nothing but hashing. The
// fast way is used only after it gave libsodium's answer for a message of several blocks on this very machine.
#pragma once

#include <string_view>

#include "audit/log/encoding.h"

namespace coffer::audit {

// SHA-256 of `prefix` (at most 64 bytes), then `bytes`.
Hash FastSha256(std::string_view prefix, std::string_view bytes);

// True if the processor's instructions are used.
bool HasFastSha256();

}  // namespace coffer::audit
