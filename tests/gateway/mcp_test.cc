// SPDX-License-Identifier: Apache-2.0
//
// MCP over HTTP as a client sees it: both eras, what is wrong with a request and with which code, and calls that end with
// their clients.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "tests/gateway/harness.h"

namespace coffer::gateway {
namespace {

constexpr const char* kMeta = R"("_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",)"
                              R"("io.modelcontextprotocol/clientCapabilities":{}})";
constexpr const char* kBoth = "Accept: application/json, text/event-stream\r\n";

std::string Message(const std::string& id, const std::string& method, const std::string& params) {
  return R"({"jsonrpc":"2.0","id":)" + id + R"(,"method":")" + method + R"(","params":{)" + params +
         "}}";
}
std::string Modern(const std::string& method, const std::string& more = "") {
  return Message("1", method, (more.empty() ? "" : more + ",") + kMeta);
}
// The fields that belong to a modern message.
std::string Fields(const std::string& method, const std::string& name = "") {
  return "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: " + method + "\r\n" +
         (name.empty() ? "" : "Mcp-Name: " + name + "\r\n");
}
std::string InSession(const std::string& id = kSessionId) {
  return "Mcp-Session-Id: " + id + "\r\nMCP-Protocol-Version: 2025-11-25\r\n";
}
const std::string kCancelled =
    R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}})";

class McpHttp : public ::testing::Test {
 protected:
  static std::string Post(const std::string& body, const std::string& fields,
                          const std::string& path = "/mcp") {
    return Request("POST", path, "agent-key",
                   std::string("Content-Type: application/json\r\n") + kBoth + fields, body);
  }
  Reply1 Ask(const std::string& body, const std::string& fields, const std::string& path = "/mcp") {
    return AskRaw(Post(body, fields, path));
  }
  Reply1 AskRaw(const std::string& request) {
    RawClient client = RawClient::Tcp(server_.port());
    EXPECT_TRUE(client.Send(request));
    return client.Receive();
  }
  static Json Body(const Reply1& reply) { return Json::parse(reply.body, nullptr, false); }
  static int Code(const Reply1& reply) {
    const Json body = Body(reply);
    return body.is_object() && body.contains("error") ? body["error"]["code"].get<int>() : 0;
  }
  bool Asked(const std::string& method) {
    bool found = false;
    server_.OnLoop([&] {
      const auto& asked = server_.service.asked;
      found = std::find(asked.begin(), asked.end(), method) != asked.end();
    });
    return found;
  }
  size_t Submitted() {
    size_t count = 0;
    server_.OnLoop([&] { count = server_.service.submitted.size(); });
    return count;
  }
  RunningServer server_;
};

TEST_F(McpHttp, AModernRequestStandsForItself) {
  const Reply1 found = Ask(Modern("server/discover"), Fields("server/discover"));
  EXPECT_EQ(found.status, 200) << found.body;
  EXPECT_EQ(Body(found)["result"]["supportedVersions"][0], "2026-07-28");
  EXPECT_TRUE(Body(found)["result"]["capabilities"].contains("resources"));
  EXPECT_EQ(found.Field("Mcp-Session-Id"), "");
  const Json list = Body(Ask(Modern("tools/list"), Fields("tools/list")));
  EXPECT_EQ(list["result"]["tools"][0]["name"], "echo");
  EXPECT_EQ(list["result"]["resultType"], "complete");
  EXPECT_EQ(list["result"]["cacheScope"], "private");
  EXPECT_GT(list["result"]["ttlMs"], 0);
  const Reply1 call = Ask(Modern("tools/call", R"("name":"echo","arguments":{"a":1})"),
                          Fields("tools/call", "echo"));
  EXPECT_EQ(call.status, 200);
  EXPECT_EQ(Body(call)["result"]["structuredContent"]["stdout"], R"({"a":1})");
  EXPECT_EQ(Body(call)["result"]["isError"], false);
  server_.OnLoop([&] {
    ASSERT_EQ(server_.service.submitted.size(), 1U);
    EXPECT_FALSE(server_.service.submitted[0].session_id.has_value());
    EXPECT_EQ(server_.service.submitted[0].request_id, "") << "other clients use the same ids";
  });
  (void)Ask(Modern("tools/call", R"("name":"echo")"), Fields("tools/call", "echo"),
            "/mcp?session=" + kSessionId);
  server_.OnLoop([&] { EXPECT_EQ(server_.service.submitted.back().session_id, kSessionId); });
}

