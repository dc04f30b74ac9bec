// SPDX-License-Identifier: Apache-2.0
//
// A wrapped MCP server that attacks the program which wraps it: floods, forged ids and tokens, lists without end, processes that
// linger. After each attack the next call works, and the client has heard an error or what is true.
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/integration/mcp_wrap.h"

namespace coffer::test {
namespace {

constexpr const char* kServer = R"(import json, os, sys, time
here = os.path.dirname(os.path.abspath(__file__))
lists = 0

def line(text):
    sys.stdout.write(text + "\n")
    sys.stdout.flush()

def send(message):
    line(json.dumps(dict(message, jsonrpc="2.0")))

def text(words, **more):
    return dict({"content": [{"type": "text", "text": words}]}, **more)

def call(id, name, words, token):
    if name == "echo":
        return text(words)
    if name == "lists":
        return text(str(lists))
    if name == "long_line":
        return text("x" * (6 << 20))
    if name == "no_end":
        while True:
            os.write(1, b"x" * 65536)
    if name == "bytes":
        os.write(1, b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"\xff\xfe"}]}}\n' % id)
        time.sleep(600)
    if name == "twice":
        for answer in ["first", "second", "third"]:
            send({"id": id, "result": text(answer)})
        return text("fourth")
    if name == "ahead":  # answers to what was not asked yet
        for other in range(id + 1, id + 50):
            send({"id": other, "result": text("forged")})
        return text("done")
    if name == "requests":  # with ids that we and our client use
        for other in [id, id + 1, "call0", "list0", 0]:
            send({"id": other, "method": "tools/call", "params": {"name": "other-echo", "arguments": {"words": "x"}}})
            sys.stdin.readline()
        return text("done")
    if name == "progress":
        for forged in [0, 1, id - 1, id + 1, "p", None, {}, True, -1, 1.5]:
            send({"method": "notifications/progress", "params": {"progressToken": forged, "progress": 99, "message": "forged"}})
        for value in [3, 2, "x", None, -5, 1]:
            time.sleep(0.25)
            send({"method": "notifications/progress", "params": {"progressToken": token, "progress": value, "message": "real"}})
        return text("done")
    if name == "changes":
        for i in range(200):
            send({"method": "notifications/tools/list_changed"})
        time.sleep(600)
    if name == "chatter":
        for i in range(900):
            send({"method": "notifications/message", "params": {"level": "info", "data": "line"}})
        return text("done")
    if name == "heavy":
        for i in range(900):
            send({"method": "notifications/message", "params": {"level": "info", "data": "x" * 1000000}})
        time.sleep(600)
    if name == "deaf":
        os.close(0)
        send({"id": id, "result": text("deaf now")})
        time.sleep(600)
    if name == "gather":  # takes two more calls, and then listens no more
        sys.stdin.readline()
        sys.stdin.readline()
        os.close(0)
        send({"method": "notifications/message", "params": {"level": "info", "data": "listens no more"}})
        time.sleep(600)
    if name == "linger":
        if os.fork() == 0:
            os.setsid()
            time.sleep(600)
        os._exit(0)
    if name == "escapes":
        os.write(2, b"\x1b]0;title\x07\x1b[2J\r\xffon stderr\n")
        send({"id": id, "error": {"code": 1, "message": "\u001b[2Jin an error\u202e"}})

def listed():
    global lists
    lists += 1
    return json.load(open(here + "/tools.json"))

for given in iter(sys.stdin.readline, ""):
    message = json.loads(given)
    method, params = message.get("method"), message.get("params", {})
    if "id" not in message:
        continue
    if method == "initialize":
        result = {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "h", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": listed()}
    else:
        result = call(message["id"], params["name"], params["arguments"]["words"], params["_meta"]["progressToken"])
    if result is not None:
        send({"id": message["id"], "result": result})
)";

