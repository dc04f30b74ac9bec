// SPDX-License-Identifier: Apache-2.0
//
// What a well-behaved client sees of the real server.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "gateway/jwt.h"
#include "tests/gateway/harness.h"
#include "tests/gateway/token_issuer.h"
#include "tests/support/gunzip.h"
#include "tests/support/temp_dir.h"

namespace coffer::gateway {
namespace {

using nlohmann::json;

TEST(Server, AnswersAndKeepsTheConnection) {
  RunningServer server;
  RawClient client = RawClient::Tcp(server.port());
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(client.Send(Request("GET", "/healthz")));
    const Reply1 reply = client.Receive();
    ASSERT_EQ(reply.status, 200);
    EXPECT_EQ(reply.body, R"({"status":"ok"})");
    EXPECT_EQ(reply.Field("Content-Type"), "application/json");
    EXPECT_EQ(reply.Field("Connection"), "");
    EXPECT_NE(reply.Field("Date"), "");
  }
  server.OnLoop([&] { EXPECT_EQ(server.server().stats().accepted, 1U); });
}

TEST(Server, ClosesWhenAsked) {
  RunningServer server;
  RawClient client = RawClient::Tcp(server.port());
  client.Send(Request("GET", "/healthz", {}, "Connection: close\r\n"));
  const Reply1 reply = client.Receive();
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.Field("Connection"), "close");
  EXPECT_TRUE(client.Ends());
}

TEST(Server, AnswersPipelinedRequestsInOrder) {
  RunningServer server;
  RawClient client = RawClient::Tcp(server.port());
  std::string all;
  for (int i = 0; i < 50; ++i) {
    all += i % 2 == 0 ? Request("GET", "/healthz") : Request("GET", "/nowhere");
  }
  ASSERT_TRUE(client.Send(all));
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(client.Receive().status, i % 2 == 0 ? 200 : 404) << i;
  }
}

TEST(Server, HeadHasNoBody) {
  RunningServer server;
  RawClient client = RawClient::Tcp(server.port());
  client.Send(Request("HEAD", "/healthz"));
  const Reply1 head = client.Receive(/*head_only=*/true);
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.Field("Content-Length"), "15");
  client.Send(Request("GET", "/healthz"));
  EXPECT_EQ(client.Receive().body, R"({"status":"ok"})");
}

TEST(Server, RunsACall) {
  RunningServer server;
  RawClient client = RawClient::Tcp(server.port());
  const std::string trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
  client.Send(CallOf(R"({"tool":"echo","args":{"b":1,"a":"ü"},"session_id":null,"dry_run":true})",
                     "Idempotency-Key: \"k-1\"\r\ntraceparent: " + trace + "\r\n"));
  const Reply1 reply = client.Receive();
  ASSERT_EQ(reply.status, 200) << reply.body;
  const json body = json::parse(reply.body);
  EXPECT_EQ(body["call_id"], kCallId);
  EXPECT_EQ(body["outcome"], "success");
  EXPECT_EQ(body["result"]["stdout"], R"({"b":1,"a":"ü"})");
  EXPECT_EQ(body["result"]["exit"]["code"], 0);
  EXPECT_TRUE(body["result"]["structured"].is_null());
  EXPECT_TRUE(body["error"].is_null());
  EXPECT_TRUE(body["denials"].is_array());
  EXPECT_EQ(body["log"]["index"], 7);
  EXPECT_EQ(body.size(), 6U);
  server.OnLoop([&] {
    ASSERT_EQ(server.service.submitted.size(), 1U);
    const CallRequest& request = server.service.submitted[0];
    EXPECT_EQ(request.idempotency_key, "k-1");
    EXPECT_EQ(request.traceparent, trace);
    EXPECT_TRUE(request.dry_run);
    EXPECT_TRUE(request.wait);
    EXPECT_FALSE(request.session_id.has_value());
    EXPECT_EQ(server.service.last_who.tenant.name(), "t1");
  });
}

