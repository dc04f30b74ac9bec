// SPDX-License-Identifier: Apache-2.0
//
// The fast way never says yes where the proper way says no.
#include "audit/log/body_match.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "audit/receipt.h"
#include "audit/seal.h"
#include "base/hash.h"
#include "base/json.h"

namespace coffer::audit {
namespace {

// The proper way.
Result<std::string> BodyHash(const std::string& text) {
  TRY_ASSIGN(const std::string canonical, CanonicalReceipt(text));
  return HashOf(canonical);
}

std::string Sample() {
  Receipt receipt;
  receipt.identity.call_id = "c1";
  receipt.args_redacted = {"a \"quoted\" \\ word", "with { [ , : and \n controls \x01", "ü"};
  receipt.denials.push_back({"isolation", "syscall", "unshare(\"log\": 1)", "r", "why", "fix", 3});
  receipt.limits.push_back({"cpu", {10, 3, "ns", true}});
  receipt.incidents = {"\"signature\":", "log"};
  receipt.outcome = "success";
  Json document = ParseJson(FormatReceipt(receipt)).value();
  document["log"] = {{"index", 1}, {"leaf", "{\"a\":\"}]\"}"}, {"proof", {"ab", "cd"}}};
  document["signature"] = {{"value", "x"}};
  return PrintJson(document, 2) + "\n";
}

TEST(BodyMatch, TheFastWayGivesTheCanonicalForm) {
  const std::string text = Sample();
  ASSERT_TRUE(CompactReceipt(text).has_value());
  EXPECT_EQ(*CompactReceipt(text), CanonicalReceipt(text).value());
  EXPECT_TRUE(MatchBody(text, BodyHash(text).value()));
  EXPECT_FALSE(MatchBody(text, "sha256:" + std::string(64, 'a')));
  EXPECT_FALSE(MatchBody(text, ""));
}

// Good, and written otherwise: found the slow way.
TEST(BodyMatch, AnotherSpellingIsReadProperly) {
  const std::string text = Sample();
  const std::string body = BodyHash(text).value();
  nlohmann::ordered_json document = nlohmann::ordered_json::parse(text);
  nlohmann::ordered_json turned;
  for (auto at = document.rbegin(); at != document.rend(); ++at) {
    turned[at.key()] = at.value();
  }
  EXPECT_TRUE(MatchBody(turned.dump(), body)) << "members in another order";
  EXPECT_TRUE(MatchBody(document.dump(1, '\t'), body));
  EXPECT_TRUE(MatchBody(document.dump(-1, ' ', /*ensure_ascii=*/true), body));
}

// Whatever is done to one byte: the fast way alone never calls good what the proper way does not.
TEST(BodyMatch, NoChangedByteIsGood) {
  const std::string text = Sample();
  const std::string body = BodyHash(text).value();
  size_t told = 0;
  for (size_t i = 0; i < text.size(); i += 2 + i % 5) {
    for (const char put : {' ', '"', '0', ','}) {
      std::string changed = text;
      changed[i] = put;
      const Result<std::string> properly = BodyHash(changed);
      const bool good = properly.ok() && *properly == body;
      EXPECT_EQ(MatchBody(changed, body).has_value(), good) << i << " " << put;
      told += good ? 0 : 1;
    }
    std::string without = text;
    without.erase(i, 1);
    const Result<std::string> properly = BodyHash(without);
    EXPECT_EQ(MatchBody(without, body).has_value(), properly.ok() && *properly == body) << i;
  }
  EXPECT_GT(told, text.size() / 2) << "the control";
  EXPECT_FALSE(CompactReceipt("{\"a\":1 2}").has_value()) << "no numbers are joined";
  EXPECT_FALSE(CompactReceipt("{\"a\":tr ue}").has_value());
  EXPECT_FALSE(CompactReceipt("{\"log\":}").has_value());
  EXPECT_FALSE(CompactReceipt("{\"log\":{\"a\" \"b\"}}").has_value());
  EXPECT_FALSE(CompactReceipt("{\"log\":{\"a\":tru}}").has_value());
  EXPECT_FALSE(CompactReceipt("{\"a\":1,\"a\":2}").has_value()) << "which of them?";
  EXPECT_FALSE(CompactReceipt("{\"a\":1}}").has_value());
  EXPECT_FALSE(CompactReceipt("{\"a\":[1,]}").has_value());
  EXPECT_FALSE(CompactReceipt(std::string(1000, '[')).has_value());
  EXPECT_FALSE(CompactReceipt("{\"a\":\"").has_value());
}

}  // namespace
}  // namespace coffer::audit
