// SPDX-License-Identifier: Apache-2.0
//
// The addresses that stand for names inside a boundary with egress: 198.18.0.0/15, which RFC 2544 sets aside for tests of
// networks, so that no host on the internet has one. They mean something in one boundary only, and only while it lives.
#pragma once

#include <array>
#include <cstdint>

namespace coffer::policy {

inline constexpr std::array<uint8_t, 4> kSyntheticBlock = {198, 18, 0, 0};
inline constexpr uint8_t kSyntheticBits = 15;
inline constexpr std::array<uint8_t, 4> kSyntheticMask = {255, 254, 0, 0};

// Where the boundary's resolver answers, and where connections to every other address of the block arrive. No name has
// this address.
inline constexpr std::array<uint8_t, 4> kResolverAddress = {198, 18, 0, 1};
inline constexpr const char* kResolverText = "198.18.0.1";
inline constexpr uint16_t kResolverPort = 53;
inline constexpr uint16_t kRedirectPort = 3129;

}  // namespace coffer::policy
