// SPDX-License-Identifier: Apache-2.0
//
// The interpreter that a project means: of its environment, of the caller's PATH, of a version manager.
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/run.h"

namespace coffer::test {
namespace {

namespace fs = std::filesystem;

// A node that nvm installed, which is echo here, and a project whose environment leads to it. tool and script print their
// own names with it.
class ProjectInterpreters : public ::testing::Test {
 protected:
  ProjectInterpreters() {
    fs::create_directories(installed_);
    fs::copy_file("/bin/echo", installed_ + "/node");
    fs::create_directories(env_);
    fs::create_symlink(installed_ + "/node", env_ + "/node");
    dir_.Write("proj/.venv/bin/tool", "#!" + env_ + "/node\n", 0755);
    dir_.Write("proj/script", "#!/usr/bin/env node\n", 0755);
  }

  RunOptions With(const std::string& path) const {
    RunOptions options;
    options.environment =
        Strings{"PATH=" + path + "/usr/local/bin:/usr/bin:/bin", "HOME=" + (dir_ / "home")};
    options.cwd = project_;
    return options;
  }
  RunResult Run(const Strings& command, const std::string& path, Strings flags = {}) const {
    flags.insert(flags.begin(), {"--project", "."});
    return RunCoffer(flags, command, With(path));
  }
  RunResult RunFile(const std::string& file, const std::string& path) const {
    return RunProgram({CofferPath(), "run", "--project", ".", file}, With(path));
  }

  TempDir dir_;
  const std::string installed_ = dir_ / "home/.nvm/versions/9/bin";
  const std::string project_ = dir_ / "proj";
  const std::string env_ = project_ + "/.venv/bin";
};

TEST_F(ProjectInterpreters, OfItsEnvironment) {
  EXPECT_EQ(Run({".venv/bin/node", "own"}, "").out, "own\n");
  for (const std::string& tool : {std::string(".venv/bin/tool"), env_ + "/tool"}) {
    const RunResult result = Run({tool}, "");
    EXPECT_EQ(result.out, env_ + "/tool\n") << result.Describe();
  }
}

TEST_F(ProjectInterpreters, OfTheCallersPath) {
  const std::string activated = env_ + ":";
  EXPECT_EQ(Run({"tool"}, activated).out, env_ + "/tool\n");
  EXPECT_EQ(Run({"./script"}, activated).out, project_ + "/script\n");
  const RunResult shell = Run({"sh", "-c", "tool && ./script && node own"}, activated);
  EXPECT_EQ(shell.out, env_ + "/tool\n./script\nown\n") << shell.Describe();
  // A file is run by it too.
  dir_.Write("proj/own.js", "");
  const RunResult file = RunFile("own.js", activated);
  EXPECT_EQ(file.out, project_ + "/own.js\n") << file.Describe();
  // Without it: the system's node, if there is one, and no tool.
  EXPECT_FALSE(Contains(Run({"sh", "-c", "node own"}, "").out, "own"));
  EXPECT_EQ(Run({"sh", "-c", "tool"}, "").exit, 127);
  EXPECT_EQ(Run({"tool"}, "").exit, 127);
}

TEST_F(ProjectInterpreters, OfAVersionManagerOnThePath) {
  const std::string path = installed_ + ":";
  EXPECT_EQ(Run({"./script"}, path).out, project_ + "/script\n");
  const RunResult shell = Run({"sh", "-c", "./script && node own"}, path);
  EXPECT_EQ(shell.out, "./script\nown\n") << shell.Describe();
  // Named runtimes are all that a call has, and a PATH that was given stays.
  const Strings own = {"sh", "-c", "node own"};
  EXPECT_EQ(Run(own, path, {"--runtime", "base"}).exit, 127);
  EXPECT_EQ(Run(own, path, {"--env", "PATH=/nowhere"}).exit, 127);
}

TEST_F(ProjectInterpreters, WhatMayNotBeShownIsLeftOut) {
  // Elsewhere in the home directory it is not a toolchain. That is no reason to refuse a shell.
  const std::string elsewhere = dir_.MakeDir("home/elsewhere");
  fs::rename(installed_ + "/node", elsewhere + "/node");
  fs::remove(env_ + "/node");
  fs::create_symlink(elsewhere + "/node", env_ + "/node");
  const RunResult shell = Run({"sh", "-c", "node own; echo went on"}, elsewhere + ":");
  EXPECT_EQ(shell.out, "went on\n") << shell.Describe();
  const RunResult named = Run({".venv/bin/tool"}, "");
  EXPECT_EQ(named.exit, 120) << named.Describe();
  EXPECT_TRUE(Contains(named.err, "toolchains")) << named.Describe();
}

}  // namespace
}  // namespace coffer::test