TEST_F(McpHttp, AHeadThatDisagreesWithItsBodyIsRefused) {
  const std::string call = Modern("tools/call", R"("name":"echo")");
  const std::string version = "MCP-Protocol-Version: 2026-07-28\r\n";
  const struct {
    const char* name;
    std::string body;
    std::string fields;
    int status;
    int code;
  } cases[] = {
      {"the control", call, Fields("tools/call", "echo"), 200, 0},
      {"encoded name", call, Fields("tools/call", "=?base64?ZWNobw==?="), 200, 0},
      {"no version field", call, "Mcp-Method: tools/call\r\nMcp-Name: echo\r\n", 400, -32020},
      {"other version field", call,
       "MCP-Protocol-Version: 2025-11-25\r\nMcp-Method: tools/call\r\nMcp-Name: echo\r\n", 400,
       -32020},
      {"version field twice", call, version + Fields("tools/call", "echo"), 400, -32020},
      {"no method field", call, version + "Mcp-Name: echo\r\n", 400, -32020},
      {"other method", call, Fields("tools/list", "echo"), 400, -32020},
      {"method in other letters", call, Fields("Tools/Call", "echo"), 400, -32020},
      {"method twice", call, "Mcp-Method: tools/call\r\n" + Fields("tools/call", "echo"), 400,
       -32020},
      {"no name", call, Fields("tools/call"), 400, -32020},
      {"other name", call, Fields("tools/call", "big"), 400, -32020},
      {"name twice", call, Fields("tools/call", "echo") + "Mcp-Name: big\r\n", 400, -32020},
      {"broken base64", call, Fields("tools/call", "=?base64?ZWNobw=?="), 400, -32020},
      {"name in the head only", Modern("tools/call"), Fields("tools/call", "echo"), 400, -32020},
      {"no _meta", Message("1", "tools/call", R"("name":"echo")"), Fields("tools/call", "echo"),
       400, -32602},
      {"no capabilities",
       Message("1", "tools/list",
               R"("_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"})"),
       Fields("tools/list"), 400, -32602},
      {"two readings of the body", R"({"jsonrpc":"2.0","id":1,"method":"a","method":"b"})",
       Fields("tools/call", "echo"), 400, -32700},
  };
  size_t runs = 0;
  for (const auto& one : cases) {
    const Reply1 reply = Ask(one.body, one.fields);
    EXPECT_EQ(reply.status, one.status) << one.name << reply.body;
    EXPECT_EQ(Code(reply), one.code) << one.name << reply.body;
    runs += one.status == 200 ? 1 : 0;
  }
  EXPECT_EQ(Submitted(), runs) << "what was refused did not run";
}

TEST_F(McpHttp, AVersionThatIsNotSpokenIs400) {
  const Reply1 modern = Ask(
      Message(
          "1", "tools/list",
          R"("_meta":{"io.modelcontextprotocol/protocolVersion":"1900-01-01","io.modelcontextprotocol/clientCapabilities":{}})"),
      "MCP-Protocol-Version: 1900-01-01\r\nMcp-Method: tools/list\r\n");
  EXPECT_EQ(modern.status, 400);
  EXPECT_EQ(Code(modern), -32022);
  EXPECT_EQ(Body(modern)["error"]["data"]["supported"].size(), 4U);
  EXPECT_EQ(Body(modern)["id"], 1);
  const Reply1 legacy =
      Ask(Message("1", "tools/list", ""),
          "Mcp-Session-Id: " + kSessionId + "\r\nMCP-Protocol-Version: 2024-11-05\r\n");
  EXPECT_EQ(legacy.status, 400);
  EXPECT_EQ(Code(legacy), -32022);
  for (const char* version : {"2025-11-25", "2025-06-18", "2025-03-26"}) {
    EXPECT_EQ(Ask(Message("1", "tools/list", ""),
                  "Mcp-Session-Id: " + kSessionId + "\r\nMCP-Protocol-Version: " + version + "\r\n")
                  .status,
              200)
        << version;
  }
}

