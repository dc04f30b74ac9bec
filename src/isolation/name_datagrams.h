// SPDX-License-Identifier: Apache-2.0
//
// How many datagrams a payload sent to addresses that stand for names (policy/synthetic_block.h), by the kernel's own count.
//
// Only TCP is led out (name_redirect.h). A datagram to such an address, as QUIC sends them, meets a closed port. A rule
// beside the redirect counts it; questions to the boundary's resolver are not counted. The payload has no power over its
// network, so it can neither reset the count nor remove the rule. The socket keeps the namespace, so the count can be
// read when every process inside has ended.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "base/unique_fd.h"

namespace coffer::isolation {

class NameDatagrams {
 public:
  NameDatagrams() = default;  // counts nothing

  // A socket of netfilter in the network where EnforceNameRedirect succeeded.
  explicit NameDatagrams(UniqueFd netfilter) : netfilter_(std::move(netfilter)) {}

  bool opened() const { return netfilter_.valid(); }
  // Since the redirect was made. Nothing if the kernel does not say it.
  std::optional<uint64_t> Count() const;

 private:
  UniqueFd netfilter_;
};

// The packets that the counters in this list of rules have seen, together: messages of netlink(7), as the kernel answers a
// request for the rules of nftables. Nothing if the list is not whole, or no rule in it counts.
std::optional<uint64_t> CountedPackets(std::string_view rules);

}  // namespace coffer::isolation
