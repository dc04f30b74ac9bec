// SPDX-License-Identifier: Apache-2.0
//
// A daemon's tool whose mount is not what its manifest says: the agent reads why, in words without paths of the host, at
// once, later, in a repetition, over MCP and in the description of the tool. The operator's record has the path.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/daemon/daemon.h"
#include "tests/support/tools_fixture.h"

namespace coffer::test {
namespace {

namespace fs = std::filesystem;

class AgentWordsOfDaemon : public ::testing::Test {
 protected:
  AgentWordsOfDaemon() {
    fs::create_directories(srv_ / "our invoices/real");
    fs::create_directories(srv_ / "our invoices/gone");
    fs::create_directories(srv_ / "our invoices/link");
    Declare("missing", srv_ / "our invoices/gone");
    Declare("replaced", srv_ / "our invoices/link");
    Declare("good", srv_ / "our invoices/real");
  }
  void Declare(const std::string& tool, const std::string& host) {
    std::ofstream(daemon_.tools() + "/" + tool + ".toml") << BashToolText(
        tool, "echo ran",
        "[[files.mount]]\nhost = \"" + host + "\"\nat = \"/data\"\nmode = \"read\"\n");
  }
  void ExpectNoHost(const std::string& text) {
    EXPECT_FALSE(Contains(text, dir_.path())) << "OPEN: " << text;
    EXPECT_FALSE(Contains(text, "our invoices")) << "OPEN: " << text;
  }

  TempDir dir_;
  const fs::path srv_ = dir_ / "srv";
  Daemon daemon_;
};

TEST_F(AgentWordsOfDaemon, TheAgentReadsNoPathAndTheRecordHasIt) {
  ASSERT_EQ(::chmod(dir_.path().c_str(), 0755), 0);
  ASSERT_TRUE(daemon_.Start());
  const std::string agent = daemon_.NewKey("local", "agent", "reader")["key"];
  EXPECT_EQ(daemon_.Call(agent, {{"tool", "good"}, {"args", Json::object()}}).Outcome(), "success")
      << "NO-CONTROL";
  fs::remove(srv_ / "our invoices/gone");
  fs::remove(srv_ / "our invoices/link");
  fs::create_symlink("real", srv_ / "our invoices/link");
  for (const char* const tool : {"missing", "replaced"}) {
    SCOPED_TRACE(tool);
    const std::string key = "Idempotency-Key: \"" + std::string(tool) + "\"\r\n";
    const Json call = {{"tool", tool}, {"args", Json::object()}};
    const HttpAnswer answer = daemon_.Call(agent, call, key);
    EXPECT_EQ(answer.Outcome(), "denied") << answer.text;
    ExpectNoHost(answer.text);
    const Json error = answer.body["error"];
    EXPECT_TRUE(error.value("class", "").starts_with("policy.path")) << answer.text;
    EXPECT_TRUE(Contains(error.value("message", ""), "data")) << answer.text;

    const std::string id = answer.At("call_id");
    const HttpAnswer again = daemon_.Call(agent, call, key);
    EXPECT_EQ(again.At("call_id"), id) << "NO-CONTROL: " << again.text;
    ExpectNoHost(again.text);
    const HttpAnswer later = daemon_.Ask("GET", "/v1/calls/" + id, agent);
    EXPECT_TRUE(Contains(later.text, "policy.path")) << "NO-CONTROL: " << later.text;
    ExpectNoHost(later.text);
    const Json message = {{"jsonrpc", "2.0"},
                          {"id", 1},
                          {"method", "tools/call"},
                          {"params",
                           {{"name", tool},
                            {"arguments", Json::object()},
                            {"_meta",
                             {{"io.modelcontextprotocol/protocolVersion", "2026-07-28"},
                              {"io.modelcontextprotocol/clientCapabilities", Json::object()}}}}}};
    const HttpAnswer mcp = daemon_.Ask("POST", "/mcp", agent, message.dump(),
                                       "Accept: application/json, text/event-stream\r\n"
                                       "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: "
                                       "tools/call\r\nMcp-Name: " +
                                           std::string(tool) + "\r\n");
    EXPECT_TRUE(Contains(mcp.text, "policy.")) << "NO-CONTROL: " << mcp.text;
    ExpectNoHost(mcp.text);

    const std::string record =
        RunProgram({CofferPath(), "audit", "show", id, "--json", "--state", daemon_.state()}).out;
    EXPECT_TRUE(Contains(record, (srv_ / "our invoices").string())) << record;
  }
  EXPECT_EQ(RunProgram({CofferPath(), "audit", "verify", "--state", daemon_.state()}).exit, 0);
}

TEST_F(AgentWordsOfDaemon, TheDescriptionOfAToolHasPlacesInside) {
  ASSERT_TRUE(daemon_.Start());
  const std::string agent = daemon_.NewKey("local", "agent", "reader")["key"];
  const std::string overseer = daemon_.NewKey("local", "operator", "overseer")["key"];
  const HttpAnswer shown = daemon_.Ask("GET", "/v1/tools/good", agent);
  EXPECT_TRUE(Contains(shown.text, "/data")) << shown.text;
  ExpectNoHost(shown.text);
  EXPECT_TRUE(Contains(daemon_.Ask("GET", "/v1/tools/good", overseer).text, "our invoices"));
  // A manifest that no longer loads.
  fs::remove(srv_ / "our invoices/gone");
  Declare("missing", srv_ / "our invoices/gone");
  const auto list = [&](const std::string& key) {
    return daemon_.Ask("GET", "/v1/tools", key).text;
  };
  EXPECT_TRUE(WaitUntil([&] { return Contains(list(overseer), "our invoices/gone"); }))
      << "NO-CONTROL: " << list(overseer);
  EXPECT_TRUE(Contains(list(agent), "missing.toml")) << list(agent);
  ExpectNoHost(list(agent));
  const HttpAnswer rehearsed =
      daemon_.Call(agent, {{"tool", "good"}, {"args", Json::object()}, {"dry_run", true}});
  EXPECT_TRUE(Contains(rehearsed.text, "/data")) << rehearsed.text;
  ExpectNoHost(rehearsed.text);
}

}  // namespace
}  // namespace coffer::test
