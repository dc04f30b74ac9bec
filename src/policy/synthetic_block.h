// SPDX-License-Identifier: Apache-2.0
//
// The addresses that stand for names inside a boundary with egress: 198.18.0.0/15 and 2001:2::/48,
// which RFC 2544 and RFC 5180 set aside for tests of networks, so that no host on the internet has
// one. They mean something in one boundary only, and only while it lives.
#pragma once

#include <array>
#include <cstdint>

namespace coffer::policy {

inline constexpr std::array<uint8_t, 4> kSyntheticBlock = {198, 18, 0, 0};
inline constexpr uint8_t kSyntheticBits = 15;
inline constexpr std::array<uint8_t, 4> kSyntheticMask = {255, 254, 0, 0};

inline constexpr std::array<uint8_t, 16> kSyntheticBlock6 = {0x20, 0x01, 0x00, 0x02};
inline constexpr std::array<uint8_t, 16> kSyntheticMask6 = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
// Of the IPv6 block these are local in a boundary, 2001:2::/117: all that names get (egress/name_table.h), and no more. For every
// IPv6 address that a program sends to over the loopback the kernel keeps a neighbour, in a table that it shares with the
// host and that no cgroup counts.
inline constexpr uint8_t kLocalBits6 = 117;

// Where the boundary's resolver answers, and where connections to every other address of the block arrive. No name has
// this address.
inline constexpr std::array<uint8_t, 4> kResolverAddress = {198, 18, 0, 1};
inline constexpr const char* kResolverText = "198.18.0.1";
inline constexpr uint16_t kResolverPort = 53;
inline constexpr uint16_t kRedirectPort = 3129;
// 2001:2::1, where connections to the IPv6 block arrive. No resolver answers there.
inline constexpr std::array<uint8_t, 16> kRedirectAddress6 = {0x20, 0x01, 0, 2, 0, 0, 0, 0,
                                                              0,    0,    0, 0, 0, 0, 0, 1};

}  // namespace coffer::policy