TEST_F(McpHttp, ALegacyClientHasASession) {
  const Reply1 begun = Ask(Message("0", "initialize", R"("protocolVersion":"2025-06-18")"), "");
  EXPECT_EQ(begun.status, 200);
  EXPECT_EQ(Body(begun)["result"]["protocolVersion"], "2025-06-18");
  EXPECT_EQ(begun.Field("Mcp-Session-Id"), kSessionId);
  EXPECT_TRUE(Asked("CreateSession"));
  const Reply1 told = Ask(R"({"jsonrpc":"2.0","method":"notifications/initialized"})", InSession());
  EXPECT_EQ(told.status, 202);
  EXPECT_EQ(told.body, "");
  EXPECT_EQ(Ask(R"({"jsonrpc":"2.0","id":9,"result":{}})", InSession()).status, 202);
  EXPECT_EQ(Body(Ask(Message("1", "ping", ""), InSession()))["result"], Json::object());
  const Reply1 call = Ask(Message("2", "tools/call", R"("name":"echo")"), InSession());
  EXPECT_EQ(call.status, 200);
  EXPECT_FALSE(Body(call)["result"].contains("resultType"));
  server_.OnLoop([&] {
    EXPECT_EQ(server_.service.submitted.back().session_id, kSessionId);
    EXPECT_EQ(server_.service.submitted.back().request_id, "2") << "sent twice, it runs once";
  });
  // 2025-03-26 did not have the field.
  EXPECT_EQ(Ask(Message("3", "tools/list", ""), "Mcp-Session-Id: " + kSessionId + "\r\n").status,
            200);
  const Reply1 without = Ask(Message("4", "tools/list", ""), "");
  EXPECT_EQ(without.status, 400);
  EXPECT_EQ(Code(without), -32600);
  const Reply1 twice = Ask(Message("4", "tools/list", ""), InSession() + InSession());
  EXPECT_EQ(twice.status, 400);
  EXPECT_THAT(twice.body, ::testing::HasSubstr("more than once"));
  EXPECT_EQ(Ask(Message("4", "tools/list", ""), InSession(kOtherId)).status, 404);
  EXPECT_EQ(Ask(Message("4", "tools/list", ""), InSession("../../etc")).status, 404);
  EXPECT_EQ(AskRaw(Request("DELETE", "/mcp", "agent-key", InSession())).status, 204);
  EXPECT_TRUE(Asked("EndSession"));
  EXPECT_EQ(AskRaw(Request("DELETE", "/mcp", "agent-key")).status, 400);
  EXPECT_EQ(
      AskRaw(Request("DELETE", "/mcp", "agent-key", "MCP-Protocol-Version: 2026-07-28\r\n")).status,
      405);
  const Reply1 get = AskRaw(Request("GET", "/mcp", "agent-key", "Accept: text/event-stream\r\n"));
  EXPECT_EQ(get.status, 405);
  EXPECT_EQ(get.Field("Allow"), "POST, DELETE");
}