class McpWrapHostile : public McpWrapTest {
 protected:
  McpWrapHostile() : McpWrapTest(kServer) {
    Offer({"echo", "lists", "long_line", "no_end", "bytes", "twice", "ahead", "requests",
           "progress", "changes", "chatter", "heavy", "deaf", "gather", "linger", "escapes"});
  }
  void ExpectAlive(Background& server, const std::string& after) {
    EXPECT_EQ(Text(Call(server, "echo", "after " + after)), "after " + after) << server.err();
  }
  using Clock = std::chrono::steady_clock;
};

TEST_F(McpWrapHostile, ALineWithoutEndEndsTheServerAtOnce) {
  const auto server = Start();  // the timeout of a call is a minute
  for (const char* const tool : {"long-line", "no-end"}) {
    const Clock::time_point began = Clock::now();
    const Json answer = Call(*server, tool);
    EXPECT_EQ(answer["result"]["isError"], true) << tool << answer.dump().substr(0, 300);
    EXPECT_LT(Clock::now() - began, std::chrono::seconds(30)) << tool;
    ExpectAlive(*server, tool);
  }
  Leave(*server);
  EXPECT_TRUE(Contains(server->err(), "a line longer than 4 MiB")) << server->err();
}

TEST_F(McpWrapHostile, ForgedAnswersAndRequestsReachNobody) {
  const auto server = Start({"--timeout", "3s"});
  EXPECT_EQ(Text(Call(*server, "twice")), "first");
  ExpectAlive(*server, "twice");
  EXPECT_EQ(Text(Call(*server, "ahead")), "done");
  ExpectAlive(*server, "ahead");
  EXPECT_EQ(Text(Call(*server, "requests")), "done");
  ExpectAlive(*server, "requests");
  EXPECT_TRUE(Contains(Text(Call(*server, "bytes")), "limit.wall")) << "bytes that are no JSON";
  ExpectAlive(*server, "bytes");
  Leave(*server);
  EXPECT_FALSE(Contains(server->out(), "forged"));
  EXPECT_FALSE(Contains(server->out(), "second"));
}

TEST_F(McpWrapHostile, ProgressIsThatOfTheCallAndGrows) {
  const auto server = Start();
  Json asked = {{"name", "other-progress"}, {"arguments", {{"words", "x"}}}};
  asked["_meta"] = {{"progressToken", "of the client"},
                    {"io.modelcontextprotocol/protocolVersion", "2026-07-28"},
                    {"io.modelcontextprotocol/clientCapabilities", Json::object()}};
  Send(Json{{"jsonrpc", "2.0"}, {"id", "p"}, {"method", "tools/call"}, {"params", asked}}.dump() +
       "\n");
  EXPECT_EQ(Text(McpAnswer(*server, "p")), "done");
  Leave(*server);
  EXPECT_FALSE(Contains(server->out(), "forged"));
  int told = 0;
  for (const std::string& line : Lines(server->out())) {
    const Json message = Json::parse(line);
    if (message.value("method", "") == "notifications/progress") {
      ++told;
      EXPECT_EQ(message["params"]["progressToken"], "of the client");
      EXPECT_EQ(message["params"]["progress"], 3.0) << "the control: one that grows is told";
    }
  }
  EXPECT_EQ(told, 1);
}

TEST_F(McpWrapHostile, AFloodOfMessagesEndsTheServerAndALogDoesNot) {
  const auto server = Start();
  EXPECT_EQ(Text(Call(*server, "chatter")), "done") << "the control: a log is no flood";
  for (const char* const tool : {"changes", "heavy"}) {
    const Json answer = Call(*server, tool);
    EXPECT_EQ(answer["result"]["isError"], true) << tool << answer;
    ExpectAlive(*server, tool);
  }
  Leave(*server);
  EXPECT_TRUE(Contains(server->err(), "change without end")) << server->err().substr(0, 2000);
}

