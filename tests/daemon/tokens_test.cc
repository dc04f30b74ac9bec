// SPDX-License-Identifier: Apache-2.0
//
// Tokens of an identity provider against the whole daemon: tenants it does not know, and keys that change.
#include <gtest/gtest.h>
#include <signal.h>

#include <ctime>

#include "tests/daemon/daemon.h"
#include "tests/gateway/token_issuer.h"

namespace coffer::test {
namespace {

class Tokens : public ::testing::Test {
 protected:
  void SetUp() override {
    // Readable to nobody but the operator, as such files are kept.
    jwks_ = dir_.Write("jwks.json", issuer_.Jwks(), 0600);
    ASSERT_TRUE(daemon_.Start(
        {"--jwks", jwks_, "--jwt-issuer", "https://issuer", "--jwt-audience", "coffer"}));
  }
  HttpAnswer Tools(const std::string& token) { return daemon_.Ask("GET", "/v1/tools", token); }

  TempDir dir_;
  TokenIssuer issuer_;
  std::string jwks_;
  Daemon daemon_;
};

TEST_F(Tokens, ATenantThatDoesNotExistIsRefused) {
  EXPECT_EQ(Tools(issuer_.Token("local", "agent")).status, 200);
  const std::string token = issuer_.Token("nobody", "operator");
  for (const char* path : {"/v1/tools", "/v1/sessions", "/v1/keys"}) {
    const HttpAnswer answer = daemon_.Ask("GET", path, token);
    EXPECT_EQ(answer.status, 403) << path << answer.text;
    EXPECT_EQ(answer.At("code"), "auth.tenant");
  }
  EXPECT_EQ(daemon_.Call(token, Bash("true")).status, 403);
  EXPECT_EQ(daemon_.Ask("POST", "/v1/sessions", token, "{}").status, 403);
  // What is no name at all is no token of ours.
  for (const std::string tenant : {"", "NOT A NAME", "../etc"}) {
    EXPECT_EQ(Tools(issuer_.Token(tenant, "operator")).status, 401) << tenant;
  }
  // From the moment that somebody makes it.
  daemon_.NewKey("nobody", "agent", "x");
  EXPECT_EQ(Tools(issuer_.Token("nobody", "agent")).status, 200);
}

// A key that a token makes ends with the token, whatever lifetime it asks for.
TEST_F(Tokens, WhatATokenMakesDoesNotOutliveIt) {
  const std::string token = issuer_.Token("local", "operator", 3600);
  const int64_t end = std::time(nullptr) + 3600;
  for (const char* body : {R"({"role":"agent","agent":"x"})",
                           R"({"role":"operator","agent":"x","expires_in_seconds":86400})"}) {
    const HttpAnswer made = daemon_.Ask("POST", "/v1/keys", token, body);
    ASSERT_EQ(made.status, 201) << made.text;
    tm parts{};
    ASSERT_NE(::strptime(made.At("expires_at").c_str(), "%Y-%m-%dT%H:%M:%S", &parts), nullptr)
        << made.text;
    EXPECT_LE(::timegm(&parts), end);
    EXPECT_GT(::timegm(&parts), end - 60);
    // A key that such a key makes neither.
    if (Contains(body, "operator")) {
      const HttpAnswer second =
          daemon_.Ask("POST", "/v1/keys", made.At("key"), R"({"role":"agent","agent":"y"})");
      ASSERT_EQ(second.status, 201) << second.text;
      ASSERT_NE(::strptime(second.At("expires_at").c_str(), "%Y-%m-%dT%H:%M:%S", &parts), nullptr)
          << second.text;
      EXPECT_LE(::timegm(&parts), end);
    }
  }
  // The controls: a shorter life is kept, and an operator's own key makes one without an end.
  const HttpAnswer shorter = daemon_.Ask("POST", "/v1/keys", token,
                                         R"({"role":"agent","agent":"x","expires_in_seconds":60})");
  tm parts{};
  ASSERT_NE(::strptime(shorter.At("expires_at").c_str(), "%Y-%m-%dT%H:%M:%S", &parts), nullptr);
  EXPECT_LT(::timegm(&parts), end - 3000);
  const HttpAnswer own =
      daemon_.Ask("POST", "/v1/keys", daemon_.key(), R"({"role":"agent","agent":"x"})");
  EXPECT_TRUE(own.body["expires_at"].is_null()) << own.text;
}

TEST_F(Tokens, TheKeysChangeOnHangup) {
  const TokenIssuer next;
  EXPECT_EQ(Tools(issuer_.Token("local", "agent")).status, 200);
  EXPECT_EQ(Tools(next.Token("local", "agent")).status, 401);
  // Something that is no JWKS changes nothing.
  dir_.Write("jwks.json", "{", 0600);
  ::kill(daemon_.monitor(), SIGHUP);
  EXPECT_TRUE(WaitUntil([&] { return !daemon_.Said().empty(); }));
  EXPECT_EQ(Tools(issuer_.Token("local", "agent")).status, 200);
  dir_.Write("jwks.json", next.Jwks(), 0600);
  ::kill(daemon_.monitor(), SIGHUP);
  EXPECT_TRUE(WaitUntil([&] { return Tools(next.Token("local", "agent")).status == 200; }));
  EXPECT_EQ(Tools(issuer_.Token("local", "agent")).status, 401);
}

// As RFC 9728 and MCP have it: a client without a token learns where to get one, and one made for another server is refused.
TEST_F(Tokens, AClientOfMcpLearnsWhereTokensComeFrom) {
  const std::string ping =
      R"({"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{)"
      R"("io.modelcontextprotocol/protocolVersion":"2026-07-28",)"
      R"("io.modelcontextprotocol/clientCapabilities":{}}}})";
  const std::string fields = "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: server/discover\r\n";
  const std::string where = "/.well-known/oauth-protected-resource/mcp";
  for (const std::string& token : {std::string(), issuer_.Token("local", "agent", 600, "another"),
                                   issuer_.Token("local", "agent", -60)}) {
    const HttpAnswer refused = daemon_.Ask("POST", "/mcp", token, ping, fields);
    EXPECT_EQ(refused.status, 401) << refused.text;
    EXPECT_TRUE(Contains(refused.Field("WWW-Authenticate"),
                         "resource_metadata=\"http://localhost" + where + "\""))
        << refused.head;
  }
  EXPECT_EQ(daemon_.Ask("POST", "/mcp", issuer_.Token("local", "agent"), ping, fields).status, 200)
      << "the control";
  EXPECT_FALSE(Contains(daemon_.Ask("GET", "/v1/tools", "").head, "resource_metadata"));
  const HttpAnswer metadata = daemon_.Ask("GET", where, "");
  EXPECT_EQ(metadata.status, 200);
  EXPECT_EQ(metadata.At("resource"), "http://localhost/mcp");
  EXPECT_EQ(metadata.body["authorization_servers"], Json::array({"https://issuer"}));
}

}  // namespace
}  // namespace coffer::test
