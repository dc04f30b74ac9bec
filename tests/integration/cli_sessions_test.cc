// SPDX-License-Identifier: Apache-2.0
//
// Sessions of the command line: files that stay between calls and runs, for as long as the session lives and no longer.
// The loop of an agent (run, fail, edit, run again) is one of them.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "tests/support/host.h"

namespace coffer::test {
namespace {

namespace fs = std::filesystem;

class CliSessions : public ::testing::Test {
 protected:
  CliSessions() {
    dir_.MakeDir("home");
    options_.environment = {
        {"HOME=" + (dir_ / "home"), "PATH=/usr/bin:/bin", "COFFER_STATE=" + (dir_ / "state")}};
  }
  RunResult Coffer(Strings words) {
    words.insert(words.begin(), CofferPath());
    return RunProgram(words, options_);
  }
  std::string New(const Strings& flags = {}) {
    Strings words = {"sessions", "new"};
    words.insert(words.end(), flags.begin(), flags.end());
    const RunResult made = Coffer(words);
    EXPECT_EQ(made.exit, 0) << made.Describe();
    const Strings lines = Lines(made.out);
    EXPECT_EQ(lines.size(), 1U) << "a script takes it with $(...): " << made.out;
    return lines.empty() ? "" : lines.front();
  }
  RunResult Run(const std::string& session, const std::string& script) {
    return Coffer({"run", "--session", session, "--", "sh", "-c", script});
  }
  RunResult Call(const std::string& tool, const Json& args, const Strings& flags = {}) {
    Strings words = {"call", tool, "--args", args.dump()};
    words.insert(words.end(), flags.begin(), flags.end());
    return Coffer(words);
  }
  std::string Workspace(const std::string& session) {
    return dir_ / "state/sessions/session-" + session;
  }

