// SPDX-License-Identifier: Apache-2.0
#include "isolation/name_datagrams.h"

#include <endian.h>
#include <gtest/gtest.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>

#include <string>

namespace coffer::isolation {
namespace {

template <typename T>
std::string RawText(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}

std::string Attribute(uint16_t type, const std::string& value) {
  const nlattr head{static_cast<uint16_t>(NLA_HDRLEN + value.size()), type};
  std::string text = RawText(head) + value;
  text.resize(NLA_ALIGN(text.size()));
  return text;
}

std::string Message(uint16_t type, const std::string& payload) {
  nlmsghdr head{};
  head.nlmsg_len = static_cast<uint32_t>(sizeof(head) + payload.size());
  head.nlmsg_type = type;
  std::string text = RawText(head) + payload;
  text.resize(NLMSG_ALIGN(text.size()));
  return text;
}

std::string Expression(const std::string& name, const std::string& data) {
  return Attribute(
      NFTA_LIST_ELEM | NLA_F_NESTED,
      Attribute(NFTA_EXPR_NAME, name + '\0') + Attribute(NFTA_EXPR_DATA | NLA_F_NESTED, data));
}

std::string Counter(uint64_t packets) {
  return Expression("counter", Attribute(NFTA_COUNTER_BYTES, RawText(htobe64(1000))) +
                                   Attribute(NFTA_COUNTER_PACKETS, RawText(htobe64(packets))));
}

std::string RuleMessage(const std::string& expressions) {
  return Message(NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWRULE,
                 RawText(nfgenmsg{}) + Attribute(NFTA_RULE_TABLE, std::string("coffer") + '\0') +
                     Attribute(NFTA_RULE_EXPRESSIONS | NLA_F_NESTED, expressions));
}

const std::string kDone = Message(NLMSG_DONE, RawText(0));

TEST(NameDatagrams, CountersOfAllRulesAreAddedUp) {
  const std::string other = Expression("meta", Attribute(1, RawText(0)));
  EXPECT_EQ(CountedPackets(RuleMessage(other) + RuleMessage(other + Counter(3)) +
                           RuleMessage(Counter(1ULL << 40)) + kDone),
            (1ULL << 40) + 3);
  EXPECT_EQ(CountedPackets(RuleMessage(Counter(0)) + kDone), 0U);
}

TEST(NameDatagrams, AListThatIsNotWholeSaysNothing) {
  const std::string rules = RuleMessage(Counter(3)) + kDone;
  EXPECT_EQ(CountedPackets(rules), 3U) << "the control";
  EXPECT_FALSE(CountedPackets(""));
  EXPECT_FALSE(CountedPackets(kDone));
  EXPECT_FALSE(CountedPackets(RuleMessage(Expression("meta", "")) + kDone)) << "no rule counts";
  EXPECT_FALSE(CountedPackets(RuleMessage(Expression("counter", "")) + kDone)) << "no number";
  for (size_t size = 0; size + kDone.size() < rules.size(); ++size) {
    EXPECT_FALSE(CountedPackets(rules.substr(0, size))) << size;
  }
}

TEST(NameDatagrams, WithoutASocketNothingIsCounted) {
  EXPECT_FALSE(NameDatagrams().opened());
  EXPECT_FALSE(NameDatagrams().Count());
}

}  // namespace
}  // namespace coffer::isolation
