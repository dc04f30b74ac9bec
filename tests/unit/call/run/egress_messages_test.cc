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
  return {"api.example.com", 443, "GET", "/v1/a", true, "api.example.com:443", "", "", 12, 34, 56};
}

TEST(EgressMessages, GrantsGoThereAndBack) {
  const policy::EgressTexts texts{
      {"a.example.com"}, {"a.example.com=192.0.2.1"}, {"10.0.0.0/8"}, "PEM"};
  const Result<policy::EgressTexts> back = DecodeGrants(EncodeGrants(texts));
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back->allow, texts.allow);
  EXPECT_EQ(back->resolve, texts.resolve);
  EXPECT_EQ(back->addresses, texts.addresses);
  EXPECT_EQ(back->upstream_ca, texts.upstream_ca);
  for (const char* const broken : {"", "{}", "[]", R"({"allow":"x"})"}) {
    EXPECT_FALSE(DecodeGrants(broken).ok()) << broken;
  }
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
}

// Whatever bytes a payload makes the process write down, an entry stays one line of bounded size.
TEST(EgressMessages, AnEntryIsOneBoundedLine) {
  EgressEntry entry = Sample();
  entry.host.assign(100000, 'a');
  entry.host += "\n{\"host\":";
  entry.path = std::string(600, '\x01');
  entry.method = entry.rule = entry.reason = entry.fix = std::string(600, '\x01');
  const std::string line = EncodeEntry(entry);
  EXPECT_LE(line.size(), kMostEntryBytes);
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  const EgressLog log = DecodeLog(LogOf({}, line));
  EXPECT_FALSE(log.broken);
  ASSERT_EQ(log.entries.size(), 1u);
  EXPECT_EQ(log.entries[0].bytes_out, 12u);
}

TEST(EgressMessages, ALogThatIsNotOneIsBroken) {
  const std::string line = EncodeEntry(Sample());
  EXPECT_TRUE(DecodeLog("").broken);
  EXPECT_TRUE(DecodeLog("short").broken);
  EXPECT_FALSE(DecodeLog(LogOf({}, "")).broken) << "the control";
  for (const std::string& lines :
       {line.substr(0, line.size() - 1), std::string("{}\n"), std::string("x\n"), line + "null\n",
        std::string(kMostEntryBytes, ' ') + "\n"}) {
    EXPECT_TRUE(DecodeLog(LogOf({}, lines)).broken) << lines;
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
