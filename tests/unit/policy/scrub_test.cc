// SPDX-License-Identifier: Apache-2.0
#include "policy/scrub.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <nlohmann/json.hpp>

namespace coffer::policy {
namespace {

// The needle is in every text and must be in no result.
constexpr const char* kNeedle = "Zq9Zq9Zq9Zq9Zq9Zq9Zq9Zq9Zq9Zq9Zq9";

TEST(Scrub, SecretsByShapeAreGone) {
  const std::string needle = kNeedle;
  for (const std::string& text :
       {"AKIA" + needle, "key sk-" + needle + " end", "ghp_" + needle, "xoxb-" + needle,
        "Authorization: Bearer " + needle, "authorization: basic " + needle,
        "postgres://app:" + needle + "@db.example.com/x", "password=" + needle,
        "curl --token " + needle + " x", "{\"api_key\": \"" + needle + "\"}",
        "curl -H 'X-Auth-Token: " + needle + "'", "eyJhbGciOiJub25lIn0.eyJzdWIiOiJ4In0." + needle,
        "-----BEGIN RSA PRIVATE KEY-----\n" + needle + "\n-----END RSA PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\n" + needle, "coffer_0123_" + needle}) {
    const std::string scrubbed = ScrubText(text);
    EXPECT_EQ(scrubbed.find(needle), std::string::npos) << scrubbed;
    EXPECT_NE(scrubbed.find("<redacted: "), std::string::npos) << scrubbed;
  }
}

TEST(Scrub, WhatIsAroundASecretStays) {
  EXPECT_EQ(ScrubText("a password=hunter2, b"), "a password=<redacted: value>, b");
  EXPECT_EQ(ScrubText("postgres://app:pw@db/x"), "postgres://app:<redacted: password>@db/x");
}

// The control: text without secrets is not touched.
TEST(Scrub, PlainTextIsNotTouched) {
  for (const std::string text :
       {"print(2 + 2)", "https://example.com/a?b=c", "the token is in the drawer", "max_tokens=100",
        "-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----", "task-list sk-",
        "Bearer of bad news", "user@example.com: hello", ""}) {
    EXPECT_EQ(ScrubText(text), text);
  }
}

TEST(Scrub, NamesDecideInDocuments) {
  const Json scrubbed = ScrubJson({{"user", "ann"},
                                   {"Password", "short"},
                                   {"nested", {{"clientSecret", {1, 2}}, {"max_tokens", 5}}},
                                   {"list", {"ok", "password: x"}}});
  EXPECT_EQ(scrubbed.dump(),
            R"({"user":"ann","Password":"<redacted: value>","nested":{"clientSecret":)"
            R"("<redacted: value>","max_tokens":5},"list":["ok","password: <redacted: value>"]})");
}

TEST(Scrub, HostileTextIsScannedInLinearTime) {
  for (const std::string piece : {"eyJ-", "sk-a", "a-", "://", "password", "-----BEGIN "}) {
    std::string small;
    std::string large;
    while (large.size() < (1 << 20)) {
      large += piece;
      if (small.size() < (1 << 16)) {
        small += piece;
      }
    }
    // Processor time: other processes of a busy machine do not count.
    const auto took = [](const std::string& text) {
      const std::clock_t start = std::clock();
      EXPECT_GT(ScrubText(text).size(), 0U);
      return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    };
    // 16 times the text: a quadratic search would take 256 times as long.
    EXPECT_LT(took(large), 100 * std::max(took(small), 0.0002)) << piece;
  }
}

}  // namespace
}  // namespace coffer::policy
