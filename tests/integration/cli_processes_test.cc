// SPDX-License-Identifier: Apache-2.0
//
// Background processes of the command line's sessions: they live as long as their session and no longer, whatever
// happens to the terminal, the keeper or the command; only calls of the same session reach their ports.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "tests/support/host.h"
#include "tests/support/person.h"

namespace coffer::test {
namespace {

constexpr Seconds kLong(60);

class CliProcesses : public ::testing::Test {
 protected:
  CliProcesses() {
    dir_.MakeDir("home");
    options_.environment = {
        {"HOME=" + (dir_ / "home"), "PATH=/usr/bin:/bin", "COFFER_STATE=" + (dir_ / "state")}};
    session_ = New();
  }
  ~CliProcesses() override {
    for (const std::string& session : made_) {
      (void)Coffer({"sessions", "end", session});
    }
    EXPECT_TRUE(AllGone()) << "nothing is left";
    EXPECT_FALSE(Exists(Place(session_)));
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
    made_.push_back(made.out.substr(0, made.out.find('\n')));
    return made_.back();
  }
  RunResult TryStart(const Strings& flags, const Strings& command) {
    Strings words = {"sessions", "start", session_};
    words.insert(words.end(), flags.begin(), flags.end());
    words.push_back("--");
    words.insert(words.end(), command.begin(), command.end());
    return Coffer(words);
  }
  std::string Start(const Strings& flags, const Strings& command) {
    const RunResult started = TryStart(flags, command);
    EXPECT_EQ(started.exit, 0) << started.Describe();
    EXPECT_EQ(Lines(started.out).size(), 1U) << "a script takes it with $(...): " << started.out;
    return started.out.substr(0, started.out.find('\n'));
  }
  // Found by its words for as long as it lives.
  std::string StartWaiting(const std::string& script = "") {
    return Start({}, {"sh", "-c", script + "echo began; while :; do sleep 0.1; done", token_});
  }
  std::string StartServer() {
    std::string process = Start({"--port", "8000"}, {"python3", "-u", "-m", "http.server", "8000"});
    EXPECT_TRUE(LogHas(process, "Serving HTTP")) << Log(process);
    return process;
  }
  RunResult Run(const std::string& session, const std::string& script) {
    return Coffer({"run", "--session", session, "--", "sh", "-c", script});
  }
  // 0: a connection; otherwise the number of the error.
  std::string Connects(const std::string& session) {
    return Coffer({"run", "--session", session, "--", "python3", "-c",
                   "import socket; print(socket.socket().connect_ex(('127.0.0.1', 8000)))"})
        .out;
  }
  std::string Log(const std::string& process) {
    return Coffer({"sessions", "log", session_, process}).out;
  }
  bool LogHas(const std::string& process, const std::string& text) {
    return WaitUntil([&] { return Contains(Log(process), text); }, kLong);
  }
  Json List() {
    const RunResult listed = Coffer({"sessions", "processes", session_, "--json"});
    EXPECT_EQ(listed.exit, 0) << listed.Describe();
    return Json::parse(listed.out)["processes"];
  }
  Json Find(const std::string& process) {
    for (const Json& one : List()) {
      if (one["process_id"] == process) {
        return one;
      }
    }
    return nullptr;
  }
  bool WaitForState(const std::string& process, const std::string& state) {
    return WaitUntil([&] { return Find(process)["state"] == state; }, kLong);
  }
  bool IsRunning() const { return !FindProcesses(token_).empty(); }
  bool AllGone() const {
    return WaitUntil([&] { return FindProcesses(token_, Supervisors::kCount).empty(); }, kLong);
  }
  // The one of its processes that no other of them has started.
  pid_t Keeper() const {
    const std::vector<pid_t> all = FindProcesses(token_, Supervisors::kCount);
    for (const pid_t pid : all) {
      if (std::find(all.begin(), all.end(), LookAt(pid).parent) == all.end()) {
        return pid;
      }
    }
    return -1;
  }
  std::string Place(const std::string& session) const {
    return dir_ / ("state/processes/" + session);
  }