// A session that is used goes on. How much of it is left says the clock that ends it, also where the host's clock was set by a day.
TEST_F(McpHttp, ASessionIsExtendedByTheClockThatEndsIt) {
  using std::chrono::hours;
  using std::chrono::minutes;
  const auto extended = [&](Nanos left, Nanos shown) {
    server_.OnLoop([&] {
      server_.service.session_time_left = left;
      server_.service.session_expires_at = WallTime() + shown;
      server_.service.asked.clear();
    });
    EXPECT_EQ(Ask(Message("1", "ping", ""), InSession()).status, 200);
    return Asked("ExtendSession");
  };
  EXPECT_TRUE(extended(minutes(20), minutes(20))) << "the control";
  EXPECT_FALSE(extended(minutes(50), minutes(50))) << "the control";
  EXPECT_TRUE(extended(minutes(20), minutes(20) + hours(24))) << "set back: it would be lost";
  EXPECT_FALSE(extended(minutes(50), minutes(50) - hours(24))) << "set forward";
}

TEST_F(McpHttp, WhatIsNoRequestIsAnsweredWithItsCode) {
  const std::string legacy = InSession();
  const struct {
    const char* name;
    std::string body;
    std::string fields;
    int status;
    int code;
  } cases[] = {
      {"not JSON", "{", legacy, 400, -32700},
      {"nested", std::string(40, '[') + std::string(40, ']'), legacy, 400, -32700},
      {"a batch", "[" + Message("1", "ping", "") + "]", legacy, 400, -32600},
      {"no jsonrpc", R"({"id":1,"method":"ping"})", legacy, 400, -32600},
      {"id of null", R"({"jsonrpc":"2.0","id":null,"method":"ping"})", legacy, 400, -32600},
      {"unknown method", Message("1", "tools/frob", ""), legacy, 200, -32601},
      {"unknown method, modern", Modern("tools/frob"), Fields("tools/frob"), 404, -32601},
      {"ping is legacy", Modern("ping"), Fields("ping"), 404, -32601},
      {"initialize is legacy", Modern("initialize", R"("protocolVersion":"2026-07-28")"),
       Fields("initialize"), 404, -32601},
      {"a request as a notification", R"({"jsonrpc":"2.0","method":"tools/call"})", legacy, 202, 0},
      {"initialize as a notification", R"({"jsonrpc":"2.0","method":"initialize"})", legacy, 202,
       0},
      {"an answer, modern", R"({"jsonrpc":"2.0","id":1,"result":{}})",
       "MCP-Protocol-Version: 2026-07-28\r\n", 400, -32600},
      {"no name", Message("1", "tools/call", ""), legacy, 200, -32602},
      {"a name that is none", Message("1", "tools/call", R"("name":"../x")"), legacy, 200, -32602},
      {"arguments of another type", Message("1", "tools/call", R"("name":"echo","arguments":[])"),
       legacy, 200, -32602},
      {"the control", Message("1", "ping", ""), legacy, 200, 0},
  };
  for (const auto& one : cases) {
    const Reply1 reply = Ask(one.body, one.fields);
    EXPECT_EQ(reply.status, one.status) << one.name << reply.body;
    EXPECT_EQ(Code(reply), one.code) << one.name << reply.body;
  }
  EXPECT_EQ(Submitted(), 0U);
  EXPECT_EQ(Ask(Message("1", "ping", R"("a":")" + std::string(2 << 20, 'x') + "\""), legacy).status,
            413);
  EXPECT_EQ(Ask(Message("1", "ping", ""), "Origin: https://evil.example\r\n" + legacy).status, 403);
  EXPECT_EQ(Ask(Message("1", "ping", ""), "Origin: http://localhost\r\n" + legacy).status, 200);
  const std::string json = "Content-Type: application/json\r\n";
  EXPECT_EQ(AskRaw(Request("POST", "/mcp", "", json, Message("1", "ping", ""))).status, 401);
  EXPECT_EQ(AskRaw(Request("POST", "/mcp", "auditor-key", json, Message("1", "ping", ""))).status,
            403);
  EXPECT_EQ(AskRaw(Request("POST", "/mcp", "agent-key", json + "Accept: text/html\r\n" + legacy,
                           Message("1", "ping", "")))
                .status,
            406);
  EXPECT_EQ(
      AskRaw(Request("POST", "/mcp", "agent-key", "Content-Type: text/plain\r\n", "{}")).status,
      415);
}

