// SPDX-License-Identifier: Apache-2.0
#include "call/run/egress_messages.h"

#include <gtest/gtest.h>
#include <string.h>

namespace coffer::call {
namespace {

std::string LogOf(const EgressLogHead& head, const std::string& lines) {
  return std::string(reinterpret_cast<const char*>(&head), sizeof(head)) + lines;
}

EgressEntry Sample() {
  return {"api.example.com", 443, "GET", "/v1/a", true, "api.example.com:443", "", "", 12, 34, 56,
          "10.1.2.3"};
}

TEST(EgressMessages, GrantsGoThereAndBack) {
  EgressOrder order;
  order.grants.allow = {"a.example.com"};
  order.grants.resolve = {"a.example.com=192.0.2.1"};
  order.grants.addresses = {"10.0.0.0/8"};
  order.grants.upstream_ca = "PEM";
  order.grants.never_send = "a value\n";
  order.own = {"192.0.2.9"};
  Result<EgressOrder> back = DecodeOrder(EncodeOrder(order));
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back->grants.allow, order.grants.allow);
  EXPECT_EQ(back->grants.resolve, order.grants.resolve);
  EXPECT_EQ(back->grants.addresses, order.grants.addresses);
  EXPECT_EQ(back->grants.upstream_ca, order.grants.upstream_ca);
  EXPECT_EQ(back->grants.never_send, order.grants.never_send);
  EXPECT_EQ(back->own, order.own);
  EXPECT_FALSE(back->grants.of_tool);
  order.grants.of_tool = true;
  order.grants.lines = {"{}"};
  order.grants.connections = 4;
  back = DecodeOrder(EncodeOrder(order));
  ASSERT_TRUE(back.ok());
  EXPECT_TRUE(back->grants.of_tool);
  EXPECT_EQ(back->grants.lines, order.grants.lines);
  EXPECT_EQ(back->grants.connections, 4u);
  for (const char* const broken : {"", "{}", "[]", R"({"allow":"x"})"}) {
    EXPECT_FALSE(DecodeOrder(broken).ok()) << broken;
  }
}

// The id of a call's envelope is a hash of this text: guesses at a value cannot be tested against it.
TEST(EgressMessages, ValuesThatMustNotLeaveAreNotHashed) {
  policy::EgressTexts grants;
  grants.allow = {"https://a.example.com/x"};
  const std::string without = EncodeGrants(grants);
  grants.never_send = "first value\n";
  const std::string first = EncodeGrants(grants);
  grants.never_send = "second value\n";
  EXPECT_NE(first, without);
  EXPECT_EQ(first, EncodeGrants(grants));
}

TEST(EgressMessages, EntriesGoThereAndBack) {
  const EgressLog log = DecodeLog(LogOf({3, 4, 5}, EncodeEntry(Sample()) + EncodeEntry(Sample())));
  EXPECT_FALSE(log.broken);
  EXPECT_EQ(log.head.omitted, 3u);
  ASSERT_EQ(log.entries.size(), 2u);
  EXPECT_EQ(log.entries[1].host, "api.example.com");
  EXPECT_EQ(log.entries[1].port, 443);
  EXPECT_EQ(log.entries[1].path, "/v1/a");
  EXPECT_TRUE(log.entries[1].allowed);
  EXPECT_EQ(log.entries[1].bytes_in, 34u);
  EXPECT_EQ(log.entries[1].leads_to, "10.1.2.3");
  EXPECT_FALSE(log.entries[1].held_value);
  EgressEntry held = Sample();
  held.held_value = true;
  EXPECT_TRUE(DecodeLog(LogOf({}, EncodeEntry(held))).entries.at(0).held_value);
}

// Whatever bytes a payload makes the process write down, an entry has a bounded size and stays one entry.
TEST(EgressMessages, AnEntryIsBounded) {
  EgressEntry entry = Sample();
  entry.host.assign(100000, 'a');
  entry.path = std::string(600, '\0');
  entry.method = entry.rule = entry.reason = entry.fix = std::string(600, '\x01');
  const std::string bytes = EncodeEntry(entry);
  EXPECT_LE(bytes.size(), kMostEntryBytes);
  const EgressLog log = DecodeLog(LogOf({}, bytes + EncodeEntry(Sample())));
  EXPECT_FALSE(log.broken);
  ASSERT_EQ(log.entries.size(), 2u);
  EXPECT_EQ(log.entries[0].bytes_out, 12u);
  EXPECT_EQ(log.entries[1].host, "api.example.com");
}

TEST(EgressMessages, ALogThatIsNotOneIsBroken) {
  const std::string entry = EncodeEntry(Sample());
  EXPECT_TRUE(DecodeLog("").broken);
  EXPECT_TRUE(DecodeLog("short").broken);
  EXPECT_FALSE(DecodeLog(LogOf({}, "")).broken) << "the control";
  for (const std::string& bytes :
       {entry.substr(0, entry.size() - 1), std::string("x"), std::string(8, '\0'), entry + "x",
        entry + std::string(8, '\xff'), std::string(kMostEntryBytes, ' ')}) {
    EXPECT_TRUE(DecodeLog(LogOf({}, bytes)).broken) << bytes.size();
  }
  EXPECT_TRUE(DecodeLog(LogOf({}, std::string(kMostLogBytes, '\n'))).broken);
}

// No byte that is changed makes the reader do more than call it broken.
TEST(EgressMessages, EveryChangedByteIsSurvived) {
  const std::string good = LogOf({}, EncodeEntry(Sample()));
  for (size_t at = 0; at < good.size(); ++at) {
    for (const char byte : {'\0', '\n', '"', '{', '9', '\xff'}) {
      std::string changed = good;
      changed[at] = byte;
      EXPECT_LE(DecodeLog(changed).entries.size(), 1u) << at;
    }
  }
}

}  // namespace
}  // namespace coffer::call
