// SPDX-License-Identifier: Apache-2.0
//
// `coffer mcp install`: what it finds in a home directory, what it writes there, and what it leaves alone.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "tests/support/host.h"
#include "tests/support/person.h"

namespace coffer::test {
namespace {

class McpInstall : public ::testing::Test {
 protected:
  McpInstall() {
    home_ = dir_.MakeDir("home");
    options_.environment = {{"HOME=" + home_, "PATH=/usr/bin:/bin"}};
  }
  RunResult Install(Strings flags) {
    flags.insert(flags.begin(), {CofferPath(), "mcp", "install"});
    return RunProgram(flags, options_);
  }
  Json Read(const std::string& file) const {
    return Json::parse(ReadFile(home_ + "/" + file).value_or("null"), nullptr, false);
  }
  TempDir dir_;
  std::string home_;
  RunOptions options_;
};

TEST_F(McpInstall, WritesTheEntryAndKeepsTheRest) {
  EXPECT_EQ(Install({"--yes"}).exit, 1) << "no agent is there";
  dir_.MakeDir("home/.cursor");
  std::ofstream(home_ + "/.claude.json")
      << R"({"theme": "dark", "mcpServers": {"other": {"command": "x"}}})";
  ASSERT_EQ(::chmod((home_ + "/.claude.json").c_str(), 0640), 0);
  dir_.MakeDir("home/.codex");
  std::ofstream(home_ + "/.codex/config.toml") << "model = \"m\"";

  const RunResult shown = Install({"--print"});
  EXPECT_EQ(shown.exit, 0) << shown.Describe();
  EXPECT_TRUE(Contains(shown.out, "cursor: ")) << shown.out;
  EXPECT_FALSE(Exists(home_ + "/.cursor/mcp.json")) << "it only shows";
  EXPECT_EQ(Install({}).exit, 1) << "there is nobody to ask";
  EXPECT_FALSE(Exists(home_ + "/.cursor/mcp.json"));

  EXPECT_EQ(Install({"--yes"}).exit, 0);
  const Json entry = Read(".cursor/mcp.json")["mcpServers"]["coffer"];
  EXPECT_EQ(entry["args"], Json::array({"mcp"}));
  EXPECT_EQ(entry["command"], CofferPath());
  const Json claude = Read(".claude.json");
  EXPECT_EQ(claude["theme"], "dark");
  EXPECT_EQ(claude["mcpServers"]["other"]["command"], "x");
  EXPECT_EQ(claude["mcpServers"]["coffer"]["type"], "stdio");
  struct stat info{};
  ASSERT_EQ(::stat((home_ + "/.claude.json").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0640U);
  const std::string codex = ReadFile(home_ + "/.codex/config.toml").value_or("");
  EXPECT_TRUE(Contains(codex, "model = \"m\"\n\n[mcp_servers.coffer]\ncommand = ")) << codex;

  const RunResult again = Install({"--yes"});
  EXPECT_EQ(again.exit, 0);
  EXPECT_TRUE(Contains(again.out, "has it already")) << again.out;
  EXPECT_EQ(ReadFile(home_ + "/.codex/config.toml").value_or(""), codex);
}

TEST_F(McpInstall, WhatItCannotReadStaysAsItIs) {
  const std::string text = "{\n  // a comment\n  \"mcpServers\": {}\n}\n";
  std::ofstream(home_ + "/.claude.json") << text;
  const RunResult refused = Install({"--yes"});
  EXPECT_EQ(refused.exit, 120) << refused.Describe();
  EXPECT_TRUE(Contains(refused.err, "add this by hand")) << refused.err;
  EXPECT_EQ(ReadFile(home_ + "/.claude.json").value_or(""), text);
  std::ofstream(home_ + "/.claude.json") << R"({"mcpServers": {"coffer": {"command": "other"}}})";
  EXPECT_EQ(Install({"--yes"}).exit, 120) << "an entry of that name is somebody else's";
  EXPECT_EQ(Install({"--yes", "--name", "coffer-two"}).exit, 0);
  EXPECT_EQ(Read(".claude.json")["mcpServers"]["coffer"]["command"], "other");
  EXPECT_TRUE(Contains(Install({"--agent", "cursr"}).err, "did you mean cursor?"));
}

// An agent writes its file at any time, also while a person reads what would be written.
TEST_F(McpInstall, WhatAnAgentWritesMeanwhileIsKept) {
  dir_.MakeDir("home/.cursor");
  std::ofstream(home_ + "/.claude.json") << R"({"theme": "dark"})";
  const Strings words = {"/usr/bin/env", "HOME=" + home_, CofferPath(), "mcp", "install"};
  Person person(words);
  ASSERT_TRUE(person.Sees("Write this? [y/N] ")) << person.screen();
  std::ofstream(home_ + "/.claude.json") << R"({"theme": "light"})";
  person.Type("y\n");
  EXPECT_TRUE(person.Sees("has changed since it was read")) << person.screen();
  EXPECT_TRUE(person.Sees("cursor: ")) << "the next agent is asked about by itself";
  person.Type("y\n");
  EXPECT_EQ(person.Wait(), 120) << person.screen();
  EXPECT_EQ(Read(".claude.json"), Json::parse(R"({"theme": "light"})"));
  EXPECT_TRUE(Read(".cursor/mcp.json").contains("mcpServers")) << person.screen();

  Person again(words);
  ASSERT_TRUE(again.Sees("Write this? [y/N] ")) << again.screen();
  again.Type("y\n");
  EXPECT_EQ(again.Wait(), 0) << again.screen();
  EXPECT_EQ(Read(".claude.json")["theme"], "light") << "the control";
  EXPECT_TRUE(Read(".claude.json")["mcpServers"].contains("coffer"));
}

// As root it would follow links that another user made, and leave files that this user cannot read.
TEST_F(McpInstall, AnotherUsersHomeIsLeftAlone) {
  if (::geteuid() != 0) {
    options_.environment = {{"HOME=/", "PATH=/usr/bin:/bin"}};
    const RunResult refused = Install({"--yes", "--agent", "cursor"});
    EXPECT_EQ(refused.exit, 120) << refused.Describe();
    EXPECT_TRUE(Contains(refused.err, "is not yours")) << refused.err;
    return;
  }
  dir_.MakeDir("home/.cursor");
  ASSERT_EQ(::chown(home_.c_str(), 12345, 12345), 0);
  const std::string target = dir_ / "of_root.json";
  std::ofstream(target) << "{}";
  ASSERT_EQ(::symlink(target.c_str(), (home_ + "/.claude.json").c_str()), 0);
  const RunResult refused = Install({"--yes"});
  EXPECT_EQ(refused.exit, 120) << refused.Describe();
  EXPECT_TRUE(Contains(refused.err, "is not yours")) << refused.err;
  EXPECT_EQ(ReadFile(target).value_or(""), "{}");
  EXPECT_FALSE(Exists(home_ + "/.cursor/mcp.json"));
  ASSERT_EQ(::chown(home_.c_str(), 0, 0), 0);
  EXPECT_EQ(Install({"--yes"}).exit, 0) << "the control";
  EXPECT_NE(ReadFile(target).value_or(""), "{}");
}

}  // namespace
}  // namespace coffer::test
