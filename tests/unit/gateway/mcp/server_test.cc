// SPDX-License-Identifier: Apache-2.0
#include "gateway/mcp/server.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <vector>

namespace coffer::gateway {
namespace {

constexpr const char* kModernMeta =
    R"("_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",)"
    R"("io.modelcontextprotocol/clientCapabilities":{}})";

class Host : public McpHost {
 public:
  void ListTools(const McpId& id) override {
    server().Answer(id, Json{{"tools", Json::array({{{"name", "bash"}}})}});
  }
  void Begin(const McpCall& call) override { begun.push_back(call); }
  void Cancel(const McpId& id, const std::string& reason) override {
    cancelled.push_back(id + " " + reason);
  }
  std::vector<McpCall> begun;
  std::vector<std::string> cancelled;
};

class McpServerTest : public ::testing::Test {
 protected:
  // What the server says to the line; null if nothing.
  Json Ask(const std::string& line) {
    const size_t before = said_.size();
    server_.Receive(line);
    EXPECT_LE(said_.size(), before + 1);
    return said_.size() == before ? Json(nullptr) : Last();
  }
  Json Last() const {
    EXPECT_EQ(said_.back().find('\n'), said_.back().size() - 1) << "one message is one line";
    return Json::parse(said_.back());
  }
  static std::string Request(const std::string& id, const std::string& method,
                             const std::string& params = "{}") {
    return R"({"jsonrpc":"2.0","id":)" + id + R"(,"method":")" + method + R"(","params":)" +
           params + "}";
  }
  static std::string Modern(const std::string& id, const std::string& method,
                            const std::string& more = "") {
    return Request(id, method, "{" + (more.empty() ? "" : more + ",") + kModernMeta + "}");
  }
  Json Initialize(const std::string& version) {
    return Ask(Request("0", "initialize", R"({"protocolVersion":")" + version + "\"}"));
  }
  static int Code(const Json& answer) {
    return answer.contains("error") ? answer["error"]["code"].get<int>() : 0;
  }

