// SPDX-License-Identifier: Apache-2.0
//
// MCP over HTTP against the whole daemon: real calls in sessions, what another agent sees of them, and boundaries that end
// when their clients do.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/daemon/daemon.h"
#include "tests/gateway/harness.h"
#include "tests/support/tools_fixture.h"

namespace coffer::test {
namespace {

constexpr const char* kAccept = "Accept: application/json, text/event-stream\r\n";
// For a client that is not the daemon's Ask, which says it by itself.
constexpr const char* kFields =
    "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n";

Json Message(const Json& id, const std::string& method, Json params) {
  return {{"jsonrpc", "2.0"}, {"id", id}, {"method", method}, {"params", std::move(params)}};
}
Json BashCall(const Json& id, const std::string& command) {
  return Message(id, "tools/call", {{"name", "bash"}, {"arguments", {{"command", command}}}});
}
Json Modern(Json message) {
  message["params"]["_meta"] = {{"io.modelcontextprotocol/protocolVersion", "2026-07-28"},
                                {"io.modelcontextprotocol/clientCapabilities", Json::object()}};
  return message;
}
std::string ModernFields(const std::string& method, const std::string& name = "") {
  return "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: " + method + "\r\n" +
         (name.empty() ? "" : "Mcp-Name: " + name + "\r\n");
}

class McpDaemon : public ::testing::Test {
 protected:
  void SetUp() override {
    std::ofstream(daemon_.tools() + "/send.toml")
        << IrreversibleToolText("send", "echo sent $RANDOM$RANDOM");
    ASSERT_TRUE(daemon_.Start());
  }
  HttpAnswer Post(const std::string& key, const Json& message, const std::string& fields,
                  const std::string& path = "/mcp") {
    return daemon_.Ask("POST", path, key, message.dump(), kAccept + fields);
  }
  // The fields of a session that this key has begun.
  std::string Begin(const std::string& key) {
    const HttpAnswer begun =
        Post(key, Message(0, "initialize", {{"protocolVersion", "2025-11-25"}}), "");
    EXPECT_EQ(begun.status, 200) << begun.text;
    session_ = begun.Field("Mcp-Session-Id");
    return "Mcp-Session-Id: " + session_ + "\r\nMCP-Protocol-Version: 2025-11-25\r\n";
  }
  static std::string Stdout(const HttpAnswer& answer) {
    return answer.body.is_object() && answer.body.contains("result")
               ? answer.body["result"]["structuredContent"].value("stdout", "")
               : answer.text;
  }
  // The class with which the newest call of this key ended, when it has.
  std::string LastClass(const std::string& key) {
    const HttpAnswer list = daemon_.Ask("GET", "/v1/calls?limit=1", key);
    if (!list.body.is_object() || list.body["calls"].empty()) {
      return "";
    }
    const Json& error_class = list.body["calls"][0]["error_class"];
    return error_class.is_string() ? error_class.get<std::string>() : "";
  }
  Daemon daemon_;
  std::string session_;
};

TEST_F(McpDaemon, CallsOfASessionShareFilesThatAreResources) {
  const std::string key = daemon_.NewKey("local", "agent", "bot")["key"];
  const std::string fields = Begin(key);
  const HttpAnswer tools = Post(key, Message(1, "tools/list", Json::object()), fields);
  EXPECT_TRUE(Contains(tools.text, "\"bash\"")) << tools.text;
  EXPECT_TRUE(Contains(tools.text, "\"readOnlyHint\":"));
  EXPECT_EQ(Stdout(Post(key, BashCall(2, "echo hey > 'a b.txt'; echo done"), fields)), "done\n");
  EXPECT_EQ(Stdout(Post(key, BashCall(3, "cat 'a b.txt'"), fields)), "hey\n");
  EXPECT_EQ(Stdout(Post(key, BashCall(3, "cat 'a b.txt'"), fields)), "hey\n") << "sent twice";
  EXPECT_EQ(daemon_.Ask("GET", "/v1/calls", key).body["calls"].size(), 2U) << "it ran once";
  const HttpAnswer listed = Post(key, Message(4, "resources/list", Json::object()), fields);
  const std::string uri = "coffer://sessions/" + session_ + "/files/a%20b.txt";
  EXPECT_TRUE(Contains(listed.text, uri)) << listed.text;
  const Json read = Message(5, "resources/read", {{"uri", uri}});
  EXPECT_EQ(Post(key, read, fields).body["result"]["contents"][0]["text"], "hey\n");

  // Another agent of the tenant, and another tenant: neither the session, nor the file, nor a call in it.
  for (const char* tenant : {"local", "other"}) {
    const std::string stranger = daemon_.NewKey(tenant, "agent", "spy")["key"];
    EXPECT_EQ(Post(stranger, BashCall(1, "cat 'a b.txt'"), fields).status, 404) << tenant;
    EXPECT_EQ(
        Post(stranger, Modern(read), ModernFields("resources/read", uri)).body["error"]["code"],
        -32602);
    const HttpAnswer call = Post(stranger, Modern(BashCall(1, "cat 'a b.txt'")),
                                 ModernFields("tools/call", "bash"), "/mcp?session=" + session_);
    EXPECT_FALSE(Contains(call.text, "hey")) << call.text;
    EXPECT_TRUE(Contains(call.text, "policy.session")) << call.text;
    EXPECT_EQ(daemon_.Ask("DELETE", "/mcp", stranger, "", fields).status, 404);
  }
  EXPECT_EQ(Stdout(Post(key, Modern(BashCall(1, "cat 'a b.txt'")),
                        ModernFields("tools/call", "bash"), "/mcp?session=" + session_)),
            "hey\n")
      << "the control: its own agent, in the modern era";

  EXPECT_EQ(daemon_.Ask("DELETE", "/mcp", key, "", fields).status, 204);
  EXPECT_EQ(Post(key, BashCall(6, "true"), fields).status, 404);
}

// Over HTTP too the id of a request is its key in a session. Without a session a key must be given.
TEST_F(McpDaemon, WhatCannotBeTakenBackRunsWithAKeyAndOnce) {
  const std::string key = daemon_.NewKey("local", "agent", "bot")["key"];
  const std::string fields = Begin(key);
  const auto send = [](const Json& id) {
    return Message(id, "tools/call", {{"name", "send"}, {"arguments", Json::object()}});
  };
  const auto sent = [&](const Json& message, const std::string& how) {
    const HttpAnswer answer = Post(key, message, how);
    const std::string out = Stdout(answer);
    return out.starts_with("sent ") ? out : answer.text;
  };
  const std::string first = sent(send(1), fields);
  EXPECT_TRUE(first.starts_with("sent ")) << first;
  EXPECT_EQ(sent(send(1), fields), first) << "OPEN: it ran again";
  EXPECT_NE(sent(send(2), fields), first) << "NO-CONTROL";
  const std::string modern = ModernFields("tools/call", "send");
  const std::string refused = sent(Modern(send(1)), modern);
  EXPECT_TRUE(Contains(refused, "policy.idempotency")) << "OPEN: " << refused;
  const std::string with_key = modern + "Idempotency-Key: mine\r\n";
  const std::string keyed = sent(Modern(send(1)), with_key);
  EXPECT_TRUE(keyed.starts_with("sent ")) << "NO-CONTROL: " << keyed;
  EXPECT_EQ(sent(Modern(send(2)), with_key), keyed) << "OPEN: it ran again";
  const Json calls = daemon_.Ask("GET", "/v1/calls", key).body["calls"];
  EXPECT_EQ(std::count_if(calls.begin(), calls.end(),
                          [](const Json& call) { return call["outcome"] == "success"; }),
            3)
      << calls.dump(1);
}

TEST_F(McpDaemon, ProcessesOfASessionAreTools) {
  const std::string key = daemon_.NewKey("local", "agent", "bot")["key"];
  const std::string fields = Begin(key);
  int next = 1;
  const auto call = [&](const std::string& caller, const std::string& with, const char* tool,
                        const Json& args) {
    return Post(caller, Message(next++, "tools/call", {{"name", tool}, {"arguments", args}}), with);
  };
  const auto state = [](const HttpAnswer& answer) {
    const Json& result = answer.body.contains("result") ? answer.body["result"] : answer.body;
    return result.contains("structuredContent") ? result["structuredContent"]["processes"][0]
                                                : Json{{"state", answer.text}};
  };
  EXPECT_TRUE(Contains(Post(key, Message(next++, "tools/list", Json::object()), fields).text,
                       "\"start-process\""));
  const HttpAnswer started =
      call(key, fields, "start-process", {{"command", "echo up; sleep 1000"}, {"ports", {8123}}});
  ASSERT_EQ(state(started)["state"], "running") << started.text;
  const std::string id = state(started)["process_id"];
  EXPECT_EQ(state(started)["ports"], Json::array({8123}));
  EXPECT_TRUE(WaitUntil([&] {
    return Contains(call(key, fields, "read-process", {{"process_id", id}}).text, "up\\n");
  }));
  const HttpAnswer later = call(key, fields, "read-process", {{"process_id", id}, {"offset", 3}});
  EXPECT_EQ(later.body["result"]["structuredContent"]["output"], "") << later.text;
  EXPECT_EQ(state(call(key, fields, "list-processes", Json::object()))["process_id"], id);
  EXPECT_TRUE(
      Contains(call(key, fields, "start-process", {{"command", "true"}, {"ports", {8123}}}).text,
               "policy.ports"));
  EXPECT_TRUE(
      Contains(call(key, fields, "start-process", {{"command", 5}}).text, "policy.args.schema"));

  // Another agent, in a session of its own, neither sees it nor ends it.
  const std::string first = session_;
  const std::string stranger = daemon_.NewKey("local", "agent", "spy")["key"];
  const std::string others = Begin(stranger);
  EXPECT_TRUE(Contains(call(stranger, others, "read-process", {{"process_id", id}}).text,
                       "policy.process"));
  EXPECT_TRUE(Contains(call(stranger, others, "stop-process", {{"process_id", id}}).text,
                       "policy.process"));
  EXPECT_FALSE(Contains(call(stranger, others, "list-processes", Json::object()).text, id));
  EXPECT_EQ(call(stranger, fields, "stop-process", {{"process_id", id}}).status, 404);
  EXPECT_EQ(state(call(key, fields, "read-process", {{"process_id", id}}))["state"], "running");

  // The control, and its receipt.
  EXPECT_TRUE(
      Contains(call(key, fields, "stop-process", {{"process_id", id}}).text, "asked to end"));
  EXPECT_TRUE(WaitUntil([&] {
    return state(call(key, fields, "read-process", {{"process_id", id}}))["state"] == "ended";
  }));
  EXPECT_EQ(state(call(key, fields, "stop-process", {{"process_id", id}}))["state"], "ended");
  EXPECT_TRUE(WaitUntil(
      [&] { return daemon_.Ask("GET", "/v1/calls/" + id + "/receipt", key).status == 200; }));

  // Without a session there are none.
  EXPECT_FALSE(Contains(
      Post(key, Modern(Message(1, "tools/list", Json::object())), ModernFields("tools/list")).text,
      "start-process"));
  EXPECT_EQ(Post(key,
                 Modern(Message(1, "tools/call",
                                {{"name", "start-process"}, {"arguments", {{"command", "true"}}}})),
                 ModernFields("tools/call", "start-process"))
                .body["error"]["code"],
            -32602);

  // Nor where the tool that they call does not go on after its answer.
  const auto list = [&] {
    return Post(key, Message(next++, "tools/list", Json::object()), fields).text;
  };
  EXPECT_TRUE(Contains(list(), "\"start-process\"")) << "NO-CONTROL";
  EXPECT_FALSE(Contains(list(), "background\":")) << list();
  std::ofstream(daemon_.tools() + "/shell.toml") << BashToolText("shell", "true");
  EXPECT_TRUE(WaitUntil([&] { return !Contains(list(), "\"start-process\""); }, Seconds(30)));
  EXPECT_TRUE(Contains(list(), "\"shell\"")) << "NO-CONTROL";
}

TEST_F(McpDaemon, ARefusedCallSaysWhyAndAnUnknownToolIsAnError) {
  const std::string key = daemon_.key();
  const std::string fields = Begin(key);
  const HttpAnswer unknown =
      Post(key, Message(1, "tools/call", {{"name", "no-such-tool"}}), fields);
  EXPECT_EQ(unknown.body["error"]["code"], -32602) << unknown.text;
  const HttpAnswer denied = Post(
      key, Message(2, "tools/call", {{"name", "bash"}, {"arguments", {{"cmd", "ls"}}}}), fields);
  EXPECT_EQ(denied.body["result"]["isError"], true) << denied.text;
  EXPECT_EQ(denied.body["result"]["structuredContent"]["error"]["class"], "policy.args.schema");
  EXPECT_EQ(daemon_.Ask("PUT", "/v1/switches/tool/bash", key, R"({"reason":"r"})").status, 200);
  const HttpAnswer tools = Post(key, Message(3, "tools/list", Json::object()), fields);
  EXPECT_FALSE(Contains(tools.text, "\"name\":\"bash\"")) << "what is stopped is not offered";
}

TEST_F(McpDaemon, WhatACallExportsIsLinked) {
  const std::string file = daemon_.tools() + "/maker.toml";
  std::ofstream(file + ".new") << R"(
[tool]
name = "maker"
version = "1"
effect = "reversible"
[input]
schema = { type = "object" }
[run]
runtime = "bash"
argv = ["bash", "-c", "echo made > 'a b.txt'; echo not > other"]
[files]
exports = ["*.txt"]
)";
  ASSERT_EQ(::chmod((file + ".new").c_str(), 0644), 0);
  ASSERT_EQ(::rename((file + ".new").c_str(), file.c_str()), 0);
  const std::string key = daemon_.key();
  ASSERT_TRUE(WaitUntil([&] { return daemon_.Ask("GET", "/v1/tools/maker", key).status == 200; }));
  const HttpAnswer made = Post(key, Modern(Message(1, "tools/call", {{"name", "maker"}})),
                               ModernFields("tools/call", "maker"));
  const Json& content = made.body["result"]["content"];
  ASSERT_EQ(content.size(), 2U) << made.text;
  EXPECT_EQ(content[1]["type"], "resource_link");
  EXPECT_EQ(content[1]["name"], "a b.txt");
  const std::string uri = content[1]["uri"];
  const Json read = Modern(Message(2, "resources/read", {{"uri", uri}}));
  const std::string fields = ModernFields("resources/read", uri);
  EXPECT_EQ(Post(key, read, fields).body["result"]["contents"][0]["text"], "made\n");
  const std::string stranger = daemon_.NewKey("other", "operator", "spy")["key"];
  EXPECT_EQ(Post(stranger, read, fields).body["error"]["code"], -32602);
}

TEST_F(McpDaemon, ABoundaryEndsWithItsModernClient) {
  const std::string key = daemon_.NewKey("local", "agent", "bot")["key"];
  const std::string session = daemon_.NewSession(key);
  const std::string body = Modern(BashCall(1, WaitForGo())).dump();
  gateway::RawClient client = gateway::RawClient::Tcp(daemon_.port());
  ASSERT_TRUE(client.Send(gateway::Request("POST", "/mcp?session=" + session, key,
                                           kFields + ModernFields("tools/call", "bash"), body)));
  ASSERT_TRUE(WaitUntil([&] { return Exists(daemon_.Workspace(session) + "/began"); }));
  EXPECT_EQ(daemon_.Runners().size(), 1U) << "the control: it runs";
  client.Reset();
  EXPECT_TRUE(WaitUntil([&] { return daemon_.Runners().empty(); }));
  EXPECT_TRUE(WaitUntil([&] { return LastClass(key) == "policy.cancelled"; }));
}

TEST_F(McpDaemon, ALegacyClientCancelsByANotification) {
  const std::string key = daemon_.NewKey("local", "agent", "bot")["key"];
  const std::string fields = Begin(key);
  const std::string body = BashCall("x", WaitForGo()).dump();
  {
    gateway::RawClient client = gateway::RawClient::Tcp(daemon_.port());
    ASSERT_TRUE(client.Send(gateway::Request("POST", "/mcp", key, kFields + fields, body)));
    ASSERT_TRUE(WaitUntil([&] { return Exists(daemon_.Workspace(session_) + "/began"); }));
  }
  // The connection is gone; in this era that cancels nothing.
  EXPECT_EQ(Post(key, Message(2, "ping", Json::object()), fields).status, 200);
  EXPECT_EQ(daemon_.Runners().size(), 1U);
  const Json cancel = {
      {"jsonrpc", "2.0"}, {"method", "notifications/cancelled"}, {"params", {{"requestId", "x"}}}};
  // No other client cancels it: not by the session's id, and not by the request's in a session of its own.
  for (const char* tenant : {"local", "other"}) {
    const std::string stranger = daemon_.NewKey(tenant, "agent", "spy")["key"];
    const std::string owner_session = session_;
    EXPECT_EQ(Post(stranger, cancel, fields).status, 404) << tenant;
    EXPECT_EQ(Post(stranger, cancel, "MCP-Protocol-Version: 2025-11-25\r\n",
                   "/mcp?session=" + owner_session)
                  .status,
              404);
    EXPECT_EQ(Post(stranger, cancel, Begin(stranger)).status, 202);
    session_ = owner_session;
  }
  EXPECT_EQ(Post(key, Message(3, "ping", Json::object()), fields).status, 200);
  EXPECT_EQ(daemon_.Runners().size(), 1U) << "it still runs";
  EXPECT_EQ(Post(key, cancel, fields).status, 202);
  EXPECT_TRUE(WaitUntil([&] { return daemon_.Runners().empty(); }));
  EXPECT_TRUE(WaitUntil([&] { return LastClass(key) == "policy.cancelled"; }));
}

}  // namespace
}  // namespace coffer::test
