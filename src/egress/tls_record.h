// SPDX-License-Identifier: Apache-2.0
//
// The frame of a TLS record, in the clear (RFC 8446 section 5.1): type, version, length.
#pragma once

#include <cstddef>
#include <cstdint>

namespace coffer::egress {

inline constexpr uint8_t kHandshakeRecord = 22;
inline constexpr size_t kRecordHead = 5;

}  // namespace coffer::egress
