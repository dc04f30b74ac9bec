// SPDX-License-Identifier: Apache-2.0
//
// A switch is stronger than every role that it stops, names that do not exist cannot be stopped, and a revoked key takes its
// calls along.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <thread>

#include "tests/daemon/daemon.h"
#include "tests/gateway/harness.h"

namespace coffer::test {
namespace {

constexpr const char* kBecause = R"({"reason":"incident"})";

constexpr const char* kProcess = R"({"tool":"bash","args":{"command":"sleep 600"}})";

std::string McpMessage(const std::string& method, const std::string& params) {
  return R"({"jsonrpc":"2.0","id":1,"method":")" + method + R"(","params":{)" + params +
         R"("_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",)"
         R"("io.modelcontextprotocol/clientCapabilities":{}}}})";
}
std::string McpFields(const std::string& method) {
  return "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: " + method + "\r\n";
}

class Stopped : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(daemon_.Start());
    olga_ = daemon_.NewKey("local", "operator", "olga");
    key_ = olga_["key"];
    session_ = daemon_.NewSession(key_);
    call_ = daemon_.Call(key_, Bash("echo mine")).At("call_id");
    process_ = daemon_.Ask("POST", Processes(), key_, kProcess).At("process_id");
    ASSERT_NE(process_, "");
  }
  HttpAnswer Ask(const std::string& method, const std::string& path, const std::string& body = {}) {
    return daemon_.Ask(method, path, key_, body);
  }
  std::string Processes() const { return "/v1/sessions/" + session_ + "/processes"; }
  // Everything an operator can do but read the record; each with what it answers when nothing stops it, and when she is
  // stopped: a denied call is a call, so its answer has the shape of every other, and MCP has a shape of its own.
  struct Deed {
    const char* method;
    std::string path;  // PROCESS stands for the id of the process that was begun last
    std::string body;
    int status;
    int stopped = 403;
    std::string fields = {};
  };
  std::vector<Deed> Deeds() {
    return {{"POST", "/v1/calls", R"({"tool":"bash","args":{"command":"true"}})", 200, 200},
            {"POST", "/v1/sessions", "{}", 201},
            {"POST", "/v1/sessions/" + session_ + "/extend", R"({"lifetime_seconds":7200})", 200},
            {"POST", Processes(), kProcess, 201, 200},
            {"POST", Processes() + "/PROCESS/signal", R"({"signal":"TERM"})", 202},
            {"POST", "/mcp", McpMessage("tools/list", ""), 200, 200, McpFields("tools/list")},
            {"POST", "/mcp",
             McpMessage("tools/call", R"("name":"bash","arguments":{"command":"true"},)"), 200, 200,
             McpFields("tools/call") + "Mcp-Name: bash\r\n"},
            {"PUT", "/v1/sessions/" + session_ + "/files/f", "x", 201},
            {"GET", "/v1/sessions/" + session_ + "/files/f", "", 200},
            {"GET", "/v1/sessions/" + session_ + "/files", "", 200},
            {"DELETE", "/v1/sessions/" + session_ + "/files/f", "", 204},
            {"GET", "/v1/tools", "", 200},
            {"GET", "/v1/keys", "", 200},
            {"GET", "/v1/access", "", 200},
            {"GET", "/metrics", "", 200},
            {"POST", "/v1/keys", R"({"role":"operator","agent":"escape"})", 201},
            {"PUT", "/v1/switches/agent/olga", kBecause, 200},
            {"DELETE", "/v1/switches/agent/olga", "", 204},
            {"POST", "/v1/calls/" + call_ + "/cancel", "", 409},
            {"DELETE", "/v1/sessions/" + session_, "", 200}};
  }
  HttpAnswer Do(const Deed& deed) {
    std::string path = deed.path;
    if (const size_t at = path.find("PROCESS"); at != std::string::npos) {
      path.replace(at, 7, process_);
    }
    const HttpAnswer answer = daemon_.Ask(deed.method, path, key_, deed.body, deed.fields);
    const std::string process = answer.At("process_id");
    process_ = process.empty() ? process_ : process;
    return answer;
  }
  void ExpectOnlyTheRecord() {
    for (const Deed& deed : Deeds()) {
      SCOPED_TRACE(std::string(deed.method) + " " + deed.path + " " + deed.fields);
      const HttpAnswer answer = Do(deed);
      EXPECT_EQ(answer.status, deed.stopped) << answer.text;
      EXPECT_TRUE(Contains(answer.text, "policy.switch")) << answer.text;
    }
    for (const std::string& path :
         {"/v1/calls/" + call_, "/v1/calls/" + call_ + "/receipt", std::string("/v1/sessions"),
          "/v1/sessions/" + session_, std::string("/v1/audit"), std::string("/v1/switches")}) {
      EXPECT_EQ(Ask("GET", path).status, 200) << path;
    }
  }

