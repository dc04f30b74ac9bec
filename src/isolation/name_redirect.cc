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
constexpr uint32_t kDestination = 16;                      // its offset in the IPv4 header
constexpr std::string_view kTable = "coffer";
constexpr std::string_view kChain = "names";

template <typename T>
std::string_view BytesOf(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}

constexpr uint16_t Nft(uint16_t message) {
  return static_cast<uint16_t>(NFNL_SUBSYS_NFTABLES << 8 | message);
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

void AddCompare(NetlinkRequest& request, std::string_view value) {
  AddExpression(request, "cmp", [&] {
    request.AddBigEndian(NFTA_CMP_SREG, NFT_REG32_00);
    request.AddBigEndian(NFTA_CMP_OP, NFT_CMP_EQ);
    AddValue(request, NFTA_CMP_DATA, value);
  });
}

void AddLoad(NetlinkRequest& request, uint32_t place, std::string_view value) {
  AddExpression(request, "immediate", [&] {
    request.AddBigEndian(NFTA_IMMEDIATE_DREG, place);
    AddValue(request, NFTA_IMMEDIATE_DATA, value);
  });
}

// meta l4proto tcp ip daddr 198.18.0.0/15 tproxy to 198.18.0.1:3129
void AddExpressions(NetlinkRequest& request) {
  const uint8_t tcp = IPPROTO_TCP;
  const uint16_t port = htons(policy::kRedirectPort);
  const std::array<uint8_t, 4> none{};
  AddExpression(request, "meta", [&] {
    request.AddBigEndian(NFTA_META_DREG, NFT_REG32_00);
    request.AddBigEndian(NFTA_META_KEY, NFT_META_L4PROTO);
  });
  AddCompare(request, BytesOf(tcp));
  AddExpression(request, "payload", [&] {
    request.AddBigEndian(NFTA_PAYLOAD_DREG, NFT_REG32_00);
    request.AddBigEndian(NFTA_PAYLOAD_BASE, NFT_PAYLOAD_NETWORK_HEADER);
    request.AddBigEndian(NFTA_PAYLOAD_OFFSET, kDestination);
    request.AddBigEndian(NFTA_PAYLOAD_LEN, sizeof(in_addr));
  });
  AddExpression(request, "bitwise", [&] {
    request.AddBigEndian(NFTA_BITWISE_SREG, NFT_REG32_00);
    request.AddBigEndian(NFTA_BITWISE_DREG, NFT_REG32_00);
    request.AddBigEndian(NFTA_BITWISE_LEN, sizeof(in_addr));
    AddValue(request, NFTA_BITWISE_MASK, BytesOf(policy::kSyntheticMask));
    AddValue(request, NFTA_BITWISE_XOR, BytesOf(none));
  });
  AddCompare(request, BytesOf(policy::kSyntheticBlock));
  AddLoad(request, NFT_REG32_00, BytesOf(policy::kResolverAddress));
  AddLoad(request, NFT_REG32_01, BytesOf(port));
  AddExpression(request, "tproxy", [&] {
    request.AddBigEndian(NFTA_TPROXY_FAMILY, NFPROTO_IPV4);
    request.AddBigEndian(NFTA_TPROXY_REG_ADDR, NFT_REG32_00);
    request.AddBigEndian(NFTA_TPROXY_REG_PORT, NFT_REG32_01);
  });
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

// A table, a chain and a rule, all or none.
Status MakeRule(int socket) {
  const nfgenmsg batch{AF_UNSPEC, NFNETLINK_V0, htons(NFNL_SUBSYS_NFTABLES)};
  const nfgenmsg ipv4{NFPROTO_IPV4, NFNETLINK_V0, 0};
  NetlinkRequest request;
  request.Begin(NFNL_MSG_BATCH_BEGIN, 0, BytesOf(batch));
  request.Begin(Nft(NFT_MSG_NEWTABLE), NLM_F_CREATE | NLM_F_EXCL, BytesOf(ipv4));
  request.AddText(NFTA_TABLE_NAME, kTable);
  request.Begin(Nft(NFT_MSG_NEWCHAIN), NLM_F_CREATE | NLM_F_EXCL, BytesOf(ipv4));
  request.AddText(NFTA_CHAIN_TABLE, kTable);
  request.AddText(NFTA_CHAIN_NAME, kChain);
  const size_t hook = request.BeginNested(NFTA_CHAIN_HOOK);
  request.AddBigEndian(NFTA_HOOK_HOOKNUM, NF_INET_PRE_ROUTING);
  request.AddBigEndian(NFTA_HOOK_PRIORITY, kMangle);
  request.EndNested(hook);
  request.AddText(NFTA_CHAIN_TYPE, "filter");
  request.Begin(Nft(NFT_MSG_NEWRULE), NLM_F_ACK | NLM_F_CREATE | NLM_F_APPEND, BytesOf(ipv4));
  request.AddText(NFTA_RULE_TABLE, kTable);
  request.AddText(NFTA_RULE_CHAIN, kChain);
  const size_t expressions = request.BeginNested(NFTA_RULE_EXPRESSIONS);
  AddExpressions(request);
  request.EndNested(expressions);
  request.Begin(NFNL_MSG_BATCH_END, 0, BytesOf(batch));
  return request.Send(socket, "cannot make a tproxy rule of nftables");
}

// In a child with a network of its own. 0, or the errno that stands in the way.
int TryRedirect() {
  const UniqueFd datagram(static_cast<int>(Syscall(SYS_socket, AF_INET, SOCK_DGRAM, 0)));
  const long raised = RaiseLoopback(datagram.get());
  const long route = Syscall(SYS_socket, AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
  const long netfilter = Syscall(SYS_socket, AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER);
  for (const long answer : {raised, route, netfilter}) {
    if (answer < 0) {
      return static_cast<int>(-answer);
    }
  }
  const Status made = EnforceNameRedirect(static_cast<int>(route), static_cast<int>(netfilter));
  return made.ok() ? 0 : made.error().sys_errno;
}

}  // namespace

Status EnforceNameRedirect(int route, int netfilter) {
  TRY(MakeAddress(route));
  return MakeRule(netfilter);
}

Status CheckNameRedirect() {
  clone_args args{};
  args.flags = CLONE_NEWUSER | CLONE_NEWNET;
  args.exit_signal = SIGCHLD;
  const long pid = Syscall(SYS_clone3, Arg(&args), sizeof(args));
  if (pid == 0) {
    ::_exit(TryRedirect());
  }
  int status = 0;
  while (pid > 0 && Syscall(SYS_wait4, pid, Arg(&status), 0, 0) == -EINTR) {
  }
  const long answer = pid < 0 ? pid : WIFEXITED(status) ? -WEXITSTATUS(status) : -EIO;
  return answer < 0 ? Status(sys::ErrnoError("isolation.redirect", "tproxy of nftables", answer))
                    : Status();
}

}  // namespace coffer::isolation
