// SPDX-License-Identifier: Apache-2.0
//
// An MCP server at a URL in `coffer mcp wrap --url`: its tools are served as those of a wrapped command are, what talks to it
// reaches nothing else, its lies are errors, and the credential for it is seen by that server alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "tests/integration/mcp_wrap.h"

namespace coffer::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class McpRemoteTest : public McpWrapTest {
 protected:
  McpRemoteTest() : McpWrapTest("") {}
  void SetUp() override {
    const char* const source = ::getenv("COFFER_SOURCE");
    ASSERT_NE(source, nullptr) << "COFFER_SOURCE must be the checkout";
    Offer({"echo",    "whoami",   "events",        "in_two",       "redirect", "html",
           "no_json", "deep",     "nothing",       "status",       "denied",   "wrong_id",
           "endless", "huge",     "endless_event", "endless_head", "half",     "two_lengths",
           "packed",  "bare_end", "silent_stream"});
    RunOptions options;
    options.input = std::string(Background::kKeepOpen, 5);
    remote_.emplace(
        Strings{"python3", std::string(source) + "/tests/support/mcp_remote_server.py", server_},
        options);
    ASSERT_TRUE(remote_->WaitForOutput(" .\n", Seconds(60))) << remote_->err();
    ASSERT_EQ(sscanf(remote_->out().c_str(), "ports %d %d", &tls_, &plain_), 2);
  }
  std::string Url(const std::string& host = "api.test") const {
    return "https://" + host + ":" + std::to_string(tls_) + "/mcp";
  }
  Strings Here() const {
    return {"--resolve",
            "api.test=127.0.0.1",
            "--resolve",
            "other.test=127.0.0.1",
            "--resolve",
            "wrong.test=127.0.0.1",
            "--upstream-ca",
            server_ + "/ca.pem",
            "--dangerously-allow-address",
            "127.0.0.0/8"};
  }
  Strings Words(const std::string& url, const Strings& flags) const {
    Strings words = {CofferPath(), "mcp", "wrap", "--name", "other", "--url", url};
    words.insert(words.end(), flags.begin(), flags.end());
    return words;
  }
  std::unique_ptr<Background> Remote(const Strings& more = {}) {
    int ends[2] = {-1, -1};
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    const UniqueFd read_end(ends[0]);
    input_ = UniqueFd(ends[1]);
    RunOptions options = options_;
    options.in_child = [from = read_end.get()] { ::dup2(from, STDIN_FILENO); };
    Strings flags = Here();
    flags.insert(flags.end(), more.begin(), more.end());
    return std::make_unique<Background>(Words(Url(), flags), options);
  }
  RunResult Try(const std::string& url, const Strings& flags) {
    RunOptions options = options_;
    options.timeout = Seconds(60);
    return RunProgram(Words(url, flags), options);
  }
  static bool WaitForError(Background& client, const std::string& words) {
    return WaitUntil(
        [&] {
          (void)client.WaitForOutput("what never comes", Seconds(1));
          return client.err().find(words) != std::string::npos;
        },
        Seconds(30));
  }
  std::string Seen() const { return ReadFile(server_ + "/seen").value_or(""); }
  // What `coffer audit show` has of each call of that name.
  std::vector<Json> Shown(const std::string& tool) {
    std::vector<Json> shown;
    const Json listed = Json::parse(Coffer({"audit", "list", "--json"}).out, nullptr, false);
    for (const Json& call : listed.value("calls", Json::array())) {
      if (tool.empty() || call.value("tool", "") == tool) {
        const std::string id = call.value("call_id", "");
        shown.push_back(Json::parse(Coffer({"audit", "show", id, "--json"}).out, nullptr, false));
      }
    }
    return shown;
  }
  // That the boundary which talked to it has reached it, and nothing else.
  void ExpectOnlyThere() {
    size_t requests = 0;
    for (const Json& run : Shown("run")) {
      for (const Json& entry : run["receipt"]["network"]) {
        ++requests;
        EXPECT_EQ(entry.value("host", ""), "api.test") << entry;
        EXPECT_EQ(entry.value("path", ""), "/mcp") << entry;
        EXPECT_EQ(entry.value("decision", ""), "allow") << entry;
      }
    }
    EXPECT_GE(requests, 2U) << "what it did is in no receipt";
  }

  std::optional<Background> remote_;
  int tls_ = 0, plain_ = 0;
};