TEST_F(McpHttp, AModernCallEndsWithItsClient) {
  for (const std::string token : {"", R"(,"progressToken":"p")"}) {
    const std::string meta = std::string(kMeta).insert(std::string(kMeta).size() - 1, token);
    RunningServer server;
    {
      RawClient client = RawClient::Tcp(server.port());
      client.Send(Post(Message("1", "tools/call", R"("name":"wait",)" + meta),
                       Fields("tools/call", "wait")));
      ASSERT_TRUE(server.Eventually([&] { return server.service.submitted.size() == 1; }));
      server.OnLoop([&] {
        EXPECT_FALSE(server.service.submitted[0].watch->unwanted) << "the control: it is there";
      });
    }
    EXPECT_TRUE(
        server.Eventually([&] { return server.service.submitted[0].watch->unwanted.load(); }));
    EXPECT_TRUE(server.Eventually([&] {
      const auto& asked = server.service.asked;
      return std::count(asked.begin(), asked.end(), "CancelCall") == 1;
    }));
    server.OnLoop([&] { server.service.Finish(); });
    EXPECT_TRUE(server.Eventually([&] { return server.server().stats().connections == 0; }));
  }
}

TEST_F(McpHttp, ALegacyCallEndsWhenItsClientSaysSo) {
  const std::string call = Post(Message("1", "tools/call", R"("name":"wait")"), InSession());
  RawClient client = RawClient::Tcp(server_.port());
  client.Send(call);
  ASSERT_TRUE(server_.Eventually([&] { return server_.service.submitted.size() == 1; }));
  const Reply1 twice = Ask(Message("1", "tools/call", R"("name":"wait")"), InSession());
  EXPECT_EQ(twice.status, 400);
  EXPECT_EQ(Code(twice), -32600) << "its id waits for an answer";
  // Another session's, and another id.
  EXPECT_EQ(Ask(kCancelled, InSession(kOtherId)).status, 404);
  EXPECT_EQ(
      Ask(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"1"}})",
          InSession())
          .status,
      202);
  EXPECT_FALSE(Asked("CancelCall"));
  EXPECT_EQ(Ask(kCancelled, InSession()).status, 202);
  EXPECT_TRUE(Asked("CancelCall"));
  EXPECT_EQ(Code(client.Receive()), -32603) << "a request of HTTP has an answer";
  server_.OnLoop([&] { server_.service.Finish(); });
}

// The service may hold the reply longer than it takes the client to ask again.
TEST_F(McpHttp, AnIdIsFreeWhenItsAnswerIsSent) {
  server_.OnLoop([&] { server_.service.keep_replies = true; });
  for (int times = 0; times < 2; ++times) {
    const Reply1 reply = Ask(Message("1", "tools/call", R"("name":"echo")"), InSession());
    EXPECT_EQ(Code(reply), 0) << reply.body;
  }
  EXPECT_EQ(Submitted(), 2U);
}

TEST_F(McpHttp, ALegacyClientThatIsCutOffCancelsNothing) {
  {
    RawClient client = RawClient::Tcp(server_.port());
    client.Send(Post(Message("1", "tools/call", R"("name":"wait")"), InSession()));
    ASSERT_TRUE(server_.Eventually([&] { return server_.service.submitted.size() == 1; }));
  }
  // The client comes back and says that it does not want the call: it is still known.
  EXPECT_EQ(Ask(Message("2", "ping", ""), InSession()).status, 200);
  EXPECT_FALSE(Asked("CancelCall"));
  EXPECT_EQ(Ask(kCancelled, InSession()).status, 202);
  EXPECT_TRUE(Asked("CancelCall"));
  server_.OnLoop([&] { server_.service.Finish(); });
}

