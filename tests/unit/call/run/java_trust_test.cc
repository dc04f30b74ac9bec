// SPDX-License-Identifier: Apache-2.0
#include "call/run/java_trust.h"

#include <gtest/gtest.h>

namespace coffer::call {
namespace {

using namespace std::string_literals;

std::string Block(const std::string& base64) {
  return "-----BEGIN CERTIFICATE-----\n" + base64 + "\n-----END CERTIFICATE-----\n";
}

std::string StoreOf(const std::string& bundle) {
  JavaTrustStore store;
  store.Add(bundle);
  return store.Take();
}

// Behind the magic number and the version.
std::string Count(const std::string& store) { return store.substr(8, 4); }

TEST(JavaTrust, HasAnEntryForEachCertificate) {
  const std::string store = StoreOf("# one\n" + Block("YW\nJj") + "# two\r\n" + Block("ZGU="));
  EXPECT_EQ(store,
            "\xfe\xed\xfe\xed\0\0\0\2\0\0\0\2"
            "\0\0\0\2\0\x08"
            "coffer-1\0\0\0\0\0\0\0\0\0\5X.509\0\0\0\3"
            "abc"
            "\0\0\0\2\0\x08"
            "coffer-2\0\0\0\0\0\0\0\0\0\5X.509\0\0\0\2"
            "de"s);
}

TEST(JavaTrust, OfSeveralTexts) {
  JavaTrustStore store;
  store.Add(Block("YWJj"));
  store.Add("");
  store.Add(Block("ZGU="));
  EXPECT_EQ(store.Take(), StoreOf(Block("YWJj") + Block("ZGU=")));
}

TEST(JavaTrust, AnEndMakesItWhole) {
  JavaTrustStore store;
  store.Add(Block("YWJj"));
  const std::optional<std::string> end = JavaTrustStore::EndOf("# ours\n" + Block("ZGU="));
  ASSERT_TRUE(end);
  EXPECT_EQ(store.Take(JavaTrustStore::Then::kOneMore) + *end,
            "\xfe\xed\xfe\xed\0\0\0\2\0\0\0\2"
            "\0\0\0\2\0\x08"
            "coffer-1\0\0\0\0\0\0\0\0\0\5X.509\0\0\0\3"
            "abc"
            "\0\0\0\2\0\x0f"
            "coffer-boundary\0\0\0\0\0\0\0\0\0\5X.509\0\0\0\2"
            "de"s);
  // The store says one more: neither none nor two.
  EXPECT_FALSE(JavaTrustStore::EndOf(""));
  EXPECT_FALSE(JavaTrustStore::EndOf(Block("?")));
  EXPECT_FALSE(JavaTrustStore::EndOf(Block("YWJj") + Block("ZGU=")));
  EXPECT_FALSE(JavaTrustStore::EndOf("-----END CERTIFICATE----------BEGIN CERTIFICATE-----"));
}

TEST(JavaTrust, SpacesInsideACertificateDoNotMatter) {
  const std::string plain = StoreOf(Block("YWJjZGVm"));
  for (const char* const text :
       {"YWJj\r\nZGVm\r", "  YWJj\n\tZGVm ", "YW Jj ZG Vm", "YWJj\n\nZGVm"}) {
    EXPECT_EQ(StoreOf(Block(text)), plain) << text;
  }
}

TEST(JavaTrust, LeavesOutWhatIsNoCertificate) {
  EXPECT_EQ(Count(StoreOf("")), "\0\0\0\0"s);
  EXPECT_EQ(Count(StoreOf(Block("a?==") + Block("YWJj"))), "\0\0\0\1"s);
  // Cut off: not half a certificate.
  EXPECT_EQ(Count(StoreOf(Block("YWJj") + "-----BEGIN CERTIFICATE-----\nYWJj\n")), "\0\0\0\1"s);
}

}  // namespace
}  // namespace coffer::call
