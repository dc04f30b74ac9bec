// SPDX-License-Identifier: Apache-2.0
#include "isolation/name_redirect.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_addr.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/rtnetlink.h>
#include <linux/sched.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <span>
#include <string_view>

#include "base/sys.h"
#include "base/unique_fd.h"
#include "isolation/child/confine.h"
#include "isolation/netlink_request.h"
#include "policy/synthetic_block.h"

namespace coffer::isolation {
namespace {

using raw::Arg;
using raw::Syscall;

constexpr uint32_t kLoopback = 1;                          // the first device of every network
constexpr uint32_t kMangle = static_cast<uint32_t>(-150);  // where other programs have tproxy rules
constexpr std::string_view kTable = "coffer";
constexpr std::string_view kChain = "names";

template <typename T>
std::string_view BytesOf(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}

// A family of addresses: its block, and where connections to it arrive.
struct Family {
  uint8_t number;        // the same for sockets and for netfilter
  uint32_t destination;  // its offset in the header
  std::string_view block;
  std::string_view mask;
  std::string_view arrival;
};
static_assert(AF_INET == NFPROTO_IPV4 && AF_INET6 == NFPROTO_IPV6);

Family Ipv4() {
  return {AF_INET, 16, BytesOf(policy::kSyntheticBlock), BytesOf(policy::kSyntheticMask),
          BytesOf(policy::kResolverAddress)};
}

Family Ipv6() {
  return {AF_INET6, 24, BytesOf(policy::kSyntheticBlock6), BytesOf(policy::kSyntheticMask6),
          BytesOf(policy::kRedirectAddress6)};
}

// One expression of a rule: its name, and attributes that `fill` adds.
template <typename Fill>
void AddExpression(NetlinkRequest& request, std::string_view name, Fill fill) {
  const size_t element = request.BeginNested(NFTA_LIST_ELEM);
  request.AddText(NFTA_EXPR_NAME, name);
  const size_t data = request.BeginNested(NFTA_EXPR_DATA);
  fill();
  request.EndNested(data);
  request.EndNested(element);
}

void AddValue(NetlinkRequest& request, uint16_t type, std::string_view value) {
  const size_t nested = request.BeginNested(type);
  request.Add(NFTA_DATA_VALUE, value);
  request.EndNested(nested);
}

void AddCompare(NetlinkRequest& request, nft_cmp_ops compare, uint32_t place,
                std::string_view value) {
  AddExpression(request, "cmp", [&] {
    request.AddBigEndian(NFTA_CMP_SREG, place);
    request.AddBigEndian(NFTA_CMP_OP, compare);
    AddValue(request, NFTA_CMP_DATA, value);
  });
}

void AddLoad(NetlinkRequest& request, uint32_t place, std::string_view value) {
  AddExpression(request, "immediate", [&] {
    request.AddBigEndian(NFTA_IMMEDIATE_DREG, place);
    AddValue(request, NFTA_IMMEDIATE_DATA, value);
  });
}

// Where a rule has the address that a packet goes to: as it is, and without the bits below the block.
constexpr uint32_t kAddress = NFT_REG32_00;
constexpr uint32_t kMasked = NFT_REG32_04;

// meta l4proto PROTOCOL ip daddr 198.18.0.0/15
// meta l4proto PROTOCOL ip6 daddr 2001:2::/48
void AddMatch(NetlinkRequest& request, const Family& family, uint8_t protocol) {
  const std::array<char, sizeof(in6_addr)> none{};
  const auto size = static_cast<uint32_t>(family.block.size());
  AddExpression(request, "meta", [&] {
    request.AddBigEndian(NFTA_META_DREG, NFT_REG32_00);
    request.AddBigEndian(NFTA_META_KEY, NFT_META_L4PROTO);
  });
  AddCompare(request, NFT_CMP_EQ, NFT_REG32_00, BytesOf(protocol));
  AddExpression(request, "payload", [&] {
    request.AddBigEndian(NFTA_PAYLOAD_DREG, kAddress);
    request.AddBigEndian(NFTA_PAYLOAD_BASE, NFT_PAYLOAD_NETWORK_HEADER);
    request.AddBigEndian(NFTA_PAYLOAD_OFFSET, family.destination);
    request.AddBigEndian(NFTA_PAYLOAD_LEN, size);
  });
  AddExpression(request, "bitwise", [&] {
    request.AddBigEndian(NFTA_BITWISE_SREG, kAddress);
    request.AddBigEndian(NFTA_BITWISE_DREG, kMasked);
    request.AddBigEndian(NFTA_BITWISE_LEN, size);
    AddValue(request, NFTA_BITWISE_MASK, family.mask);
    AddValue(request, NFTA_BITWISE_XOR, {none.data(), size});
  });
  AddCompare(request, NFT_CMP_EQ, kMasked, family.block);
}

// tproxy to 198.18.0.1:3129
// tproxy to [2001:2::1]:3129
void AddRedirect(NetlinkRequest& request, const Family& family) {
  const uint16_t port = htons(policy::kRedirectPort);
  const auto behind =
      static_cast<uint32_t>(NFT_REG32_00 + family.arrival.size() / sizeof(uint32_t));
  AddLoad(request, NFT_REG32_00, family.arrival);
  AddLoad(request, behind, BytesOf(port));
  AddExpression(request, "tproxy", [&] {
    request.AddBigEndian(NFTA_TPROXY_FAMILY, family.number);
    request.AddBigEndian(NFTA_TPROXY_REG_ADDR, NFT_REG32_00);
    request.AddBigEndian(NFTA_TPROXY_REG_PORT, behind);
  });
}

// ip daddr != 198.18.0.1 counter
// ip6 daddr != 2001:2::1 counter
//
// The first of these is where the resolver answers; neither stands for a name.
void AddCount(NetlinkRequest& request, const Family& family) {
  AddCompare(request, NFT_CMP_NEQ, kAddress, family.arrival);
  AddExpression(request, "counter", [] {});
}

// ip address add 198.18.0.1/15 dev lo scope host
Status MakeAddress(int socket) {
  ifaddrmsg address{};
  address.ifa_family = AF_INET;
  address.ifa_prefixlen = policy::kSyntheticBits;
  address.ifa_scope = RT_SCOPE_HOST;
  address.ifa_index = kLoopback;
  NetlinkRequest request;
  request.Begin(RTM_NEWADDR, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, BytesOf(address));
  request.Add(IFA_LOCAL, BytesOf(policy::kResolverAddress));
  request.Add(IFA_ADDRESS, BytesOf(policy::kResolverAddress));
  return request.Send(socket, "cannot give the loopback the addresses of names");
}

// ip -6 address add 2001:2::1/128 dev lo nodad
// ip -6 route add local 2001:2::/117 dev lo table local
//
// An IPv6 address on the loopback makes nothing local but itself. Without nodad the address is tentative for a while.
Status MakeAddress6(int socket) {
  ifaddrmsg address{};
  address.ifa_family = AF_INET6;
  address.ifa_prefixlen = 8 * sizeof(in6_addr);
  address.ifa_flags = IFA_F_NODAD;
  address.ifa_index = kLoopback;
  rtmsg route{};
  route.rtm_family = AF_INET6;
  route.rtm_dst_len = policy::kLocalBits6;
  route.rtm_table = RT_TABLE_LOCAL;
  route.rtm_protocol = RTPROT_STATIC;
  route.rtm_scope = RT_SCOPE_UNIVERSE;
  route.rtm_type = RTN_LOCAL;
  NetlinkRequest request;
  request.Begin(RTM_NEWADDR, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, BytesOf(address));
  request.Add(IFA_ADDRESS, BytesOf(policy::kRedirectAddress6));
  request.Begin(RTM_NEWROUTE, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, BytesOf(route));
  request.Add(RTA_DST, BytesOf(policy::kSyntheticBlock6));
  request.Add(RTA_OIF, BytesOf(kLoopback));
  return request.Send(socket, "cannot give the loopback the IPv6 addresses of names");
}

// A rule at the end of the chain; `fill` adds its expressions.
template <typename Fill>
void AddRule(NetlinkRequest& request, std::string_view head, Fill fill) {
  request.Begin(NftType(NFT_MSG_NEWRULE), NLM_F_ACK | NLM_F_CREATE | NLM_F_APPEND, head);
  request.AddText(NFTA_RULE_TABLE, kTable);
  request.AddText(NFTA_RULE_CHAIN, kChain);
  const size_t expressions = request.BeginNested(NFTA_RULE_EXPRESSIONS);
  fill();
  request.EndNested(expressions);
}

// A table, a chain and two rules for each family, all or none.
Status MakeRules(int socket, std::span<const Family> families) {
  const nfgenmsg batch{AF_UNSPEC, NFNETLINK_V0, htons(NFNL_SUBSYS_NFTABLES)};
  NetlinkRequest request;
  request.Begin(NFNL_MSG_BATCH_BEGIN, 0, BytesOf(batch));
  for (const Family& family : families) {
    const nfgenmsg head{family.number, NFNETLINK_V0, 0};
    request.Begin(NftType(NFT_MSG_NEWTABLE), NLM_F_CREATE | NLM_F_EXCL, BytesOf(head));
    request.AddText(NFTA_TABLE_NAME, kTable);
    request.Begin(NftType(NFT_MSG_NEWCHAIN), NLM_F_CREATE | NLM_F_EXCL, BytesOf(head));
    request.AddText(NFTA_CHAIN_TABLE, kTable);
    request.AddText(NFTA_CHAIN_NAME, kChain);
    const size_t hook = request.BeginNested(NFTA_CHAIN_HOOK);
    request.AddBigEndian(NFTA_HOOK_HOOKNUM, NF_INET_PRE_ROUTING);
    request.AddBigEndian(NFTA_HOOK_PRIORITY, kMangle);
    request.EndNested(hook);
    request.AddText(NFTA_CHAIN_TYPE, "filter");
    AddRule(request, BytesOf(head), [&] {
      AddMatch(request, family, IPPROTO_TCP);
      AddRedirect(request, family);
    });
    AddRule(request, BytesOf(head), [&] {
      AddMatch(request, family, IPPROTO_UDP);
      AddCount(request, family);
    });
  }
  request.Begin(NFNL_MSG_BATCH_END, 0, BytesOf(batch));
  return request.Send(socket, "cannot make a tproxy rule of nftables");
}

// Both families in one transaction, which costs little more than one of them.
Status MakeBoth(int route, int netfilter) {
  TRY(MakeAddress6(route));
  const Family both[] = {Ipv4(), Ipv6()};
  return MakeRules(netfilter, both);
}

// In a child with a network of its own. 0, or the errno that stands in the way.
int TryRedirect(RedirectFamily family) {
  const UniqueFd datagram(static_cast<int>(Syscall(SYS_socket, AF_INET, SOCK_DGRAM, 0)));
  const long raised = RaiseLoopback(datagram.get());
  const long route = Syscall(SYS_socket, AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
  const long netfilter = Syscall(SYS_socket, AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER);
  const long stream6 =
      family == RedirectFamily::kIpv6 ? Syscall(SYS_socket, AF_INET6, SOCK_STREAM, 0) : 0;
  for (const long answer : {raised, route, netfilter, stream6}) {
    if (answer < 0) {
      return static_cast<int>(-answer);
    }
  }
  const Result<NameRedirect> made =
      EnforceNameRedirect(static_cast<int>(route), static_cast<int>(netfilter));
  if (!made.ok()) {
    return made.error().sys_errno;
  }
  return family == RedirectFamily::kIpv6 && made->ipv4_only ? made->ipv4_only->sys_errno : 0;
}

}  // namespace

Result<NameRedirect> EnforceNameRedirect(int route, int netfilter) {
  TRY(MakeAddress(route));
  const Status both = MakeBoth(route, netfilter);
  if (both.ok()) {
    return NameRedirect();
  }
  const Family ipv4[] = {Ipv4()};
  TRY(MakeRules(netfilter, ipv4));
  return NameRedirect{both.error()};
}

Status CheckNameRedirect(RedirectFamily family) {
  clone_args args{};
  args.flags = CLONE_NEWUSER | CLONE_NEWNET;
  args.exit_signal = SIGCHLD;
  const long pid = Syscall(SYS_clone3, Arg(&args), sizeof(args));
  if (pid == 0) {
    ::_exit(TryRedirect(family));
  }
  int status = 0;
  while (pid > 0 && Syscall(SYS_wait4, pid, Arg(&status), 0, 0) == -EINTR) {
  }
  const long answer = pid < 0 ? pid : WIFEXITED(status) ? -WEXITSTATUS(status) : -EIO;
  const char* const what =
      family == RedirectFamily::kIpv6 ? "tproxy of nftables for IPv6" : "tproxy of nftables";
  return answer < 0 ? Status(sys::ErrnoError("isolation.redirect", what, answer)) : Status();
}

}  // namespace coffer::isolation
