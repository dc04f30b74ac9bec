// SPDX-License-Identifier: Apache-2.0
//
// What people type on an ordinary day and no other test does: `coffer shell`, a profile, a script from stdin, the list of
// caches, an administrator's programs, System V's shared memory.
#include <gtest/gtest.h>
#include <sys/ipc.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <unistd.h>

#include <filesystem>

#include "tests/support/person.h"
#include "tests/support/run.h"

namespace coffer::test {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kSecond = 1000000000;  // in a receipt

class Everyday : public ::testing::Test {
 protected:
  Everyday() {
    fs::create_directories(home_);
    fs::create_directories(project_);
  }
  RunOptions InProject(const std::string& input = "") const {
    RunOptions options;
    options.environment = Strings{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + home_,
                                  "XDG_CACHE_HOME=" + (dir_ / "cache")};
    options.cwd = project_;
    options.input = input;
    return options;
  }
  Json Receipt() const {
    return Json::parse(ReadFile(dir_ / "receipt.json").value_or("{}"), nullptr, false);
  }
  Strings Coffer(const Strings& words) const {
    Strings argv = {CofferPath()};
    argv.insert(argv.end(), words.begin(), words.end());
    return argv;
  }

  TempDir dir_;
  const std::string home_ = dir_ / "home";
  const std::string project_ = dir_ / "proj";
};

TEST_F(Everyday, AShellHasTheProjectAndItsOwnStatus) {
  const RunResult result =
      RunProgram(Coffer({"shell", "--receipt", dir_ / "receipt.json"}),
                 InProject("pwd; echo made > file; ls -d " + home_ + "; exit 7\n"));
  EXPECT_EQ(result.exit, 7) << result.Describe();
  EXPECT_EQ(result.out, project_ + "\n") << result.Describe();
  EXPECT_EQ(ReadFile(project_ + "/file"), "made\n");
  const Json limits = Receipt()["limits"];
  EXPECT_EQ(limits["wall"]["cap"], 12 * 3600 * kSecond) << limits;
  EXPECT_EQ(limits["cpu"]["cap"], 4 * 3600 * kSecond) << limits;
  // A command of its own, and no project.
  const RunResult empty =
      RunProgram(Coffer({"shell", "--no-project", "--", "sh", "-c", "ls " + project_ + "; exit 3"}),
                 InProject());
  EXPECT_EQ(empty.exit, 3) << empty.Describe();
  EXPECT_EQ(empty.out, "") << empty.Describe();
}

TEST_F(Everyday, AShellEndsWithItsWall) {
  const RunResult control =
      RunProgram(Coffer({"shell", "--wall", "60s"}), InProject("sleep 0; echo ended\n"));
  EXPECT_EQ(control.out, "ended\n") << "NO-CONTROL: " << control.Describe();
  const RunResult result =
      RunProgram(Coffer({"shell", "--wall", "1s", "--receipt", dir_ / "receipt.json"}),
                 InProject("sleep 60\n"));
  EXPECT_EQ(result.exit, 122) << result.Describe();
  EXPECT_EQ(Receipt()["error"]["class"], "limit.wall") << Receipt();
}

TEST_F(Everyday, AShellAtATerminal) {
  Person person({"/bin/sh", "-c",
                 "cd " + project_ + " && HOME=" + home_ + " exec " + CofferPath() +
                     " shell -- sh -c 'test -t 0 && echo a-terminal; read line; exit 5'"});
  ASSERT_TRUE(person.Sees("a-terminal")) << person.screen();
  person.Type("on\n");
  EXPECT_EQ(person.Wait(), 5) << person.screen();
  EXPECT_TRUE(person.SettingsRestored());
}

TEST_F(Everyday, AProfileSaysWhatTheFlagsDoNot) {
  dir_.Write("home/.config/coffer/run.toml",
             "[profile.tests]\nproject = \".\"\nmemory = \"3GiB\"\ncpu = \"7s\"\n"
             "env = { GREETING = \"hello\" }\n");
  const Strings ask = {"sh", "-c", "echo $GREETING; echo made > file"};
  const RunResult result = RunCoffer({"--profile", "tests", "--cpu", "5s"}, ask, InProject());
  EXPECT_EQ(result.exit, 0) << result.Describe();
  EXPECT_EQ(result.out, "hello\n") << result.Describe();
  EXPECT_TRUE(Exists(project_ + "/file")) << result.Describe();
  EXPECT_EQ(result.receipt["limits"]["memory"]["cap"], 3ULL << 30) << result.Describe();
  EXPECT_EQ(result.receipt["limits"]["cpu"]["cap"], 5 * kSecond) << "the command line counts first";
  const RunResult without = RunCoffer({}, ask, InProject());
  EXPECT_EQ(without.out, "\n") << "NO-CONTROL: " << without.Describe();
  const RunResult unknown = RunCoffer({"--profile", "test"}, ask, InProject());
  EXPECT_EQ(unknown.exit, 120) << unknown.Describe();
  EXPECT_TRUE(Contains(unknown.err, "tests")) << unknown.Describe();
}

TEST_F(Everyday, AScriptFromStdinRuns) {
  const auto run = [&](Strings words, const std::string& script) {
    words.insert(words.begin(), "run");
    return RunProgram(Coffer(words), InProject(script));
  };
  const RunResult shell = run({"-", "a", "b c"}, "#!/bin/sh\necho \"$1-$2\"; cat; exit 4\n");
  EXPECT_EQ(shell.exit, 4) << shell.Describe();
  EXPECT_EQ(shell.out, "a-b c\n") << shell.Describe();
  if (Exists("/usr/bin/python3")) {
    const RunResult python = run({"--runtime", "python3", "-"}, "print(6 * 7)\n");
    EXPECT_EQ(python.exit, 0) << python.Describe();
    EXPECT_EQ(python.out, "42\n") << python.Describe();
  }
}

TEST_F(Everyday, CachesAreListed) {
  const auto list = [&](const Strings& more) {
    Strings words = {"cache", "list"};
    words.insert(words.end(), more.begin(), more.end());
    return RunProgram(Coffer(words), InProject());
  };
  const RunResult before = list({});
  EXPECT_EQ(before.exit, 0) << before.Describe();
  EXPECT_FALSE(Contains(before.out, project_)) << before.Describe();
  const RunResult made =
      RunCoffer({"--project", ".", "--cache", "pip"},
                {"sh", "-c", "head -c 2000000 /dev/zero > $PIP_CACHE_DIR/wheel"}, InProject());
  EXPECT_EQ(made.exit, 0) << made.Describe();
  const RunResult text = list({});
  EXPECT_TRUE(Contains(text.out, "pip") && Contains(text.out, project_)) << text.Describe();
  const Json json = Json::parse(list({"--json"}).out, nullptr, false);
  bool found = false;
  for (const Json& entry : json["caches"]) {
    found = found || (entry["project"] == project_ && entry["cache"] == "pip" &&
                      entry["bytes"].get<uint64_t>() >= 2000000);
  }
  EXPECT_TRUE(found) << json;
  const RunResult cleared = RunProgram(Coffer({"cache", "clear"}), InProject());
  EXPECT_EQ(cleared.out, "1 removed\n") << cleared.Describe();
  EXPECT_FALSE(Contains(list({}).out, project_));
}

TEST_F(Everyday, TheDirectoriesOfAdministratorsAreOnPath) {
  const RunResult path = RunCoffer({}, {"sh", "-c", "echo $PATH"}, InProject());
  for (const char* const directory : {"/usr/local/sbin", "/usr/sbin", "/sbin"}) {
    EXPECT_TRUE(Contains(":" + path.out, std::string(":") + directory)) << path.Describe();
  }
  if (!Exists("/usr/sbin/ldconfig") || Exists("/usr/bin/ldconfig")) {
    GTEST_SKIP() << "the host has no ldconfig in /usr/sbin alone";
  }
  // The caller's PATH has none of them.
  for (const Strings& command :
       {Strings{"ldconfig", "--version"}, Strings{"sh", "-c", "ldconfig --version"}}) {
    const RunResult result = RunCoffer({}, command, InProject());
    EXPECT_EQ(result.exit, 0) << result.Describe();
  }
}

// Postgres and others ask for them. They are in an IPC namespace of the call.
TEST_F(Everyday, SharedMemoryAndSemaphoresOfSystemVAreTheCallsOwn) {
  if (!Exists("/usr/bin/python3")) {
    GTEST_SKIP() << "python3 is not installed";
  }
  const key_t key = 0x0c0ffe00 | (getpid() & 0xff);
  const std::string script =
      "import ctypes, sys\n"
      "c = ctypes.CDLL(None, use_errno=True)\n"
      "key = " +
      std::to_string(key) +
      "\n"
      "c.shmat.restype = ctypes.c_void_p\n"
      "shm = c.shmget(key, 4096, 0o1600)\n"
      "at = c.shmat(shm, None, 0)\n"
      "ctypes.memset(at, 65, 4096)\n"
      "sem = c.semget(key, 2, 0o1600)\n"
      "print(shm >= 0, ctypes.string_at(at, 3).decode(), sem >= 0)\n";
  const RunResult result = RunCoffer({}, {"/usr/bin/python3", "-c", script}, InProject());
  EXPECT_EQ(result.out, "True AAA True\n") << result.Describe();
  EXPECT_EQ(shmget(key, 0, 0), -1) << "it is the host's";
  EXPECT_EQ(semget(key, 0, 0), -1) << "it is the host's";
  // The host's are not there inside.
  const int own = shmget(key, 4096, IPC_CREAT | IPC_EXCL | 0666);
  ASSERT_GE(own, 0);
  const std::string ask =
      "import ctypes\nprint(ctypes.CDLL(None).shmget(" + std::to_string(key) + ", 0, 0) >= 0)\n";
  const RunResult outside = RunProgram({"/usr/bin/python3", "-c", ask});
  const RunResult inside = RunCoffer({}, {"/usr/bin/python3", "-c", ask}, InProject());
  shmctl(own, IPC_RMID, nullptr);
  EXPECT_EQ(outside.out, "True\n") << "NO-CONTROL: " << outside.Describe();
  EXPECT_EQ(inside.out, "False\n") << inside.Describe();
}

}  // namespace
}  // namespace coffer::test
