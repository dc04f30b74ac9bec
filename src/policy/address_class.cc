// SPDX-License-Identifier: Apache-2.0
#include "policy/address_class.h"

#include <algorithm>
#include <array>
#include <iterator>

namespace coffer::policy {
namespace {

struct Row {
  std::string_view base;
  uint8_t bits;
  AddressClass kind;
  std::string_view name;
};

constexpr std::string_view kLoopbackName = "a loopback address: this host itself";
constexpr std::string_view kLinkLocalName = "a link-local address";
constexpr std::string_view kMetadataName = "the metadata service of a cloud";
constexpr std::string_view kPrivateName = "an address of a private network";
constexpr std::string_view kMulticastName = "a multicast or broadcast address";
constexpr std::string_view kReservedName = "a reserved address";
constexpr std::string_view kTranslatedName = "an address that stands for another one";

// IANA's registries of special addresses (RFC 6890 and its successors), and what clouds put into them.
constexpr Row kRows[] = {
    {"0.0.0.0", 8, AddressClass::kUnspecified, "an address of no host"},
    {"10.0.0.0", 8, AddressClass::kPrivate, kPrivateName},
    {"100.64.0.0", 10, AddressClass::kShared, "an address between a provider and its customers"},
    {"100.100.100.200", 32, AddressClass::kMetadata, kMetadataName},  // Alibaba
    {"127.0.0.0", 8, AddressClass::kLoopback, kLoopbackName},
    {"168.63.129.16", 32, AddressClass::kMetadata, kMetadataName},  // Azure's wire server
    {"169.254.0.0", 16, AddressClass::kLinkLocal, kLinkLocalName},
    {"169.254.169.254", 32, AddressClass::kMetadata, kMetadataName},
    {"169.254.170.2", 32, AddressClass::kMetadata, kMetadataName},   // credentials of ECS tasks
    {"169.254.170.23", 32, AddressClass::kMetadata, kMetadataName},  // of EKS pods
    {"172.16.0.0", 12, AddressClass::kPrivate, kPrivateName},
    {"192.0.0.0", 24, AddressClass::kReserved, kReservedName},
    {"192.0.0.192", 32, AddressClass::kMetadata, kMetadataName},  // Oracle, old
    {"192.0.2.0", 24, AddressClass::kReserved, kReservedName},
    {"192.88.99.0", 24, AddressClass::kTranslated, kTranslatedName},  // relays of 6to4
    {"192.168.0.0", 16, AddressClass::kPrivate, kPrivateName},
    {"198.18.0.0", 15, AddressClass::kReserved, kReservedName},
    {"198.51.100.0", 24, AddressClass::kReserved, kReservedName},
    {"203.0.113.0", 24, AddressClass::kReserved, kReservedName},
    {"224.0.0.0", 4, AddressClass::kMulticast, kMulticastName},
    {"240.0.0.0", 4, AddressClass::kReserved, kReservedName},
    {"255.255.255.255", 32, AddressClass::kMulticast, kMulticastName},
    {"::", 96, AddressClass::kTranslated, kTranslatedName},  // IPv4-compatible
    {"::", 128, AddressClass::kUnspecified, "an address of no host"},
    {"::1", 128, AddressClass::kLoopback, kLoopbackName},
    {"::ffff:0:0:0", 96, AddressClass::kTranslated, kTranslatedName},  // SIIT
    {"64:ff9b::", 96, AddressClass::kTranslated, kTranslatedName},     // NAT64
    {"64:ff9b:1::", 48, AddressClass::kTranslated, kTranslatedName},   // NAT64 of one network
    {"100::", 64, AddressClass::kReserved, kReservedName},             // discards
    {"2001::", 23, AddressClass::kReserved, kReservedName},
    {"2001::", 32, AddressClass::kTranslated, kTranslatedName},  // Teredo
    {"2001:db8::", 32, AddressClass::kReserved, kReservedName},
    {"2002::", 16, AddressClass::kTranslated, kTranslatedName},  // 6to4
    {"3fff::", 20, AddressClass::kReserved, kReservedName},      // documentation
    {"5f00::", 16, AddressClass::kReserved, kReservedName},      // segment routing
    {"fc00::", 7, AddressClass::kPrivate, kPrivateName},
    {"fd00:ec2::254", 128, AddressClass::kMetadata, kMetadataName},
    {"fd00:ec2::23", 128, AddressClass::kMetadata, kMetadataName},
    {"fd20:ce::254", 128, AddressClass::kMetadata, kMetadataName},        // Google
    {"fd00:42::42", 128, AddressClass::kMetadata, kMetadataName},         // Scaleway
    {"fd00:c1::a9fe:a9fe", 128, AddressClass::kMetadata, kMetadataName},  // Oracle
    {"fe80::", 10, AddressClass::kLinkLocal, kLinkLocalName},
    {"fec0::", 10, AddressClass::kPrivate, kPrivateName},  // site-local, given up in RFC 3879
    {"ff00::", 8, AddressClass::kMulticast, kMulticastName},
};

constexpr std::string_view kMetadataNames[] = {
    "metadata",
    "metadata.google.internal",
    "metadata.goog",
    "instance-data",
    "instance-data.ec2.internal",
    "metadata.tencentyun.com",
    "metadata.platformequinix.com",
    "metadata.packet.net",
};

// IPv6 addresses of the internet begin with 001 (RFC 4291 section 2.4); the rest is not given out.
bool IsGlobalUnicast(const IpAddress& address) { return (address[0] >> 5) == 1; }

const std::array<AddressBlock, std::size(kRows)>& Blocks() {
  static const std::array<AddressBlock, std::size(kRows)> blocks = [] {
    std::array<AddressBlock, std::size(kRows)> made;
    for (size_t i = 0; i < made.size(); ++i) {
      made[i] = {
          {IpAddress::Parse(kRows[i].base).value(), kRows[i].bits}, kRows[i].kind, kRows[i].name};
    }
    return made;
  }();
  return blocks;
}

IpAddress FourAt(const IpAddress& address, size_t at) {
  return IpAddress::V4({address[at], address[at + 1], address[at + 2], address[at + 3]});
}

bool IsIn(const IpAddress& address, std::string_view base, uint8_t bits) {
  return AddressRange{*IpAddress::Parse(base), bits}.Contains(address);
}

}  // namespace

IpAddress Unmapped(const IpAddress& address) {
  const bool mapped =
      address.is_v6() &&
      std::all_of(address.data(), address.data() + 10, [](uint8_t byte) { return byte == 0; }) &&
      address[10] == 0xff && address[11] == 0xff;
  return mapped ? FourAt(address, 12) : address;
}

std::optional<AddressBlock> BlockOf(const IpAddress& address) {
  const IpAddress plain = Unmapped(address);
  std::optional<AddressBlock> innermost;
  for (const AddressBlock& block : Blocks()) {
    if (block.range.Contains(plain) && (!innermost || block.range.bits > innermost->range.bits)) {
      innermost = block;
    }
  }
  if (!innermost && plain.is_v6() && !IsGlobalUnicast(plain)) {
    innermost = AddressBlock{{plain, 128}, AddressClass::kReserved, kReservedName};
  }
  return innermost;
}

bool IsOfOneKind(const AddressRange& range) {
  const auto& blocks = Blocks();
  const auto holds = [&](const AddressBlock& block) { return block.range.Contains(range); };
  return std::any_of(blocks.begin(), blocks.end(), holds) ||
         std::none_of(blocks.begin(), blocks.end(),
                      [&](const AddressBlock& block) { return range.Contains(block.range); });
}

std::optional<IpAddress> AddressInside(const IpAddress& address) {
  if (!address.is_v6()) {
    return std::nullopt;
  }
  if (IsIn(address, "64:ff9b::", 96) || IsIn(address, "::", 96) ||
      IsIn(address, "::ffff:0:0:0", 96)) {
    return FourAt(address, 12);
  }
  return IsIn(address, "2002::", 16) ? std::optional(FourAt(address, 2)) : std::nullopt;
}

bool IsLocalName(std::string_view name) {
  return name == "localhost" || name.ends_with(".localhost");
}

bool IsMetadataName(std::string_view name) {
  return std::find(std::begin(kMetadataNames), std::end(kMetadataNames), name) !=
         std::end(kMetadataNames);
}

}  // namespace coffer::policy