TEST_F(McpHttp, AClientThatAsksForProgressGetsEvents) {
  RawClient client = RawClient::Tcp(server_.port());
  client.Send(Post(Message("1", "tools/call", R"("name":"wait","_meta":{"progressToken":"p"})"),
                   InSession()));
  ASSERT_TRUE(server_.Eventually([&] { return server_.service.submitted.size() == 1; }));
  const std::string head = client.ReadUntil("notifications/progress");
  EXPECT_NE(head.find("text/event-stream"), std::string::npos) << head;
  EXPECT_NE(head.find("X-Accel-Buffering: no"), std::string::npos) << head;
  server_.OnLoop([&] { server_.service.Finish(); });
  const std::string rest = client.ReadUntil("0\r\n\r\n");
  EXPECT_NE(rest.find(R"("stdout":"waited")"), std::string::npos) << rest;
  // Without text/event-stream in Accept there is one JSON object.
  const Reply1 plain =
      AskRaw(Request("POST", "/mcp", "agent-key",
                     "Content-Type: application/json\r\nAccept: application/json\r\n" + InSession(),
                     Message("2", "tools/call", R"("name":"echo","_meta":{"progressToken":"p"})")));
  EXPECT_EQ(plain.Field("Content-Type"), "application/json");
}

TEST_F(McpHttp, FilesAreResources) {
  server_.OnLoop([&] {
    server_.service.files["a/b c.txt"] = "hey";
    server_.service.files["bin"] = std::string("\xff\x00\xfe", 3);
    server_.service.files["large"] = std::string(600 << 10, 'x');
  });
  const Json list = Body(Ask(Message("1", "resources/list", ""), InSession()));
  const std::string uri = "coffer://sessions/" + kSessionId + "/files/a/b%20c.txt";
  EXPECT_EQ(list["result"]["resources"][0]["uri"], uri) << list;
  EXPECT_EQ(list["result"]["resources"][0]["size"], 3);
  const auto read = [&](const std::string& what) {
    return Ask(Message("1", "resources/read", R"("uri":")" + what + "\""), InSession());
  };
  EXPECT_EQ(Body(read(uri))["result"]["contents"][0]["text"], "hey");
  const std::string base = "coffer://sessions/" + kSessionId + "/files/";
  EXPECT_EQ(Body(read(base + "bin"))["result"]["contents"][0]["blob"], "/wD+");
  EXPECT_EQ(Code(read(base + "large")), -32603);
  for (const std::string& wrong :
       {base + "none", base + "../../etc/passwd", base + "%2e%2e/x", base + "a%00",
        std::string("file:///etc/passwd"), std::string("coffer://calls/x/files/a"), base}) {
    EXPECT_EQ(Code(read(wrong)), -32002) << wrong;
  }
  const std::string gone = base + "none";
  EXPECT_EQ(Code(Ask(Modern("resources/read", R"("uri":")" + gone + "\""),
                     Fields("resources/read", gone))),
            -32602)
      << "the modern code";
  const Json modern =
      Body(Ask(Modern("resources/read", R"("uri":")" + uri + "\""), Fields("resources/read", uri)));
  EXPECT_EQ(modern["result"]["ttlMs"], 0);
  const Json templates = Body(Ask(Message("1", "resources/templates/list", ""), InSession()));
  EXPECT_EQ(templates["result"]["resourceTemplates"].size(), 2U);
  EXPECT_EQ(Body(Ask(Modern("resources/list"), Fields("resources/list")))["result"]["resources"],
            Json::array())
      << "there is no session";
}

TEST_F(McpHttp, WithoutAnIdentityProviderThereIsNoMetadata) {
  EXPECT_EQ(AskRaw(Request("GET", "/.well-known/oauth-protected-resource/mcp")).status, 404);
  const Reply1 refused =
      AskRaw(Request("POST", "/mcp", "", "Content-Type: application/json\r\n", "{}"));
  EXPECT_EQ(refused.Field("WWW-Authenticate"), R"(Bearer realm="coffer")");
}

}  // namespace
}  // namespace coffer::gateway
