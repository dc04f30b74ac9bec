// SPDX-License-Identifier: Apache-2.0
//
// A redirect is a new request: it is judged like any other, and only the server that is allowed is contacted.
#include <gtest/gtest.h>

#include "tests/support/egress_fixture.h"

namespace coffer::test {
namespace {

class EgressRedirect : public EgressFixture {
 protected:
  void SetUp() override {
    EgressFixture::SetUp();
    if (RunProgram({"curl", "--version"}).exit != 0) {
      GTEST_SKIP() << "curl is not installed";
    }
  }
  // curl follows what the server answers. Its status, and the receipt's denials.
  struct Followed {
    std::string out;
    std::string seen;
    Json denials;
  };
  Followed Follow(const std::string& from, const std::string& to, const std::string& flags) {
    (void)Seen();
    const RunResult run =
        RunWith({"--allow", "GET http://api.test:" + std::to_string(plain_) + "/v1/**", "--allow",
                 "GET https://" + Api() + "/v1/**"},
                {"sh", "-c",
                 "curl -sS -L --max-time 20 " + flags + " -w ' %{http_code}' '" + from +
                     "/v1/redirect?to=" + to + "' 2>&1; true"});
    return {run.out, Seen(), Receipt().value("denials", Json::array())};
  }
};

TEST_F(EgressRedirect, TheTargetIsJudgedAnew) {
  const std::string plain = "http://api.test:" + std::to_string(plain_);
  const std::string secure = "https://" + Api();
  // With the variables of the proxy, and by name without them.
  for (const char* const flags : {"", "--noproxy '*'"}) {
    for (const std::string& from : {plain, secure}) {
      for (const std::string& to : {from + "/v1/there", secure + "/v1/there"}) {
        const Followed good = Follow(from, to, flags);
        EXPECT_TRUE(Contains(good.out, "hello /v1/there 200")) << "NO-CONTROL " << to << good.out;
        EXPECT_TRUE(good.denials.empty()) << good.denials.dump();
      }
    }
    const std::string kBad[] = {
        "/v2/there",                                 // another path
        "http://169.254.169.254/latest/meta-data/",  // a number
        "http://127.0.0.1:" + std::to_string(plain_) +
            "/v1/there",                                           // the same server by its number
        "http://api.test:" + std::to_string(mute_) + "/v1/there",  // another port
        "http://other.test:" + std::to_string(plain_) + "/v1/there",  // another name of the server
        "http://" + Api() + "/v1/there",                              // without TLS
    };
    for (const std::string& to : kBad) {
      const Followed bad = Follow(secure, to, flags);
      EXPECT_TRUE(Contains(bad.seen, "GET /v1/redirect")) << "NO-CONTROL " << to << bad.out;
      // One connection with one request: that of the redirect.
      EXPECT_EQ(Lines(bad.seen).size(), 2U) << "OPEN " << to << "\n" << bad.seen;
      EXPECT_FALSE(Contains(bad.out, " 200")) << to << bad.out;
    }
  }
}

// What is refused of it through the proxy is in the receipt as a request of its own.
TEST_F(EgressRedirect, TheRefusalIsWrittenDown) {
  const std::string plain = "http://api.test:" + std::to_string(plain_);
  const Followed bad = Follow(plain, "http://169.254.169.254/latest/", "");
  EXPECT_TRUE(Contains(bad.seen, "GET /v1/redirect")) << "NO-CONTROL " << bad.out;
  EXPECT_TRUE(Contains(bad.out, "host_not_allowed")) << bad.out;
  ASSERT_EQ(bad.denials.size(), 1U) << bad.denials.dump();
  EXPECT_TRUE(Contains(bad.denials.dump(), "169.254.169.254")) << bad.denials.dump();
}

}  // namespace
}  // namespace coffer::test