TEST(Server, TakesAChunkedBody) {
  RunningServer server;
  RawClient client = RawClient::Tcp(server.port());
  client.Send(Request("POST", "/v1/calls", "agent-key",
                      "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n") +
              "8\r\n{\"tool\":\r\n");
  client.Send("7\r\n\"echo\"}\r\n");
  client.Send("0\r\n\r\n");
  EXPECT_EQ(client.Receive().status, 200);
  client.Send(Request("GET", "/healthz"));
  EXPECT_EQ(client.Receive().status, 200);
}

// Its length is not known, so it counts as the longest while it comes in; the call that it asks for may take
// minutes, and then it counts as what it was.
TEST(Server, ABodyWithoutALengthIsCountedAsWhatItWas) {
  RunningServer server;
  const size_t most = HttpLimits{}.body_bytes;
  for (const size_t blanks : {size_t{0}, size_t{40} << 10}) {
    const std::string body = std::string(blanks, ' ') + R"({"tool":"wait"})";
    RawClient client = RawClient::Tcp(server.port());
    client.Send(Request("POST", "/v1/calls", "agent-key",
                        "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n"));
    EXPECT_TRUE(server.Eventually([&] { return server.service.bytes_held == most; }))
        << "the control";
    std::ostringstream chunks;
    chunks << std::hex << body.size() << "\r\n" << body << "\r\n0\r\n\r\n";
    client.Send(chunks.str());
    EXPECT_TRUE(server.Eventually([&] { return server.service.submitted.size() == 1; }));
    EXPECT_EQ(server.service.bytes_held, blanks == 0 ? 0 : body.size());
    server.OnLoop([&] {
      server.service.submitted.clear();
      server.service.Finish();
    });
    EXPECT_EQ(client.Receive().status, 200);
    EXPECT_TRUE(server.Eventually([&] { return server.service.bytes_held == 0; }));
  }
}

TEST(Server, SendsContinueToWhoWaitsForIt) {
  RunningServer server;
  RawClient client = RawClient::Tcp(server.port());
  client.Send(
      Request("POST", "/v1/calls", "agent-key",
              "Content-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: 15\r\n"));
  EXPECT_EQ(client.Receive().status, 100);
  client.Send(R"({"tool":"echo"})");
  EXPECT_EQ(client.Receive().status, 200);
  // Somebody without a key is not asked for the body.
  client.Send(
      Request("POST", "/v1/calls", "wrong",
              "Content-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: 15\r\n"));
  EXPECT_EQ(client.Receive().status, 401);
}

TEST(Server, SaysWhenToComeBack) {
  RunningServer server;
  RawClient client = RawClient::Tcp(server.port());
  client.Send(CallOf(R"({"tool":"limited"})"));
  const Reply1 reply = client.Receive();
  EXPECT_EQ(reply.status, 429);
  EXPECT_EQ(reply.Field("Retry-After"), "3");
  EXPECT_EQ(reply.Field("Content-Type"), "application/problem+json");
  EXPECT_EQ(reply.Code(), "limit.rate");
  EXPECT_EQ(json::parse(reply.body)["call_id"], kCallId);
  client.Send(CallOf(R"({"tool":"inflight"})"));
  EXPECT_EQ(client.Receive().status, 409);
  client.Send(CallOf(R"({"tool":"mismatch"})"));
  EXPECT_EQ(client.Receive().status, 422);
  client.Send(CallOf(R"({"tool":"broken"})"));
  EXPECT_EQ(client.Receive().status, 500);
}

TEST(Server, GatedAndAsyncCallsAreAccepted) {
  RunningServer server;
  RawClient client = RawClient::Tcp(server.port());
  client.Send(CallOf(R"({"tool":"gated"})"));
  const Reply1 gated = client.Receive();
  EXPECT_EQ(gated.status, 202);
  const json body = json::parse(gated.body);
  EXPECT_EQ(body["outcome"], "gated");
  EXPECT_EQ(body["approval"]["id"], "a1");
  EXPECT_EQ(body["approval"]["expires_at"], "2023-11-14T22:28:20.000Z");
  EXPECT_EQ(body.size(), 3U);
  client.Send(CallOf(R"({"tool":"wait"})", "Prefer: respond-async\r\n"));
  const Reply1 accepted = client.Receive();
  EXPECT_EQ(accepted.status, 202);
  EXPECT_EQ(accepted.Field("Preference-Applied"), "respond-async");
  EXPECT_EQ(accepted.Field("Location"), "/v1/calls/" + kCallId);
  EXPECT_EQ(json::parse(accepted.body)["state"], "queued");
}

