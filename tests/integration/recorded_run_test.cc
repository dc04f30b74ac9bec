// SPDX-License-Identifier: Apache-2.0
//
// `coffer run` with a state directory: in the log before it runs, sealed after it, or not run at all.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "tests/support/host.h"
#include "tests/support/verdicts.h"

namespace coffer::test {
namespace {

class RecordedRun : public LevelTest {
 protected:
  RunResult Run(const Strings& flags, const Strings& command, const RunOptions& options = {}) {
    Strings all = Flags(flags);
    all.insert(all.end(), {"--state", state_});
    return RunCoffer(all, command, options);
  }
  RunResult Audit(Strings words) {
    words.insert(words.begin(), {CofferPath(), "audit"});
    words.insert(words.end(), {"--state", state_});
    return RunProgram(words);
  }
  Json Calls() {
    const RunResult result = Audit({"list", "--json"});
    EXPECT_EQ(result.exit, 0) << result.Describe();
    return Json::parse(result.out).at("calls");
  }
  int VerifyReceipt(const Json& receipt) {
    const std::string key = dir_.Write("key.pub", Audit({"key"}).out);
    const std::string file = dir_.Write("receipt.json", receipt.dump());
    return RunProgram({CofferPath(), "audit", "verify-receipt", file, "--key", key}).exit;
  }
  std::string Records() const { return ReadFile(state_ + "/log/records").value_or(""); }

