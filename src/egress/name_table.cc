// SPDX-License-Identifier: Apache-2.0
#include "egress/name_table.h"

#include "policy/synthetic_block.h"

namespace coffer::egress {
namespace {

using policy::IpAddress;
using policy::kSyntheticBlock;

// The first 256 addresses of the block are no name's: the resolver has one of them.
constexpr size_t kFirst = 256;
static_assert(kFirst + NameTable::kMostNames <= 65536, "the third and fourth byte hold them all");

IpAddress AddressAt(size_t place) {
  const size_t number = kFirst + place;
  return IpAddress::V4({kSyntheticBlock[0], kSyntheticBlock[1], static_cast<uint8_t>(number >> 8),
                        static_cast<uint8_t>(number & 0xff)});
}

}  // namespace

std::optional<IpAddress> NameTable::AddressOf(const policy::HostName& name) {
  if (const auto known = by_name_.find(name.text()); known != by_name_.end()) {
    return AddressAt(known->second);
  }
  if (names_.size() >= kMostNames) {
    return std::nullopt;
  }
  by_name_.emplace(name.text(), names_.size());
  names_.push_back(name);
  return AddressAt(names_.size() - 1);
}

std::optional<policy::HostName> NameTable::NameOf(const IpAddress& address) const {
  if (address.is_v6() || address[0] != kSyntheticBlock[0] || address[1] != kSyntheticBlock[1]) {
    return std::nullopt;
  }
  const size_t number = size_t{address[2]} << 8 | address[3];
  return number < kFirst || number - kFirst >= names_.size()
             ? std::nullopt
             : std::optional(names_[number - kFirst]);
}

}  // namespace coffer::egress
