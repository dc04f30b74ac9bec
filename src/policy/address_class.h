// SPDX-License-Identifier: Apache-2.0
//
// What an IP address is by its number alone: of the internet, or of a block that has another meaning (RFC 6890).
//
// The blocks are nested: the metadata service of a cloud is a block of one address inside
// link-local or private ones, and the innermost block counts. An IPv4 address inside an IPv6 one
// (mapped) is judged as the IPv4 address that it is.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "policy/ip_address.h"

namespace coffer::policy {

enum class AddressClass : uint8_t {
  kPublic,
  kLoopback,
  kUnspecified,  // 0.0.0.0/8, ::
  kLinkLocal,
  kMetadata,    // where clouds answer with credentials
  kPrivate,     // RFC 1918, unique local
  kShared,      // 100.64.0.0/10, between a provider and its customers
  kMulticast,   // with broadcast
  kReserved,    // for documentation, benchmarks and later
  kTranslated,  // NAT64, 6to4, Teredo, IPv4-compatible: another address is inside
};

struct AddressBlock {
  AddressRange range;
  AddressClass kind = AddressClass::kPublic;
  std::string_view name;  // completes "it is ...": "a loopback address"
};

// IPv4-mapped IPv6 addresses become IPv4; every other stays.
IpAddress Unmapped(const IpAddress& address);

// The innermost block that holds the address; nothing: it is public.
std::optional<AddressBlock> BlockOf(const IpAddress& address);
// True if all of `range` is in one block, or none of it in any: what it means is clear.
bool IsOfOneKind(const AddressRange& range);

// For NAT64 and 6to4 the IPv4 address that a packet would reach in the end.
std::optional<IpAddress> AddressInside(const IpAddress& address);

// localhost and every name below it.
bool IsLocalName(std::string_view name);
// Names by which clouds offer their metadata service.
bool IsMetadataName(std::string_view name);

}  // namespace coffer::policy