TEST(Server, OtherClientsAreServedWhileACallRuns) {
  RunningServer server;
  RawClient slow = RawClient::Tcp(server.port());
  slow.Send(CallOf(R"({"tool":"wait"})"));
  ASSERT_TRUE(server.Eventually([&] { return server.service.submitted.size() == 1; }));
  RawClient other = RawClient::Tcp(server.port());
  other.Send(CallOf(R"({"tool":"echo"})"));
  EXPECT_EQ(other.Receive().status, 200);
  server.OnLoop([&] { server.service.Finish(); });
  const Reply1 reply = slow.Receive();
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(json::parse(reply.body)["result"]["stdout"], "waited");
}

TEST(Server, ReplyAfterTheClientIsGoneDoesNoHarm) {
  RunningServer server;
  {
    RawClient client = RawClient::Tcp(server.port());
    client.Send(CallOf(R"({"tool":"wait"})"));
    ASSERT_TRUE(server.Eventually([&] { return server.service.submitted.size() == 1; }));
    client.Reset();
  }
  server.OnLoop([&] { server.service.Finish(); });
  EXPECT_TRUE(server.Eventually([&] { return server.server().stats().connections == 0; }));
}

TEST(Server, SendsALargeAnswer) {
  RunningServer server;
  RawClient client = RawClient::Tcp(server.port());
  client.Send(CallOf(R"({"tool":"big"})"));
  const Reply1 reply = client.Receive();
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(json::parse(reply.body)["result"]["stdout"].get<std::string>().size(), 1U << 20);
}

TEST(Server, ALargeBodyIsNotParsedOnTheLoop) {
  const std::string session = "/v1/sessions/" + kSessionId;
  const struct {
    const char* method;
    std::string path;
    std::string key;
    std::string body;
  } cases[] = {
      {"POST", "/v1/calls", "agent-key", R"({"tool":"echo"})"},
      {"POST", "/mcp", "agent-key", R"({"jsonrpc":"2.0","id":1,"method":"ping"})"},
      {"POST", "/v1/sessions", "agent-key", "{}"},
      {"POST", session + "/extend", "agent-key", R"({"lifetime":"1h"})"},
      {"POST", session + "/processes", "agent-key", R"({"tool":"echo"})"},
      {"POST", session + "/processes/" + kCallId + "/signal", "agent-key", R"({"signal":"TERM"})"},
      {"POST", "/v1/keys", "operator-key", R"({"role":"agent"})"},
      {"POST", "/v1/access/" + kCallId + ".1", "operator-key", "{}"},
      {"PUT", "/v1/switches/tool/echo", "operator-key", "{}"},
  };
  for (const auto& one : cases) {
    RunningServer server;
    const auto ask = [&](const std::string& body) {
      RawClient client = RawClient::Tcp(server.port());
      client.Send(
          Request(one.method, one.path, one.key, "Content-Type: application/json\r\n", body));
      return client.Receive();
    };
    const Reply1 small = ask(one.body);
    EXPECT_EQ(server.service.offloaded, 0) << one.path;
    const Reply1 large = ask(std::string(20 << 10, ' ') + one.body);
    EXPECT_EQ(server.service.offloaded, 1) << one.path;
    EXPECT_EQ(large.status, small.status) << one.path;
    EXPECT_NE(small.status, 404) << one.path;
  }
}

