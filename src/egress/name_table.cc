// SPDX-License-Identifier: Apache-2.0
#include "egress/name_table.h"

#include <algorithm>

#include "policy/synthetic_block.h"

namespace coffer::egress {
namespace {

using policy::IpAddress;
using policy::kSyntheticBlock;
using policy::kSyntheticBlock6;

// The first 256 addresses of a block are no name's: connections arrive at one of them.
constexpr size_t kFirst = 256;
static_assert(kFirst + NameTable::kMostNames <= size_t{1} << (128 - policy::kLocalBits6),
              "all of them are local in a boundary");

template <size_t kSize>
std::array<uint8_t, kSize> BytesAt(std::array<uint8_t, kSize> block, size_t place) {
  const size_t number = kFirst + place;
  block[kSize - 2] = static_cast<uint8_t>(number >> 8);
  block[kSize - 1] = static_cast<uint8_t>(number & 0xff);
  return block;
}

IpAddress AddressAt(size_t place, bool v6) {
  return v6 ? IpAddress::V6(BytesAt(kSyntheticBlock6, place))
            : IpAddress::V4(BytesAt(kSyntheticBlock, place));
}

// All bytes but the last two are the block's.
bool IsInBlock(const IpAddress& address) {
  const uint8_t* const block = address.is_v6() ? kSyntheticBlock6.data() : kSyntheticBlock.data();
  return std::equal(address.data(), address.data() + address.size() - 2, block);
}

}  // namespace

std::optional<IpAddress> NameTable::AddressOf(const policy::HostName& name, bool v6) {
  if (const auto known = by_name_.find(name.text()); known != by_name_.end()) {
    return AddressAt(known->second, v6);
  }
  if (names_.size() >= kMostNames) {
    return std::nullopt;
  }
  by_name_.emplace(name.text(), names_.size());
  names_.push_back(name);
  return AddressAt(names_.size() - 1, v6);
}

std::optional<policy::HostName> NameTable::NameOf(const IpAddress& address) const {
  if (!IsInBlock(address)) {
    return std::nullopt;
  }
  const size_t last = address.size() - 1;
  const size_t number = size_t{address[last - 1]} << 8 | address[last];
  return number < kFirst || number - kFirst >= names_.size()
             ? std::nullopt
             : std::optional(names_[number - kFirst]);
}

}  // namespace coffer::egress
