// SPDX-License-Identifier: Apache-2.0
//
// `coffer mcp --project`: the tools work in a directory of the user's, and leave nothing there that the host runs later.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "base/sys.h"
#include "tests/integration/mcp_client.h"

namespace coffer::test {
namespace {

class McpProject : public Mcp {
 protected:
  McpProject() {
    dir_.Write("outside.txt", "nobody asked for this\n");
    dir_.MakeDir("project");
    dir_.MakeDir("project/.git");
    dir_.MakeDir("project/.git/hooks");
    dir_.Write("project/.git/HEAD", "ref: refs/heads/main\n");
    dir_.Write("project/.git/config", "[core]\n\tbare = false\n");
    dir_.Write("project/main.c", "int main(void) { retrun 0; }\n");
    project_ = dir_ / "project";
  }
  // "" if there is no such file.
  std::string InProject(const std::string& name) const {
    Result<std::string> text = sys::ReadFile(project_ + "/" + name);
    return text.ok() ? std::move(text).value() : std::string();
  }
  static bool Exists(const std::string& path) {
    struct stat info{};
    return ::lstat(path.c_str(), &info) == 0;
  }
  static std::string Stdout(const Json& answer) {
    return answer["result"]["structuredContent"].value("stdout", "");
  }

  std::string project_;
};

// What files may name for `coffer run` is no project of `coffer mcp` either.
TEST_F(McpProject, ADeclaredToolchainIsNotWritten) {
  const auto write = [&](const std::string& name) {
    const auto server = Start(Bash("write", "echo made > " + name), {"--project", project_});
    const Json answer = McpAnswer(*server, "write");
    input_.Reset();
    EXPECT_EQ(server->Wait().exit, 0) << server->err();
    return answer["result"]["structuredContent"].value("outcome", answer.dump());
  };
  EXPECT_EQ(write("before"), "success") << "NO-CONTROL";
  EXPECT_EQ(InProject("before"), "made\n") << "NO-CONTROL";
  dir_.MakeDir("home/.config");
  dir_.MakeDir("home/.config/coffer");
  dir_.Write("home/.config/coffer/run.toml", "toolchains = [\"" + project_ + "\"]\n");
  EXPECT_EQ(write("after"), "denied");
  EXPECT_FALSE(Exists(project_ + "/after")) << "OPEN";
}

TEST_F(McpProject, ToolsReadWriteSearchAndEditTheUsersFiles) {
  const auto server =
      Start(Bash("where", "pwd; cat main.c") +
                Call("edit", "edit-file",
                     {{"path", "main.c"}, {"old_text", "retrun"}, {"new_text", "return"}}) +
                Call("write", "write-file", {{"path", "notes/a.txt"}, {"content", "TODO here\n"}}),
            {"--project", project_});
  EXPECT_EQ(McpAnswer(*server, "write")["result"]["isError"], false) << server->out();
  EXPECT_EQ(McpAnswer(*server, "edit")["result"]["isError"], false) << server->out();
  EXPECT_TRUE(Contains(Stdout(McpAnswer(*server, "where")), project_ + "\n"));
  EXPECT_EQ(InProject("notes/a.txt"), "TODO here\n");
  EXPECT_EQ(InProject("main.c"), "int main(void) { return 0; }\n");
  Send(Call("read", "read-file", {{"path", "main.c"}}) +
       Call("search", "search-text", {{"pattern", "TODO"}}) +
       Call("again", "edit-file",
            {{"path", "main.c"}, {"old_text", "retrun"}, {"new_text", "return"}}));
  EXPECT_EQ(Stdout(McpAnswer(*server, "read")), InProject("main.c"));
  EXPECT_TRUE(Contains(Stdout(McpAnswer(*server, "search")), "notes/a.txt:1:TODO here"));
  const Json again = McpAnswer(*server, "again");
  EXPECT_EQ(again["result"]["isError"], true);
  EXPECT_TRUE(Contains(again["result"]["content"][0]["text"], "nothing was changed")) << again;
  input_.Reset();
  EXPECT_EQ(server->Wait().exit, 0) << server->err();
  EXPECT_EQ(InProject("notes/a.txt"), "TODO here\n") << "the project stays";
}

TEST_F(McpProject, AnEditFindsItsTextOnceAndTakesItLiterally) {
  dir_.Write("project/b.txt", "a.c\nabc\na.c\n$x {1,2} \\n\n");
  const auto server = Start(
      Call("twice", "edit-file", {{"path", "b.txt"}, {"old_text", "a.c"}, {"new_text", "-"}}) +
          Call("literal", "edit-file",
               {{"path", "b.txt"}, {"old_text", "$x {1,2} \\n"}, {"new_text", "$1 \\0 @ARGV"}}),
      {"--project", project_});
  const Json twice = McpAnswer(*server, "twice");
  EXPECT_TRUE(Contains(twice["result"]["content"][0]["text"], "2 times; nothing was changed"))
      << twice;
  EXPECT_EQ(McpAnswer(*server, "literal")["result"]["isError"], false) << server->out();
  EXPECT_EQ(InProject("b.txt"), "a.c\nabc\na.c\n$1 \\0 @ARGV\n");
  Send(Call("all", "edit-file",
            {{"path", "b.txt"}, {"old_text", "a.c"}, {"new_text", ""}, {"replace_all", "yes"}}));
  EXPECT_EQ(McpAnswer(*server, "all")["result"]["isError"], false) << server->out();
  EXPECT_EQ(InProject("b.txt"), "\nabc\n\n$1 \\0 @ARGV\n");
  input_.Reset();
  EXPECT_EQ(server->Wait().exit, 0);
}

// What the host would run later is not changed, and what was planted is set aside and said.
TEST_F(McpProject, NothingIsLeftThatTheHostRunsLater) {
  const std::string attack =
      "echo evil > .git/hooks/pre-commit; echo evil >> .git/config; "
      "mkdir -p deep/.vscode; echo evil > deep/.vscode/tasks.json; true";
  const auto server = Start(Bash("attack", attack), {"--project", project_});
  const Json answer = McpAnswer(*server, "attack");
  input_.Reset();
  EXPECT_EQ(server->Wait().exit, 0) << server->err();
  EXPECT_FALSE(Exists(project_ + "/.git/hooks/pre-commit"));
  EXPECT_FALSE(Contains(InProject(".git/config"), "evil"));
  EXPECT_FALSE(Exists(project_ + "/deep/.vscode"));
  EXPECT_TRUE(Contains(answer.dump(), "set aside")) << answer;
  // The control: without the barrier the same command leaves all three.
  const RunResult bare =
      Coffer({"run", "--rw", project_, "--cwd", project_, "--", "sh", "-c", attack});
  EXPECT_EQ(bare.exit, 0) << bare.Describe();
  EXPECT_TRUE(Exists(project_ + "/.git/hooks/pre-commit"));
  EXPECT_TRUE(Contains(InProject(".git/config"), "evil"));
  EXPECT_TRUE(Exists(project_ + "/deep/.vscode/tasks.json"));
}

TEST_F(McpProject, NoToolReachesWhatIsOutside) {
  ASSERT_EQ(::symlink("../outside.txt", (project_ + "/link").c_str()), 0);
  EXPECT_EQ(InProject("link"), "nobody asked for this\n") << "the control: the host follows it";
  const auto server = Start(Call("up", "read-file", {{"path", "../outside.txt"}}) +
                                Call("link", "read-file", {{"path", "link"}}) +
                                Bash("shell", "cat ../outside.txt " + (dir_ / "outside.txt")),
                            {"--project", project_});
  for (const char* const id : {"up", "link", "shell"}) {
    const Json answer = McpAnswer(*server, id);
    EXPECT_EQ(answer["result"]["isError"], true) << answer;
    EXPECT_FALSE(Contains(answer.dump(), "nobody asked")) << answer;
  }
  input_.Reset();
  EXPECT_EQ(server->Wait().exit, 0);
}

TEST_F(McpProject, TheProjectsOwnFileNarrows) {
  dir_.MakeDir("project/infra");
  const auto server = Start(Bash("before", "echo x > infra/a"), {"--project", project_});
  EXPECT_EQ(McpAnswer(*server, "before")["result"]["isError"], false) << "the control";
  dir_.Write("project/.coffer.toml", "read_only = [\"infra\"]\n");
  Send(Bash("after", "echo x > infra/b"));
  EXPECT_EQ(McpAnswer(*server, "after")["result"]["isError"], true);
  EXPECT_FALSE(Exists(project_ + "/infra/b"));
  input_.Reset();
  EXPECT_EQ(server->Wait().exit, 0);
}

TEST_F(McpProject, WhatCannotBeAProjectIsRefused) {
  EXPECT_EQ(Coffer({"mcp", "--project", "/"}).exit, 120);
  EXPECT_EQ(Coffer({"mcp", "--project", "/etc"}).exit, 120);
  EXPECT_EQ(Coffer({"mcp", "--project", project_ + "/main.c"}).exit, 120);
  EXPECT_EQ(Coffer({"mcp", "--project", project_ + "/none"}).exit, 120);
  // One that holds our own state directory: every call is refused, and nothing runs.
  const auto server = Start(Bash("1", "touch " + (dir_ / "ran")), {"--project", dir_ / "."});
  const Json answer = McpAnswer(*server, "1");
  EXPECT_EQ(answer["result"]["isError"], true) << answer;
  EXPECT_FALSE(Exists(dir_ / "ran"));
  input_.Reset();
  EXPECT_EQ(server->Wait().exit, 0);
}

}  // namespace
}  // namespace coffer::test
