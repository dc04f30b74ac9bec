// SPDX-License-Identifier: Apache-2.0
//
// /metrics at the border: who gets it, as what, and what is told of answers.
#include <gtest/gtest.h>

#include "tests/gateway/harness.h"

namespace coffer::gateway {
namespace {

TEST(MetricsRoute, OperatorsAndAuditorsOnly) {
  RunningServer server;
  const auto ask = [&](std::string_view key) {
    RawClient client = RawClient::Tcp(server.port());
    client.Send(Request("GET", "/metrics", key));
    return client.Receive();
  };
  for (const char* key : {"operator-key", "auditor-key"}) {
    const Reply1 reply = ask(key);
    ASSERT_EQ(reply.status, 200) << key;
    EXPECT_EQ(reply.Field("Content-Type"), "text/plain; version=0.0.4; charset=utf-8");
    EXPECT_EQ(reply.body, "# HELP fake_total Fakes.\n# TYPE fake_total counter\nfake_total 1\n");
  }
  server.OnLoop([&] { server.service.asked.clear(); });
  for (const char* key : {"agent-key", "approver-key"}) {
    EXPECT_EQ(ask(key).status, 403) << key;
  }
  EXPECT_EQ(ask("").status, 401);
  EXPECT_EQ(ask("no-such-key").status, 401);
  server.OnLoop([&] { EXPECT_TRUE(server.service.asked.empty()) << "nobody else reaches it"; });
}

TEST(MetricsRoute, EveryAnswerIsToldOnce) {
  struct Told {
    std::string tenant, route, method;
    int status;
    bool operator==(const Told&) const = default;
  };
  std::vector<Told> told;  // of the loop's thread
  ServerConfig config;
  config.http.answered = [&told](std::string_view tenant, std::string_view route,
                                 std::string_view method, int status) {
    told.push_back({std::string(tenant), std::string(route), std::string(method), status});
  };
  RunningServer server(std::move(config));
  std::string tenant;
  const auto ask = [&](const std::string& bytes) {
    RawClient client = RawClient::Tcp(server.port());
    client.Send(bytes);
    (void)client.Receive(bytes.starts_with("HEAD"));
  };
  ask(Request("GET", "/readyz"));
  ask(Request("HEAD", "/healthz"));
  ask(Request("GET", "/v1/tools/echo", "operator-key"));
  server.OnLoop([&] { tenant = server.service.last_who.tenant.name(); });
  ask(Request("POST", "/v1/keys", "agent-key", "Content-Type: application/json\r\n", "{}"));
  ask(Request("GET", "/v1/tools", "no-such-key"));
  ask(Request("GET", "/../../etc/passwd"));
  ask(Request("DELETE", "/healthz"));
  ask("GET / HTTP/1.1\r\nbad header\r\n\r\n");
  ASSERT_FALSE(tenant.empty());
  server.OnLoop([&] {
    const std::vector<Told> wanted = {
        {"", "/readyz", "GET", 200},
        {"", "/healthz", "HEAD", 200},
        {tenant, "/v1/tools/{tool}", "GET", 200},
        {tenant, "/v1/keys", "POST", 403},
        {"", "/v1/tools", "GET", 401},
        {"", "", "GET", 404},
        {"", "", "DELETE", 405},
    };
    ASSERT_EQ(told.size(), wanted.size() + 1);
    for (size_t i = 0; i < wanted.size(); ++i) {
      EXPECT_EQ(told[i], wanted[i]) << i << ": " << told[i].tenant << " " << told[i].route << " "
                                    << told[i].method << " " << told[i].status;
    }
    EXPECT_EQ(told.back().status, 400);
    EXPECT_EQ(told.back().route, "");
  });
}

}  // namespace
}  // namespace coffer::gateway
