// SPDX-License-Identifier: Apache-2.0
#include "egress/address_guard.h"

#include <algorithm>

#include "policy/address_class.h"

namespace coffer::egress {

using policy::AddressBlock;
using policy::AddressClass;
using policy::AddressRange;
using policy::HostName;
using policy::IpAddress;

AddressGuard::AddressGuard(std::vector<AddressRange> exceptions, std::vector<IpAddress> own)
    : exceptions_(std::move(exceptions)), own_(std::move(own)) {}

// `inside` is the block that the exception must lie in; null: any exception that holds the address.
bool AddressGuard::IsExcepted(const IpAddress& address, const AddressRange* inside) const {
  return std::any_of(exceptions_.begin(), exceptions_.end(), [&](const AddressRange& range) {
    return range.Contains(address) && (inside == nullptr || inside->Contains(range));
  });
}

std::optional<std::string> AddressGuard::Object(const HostName& host,
                                                const IpAddress& address) const {
  const IpAddress plain = policy::Unmapped(address);
  const std::optional<AddressBlock> block = policy::BlockOf(plain);
  if (block &&
      (block->kind == AddressClass::kUnspecified || block->kind == AddressClass::kMulticast)) {
    return std::string(block->name);  // no exception: no host has such an address
  }
  const bool loopback = block && block->kind == AddressClass::kLoopback;
  const AddressRange alone{plain, static_cast<uint8_t>(plain.size() * 8)};
  if (!loopback && std::find(own_.begin(), own_.end(), plain) != own_.end() &&
      !IsExcepted(plain, &alone)) {
    return "an address of this host";
  }
  if (block && !IsExcepted(plain, &block->range)) {
    return std::string(block->name);
  }
  if (block && block->kind == AddressClass::kTranslated) {
    const auto inner = policy::AddressInside(plain);
    return inner ? Object(HostName(), *inner) : std::nullopt;
  }
  if (!block && host.address() && !IsExcepted(plain, nullptr)) {
    return "written as a number: nothing proves which host answers there";
  }
  return std::nullopt;
}

std::optional<std::string> ObjectToHostName(const HostName& host) {
  if (host.text() == "localhost" || host.text().ends_with(".localhost")) {
    return "the host itself";
  }
  if (policy::IsMetadataName(host.text())) {
    return "the metadata service of a cloud";
  }
  return std::nullopt;
}

}  // namespace coffer::egress