TEST_F(McpRemoteTest, ItsToolsAreServedCheckedAndRecorded) {
  const std::unique_ptr<Background> client = Remote();
  const Json tools = List(*client);
  ASSERT_EQ(tools.size(), 21U) << client->err();
  EXPECT_EQ(tools[0]["annotations"]["destructiveHint"], true);
  EXPECT_EQ(tools[0]["annotations"]["readOnlyHint"], false);
  EXPECT_EQ(tools[0]["annotations"]["openWorldHint"], true);
  EXPECT_THAT(tools[0]["description"].get<std::string>(), HasSubstr("api.test"));
  EXPECT_EQ(Text(Call(*client, "echo", "hello")), "hello");
  EXPECT_EQ(Text(Call(*client, "events", "in events")), "in events");
  EXPECT_EQ(Text(Call(*client, "in-two")), "resumed");
  // What the server asks of its client over events is refused there, as on stdio.
  EXPECT_TRUE(WaitForError(*client, "sampling/createMessage: refused")) << client->err();
  const Json wrong =
      Ask(*client, "tools/call", {{"name", "other-echo"}, {"arguments", {{"words", 5}}}});
  EXPECT_EQ(wrong["result"]["isError"], true) << wrong;
  Leave(*client);
  EXPECT_THAT(Seen(), HasSubstr("DELETE /mcp"));
  const auto recorded = Recorded();
  EXPECT_EQ(recorded.at("other-echo success"), 1);
  EXPECT_EQ(recorded.at("other-echo denied"), 1);
  EXPECT_EQ(recorded.at("other-in-two success"), 1);
  ExpectOnlyThere();
}

TEST_F(McpRemoteTest, EveryLieIsAnErrorAndTheNextCallWorks) {
  const std::unique_ptr<Background> client = Remote({"--timeout", "5s"});
  const std::pair<const char*, const char*> kLies[] = {
      {"redirect", "it redirects to https://other.test"},
      {"html", "content type text/html"},
      {"no-json", "not JSON"},
      {"deep", "not JSON"},
      {"nothing", "gives no answer"},
      {"status", "HTTP status 500"},
      {"denied", "--header-file"},
      {"wrong-id", "for another request"},
      {"endless", "longer than 4 MiB"},
      {"huge", "longer than 4 MiB"},
      {"endless-event", "longer than 4 MiB"},
      {"endless-head", "not reached"},
      {"half", "ended before the answer"},
      {"two-lengths", "not reached"},
      {"packed", "compressed"},
      {"bare-end", "not reached"},
      {"silent-stream", "did not answer within 5 s"},
  };
  for (const auto& [lie, words] : kLies) {
    const Json answer = Call(*client, lie);
    EXPECT_EQ(answer.value("result", Json::object()).value("isError", false), true)
        << lie << answer;
    EXPECT_THAT(Text(answer), HasSubstr(words)) << lie;
    EXPECT_EQ(Text(Call(*client, "echo", "after")), "after") << lie << client->err();
  }
  // All but the one that was ended by time are errors of one call: the conversation went on.
  const std::string seen = Seen();
  size_t begun = 0;
  for (size_t at = seen.find("POST /mcp initialize"); at != std::string::npos;
       at = seen.find("POST /mcp initialize", at + 1)) {
    ++begun;
  }
  EXPECT_EQ(begun, 2U) << seen;
  EXPECT_THAT(seen, Not(HasSubstr("stolen")));
  Leave(*client);
  ExpectOnlyThere();
}

TEST_F(McpRemoteTest, AServerThatCannotBeVerifiedIsNotTalkedTo) {
  Strings without_ca = Here();
  without_ca.erase(without_ca.begin() + 6, without_ca.begin() + 8);
  const RunResult unknown = Try(Url(), without_ca);
  EXPECT_EQ(unknown.exit, 125) << unknown.err;
  EXPECT_THAT(unknown.err, HasSubstr("certificate"));
  // The certificate is not for that name.
  const RunResult named = Try(Url("wrong.test"), Here());
  EXPECT_EQ(named.exit, 125) << named.err;
  EXPECT_THAT(named.err, HasSubstr("certificate"));
  // An address of this host, without the word that opens it.
  Strings closed = Here();
  closed.resize(closed.size() - 2);
  const RunResult guarded = Try(Url(), closed);
  EXPECT_EQ(guarded.exit, 125) << guarded.err;
  EXPECT_THAT(guarded.err, HasSubstr("--dangerously-allow-address"));
  EXPECT_EQ(Seen(), "");
  // Control: with all of them it is reached.
  const std::unique_ptr<Background> client = Remote();
  EXPECT_EQ(Text(Call(*client, "echo", "hello")), "hello");
  Leave(*client);
}