TEST(Server, CompressesALargeAnswerForAClientThatTakesIt) {
  RunningServer server;
  RawClient client = RawClient::Tcp(server.port());
  const auto ask = [&](const std::string& encoding) {
    client.Send(CallOf(R"({"tool":"big"})", "Accept-Encoding: " + encoding + "\r\n"));
    return client.Receive();
  };
  const Reply1 plain = ask("identity");
  EXPECT_EQ(plain.Field("Content-Encoding"), "");
  EXPECT_EQ(plain.Field("Vary"), "Accept-Encoding");
  const Reply1 packed = ask("gzip, deflate");
  EXPECT_EQ(packed.status, 200);
  EXPECT_EQ(packed.Field("Content-Encoding"), "gzip");
  EXPECT_EQ(packed.Field("Vary"), "Accept-Encoding");
  EXPECT_LT(packed.body.size(), plain.body.size() / 20);
  EXPECT_EQ(test::Gunzip(packed.body), plain.body);
  EXPECT_EQ(ask("gzip;q=0").body, plain.body);
  // A small answer is sent as it is.
  client.Send(Request("GET", "/v1/tools", "agent-key", "Accept-Encoding: gzip\r\n"));
  const Reply1 small = client.Receive();
  EXPECT_EQ(small.Field("Content-Encoding"), "");
  EXPECT_TRUE(small.body.starts_with("{"));
  // HEAD says what GET would send.
  client.Send(Request("GET", "/openapi.json", "", "Accept-Encoding: gzip\r\n"));
  const Reply1 document = client.Receive();
  EXPECT_EQ(document.Field("Content-Encoding"), "gzip");
  client.Send(Request("HEAD", "/openapi.json", "", "Accept-Encoding: gzip\r\n"));
  const Reply1 head = client.Receive(/*head_only=*/true);
  EXPECT_EQ(head.Field("Content-Encoding"), "gzip");
  EXPECT_EQ(head.Field("Content-Length"), std::to_string(document.body.size()));
  client.Send(Request("GET", "/openapi.json"));
  const Reply1 unpacked = client.Receive();
  EXPECT_TRUE(unpacked.body.starts_with("{"));
  EXPECT_GT(unpacked.body.size(), 3 * document.body.size());
}

