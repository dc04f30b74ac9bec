// SPDX-License-Identifier: Apache-2.0
//
// Tools of a daemon whose programs call other tools ([calls]): what those may do, what the record says of them, and what is left
// when something of it is killed. Each refusal beside the same thing where it is allowed.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <vector>

#include "tests/daemon/calls_daemon.h"
#include "tests/gateway/harness.h"

namespace coffer::test {
namespace {

// How many bodies of a mebibyte this key may send at the same time.
size_t BodiesOf(const Daemon& daemon, const std::string& key) {
  std::vector<gateway::RawClient> clients;
  for (;;) {
    gateway::RawClient client = gateway::RawClient::Tcp(daemon.port());
    client.Send(gateway::Request("POST", "/v1/calls", key,
                                 "Content-Type: application/json\r\nExpect: 100-continue\r\n"
                                 "Content-Length: 1048576\r\n"));
    if (client.Receive().status != 100) {
      return clients.size();
    }
    clients.push_back(std::move(client));
  }
}

TEST_F(CallsOfDaemon, EachCallIsAChildWithAReceiptThatIsSealedBefore) {
  Declare("greet", "echo hello $1; echo aside >&2");
  Declare("other", "echo other");
  Declare("bare", "echo [$COFFER_TOOLS_SOCKET]; command -v coffer || echo missing");
  Declare("script", "coffer call greet; coffer call other || echo refused $?; ls /run/coffer",
          MayCall("\"greet\""));
  Start();
  const HttpAnswer answer = Call("script");
  const std::string out = Out(answer);
  EXPECT_TRUE(out.starts_with("hello\nrefused ")) << "NO-CONTROL\n" << answer.text;
  EXPECT_TRUE(out.ends_with("bin\ntools.sock\n")) << "nothing else is there: " << out;
  std::map<std::string, Json> calls = ByTool();
  ASSERT_TRUE(calls.contains("greet") && calls.contains("script")) << answer.text;
  EXPECT_EQ(calls["greet"]["parent_id"], calls["script"]["call_id"]);
  EXPECT_LT(calls["greet"]["log_index"].get<int>(), calls["script"]["log_index"].get<int>());
  EXPECT_EQ(calls["other"]["outcome"], "denied") << "it is not one that the manifest names";
  EXPECT_EQ(Audit({"verify"}).exit, 0);
  EXPECT_EQ(Out(Call("bare")), "[]\nmissing\n") << "NO-CONTROL: without [calls] nothing is there";

  // The same over MCP.
  const Json message = {{"jsonrpc", "2.0"},
                        {"id", 1},
                        {"method", "tools/call"},
                        {"params",
                         {{"name", "script"},
                          {"arguments", Json::object()},
                          {"_meta",
                           {{"io.modelcontextprotocol/protocolVersion", "2026-07-28"},
                            {"io.modelcontextprotocol/clientCapabilities", Json::object()}}}}}};
  const HttpAnswer mcp = daemon_.Ask("POST", "/mcp", daemon_.key(), message.dump(),
                                     "Accept: application/json, text/event-stream\r\n"
                                     "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: "
                                     "tools/call\r\nMcp-Name: script\r\n");
  EXPECT_TRUE(Contains(mcp.text, "hello\\nrefused ")) << mcp.text;
  EXPECT_EQ(CountOf("greet"), 2);
}

TEST_F(CallsOfDaemon, AnInnerToolHasNoFileThatTheOuterDoesNotHave) {
  TempDir secret;
  const std::string token = NewToken();
  secret.Write("secret", token);
  ASSERT_EQ(::chmod(secret.path().c_str(), 0755), 0);
  const std::string mount =
      "[[files.mount]]\nhost = \"" + secret.path() + "\"\nat = \"/data\"\nmode = \"read\"\n";
  Declare("read", "cat /data/secret", mount);
  Declare("without", "coffer call read 2>&1", MayCall("\"read\""));
  Declare("with", "coffer call read", MayCall("\"read\"") + mount);
  Start();
  const HttpAnswer refused = Call("without");
  EXPECT_FALSE(Contains(refused.text, token)) << "OPEN\n" << refused.text;
  EXPECT_TRUE(Contains(refused.text, "policy.narrow")) << refused.text;
  EXPECT_FALSE(Contains(refused.text, secret.path())) << "no path of the host is told inside";
  EXPECT_EQ(Out(Call("with")), token) << "NO-CONTROL";
}

TEST_F(CallsOfDaemon, ASessionIsSharedAsFarAsTheOuterHasIt) {
  const std::string write = "[files]\nworkspace = \"session-write\"\n";
  const std::string read = "[files]\nworkspace = \"session-read\"\n";
  Declare("write", "echo changed > /workspace/note; cat /workspace/note", write);
  Declare("reader", "coffer call write; true", MayCall("\"write\"") + read);
  Declare("writer", "coffer call write; cat /workspace/note", MayCall("\"write\"") + write);
  Declare("stranger", "coffer call write; true", MayCall("\"write\""));
  Declare("look", "cat /workspace/note", read);
  Start();
  const std::string session = daemon_.NewSession(daemon_.key());
  const auto note = [&] { return Out(Call("look", session)); };
  (void)Call("reader", session);
  EXPECT_FALSE(Contains(note(), "changed")) << "OPEN";
  (void)Call("stranger", session);
  EXPECT_FALSE(Contains(note(), "changed")) << "OPEN: a tool with a workspace of its own";
  EXPECT_EQ(Out(Call("writer", session)), "changed\nchanged\n") << "NO-CONTROL";
  EXPECT_EQ(note(), "changed\n") << "NO-CONTROL";
}

TEST_F(CallsOfDaemon, DepthIsBoundedAndCyclesAreRefused) {
  Declare("d4", "echo bottom");
  Declare("d3", "coffer call d4 2>&1", MayCall("\"d4\""));
  Declare("d2", "coffer call d3 2>&1", MayCall("\"d3\""));
  Declare("d1", "coffer call d2 2>&1", MayCall("\"d2\""));
  Declare("d0", "coffer call d1 2>&1", MayCall("\"d1\""));
  Declare("ping", "coffer call pong 2>&1", MayCall("\"pong\""));
  Declare("pong", "coffer call ping 2>&1", MayCall("\"ping\""));
  Start();
  EXPECT_EQ(Out(Call("d1")), "bottom\n") << "NO-CONTROL: three deep";
  std::map<std::string, Json> calls = ByTool();
  for (const auto& [inner, outer] :
       std::map<std::string, std::string>{{"d4", "d3"}, {"d3", "d2"}, {"d2", "d1"}}) {
    EXPECT_EQ(calls[inner]["parent_id"], calls[outer]["call_id"]) << inner;
    EXPECT_LT(calls[inner]["log_index"].get<int>(), calls[outer]["log_index"].get<int>()) << inner;
  }
  const std::string deep = Out(Call("d0"));
  EXPECT_FALSE(Contains(deep, "bottom")) << "OPEN\n" << deep;
  EXPECT_TRUE(Contains(deep, "policy.depth")) << deep;
  EXPECT_TRUE(Contains(Out(Call("ping")), "policy.cycle"));
}

TEST_F(CallsOfDaemon, TimeMemoryAndTheNumberOfCallsAreTheOuters) {
  Declare("greet", "echo hello");
  Declare("often", "for i in 1 2 3 4 5; do coffer call greet || echo no; done",
          MayCall("\"greet\"", "most = 3\n"));
  Declare("many", "for i in 1 2 3 4; do coffer call greet || echo no; done",
          MayCall("\"greet\"", "most = 100\n"));
  Declare("outer", "coffer call many", MayCall("\"many\"", "most = 5\n"));
  Declare("sleep", "sleep 60", "[limits]\nwall = \"60s\"\n");
  // The inner call's time ends a moment before the outer's, so the outer has to stay for its own end.
  Declare("short", "coffer call sleep; sleep 60",
          MayCall("\"sleep\"") + "[limits]\nwall = \"2s\"\n");
  Declare("held", "coffer call greet", MayCall("\"greet\"") + "[limits]\nmemory = \"96MiB\"\n");
  Declare("burn", "while :; do :; done", "[limits]\nwall = \"60s\"\ncpu = \"60s\"\n");
  Declare("burns", "coffer call burn; echo first $?; coffer call burn; echo second $?",
          MayCall("\"burn\"") + "[limits]\nwall = \"30s\"\ncpu = \"2s\"\n");
  Start();
  EXPECT_EQ(Out(Await(Begin("often"))), "hello\nhello\nhello\nno\nno\n")
      << "NO-CONTROL: three work";
  EXPECT_EQ(Out(Await(Begin("outer"))), "hello\nhello\nno\nno\n")
      << "one for many, two of the four left";
  const HttpAnswer ended = Await(Begin("short"));
  EXPECT_EQ(ended.Outcome(), "terminated") << ended.text;
  EXPECT_EQ(ByTool()["sleep"]["outcome"], "terminated");
  EXPECT_EQ(Out(Call("held")), "hello\n");
  const std::string inner = ByTool()["greet"]["call_id"];
  const Json shown = Json::parse(Audit({"show", inner, "--json"}).out);
  EXPECT_LE(shown.at("receipt").at("limits").at("memory").at("cap").get<uint64_t>(),
            uint64_t{96} << 20);
  const HttpAnswer burnt = Await(Begin("burns"));
  EXPECT_TRUE(Contains(Out(burnt), "first 122")) << burnt.text;
  EXPECT_TRUE(Contains(Out(burnt), "second 12")) << burnt.text;
}

// A call that waits for its calls holds nothing that those need, however many do so at the same time.
TEST_F(CallsOfDaemon, ManyOutersAtOnceDoNotWaitForEachOther) {
  const std::string small = "[limits]\nmemory = \"32MiB\"\ncpu = \"2s\"\nwall = \"100s\"\n";
  Declare("greet", "echo hello", small);
  Declare("middle", "coffer call greet", MayCall("\"greet\"") + small);
  Declare("script", "for i in 1 2; do coffer call greet & coffer call middle & done; wait",
          MayCall("\"greet\", \"middle\"") +
              "[limits]\nmemory = \"256MiB\"\ncpu = \"60s\"\nwall = \"100s\"\n");
  Start();
  constexpr int kOuters =
      8;  // more than workers, and with all their calls fewer than a tenant may have here
  std::vector<std::string> begun;
  for (int i = 0; i < kOuters; ++i) {
    begun.push_back(Begin("script"));
  }
  for (const std::string& id : begun) {
    const HttpAnswer one = Await(id);
    EXPECT_EQ(Out(one), "hello\nhello\nhello\nhello\n") << one.text;
  }
  EXPECT_EQ(CountOf("greet"), kOuters * 4);
  EXPECT_EQ(CountOf("middle"), kOuters * 2);
}

TEST_F(CallsOfDaemon, ACancelledCallTakesItsCallsAlong) {
  Declare("wait", "exec sleep 61");
  Declare("script", "coffer call wait", MayCall("\"wait\""));
  Declare("leaves", "coffer call wait & sleep 1.5; exit 3", MayCall("\"wait\""));
  Start();
  const HttpAnswer begun = daemon_.Call(daemon_.key(), {{"tool", "script"}}, kAsync);
  const std::string id = begun.At("call_id");
  ASSERT_TRUE(WaitUntil([&] { return Sleeps(61); })) << begun.text;
  daemon_.Ask("POST", "/v1/calls/" + id + "/cancel", daemon_.key(), "{}");
  EXPECT_TRUE(WaitUntil([&] {
    std::map<std::string, Json> calls = ByTool();
    return calls["wait"]["outcome"] == "terminated" && calls["script"]["outcome"] == "terminated";
  }));
  EXPECT_TRUE(WaitUntil([&] { return daemon_.Runners().empty(); }));
  // And one whose program ends first.
  const HttpAnswer left = Call("leaves");
  EXPECT_EQ(left.body["result"]["exit"]["code"], 3) << left.text;
  std::map<std::string, Json> calls = ByTool();
  EXPECT_EQ(calls["wait"]["outcome"], "terminated");
  EXPECT_EQ(calls["wait"]["error_class"], "policy.cancelled");
  EXPECT_EQ(calls["wait"]["parent_id"], calls["leaves"]["call_id"]);
  EXPECT_LT(calls["wait"]["log_index"].get<int>(), calls["leaves"]["log_index"].get<int>());
}

// The runner of the outer call, its relay, and every role: no call without a receipt, nothing that goes on.
TEST_F(CallsOfDaemon, WhateverIsKilledNoCallGoesOnAndEachHasAReceipt) {
  Declare("wait", "exec sleep 61");
  // Longer than the test waits: none of them ends because its time is over.
  Declare("script", "coffer call wait; echo went on; exec sleep 62",
          MayCall("\"wait\"") + "[limits]\nwall = \"300s\"\n");
  Declare("greet", "echo hello");
  Declare("quick", "coffer call greet", MayCall("\"greet\""));
  Start();
  const auto begin = [&] {
    const HttpAnswer begun = daemon_.Call(daemon_.key(), {{"tool", "script"}}, kAsync);
    EXPECT_TRUE(WaitUntil([&] { return Relay() != 0 && Sleeps(61); }));
    return begun.At("call_id");
  };
  const auto ended = [&](const std::string& id) {
    const HttpAnswer call = daemon_.Ask("GET", "/v1/calls/" + id, daemon_.key());
    return call.At("state") == "finished" || !call.Outcome().empty();
  };
  const auto all_sealed = [&] {
    const Json calls = Calls();
    return std::all_of(calls.begin(), calls.end(), [](const Json& one) {
      return one.at("log_index").is_number() && one.at("outcome").is_string();
    });
  };

  // The relay: the program loses its tools, and its calls end. The call itself goes on, and ends when it is cancelled.
  std::string id = begin();
  ::kill(Relay(), SIGKILL);
  EXPECT_TRUE(WaitUntil([&] { return ByTool()["wait"]["outcome"] == "terminated"; }));
  daemon_.Ask("POST", "/v1/calls/" + id + "/cancel", daemon_.key(), "{}");
  EXPECT_TRUE(WaitUntil([&] { return ended(id) && daemon_.Runners().empty(); }));
  EXPECT_EQ(Out(Call("quick")), "hello\n") << "NO-CONTROL";

  // The runner of the outer call.
  id = begin();
  const pid_t relay = Relay();
  ::kill(RunnerOf(relay), SIGKILL);
  EXPECT_TRUE(WaitUntil([&] { return ended(id) && daemon_.Runners().empty(); }));
  EXPECT_TRUE(WaitUntil([&] { return !IsAlive(relay); }));
  EXPECT_TRUE(WaitUntil(all_sealed));
  EXPECT_EQ(ByTool()["script"]["outcome"], "unknown");
  EXPECT_LT(ByTool()["wait"]["log_index"].get<int>(), ByTool()["script"]["log_index"].get<int>());
  EXPECT_EQ(Out(Call("quick")), "hello\n") << "NO-CONTROL";

  for (const RoleOf role : {RoleOf::kGateway, RoleOf::kWarden}) {
    begin();
    const pid_t orphan = Relay();
    ::kill(daemon_.Find(role), SIGKILL);
    EXPECT_TRUE(daemon_.Gone(Seconds(30)));
    EXPECT_TRUE(WaitUntil([&] { return !IsAlive(orphan); }));
    ASSERT_TRUE(daemon_.Start());
    EXPECT_TRUE(WaitUntil(all_sealed));
    EXPECT_EQ(ByTool()["wait"]["outcome"], "unknown");
    EXPECT_EQ(ByTool()["script"]["outcome"], "unknown");
    EXPECT_EQ(Out(Call("quick")), "hello\n") << "NO-CONTROL";
  }
  EXPECT_EQ(Audit({"verify"}).exit, 0);
}

// It reads what payloads write, so it is worth nothing to one that breaks into it.
TEST_F(CallsOfDaemon, TheRelayHasNoRights) {
  Declare("greet", "echo hello");
  Declare("script", "coffer call greet; exec sleep 60", MayCall("\"greet\""));
  Start();
  const HttpAnswer begun = daemon_.Call(daemon_.key(), {{"tool", "script"}}, kAsync);
  ASSERT_TRUE(WaitUntil([&] { return Relay() != 0 && CountOf("greet") == 1; })) << begun.text;
  const pid_t relay = Relay();
  std::map<std::string, std::string> status = StatusOf(relay);
  EXPECT_EQ(status["Seccomp"], "2");
  EXPECT_EQ(status["NoNewPrivs"], "1");
  EXPECT_EQ(status["CapEff"], "0000000000000000");
  EXPECT_EQ(status["CapPrm"], "0000000000000000");
  if (IsRoot()) {
    EXPECT_EQ(status["CapBnd"], "0000000000000000");
    EXPECT_EQ(status["Groups"].find_first_not_of(" \t"), std::string::npos);
    const unsigned long uid = std::stoul(status["Uid"]);
    EXPECT_GE(uid, 0x70000000UL) << "the boundary's, not root's: " << status["Uid"];
    const Strings open = Lines(RunProgram({"sh", "-c",
                                           "cd /proc/" + std::to_string(relay) +
                                               "/fd && for f in *; do readlink $f; done"})
                                   .out);
    EXPECT_GE(open.size(), 5U) << "NO-CONTROL";
    for (const std::string& one : open) {
      EXPECT_TRUE(one == "/dev/null" || one.starts_with("socket:")) << one;
    }
    const std::string memory =
        RunProgram({"sh", "-c", "tr '\\0' '\\n' < /proc/" + std::to_string(relay) + "/environ"})
            .out;
    EXPECT_FALSE(Contains(memory, "KEY")) << memory;
  }
  daemon_.Ask("POST", "/v1/calls/" + begun.At("call_id") + "/cancel", daemon_.key(), "{}");
}

// What a call inside has printed waits in the gateway until the program's relay takes it. Till then it counts for the key
// that made the outer call, and not for everybody.
TEST_F(CallsOfDaemon, AnswersThatTheRelayDoesNotTakeCountForTheKeyOfTheOuterCall) {
  const std::string output = "[limits]\noutput = \"4MiB\"\n";
  Declare("big", "sleep 2; head -c 4194304 /dev/zero | tr '\\0' x", output);
  Declare("script", "coffer call big > /dev/null", MayCall("\"big\"") + output);
  Start();
  EXPECT_EQ(BodiesOf(daemon_, daemon_.key()), 24U) << "the control: before";
  const std::string id = Begin("script");
  ASSERT_TRUE(WaitUntil([&] { return Relay() != 0 && Sleeps(2); })) << "NO-CONTROL";
  const pid_t relay = Relay();
  ASSERT_EQ(::kill(relay, SIGSTOP), 0);
  EXPECT_TRUE(WaitUntil([&] { return ByTool()["big"]["outcome"] == "success"; }));
  EXPECT_LE(BodiesOf(daemon_, daemon_.key()), 20U) << "if it counts for nobody, 22 are left to all";
  ASSERT_EQ(::kill(relay, SIGCONT), 0);
  daemon_.Ask("POST", "/v1/calls/" + id + "/cancel", daemon_.key(), "{}");
  EXPECT_TRUE(WaitUntil([&] { return daemon_.Runners().empty(); }));
}

TEST_F(CallsOfDaemon, HostileCodeOnTheSocketReachesNothingElse) {
  // A call that is killed before its runner can report counts with all the CPU time that it was given.
  const std::string little = "[limits]\ncpu = \"1s\"\n";
  Declare("greet", "echo hello", little);
  Declare("print", "head -c 900000 /dev/zero | tr '\\0' 'x'", little);
  Declare("other", "echo reached");
  DeclarePython("bytes",
                MayCall("\"greet\", \"print\"") + "[limits]\nwall = \"60s\"\ncpu = \"60s\"\n");
  const std::string hostile = kPythonInside + R"(
def raw(data, wait=5):
    s = connect(); s.settimeout(wait)
    try:
        s.sendall(data)
        return s.recv(65536)[:60]
    except OSError as e:
        return e.__class__.__name__
for data in [b"\x00\xff\xfe\n", b"[" * 100000 + b"\n", b"x" * (3 << 20) + b"\n",
             b"1R\x00c" * 60 + b"\n", b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n" * 5000]:
    raw(data)
half = [connect() for _ in range(3)]
for s in half: s.sendall(b"{\"jsonrpc\":")
closing = connect(); closing.sendall(line("tools/call", {"name": "greet"})); closing.close()
for name in ["other", "bytes", "run", "", "../other", "greet\u0000", "x" * 100000]:
    answer = call(name)
    assert "reached" not in json.dumps(answer), answer
    assert answer.get("code"), answer
for method in ["resources/list", "resources/read", "prompts/list", "server/x"]:
    assert ask(method, {"uri": "file:///etc/passwd"}).get("error"), method
assert not any("KEY" in name or "DAEMON" in name for name in os.environ), os.environ
deaf = connect(); deaf.settimeout(5)
try:
    for i in range(20): deaf.sendall(line("tools/call", {"name": "print"}, i))
except OSError as e: pass
print(call("greet")["stdout"])
)";
  Start();
  const HttpAnswer answer =
      Await(daemon_.Call(daemon_.key(), {{"tool", "bytes"}, {"args", {{"word", hostile}}}}, kAsync)
                .At("call_id"));
  EXPECT_EQ(Out(answer), "hello\n\n") << answer.text;
  EXPECT_EQ(Out(Call("greet")), "hello\n") << "the daemon is there";
}

// A tool that is taken from the manifests, or that they stop naming, is not called any more.
TEST_F(CallsOfDaemon, AReloadHoldsForCallsThatRun) {
  Declare("greet", "echo hello");
  const std::string loop =
      "for i in $(seq 100); do coffer call greet 2>&1 || exit 4; sleep 0.2; done";
  Declare("script", loop, MayCall("\"greet\""));
  Declare("missing", "coffer call nowhere", MayCall("\"nowhere\""));
  Start();
  const HttpAnswer missing = Call("missing");
  EXPECT_TRUE(Contains(missing.text, "there is no tool called nowhere")) << missing.text;
  const HttpAnswer begun = daemon_.Call(daemon_.key(), {{"tool", "script"}}, kAsync);
  ASSERT_TRUE(WaitUntil([&] { return CountOf("greet") >= 2; })) << "NO-CONTROL" << begun.text;
  Declare("script", loop);
  EXPECT_TRUE(WaitUntil(
      [&] {
        const HttpAnswer call =
            daemon_.Ask("GET", "/v1/calls/" + begun.At("call_id"), daemon_.key());
        return call.text.find("\"code\":4") != std::string::npos;
      },
      Seconds(15)))
      << "OPEN: the warden lets a call call what its manifest does not name";
}

}  // namespace
}  // namespace coffer::test
