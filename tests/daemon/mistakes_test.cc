// SPDX-License-Identifier: Apache-2.0
//
// Ordinary mistakes in requests: each gets one answer that names what is wrong. What is not a call is a problem (RFC
// 9457); what is a call and was denied is the answer of a call, whatever it was denied for.
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/daemon/daemon.h"
#include "tests/gateway/harness.h"

namespace coffer::test {
namespace {

struct Mistake {
  const char* method;
  const char* path;
  const char* body;
  int status;
  const char* code;
  Strings must_name;
};

TEST(RequestMistakes, AreNamed) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  const std::string calls = "/v1/calls";
  const Mistake mistakes[] = {
      {"GET", "/v1/audit?limt=3", "", 400, "query.invalid", {"limt", "did you mean limit?"}},
      {"GET", "/v1/sessions?foo=1", "", 400, "query.invalid", {"foo", "limit, cursor"}},
      {"GET", "/v1/tools/bash?x=1", "", 400, "query.invalid", {"x", "it takes none"}},
      {"GET", "/v1/audit?limit", "", 400, "query.invalid", {"limit has no value"}},
      {"GET", "/v1/audit?limit=1&limit=2", "", 400, "query.invalid", {"limit is given twice"}},
      {"GET", "/v1/audit?limit=0", "", 400, "query.invalid", {"limit"}},
      {"GET", "/v1/audit?denied=yes", "", 400, "query.invalid", {"denied"}},
      {"GET", "/v1/tols", "", 404, "route.unknown", {"/openapi.json"}},
      {"POST", "/v1/tools", "{}", 405, "route.method", {"method"}},
      {"GET", "/v1/tools/pyhton", "", 404, "tool.unknown", {"/v1/tools"}},
      {"GET", "/v1/calls/nope", "", 400, "path.invalid", {}},
      {"POST",
       "/v1/sessions",
       R"({"lifetime_seconds": 90000})",
       400,
       "body.invalid",
       {"/lifetime_seconds", "86400"}},
      {"POST",
       "/v1/sessions",
       R"({"lifetime": 5})",
       400,
       "body.invalid",
       {"/lifetime", "the members are", "lifetime_seconds"}},
      {"POST", "/v1/sessions", R"({"lable": "x"})", 400, "body.invalid", {"did you mean label?"}},
      {"POST", "/v1/sessions", "{", 400, "json.syntax", {}},
      {"POST", "/v1/calls", R"({"tol": "bash"})", 400, "body.invalid", {"/tool", "/tol"}},
      {"POST", "/v1/calls", R"({"tool": "bash", "args": 1})", 400, "body.invalid", {"/args"}},
      {"POST",
       "/v1/calls",
       R"({"tool": "bash", "session_id": "x"})",
       400,
       "body.invalid",
       {"/session_id"}},
      {"PUT", "/v1/switches/tool/bsh", R"({"reason": "x"})", 404, "switch.unknown", {"tool"}},
      {"PUT", "/v1/switches/tool/bash", "{}", 400, "body.invalid", {"/reason"}},
  };
  for (const Mistake& mistake : mistakes) {
    SCOPED_TRACE(std::string(mistake.method) + " " + mistake.path + " " + mistake.body);
    const HttpAnswer answer = daemon.Ask(mistake.method, mistake.path, daemon.key(), mistake.body);
    EXPECT_EQ(answer.status, mistake.status) << answer.text;
    EXPECT_EQ(answer.At("code"), mistake.code) << answer.text;
    for (const std::string& part : mistake.must_name) {
      EXPECT_TRUE(Contains(answer.text, part)) << part << "\n" << answer.text;
    }
  }
}

TEST(Denials, NameTheToolThatWasMeant) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  const HttpAnswer near = daemon.Call(daemon.key(), {{"tool", "bsh"}, {"args", Json::object()}});
  EXPECT_EQ(near.body["denials"][0]["fix"], "did you mean bash?") << near.text;
  const HttpAnswer far = daemon.Call(daemon.key(), {{"tool", "nothing"}, {"args", Json::object()}});
  EXPECT_TRUE(Contains(far.text, "GET /v1/tools")) << far.text;
}