  Host host_;
  std::vector<std::string> said_;
  McpServer server_{host_, [this](McpOutgoing out) { said_.push_back(std::move(out.line)); }};
};

TEST_F(McpServerTest, ALegacyClientInitializes) {
  EXPECT_EQ(Code(Ask(Request("1", "tools/list"))), -32602) << "not before initialize";
  for (const char* version : {"2025-11-25", "2025-06-18", "2025-03-26"}) {
    EXPECT_EQ(Initialize(version)["result"]["protocolVersion"], version);
  }
  EXPECT_EQ(Initialize("1999-01-01")["result"]["protocolVersion"], "2025-11-25");
  EXPECT_EQ(Ask(R"({"jsonrpc":"2.0","method":"notifications/initialized"})"), nullptr);
  const Json list = Ask(Request("1", "tools/list"));
  EXPECT_EQ(list["result"]["tools"][0]["name"], "bash");
  EXPECT_FALSE(list["result"].contains("resultType")) << "that is of the modern era";
  EXPECT_EQ(Ask(Request("2", "ping"))["result"], Json::object());
}

TEST_F(McpServerTest, AModernRequestNeedsNothingBeforeIt) {
  const Json list = Ask(Modern("1", "tools/list"));
  EXPECT_EQ(list["result"]["resultType"], "complete");
  EXPECT_EQ(list["result"]["cacheScope"], "private");
  EXPECT_TRUE(list["result"]["_meta"].contains("io.modelcontextprotocol/serverInfo"));
  const Json found = Ask(Modern("\"two\"", "server/discover"));
  EXPECT_EQ(found["id"], "two");
  EXPECT_EQ(found["result"]["supportedVersions"],
            Json::array({"2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26"}));
  EXPECT_EQ(Code(Ask(Modern("3", "ping"))), -32601) << "that is of the legacy era";
  EXPECT_EQ(Code(Ask(Modern("4", "initialise"))), -32601);
}

TEST_F(McpServerTest, AVersionThatIsNotSpokenIsRefusedWithThoseThatAre) {
  const Json answer = Ask(Request(
      "1", "tools/list",
      R"({"_meta":{"io.modelcontextprotocol/protocolVersion":"1900-01-01","io.modelcontextprotocol/clientCapabilities":{}}})"));
  EXPECT_EQ(Code(answer), -32022);
  EXPECT_EQ(answer["error"]["data"]["requested"], "1900-01-01");
  EXPECT_EQ(answer["error"]["data"]["supported"][0], "2026-07-28");
  EXPECT_EQ(
      Code(Ask(Request("2", "tools/list",
                       R"({"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}})"))),
      -32602)
      << "clientCapabilities is missing";
}

TEST_F(McpServerTest, WhatIsNoMessageIsSaid) {
  EXPECT_EQ(Code(Ask("{")), -32700);
  EXPECT_EQ(Code(Ask(std::string(100, '['))), -32700) << "too deep";
  EXPECT_EQ(Code(Ask(R"({"jsonrpc":"2.0","id":1,"id":2,"method":"ping"})")), -32700)
      << "two readings";
  for (const char* line :
       {"[]", "1", R"({"id":1,"method":"ping"})", R"({"jsonrpc":"1.0","id":1,"method":"ping"})",
        R"({"jsonrpc":"2.0","id":null,"method":"ping"})",
        R"({"jsonrpc":"2.0","id":1.5,"method":"ping"})",
        R"({"jsonrpc":"2.0","id":{},"method":"ping"})", R"({"jsonrpc":"2.0","id":1})",
        R"({"jsonrpc":"2.0","id":1,"method":7})",
        R"({"jsonrpc":"2.0","id":1,"method":"ping","result":{}})",
        R"({"jsonrpc":"2.0","id":1,"method":"ping","error":{}})"}) {
    EXPECT_EQ(Code(Ask(line)), -32600) << line;
  }
  EXPECT_EQ(Code(Ask(R"({"jsonrpc":"2.0","id":1,"method":"ping","params":[]})")), -32602);
  EXPECT_EQ(Ask(R"({"jsonrpc":"2.0","id":1,"result":{}})"), nullptr) << "we have asked nothing";
  EXPECT_EQ(Ask(R"({"jsonrpc":"2.0","method":"notifications/unheard-of"})"), nullptr);
  EXPECT_EQ(Code(Ask(Request("1", "ping"))), 0) << "the control: it goes on";
}

TEST_F(McpServerTest, ACallIsHandedToTheHost) {
  Initialize("2025-11-25");
  EXPECT_EQ(Code(Ask(Request("1", "tools/call", R"({"arguments":{}})"))), -32602);
  EXPECT_EQ(Code(Ask(Request("1", "tools/call", R"({"name":"bash","arguments":[]})"))), -32602);
  EXPECT_TRUE(host_.begun.empty());
  EXPECT_EQ(Ask(Request("1", "tools/call", R"({"name":"bash","arguments":{"command":"ls"}})")),
            nullptr);
  ASSERT_EQ(host_.begun.size(), 1U);
  EXPECT_EQ(host_.begun[0].args_json, R"({"command":"ls"})");
  EXPECT_EQ(Code(Ask(Request("1", "tools/call", R"({"name":"bash"})"))), -32600)
      << "its id waits for an answer";
  EXPECT_EQ(host_.begun.size(), 1U);
  server_.Answer("1", Json{{"content", Json::array()}});
  EXPECT_EQ(Last()["id"], 1);
  const size_t said = said_.size();
  server_.Answer("1", Json{{"content", Json::array()}});
  EXPECT_EQ(said_.size(), said) << "one answer";
}

TEST_F(McpServerTest, ACancelledCallHasNoAnswer) {
  (void)Ask(Modern("7", "tools/call", R"("name":"bash")"));
  const auto cancel = [&](const char* id) {
    return Ask(
        std::string(
            R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":)") +
        id + R"(,"reason":"bored"}})");
  };
  EXPECT_EQ(cancel("8"), nullptr);
  EXPECT_EQ(cancel("\"7\""), nullptr) << "another id";
  EXPECT_TRUE(host_.cancelled.empty());
  EXPECT_EQ(cancel("7"), nullptr);
  EXPECT_EQ(cancel("7"), nullptr);
  EXPECT_EQ(host_.cancelled, std::vector<std::string>({"7 bored"}));
  const size_t said = said_.size();
  server_.Progress("7", 1, "too late");
  server_.Answer("7", Json::object());
  EXPECT_EQ(said_.size(), said);
  EXPECT_FALSE(server_.Waits("7")) << "and its id may be used again";
}

TEST_F(McpServerTest, ProgressGoesToThoseWhoAsked) {
  (void)Ask(Request("0", "initialize", R"({"protocolVersion":"2025-06-18"})"));
  (void)Ask(Request("1", "tools/call", R"({"name":"bash","_meta":{"progressToken":"p"}})"));
  (void)Ask(Request("2", "tools/call", R"({"name":"bash"})"));
  server_.Progress("1", 1.5, "half");
  EXPECT_EQ(Last()["params"]["progressToken"], "p");
  EXPECT_FALSE(Last().contains("id"));
  const size_t said = said_.size();
  server_.Progress("2", 1, "nobody asked");
  EXPECT_EQ(said_.size(), said);
  // A token is sent back every second.
  const auto with_token = [](size_t size) {
    return R"({"name":"bash","_meta":{"progressToken":")" + std::string(size, 'x') + R"("}})";
  };
  EXPECT_EQ(Code(Ask(Request("3", "tools/call", with_token(257)))), -32602);
  EXPECT_EQ(Ask(Request("4", "tools/call", with_token(256))), nullptr) << "the control";
}

}  // namespace
}  // namespace coffer::gateway
