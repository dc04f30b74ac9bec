// SPDX-License-Identifier: Apache-2.0
//
// Background processes of an MCP client: started, read, reached and stopped by tools, and gone with the client.
#include <gtest/gtest.h>
#include <signal.h>

#include <nlohmann/json.hpp>

#include "tests/integration/mcp_client.h"

namespace coffer::test {
namespace {

class McpProcesses : public Mcp {
 protected:
  // The result of one call, when it has come.
  Json Ask(Background& server, const std::string& tool, const Json& args) {
    const std::string id = "ask" + std::to_string(++asked_);
    Send(Call(id, tool, args));
    const Json answer = McpAnswer(server, id);
    return answer.contains("result") ? answer["result"] : answer;
  }
  std::string StartOne(Background& server, const Json& args) {
    const Json started = Ask(server, "start-process", args);
    EXPECT_EQ(started["isError"], false) << started;
    return started["structuredContent"]["processes"][0].value("process_id", "");
  }
  // Waits until `wanted` is in the text of read-process.
  std::string ReadUntil(Background& server, const std::string& id, const std::string& wanted) {
    std::string text;
    EXPECT_TRUE(WaitUntil(
        [&] {
          const Json read = Ask(server, "read-process", {{"process_id", id}});
          text = read.contains("content") ? read["content"][0].value("text", "") : read.dump();
          return Contains(text, wanted);
        },
        Seconds(60)))
        << text;
    return text;
  }
  static std::string Get(int port) {
    const std::string number = std::to_string(port);
    return "exec 3<>/dev/tcp/127.0.0.1/" + number +
           " && printf 'GET /page HTTP/1.0\r\n\r\n' >&3 && cat <&3";
  }

