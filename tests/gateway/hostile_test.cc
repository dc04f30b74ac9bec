// SPDX-License-Identifier: Apache-2.0
//
// What a hostile client can do to the real server: each gets its 4xx or is cut, and the next client is served.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "tests/gateway/harness.h"

namespace coffer::gateway {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

struct Case {
  std::string name;
  std::string bytes;
  int status;
  std::string code;
};

std::string Deep(size_t depth) {
  return R"({"tool":"echo","args":{"a":)" + std::string(depth, '[') + std::string(depth, ']') +
         "}}";
}

std::string Repeat(std::string_view text, size_t times) {
  std::string all;
  for (size_t i = 0; i < times; ++i) {
    all += text;
  }
  return all;
}

std::vector<Case> Malformed() {
  const std::string ok_head = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n";
  const std::string post =
      "POST /v1/calls HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer agent-key\r\n"
      "Content-Type: application/json\r\n";
  const std::string get_call = "/v1/calls/";
  std::string many;
  for (int i = 0; i < 100; ++i) {
    many += "X-" + std::to_string(i) + ": 1\r\n";
  }
  return {
      {"binary", "\x16\x03\x01\x02garbage\r\n\r\n", 400, "http.malformed"},
      {"empty line first", "\r\n\r\n", 400, "http.malformed"},
      {"no version", "GET /healthz\r\nHost: localhost\r\n\r\n", 400, "http.malformed"},
      {"lower version", "GET /healthz HTTP/0.9\r\nHost: localhost\r\n\r\n", 505, "http.version"},
      {"higher version", "GET /healthz HTTP/2.0\r\nHost: localhost\r\n\r\n", 505, "http.version"},
      {"two spaces", "GET  /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", 400, "http.malformed"},
      {"space in target", "GET /health z HTTP/1.1\r\nHost: localhost\r\n\r\n", 505, "http.version"},
      {"bare line feeds", "GET /healthz HTTP/1.1\nHost: localhost\n\n\r\n\r\n", 400,
       "http.malformed"},
      {"bare carriage return", "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: a\rb\r\n\r\n", 400,
       "http.malformed"},
      {"NUL in a field", ok_head + std::string("X: a\0b\r\n\r\n", 10), 400, "http.malformed"},
      {"folded field", ok_head + "X: a\r\n b\r\n\r\n", 400, "http.malformed"},
      {"space before colon", ok_head + "X : a\r\n\r\n", 400, "http.malformed"},
      {"field without a name", ok_head + ": a\r\n\r\n", 400, "http.malformed"},
      {"field without a colon", ok_head + "nonsense\r\n\r\n", 400, "http.malformed"},
      {"too many fields", ok_head + many + "\r\n", 431, "http.too_many_headers"},
      {"huge field", ok_head + "X: " + std::string(20'000, 'a') + "\r\n\r\n", 431,
       "http.head_too_large"},
      {"endless head", ok_head + "X: " + std::string(20'000, 'a'), 431, "http.head_too_large"},
      {"long target", "GET /" + std::string(5000, 'a') + " HTTP/1.1\r\nHost: localhost\r\n\r\n",
       414, "http.target_too_long"},
      {"no host", "GET /healthz HTTP/1.1\r\n\r\n", 400, "http.host_missing"},
      {"two hosts", ok_head + "Host: localhost\r\n\r\n", 400, "http.host_missing"},
      {"strange host", "GET /healthz HTTP/1.1\r\nHost: a b\r\n\r\n", 400, "http.malformed"},
      {"rebound host", "GET /healthz HTTP/1.1\r\nHost: evil.example\r\n\r\n", 421, "http.host"},
      {"absolute target to another host",
       "GET http://evil.example/healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", 421, "http.host"},
      {"cross-site origin", ok_head + "Origin: https://evil.example\r\n\r\n", 403, "http.origin"},
      {"null origin", ok_head + "Origin: null\r\n\r\n", 403, "http.origin"},
      {"cross-site fetch",
       ok_head + "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors\r\n\r\n", 403,
       "http.origin"},
      {"authority form", "CONNECT evil.example:443 HTTP/1.1\r\nHost: localhost\r\n\r\n", 400,
       "http.target"},
      {"asterisk form", "OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n", 400, "http.target"},
      {"unknown route", "GET /v2/calls HTTP/1.1\r\nHost: localhost\r\n\r\n", 404, "route.unknown"},
      {"slash at the end", "GET /healthz/ HTTP/1.1\r\nHost: localhost\r\n\r\n", 404,
       "route.unknown"},
      {"two slashes", "GET //healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", 404, "route.unknown"},
      {"dot segments", "GET /v1/../healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", 404,
       "route.unknown"},
      {"not yet", "GET /v1/approvals HTTP/1.1\r\nHost: localhost\r\n\r\n", 404, "route.unknown"},
      {"wrong method", "DELETE /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", 405, "route.method"},
      {"unknown method", "BREW /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", 405, "route.method"},
      {"method in lower case", "get /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", 405,
       "route.method"},
      {"query nobody asked for", "GET /healthz?x=1 HTTP/1.1\r\nHost: localhost\r\n\r\n", 400,
       "query.invalid"},
      {"body of a GET", ok_head + "Content-Length: 3\r\n\r\nabc", 400, "body.unexpected"},
      {"two lengths", post + "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabc", 400,
       "http.framing"},
      {"the same length twice", post + "Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc", 400,
       "http.framing"},
      {"list of lengths", post + "Content-Length: 3, 3\r\n\r\nabc", 400, "http.framing"},
      {"negative length", post + "Content-Length: -1\r\n\r\n", 400, "http.framing"},
      {"signed length", post + "Content-Length: +3\r\n\r\nabc", 400, "http.framing"},
      {"hexadecimal length", post + "Content-Length: 0x3\r\n\r\nabc", 400, "http.framing"},
      {"length beyond 64 bits", post + "Content-Length: 99999999999999999999\r\n\r\n", 400,
       "http.framing"},
      {"length and chunked",
       post + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400,
       "http.framing"},
      {"chunked and length",
       post + "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n", 400,
       "http.framing"},
      {"chunked twice",
       post + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400,
       "http.framing"},
      {"gzip coding", post + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501,
       "http.transfer_coding"},
      {"identity coding", post + "Transfer-Encoding: identity\r\n\r\n", 501,
       "http.transfer_coding"},
      {"hidden coding", post + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 501,
       "http.transfer_coding"},
      {"bad chunk size", post + "Transfer-Encoding: chunked\r\n\r\nzz\r\n", 400, "http.chunking"},
      {"chunk size beyond 64 bits",
       post + "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n", 400, "http.chunking"},
      {"chunk extension", post + "Transfer-Encoding: chunked\r\n\r\n2;a=b\r\n{}\r\n0\r\n\r\n", 400,
       "http.chunking"},
      {"chunk without an end", post + "Transfer-Encoding: chunked\r\n\r\n2\r\n{}xx0\r\n\r\n", 400,
       "http.chunking"},
      {"trailer", post + "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nHost: evil\r\n\r\n",
       400, "http.chunking"},
      {"endless chunk head", post + "Transfer-Encoding: chunked\r\n\r\n" + std::string(40'000, '0'),
       400, "http.chunking"},
      {"expectation", post + "Expect: magic\r\nContent-Length: 2\r\n\r\n{}", 417, "http.expect"},
      {"no key", "GET /v1/tools HTTP/1.1\r\nHost: localhost\r\n\r\n", 401, "auth.missing"},
      {"wrong key", Request("GET", "/v1/tools", "nobody"), 401, "auth.key"},
      {"basic auth", Request("GET", "/v1/tools", {}, "Authorization: Basic YTpi\r\n"), 401,
       "auth.malformed"},
      {"two credentials",
       Request("GET", "/v1/tools", "agent-key", "Authorization: Bearer operator-key\r\n"), 401,
       "auth.malformed"},
      {"a role that may not", Request("GET", "/v1/keys", "agent-key"), 403, "auth.role"},
      {"traversal in an id", Request("GET", get_call + "..%2f..%2fetc%2fpasswd", "agent-key"), 400,
       "path.invalid"},
      {"dots as an id", Request("GET", get_call + "..", "agent-key"), 400, "path.invalid"},
      {"NUL in an id", Request("GET", get_call + "%00", "agent-key"), 400, "path.invalid"},
      {"broken escape", Request("GET", get_call + "%zz", "agent-key"), 400, "path.invalid"},
      {"quote in an id", Request("GET", get_call + "'%20or%201=1--", "agent-key"), 400,
       "path.invalid"},
      {"upper case id",
       Request("GET", get_call + "01890A5D-AC96-774B-BCCE-B302099A8057", "agent-key"), 400,
       "path.invalid"},
      {"traversal in a file",
       Request("GET", "/v1/sessions/" + kSessionId + "/files/a/%2e%2e/b", "agent-key"), 400,
       "path.invalid"},
      {"absolute file",
       Request("GET", "/v1/sessions/" + kSessionId + "/files//etc/passwd", "agent-key"), 400,
       "path.invalid"},
      {"upload with a name that is not UTF-8",
       Request("PUT", "/v1/sessions/" + kSessionId + "/files/%ff", "agent-key", {}, "x"), 400,
       "path.invalid"},
      {"no type", Request("POST", "/v1/calls", "agent-key", {}, "{}"), 415, "body.type"},
      {"form", Request("POST", "/v1/calls", "agent-key", "Content-Type: text/plain\r\n", "{}"), 415,
       "body.type"},
      {"compressed", CallOf("{}", "Content-Encoding: gzip\r\n"), 415, "body.encoding"},
      {"declared too large", post + "Content-Length: 99999999\r\n\r\n", 413, "body.too_large"},
      {"chunks too large",
       post + "Transfer-Encoding: chunked\r\n\r\n200000\r\n" + std::string(0x200000, ' '), 413,
       "body.too_large"},
      {"empty body", post + "Content-Length: 0\r\n\r\n", 400, "json.syntax"},
      {"not JSON", CallOf("{tool:1}"), 400, "json.syntax"},
      {"two documents", CallOf(R"({"tool":"echo"}{})"), 400, "json.syntax"},
      {"invalid UTF-8", CallOf("{\"tool\":\"\xff\xfe\"}"), 400, "json.syntax"},
      {"lone surrogate", CallOf(R"({"tool":"\ud800"})"), 400, "json.syntax"},
      {"NUL byte", CallOf(std::string("{\"tool\":\"e\0\"}", 13)), 400, "json.syntax"},
      {"JSON bomb", CallOf(Deep(5000)), 400, "json.too_deep"},
      {"deep, unclosed", CallOf(std::string(100'000, '[')), 400, "json.too_deep"},
      {"many values", CallOf(R"({"tool":"echo","args":{"a":[0)" + Repeat(",0", 20'000) + "]}}"),
       400, "json.too_many"},
      {"a number of many digits",
       CallOf(R"({"tool":"echo","args":{"a":)" + std::string(40'000, '1') + "}}"), 400,
       "json.number"},
      {"huge exponent", CallOf(R"({"tool":"echo","args":{"a":1e999}})"), 400, "json.number"},
      {"huge integer", CallOf(R"({"tool":"echo","args":{"a":123456789012345678901234567890}})"),
       400, "json.number"},
      {"duplicate key", CallOf(R"({"tool":"echo","tool":"python"})"), 400, "json.duplicate"},
      {"array", CallOf("[1]"), 400, "json.type"},
      {"wrong types", CallOf(R"({"tool":7,"args":[],"dry_run":"yes"})"), 400, "body.invalid"},
      {"unknown member", CallOf(R"({"tool":"echo","tenant":"other"})"), 400, "body.invalid"},
      {"tool with a slash", CallOf(R"({"tool":"../echo"})"), 400, "body.invalid"},
      {"session that is no id", CallOf(R"({"tool":"echo","session_id":"../x"})"), 400,
       "body.invalid"},
      {"empty idempotency key", CallOf(R"({"tool":"echo"})", "Idempotency-Key: \"\"\r\n"), 400,
       "idempotency.key"},
      {"long idempotency key",
       CallOf(R"({"tool":"echo"})", "Idempotency-Key: " + std::string(256, 'k') + "\r\n"), 400,
       "idempotency.key"},
      {"two idempotency keys",
       CallOf(R"({"tool":"echo"})", "Idempotency-Key: a\r\nIdempotency-Key: b\r\n"), 400,
       "idempotency.key"},
      {"event id",
       Request("GET", get_call + kCallId + "/events", "agent-key", "Last-Event-ID: 1x\r\n"), 400,
       "events.last_id"},
      {"page limit", Request("GET", "/v1/sessions?limit=0", "agent-key"), 400, "query.invalid"},
      {"page cursor", Request("GET", "/v1/sessions?cursor=%27", "agent-key"), 400, "query.invalid"},
      {"parameter twice", Request("GET", "/v1/sessions?limit=1&limit=2", "agent-key"), 400,
       "query.invalid"},
  };
}

TEST(Hostile, EveryMalformedRequestHasItsCode) {
  RunningServer server;
  for (const Case& one : Malformed()) {
    SCOPED_TRACE(one.name);
    RawClient client = RawClient::Tcp(server.port());
    ASSERT_TRUE(client.connected());
    client.Send(one.bytes);
    const Reply1 reply = client.Receive();
    EXPECT_EQ(reply.status, one.status) << reply.body;
    EXPECT_EQ(reply.Code(), one.code);
    EXPECT_EQ(reply.Field("Content-Type"), "application/problem+json");
    if (one.status == 405) {
      EXPECT_EQ(reply.Field("Allow"), "GET, HEAD");
    }
    if (one.status == 401) {
      EXPECT_EQ(reply.Field("WWW-Authenticate").substr(0, 6), "Bearer");
    }
    RawClient next = RawClient::Tcp(server.port());
    next.Send(Request("GET", "/healthz"));
    EXPECT_EQ(next.Receive().status, 200);
  }
  server.OnLoop([&] { EXPECT_TRUE(server.service.submitted.empty()); });
}

// After something that cannot be understood, nothing that follows on the connection is taken for a request.
TEST(Hostile, NothingIsSmuggledBehindAMalformedRequest) {
  RunningServer server;
  const std::string smuggled = CallOf(R"({"tool":"echo"})");
  for (const Case& one : Malformed()) {
    if (one.code.rfind("http.framing", 0) != 0 && one.code.rfind("http.chunking", 0) != 0 &&
        one.code != "http.malformed" && one.code != "http.transfer_coding") {
      continue;
    }
    SCOPED_TRACE(one.name);
    RawClient client = RawClient::Tcp(server.port());
    client.Send(one.bytes + smuggled);
    EXPECT_EQ(client.Receive().status, one.status);
    client.FinishSending();
    EXPECT_TRUE(client.Ends());
  }
  server.OnLoop([&] { EXPECT_TRUE(server.service.submitted.empty()); });
}

TEST(Hostile, ARefusedRequestDoesNotEndTheConnection) {
  RunningServer server;
  RawClient client = RawClient::Tcp(server.port());
  client.Send(CallOf("{nonsense"));
  EXPECT_EQ(client.Receive().status, 400);
  client.Send(Request("GET", "/nowhere"));
  EXPECT_EQ(client.Receive().status, 404);
  client.Send(CallOf(R"({"tool":"echo"})"));
  EXPECT_EQ(client.Receive().status, 200);
}

TEST(Hostile, BytesInEveryPossibleCutAreOneRequest) {
  RunningServer server;
  const std::string request = CallOf(R"x({"tool":"echo","args":{"code":"print(1)"}})x");
  RawClient client = RawClient::Tcp(server.port());
  for (size_t cut = 1; cut < request.size(); cut += 7) {
    client.Send(std::string_view(request).substr(0, cut));
    std::this_thread::yield();
    client.Send(std::string_view(request).substr(cut));
    ASSERT_EQ(client.Receive().status, 200) << cut;
  }
}

ServerConfig Impatient() {
  ServerConfig config;
  config.http.limits.head_time = milliseconds(300);
  config.http.limits.body_time = milliseconds(600);
  config.http.limits.stall_time = milliseconds(400);
  config.http.limits.idle_time = milliseconds(300);
  return config;
}

TEST(Hostile, ASlowHeadIsToldSoAndCut) {
  RunningServer server(Impatient());
  RawClient client = RawClient::Tcp(server.port());
  const auto began = steady_clock::now();
  // A byte now and then does not extend the time: it runs from the first byte.
  client.Send("GET /healthz HTTP/1.1\r\n");
  EXPECT_TRUE(server.Eventually([&] {
    client.Send("X: y\r\n");
    return server.server().stats().timed_out > 0;
  }));
  EXPECT_GE(steady_clock::now() - began, milliseconds(300));
  const Reply1 reply = client.Receive();
  EXPECT_EQ(reply.status, 408);
  EXPECT_EQ(reply.Code(), "http.timeout");
  client.FinishSending();
  EXPECT_TRUE(client.Ends());
}

TEST(Hostile, ASlowBodyIsToldSoAndCut) {
  RunningServer server(Impatient());
  RawClient client = RawClient::Tcp(server.port());
  client.Send(Request("POST", "/v1/calls", "agent-key",
                      "Content-Type: application/json\r\nContent-Length: 1000\r\n") +
              "{");
  const Reply1 reply = client.Receive();
  EXPECT_EQ(reply.status, 408);
  client.FinishSending();
  EXPECT_TRUE(client.Ends());
}

TEST(Hostile, AnIdleConnectionIsClosedWithoutAWord) {
  RunningServer server(Impatient());
  RawClient silent = RawClient::Tcp(server.port());
  EXPECT_EQ(silent.ReadSome(), "");
  RawClient client = RawClient::Tcp(server.port());
  client.Send(Request("GET", "/healthz"));
  EXPECT_EQ(client.Receive().status, 200);
  EXPECT_EQ(client.ReadSome(), "");
}

TEST(Hostile, WhoDoesNotReadIsCut) {
  RunningServer server(Impatient());
  server.OnLoop([&] { server.service.files["f"] = std::string(64 << 20, 'x'); });
  RawClient client = RawClient::Tcp(server.port());
  client.Send(Request("GET", "/v1/sessions/" + kSessionId + "/files/f", "agent-key"));
  EXPECT_TRUE(server.Eventually([&] { return server.server().stats().timed_out == 1; }));
  EXPECT_TRUE(server.Eventually([&] { return server.server().stats().connections == 0; }));
}

TEST(Hostile, ManySlowClientsKeepNobodyOut) {
  RunningServer server(Impatient());
  std::vector<RawClient> slow;
  for (int i = 0; i < 200; ++i) {
    slow.push_back(RawClient::Tcp(server.port()));
    slow.back().Send("GET /healthz HTTP/1.1\r\nHost: loc");
  }
  RawClient client = RawClient::Tcp(server.port());
  client.Send(Request("GET", "/healthz"));
  EXPECT_EQ(client.Receive().status, 200);
  EXPECT_TRUE(server.Eventually([&] { return server.server().stats().timed_out >= 200; }));
}

TEST(Hostile, AThousandConnections) {
  rlimit files{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &files), 0);
  files.rlim_cur = std::min<rlim_t>(files.rlim_max, 8192);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &files), 0);
  ASSERT_GE(files.rlim_cur, 2200U);
  ServerConfig config;
  config.http.limits.connections = 1000;
  config.http.limits.connections_per_peer = 1000;
  RunningServer server(config);
  std::vector<RawClient> clients;
  for (int i = 0; i < 1000; ++i) {
    clients.push_back(RawClient::Tcp(server.port()));
    ASSERT_TRUE(clients.back().connected()) << i;
    ASSERT_TRUE(clients.back().Send(Request("GET", "/openapi.json")));
    ASSERT_EQ(clients.back().Receive().status, 200);
  }
  // They wait for nothing: the one that has done so longest makes room.
  ASSERT_TRUE(server.Eventually([&] { return server.server().stats().connections == 1000; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  RawClient next = RawClient::Tcp(server.port());
  next.Send(Request("GET", "/openapi.json"));
  EXPECT_EQ(next.Receive().status, 200);
  EXPECT_TRUE(clients.front().Ends());
  EXPECT_TRUE(server.Eventually([&] { return server.server().stats().connections == 1000; }));
}

// Those in the middle of a request are not cut for others.
TEST(Hostile, OnePeerCannotTakeAllConnections) {
  ServerConfig config;
  config.http.limits.connections_per_peer = 3;
  RunningServer server(config);
  std::vector<RawClient> clients;
  for (size_t i = 0; i < 3; ++i) {
    clients.push_back(RawClient::Tcp(server.port()));
    clients.back().Send(CallOf(R"({"tool":"wait"})"));
    ASSERT_TRUE(server.Eventually([&] { return server.service.submitted.size() == i + 1; }));
  }
  RawClient one_more = RawClient::Tcp(server.port());
  one_more.Send(Request("GET", "/openapi.json"));
  const Reply1 refused = one_more.Receive();
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(refused.Code(), "http.connections_per_peer");
  EXPECT_EQ(refused.Field("Retry-After"), "1");
  server.OnLoop([&] { server.service.Finish(); });
  for (RawClient& client : clients) {
    EXPECT_EQ(client.Receive().status, 200);
  }
}

// One key of it neither.
TEST(Hostile, ATenantHasNotAllRequestsInProgress) {
  ServerConfig config;
  config.http.limits.requests_per_tenant = 4;
  RunningServer server(config);
  std::vector<RawClient> clients;
  const auto wait_with = [&](std::string_view key) {
    clients.push_back(RawClient::Tcp(server.port()));
    clients.back().Send(Request("POST", "/v1/calls", key, "Content-Type: application/json\r\n",
                                R"({"tool":"wait"})"));
    return server.Eventually([&] { return server.service.submitted.size() == clients.size(); });
  };
  const auto ask = [&](std::string_view key) {
    RawClient client = RawClient::Tcp(server.port());
    client.Send(Request("GET", "/v1/tools", key));
    return client.Receive();
  };
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(wait_with("agent-key"));
  }
  const Reply1 refused = ask("agent-key");
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.Code(), "busy");
  EXPECT_EQ(refused.Field("Retry-After"), "1");
  EXPECT_NE(refused.body.find("of this key"), std::string::npos) << refused.body;
  EXPECT_EQ(ask("operator-key").status, 200) << "another key of the tenant";
  ASSERT_TRUE(wait_with("operator-key"));
  const Reply1 full = ask("auditor-key");
  EXPECT_EQ(full.Code(), "busy") << "the tenant has its share";
  EXPECT_NE(full.body.find("of this tenant"), std::string::npos) << full.body;
  EXPECT_EQ(ask("neighbour-key").status, 200) << "another tenant";
  server.OnLoop([&] { server.service.Finish(); });
  EXPECT_EQ(clients[0].Receive().status, 200);
  EXPECT_TRUE(test::WaitUntil([&] { return ask("agent-key").status == 200; }))
      << "the control: the places come back";
}

// Both come from one address, as all agents on the daemon's host do.
TEST(Hostile, ATenantsNewConnectionsDoNotKeepANeighbourOut) {
  ServerConfig config;
  config.http.limits.pace = {.per_second = 0.001, .burst = 5, .held = 0, .peers = 100};
  RunningServer server(config);
  const auto ask = [&](std::string_view key) {
    RawClient client = RawClient::Tcp(server.port());
    client.Send(Request("GET", "/v1/tools", key));
    return client.Receive();
  };
  EXPECT_EQ(ask("agent-key").status, 200);      // the daemon knows this one now
  EXPECT_EQ(ask("neighbour-key").status, 200);  // and this one
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(ask("agent-key").status, 200) << i;
  }
  EXPECT_EQ(ask("agent-key").Code(), "http.connections") << "the control: it has had its turns";
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(ask("neighbour-key").status, 200) << i;
  }
  // Unknown keys share the turns that the address has left: a client that invents a key for each connection gains nothing.
  int served = 0;
  for (int i = 0; i < 10; ++i) {
    served += ask("guess-" + std::to_string(i)).status == 401 ? 1 : 0;
  }
  EXPECT_EQ(served, 3);
}

TEST(Hostile, ATenantHasOnePaceForAllItsAddresses) {
  ServerConfig config;
  config.http.limits.pace = {.per_second = 0.001, .burst = 5, .held = 0, .peers = 100};
  RunningServer server(config);
  const auto ask = [&](std::string_view key, uint8_t from) {
    RawClient client = RawClient::Tcp(server.port(), from);
    client.Send(Request("GET", "/v1/tools", key));
    return client.Receive();
  };
  EXPECT_EQ(ask("agent-key", 2).status, 200);  // the daemon knows this one now
  for (uint8_t from = 3; from < 8; ++from) {
    EXPECT_EQ(ask("agent-key", from).status, 200) << from;
  }
  for (uint8_t from = 8; from < 12; ++from) {
    EXPECT_EQ(ask("agent-key", from).Code(), "http.connections") << from;
  }
  EXPECT_EQ(ask("neighbour-key", 8).status, 200) << "the control: that address has its turns";
}

TEST(Hostile, PipelinedRequestsDoNotPileUp) {
  RunningServer server;
  RawClient client = RawClient::Tcp(server.port());
  // The first waits for the service; what follows stays with the kernel, and is answered in order afterwards.
  client.Send(CallOf(R"({"tool":"wait"})"));
  ASSERT_TRUE(server.Eventually([&] { return server.service.submitted.size() == 1; }));
  for (int i = 0; i < 20; ++i) {
    client.Send(CallOf(R"({"tool":"echo"})"));
  }
  server.OnLoop([&] { EXPECT_EQ(server.service.submitted.size(), 1U); });
  server.OnLoop([&] { server.service.Finish(); });
  for (int i = 0; i < 21; ++i) {
    EXPECT_EQ(client.Receive().status, 200) << i;
  }
}

}  // namespace
}  // namespace coffer::gateway