  Daemon daemon_;
  Json olga_;
  std::string key_, session_, call_, process_;
};

TEST_F(Stopped, AnOperatorWhoIsStoppedReadsTheRecordAndNothingElse) {
  ASSERT_EQ(daemon_.Ask("PUT", "/v1/switches/agent/olga", daemon_.key(), kBecause).status, 200);
  ExpectOnlyTheRecord();
  EXPECT_TRUE(Contains(daemon_.Ask("GET", "/v1/switches", daemon_.key()).text, "olga"))
      << "the switch is still on";
  // The control: an operator whom nothing stops can do all of it.
  ASSERT_EQ(daemon_.Ask("DELETE", "/v1/switches/agent/olga", daemon_.key()).status, 204);
  for (const Deed& deed : Deeds()) {
    SCOPED_TRACE(std::string(deed.method) + " " + deed.path + " " + deed.fields);
    // She stops herself on the way; another operator lets her go on.
    if (std::string(deed.method) == "DELETE" && Contains(deed.path, "/switches/")) {
      EXPECT_EQ(daemon_.Ask("DELETE", deed.path, daemon_.key()).status, 204);
      continue;
    }
    const HttpAnswer answer = Do(deed);
    EXPECT_EQ(answer.status, deed.status) << answer.text;
    if (deed.status == deed.stopped) {  // then it does not tell one from the other
      EXPECT_FALSE(Contains(answer.text, "policy.switch")) << answer.text;
    }
  }
}

TEST_F(Stopped, ATenantCannotLiftItsOwnSwitch) {
  ASSERT_EQ(daemon_.Ask("PUT", "/v1/switches/tenant/local", daemon_.key(), kBecause).status, 200);
  ExpectOnlyTheRecord();
  EXPECT_EQ(daemon_.Ask("DELETE", "/v1/switches/tenant/local", daemon_.key()).status, 403);
  const RunResult off =
      RunProgram({CofferPath(), "switch", "off", "tenant", "local", "--state", daemon_.state()});
  EXPECT_EQ(off.exit, 0) << off.Describe();
  EXPECT_EQ(Ask("POST", "/v1/sessions", "{}").status, 201);
}

// The request begins before the switch and its body ends after it: what counts is the moment in which something is done.
TEST_F(Stopped, ASlowBodyDoesNotOutliveTheSwitch) {
  const std::string body = R"({"role":"operator","agent":"late"})";
  const auto begin = [&](gateway::RawClient& client) {
    EXPECT_TRUE(client.Send(
        "POST /v1/keys HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + key_ +
        "\r\nContent-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) +
        "\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n"));
    EXPECT_EQ(client.Receive().status, 100) << "the head was read";
  };
  gateway::RawClient first = gateway::RawClient::Tcp(daemon_.port());
  begin(first);
  ASSERT_TRUE(first.Send(body));
  EXPECT_EQ(first.Receive().status, 201) << "the control";

  gateway::RawClient second = gateway::RawClient::Tcp(daemon_.port());
  begin(second);
  gateway::RawClient third = gateway::RawClient::Tcp(daemon_.port());
  begin(third);
  ASSERT_EQ(daemon_.Ask("PUT", "/v1/switches/agent/olga", daemon_.key(), kBecause).status, 200);
  ASSERT_TRUE(second.Send(body));
  EXPECT_EQ(second.Receive().status, 403);
  // The same with a key that is revoked meanwhile.
  ASSERT_EQ(daemon_.Ask("DELETE", "/v1/switches/agent/olga", daemon_.key()).status, 204);
  ASSERT_EQ(
      daemon_.Ask("DELETE", "/v1/keys/" + olga_["id"].get<std::string>(), daemon_.key()).status,
      200);
  ASSERT_TRUE(third.Send(body));
  EXPECT_EQ(third.Receive().status, 401);
}

TEST_F(Stopped, ANameThatDoesNotExistCannotBeStopped) {
  daemon_.NewKey("other", "agent", "theirs");
  const std::string theirs = daemon_.NewSession(daemon_.NewKey("other", "agent", "a")["key"]);
  for (const std::string& target :
       {std::string("tool/no-such-tool"), std::string("agent/no-such-agent"),
        std::string("session/") + kNoSuchId, std::string("tenant/no-such-tenant"),
        std::string("tenant/other"), std::string("agent/theirs"), "session/" + theirs}) {
    SCOPED_TRACE(target);
    for (const char* method : {"PUT", "DELETE"}) {
      const HttpAnswer answer = daemon_.Ask(method, "/v1/switches/" + target, daemon_.key(),
                                            std::string(method) == "PUT" ? kBecause : "");
      EXPECT_EQ(answer.status, 404) << answer.text;
      EXPECT_EQ(answer.At("code"), "switch.unknown");
    }
  }
  EXPECT_EQ(daemon_.Ask("GET", "/v1/switches", daemon_.key()).body["switches"].size(), 0U);
  // The control: what is there can be stopped, once; and let go, once.
  for (const std::string& target :
       {std::string("tool/bash"), std::string("agent/olga"), "session/" + session_}) {
    EXPECT_EQ(daemon_.Ask("PUT", "/v1/switches/" + target, daemon_.key(), kBecause).status, 200);
    EXPECT_EQ(daemon_.Ask("DELETE", "/v1/switches/" + target, daemon_.key()).status, 204);
    EXPECT_EQ(daemon_.Ask("DELETE", "/v1/switches/" + target, daemon_.key()).status, 404);
  }
}

