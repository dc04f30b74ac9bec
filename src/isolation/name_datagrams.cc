// SPDX-License-Identifier: Apache-2.0
#include "isolation/name_datagrams.h"

#include <endian.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/socket.h>

#include <algorithm>
#include <string>

#include "base/result.h"
#include "isolation/netlink_request.h"

namespace coffer::isolation {
namespace {

// Takes the first attribute of `attributes`; nothing if there is no whole one.
struct Attribute {
  uint16_t type = 0;
  std::string_view value;
};
std::optional<Attribute> TakeAttribute(std::string_view& attributes) {
  nlattr head{};
  if (attributes.size() < sizeof(head)) {
    return std::nullopt;
  }
  memcpy(&head, attributes.data(), sizeof(head));
  if (head.nla_len < sizeof(head) || head.nla_len > attributes.size()) {
    return std::nullopt;
  }
  const Attribute taken{static_cast<uint16_t>(head.nla_type & NLA_TYPE_MASK),
                        attributes.substr(sizeof(head), head.nla_len - sizeof(head))};
  attributes.remove_prefix(std::min<size_t>(NLA_ALIGN(head.nla_len), attributes.size()));
  return taken;
}

std::string_view FindAttribute(std::string_view attributes, uint16_t type) {
  while (const std::optional<Attribute> attribute = TakeAttribute(attributes)) {
    if (attribute->type == type) {
      return attribute->value;
    }
  }
  return {};
}

// Of one expression of a rule; nothing if it is not a counter.
std::optional<uint64_t> PacketsOf(std::string_view expression) {
  const std::string_view name = FindAttribute(expression, NFTA_EXPR_NAME);
  if (name != std::string_view("counter", sizeof("counter"))) {
    return std::nullopt;
  }
  const std::string_view packets =
      FindAttribute(FindAttribute(expression, NFTA_EXPR_DATA), NFTA_COUNTER_PACKETS);
  uint64_t number = 0;
  if (packets.size() != sizeof(number)) {
    return std::nullopt;
  }
  memcpy(&number, packets.data(), sizeof(number));
  return be64toh(number);
}

}  // namespace

std::optional<uint64_t> CountedPackets(std::string_view rules) {
  uint64_t sum = 0;
  bool found = false;
  nlmsghdr head{};
  while (rules.size() >= sizeof(head)) {
    memcpy(&head, rules.data(), sizeof(head));
    if (head.nlmsg_len < sizeof(head) || head.nlmsg_len > rules.size()) {
      return std::nullopt;
    }
    if (head.nlmsg_type == NLMSG_DONE) {
      return found ? std::optional(sum) : std::nullopt;
    }
    const std::string_view message = rules.substr(0, head.nlmsg_len);
    rules.remove_prefix(std::min<size_t>(NLMSG_ALIGN(head.nlmsg_len), rules.size()));
    if (head.nlmsg_type != NftType(NFT_MSG_NEWRULE) ||
        message.size() < NLMSG_LENGTH(sizeof(nfgenmsg))) {
      continue;
    }
    std::string_view expressions =
        FindAttribute(message.substr(NLMSG_SPACE(sizeof(nfgenmsg))), NFTA_RULE_EXPRESSIONS);
    while (const std::optional<Attribute> expression = TakeAttribute(expressions)) {
      const std::optional<uint64_t> packets = PacketsOf(expression->value);
      found = found || packets.has_value();
      sum += packets.value_or(0);
    }
  }
  return std::nullopt;
}

std::optional<uint64_t> NameDatagrams::Count() const {
  if (!netfilter_.valid()) {
    return std::nullopt;
  }
  const nfgenmsg any{AF_UNSPEC, NFNETLINK_V0, 0};
  NetlinkRequest request;
  request.Begin(NftType(NFT_MSG_GETRULE), NLM_F_DUMP,
                {reinterpret_cast<const char*>(&any), sizeof(any)});
  const Result<std::string> rules =
      request.Ask(netfilter_.get(), "cannot list the rules of nftables");
  return rules.ok() ? CountedPackets(*rules) : std::nullopt;
}

}  // namespace coffer::isolation
