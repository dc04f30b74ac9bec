// SPDX-License-Identifier: Apache-2.0
//
// `coffer mcp` as a client sees it: real calls over stdin and stdout, several at once, and a clean end whatever the client
// does.
#include <gtest/gtest.h>
#include <signal.h>

#include <nlohmann/json.hpp>
#include <set>

#include "tests/integration/mcp_client.h"
#include "tests/support/tools_fixture.h"

namespace coffer::test {
namespace {

TEST_F(Mcp, CallsRunSideBySideInOneWorkspace) {
  const auto server = Start(Bash("slow", "while [ ! -e go ]; do sleep 0.05; done; cat go") +
                            Bash("fails", "echo broken >&2; exit 3") +
                            Bash("quick", "echo now > made; mv made go"));
  const Json slow = McpAnswer(*server, "slow");
  EXPECT_EQ(slow["result"]["structuredContent"]["stdout"], "now\n") << slow;
  EXPECT_EQ(slow["result"]["isError"], false);
  EXPECT_EQ(slow["result"]["resultType"], "complete");
  const Json fails = McpAnswer(*server, "fails");
  EXPECT_EQ(fails["result"]["isError"], true) << fails;
  EXPECT_EQ(fails["result"]["structuredContent"]["exit_code"], 3);
  EXPECT_EQ(fails["result"]["content"][0]["text"], "[stderr]\nbroken\n[exit status 3]");
  EXPECT_EQ(McpAnswer(*server, "quick")["result"]["isError"], false);
  EXPECT_FALSE(NoSessionIsOpen()) << "the control";
  input_.Reset();
  EXPECT_EQ(server->Wait().exit, 0) << server->err();
  EXPECT_TRUE(NoSessionIsOpen());
  EXPECT_EQ(Recorded(), (std::multiset<std::string>{"bash success", "bash success", "bash error"}));
  EXPECT_EQ(Coffer({"audit", "verify"}).exit, 0);
}

// A client that sends a request again, because it lost the answer, sends its id again.
TEST_F(Mcp, ARequestWhoseIdWasUsedRunsOnce) {
  const std::string tools = dir_.MakeDir("tools");
  dir_.Write("tools/send.toml", IrreversibleToolText("send", "echo sent $RANDOM$RANDOM"));
  const auto server = Start(Call("one", "send", Json::object()), {"--tools", tools});
  // What the first `count` answers to this id printed.
  const auto answers = [&](const std::string& id, size_t count) {
    std::vector<std::string> texts;
    EXPECT_TRUE(WaitUntil([&] {
      (void)server->WaitForOutput(server->out() + "{", Seconds(1));  // the next one, if it comes
      texts.clear();
      for (const std::string& line : Lines(server->out())) {
        const Json message = Json::parse(line, nullptr, false);
        if (message.is_object() && message.value("id", Json()) == id) {
          texts.push_back(message["result"]["structuredContent"].value("stdout", message.dump()));
        }
      }
      return texts.size() >= count;
    })) << server->out()
        << server->err();
    texts.resize(count);
    return texts;
  };
  const std::string first = answers("one", 1)[0];
  EXPECT_TRUE(first.starts_with("sent ")) << first;
  Send(Call("one", "send", Json::object()));
  EXPECT_EQ(answers("one", 2)[1], first) << "OPEN: it ran again";
  EXPECT_EQ(Recorded(), (std::multiset<std::string>{"send success"}));
  Send(Call("two", "send", Json::object()));
  EXPECT_NE(answers("two", 1)[0], first) << "NO-CONTROL";
  input_.Reset();
  EXPECT_EQ(server->Wait().exit, 0) << server->err();
  EXPECT_EQ(Recorded(), (std::multiset<std::string>{"send success", "send success"}));
}

TEST_F(Mcp, ARefusalSaysWhatToChange) {
  const auto server = Start(Call("args", "bash", {{"command", 5}}) + Call("tool", "bsh", {}) +
                            "{no json\n" + Bash("good", "echo still here"));
  const Json args = McpAnswer(*server, "args");
  EXPECT_EQ(args["result"]["isError"], true) << args;
  EXPECT_EQ(args["result"]["structuredContent"]["error"]["class"], "policy.args.schema");
  EXPECT_TRUE(Contains(args["result"]["content"][0]["text"], "/command must be a string"));
  EXPECT_EQ(McpAnswer(*server, "tool")["error"]["code"], -32602);
  EXPECT_TRUE(server->WaitForOutput("-32700"));
  EXPECT_EQ(McpAnswer(*server, "good")["result"]["structuredContent"]["stdout"], "still here\n");
  input_.Reset();
  EXPECT_EQ(server->Wait().exit, 0);
}

// Every line has its code, none ends the process or keeps the next from being served; the last one is cut in the middle.
TEST_F(Mcp, BadLinesAreAnsweredAndTheNextIsServed) {
  const std::string meta = R"("_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",)"
                           R"("io.modelcontextprotocol/clientCapabilities":{}})";
  const auto modern = [&](const std::string& id, const std::string& method) {
    return R"({"jsonrpc":"2.0","id":")" + id + R"(","method":")" + method + R"(","params":{)" +
           meta + "}}\n";
  };
  const auto server = Start(
      std::string(200, '[') + "\n" + "[" + R"({"jsonrpc":"2.0","id":1,"method":"ping"}])" + "\n" +
      R"({"jsonrpc":"2.0","id":"old","method":"tools/list","params":{"_meta":{)"
      R"("io.modelcontextprotocol/protocolVersion":"1900-01-01"}}})" +
      "\n" + R"({"jsonrpc":"2.0","id":"early","method":"tools/list"})" + "\n" +
      R"({"jsonrpc":"2.0","method":"tools/call","params":{"name":"bash"}})" + "\n" +
      modern("unknown", "tools/frob") + modern("legacy", "initialize") +
      Bash("twice", "while [ ! -e go ]; do sleep 0.05; done") + Bash("twice", "echo second") +
      Bash("good", "echo still here; touch go"));
  EXPECT_TRUE(server->WaitForOutput("-32700")) << "nested";
  EXPECT_TRUE(server->WaitForOutput("batches are not supported"));
  EXPECT_EQ(McpAnswer(*server, "old")["error"]["code"], -32022);
  EXPECT_EQ(McpAnswer(*server, "early")["error"]["code"], -32602);
  EXPECT_EQ(McpAnswer(*server, "unknown")["error"]["code"], -32601);
  EXPECT_EQ(McpAnswer(*server, "legacy")["error"]["code"], -32601) << "of the other era";
  EXPECT_TRUE(server->WaitForOutput("a request with this id has no answer yet"));
  EXPECT_EQ(McpAnswer(*server, "good")["result"]["structuredContent"]["stdout"], "still here\n");
  EXPECT_TRUE(WaitUntil([&] { return McpAnswer(*server, "twice").contains("result"); }));
  const std::string half = R"({"jsonrpc":"2.0","id":"half","method":"tools/ca)";
  EXPECT_EQ(::write(input_.get(), half.data(), half.size()), static_cast<ssize_t>(half.size()));
  input_.Reset();
  EXPECT_EQ(server->Wait().exit, 0) << server->err();
  EXPECT_FALSE(Contains(server->out(), "second"));
  EXPECT_TRUE(NoSessionIsOpen());
  EXPECT_EQ(Recorded(), (std::multiset<std::string>{"bash success", "bash success"}))
      << "what was refused was no call";
}

// A client that dies, or asks us to end, leaves nothing behind: no process, no session, no call without its end.
TEST_F(Mcp, AClientThatLeavesTakesItsCallsAlong) {
  const auto server = Start(Bash("slow", "echo began > began; sleep 600"));
  // By its session's files: an answer never comes.
  ASSERT_TRUE(WaitUntil([&] {
    const Strings lines = Lines(Coffer({"sessions", "list"}).out);
    return lines.size() == 2 &&
           Contains(Coffer({"sessions", "files", lines[1].substr(0, 36)}).out, "began");
  }));
  server->Signal(SIGTERM);
  EXPECT_EQ(server->Wait().exit, 0) << server->err();
  EXPECT_TRUE(NoSessionIsOpen());
  EXPECT_EQ(Recorded(), (std::multiset<std::string>{"bash terminated"}));
}

// A client that closes stdin still reads: each of its calls has an answer, also those that never began.
TEST_F(Mcp, EveryCallIsAnsweredWhenTheClientLeaves) {
  constexpr int kCalls = 18;  // two more than run at once
  std::string requests;
  for (int i = 0; i < kCalls; ++i) {
    requests += Bash("call" + std::to_string(i), "sleep 600");
  }
  const auto server = Start(requests);
  input_.Reset();
  EXPECT_EQ(server->Wait().exit, 0) << server->err();
  int ended = 0, unbegun = 0;
  for (int i = 0; i < kCalls; ++i) {
    const Json answer = McpAnswer(*server, "call" + std::to_string(i));
    unbegun += answer.contains("error") ? 1 : 0;
    ended += answer.contains("result") && answer["result"]["isError"] == true ? 1 : 0;
  }
  EXPECT_EQ(ended, 16);
  EXPECT_EQ(unbegun, 2);
  EXPECT_EQ(Recorded().count("bash terminated"), 16U);
  EXPECT_TRUE(NoSessionIsOpen());
}

TEST_F(Mcp, ASessionThatWasNamedStays) {
  const std::string session = Lines(Coffer({"sessions", "new"}).out).at(0);
  const auto first = Start(Bash("1", "echo kept > file"), {"--session", session});
  EXPECT_EQ(McpAnswer(*first, "1")["result"]["isError"], false);
  input_.Reset();
  EXPECT_EQ(first->Wait().exit, 0);
  // The same request id in another process is another request.
  const auto second = Start(Bash("1", "cat file"), {"--session", session});
  EXPECT_EQ(McpAnswer(*second, "1")["result"]["structuredContent"]["stdout"], "kept\n");
  input_.Reset();
  EXPECT_EQ(second->Wait().exit, 0);
  EXPECT_FALSE(NoSessionIsOpen());
  EXPECT_EQ(Coffer({"mcp", "--session", "no-such-session"}).exit, 120);
}

// As calls of `coffer call --session` do.
TEST_F(Mcp, CallsReachThePortsOfTheirSession) {
  const std::string session = Lines(Coffer({"sessions", "new"}).out).at(0);
  EXPECT_EQ(Coffer({"run", "--session", session, "--", "sh", "-c", "echo served > page"}).exit, 0);
  const RunResult started = Coffer({"sessions", "start", session, "--json", "--port", "8000", "--",
                                    "python3", "-u", "-m", "http.server", "8000"});
  const Json process = Json::parse(started.out, nullptr, false);
  ASSERT_TRUE(process.is_object()) << started.Describe();
  EXPECT_EQ(process["ports"], Json::array({8000})) << process;
  EXPECT_EQ(process["state"], "running") << process;
  const std::string id = process["process_id"];
  ASSERT_TRUE(
      WaitUntil([&] { return Contains(Coffer({"sessions", "log", session, id}).out, "Serving"); },
                Seconds(60)));
  const std::string get =
      "exec 3<>/dev/tcp/127.0.0.1/8000 && printf 'GET /page HTTP/1.0\\r\\n\\r\\n' >&3 && cat <&3";
  const auto inside = Start(Bash("1", get), {"--session", session});
  const Json served = McpAnswer(*inside, "1");
  EXPECT_TRUE(Contains(served["result"]["structuredContent"].value("stdout", ""), "served"))
      << served;
  input_.Reset();
  EXPECT_EQ(inside->Wait().exit, 0);
  // The control: another session.
  const auto outside = Start(Bash("1", get));
  EXPECT_EQ(McpAnswer(*outside, "1")["result"]["isError"], true);
  input_.Reset();
  EXPECT_EQ(outside->Wait().exit, 0);
  EXPECT_EQ(Coffer({"sessions", "end", session}).exit, 0);
}

TEST_F(Mcp, ProcessesOfItsOwnSessionEndWithTheClient) {
  const auto server = Start(Bash("1", "true"));
  EXPECT_EQ(McpAnswer(*server, "1")["result"]["isError"], false);
  const Strings lines = Lines(Coffer({"sessions", "list"}).out);
  ASSERT_EQ(lines.size(), 2U);
  const std::string token = NewToken();
  EXPECT_EQ(Coffer({"sessions", "start", lines[1].substr(0, 36), "--", "sh", "-c",
                    "while :; do sleep 0.1; done", token})
                .exit,
            0);
  EXPECT_TRUE(WaitUntil([&] { return !FindProcesses(token).empty(); }, Seconds(60)))
      << "the control";
  input_.Reset();
  EXPECT_EQ(server->Wait().exit, 0) << server->err();
  EXPECT_TRUE(WaitUntil([&] { return FindProcesses(token).empty(); }, Seconds(60)));
  EXPECT_TRUE(NoSessionIsOpen());
}

// Files of the session are resources; what is not one of them is not there, whatever the URI says.
TEST_F(Mcp, FilesOfTheSessionAreResources) {
  const auto request = [](const std::string& id, const std::string& method, const Json& more) {
    Json params = more;
    params["_meta"] = {{"io.modelcontextprotocol/protocolVersion", "2026-07-28"},
                       {"io.modelcontextprotocol/clientCapabilities", Json::object()}};
    const Json message = {
        {"jsonrpc", "2.0"}, {"id", id}, {"method", method}, {"params", std::move(params)}};
    return message.dump() + "\n";
  };
  const auto server =
      Start(Bash("make",
                 "mkdir -p d; echo text > 'd/a b'; printf '\\377' > bin; ln -s /etc/passwd "
                 "link; ln -s . dir; mkfifo fifo; i=0; while [ $i -lt 120 ]; do : > n$i; "
                 "i=$((i+1)); done"));
  ASSERT_EQ(McpAnswer(*server, "make")["result"]["isError"], false) << server->out();
  Send(request("list", "resources/list", Json::object()));
  const Json list = McpAnswer(*server, "list")["result"];
  ASSERT_EQ(list["resources"].size(), 100U) << list;
  const std::string base = [&] {
    const std::string uri = list["resources"][0]["uri"];
    return uri.substr(0, uri.find("/files/") + 7);
  }();
  Send(request("more", "resources/list", {{"cursor", list["nextCursor"]}}) +
       request("text", "resources/read", {{"uri", base + "d/a%20b"}}) +
       request("bin", "resources/read", {{"uri", base + "bin"}}) +
       request("cursor", "resources/list", {{"cursor", "x"}}));
  const Json more = McpAnswer(*server, "more")["result"];
  EXPECT_EQ(more["resources"].size(), 22U) << more;
  EXPECT_FALSE(more.contains("nextCursor"));
  EXPECT_FALSE(Contains(list.dump() + more.dump(), "link")) << "only files are listed";
  EXPECT_EQ(McpAnswer(*server, "text")["result"]["contents"][0]["text"], "text\n");
  EXPECT_EQ(McpAnswer(*server, "bin")["result"]["contents"][0]["blob"], "/w==");
  EXPECT_EQ(McpAnswer(*server, "cursor")["error"]["code"], -32602);
  std::string other = base + "bin";  // of another session
  char& digit = other[base.find("/files/") - 1];
  digit = digit == '0' ? '1' : '0';
  int number = 0;
  for (const std::string& uri :
       {base + "link", base + "dir/bin", base + "fifo", base + "d", base + "../../store", base,
        base + "d/../../x", base + "%2e%2e/x", base + "/etc/passwd", base + "none", other,
        std::string("file:///etc/passwd"), std::string()}) {
    const std::string id = "bad" + std::to_string(++number);
    Send(request(id, "resources/read", {{"uri", uri}}));
    const Json answer = McpAnswer(*server, id);
    ASSERT_TRUE(answer.contains("error")) << uri << answer;
    EXPECT_EQ(answer["error"]["code"], -32602) << uri << answer;
  }
  input_.Reset();
  EXPECT_EQ(server->Wait().exit, 0) << server->err();
}

}  // namespace
}  // namespace coffer::test