// Events are sent when they happen, so nothing may hold them back.
TEST(Server, AnEventStreamIsNotCompressed) {
  RunningServer server;
  RawClient client = RawClient::Tcp(server.port());
  server.OnLoop([&] {
    server.service.AddEvent(CallEvent::Kind::kStdout, std::string(100'000, 'x'));
    server.service.EndEvents();
  });
  client.Send(
      Request("GET", "/v1/calls/" + kCallId + "/events", "agent-key", "Accept-Encoding: gzip\r\n"));
  const Reply1 events = client.Receive();
  EXPECT_EQ(events.status, 200);
  EXPECT_EQ(events.Field("Content-Encoding"), "");
  EXPECT_NE(events.body.find("xxxxxxxx"), std::string::npos);
}

TEST(Server, FilesGoInAndComeOut) {
  RunningServer server;
  RawClient client = RawClient::Tcp(server.port());
  const std::string path = "/v1/sessions/" + kSessionId + "/files/data/a%20b.bin";
  std::string content(300'000, '\0');
  for (size_t i = 0; i < content.size(); ++i) {
    content[i] = static_cast<char>(i * 7);
  }
  client.Send(Request("PUT", path, "agent-key", {}, content));
  const Reply1 put = client.Receive();
  ASSERT_EQ(put.status, 201) << put.body;
  EXPECT_EQ(json::parse(put.body)["size"], content.size());
  client.Send(Request("GET", path, "agent-key"));
  const Reply1 get = client.Receive();
  EXPECT_EQ(get.status, 200);
  EXPECT_EQ(get.Field("Content-Type"), "application/octet-stream");
  EXPECT_EQ(get.Field("Content-Disposition"), "attachment");
  EXPECT_EQ(get.body, content);
  client.Send(Request("GET", "/v1/sessions/" + kSessionId + "/files", "agent-key"));
  EXPECT_EQ(json::parse(client.Receive().body)["files"][0]["path"], "data/a b.bin");
  client.Send(Request("DELETE", path, "agent-key"));
  EXPECT_EQ(client.Receive().status, 204);
  client.Send(Request("GET", path, "agent-key"));
  EXPECT_EQ(client.Receive().status, 404);
}

// RFC 9110: 14.5 asks for the 400, 8.4 has the 415; a condition that is not looked at must not look as if it held.
TEST(Server, AnUploadThatMeansSomethingElseIsRefused) {
  RunningServer server;
  const std::string path = "/v1/sessions/" + kSessionId + "/files/f";
  const auto put = [&](std::string_view field) {
    RawClient client = RawClient::Tcp(server.port());
    client.Send(Request("PUT", path, "agent-key", field, "new"));
    return client.Receive();
  };
  ASSERT_EQ(put("").status, 201);
  for (const auto& [field, status, code] :
       {std::tuple("Content-Range: bytes 0-2/10\r\n", 400, "file.part"),
        std::tuple("Content-Encoding: gzip\r\n", 415, "body.encoding"),
        std::tuple("If-Match: \"1\"\r\n", 501, "file.condition"),
        std::tuple("If-Match: *\r\n", 501, "file.condition"),
        std::tuple("If-None-Match: *\r\n", 501, "file.condition"),
        std::tuple("If-Unmodified-Since: Sat, 29 Oct 1994 19:43:31 GMT\r\n", 501,
                   "file.condition")}) {
    server.OnLoop([&] { server.service.files["f"] = "old"; });
    const Reply1 reply = put(field);
    EXPECT_EQ(reply.status, status) << field << reply.body;
    EXPECT_EQ(reply.Code(), code) << field;
    server.OnLoop([&] { EXPECT_EQ(server.service.files["f"], "old") << field; });
  }
  // The control: what says nothing of the kind.
  EXPECT_EQ(put("Content-Encoding: identity\r\n").status, 201);
  EXPECT_EQ(put("If-Modified-Since: Sat, 29 Oct 1994 19:43:31 GMT\r\n").status, 201)
      << "means nothing in a PUT";
  server.OnLoop([&] { EXPECT_EQ(server.service.files["f"], "new"); });
}

TEST(Server, AnEmptyFileIsAFile) {
  RunningServer server;
  RawClient client = RawClient::Tcp(server.port());
  const std::string path = "/v1/sessions/" + kSessionId + "/files/empty";
  client.Send(Request("PUT", path, "agent-key", "Content-Length: 0\r\n"));
  EXPECT_EQ(client.Receive().status, 201);
  client.Send(Request("GET", path, "agent-key"));
  const Reply1 reply = client.Receive();
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.Field("Content-Length"), "0");
}

TEST(Server, AQuotaEndsAnUploadAndNothingRemains) {
  RunningServer server;
  server.OnLoop([&] { server.service.quota = 100'000; });
  RawClient client = RawClient::Tcp(server.port());
  const std::string path = "/v1/sessions/" + kSessionId + "/files/f";
  client.Send(Request("PUT", path, "agent-key", "Transfer-Encoding: chunked\r\n"));
  const std::string chunk = "10000\r\n" + std::string(65536, 'x') + "\r\n";
  client.Send(chunk);
  client.Send(chunk);
  const Reply1 reply = client.Receive();
  EXPECT_EQ(reply.status, 413);
  EXPECT_EQ(reply.Code(), "quota.disk");
  EXPECT_TRUE(client.Ends());
  EXPECT_TRUE(server.Eventually([&] { return server.service.discarded.count("f") == 1; }));
  server.OnLoop([&] { EXPECT_TRUE(server.service.files.empty()); });
}

TEST(Server, AnUploadThatIsCutLeavesNothing) {
  RunningServer server;
  RawClient client = RawClient::Tcp(server.port());
  client.Send(Request("PUT", "/v1/sessions/" + kSessionId + "/files/f", "agent-key",
                      "Content-Length: 1000\r\n") +
              "abc");
  ASSERT_TRUE(server.Eventually([&] { return !server.service.asked.empty(); }));
  client.Reset();
  EXPECT_TRUE(server.Eventually([&] { return server.service.discarded.count("f") == 1; }));
  server.OnLoop([&] { EXPECT_TRUE(server.service.files.empty()); });
}

// Wherever a request waits for the service, the client may vanish and even the server may be gone when the reply comes.
TEST(Server, LateRepliesFindNobodyAndDoNoHarm) {
  const std::string put = Request("PUT", "/v1/sessions/" + kSessionId + "/files/f", "agent-key",
                                  "Content-Length: 10\r\n") +
                          "abc";
  for (const int stage : {0, 1, 2}) {
    for (const bool server_too : {false, true}) {
      SCOPED_TRACE(std::to_string(stage) + (server_too ? " and the server" : ""));
      RunningServer server;
      RawClient client = RawClient::Tcp(server.port());
      server.OnLoop([&] { server.service.hold = true; });
      client.Send(put);
      ASSERT_TRUE(server.Eventually([&] { return server.service.last_credential.has_value(); }));
      for (int i = 0; i < stage; ++i) {  // then it waits for OpenUpload, then for Write
        server.OnLoop([&] { server.service.ReleaseHeld(); });
        ASSERT_TRUE(server.Eventually([&] { return server.service.held() == 1; }));
      }
      client.Reset();
      server.OnLoop([&] {
        if (server_too) {
          server.CloseServer();
        }
      });
      server.OnLoop([&] { server.service.Release(); });
      EXPECT_TRUE(server_too ||
                  server.Eventually([&] { return server.server().stats().connections == 0; }));
      server.OnLoop([&] { EXPECT_TRUE(server.service.files.empty()); });
    }
  }
}

// Checking a signature takes long, and anybody can send one: the loop leaves it to the service.
TEST(Server, ATokenIsCheckedByTheService) {
  const test::TokenIssuer issuer;
  const test::TokenIssuer other;
  JwtConfig jwt;
  jwt.issuer = test::TokenIssuer::kName;
  jwt.audience = "coffer";
  jwt.jwks = issuer.Jwks();
  Result<std::shared_ptr<const JwtVerifier>> verifier = JwtVerifier::Make(jwt);
  ASSERT_TRUE(verifier.ok());
  ServerConfig config;
  config.http.jwt = *verifier;
  RunningServer server(config);
  RawClient stranger = RawClient::Tcp(server.port());
  RawClient client = RawClient::Tcp(server.port());
  const auto waits = [&] {
    pollfd answer{client.fd(), POLLIN, 0};
    return ::poll(&answer, 1, 0) == 0;
  };
  for (const bool good : {false, true}) {
    SCOPED_TRACE(good);
    server.OnLoop([&] { server.service.hold = true; });
    client.Send(Request("GET", "/v1/tools", (good ? issuer : other).Token("t1", "agent")));
    ASSERT_TRUE(server.Eventually([&] { return server.service.held() == 1; }));
    // The control: what needs no signature is refused meanwhile.
    stranger.Send(Request("GET", "/v1/tools"));
    const Reply1 refused = stranger.Receive();
    EXPECT_EQ(refused.status, 401);
    EXPECT_EQ(refused.Code(), "auth.missing");
    EXPECT_TRUE(waits());
    server.OnLoop([&] { server.service.Release(); });
    const Reply1 answer = client.Receive();
    EXPECT_EQ(answer.status, good ? 200 : 401) << answer.body;
    EXPECT_EQ(answer.Code(), good ? "" : "auth.token");
    EXPECT_EQ(answer.Field("WWW-Authenticate").empty(), good);
  }
}

TEST(Server, UnixSocketShowsThePeer) {
  const test::TempDir dir;
  ServerConfig config;
  config.unix_sockets.push_back({dir / "s", 0600});
  {
    RunningServer server(std::move(config));
    struct stat info{};
    ASSERT_EQ(::stat((dir / "s").c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 07777, 0600U);
    RawClient client = RawClient::Unix(dir / "s");
    client.Send(Request("GET", "/v1/tools"));
    EXPECT_EQ(client.Receive().status, 200);
    server.OnLoop([&] {
      ASSERT_TRUE(server.service.last_credential->peer.has_value());
      EXPECT_EQ(server.service.last_credential->peer->uid, ::geteuid());
      EXPECT_EQ(server.service.last_credential->peer->gid, ::getegid());
      EXPECT_EQ(server.service.last_credential->peer->pid, ::getpid());
    });
    // A key that is shown counts, also when it is wrong: the peer is no second chance.
    client.Send(Request("GET", "/v1/tools", "wrong"));
    EXPECT_EQ(client.Receive().status, 401);
  }
  EXPECT_FALSE(std::filesystem::exists(dir / "s"));
}

TEST(Server, ReplacesALeftOverSocketAndNoOther) {
  const test::TempDir dir;
  ServerConfig config;
  config.unix_sockets.push_back({dir / "s", 0600});
  RunningServer first(config);
  auto loop = net::MakeLoop();
  FakeService service;
  auto second = Server::Open(*loop, service, config);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, "gateway.listen.taken");
  // Left over: bound by somebody who is gone.
  std::filesystem::rename(dir / "s", dir / "old");
  first.OnLoop([&] { first.server().Drain(std::chrono::milliseconds(10), [] {}); });
  config.unix_sockets[0].path = dir / "old";
  auto third = Server::Open(*loop, service, config);
  EXPECT_TRUE(third.ok()) << third.error().message;
  // Not a socket at all.
  {
    std::FILE* file = std::fopen((dir / "file").c_str(), "w");
    std::fclose(file);
  }
  config.unix_sockets[0].path = dir / "file";
  EXPECT_FALSE(Server::Open(*loop, service, config).ok());
  EXPECT_TRUE(std::filesystem::is_regular_file(dir / "file"));
  if (third.ok()) {
    third->reset();
  }
}

TEST(Server, DrainLetsRequestsEndAndClosesTheIdle) {
  RunningServer server;
  RawClient idle = RawClient::Tcp(server.port());
  idle.Send(Request("GET", "/healthz"));
  ASSERT_EQ(idle.Receive().status, 200);
  RawClient busy = RawClient::Tcp(server.port());
  busy.Send(CallOf(R"({"tool":"wait"})"));
  ASSERT_TRUE(server.Eventually([&] { return server.service.submitted.size() == 1; }));
  bool drained = false;
  server.OnLoop([&] { server.server().Drain(std::chrono::seconds(30), [&] { drained = true; }); });
  EXPECT_TRUE(idle.Ends());
  EXPECT_FALSE(RawClient::Tcp(server.port()).connected());
  server.OnLoop([&] { EXPECT_FALSE(drained); });
  server.OnLoop([&] { server.service.Finish(); });
  const Reply1 reply = busy.Receive();
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.Field("Connection"), "close");
  busy.FinishSending();
  EXPECT_TRUE(server.Eventually([&] { return drained; }));
}

TEST(Server, DrainCutsWhatTakesTooLong) {
  RunningServer server;
  RawClient busy = RawClient::Tcp(server.port());
  busy.Send(CallOf(R"({"tool":"wait"})"));
  ASSERT_TRUE(server.Eventually([&] { return server.service.submitted.size() == 1; }));
  bool drained = false;
  server.OnLoop(
      [&] { server.server().Drain(std::chrono::milliseconds(50), [&] { drained = true; }); });
  EXPECT_TRUE(busy.Ends());
  EXPECT_TRUE(server.Eventually([&] { return drained; }));
  server.OnLoop([&] { server.service.Finish(); });  // the reply comes late, and goes nowhere
}

TEST(Server, ReadinessIsAStatus) {
  RunningServer server;
  RawClient client = RawClient::Tcp(server.port());
  client.Send(Request("GET", "/readyz"));
  EXPECT_EQ(client.Receive().status, 200);
  server.OnLoop([&] { server.service.ready = false; });
  client.Send(Request("GET", "/readyz"));
  const Reply1 reply = client.Receive();
  EXPECT_EQ(reply.status, 503);
  EXPECT_EQ(json::parse(reply.body)["checks"][0]["detail"], "migrating");
}

}  // namespace
}  // namespace coffer::gateway
