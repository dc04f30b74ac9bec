// SPDX-License-Identifier: Apache-2.0
#include "call/tool_shelf.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "policy/manifest/starter.h"
#include "tests/support/run.h"

namespace coffer::call {
namespace {

using test::TempDir;

TEST(ToolShelf, TheShippedToolsAreReady) {
  ToolShelf shelf({});
  ASSERT_TRUE(shelf.Reload().ok());
  for (const char* name :
       {"python", "bash", "shell", "node", "read-file", "write-file", "search-text"}) {
    EXPECT_NE(shelf.Find(name), nullptr) << name;
  }
  for (const ShelfEntry& entry : shelf.List()) {
    EXPECT_EQ(entry.state, ToolState::kReady) << entry.name;
    EXPECT_TRUE(entry.shipped && entry.mistakes.empty()) << entry.name;
  }
  EXPECT_EQ(shelf.Find("no-such-tool"), nullptr);
}

TEST(ToolShelf, ABadFileKeepsItsLastGoodVersion) {
  const TempDir dir;
  dir.Write("mine.toml", policy::StarterManifest("mine"));
  ToolShelf shelf({dir.path()});
  ASSERT_TRUE(shelf.Reload().ok());
  const auto good = shelf.Find("mine");
  ASSERT_NE(good, nullptr);
  EXPECT_FALSE(*shelf.ReloadIfChanged()) << "nothing changed";

  dir.Write("mine.toml", policy::StarterManifest("mine") + "\n[tool.nonsense]\n");
  dir.Write("never.toml", "[tool]\n");
  ASSERT_TRUE(*shelf.ReloadIfChanged());
  EXPECT_EQ(shelf.Find("mine"), good) << "the last good one";
  EXPECT_EQ(shelf.Find("never"), nullptr);
  for (const ShelfEntry& entry : shelf.List()) {
    if (entry.name == "mine") {
      EXPECT_EQ(entry.state, ToolState::kStale);
      EXPECT_FALSE(entry.mistakes.empty());
    } else if (entry.name == "never") {
      EXPECT_EQ(entry.state, ToolState::kBroken);
      EXPECT_FALSE(entry.mistakes.empty());
    }
  }
  ASSERT_EQ(::unlink((dir / "mine.toml").c_str()), 0);
  ASSERT_TRUE(*shelf.ReloadIfChanged());
  EXPECT_EQ(shelf.Find("mine"), nullptr) << "a tool without a manifest does not exist";
}

TEST(ToolShelf, AFileMayReplaceAShippedToolAndOnlyOneFileMayDeclareATool) {
  const TempDir dir;
  std::string python = policy::StarterManifest("python");
  dir.Write("a.toml", python);
  dir.Write("b.toml", python);
  ToolShelf shelf({dir.path()});
  ASSERT_TRUE(shelf.Reload().ok());
  size_t broken = 0;
  for (const ShelfEntry& entry : shelf.List()) {
    if (entry.name == "python") {
      EXPECT_FALSE(entry.shipped);
      EXPECT_TRUE(entry.file.ends_with("a.toml"));
    }
    broken += entry.state == ToolState::kBroken ? 1 : 0;
  }
  EXPECT_EQ(broken, 1U);
}

TEST(ToolShelf, AMountThatIsALinkOrMissingIsAMistake) {
  const TempDir dir;
  dir.MakeDir("real");
  ASSERT_EQ(::symlink((dir / "real").c_str(), (dir / "link").c_str()), 0);
  const auto mistakes = [&](const std::string& host) {
    return LoadToolHere(policy::StarterManifest("mine") + "\n[[files.mount]]\nhost = \"" + host +
                            "\"\nat = \"/data\"\nmode = \"read\"\n",
                        "mine.toml")
        .mistakes;
  };
  EXPECT_TRUE(mistakes(dir / "real").empty());
  EXPECT_FALSE(mistakes(dir / "link").empty());
  EXPECT_FALSE(mistakes(dir / "missing").empty());
}

TEST(ToolShelf, AnUnreadableDirectoryLeavesTheShelfAsItWas) {
  const TempDir dir;
  const std::string tools = dir.MakeDir("tools");
  ToolShelf shelf({tools});
  ASSERT_TRUE(shelf.Reload().ok());
  ASSERT_EQ(::rmdir(tools.c_str()), 0);
  EXPECT_FALSE(shelf.Reload().ok());
  EXPECT_NE(shelf.Find("python"), nullptr);
}

}  // namespace
}  // namespace coffer::call
