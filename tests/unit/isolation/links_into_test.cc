// SPDX-License-Identifier: Apache-2.0
#include "isolation/links_into.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/temp_dir.h"

namespace coffer::isolation {
namespace {

namespace fs = std::filesystem;

class LinksIntoTest : public ::testing::Test {
 protected:
  LinksIntoTest() {
    root_.path = dir_ / "whole/sub";
    fs::create_directories(root_.path + "/scripts");
    fs::create_directories(dir_ / "whole/tools/deep/deeper/deepest");
  }
  std::string Link(const std::string& name, const std::string& target) {
    const fs::path at = dir_ / name;
    fs::create_directories(at.parent_path());
    fs::create_symlink(target, at);
    return at;
  }

  test::TempDir dir_;
  HostPath root_;
};

TEST_F(LinksIntoTest, LinksInADirectoryCountAndOthersDoNot) {
  const std::string in = Link("whole/tools/in", "../sub/scripts");
  const std::string missing = Link("whole/tools/deep/missing", root_.path + "/new");
  const std::string deepest = Link("whole/tools/deep/deeper/in", root_.path + "/scripts");
  Link("whole/tools/deep/deeper/deepest/in", root_.path + "/scripts");
  Link("whole/tools/out", "/usr");
  Link("whole/tools/dangling", "nowhere");
  const std::string all = Link("whole/tools/all", "../sub");
  LinksInto links(root_);
  links.Add(dir_ / "whole/tools");
  EXPECT_EQ(links.links(), (std::set<std::string>{in, missing, deepest}));
  EXPECT_EQ(links.to_root(), std::set<std::string>{all});
  EXPECT_EQ(links.cut(), "");
  LinksInto followed(root_);
  followed.Follow(dir_ / "whole/tools");
  EXPECT_TRUE(followed.links().empty());
}

// They say which files of the project are read, so a link of the project decides it.
TEST_F(LinksIntoTest, ALinkThatLeadsThroughTheProjectCounts) {
  Link("whole/sub/hop", "../tools");
  const std::string through = Link("whole/.envrc", "sub/hop/file");
  LinksInto links(root_);
  links.AddAbove();
  EXPECT_TRUE(links.links().contains(through));
}

TEST_F(LinksIntoTest, ProtectedNamesAboveCountAndOthersDoNot) {
  const std::string settings = Link("whole/.vscode", "sub/scripts");
  const std::string far = Link(".husky/pre-commit", "../whole/sub/scripts/x");
  Link("whole/notes", "sub/scripts");
  LinksInto links(root_);
  links.AddAbove();
  EXPECT_EQ(links.links(), (std::set<std::string>{far, settings}));
}

TEST_F(LinksIntoTest, ADirectoryThatHoldsTooMuchIsNamed) {
  for (const char* const name : {"many/1", "many/2", "many/3", "many/4"}) {
    fs::create_directories(dir_ / name);
  }
  LinksInto enough(root_, 4);
  enough.Add(dir_ / "many");
  EXPECT_EQ(enough.cut(), "");
  LinksInto links(root_, 3);
  links.Add(dir_ / "many");
  EXPECT_EQ(links.cut(), dir_ / "many");
}

}  // namespace
}  // namespace coffer::isolation
