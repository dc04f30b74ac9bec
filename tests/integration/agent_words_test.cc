// SPDX-License-Identifier: Apache-2.0
//
// A declared tool whose mount is not what its manifest says: what an agent reads of the refusal, through `coffer mcp` and
// in the document of `coffer call --json`, names no path of the host. The person at the command line and the record have
// the whole sentence.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/integration/mcp_client.h"
#include "tests/support/tools_fixture.h"

namespace coffer::test {
namespace {

namespace fs = std::filesystem;

// What happens to a mount's directory after the manifest was loaded; a name with a space in it, too.
struct Refusal {
  const char* tool;
  const char* host;         // below the test's directory
  const char* error_class;  // of the answer
};

constexpr Refusal kRefusals[] = {
    {"missing", "srv/our invoices/gone", "policy.path"},
    {"replaced", "srv/our invoices/link", "policy.path.link"},
    {"above", "srv/linked/part", "policy.path.link"},
    {"kind", "srv/fifo", "policy.path.kind"},
    {"fifos", "srv/fifos", "policy.path.fifo"},
};

class AgentWords : public Mcp {
 protected:
  AgentWords() {
    fs::create_directories(srv_ / "our invoices/real");
    fs::create_directories(srv_ / "linked/part");
    dir_.MakeDir("tools");
    for (const Refusal& refusal : kRefusals) {
      fs::create_directories(dir_ / refusal.host);
      Declare(refusal.tool, dir_ / refusal.host);
    }
    Declare("good", srv_ / "our invoices/real");
  }
  void Spoil() {
    fs::remove(srv_ / "our invoices/gone");
    fs::remove(srv_ / "our invoices/link");
    fs::create_symlink("real", srv_ / "our invoices/link");
    fs::rename(srv_ / "linked", srv_ / "other");
    fs::create_symlink("other", srv_ / "linked");
    fs::remove(srv_ / "fifo");
    EXPECT_EQ(::mkfifo((srv_ / "fifo").c_str(), 0666), 0);
    MakeFifos();
  }
  // More than can be covered.
  void MakeFifos() {
    for (int i = 0; i < 70; ++i) {
      EXPECT_EQ(::mkfifo((srv_ / "fifos" / std::to_string(i)).c_str(), 0666), 0);
    }
  }
  void Declare(const std::string& tool, const std::string& host) {
    dir_.Write("tools/" + tool + ".toml",
               BashToolText(
                   tool, "echo ran",
                   "[[files.mount]]\nhost = \"" + host + "\"\nat = \"/data\"\nmode = \"read\"\n"));
  }
  RunResult CallTool(const std::string& tool, const Strings& flags) {
    Strings words = {"call", tool, "--tools", dir_ / "tools"};
    words.insert(words.end(), flags.begin(), flags.end());
    return Coffer(words);
  }
  // Neither the path nor a directory on the way to it.
  void ExpectNoHost(const std::string& text) {
    EXPECT_FALSE(Contains(text, dir_.path())) << "OPEN: " << text;
    EXPECT_FALSE(Contains(text, "our invoices")) << "OPEN: " << text;
    EXPECT_FALSE(Contains(text, "srv")) << "OPEN: " << text;
  }
  static void ExpectUseful(const Json& error, const Refusal& refusal) {
    EXPECT_TRUE(error.value("class", "").starts_with(refusal.error_class)) << error;
    EXPECT_GT(error.value("message", "").size(), 10U) << error;
    EXPECT_TRUE(Contains(error.value("message", ""), "data") ||
                Contains(error.value("message", ""),
                         fs::path(refusal.host).parent_path().filename().string()))
        << error;
  }
  const fs::path srv_ = dir_ / "srv";
};

TEST_F(AgentWords, TheCommandLineTellsItsOwnerAll) {
  EXPECT_EQ(CallTool("fifos", {}).out, "ran\n") << "NO-CONTROL";
  MakeFifos();
  const std::string host = srv_ / "fifos";
  const RunResult person = CallTool("fifos", {"--receipt", dir_ / "receipt"});
  EXPECT_EQ(person.exit, 120);
  EXPECT_TRUE(Contains(person.err, host)) << person.Describe();
  const std::string receipt = ReadFile(dir_ / "receipt").value_or("");
  EXPECT_TRUE(Contains(receipt, host)) << receipt;

  const RunResult document = CallTool("fifos", {"--json"});
  const Json answer = Json::parse(document.out, nullptr, false);
  ASSERT_TRUE(answer.is_object()) << document.Describe();
  ExpectNoHost(document.out);
  ExpectUseful(answer["error"], {"fifos", "srv/fifos", "policy.path.fifo"});
  EXPECT_TRUE(Contains(document.err, host)) << "its owner reads stderr: " << document.Describe();
  const std::string record = Coffer({"audit", "show", answer.value("call_id", ""), "--json"}).out;
  EXPECT_TRUE(Contains(record, host)) << record;
  EXPECT_EQ(Coffer({"audit", "verify"}).exit, 0);
}

TEST_F(AgentWords, AnMcpClientReadsNoPathOfTheHost) {
  const auto server = Start(Call("good", "good", Json::object()), {"--tools", dir_ / "tools"});
  EXPECT_EQ(McpAnswer(*server, "good")["result"]["structuredContent"]["stdout"], "ran\n")
      << "NO-CONTROL";
  Spoil();
  for (const Refusal& refusal : kRefusals) {
    SCOPED_TRACE(refusal.tool);
    Send(Call(refusal.tool, refusal.tool, Json::object()));
    const Json answer = McpAnswer(*server, refusal.tool);
    ASSERT_TRUE(answer.contains("result")) << answer;
    EXPECT_EQ(answer["result"]["isError"], true) << answer;
    ExpectUseful(answer["result"]["structuredContent"]["error"], refusal);
  }
  // The same request again gets the stored answer.
  Send(Call("replaced", "replaced", Json::object()));
  EXPECT_TRUE(WaitUntil([&] {
    (void)server->WaitForOutput(server->out() + "{", Seconds(1));
    return Lines(server->out()).size() == std::size(kRefusals) + 2;
  })) << server->out();
  ExpectNoHost(server->out());
  input_.Reset();
  EXPECT_EQ(server->Wait().exit, 0) << server->err();
  const Json list = Json::parse(Coffer({"audit", "list", "--json"}).out);
  for (const Refusal& refusal : kRefusals) {
    bool found = false;
    for (const Json& call : list["calls"]) {
      found = found || (call.value("tool", "") == refusal.tool &&
                        Contains(call.dump(), (srv_ / "").string()));
    }
    EXPECT_TRUE(found) << "the record has it: " << list;
  }
  EXPECT_EQ(Coffer({"audit", "verify"}).exit, 0);
}

TEST_F(AgentWords, ADryRunNamesTheHostToItsOwnerOnly) {
  const std::string host = srv_ / "our invoices/real";
  EXPECT_TRUE(Contains(CallTool("good", {"--dry-run"}).out, host));
  const RunResult document = CallTool("good", {"--dry-run", "--json"});
  ExpectNoHost(document.out);
  EXPECT_TRUE(Contains(document.out, "/data")) << document.Describe();
}

}  // namespace
}  // namespace coffer::test