  TempDir dir_;
  std::string state_ = dir_ / "state";
};

// What is refused may be anything, so the record names it by a hash. The person at the terminal is told; what was granted is
// in the receipt as it is.
TEST_P(RecordedRun, ARefusedPathIsNotRecorded) {
  const std::string name = NewToken();
  for (const Strings& flags :
       {Strings{"--ro", dir_ / name}, Strings{"--rw", dir_ / name}, Strings{"--in", dir_ / name}}) {
    const RunResult refused = Run(flags, {ProbePath(), "exit", "0"});
    EXPECT_EQ(refused.exit, 120) << refused.Describe();
    EXPECT_TRUE(Contains(refused.err, name)) << refused.Describe();
    EXPECT_FALSE(Contains(refused.receipt.dump(), name)) << refused.receipt.dump(1);
    EXPECT_TRUE(Contains(refused.receipt["error"]["message"].dump(), "sha256:"));
    EXPECT_EQ(VerifyReceipt(refused.receipt), 0);
  }
  // With spaces, and names that are no path of the host.
  const std::string spaced = "my " + name + " place";
  dir_.MakeDir("one");
  dir_.MakeDir("other");
  dir_.Write("one/" + spaced, "");
  dir_.Write("other/" + spaced, "");
  for (const Strings& flags :
       {Strings{"--cwd", "/a/" + spaced},
        Strings{"--in", dir_ / "one/" + spaced, "--in", dir_ / "other/" + spaced},
        Strings{"--ro", dir_ / "one" + ":/etc/" + spaced}, Strings{"--runtime", name},
        Strings{"--tools", name},
        Strings{"--tools", "x", "--tools-dir", dir_ / "none/" + spaced}}) {
    SCOPED_TRACE(flags.front());
    const RunResult refused = Run(flags, {ProbePath(), "exit", "0"});
    EXPECT_NE(refused.exit, 0) << refused.Describe();
    EXPECT_TRUE(Contains(refused.err, name) || level() == "process") << refused.Describe();
    EXPECT_FALSE(Contains(refused.receipt.dump(), name)) << refused.receipt.dump(1);
  }
  for (const char* file : {"/coffer.db", "/coffer.db-wal", "/log/records"}) {
    EXPECT_FALSE(Contains(ReadFile(state_ + file).value_or(""), name)) << file;
  }
  dir_.MakeDir(name);
  const RunResult granted = Run({"--ro", dir_ / name}, {ProbePath(), "exit", "0"});
  const bool takes_mounts = !(IsRoot() && level() == "process");
  EXPECT_EQ(granted.exit, takes_mounts ? 0 : 120) << granted.Describe();
  EXPECT_EQ(Contains(granted.receipt["blast_radius"].dump(), name), takes_mounts) << "the control";
  EXPECT_EQ(Audit({"verify"}).exit, 0);
}

// Nor one that a file named: here the first line of a script.
TEST_P(RecordedRun, APathThatAFileNamesIsNotRecorded) {
  const std::string name = NewToken();
  const TempDir elsewhere;  // what lies beside a script is its own
  elsewhere.MakeDir(name, 0755);
  const std::string interpreter = elsewhere / name + "/sh";
  const std::string script = dir_.Write("script", "#!" + interpreter + "\necho it-ran\n", 0755);
  for (const bool there : {false, true}) {
    if (there) {
      std::filesystem::copy_file("/bin/sh", interpreter);
    }
    const RunResult refused = Run({}, {script});
    EXPECT_NE(refused.exit, 0) << refused.Describe();
    EXPECT_TRUE(Contains(refused.err, name)) << "NO-CONTROL: it is not named\n"
                                             << refused.Describe();
    EXPECT_FALSE(Contains(refused.receipt.dump(), name)) << refused.receipt.dump(1);
    EXPECT_TRUE(Contains(refused.receipt["error"]["message"].dump(), "sha256:"))
        << refused.Describe();
  }
  // A name that is no path.
  for (const std::string& line : {"#!/usr/bin/env " + name, "#!" + name}) {
    const RunResult refused = Run({}, {dir_.Write("script", line + "\n", 0755)});
    EXPECT_NE(refused.exit, 0) << refused.Describe();
    EXPECT_TRUE(Contains(refused.err, name)) << "NO-CONTROL: it is not named\n"
                                             << refused.Describe();
    EXPECT_FALSE(Contains(refused.receipt.dump(), name)) << refused.receipt.dump(1);
  }
  for (const char* file : {"/coffer.db", "/coffer.db-wal", "/log/records"}) {
    EXPECT_FALSE(Contains(ReadFile(state_ + file).value_or(""), name)) << file;
  }
  // The control: what the caller's own words grant is in the record.
  const RunResult named = Run({}, {interpreter, "-c", "echo it-ran"});
  EXPECT_EQ(named.exit, 0) << named.Describe();
  EXPECT_TRUE(Contains(named.receipt["files"].dump(), name)) << named.receipt.dump(1);
}

TEST_P(RecordedRun, IsFoundToldAndProven) {
  const RunResult result = Run({}, {ProbePath(), "exit", "3"});
  EXPECT_EQ(result.exit, 3) << result.Describe();
  ASSERT_TRUE(result.receipt.is_object()) << result.Describe();
  EXPECT_EQ(result.receipt["log"]["index"], 1) << result.receipt["log"].dump();
  EXPECT_EQ(result.receipt["log"]["size"], 2);
  EXPECT_EQ(VerifyReceipt(result.receipt), 0);
  Json changed = result.receipt;
  changed["exit"]["code"] = 0;
  EXPECT_EQ(VerifyReceipt(changed), 1) << "the control";

  const Json calls = Calls();
  ASSERT_EQ(calls.size(), 1U);
  EXPECT_EQ(calls[0]["call_id"], result.receipt["call_id"]);
  EXPECT_EQ(calls[0]["tool"], "run");
  EXPECT_EQ(calls[0]["outcome"], "error");
  const RunResult story = Audit({"show", calls[0]["call_id"]});
  EXPECT_TRUE(Contains(story.out, "its seal is good")) << story.Describe();
  const RunResult verdict = Audit({"verify", "--json"});
  EXPECT_EQ(verdict.exit, 0) << verdict.Describe();
  EXPECT_EQ(Json::parse(verdict.out)["calls_compared"], 1);
}

// The same three ways as for any other verb that keeps state; and without any of them, nothing is made.
TEST_P(RecordedRun, OnlyWhereAStateDirectoryIsNamed) {
  RunOptions options;
  options.environment =
      Strings{"COFFER_STATE=" + state_, "HOME=" + dir_.path(), "PATH=/usr/bin:/bin"};
  const RunResult by_variable = RunCoffer(Flags(), {ProbePath(), "exit", "0"}, options);
  EXPECT_EQ(by_variable.exit, 0) << by_variable.Describe();
  EXPECT_TRUE(by_variable.receipt["signature"].is_object());
  EXPECT_EQ(Calls().size(), 1U);

  options.environment = Strings{"COFFER_STATE=", "HOME=" + dir_ / "home", "PATH=/usr/bin:/bin"};
  const RunResult unnamed = RunCoffer(Flags(), {ProbePath(), "exit", "0"}, options);
  EXPECT_EQ(unnamed.exit, 0) << unnamed.Describe();
  EXPECT_TRUE(unnamed.receipt["signature"].is_null());
  EXPECT_TRUE(unnamed.receipt["log"]["index"].is_null());
  EXPECT_EQ(Calls().size(), 1U);
  EXPECT_FALSE(Exists(dir_ / "home"));
}

TEST_P(RecordedRun, OfEveryEnd) {
  EXPECT_EQ(Run({"--wall", "300ms"}, {ProbePath(), "wait", "x"}).exit, 122);
  EXPECT_EQ(Run({}, {ProbePath(), "die", "11"}).exit, 128 + SIGSEGV);
  EXPECT_EQ(Run({}, {"/nonexistent"}).exit, 127);
  EXPECT_EQ(Run({"--ro", "/nonexistent"}, {ProbePath(), "exit", "0"}).exit, 120);
  const Json calls = Calls();
  ASSERT_EQ(calls.size(), 4U);
  EXPECT_EQ(calls[3]["outcome"], "terminated");
  EXPECT_EQ(calls[2]["outcome"], "terminated");
  EXPECT_EQ(calls[1]["outcome"], "error");
  EXPECT_EQ(calls[0]["outcome"], "denied");
  EXPECT_EQ(Audit({"verify"}).exit, 0) << Audit({"verify"}).Describe();
}

// A run that its caller ended says so. The control is a command that ended itself with the same signal.
TEST_P(RecordedRun, ACancelledOneSaysByWhom) {
  const std::string receipt = dir_ / "cancelled.json";
  Strings words = {CofferPath(), "run"};
  const Strings flags = Flags({"--state", state_, "--receipt", receipt});
  words.insert(words.end(), flags.begin(), flags.end());
  words.insert(words.end(), {"--", "/bin/sh", "-c", "echo begun; sleep 30"});
  Background run(words);
  ASSERT_TRUE(run.WaitForOutput("begun")) << run.err();
  run.Signal(SIGTERM);
  EXPECT_EQ(run.Wait().exit, 128 + SIGTERM);
  const Json told = Json::parse(ReadFile(receipt).value_or("{}"));
  EXPECT_EQ(told["outcome"], "terminated");
  EXPECT_EQ(told["error"]["class"], "policy.cancelled") << told["error"];
  EXPECT_TRUE(Contains(told["error"]["message"].get<std::string>(),
                       "uid:" + std::to_string(getuid()) + ", with signal 15"));
  const RunResult itself = Run({}, {"/bin/sh", "-c", "kill -TERM $$"});
  EXPECT_EQ(itself.exit, 128 + SIGTERM) << itself.Describe();
  EXPECT_EQ(itself.receipt["outcome"], "terminated");
  EXPECT_TRUE(itself.receipt["error"].is_null()) << itself.receipt["error"];
}

// The decision is in the log when the command begins, and a supervisor that dies then leaves a call that nobody knows the
// end of: the next one who looks writes that down, once.
TEST_P(RecordedRun, KilledInTheMiddleItIsUnknown) {
  Strings words = {CofferPath(), "run"};
  const Strings flags = Flags({"--state", state_});
  words.insert(words.end(), flags.begin(), flags.end());
  words.insert(words.end(), {"--", "/bin/sh", "-c", "echo begun; sleep 30"});
  {
    Background run(words);
    ASSERT_TRUE(run.WaitForOutput("begun")) << run.err();
    EXPECT_TRUE(Contains(Records(), R"("kind":"decision")"));
    EXPECT_FALSE(Contains(Records(), R"("kind":"receipt")"));
    run.Signal(SIGKILL);
    (void)run.Wait();
  }
  const RunResult next = Run({}, {ProbePath(), "exit", "0"});
  EXPECT_EQ(next.exit, 0) << next.Describe();
  const Json calls = Calls();
  ASSERT_EQ(calls.size(), 2U);
  EXPECT_EQ(calls[1]["outcome"], "unknown");
  EXPECT_EQ(calls[0]["outcome"], "success");
  EXPECT_TRUE(Contains(Records(), R"("recovered":true)")) << Records();
  const RunResult verdict = Audit({"verify"});
  EXPECT_EQ(verdict.exit, 0) << verdict.Describe();
}

// Nothing runs that is not written down: the command says so if it runs at all.
TEST_P(RecordedRun, WhatCannotBeRecordedDoesNotRun) {
  const auto run = [&] { return Run({}, {"/bin/echo", "it ran"}); };
  const RunResult control = run();
  ASSERT_EQ(control.out, "it ran\n") << control.Describe();

  const auto expect_refused = [&](const char* what, const std::string& words,
                                  const std::string& hint, int exit = 125) {
    const RunResult refused = run();
    EXPECT_EQ(refused.exit, exit) << what << refused.Describe();
    EXPECT_EQ(refused.out, "") << what;
    for (const std::string& part : {words, hint, std::string("nothing was run")}) {
      EXPECT_TRUE(Contains(refused.err, part)) << what << refused.Describe();
    }
  };
  const std::string log = Records();
  std::ofstream(state_ + "/log/records", std::ios::trunc) << log.substr(0, log.size() / 2);
  expect_refused("a log that was cut", "the log", "coffer audit verify");
  std::ofstream(state_ + "/log/records", std::ios::trunc) << log;
  // The database is what is in both files.
  std::map<std::string, std::string> database;
  for (const char* file : {"/coffer.db", "/coffer.db-wal"}) {
    database[state_ + file] = ReadFile(state_ + file).value_or("");
    std::ofstream(state_ + file, std::ios::trunc)
        << std::string(database[state_ + file].size(), 'x');
  }
  expect_refused("a database that is none", "the store is damaged", "restore coffer.db");
  for (const auto& [file, bytes] : database) {
    std::ofstream(file, std::ios::trunc) << bytes;
  }
  EXPECT_EQ(run().out, "it ran\n") << "and again when all is restored";
  EXPECT_EQ(Calls().size(), 2U) << "nothing was lost";

  state_ = dir_.Write("file", "") + "/state";
  expect_refused("no directory", "is not a directory", "--state DIR", 120);
}

TEST_P(RecordedRun, SecretsAreNotInTheRecord) {
  const std::string secret = NewToken();
  const RunResult one = Run({"--env", "API_TOKEN=" + secret},
                            {ProbePath(), "exit", "0", "--password", secret, "token=" + secret});
  const RunResult two =
      Run({"--env", "API_TOKEN=x"}, {ProbePath(), "exit", "0", "--password", "x", "token=x"});
  const RunResult other =
      Run({"--env", "API_TOKEN=x"}, {ProbePath(), "exit", "1", "--password", "x", "token=x"});
  ASSERT_TRUE(one.receipt.is_object() && two.receipt.is_object());
  for (const char* field : {"args_hash", "args_redacted", "envelope_id"}) {
    EXPECT_EQ(one.receipt[field], two.receipt[field]) << field << " depends on the secret";
  }
  EXPECT_NE(other.receipt["args_hash"], two.receipt["args_hash"]) << "the control";
  const RunResult found = RunProgram({"grep", "-rl", secret, state_});
  EXPECT_EQ(found.exit, 1) << found.out;
}

// What runs does not get at its own record.
TEST_P(RecordedRun, DoesNotSeeItsStateDirectory) {
  if (GetParam() == std::string("process") && IsRoot()) {
    // As root the process level takes no mounts at all.
    EXPECT_EQ(Run({"--ro", dir_.path()}, {ProbePath(), "exit", "0"}).exit, 120);
    return;
  }
  ASSERT_EQ(Run({}, {ProbePath(), "exit", "0"}).exit, 0);
  const std::string beside = dir_.MakeDir("beside");
  EXPECT_EQ(Run({"--ro", beside}, {ProbePath(), "exit", "0"}).exit, 0) << "the control";
  for (const char* how : {"--ro", "--rw"}) {
    for (const std::string& place : {state_, dir_.path(), state_ + "/log"}) {
      const RunResult refused = Run({how, place}, {ProbePath(), "exit", "0"});
      EXPECT_EQ(refused.exit, 120) << how << place << refused.Describe();
      EXPECT_EQ(refused.receipt["outcome"], "denied");
    }
  }
  EXPECT_EQ(Calls().size(), 8U) << "each is on record";
}

// A switch is a switch: who stops the tenant stops this too, and that is on record.
TEST_P(RecordedRun, ASwitchStopsIt) {
  ASSERT_EQ(Run({}, {ProbePath(), "exit", "0"}).exit, 0);
  const RunResult off =
      RunProgram({CofferPath(), "tools", "disable", "run", "--reason", "test", "--state", state_});
  ASSERT_EQ(off.exit, 0) << off.Describe();
  const RunResult refused = Run({}, {ProbePath(), "exit", "0"});
  EXPECT_EQ(refused.exit, 120) << refused.Describe();
  EXPECT_EQ(refused.ErrorClass(), "policy.switch");
  EXPECT_EQ(VerifyReceipt(refused.receipt), 0);
  EXPECT_EQ(Calls()[0]["outcome"], "denied");
}

// "What did it do?": the command, what went in and what came out, without the value of a variable that is named as a secret.
TEST_P(RecordedRun, SaysWhatRanAndWhatItPrinted) {
  const std::string secret = NewToken();
  RunOptions options;
  options.input = "from stdin\n";
  const RunResult result = Run(
      {"--reason", "see what is there", "--env", "DEPLOY_TOKEN=" + secret, "--env", "CITY=Altona"},
      {"sh", "-c", "cat; echo $DEPLOY_TOKEN in $CITY; printf '\\033[2J' >&2"}, options);
  ASSERT_EQ(result.exit, 0) << result.Describe();
  EXPECT_TRUE(Contains(result.out, secret)) << "the control: the caller gets what it printed";
  const std::string call = result.receipt["call_id"];
  const RunResult story = Audit({"show", call});
  EXPECT_EQ(story.exit, 0) << story.Describe();
  for (const char* told :
       {"the agent says it is for: see what is there", "  | sh\n  | -c\n",
        "its stdin\n  | from stdin", "  | <redacted: value> in Altona\n", "  | \\x1b[2J\n"}) {
    EXPECT_TRUE(Contains(story.out, told)) << told << "\n" << story.out;
  }
  EXPECT_FALSE(Contains(story.out, "\x1b"));
  for (const char* file : {"/coffer.db", "/coffer.db-wal", "/log/records"}) {
    EXPECT_FALSE(Contains(ReadFile(state_ + file).value_or(""), secret)) << file;
  }
  const Json json = Json::parse(Audit({"show", call, "--json"}).out);
  EXPECT_EQ(json["transcript"]["stderr"], "\x1b[2J");
  EXPECT_EQ(json["call"]["reason"], "see what is there");
  // The boundary can be looked up by the hash in the receipt; there is no manifest.
  const RunResult envelope = Audit({"show", call, "--envelope"});
  EXPECT_EQ(envelope.exit, 0) << envelope.Describe();
  EXPECT_EQ(Json::parse(envelope.out)["cwd"].is_string(), true) << envelope.out;
  EXPECT_EQ(Audit({"object", result.receipt["envelope_id"]}).out, envelope.out);
  EXPECT_EQ(Audit({"show", call, "--manifest"}).exit, 120);
  EXPECT_EQ(Audit({"object", "sha256:" + std::string(64, '0')}).exit, 120);
  EXPECT_EQ(Audit({"verify"}).exit, 0);
}

TEST_P(RecordedRun, AScriptIsKeptWithItsText) {
  const std::string script = dir_.Write("greet.sh", "#!/bin/sh\necho hello from the script\n");
  const RunResult result = RunCoffer(Flags({"--state", state_, script}), {});
  ASSERT_EQ(result.exit, 0) << result.Describe();
  const Json json = Json::parse(Audit({"show", result.receipt["call_id"], "--json"}).out);
  EXPECT_EQ(json["transcript"]["code"], "#!/bin/sh\necho hello from the script\n");
  EXPECT_EQ(json["transcript"]["stdout"], "hello from the script\n");
}

TEST_P(RecordedRun, AReasonThatIsNoLineIsRefused) {
  for (const std::string& reason : {std::string("a\nb"), std::string(1001, 'x')}) {
    const RunResult refused = Run({"--reason", reason}, {ProbePath(), "exit", "0"});
    EXPECT_EQ(refused.exit, 120) << refused.Describe();
    EXPECT_TRUE(Contains(refused.err, "policy.reason")) << refused.err;
  }
  EXPECT_EQ(Run({"--reason", "a line"}, {ProbePath(), "exit", "0"}).exit, 0) << "the control";
}

INSTANTIATE_TEST_SUITE_P(Level, RecordedRun, ::testing::Values("container", "process"),
                         LevelTestName);

}  // namespace
}  // namespace coffer::test