  const std::string token_ = NewToken();
  TempDir dir_;
  RunOptions options_;
  std::vector<std::string> made_;
  std::string session_;
};

// Run, fail, edit, run again, with a server in the background. docs/AGENT_LOOP.md shows it.
TEST_F(CliProcesses, TheLoopOfAnAgentWithAServer) {
  const auto write = [&](const char* path, const char* text) {
    const Json args = {{"path", path}, {"content", text}};
    const RunResult wrote =
        Coffer({"call", "write-file", "--session", session_, "--args", args.dump()});
    EXPECT_EQ(wrote.exit, 0) << wrote.Describe();
  };
  write("answer.txt", "3\n");
  write("check.py",
        "import urllib.request\n"
        "answer = urllib.request.urlopen('http://127.0.0.1:8000/answer.txt').read()\n"
        "assert answer == b'4\\n', answer\n"
        "print('passed')\n");
  const std::string check = "python3 -B check.py";
  const RunResult early = Run(session_, check);
  EXPECT_TRUE(Contains(early.err, "refused")) << "the control: no server yet: " << early.Describe();
  const std::string server = StartServer();
  const RunResult failed = Run(session_, check);
  EXPECT_EQ(failed.exit, 1) << failed.Describe();
  EXPECT_TRUE(Contains(failed.err, "AssertionError: b'3\\n'")) << failed.err;
  write("answer.txt", "4\n");
  const RunResult passed = Run(session_, check);
  EXPECT_EQ(passed.out, "passed\n") << passed.Describe();
  const RunResult called =
      Coffer({"call", "bash", "--session", session_, "--args", Json{{"command", check}}.dump()});
  EXPECT_EQ(called.out, "passed\n") << "a declared tool reaches it too: " << called.Describe();

  EXPECT_TRUE(Contains(Log(server), "GET /answer.txt"));
  const RunResult listed = Coffer({"sessions", "processes", session_});
  EXPECT_TRUE(Contains(listed.out, server) && Contains(listed.out, "running")) << listed.out;
  const RunResult stopped = Coffer({"sessions", "stop", session_, server});
  EXPECT_EQ(stopped.exit, 0) << stopped.Describe();
  const Json end = Find(server);
  EXPECT_EQ(end["state"], "ended");
  EXPECT_EQ(end["outcome"], "terminated");
  EXPECT_EQ(end["error"]["class"], "policy.cancelled") << end;
  const RunResult told = Coffer({"audit", "show", server});
  EXPECT_TRUE(Contains(told.out, "stopped by uid:")) << told.out;
  EXPECT_TRUE(Contains(Run(session_, check).err, "refused")) << "it is gone";
  const RunResult over = Coffer({"sessions", "end", session_});
  EXPECT_TRUE(Contains(over.out, "its files are gone")) << over.Describe();
  EXPECT_EQ(Coffer({"audit", "verify"}).exit, 0);
}

TEST_F(CliProcesses, OnlyItsOwnSessionReachesIt) {
  const std::string server = StartServer();
  EXPECT_EQ(Connects(session_), "0\n") << "the control";
  EXPECT_EQ(Connects(New()), "111\n");
  const RunResult none =
      Coffer({"run", "--", "python3", "-c",
              "import socket; print(socket.socket().connect_ex(('127.0.0.1', 8000)))"});
  EXPECT_EQ(none.out, "111\n");
  const RunResult taken = TryStart({"--port", "8000"}, {"true"});
  EXPECT_EQ(taken.exit, 120) << taken.Describe();
  EXPECT_TRUE(Contains(taken.err, server) && Contains(taken.err, "8000")) << taken.err;
}

TEST_F(CliProcesses, TheEndOfTheSessionKillsIt) {
  const std::string process = StartWaiting("trap '' TERM INT HUP; ");
  ASSERT_TRUE(LogHas(process, "began"));
  ASSERT_TRUE(IsRunning());
  const RunResult ended = Coffer({"sessions", "end", session_});
  EXPECT_TRUE(Contains(ended.out, "its files are gone")) << ended.Describe();
  EXPECT_FALSE(IsRunning()) << "when `end` has returned nothing runs";
  EXPECT_EQ(Coffer({"sessions", "processes", session_}).exit, 120);
}

// No verb is needed: the keeper knows how long its session lives. The control is a session that would have ended sooner
// and was extended.
TEST_F(CliProcesses, EndsWithTheLifetimeOfItsSession) {
  const auto start = [&](const std::string& name) {
    return TryStart({}, {"sh", "-c", "while :; do sleep 0.1; done", token_ + name}).exit;
  };
  const std::string stays = session_ = New({"--lifetime", "20s"});
  ASSERT_EQ(start("-stays"), 0);
  const std::string ends = session_ = New({"--lifetime", "20s"});
  ASSERT_EQ(start("-ends"), 0);
  ASSERT_EQ(Coffer({"sessions", "extend", stays, "--lifetime", "1h"}).exit, 0);
  EXPECT_TRUE(WaitUntil(
      [&] { return FindProcesses(token_ + "-ends", Supervisors::kCount).empty(); }, kLong));
  EXPECT_FALSE(FindProcesses(token_ + "-stays").empty());
  EXPECT_EQ(Coffer({"sessions", "list"}).exit, 0);
  EXPECT_FALSE(Exists(Place(ends))) << "what it left is swept";
  EXPECT_TRUE(Exists(Place(stays)));
}

TEST_F(CliProcesses, AKilledKeeperTakesItAlong) {
  const std::string process = StartWaiting();
  ASSERT_TRUE(LogHas(process, "began"));
  EXPECT_EQ(Find(process)["state"], "running");
  const pid_t keeper = Keeper();
  ASSERT_GT(keeper, 1);
  ASSERT_EQ(kill(keeper, SIGKILL), 0);
  EXPECT_TRUE(AllGone());
  EXPECT_TRUE(WaitForState(process, "ended"));
  EXPECT_EQ(Find(process)["outcome"], "unknown");
  EXPECT_EQ(Coffer({"sessions", "stop", session_, process}).exit, 120) << "it has ended";
  EXPECT_EQ(Run(session_, "true").exit, 0) << "the session goes on";
}

TEST_F(CliProcesses, AKilledSupervisorIsNoticed) {
  const std::string process = StartWaiting();
  const pid_t keeper = Keeper();
  for (const pid_t pid : FindProcesses(token_, Supervisors::kCount)) {
    if (LookAt(pid).parent == keeper) {
      kill(pid, SIGKILL);
    }
  }
  EXPECT_TRUE(AllGone());
  EXPECT_TRUE(WaitForState(process, "ended"));
  EXPECT_EQ(Find(process)["outcome"], "unknown");
}

// The terminal closes: what its shell had started ends, and the process does not.
TEST_F(CliProcesses, OutlivesItsTerminal) {
  const ProgramCopy beside("/bin/sleep");
  {
    Person person(
        {"/usr/bin/env", "HOME=" + (dir_ / "home"), "COFFER_STATE=" + (dir_ / "state"), "sh", "-c",
         beside.path() + " 1000 & " + CofferPath() + " sessions start " + session_ +
             " -- sh -c 'while :; do sleep 0.1; done' " + token_ + "; echo st''arted; wait"});
    ASSERT_TRUE(person.Sees("started", kLong)) << person.screen();
    ASSERT_TRUE(IsRunning()) << person.screen();
    ASSERT_TRUE(beside.IsRunning());
  }
  EXPECT_TRUE(WaitUntil([&] { return !beside.IsRunning(); }, kLong)) << "the control";
  EXPECT_TRUE(IsRunning());
  EXPECT_EQ(List().size(), 1U);
}

TEST_F(CliProcesses, TheLogIsBounded) {
  const Strings flood = {"sh", "-c", "head -c 3000000 /dev/zero | tr '\\0' x"};
  const std::string little = Start({"--output", "64KiB"}, flood);
  const std::string more = Start({"--output", "256KiB"}, flood);
  ASSERT_TRUE(WaitForState(little, "ended") && WaitForState(more, "ended"));
  const size_t size = Log(little).size();
  EXPECT_GE(size, 64U << 10);
  EXPECT_LE(size, (64U << 10) + 1024) << "and the line that says so";
  EXPECT_TRUE(Contains(Log(little), "truncated"));
  EXPECT_GE(Log(more).size(), 256U << 10) << "the control";
}

TEST_F(CliProcesses, TheLogCannotActOnATerminal) {
  const std::string process = Start({}, {"printf", "\\033[2Jhidden\\n"});
  ASSERT_TRUE(WaitForState(process, "ended"));
  EXPECT_EQ(Log(process), "\x1b[2Jhidden\n") << "a file or a pipe gets its own bytes";
  Person person({"/usr/bin/env", "HOME=" + (dir_ / "home"), "COFFER_STATE=" + (dir_ / "state"),
                 CofferPath(), "sessions", "log", session_, process});
  EXPECT_TRUE(person.Sees("\\x1b[2Jhidden")) << person.screen();
  EXPECT_FALSE(Contains(person.screen(), "\x1b[2J"));
}

TEST_F(CliProcesses, SignalsReachTheCommand) {
  const std::string process =
      StartWaiting("trap 'echo reread' HUP; trap 'echo bye; exit 7' USR1; ");
  ASSERT_TRUE(LogHas(process, "began"));
  Background follow({CofferPath(), "sessions", "log", session_, process, "--follow"}, options_);
  EXPECT_TRUE(follow.WaitForOutput("began"));
  EXPECT_EQ(Coffer({"sessions", "signal", session_, process, "HUP"}).exit, 0);
  EXPECT_TRUE(follow.WaitForOutput("reread", kLong));
  EXPECT_EQ(Coffer({"sessions", "signal", session_, process, "SIGUSR1"}).exit, 0);
  const RunResult over = follow.Wait();
  EXPECT_EQ(over.exit, 0) << "it ends with the process: " << over.Describe();
  EXPECT_TRUE(Contains(over.out, "bye\n")) << over.out;
  ASSERT_TRUE(WaitForState(process, "ended"));
  EXPECT_EQ(Find(process)["exit"]["code"], 7);
  const RunResult late = Coffer({"sessions", "signal", session_, process, "HUP"});
  EXPECT_EQ(late.exit, 120) << late.Describe();
}

// A limit of its own ends it, and the log and the list say so.
TEST_F(CliProcesses, ItsLimitsAreItsOwn) {
  const std::string process = Start({"--wall", "1s"}, {"sleep", "1000"});
  ASSERT_TRUE(WaitForState(process, "ended"));
  EXPECT_EQ(Find(process)["error"]["class"], "limit.wall") << Find(process);
  EXPECT_TRUE(Contains(Log(process), "limit.wall")) << Log(process);
}

TEST_F(CliProcesses, AtMostEightRun) {
  for (int i = 0; i < 8; ++i) {
    ASSERT_EQ(TryStart({}, {"sleep", "1000"}).exit, 0) << i;
  }
  const RunResult ninth = TryStart({}, {"sleep", "1000"});
  EXPECT_EQ(ninth.exit, 120) << ninth.Describe();
  EXPECT_TRUE(Contains(ninth.err, "coffer sessions stop")) << ninth.err;
  EXPECT_EQ(List().size(), 8U);
}

// What does not start leaves nothing, and says why where it was typed.
TEST_F(CliProcesses, WhatDoesNotStartIsSaid) {
  const RunResult missing = TryStart({}, {"no-such-program"});
  EXPECT_EQ(missing.exit, 127) << missing.Describe();
  EXPECT_TRUE(Contains(missing.err, "no-such-program")) << missing.err;
  const RunResult floor = TryStart({"--level", "process"}, {"true"});
  EXPECT_EQ(floor.exit, 120) << floor.Describe();
  EXPECT_TRUE(Contains(floor.err, "process level")) << floor.err;
  EXPECT_EQ(List().size(), 0U);
  EXPECT_TRUE(std::filesystem::is_empty(Place(session_)));
}

// The files that decide who is reached are the caller's alone, or they do not count.
TEST_F(CliProcesses, WhatOthersCouldWriteIsNotBelieved) {
  const std::string server = StartServer();
  EXPECT_EQ(Connects(session_), "0\n") << "the control";
  for (const std::string& place : {Place(session_), Place(session_) + "/" + server}) {
    ASSERT_EQ(chmod(place.c_str(), 0777), 0);
    const RunResult run = Run(session_, "true");
    EXPECT_EQ(run.exit, 125) << run.Describe();
    EXPECT_TRUE(Contains(run.err, "not yours alone")) << run.err;
    ASSERT_EQ(chmod(place.c_str(), 0700), 0);
  }
  // Another socket in the keeper's place, of another user.
  if (IsRoot()) {
    const std::string socket = Place(session_) + "/" + server + "/control";
    std::filesystem::rename(socket, socket + ".old");
    Background stranger({"python3", "-c",
                         "import socket, os, sys, time\n"
                         "s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)\n"
                         "os.chdir(sys.argv[1]); s.bind('control'); os.setuid(48213); s.listen(8)\n"
                         "print('listening', flush=True); time.sleep(1000)",
                         Place(session_) + "/" + server});
    ASSERT_TRUE(stranger.WaitForOutput("listening"));
    const RunResult run = Run(session_, "true");
    EXPECT_EQ(run.exit, 125) << run.Describe();
    EXPECT_TRUE(Contains(run.err, "another user")) << run.err;
    std::filesystem::remove(socket);
    std::filesystem::rename(socket + ".old", socket);
  }
  EXPECT_EQ(Connects(session_), "0\n");
}

// Neither the process nor a call of its session sees the keeper's files.
TEST_F(CliProcesses, APayloadSeesNothingOfItsKeeper) {
  ASSERT_TRUE(Exists(dir_ / "state/processes")) << "the control";
  const std::string look = "ls " + (dir_ / "state/processes") +
                           " 2>&1; ls -a /workspace/..; cat /proc/net/unix; ls /proc/self/fd";
  const std::string process = Start({"--port", "8000"}, {"sh", "-c", look});
  ASSERT_TRUE(WaitForState(process, "ended"));
  for (const std::string& seen : {Log(process), Run(session_, look).out}) {
    EXPECT_TRUE(Contains(seen, "No such file")) << seen;
    EXPECT_FALSE(Contains(seen, "control")) << seen;
    EXPECT_FALSE(Contains(seen, session_)) << seen;
  }
}

}  // namespace
}  // namespace coffer::test
