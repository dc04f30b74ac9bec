// SPDX-License-Identifier: Apache-2.0
//
// A large answer is made while its client reads it. A client that does not read holds what the answer is made from, not the
// answer; for one that leaves nothing more is made.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/json_pieces.h"
#include "tests/gateway/harness.h"
#include "tests/support/gunzip.h"
#include "tests/support/run.h"

namespace coffer::gateway {
namespace {

constexpr size_t kOutput = 8 << 20;
constexpr int kPieces = 6 * kOutput / JsonPieces::kPieceBytes;

// Until the kernel's buffers are full, and no further step is made.
int StepsUntilQuiet(RunningServer& server) {
  int before = -1;
  (void)test::WaitUntil([&] {
    const int now = server.service.steps;
    return now > 0 && now == std::exchange(before, now);
  });
  return before;
}

TEST(Streamed, AnAnswerIsMadeWhileItIsRead) {
  RunningServer server;
  RawClient client = RawClient::Tcp(server.port());
  client.Send(CallOf(R"({"tool":"huge"})"));
  EXPECT_LT(StepsUntilQuiet(server), kPieces / 2);
  EXPECT_GE(server.service.bytes_held, kOutput);
  EXPECT_LT(server.service.bytes_held, kOutput * 5 / 4) << "not six times as much";
  const Reply1 reply = client.Receive();
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(nlohmann::json::parse(reply.body)["result"]["stdout"], std::string(kOutput, '\0'));
  EXPECT_GE(server.service.steps, kPieces);
  EXPECT_TRUE(test::WaitUntil([&] { return server.service.bytes_held == 0; }));
}

TEST(Streamed, NothingMoreIsMadeForAClientThatLeft) {
  for (const bool reset : {false, true}) {
    RunningServer server;
    {
      RawClient client = RawClient::Tcp(server.port());
      client.Send(CallOf(R"({"tool":"huge"})"));
      ASSERT_TRUE(test::WaitUntil([&] { return server.service.steps > 0; }));
      if (reset) {
        client.Reset();
      }
    }
    EXPECT_TRUE(test::WaitUntil([&] { return server.service.bytes_held == 0; }));
    EXPECT_LT(server.service.steps, kPieces / 2);
    RawClient next = RawClient::Tcp(server.port());
    next.Send(CallOf(R"({"tool":"huge"})"));
    EXPECT_EQ(next.Receive().status, 200);
    EXPECT_GE(server.service.steps, kPieces) << "the control";
  }
}

// The same over MCP, where the output stands in two places of the answer. In both eras, as one object and as an event.
TEST(Streamed, AnAnswerOfMcpIsMadeWhileItIsRead) {
  constexpr size_t kOfMcp = 2 << 20;
  constexpr int kPiecesOfMcp = 12 * kOfMcp / JsonPieces::kPieceBytes;
  const std::string output(kOfMcp, '\0');
  const std::string versioned = R"("io.modelcontextprotocol/protocolVersion":"2026-07-28",)"
                                R"("io.modelcontextprotocol/clientCapabilities":{})";
  const std::string modern =
      "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: wait\r\n";
  const std::string legacy =
      "Mcp-Session-Id: " + kSessionId + "\r\nMCP-Protocol-Version: 2025-11-25\r\n";
  const struct {
    std::string meta, fields;
    bool is_event;
  } cases[] = {{versioned, modern, false},
               {versioned + R"(,"progressToken":1)", modern, true},
               {"", legacy, false},
               {R"("progressToken":1)", legacy, true}};
  for (const auto& one : cases) {
    RunningServer server;
    server.service.wait_output = output;
    RawClient client = RawClient::Tcp(server.port());
    client.Send(Request(
        "POST", "/mcp", "agent-key",
        "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n" +
            one.fields,
        R"({"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"wait","_meta":{)" +
            one.meta + "}}}"));
    ASSERT_TRUE(server.Eventually([&] { return !server.service.submitted.empty(); }));
    server.OnLoop([&] { server.service.Finish(); });
    EXPECT_LT(StepsUntilQuiet(server), kPiecesOfMcp * 3 / 4);
    EXPECT_GE(server.service.bytes_held, kOfMcp);
    EXPECT_LT(server.service.bytes_held, kOfMcp * 5 / 4) << "not twelve times as much";

    const Reply1 reply = client.Receive();
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(reply.Field("Content-Type"), one.is_event ? "text/event-stream" : "application/json");
    std::string body = reply.body;
    if (one.is_event) {
      const size_t event = body.rfind("event: message\ndata: {");  // after those of progress
      ASSERT_NE(event, std::string::npos);
      ASSERT_TRUE(body.ends_with("}\n\n"));
      body = body.substr(body.find('{', event));
      body.resize(body.size() - 2);
    }
    EXPECT_EQ(body.find('\n'), std::string::npos) << "one line";
    const auto message = nlohmann::json::parse(body);
    const auto& result = message["result"];
    EXPECT_EQ(message["id"], "x");
    EXPECT_TRUE(result["structuredContent"]["stdout"] == output);
    EXPECT_TRUE(result["content"][0]["text"] == output);
    EXPECT_EQ(result.contains("resultType"), one.fields == modern);
    EXPECT_GE(server.service.steps, kPiecesOfMcp);
    EXPECT_TRUE(test::WaitUntil([&] { return server.service.bytes_held == 0; }));
  }
}

// What a process printed is held once, and never as its JSON.
TEST(Streamed, TheLogOfAProcessIsMadeWhileItIsRead) {
  RunningServer server;
  server.service.log_text.assign(kOutput, '\0');
  RawClient client = RawClient::Tcp(server.port());
  client.Send(
      Request("GET", "/v1/sessions/" + kSessionId + "/processes/" + kCallId + "/log", "agent-key"));
  EXPECT_LT(StepsUntilQuiet(server), kPieces / 2);
  EXPECT_GE(server.service.bytes_held, kOutput);
  EXPECT_LT(server.service.bytes_held, kOutput * 5 / 4) << "not six times as much";
  const Reply1 reply = client.Receive();
  EXPECT_EQ(reply.status, 200);
  const auto log = nlohmann::json::parse(reply.body);
  EXPECT_TRUE(log["text"] == std::string(kOutput, '\0'));
  EXPECT_EQ(log["offset"], 0);
  EXPECT_EQ(log["next"], kOutput);
  EXPECT_EQ(log["ended"], true);
  EXPECT_TRUE(test::WaitUntil([&] { return server.service.bytes_held == 0; }));
}

// Large answers of MCP, made of pieces or whole, are compressed on the way, in steps that are not the loop's.
TEST(Streamed, LargeAnswersOfMcpAreCompressedForAClientThatTakesIt) {
  RunningServer server;
  server.service.log_text = std::string(40 << 10, '\0') + "\xc3\xa4\n";
  server.service.tool_description.assign(1 << 20, 'x');
  const auto ask = [&](const std::string& message, const std::string& encoding) {
    server.service.steps = 0;
    RawClient client = RawClient::Tcp(server.port());
    client.Send(Request("POST", "/mcp", "agent-key",
                        "Content-Type: application/json\r\n"
                        "Accept: application/json, text/event-stream\r\n"
                        "Mcp-Session-Id: " +
                            kSessionId +
                            "\r\nMCP-Protocol-Version: 2025-11-25\r\nAccept-Encoding: " + encoding +
                            "\r\n",
                        message));
    return client.Receive();
  };
  const std::string list = R"({"jsonrpc":"2.0","id":1,"method":"tools/list"})";
  const std::string read =
      R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read-process",)"
      R"("arguments":{"process_id":")" +
      kCallId + R"(","offset":0}}})";
  for (const std::string& message : {list, read}) {
    const Reply1 plain = ask(message, "identity");
    EXPECT_EQ(plain.status, 200);
    EXPECT_EQ(plain.Field("Content-Encoding"), "");
    EXPECT_EQ(plain.Field("Vary"), "Accept-Encoding");
    EXPECT_GT(server.service.steps, 0);
    const Reply1 packed = ask(message, "gzip");
    EXPECT_EQ(packed.Field("Content-Encoding"), "gzip");
    EXPECT_GT(server.service.steps, 0);
    EXPECT_LT(packed.body.size(), plain.body.size() / 20);
    EXPECT_EQ(test::Gunzip(packed.body), plain.body);
    EXPECT_TRUE(nlohmann::json::parse(plain.body).contains("result")) << plain.body.substr(0, 200);
  }
  const auto shown = nlohmann::json::parse(ask(read, "identity").body)["result"];
  EXPECT_TRUE(shown["structuredContent"]["output"] == server.service.log_text);
  EXPECT_TRUE(
      shown["content"][0]["text"].get<std::string>().ends_with("]\n" + server.service.log_text));
  EXPECT_EQ(shown["structuredContent"]["next_offset"], server.service.log_text.size());
  EXPECT_EQ(shown["isError"], false);
  // A small answer is sent as it is.
  server.service.tool_description = "x";
  EXPECT_EQ(ask(list, "gzip").Field("Content-Encoding"), "");
}

// Without chunks the end of the connection is the end of the answer.
TEST(Streamed, AnOldClientGetsItToTheEndOfTheConnection) {
  RunningServer server;
  RawClient client = RawClient::Tcp(server.port());
  std::string request = CallOf(R"({"tool":"big"})");
  request.replace(request.find("HTTP/1.1"), 8, "HTTP/1.0");
  client.Send(request);
  std::string all;
  for (std::string some = client.ReadSome(); !some.empty(); some = client.ReadSome()) {
    all += some;
  }
  const size_t body = all.find("\r\n\r\n") + 4;
  EXPECT_EQ(all.find("Transfer-Encoding"), std::string::npos);
  EXPECT_EQ(nlohmann::json::parse(all.substr(body))["result"]["stdout"].get<std::string>().size(),
            1U << 20);
}

}  // namespace
}  // namespace coffer::gateway