TEST_F(McpRemoteTest, TheCredentialIsSeenByThatServerAlone) {
  const std::string token = "credential-8f1c77e2d9";
  const std::string file = dir_ / "headers";
  std::ofstream(file) << "# for the remote\nAuthorization: Bearer " << token << "\n";
  ::chmod(file.c_str(), 0600);
  options_.environment->push_back("REMOTE_TOKEN=" + token);
  for (const Strings& flags :
       {Strings{"--header-file", file}, Strings{"--token-env", "REMOTE_TOKEN"}}) {
    const std::unique_ptr<Background> client = Remote(flags);
    EXPECT_EQ(Text(Call(*client, "whoami")), "you are [redacted]") << client->err();
    EXPECT_EQ(ReadFile(server_ + "/sent"), "Bearer " + token);
    // No process has it among its words; the bridge, inside, not in its environment either.
    int bridges = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      const std::string words = ReadFile(entry.path().string() + "/cmdline").value_or("");
      EXPECT_EQ(words.find(token), std::string::npos) << words;
      if (words.find(std::string("mcp-bridge") + '\0') != std::string::npos &&
          words.find("--receipt") == std::string::npos) {
        ++bridges;
        EXPECT_THAT(ReadFile(entry.path().string() + "/environ").value_or(""),
                    Not(HasSubstr(token)));
      }
    }
    EXPECT_GE(bridges, 1);
    Leave(*client);
    EXPECT_THAT(client->err(), Not(HasSubstr(token)));
  }
  const std::vector<Json> all = Shown("");
  EXPECT_EQ(all.size(), 4U) << "two runs and two calls";
  for (const Json& call : all) {
    EXPECT_THAT(call.dump(), Not(HasSubstr(token)));
  }
  for (const auto& entry : std::filesystem::recursive_directory_iterator(dir_ / "state")) {
    if (entry.is_regular_file()) {
      EXPECT_THAT(ReadFile(entry.path()).value_or(""), Not(HasSubstr(token))) << entry.path();
    }
  }
}

TEST_F(McpRemoteTest, ADefinitionThatChangesIsBlocked) {
  std::unique_ptr<Background> client = Remote();
  EXPECT_EQ(Text(Call(*client, "echo", "hello")), "hello");
  // While it is used, told over its own stream.
  Offer({"echo"}, "Does something else now.");
  std::ofstream(server_ + "/notify") << "";
  EXPECT_TRUE(WaitForError(*client, "other-echo is blocked")) << client->err();
  EXPECT_THAT(Call(*client, "echo").dump(), HasSubstr("is blocked"));
  Leave(*client);
  EXPECT_THAT(Coffer({"mcp", "review", "other"}).out, HasSubstr("Does something else now."));
}

TEST_F(McpRemoteTest, ALostSessionIsBegunAgain) {
  const std::unique_ptr<Background> client = Remote();
  EXPECT_EQ(Text(Call(*client, "echo", "one")), "one");
  std::ofstream(server_ + "/forget") << "";
  EXPECT_TRUE(WaitUntil([&] { return Text(Call(*client, "echo", "two")) == "two"; }, Seconds(30)))
      << client->err();
  Leave(*client);
}

TEST_F(McpRemoteTest, MistakesAreRefused) {
  const std::string file = dir_ / "headers";
  std::ofstream(file) << "Authorization: Bearer abcdefgh\n";
  ::chmod(file.c_str(), 0644);
  const std::string own = dir_ / "own";
  std::ofstream(own) << "Host: other.test\n";
  ::chmod(own.c_str(), 0600);
  const std::tuple<std::string, Strings, const char*> kMistakes[] = {
      {"ftp://api.test/", {}, "begins with https://"},
      {"https://user:secret@api.test/mcp", {}, "policy."},
      {"https://api.test/*", {}, "has a character"},
      {"https://api.test/mcp#x", {}, "is refused"},
      {"https://localhost/mcp", {}, "localhost"},
      {Url(), {"--allow", "other.test"}, "the URL says what is reached"},
      {Url(), {"--ro", "/etc"}, "cannot be used with --url"},
      {Url(), {"--", "node"}, "or --url"},
      {Url(), {"--header-file", file}, "others can read"},
      {Url(), {"--header-file", own}, "Cofferdam's"},
      {Url(), {"--token-env", "NO_SUCH_VARIABLE"}, "there is no NO_SUCH_VARIABLE"},
      {"http://api.test/mcp", {"--token-env", "HOME"}, "over TLS only"},
  };
  for (const auto& [url, flags, words] : kMistakes) {
    const RunResult tried = Try(url, flags);
    EXPECT_EQ(tried.exit, 120) << url << tried.err;
    EXPECT_THAT(tried.err, HasSubstr(words)) << url;
    EXPECT_THAT(tried.err, Not(HasSubstr("abcdefgh")));
  }
}

}  // namespace
}  // namespace coffer::test