  int asked_ = 0;
};

TEST_F(McpProcesses, AServerIsStartedReachedReadAndStopped) {
  const auto server = Start(Bash("page", "echo served > page"));
  EXPECT_EQ(McpAnswer(*server, "page")["result"]["isError"], false);
  const std::string id =
      StartOne(*server, {{"command", "exec python3 -u -m http.server 8000"}, {"ports", {8000}}});
  ReadUntil(*server, id, "Serving");
  const Json reached = Ask(*server, "bash", {{"command", Get(8000)}});
  EXPECT_TRUE(Contains(reached["structuredContent"].value("stdout", ""), "served")) << reached;
  // A port that was not named is not reached.
  const std::string hidden =
      StartOne(*server, {{"command", "exec python3 -u -m http.server 8001"}});
  ReadUntil(*server, hidden, "Serving");
  EXPECT_EQ(Ask(*server, "bash", {{"command", Get(8001)}})["isError"], true);

  const Json first = Ask(*server, "read-process", {{"process_id", id}, {"offset", 0}});
  const uint64_t next = first["structuredContent"]["next_offset"];
  EXPECT_GT(next, 0U);
  const Json rest = Ask(*server, "read-process", {{"process_id", id}, {"offset", next}});
  EXPECT_EQ(rest["structuredContent"]["output"], "") << rest;
  EXPECT_EQ(Ask(*server, "list-processes", Json::object())["structuredContent"]["processes"].size(),
            2U);

  EXPECT_EQ(Ask(*server, "stop-process", {{"process_id", id}})["isError"], false);
  ReadUntil(*server, id, "has ended");
  EXPECT_EQ(Ask(*server, "bash", {{"command", Get(8000)}})["isError"], true) << "it is gone";
  EXPECT_EQ(Recorded().count("shell terminated"), 1U);
  input_.Reset();
  EXPECT_EQ(server->Wait().exit, 0) << server->err();
  EXPECT_EQ(Recorded().count("shell terminated"), 2U) << "each has its receipt";
  EXPECT_EQ(Coffer({"audit", "verify"}).exit, 0);
  EXPECT_TRUE(NoSessionIsOpen());
}

TEST_F(McpProcesses, HowAProcessEndedIsSaid) {
  const auto server = Start("");
  const std::string id = StartOne(*server, {{"command", "echo out; echo err >&2; exit 7"}});
  const std::string text = ReadUntil(*server, id, "with status 7");
  EXPECT_TRUE(Contains(text, "out\n")) << text;
  EXPECT_TRUE(Contains(text, "err\n")) << text;
  EXPECT_EQ(Ask(*server, "stop-process", {{"process_id", id}})["isError"], false) << "no mistake";
  input_.Reset();
  EXPECT_EQ(server->Wait().exit, 0);
}

TEST_F(McpProcesses, BadRequestsAreErrorsOfTheTool) {
  const auto server = Start("");
  EXPECT_EQ(Ask(*server, "start-process", Json::object())["isError"], true);
  EXPECT_EQ(Ask(*server, "start-process", {{"command", "true"}, {"ports", {80}}})["isError"], true);
  EXPECT_EQ(Ask(*server, "start-process", {{"command", "true"}, {"detach", true}})["isError"],
            true);
  EXPECT_EQ(Ask(*server, "read-process", {{"process_id", "none"}})["isError"], true);
  EXPECT_EQ(Ask(*server, "stop-process", {{"process_id", "none"}})["isError"], true);
  const std::string wait = "while :; do sleep 0.2; done";
  StartOne(*server, {{"command", wait}, {"ports", {8000}}});
  EXPECT_EQ(Ask(*server, "start-process", {{"command", wait}, {"ports", {8000}}})["isError"], true)
      << "the port is taken";
  for (int i = 0; i < 7; ++i) {
    StartOne(*server, {{"command", wait}});
  }
  const Json ninth = Ask(*server, "start-process", {{"command", wait}});
  EXPECT_EQ(ninth["isError"], true) << ninth;
  EXPECT_TRUE(Contains(ninth["content"][0]["text"], "stop-process")) << ninth;
  input_.Reset();
  EXPECT_EQ(server->Wait().exit, 0);
  EXPECT_EQ(Recorded().count("shell terminated"), 8U);
}

// A process of `coffer sessions start` in the same session has the port already: it keeps it, and calls go on.
TEST_F(McpProcesses, APortThatTheSessionHasStaysThere) {
  const std::string session = Lines(Coffer({"sessions", "new"}).out).at(0);
  const std::string wait = "while :; do sleep 0.2; done";
  ASSERT_EQ(Coffer({"sessions", "start", session, "--port", "8000", "--", "sh", "-c", wait}).exit,
            0);
  const auto server = Start("", {"--session", session});
  StartOne(*server, {{"command", wait}, {"ports", {8000}}});
  const Json after = Ask(*server, "bash", {{"command", "echo goes on"}});
  EXPECT_EQ(after["isError"], false) << after;
  EXPECT_EQ(Ask(*server, "read-process", {{"process_id", "x"}, {"offset", 1e30}})["isError"], true);
  input_.Reset();
  EXPECT_EQ(server->Wait().exit, 0) << server->err();
  EXPECT_EQ(Coffer({"sessions", "end", session}).exit, 0);
}

// Nothing outlives the client's program, not even if that is killed.
TEST_F(McpProcesses, ProcessesEndWithTheProgram) {
  for (const int signal : {SIGTERM, SIGKILL}) {
    const auto server = Start("");
    const std::string token = NewToken();
    StartOne(*server, {{"command", "while :; do sleep 0.1; done; : " + token}});
    EXPECT_TRUE(WaitUntil([&] { return !FindProcesses(token).empty(); }, Seconds(60)))
        << "the control";
    server->Signal(signal);
    (void)server->Wait();
    EXPECT_TRUE(WaitUntil([&] { return FindProcesses(token).empty(); }, Seconds(60))) << signal;
    input_.Reset();
  }
}

}  // namespace
}  // namespace coffer::test
