// SPDX-License-Identifier: Apache-2.0
#include "call/tool_shelf.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
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
       {"python", "bash", "shell", "node", "read-file", "write-file", "edit-file", "search-text"}) {
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
  const std::string before = *shelf.Signature();
  EXPECT_EQ(*shelf.Signature(), before) << "nothing changed";

  dir.Write("mine.toml", policy::StarterManifest("mine") + "\n[tool.nonsense]\n");
  dir.Write("never.toml", "[tool]\n");
  EXPECT_NE(*shelf.Signature(), before);
  ASSERT_TRUE(shelf.Reload().ok());
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
  ASSERT_TRUE(shelf.Reload().ok());
  EXPECT_EQ(shelf.Find("mine"), nullptr) << "a tool without a manifest does not exist";
}

// The compiler may have read a file that is gone at the next look.
TEST(ToolShelf, AFileThatCameAndWentIsNoticed) {
  const TempDir dir;
  const ToolShelf shelf({dir.path()});
  const std::string before = *shelf.Signature();
  // The times of a directory advance in steps of some milliseconds.
  EXPECT_TRUE(test::WaitUntil([&] {
    dir.Write("late.toml", policy::StarterManifest("late"));
    EXPECT_EQ(::unlink((dir / "late.toml").c_str()), 0);
    return *shelf.Signature() != before;
  }));
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

// Writing needs a word where root owns the directory, and below the system's own.
TEST(ToolShelf, AWritableMountOfRootsOrTheSystemsIsAMistakeWithoutItsWord) {
  const TempDir dir;
  std::string starter = policy::StarterManifest("mine");
  const std::string effect = "\"read-only\"";
  starter.replace(starter.find(effect), effect.size(), "\"reversible\"");
  const auto mistakes = [&](const std::string& host, const std::string& key) {
    return LoadToolHere(starter + "\n[[files.mount]]\n" + key + " = \"" + host + "\"\n" +
                            (key == "host" ? "" : "reason = \"a test that says why\"\n") +
                            "at = \"/data\"\nmode = \"write\"\n",
                        "mine.toml")
        .mistakes;
  };
  for (const char* host : {"/usr/lib", "/usr/bin", "/etc/alternatives", "/usr/local/lib"}) {
    EXPECT_FALSE(mistakes(host, "host").empty()) << host;
    EXPECT_TRUE(mistakes(host, "dangerously_host").empty()) << host;
  }
  const std::string roots = dir.MakeDir("roots");
  EXPECT_EQ(mistakes(roots, "host").empty(), !test::IsRoot()) << "the directory of who runs this";
  EXPECT_TRUE(mistakes(roots, "dangerously_host").empty());
  if (test::IsRoot()) {
    ASSERT_EQ(::chown(roots.c_str(), 12345, 12345), 0);
    EXPECT_TRUE(mistakes(roots, "host").empty()) << "the control: another user's";
  }
}

TEST(ToolShelf, ManifestsOfAnotherUserAreNotTheOperators) {
  const TempDir dir;
  dir.Write("mine.toml", policy::StarterManifest("mine"));
  const std::string theirs = dir.Write("theirs.toml", policy::StarterManifest("theirs"));
  ASSERT_EQ(::chmod(theirs.c_str(), 0666), 0);
  ToolShelf shelf({dir.path()}, "", ::geteuid());
  ASSERT_TRUE(shelf.Reload().ok());
  EXPECT_NE(shelf.Find("mine"), nullptr);
  EXPECT_EQ(shelf.Find("theirs"), nullptr) << "every user could have written it";
  ToolShelf lenient({dir.path()});
  ASSERT_TRUE(lenient.Reload().ok());
  EXPECT_NE(lenient.Find("theirs"), nullptr) << "the control: its content is fine";
  ASSERT_EQ(::chmod(dir.path().c_str(), 0777), 0);
  EXPECT_FALSE(ToolShelf({dir.path()}, "", ::geteuid()).Reload().ok());
  ASSERT_EQ(::chmod(dir.path().c_str(), 0755), 0);
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
