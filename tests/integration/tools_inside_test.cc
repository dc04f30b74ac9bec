// SPDX-License-Identifier: Apache-2.0
//
// Code in a run that calls declared tools: from bash, from Python, with both helpers, and what the record says of it.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <cstdlib>

#include "tests/support/tools_fixture.h"

namespace coffer::test {
namespace {

using ToolsInsideRun = ToolsInside;

TEST_F(ToolsInsideRun, AShellScriptCallsTwoToolsAndEachHasAReceiptWithItsParent) {
  Declare("greet", "echo hello $1; echo aside >&2");
  Declare("fail", "echo half; exit 7");
  const RunResult result = RunBash("greet,fail", R"(
set -e
coffer call greet '{"word": "you"}'
coffer call fail && exit 1 || echo "status $?"
coffer call greet --args '{"word": "again"}' --json
)");
  EXPECT_EQ(result.exit, 0) << result.Describe();
  const Strings lines = Lines(result.out);
  ASSERT_EQ(lines.size(), 4U) << result.Describe();
  EXPECT_EQ(lines[0], "hello you");
  EXPECT_EQ(lines[1], "half");
  EXPECT_EQ(lines[2], "status 7");
  EXPECT_EQ(Json::parse(lines[3]).at("result").at("stdout"), "hello again\n");
  EXPECT_TRUE(Contains(result.err, "aside\n")) << result.err;

  const Json calls = Calls();
  ASSERT_EQ(calls.size(), 4U);
  const std::string parent = result.receipt.at("call_id");
  const auto run = std::find_if(calls.begin(), calls.end(),
                                [&](const Json& one) { return one.at("call_id") == parent; });
  ASSERT_NE(run, calls.end());
  EXPECT_TRUE(run->at("parent_id").is_null()) << run->dump(1);
  int children = 0;
  for (const Json& one : calls) {
    if (one.at("call_id") == parent) {
      continue;
    }
    ++children;
    const Json shown =
        Json::parse(Audit({"show", one.at("call_id").get<std::string>(), "--json"}).out);
    EXPECT_EQ(shown.at("receipt").at("parent_id"), parent) << shown.dump(1);
    EXPECT_LT(one.at("log_index").get<int>(), run->at("log_index").get<int>()) << "sealed before";
  }
  EXPECT_EQ(children, 3);
  EXPECT_EQ(Audit({"verify"}).exit, 0);
}

// A call inside has its answer from a socket. What the network refused is said there as well.
TEST_F(ToolsInsideRun, WhatTheNetworkRefusedIsSaidInsideToo) {
  // With a directory of the host the supervisor makes the connections, and sees those that cannot be.
  const std::string shown = dir_.MakeDir("shown");
  const std::string mount =
      "[[files.mount]]\nhost = \"" + shown + "\"\nat = \"/data\"\nmode = \"read\"\n";
  Declare("reach", "echo x > /dev/tcp/192.0.2.7/80", mount);
  Declare("stay", "true", mount);
  const std::string note =
      "coffer: note: refused: 192.0.2.7:80: this call has no network; to allow it: ";
  const RunResult refused = RunBash("reach", "coffer call reach", {"--ro", shown});
  EXPECT_EQ(refused.exit, 1) << refused.Describe();
  EXPECT_TRUE(Contains(refused.err, note)) << refused.Describe();
  const RunResult json = RunBash("reach", "coffer call reach --json", {"--ro", shown});
  EXPECT_FALSE(Contains(json.err, note)) << json.Describe();
  EXPECT_TRUE(Contains(json.out, "192.0.2.7:80")) << json.Describe();
  const RunResult stayed = RunBash("stay", "coffer call stay", {"--ro", shown});
  EXPECT_EQ(stayed.exit, 0) << "the control\n" << stayed.Describe();
  EXPECT_FALSE(Contains(stayed.err, "refused:")) << stayed.err;
}

TEST_F(ToolsInsideRun, PythonCallsSpeaksMcpAndSeesOnlyWhatIsOffered) {
  Declare("greet", "echo hello $1");
  Declare("other", "echo other");
  const RunResult result = RunPython("greet", R"(
print([tool["name"] for tool in ask("tools/list", {})["result"]["tools"]])
print(call("greet", word="python")["stdout"].strip())
print(call("other")["code"])
print(call("greet", wrong=1)["error"]["class"])
)");
  EXPECT_EQ(result.exit, 0) << result.Describe();
  EXPECT_EQ(result.out, "['greet']\nhello python\n-32602\npolicy.args.schema\n") << result.err;
}

TEST_F(ToolsInsideRun, TheHelpersOfBothLanguages) {
  Declare("greet", "echo hello $1");
  const char* const source = std::getenv("COFFER_SOURCE");
  ASSERT_NE(source, nullptr);
  const std::string sdk = std::string(source) + "/sdk";
  const RunResult python =
      Run("greet", {"--ro", sdk + "/python:/sdk", "--env", "PYTHONPATH=/sdk"},
          {"python3", "-c",
           "from cofferdam.inside import call, tools\n"
           "print(call('greet', word='python')['stdout'], len(tools()), end='')"});
  EXPECT_EQ(python.out, "hello python\n 1") << python.Describe();
  if (RunProgram({"sh", "-c", "command -v node"}).exit != 0) {
    return;
  }
  const std::string script = dir_.Write("script.mjs", R"(
import { call } from "/sdk/src/inside.js";
const said = await call("greet", { word: "node" });
process.stdout.write(said.stdout);
)");
  const RunResult node =
      RunCoffer(Offer("greet", {"--ro", sdk + "/typescript:/sdk", "--ro", script + ":/script.mjs",
                                "--memory", "1GiB", "--processes", "64"}),
                {"node", "/script.mjs"});
  EXPECT_EQ(node.out, "hello node\n") << node.Describe();
}

TEST_F(ToolsInsideRun, AProjectAndASessionAreShared) {
  Declare("write", "echo \"$1\" > note", "[files]\nworkspace = \"session-write\"\n");
  TempDir project;
  const RunResult in_project =
      RunBash("write", "coffer call write '{\"word\": \"kept\"}' && cat note",
              {"--project", project.path()});
  EXPECT_EQ(in_project.out, "kept\n") << in_project.Describe();
  EXPECT_EQ(ReadFile(project / "note").value_or(""), "kept\n");

  const RunResult made = RunProgram({CofferPath(), "sessions", "new", "--state", state_});
  const std::string session = Lines(made.out).front();
  const RunResult in_session = RunBash(
      "write", "coffer call write '{\"word\": \"shared\"}' && cat note", {"--session", session});
  EXPECT_EQ(in_session.out, "shared\n") << in_session.Describe();
  EXPECT_TRUE(RunBash("write", "coffer call write '{\"word\": \"lost\"}' && ls").out.empty())
      << "without either the workspace of a call is its own";
}

TEST_F(ToolsInsideRun, CallsEndWithTheRunAndAreSealed) {
  Declare("wait", "echo begun; sleep 60");
  const RunResult result = RunBash("wait", "coffer call wait & sleep 1.5; exit 3");
  EXPECT_EQ(result.exit, 3) << result.Describe();
  EXPECT_LT(result.took.count(), 15);
  bool found = false;
  for (const Json& one : Calls()) {
    if (one.at("tool") == "wait") {
      found = true;
      EXPECT_EQ(one.at("outcome"), "terminated") << one.dump(1);
      EXPECT_EQ(one.at("error_class"), "policy.cancelled");
      EXPECT_EQ(one.at("parent_id"), result.receipt.at("call_id"));
    }
  }
  EXPECT_TRUE(found);
}

TEST_F(ToolsInsideRun, AKilledSupervisorTakesTheCallsAlong) {
  const std::string token = NewToken();
  Declare("wait", "exec sleep 61 #" + token);
  Strings words = {CofferPath(), "run"};
  const Strings flags = Offer("wait");
  words.insert(words.end(), flags.begin(), flags.end());
  words.insert(words.end(), {"--", "bash", "-c", "coffer call wait & echo go; wait"});
  Background run(words);
  ASSERT_TRUE(run.WaitForOutput("go")) << run.err();
  ASSERT_TRUE(WaitUntil([&] { return Contains(Audit({"list", "--json"}).out, "\"wait\""); }));
  run.Signal(SIGKILL);
  run.Wait();
  EXPECT_TRUE(WaitUntil(
      [&] {
        const Json calls = Calls();
        return std::any_of(calls.begin(), calls.end(), [](const Json& one) {
          return one.at("tool") == "wait" && one.at("outcome") == "terminated";
        });
      },
      Seconds(20)));
}

TEST_F(ToolsInsideRun, TheNumberOfCallsIsBounded) {
  Declare("greet", "echo hello");
  const RunResult result = RunBash(
      "greet", "for i in 1 2 3; do coffer call greet || echo refused $?; done", {"--tool-calls=2"});
  EXPECT_EQ(result.out, "hello\nhello\nrefused 120\n") << result.Describe();
  EXPECT_TRUE(Contains(result.err, "--tool-calls")) << result.err;
}

TEST_F(ToolsInsideRun, MistakesAreRefusedBeforeAnythingRuns) {
  Declare("greet", "echo hello");
  TempDir shown;
  const struct {
    std::string tools;
    Strings flags;
    std::string says;
  } kMistakes[] = {
      {"gret", {}, "did you mean greet"},
      {"greet", {"--level", "process"}, "container"},
      {"greet", {"--seccomp", "strict"}, "--seccomp strict"},
      {"greet", {"--ro", shown.path() + ":/run/coffer"}, "/run/coffer"},
      {"greet", {"--ro", shown.path() + ":/run/coffer/bin"}, "/run/coffer"},
  };
  for (const auto& mistake : kMistakes) {
    const RunResult result = RunBash(mistake.tools, "echo ran", mistake.flags);
    EXPECT_EQ(result.exit, 120) << result.Describe();
    EXPECT_TRUE(Contains(result.err, mistake.says)) << result.Describe();
    EXPECT_EQ(result.out, "");
  }
  const RunResult alone = RunCoffer({"--tool-calls", "3"}, {"true"});
  EXPECT_EQ(alone.exit, 120) << alone.Describe();
  EXPECT_EQ(RunBash("greet", "coffer call greet --session x").exit, 120);
  EXPECT_EQ(RunBash("greet", "coffer call greet").out, "hello\n") << "the control";
}

}  // namespace
}  // namespace coffer::test
