// SPDX-License-Identifier: Apache-2.0
//
// A tool whose manifest offers it other tools ([calls]): what those may do, how deep calls go, and what hostile programs try. Each
// with a control that shows the same thing at work where it is allowed.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <map>

#include "base/unique_fd.h"
#include "tests/integration/mcp_answer.h"
#include "tests/support/tools_fixture.h"

namespace coffer::test {
namespace {

class ToolsOfCalls : public ToolsInside {
 protected:
  static std::string MayCall(const std::string& tools, const std::string& more = "") {
    return "[calls]\ntools = [" + tools + "]\n" + more;
  }
  RunResult Call(const std::string& tool, const Strings& flags = {}) {
    Strings words = {CofferPath(), "call", tool, "--state", state_, "--tools", manifests_.path()};
    words.insert(words.end(), flags.begin(), flags.end());
    return RunProgram(words);
  }
  // By tool; the newest of each.
  std::map<std::string, Json> ByTool() {
    std::map<std::string, Json> found;
    for (const Json& one : Calls()) {
      found.emplace(one.at("tool"), one);
    }
    return found;
  }
};

TEST_F(ToolsOfCalls, EachCallIsAChildWithAReceiptThatIsSealedBefore) {
  Declare("greet", "echo hello $1");
  Declare("other", "echo other");
  Declare("script", "coffer call greet; coffer call other || echo refused $?; ls /run/coffer",
          MayCall("\"greet\""));
  const RunResult result = Call("script");
  EXPECT_EQ(result.exit, 0) << result.Describe();
  EXPECT_TRUE(result.out.starts_with("hello\nrefused ")) << "NO-CONTROL\n" << result.Describe();
  EXPECT_TRUE(result.out.ends_with("bin\ntools.sock\n")) << "nothing else is there: " << result.out;
  std::map<std::string, Json> calls = ByTool();
  ASSERT_TRUE(calls.contains("greet") && calls.contains("script"));
  EXPECT_EQ(calls["greet"]["parent_id"], calls["script"]["call_id"]);
  EXPECT_LT(calls["greet"]["log_index"].get<int>(), calls["script"]["log_index"].get<int>());
  EXPECT_EQ(calls["other"]["outcome"], "denied") << "it is not one that the manifest names";
  EXPECT_EQ(Audit({"verify"}).exit, 0);

  // The control: a tool without [calls] has no socket, and no program that could use one.
  Declare("bare", "echo [$COFFER_TOOLS_SOCKET]; command -v coffer || echo missing");
  EXPECT_EQ(Call("bare").out, "[]\nmissing\n");
}

TEST_F(ToolsOfCalls, AnInnerToolHasNoFileThatTheOuterDoesNotHave) {
  TempDir secret;
  const std::string token = NewToken();
  secret.Write("secret", token);
  const std::string mount =
      "[[files.mount]]\nhost = \"" + secret.path() + "\"\nat = \"/data\"\nmode = \"read\"\n";
  Declare("read", "cat /data/secret", mount);
  Declare("without", "coffer call read", MayCall("\"read\""));
  Declare("with", "coffer call read", MayCall("\"read\"") + mount);
  const RunResult refused = Call("without");
  EXPECT_EQ(refused.exit, 120) << refused.Describe();
  EXPECT_FALSE(Contains(refused.out + refused.err, token)) << "OPEN\n" << refused.Describe();
  EXPECT_TRUE(Contains(refused.err, "policy.narrow")) << refused.err;
  EXPECT_EQ(Call("with").out, token) << "NO-CONTROL";
}

TEST_F(ToolsOfCalls, ASessionThatTheOuterMayOnlyReadIsNotWritten) {
  Declare("write", "echo changed > /workspace/note; cat /workspace/note",
          "[files]\nworkspace = \"session-write\"\n");
  Declare("reader", "coffer call write; cat /workspace/note",
          MayCall("\"write\"") + "[files]\nworkspace = \"session-read\"\n");
  Declare("writer", "coffer call write",
          MayCall("\"write\"") + "[files]\nworkspace = \"session-write\"\n");
  Declare("stranger", "coffer call write; ls /workspace", MayCall("\"write\""));
  const RunResult made = RunProgram({CofferPath(), "sessions", "new", "--state", state_});
  ASSERT_EQ(made.exit, 0) << made.Describe();
  const std::string session = Lines(made.out).front();
  Declare("look", "cat /workspace/note", "[files]\nworkspace = \"session-read\"\n");
  const auto note = [&] { return Call("look", {"--session", session}).out; };
  (void)Call("reader", {"--session", session});
  EXPECT_FALSE(Contains(note(), "changed")) << "OPEN";
  (void)Call("stranger", {"--session", session});
  EXPECT_FALSE(Contains(note(), "changed")) << "OPEN: a tool with a workspace of its own";
  EXPECT_EQ(Call("writer", {"--session", session}).out, "changed\n") << "NO-CONTROL";
  EXPECT_EQ(note(), "changed\n") << "NO-CONTROL";
}

TEST_F(ToolsOfCalls, DepthIsBoundedAndCyclesAreRefused) {
  Declare("d4", "echo bottom");
  Declare("d3", "coffer call d4", MayCall("\"d4\""));
  Declare("d2", "coffer call d3", MayCall("\"d3\""));
  Declare("d1", "coffer call d2", MayCall("\"d2\""));
  Declare("d0", "coffer call d1", MayCall("\"d1\""));
  EXPECT_EQ(Call("d1").out, "bottom\n") << "NO-CONTROL: three deep";
  const RunResult deep = Call("d0");
  EXPECT_FALSE(Contains(deep.out, "bottom")) << "OPEN\n" << deep.Describe();
  EXPECT_TRUE(Contains(deep.err, "policy.depth")) << deep.Describe();

  Declare("ping", "coffer call pong", MayCall("\"pong\""));
  Declare("pong", "coffer call ping", MayCall("\"ping\""));
  const RunResult cycle = Call("ping");
  EXPECT_NE(cycle.exit, 0);
  EXPECT_TRUE(Contains(cycle.err, "policy.cycle")) << cycle.Describe();
  Declare("itself", "true", MayCall("\"itself\""));
  const RunResult self = Call("itself");
  EXPECT_EQ(self.exit, 120) << self.Describe();
}

TEST_F(ToolsOfCalls, TimeMemoryAndTheNumberOfCallsAreTheOuters) {
  const std::string few = MayCall("\"greet\"", "most = 3\n");
  Declare("greet", "echo hello");
  Declare("often", "for i in 1 2 3 4 5; do coffer call greet || echo no; done", few);
  EXPECT_EQ(Call("often").out, "hello\nhello\nhello\nno\nno\n") << "NO-CONTROL: three work";

  // Of what is left a tool that calls tools gets half, so calls of calls never make more than the first may.
  Declare("many", "for i in 1 2 3 4; do coffer call greet || echo no; done",
          MayCall("\"greet\"", "most = 100\n"));
  Declare("outer", "coffer call many", MayCall("\"many\"", "most = 5\n"));
  EXPECT_EQ(Call("outer").out, "hello\nhello\nno\nno\n") << "one for many, two of the four left";

  Declare("sleep", "sleep 60", "[limits]\nwall = \"60s\"\n");
  Declare("short", "coffer call sleep", MayCall("\"sleep\"") + "[limits]\nwall = \"2s\"\n");
  const RunResult ended = Call("short");
  EXPECT_EQ(ended.exit, 122) << ended.Describe();
  EXPECT_LT(ended.took.count(), 20);
  EXPECT_EQ(ByTool()["sleep"]["outcome"], "terminated");

  Declare("limits", "grep -h . /sys/fs/cgroup/memory.max 2>/dev/null || ulimit -v", "");
  Declare("held", "coffer call limits --json",
          MayCall("\"limits\"") + "[limits]\nmemory = \"96MiB\"\n");
  const RunResult held = Call("held");
  EXPECT_EQ(held.exit, 0) << held.Describe();
  const std::string inner = ByTool()["limits"]["call_id"];
  const Json shown = Json::parse(Audit({"show", inner, "--json"}).out);
  EXPECT_LE(shown.at("receipt").at("limits").at("memory").at("cap").get<uint64_t>(),
            uint64_t{96} << 20)
      << shown.at("receipt").at("limits").dump();
}

TEST_F(ToolsOfCalls, OverMcpACancelledCallTakesItsCallsAlong) {
  const std::string token = NewToken();
  Declare("wait", "echo $$ > /dev/null; exec sleep 61 #" + token);
  Declare("script", "coffer call wait", MayCall("\"wait\""));
  Declare("quick", "coffer call greet", MayCall("\"greet\""));
  Declare("greet", "echo hello");
  int ends[2] = {-1, -1};
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  UniqueFd read_end(ends[0]), input(ends[1]);
  RunOptions options;
  options.in_child = [from = read_end.get()] { ::dup2(from, STDIN_FILENO); };
  Background server({CofferPath(), "mcp", "--state", state_, "--tools", manifests_.path()},
                    options);
  const auto send = [&](const std::string& method, Json params, const char* id) {
    params["_meta"] = {{"io.modelcontextprotocol/protocolVersion", "2026-07-28"},
                       {"io.modelcontextprotocol/clientCapabilities", Json::object()}};
    Json message = {{"jsonrpc", "2.0"}, {"method", method}, {"params", params}};
    if (id != nullptr) {
      message["id"] = id;
    }
    const std::string line = message.dump() + "\n";
    EXPECT_EQ(::write(input.get(), line.data(), line.size()), static_cast<ssize_t>(line.size()));
  };
  send("tools/call", {{"name", "quick"}, {"arguments", Json::object()}}, "a");
  EXPECT_EQ(McpAnswer(server, "a")["result"]["structuredContent"]["stdout"], "hello\n")
      << "NO-CONTROL";
  send("tools/call", {{"name", "script"}, {"arguments", Json::object()}}, "b");
  ASSERT_TRUE(WaitUntil([&] { return ByTool().contains("wait"); }));
  send("notifications/cancelled", {{"requestId", "b"}}, nullptr);
  EXPECT_TRUE(WaitUntil([&] {
    const std::map<std::string, Json> calls = ByTool();
    return calls.at("wait").at("outcome") == "terminated" &&
           calls.at("script").at("outcome") == "terminated";
  }));
  input.Reset();
  EXPECT_EQ(server.Wait().exit, 0) << server.err();
}

TEST_F(ToolsOfCalls, WhatCannotBeServedIsRefusedWhenItIsLoaded) {
  Declare("greet", "echo hello");
  const std::map<std::string, std::string> wrong = {
      {"tools = []", "an empty list"},           {"tools = [\"Bad Name\"]", "is not a tool's name"},
      {"tools = [\"greet\"]\nmost = 0", "most"}, {"tools = [\"greet\"]\nmost = 10001", "most"},
      {"tools = [\"greet\"]\nwhat = 1", "what"},
  };
  for (const auto& [text, reason] : wrong) {
    Declare("bad", "true", "[calls]\n" + text + "\n");
    const RunResult refused = Call("bad");
    EXPECT_EQ(refused.exit, 120) << text;
    const RunResult checked = RunProgram({CofferPath(), "tools", "check", manifests_ / "bad.toml"});
    EXPECT_TRUE(Contains(checked.out + checked.err, reason)) << text << checked.Describe();
  }
  Declare("good", "coffer call greet", MayCall("\"greet\""));
  EXPECT_EQ(Call("good").out, "hello\n") << "NO-CONTROL";
  Declare("missing", "true", MayCall("\"nowhere\""));
  const RunResult missing = Call("missing");
  EXPECT_EQ(missing.exit, 120) << missing.Describe();
  EXPECT_TRUE(Contains(missing.err, "there is no tool called nowhere")) << missing.err;
}

}  // namespace
}  // namespace coffer::test