// The key is made on the command line, which takes any printable name.
TEST_F(Stopped, AnAgentOfAnyNameCanBeStoppedAndLetGo) {
  for (const std::string name :
       {"a/b", "/", "//", "auth0|5f7c", "a+b@c.example", "%2F", "100%", "..", ".", "a?b=c#d",
        "{name}", R"("'<>\)", "tool:agent", "bash:a/b", "*", "-", "~", "&;="}) {
    SCOPED_TRACE(name);
    const std::string key = daemon_.NewKey("local", "agent", name)["key"];
    std::string encoded;
    for (const char c : name) {
      encoded += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
    const std::string path = "/v1/switches/agent/" + encoded;
    EXPECT_EQ(daemon_.Ask("GET", "/v1/tools", key).status, 200) << "the control";
    const HttpAnswer stopped = daemon_.Ask("PUT", path, daemon_.key(), kBecause);
    ASSERT_EQ(stopped.status, 200) << stopped.text;
    EXPECT_EQ(stopped.At("name"), name);
    const HttpAnswer list = daemon_.Ask("GET", "/v1/switches", daemon_.key());
    ASSERT_EQ(list.body["switches"].size(), 1U) << list.text;
    EXPECT_EQ(list.body["switches"][0]["name"], name);
    EXPECT_EQ(daemon_.Ask("GET", "/v1/tools", key).status, 403);
    EXPECT_EQ(daemon_.Ask("DELETE", path, daemon_.key()).status, 204);
    EXPECT_EQ(daemon_.Ask("DELETE", path, daemon_.key()).status, 404);
    EXPECT_EQ(daemon_.Ask("GET", "/v1/tools", key).status, 200);
    EXPECT_EQ(daemon_.Ask("GET", "/v1/audit?agent=" + encoded, daemon_.key()).status, 200);
  }
  for (const std::string wrong : {"%00", "a%20b", "%C3%A4", "%0A", "%7F", "%", "%4"}) {
    EXPECT_EQ(daemon_.Ask("DELETE", "/v1/switches/agent/" + wrong, daemon_.key()).status, 400)
        << wrong;
  }
}

TEST_F(Stopped, RevokingAKeyEndsItsCalls) {
  for (const bool keep : {false, true}) {
    for (const bool from_outside : {false, true}) {
      SCOPED_TRACE(keep);
      SCOPED_TRACE(from_outside);
      const Json key = daemon_.NewKey("local", "agent", "worker");
      const std::string session = daemon_.NewSession(key["key"]);
      const HttpAnswer began = daemon_.Call(key["key"], Bash(WaitForGo(), session), kAsync);
      ASSERT_TRUE(WaitUntil([&] { return Exists(daemon_.Workspace(session) + "/began"); }));
      const std::string id = key["id"];
      if (from_outside) {
        Strings words = {CofferPath(), "key", "revoke", id, "--state", daemon_.state()};
        if (keep) {
          words.push_back("--keep-running");
        }
        const RunResult revoked = RunProgram(words);
        EXPECT_EQ(revoked.exit, 0) << revoked.Describe();
      } else {
        EXPECT_EQ(
            daemon_
                .Ask("DELETE", "/v1/keys/" + id + (keep ? "?keep_running=true" : ""), daemon_.key())
                .status,
            200);
      }
      EXPECT_EQ(daemon_.Ask("GET", "/v1/tools", key["key"]).status, 401);
      const auto state = [&] {
        return daemon_.Ask("GET", "/v1/calls/" + began.At("call_id"), daemon_.key()).At("state");
      };
      if (keep) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1500));
        EXPECT_EQ(state(), "running") << "the control";
        EXPECT_EQ(daemon_.Ask("DELETE", "/v1/keys/" + id, daemon_.key()).status, 200);
      }
      EXPECT_TRUE(WaitUntil([&] { return state() == "finished"; }));
    }
  }
}

}  // namespace
}  // namespace coffer::test