  TempDir dir_;
  RunOptions options_;
};

TEST_F(CliSessions, FilesStayBetweenCallsAndRunsAndAreGoneWithIt) {
  const std::string session = New();
  EXPECT_EQ(Run(session, "mkdir d; echo kept > d/f").exit, 0);
  EXPECT_EQ(Run(session, "cat d/f").out, "kept\n");
  const RunResult read = Call("read-file", {{"path", "d/f"}}, {"--session", session});
  EXPECT_EQ(read.out, "kept\n") << read.Describe();
  EXPECT_EQ(Call("write-file", {{"path", "g"}, {"content", "more"}}, {"--session", session}).err,
            "");
  const RunResult files = Coffer({"sessions", "files", session});
  EXPECT_TRUE(Contains(files.out, "d/f") && Contains(files.out, "g")) << files.out;
  const Json listed = Json::parse(Coffer({"sessions", "files", session, "--json"}).out);
  EXPECT_EQ(listed["files"].size(), 2U) << listed;
  const Json below = Json::parse(Coffer({"sessions", "files", session, "d/", "--json"}).out);
  ASSERT_EQ(below["files"].size(), 1U) << below;
  EXPECT_EQ(below["files"][0]["path"], "d/f");
  EXPECT_EQ(Lines(Coffer({"sessions", "files", session, "d/other"}).out).size(), 1U) << "a heading";
  // The control: another session, and none, have nothing of it.
  EXPECT_NE(Run(New(), "cat d/f").exit, 0);
  EXPECT_NE(Coffer({"run", "--", "cat", "d/f"}).exit, 0);

  EXPECT_TRUE(Contains(Coffer({"sessions", "list"}).out, session));
  const RunResult ended = Coffer({"sessions", "end", session});
  EXPECT_TRUE(Contains(ended.out, "its files are gone")) << ended.Describe();
  EXPECT_FALSE(Exists(Workspace(session)));
  EXPECT_FALSE(Contains(Coffer({"sessions", "list"}).out, session));
  const RunResult late = Run(session, "true");
  EXPECT_EQ(late.exit, 120) << late.Describe();
  EXPECT_TRUE(Contains(late.err, "has ended")) << late.err;
  const RunResult late_call = Call("read-file", {{"path", "d/f"}}, {"--session", session});
  EXPECT_EQ(late_call.exit, 120) << late_call.Describe();
  EXPECT_TRUE(Contains(late_call.err, "policy.session")) << late_call.err;
}

TEST_F(CliSessions, AFileThatIsGoneIsSaid) {
  const RunResult without = Call("write-file", {{"path", "a.txt"}, {"content", "x"}});
  EXPECT_EQ(without.exit, 0) << without.Describe();
  EXPECT_TRUE(Contains(without.err, "gone")) << without.err;
  EXPECT_TRUE(Contains(without.err, "coffer sessions new")) << without.err;
  // The control: a tool that is not there to write files says nothing.
  EXPECT_EQ(Call("bash", {{"command", "true"}}).err, "");
}

TEST_F(CliSessions, EndsByItself) {
  const std::string session = New({"--lifetime", "1s"});
  const std::string stays = New({"--lifetime", "1h"});
  EXPECT_TRUE(Exists(Workspace(session)));
  EXPECT_TRUE(WaitUntil([&] { return Run(session, "true").exit == 120; }));
  const RunResult list = Coffer({"sessions", "list"});
  EXPECT_FALSE(Contains(list.out, session)) << list.out;
  EXPECT_FALSE(Exists(Workspace(session))) << "its files are swept";
  EXPECT_TRUE(Contains(list.out, stays)) << "the control";
  EXPECT_TRUE(Exists(Workspace(stays)));
}

// A session that is ended while a call runs in it: the call's files stay until it has ended, and no other call starts.
TEST_F(CliSessions, FilesInUseAreNotRemoved) {
  const std::string session = New();
  Background running({CofferPath(), "run", "--session", session, "--", "sh", "-c",
                      "echo here > f; echo began; while [ ! -e go ]; do sleep 0.05; done; cat f"},
                     options_);
  ASSERT_TRUE(running.WaitForOutput("began"));
  const RunResult ended = Coffer({"sessions", "end", session});
  EXPECT_TRUE(Contains(ended.out, "a call still uses its files")) << ended.Describe();
  EXPECT_EQ(Run(session, "true").exit, 120);
  ASSERT_TRUE(Exists(Workspace(session) + "/f"));
  fs::copy_file(Workspace(session) + "/f", Workspace(session) + "/go");
  const RunResult over = running.Wait();
  EXPECT_EQ(over.out, "began\nhere\n") << over.Describe();
  EXPECT_EQ(Coffer({"sessions", "list"}).exit, 0);
  EXPECT_FALSE(Exists(Workspace(session))) << "the next sweep";
}

TEST_F(CliSessions, ManyCallsAtOnceShareOne) {
  const std::string session = New();
  std::vector<std::thread> calls;
  for (int i = 0; i < 4; ++i) {
    calls.emplace_back(
        [&, i] { EXPECT_EQ(Run(session, "echo x > f" + std::to_string(i)).exit, 0); });
  }
  for (std::thread& call : calls) {
    call.join();
  }
  EXPECT_EQ(Run(session, "ls | wc -l").out, "4\n");
}

TEST_F(CliSessions, ItsSizeIsBoundedOverAllCalls) {
  const std::string session = New({"--size", "4MiB"});
  for (int i = 0; i < 8; ++i) {
    (void)Run(session, "head -c 2000000 /dev/zero > f" + std::to_string(i));
  }
  uintmax_t bytes = 0;
  for (const fs::directory_entry& file : fs::directory_iterator(Workspace(session))) {
    bytes += file.file_size();
  }
  EXPECT_LT(bytes, 9U << 20)
      << "about its size: it is watched, and each call may pass it once by its own cap";
  // The control: a larger one holds them all.
  const std::string large = New({"--size", "32MiB"});
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(Run(large, "head -c 2000000 /dev/zero > f" + std::to_string(i)).exit, 0);
  }
}

// What a payload leaves in the workspace leads nowhere outside it.
TEST_F(CliSessions, LinksLeadNowhere) {
  dir_.Write("secret.txt", "of the host\n");
  const std::string session = New();
  EXPECT_EQ(Run(session, "ln -s " + (dir_ / "secret.txt") + " link; ln -s " + dir_.path() +
                             " there; echo x > plain")
                .exit,
            0);
  (void)Run(session,
            "chmod 0 .");  // as a user it is killed for that: what is closed cannot be measured
  const RunResult files = Coffer({"sessions", "files", session});
  EXPECT_EQ(files.exit, 0) << files.Describe();
  EXPECT_TRUE(Contains(files.out, "plain")) << files.out;
  EXPECT_FALSE(Contains(files.out, "secret")) << files.out;
  EXPECT_NE(Run(session, "cat link || cat there/secret.txt").out, "of the host\n");
  EXPECT_EQ(Coffer({"sessions", "end", session}).exit, 0);
  EXPECT_FALSE(Exists(Workspace(session)));
  EXPECT_TRUE(Exists(dir_ / "secret.txt")) << "nothing outside was removed";
}

TEST_F(CliSessions, TheStateDirectoryIsNotShown) {
  const std::string session = New();
  const RunResult seen = Run(session, "ls " + (dir_ / "state") + "; ls -a /workspace/..");
  EXPECT_FALSE(Contains(seen.out, "coffer.db")) << seen.out;
  const RunResult mounted =
      Coffer({"run", "--session", session, "--ro", (dir_ / "state") + ":/x", "--", "ls", "/x"});
  EXPECT_EQ(mounted.exit, 120) << "the control: as a mount it is refused: " << mounted.Describe();
}

TEST_F(CliSessions, CallsAreRecordedUnderIt) {
  const std::string session = New();
  EXPECT_EQ(Run(session, "true").exit, 0);
  EXPECT_EQ(Call("bash", {{"command", "true"}}, {"--session", session}).exit, 0);
  const Json listed = Json::parse(Coffer({"audit", "list", "--session", session, "--json"}).out);
  EXPECT_EQ(listed["calls"].size(), 2U) << listed;
  EXPECT_EQ(Coffer({"audit", "verify"}).exit, 0);
}

// An agent's loop: the tests fail, a file is changed, the tests pass. docs/AGENT_LOOP.md shows it.
TEST_F(CliSessions, TheLoopOfAnAgent) {
  const std::string session = New({"--label", "fix add()"});
  const auto write = [&](const char* path, const char* text) {
    const RunResult wrote =
        Call("write-file", {{"path", path}, {"content", text}}, {"--session", session});
    EXPECT_EQ(wrote.exit, 0) << wrote.Describe();
  };
  write("test_add.py", "from add import add\nassert add(2, 2) == 4\nprint('passed')\n");
  write("add.py", "def add(a, b):\n    return a - b\n");
  const RunResult failed = Run(session, "PYTHONDONTWRITEBYTECODE=1 python3 test_add.py");
  EXPECT_EQ(failed.exit, 1) << failed.Describe();
  EXPECT_TRUE(Contains(failed.err, "AssertionError")) << failed.err;
  write("add.py", "def add(a, b):\n    return a + b\n");
  const RunResult passed = Run(session, "PYTHONDONTWRITEBYTECODE=1 python3 test_add.py");
  EXPECT_EQ(passed.exit, 0) << passed.Describe();
  EXPECT_EQ(passed.out, "passed\n");
  EXPECT_EQ(Coffer({"sessions", "end", session}).exit, 0);
}

}  // namespace
}  // namespace coffer::test
