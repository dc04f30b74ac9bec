// SPDX-License-Identifier: Apache-2.0
//
// Text, digests, identifiers and times: the small things that records are made of.
#include "base/text.h"

#include <gtest/gtest.h>

#include <regex>
#include <set>

#include "base/clock.h"
#include "base/hash.h"
#include "base/ids.h"

namespace coffer {
namespace {

TEST(Text, PrintableIsOneLineOfAscii) {
  EXPECT_EQ(Printable("plain text 123"), "plain text 123");
  EXPECT_EQ(Printable("a\nb\tc\x1b[31m\x7f"), "a\\x0ab\\x09c\\x1b[31m\\x7f");
  EXPECT_EQ(Printable("\xc3\xa4\xff"), "\\xc3\\xa4\\xff");
  EXPECT_EQ(Printable(std::string_view("\0x", 2)), "\\x00x");
  EXPECT_EQ(Printable(""), "");
  std::string every;
  for (int byte = 0; byte < 256; ++byte) {
    every += static_cast<char>(byte);
    for (const char c : Printable(every.substr(every.size() - 1))) {
      EXPECT_TRUE(c >= 0x20 && c < 0x7f) << byte;
    }
  }
}

TEST(Text, PrintableIsBounded) {
  EXPECT_EQ(Printable(std::string(200, 'x')), std::string(200, 'x'));
  EXPECT_EQ(Printable(std::string(201, 'x')), std::string(200, 'x') + "...");
  EXPECT_LE(Printable(std::string(1 << 20, '\n')).size(), 207U);
}

TEST(Hash, KnownVectors) {
  EXPECT_EQ(HashOf(""), "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(HashOf("abc"),
            "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(HashOf("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "sha256:248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  Sha256 million;
  const std::string part(999, 'a');
  for (int i = 0; i < 1001; ++i) {
    million.Update(part);
  }
  million.Update("a");  // 999 * 1001 + 1
  EXPECT_EQ(million.Finish(),
            "sha256:cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Ids, AreVersion7UniqueAndSortedByTime) {
  const std::regex form("[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}");
  std::set<std::string> seen;
  std::string last;
  const Nanos before = WallTime();
  for (int i = 0; i < 2000; ++i) {
    const Result<std::string> id = NewId();
    ASSERT_TRUE(id.ok());
    ASSERT_TRUE(std::regex_match(*id, form)) << *id;
    EXPECT_TRUE(seen.insert(*id).second) << "twice: " << *id;
    EXPECT_GE(id->substr(0, 13), last.substr(0, 13));  // the milliseconds
    last = *id;
  }
  const auto millis = std::stoull(last.substr(0, 8) + last.substr(9, 4), nullptr, 16);
  EXPECT_GE(Nanos(std::chrono::milliseconds(millis)), before - std::chrono::milliseconds(1));
  EXPECT_LE(Nanos(std::chrono::milliseconds(millis)), WallTime());
}

TEST(Clock, TimesAreRfc3339InUtc) {
  EXPECT_EQ(FormatTime(Nanos(0)), "1970-01-01T00:00:00.000Z");
  EXPECT_EQ(FormatTime(std::chrono::seconds(951826554) + std::chrono::milliseconds(7)),
            "2000-02-29T12:15:54.007Z");
  EXPECT_EQ(FormatTime(std::chrono::seconds(4102444799) + Nanos(999999999)),
            "2099-12-31T23:59:59.999Z");
  const Nanos first = BootTime();
  EXPECT_GE(BootTime(), first);
}

}  // namespace
}  // namespace coffer
