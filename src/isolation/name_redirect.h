// SPDX-License-Identifier: Apache-2.0
//
// Leads every TCP connection to a synthetic address (policy/synthetic_block.h) to one listener of
// the boundary's network.
//
// Two things of that network make it so, here for IPv4. The loopback device has kResolverAddress
// with the whole block behind it, so the block is local. Programs also see by it that there is IPv4
// here, and ask for it (AI_ADDRCONFIG, which ignores 127.0.0.1). One rule of nftables (tproxy,
// Linux 4.19) gives a connection to any address and port of the block to the listener at
// kResolverAddress:kRedirectPort, which must have IP_TRANSPARENT. For the IPv6 block it is
// kRedirectAddress6, a local route of the part that names get, and a rule like it. Nothing is rewritten: the local
// address of what is accepted is the address that the program connected to. Connections are not
// tracked, so the kernel keeps nothing for them beside their sockets. Other addresses are as
// unreachable as before, and 127.0.0.0/8 is untouched. A second rule for each family counts
// datagrams to the block (name_datagrams.h).
//
// The payload has no power over its network, so it can change neither.
#pragma once

#include <cstdint>
#include <optional>

#include "base/result.h"

namespace coffer::isolation {

// The sockets are of that network (child/report.h). Its loopback is up. Fails if the kernel has no
// such rule, or the caller no power over the network. A host without IPv6 gets the redirect for
// IPv4.
struct NameRedirect {
  std::optional<Error> ipv4_only;  // why the IPv6 block leads nowhere; nothing: it leads there
};
Result<NameRedirect> EnforceNameRedirect(int route, int netfilter);

// What to do about a kernel that cannot.
inline constexpr const char* kNameRedirectFix =
    "a kernel with nf_tables and nft_tproxy (CONFIG_NFT_TPROXY, Linux 4.19): modprobe nft_tproxy";

// Whether this kernel can: tries it in a network of its own.
enum class RedirectFamily : uint8_t { kIpv4, kIpv6 };
Status CheckNameRedirect(RedirectFamily family);

}  // namespace coffer::isolation