// Arguments, tools, roles, switches, sessions and retries: one status, one shape, a receipt of its own.
TEST(Denials, HaveOneStatusAndOneShape) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  const std::string auditor = daemon.NewKey("local", "auditor", "eve")["key"];
  const std::string stopped = daemon.NewKey("local", "agent", "sam")["key"];
  ASSERT_EQ(daemon.Ask("PUT", "/v1/switches/agent/sam", daemon.key(), R"({"reason":"x"})").status,
            200);
  Json nowhere = Bash("true");
  nowhere["session_id"] = kNoSuchId;
  const struct {
    const char* rule;
    std::string key;
    Json body;
  } kDenied[] = {
      {"policy.args.schema", daemon.key(), {{"tool", "bash"}, {"args", {{"comand", 1}}}}},
      {"policy.tool", daemon.key(), {{"tool", "nothing"}, {"args", Json::object()}}},
      {"policy.role", auditor, Bash("true")},
      {"policy.switch", stopped, Bash("true")},
      {"policy.session", daemon.key(), nowhere},
  };
  for (const auto& denied : kDenied) {
    SCOPED_TRACE(denied.rule);
    const HttpAnswer answer = daemon.Call(denied.key, denied.body);
    EXPECT_EQ(answer.status, 200) << answer.text;
    EXPECT_EQ(answer.DeniedBy(), denied.rule) << answer.text;
    EXPECT_TRUE(answer.body["result"].is_null()) << answer.text;
    ASSERT_EQ(answer.body["denials"].size(), 1U) << answer.text;
    EXPECT_EQ(answer.body["denials"][0]["rule"], denied.rule);
    EXPECT_TRUE(answer.body["log"].is_object()) << answer.text;
    const HttpAnswer receipt =
        daemon.Ask("GET", "/v1/calls/" + answer.At("call_id") + "/receipt", daemon.key());
    EXPECT_EQ(receipt.body["outcome"], "denied") << receipt.text;
  }
}

TEST(Output, ACutIsSaid) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  const HttpAnswer cut = daemon.Call(daemon.key(), Bash("head -c 3000000 /dev/zero | tr '\\0' x"));
  EXPECT_EQ(cut.body["result"]["truncated"], true) << cut.text.substr(0, 300);
  EXPECT_TRUE(Contains(cut.text, "output truncated at")) << "a model reads it in the text too";
  const HttpAnswer whole = daemon.Call(daemon.key(), Bash("echo x"));
  EXPECT_EQ(whole.body["result"]["truncated"], false) << whole.text;
}

TEST(Cancelled, SaysSoAndByWhom) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  const std::string worker = daemon.NewKey("local", "agent", "worker")["key"];
  const std::string boss = daemon.NewKey("local", "operator", "boss")["key"];
  const auto ended = [&](const std::string& call) {
    EXPECT_TRUE(WaitUntil(
        [&] { return daemon.Ask("GET", "/v1/calls/" + call, worker).At("state") == "finished"; }));
    return daemon.Ask("GET", "/v1/calls/" + call, worker);
  };
  const std::string session = daemon.NewSession(worker);
  const auto begin = [&] {
    ::unlink((daemon.Workspace(session) + "/began").c_str());
    const std::string call = daemon.Call(worker, Bash(WaitForGo(), session), kAsync).At("call_id");
    EXPECT_TRUE(WaitUntil([&] { return Exists(daemon.Workspace(session) + "/began"); }));
    return call;
  };
  const std::string one = begin();
  EXPECT_EQ(daemon.Ask("POST", "/v1/calls/" + one + "/cancel", boss).status, 202);
  const HttpAnswer cancelled = ended(one);
  EXPECT_EQ(cancelled.Outcome(), "terminated") << cancelled.text;
  EXPECT_EQ(cancelled.body["error"]["class"], "policy.cancelled") << cancelled.text;
  EXPECT_TRUE(Contains(cancelled.text, "cancelled by boss")) << cancelled.text;

  // At once: perhaps before anything could report how it ended. It is said all the same.
  const std::string early = daemon.Call(worker, Bash("sleep 20"), kAsync).At("call_id");
  EXPECT_EQ(daemon.Ask("POST", "/v1/calls/" + early + "/cancel", boss).status, 202);
  EXPECT_TRUE(Contains(ended(early).text, "cancelled by boss")) << ended(early).text;

  const std::string two = begin();
  EXPECT_EQ(daemon.Ask("PUT", "/v1/switches/tool/bash", daemon.key(), R"({"reason":"x"})").status,
            200);
  EXPECT_EQ(ended(two).body["error"]["class"], "policy.switch") << ended(two).text;
  EXPECT_EQ(daemon.Ask("DELETE", "/v1/switches/tool/bash", daemon.key()).status, 204);

  const std::string three = begin();
  EXPECT_EQ(daemon.Ask("DELETE", "/v1/sessions/" + session, worker).status, 200);
  EXPECT_TRUE(Contains(ended(three).text, "cancelled with its session")) << ended(three).text;
}

// The answer comes before the body has been sent. A client that sends all of it first still gets it.
TEST(Uploads, AQuotaErrorReachesAClientThatStillSends) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  const std::string session = daemon.NewSession(daemon.key());
  gateway::RawClient client = gateway::RawClient::Tcp(daemon.port());
  constexpr size_t kSize = 200 << 20;  // twice what a session holds
  ASSERT_TRUE(client.Send("PUT /v1/sessions/" + session +
                          "/files/large HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " +
                          daemon.key() + "\r\nContent-Length: " + std::to_string(kSize) +
                          "\r\n\r\n"));
  const std::string piece(1 << 20, 'x');
  for (size_t sent = 0; sent < kSize; sent += piece.size()) {
    ASSERT_TRUE(client.Send(piece)) << "the connection was reset after " << sent;
  }
  const auto answer = client.Receive();
  EXPECT_EQ(answer.status, 413);
}

}  // namespace
}  // namespace coffer::test