TEST_F(McpWrapHostile, AServerThatIsDeafOrLeavesAChildIsStartedAgain) {
  // Longer than this test may take: no call here ends because its time is over.
  const auto server = Start({"--timeout", "600s"});
  EXPECT_EQ(Text(Call(*server, "deaf")), "deaf now");
  Json unheard = Call(*server, "echo", "unheard");  // the call by which that is found
  EXPECT_EQ(unheard["result"]["isError"], true) << unheard;
  EXPECT_NE(server->err().find("it has closed its input"), std::string::npos) << server->err();
  ExpectAlive(*server, "deaf");
  EXPECT_EQ(Call(*server, "linger")["result"]["isError"], true);
  ExpectAlive(*server, "linger");
  Leave(*server);
}

TEST_F(McpWrapHostile, CallsOfAServerThatStopsListeningFailAndTheNextOneWorks) {
  // Longer than this test may take: no call here ends because its time is over.
  const auto server = Start({"--timeout", "600s"});
  ExpectAlive(*server, "its start");
  const auto send = [&](const std::string& id, const std::string& tool) {
    Send(Request(id, "tools/call", {{"name", tool}, {"arguments", {{"words", id}}}}));
  };
  send("one", "other-gather");
  send("two", "other-echo");
  send("three", "other-echo");
  const auto said = [&] {
    (void)server->WaitForOutput("\"id\":\"one\"", Seconds(0.1));  // reads stderr, too
    return Contains(server->err(), "listens no more");
  };
  ASSERT_TRUE(WaitUntil(said, Seconds(60))) << server->err();
  send("four", "other-echo");  // the call by which that is found
  for (const char* const id : {"one", "two", "three", "four"}) {
    Json answer = McpAnswer(*server, id);
    EXPECT_EQ(answer["result"]["isError"], true) << answer;
    EXPECT_TRUE(Contains(Text(answer), "mcp.server")) << answer;
  }
  ExpectAlive(*server, "gather");
  Leave(*server);
  std::map<std::string, int> recorded = Recorded();
  EXPECT_EQ(recorded["other-gather error"], 1);
  EXPECT_EQ(recorded["other-echo error"], 3);
  EXPECT_EQ(recorded["other-echo success"], 2);
}

TEST_F(McpWrapHostile, NothingItSaysActsOnATerminal) {
  const auto server = Start();
  const Json answer = Call(*server, "escapes");
  EXPECT_TRUE(Contains(Text(answer), "in an error")) << answer;
  ExpectAlive(*server, "escapes");
  Leave(*server);
  EXPECT_TRUE(Contains(server->err(), "on stderr")) << server->err();
  for (const std::string& said : {server->err(), server->out()}) {
    EXPECT_FALSE(Contains(said, "\x1b")) << said;
    EXPECT_FALSE(Contains(said, "\x07")) << said;
    EXPECT_FALSE(Contains(said, "\r")) << said;
    EXPECT_FALSE(Contains(said, "\xff")) << said;
    EXPECT_FALSE(Contains(said, "\xe2\x80\xae")) << said;
  }
}

TEST_F(McpWrapHostile, AListIsBounded) {
  Strings names = {"echo"};
  for (int i = 0; i < 300; ++i) {
    names.push_back("t" + std::to_string(i));
  }
  Offer(names);
  auto server = Start();
  EXPECT_EQ(List(*server).size(), 256U);
  ExpectAlive(*server, "many tools");
  Leave(*server);
  EXPECT_TRUE(Contains(server->err(), "256 tools are the most")) << server->err();

  {
    std::ofstream list(server_ + "/tools.json");
    list << "[5";
    for (int i = 0; i < 20'000; ++i) {
      list << ",5";
    }
    list << "]";
  }
  server = Start();
  EXPECT_EQ(server->Wait().exit, 125);
  EXPECT_TRUE(Contains(server->err(), "more than 10,000 items")) << server->err();
}

}  // namespace
}  // namespace coffer::test
