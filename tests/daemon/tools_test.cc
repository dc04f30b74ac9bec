// SPDX-License-Identifier: Apache-2.0
//
// The shelf of a running daemon: what is disabled says so, a directory that comes later counts, and a call that runs with
// more than its tool may do now is told to the operator.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "tests/daemon/daemon.h"
#include "tests/support/tools_fixture.h"

namespace coffer::test {
namespace {

std::string Slow(const std::string& memory, bool mount, const std::string& host) {
  return R"(
[tool]
name = "slow"
version = "1"
effect = "reversible"
[input]
schema = { type = "object", required = ["command"], properties = { command = { type = "string" } } }
[run]
runtime = "bash"
argv = ["bash", "-c", "{command}"]
[files]
workspace = "session-write"
[limits]
memory = ")" +
         memory + "\"\n" +
         (mount ? "[[files.mount]]\nhost = \"" + host + "\"\nat = \"/data\"\nmode = \"read\"\n"
                : "");
}

void Put(const std::string& path, const std::string& text) {
  // As an editor does: the whole new file at once.
  std::ofstream(path + ".new") << text;
  ASSERT_EQ(::chmod((path + ".new").c_str(), 0644), 0);
  ASSERT_EQ(::rename((path + ".new").c_str(), path.c_str()), 0);
}

TEST(Tools, ADisabledToolIsShownAsDisabled) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  const auto state = [&](const std::string& key) {
    return daemon.Ask("GET", "/v1/tools/bash", key).At("state");
  };
  const auto cli = [&] {
    return RunProgram({CofferPath(), "tools", "list", "--state", daemon.state()}).out;
  };
  const std::string other = daemon.NewKey("other", "agent", "x")["key"];
  EXPECT_EQ(state(daemon.key()), "ready");
  EXPECT_FALSE(Contains(cli(), "disabled"));
  // On the host: for everybody.
  ASSERT_EQ(RunProgram({CofferPath(), "tools", "disable", "bash", "--reason", "incident 12",
                        "--state", daemon.state()})
                .exit,
            0);
  EXPECT_EQ(state(daemon.key()), "disabled");
  EXPECT_EQ(state(other), "disabled");
  EXPECT_TRUE(Contains(daemon.Ask("GET", "/v1/tools", other).text, "\"disabled\""));
  EXPECT_TRUE(Contains(cli(), "disabled: incident 12")) << cli();
  const Json listed = Json::parse(
      RunProgram({CofferPath(), "tools", "list", "--state", daemon.state(), "--json"}).out);
  for (const Json& tool : listed["tools"]) {
    EXPECT_EQ(tool["state"], tool["name"] == "bash" ? "disabled" : "ready") << tool;
  }
  ASSERT_EQ(RunProgram({CofferPath(), "tools", "enable", "bash", "--state", daemon.state()}).exit,
            0);
  EXPECT_EQ(state(other), "ready");
  // By a tenant's operator: for that tenant.
  EXPECT_EQ(daemon.Ask("PUT", "/v1/switches/tool/bash", daemon.key(), R"({"reason":"r"})").status,
            200);
  EXPECT_EQ(state(daemon.key()), "disabled");
  EXPECT_EQ(state(other), "ready");
}

// Its tool is not there, and nothing else would say so to an operator who looks at what the daemon prints.
TEST(Tools, AManifestThatDoesNotLoadIsTold) {
  Daemon daemon;
  Put(daemon.tools() + "/good.toml", Slow("64MiB", false, ""));
  Put(daemon.tools() + "/broken.toml", "[tool]\nname = \"broken\"\nefect = \"reversible\"\n");
  ASSERT_TRUE(daemon.Start());
  const auto told = [&](const std::string& what) {
    return WaitUntil([&] { return Contains(daemon.Said(), what); }, Seconds(20));
  };
  EXPECT_TRUE(told("a manifest does not load: " + daemon.tools() + "/broken.toml:"))
      << daemon.Said();
  EXPECT_TRUE(told("coffer tools check FILE")) << daemon.Said();
  EXPECT_FALSE(Contains(daemon.Said(), "good.toml")) << daemon.Said();
  Put(daemon.tools() + "/later.toml", "[tool]\nname = 1\n");
  EXPECT_TRUE(told("/later.toml:")) << daemon.Said();
}

TEST(Tools, ADirectoryThatComesLaterIsNoticed) {
  Daemon daemon;
  ASSERT_TRUE(daemon.StartWithoutTools());
  EXPECT_EQ(daemon.Ask("GET", "/v1/tools/slow", daemon.key()).status, 404);
  const std::string tools = daemon.config() + "/tools";
  ASSERT_EQ(::mkdir(tools.c_str(), 0755), 0);
  Put(tools + "/slow.toml", Slow("64MiB", false, ""));
  EXPECT_TRUE(
      WaitUntil([&] { return daemon.Ask("GET", "/v1/tools/slow", daemon.key()).status == 200; }));
}

// What files may name for `coffer run` of the operator is for no call of the daemon to write.
TEST(Tools, ADeclaredToolchainOfTheOperatorIsNotWritable) {
  TempDir dir;
  const std::string chain = dir.MakeDir("chain", 0777);
  if (::geteuid() == 0) {  // a tool gets no directory of root's to write to
    ASSERT_EQ(::chown(chain.c_str(), 47011, 47011), 0);
  }
  dir.MakeDir("coffer");
  ::setenv("XDG_CONFIG_HOME", dir.path().c_str(), 1);
  Daemon daemon;
  std::ofstream(daemon.tools() + "/write.toml") << BashToolText(
      "write", "touch /data/made && echo made",
      "[[files.mount]]\nhost = \"" + chain + "\"\nat = \"/data\"\nmode = \"write\"\n");
  const Json call = {{"tool", "write"}, {"args", Json::object()}};
  ASSERT_TRUE(daemon.Start());
  const HttpAnswer before = daemon.Call(daemon.key(), call);
  EXPECT_EQ(before.Outcome(), "success") << "NO-CONTROL: " << before.text;
  EXPECT_EQ(::unlink((chain + "/made").c_str()), 0) << "NO-CONTROL";
  EXPECT_EQ(daemon.Stop(), 0);
  dir.Write("coffer/run.toml", "toolchains = [\"" + chain + "\"]\n");
  ASSERT_TRUE(daemon.Start());
  ::unsetenv("XDG_CONFIG_HOME");
  const HttpAnswer refused = daemon.Call(daemon.key(), call);
  EXPECT_EQ(refused.Outcome(), "denied") << "OPEN: " << refused.text;
  EXPECT_TRUE(Contains(refused.text, "policy.path.state")) << refused.text;
  EXPECT_FALSE(Exists(chain + "/made"));
}

TEST(Tools, ACallThatRunsUnderARemovedPermissionIsTold) {
  Daemon daemon;
  const std::string file = daemon.tools() + "/slow.toml";
  const std::string shown = daemon.tools();
  Put(file, Slow("128MiB", true, shown));
  ASSERT_TRUE(daemon.Start());
  const std::string session = daemon.NewSession(daemon.key());
  const HttpAnswer began = daemon.Call(
      daemon.key(),
      {{"tool", "slow"}, {"args", {{"command", WaitForGo()}}}, {"session_id", session}}, kAsync);
  ASSERT_EQ(began.status, 202) << began.text;
  const std::string call = began.At("call_id");
  ASSERT_TRUE(WaitUntil([&] { return Exists(daemon.Workspace(session) + "/began"); }));
  const auto state = [&] {
    return daemon.Ask("GET", "/v1/calls/" + call, daemon.key()).At("state");
  };
  const auto hash = [&] {
    return daemon.Ask("GET", "/v1/tools/slow", daemon.key()).At("manifest_hash");
  };
  const auto replace = [&](const std::string& text) {
    const std::string before = hash();
    Put(file, text);
    return WaitUntil([&] { return hash() != before; });
  };
  // More is nothing to tell.
  EXPECT_TRUE(replace(Slow("256MiB", true, shown)));
  EXPECT_FALSE(Contains(daemon.Said(), call));
  EXPECT_TRUE(replace(Slow("256MiB", false, "")));
  EXPECT_TRUE(WaitUntil([&] { return Contains(daemon.Said(), call); })) << daemon.Said();
  EXPECT_TRUE(Contains(daemon.Said(), "files.mount")) << daemon.Said();
  EXPECT_EQ(state(), "running");
  // It is in the record too.
  EXPECT_TRUE(WaitUntil([&] {
    return Contains(ReadFile(daemon.state() + "/log/records").value_or(""), "policy.narrowed");
  }));
  EXPECT_EQ(daemon.Ask("PUT", "/v1/sessions/" + session + "/files/go", daemon.key(), "x").status,
            201);
  EXPECT_TRUE(WaitUntil([&] { return state() == "finished"; }));
}

}  // namespace
}  // namespace coffer::test
