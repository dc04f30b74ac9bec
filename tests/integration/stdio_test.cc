// SPDX-License-Identifier: Apache-2.0
//
// Streams and signals: what goes in comes out, in order, whole, and ends when it should.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include "tests/support/host.h"

namespace coffer::test {
namespace {

class Streams : public LevelTest {};

TEST_P(Streams, StdoutAndStderrStayApart) {
  const RunResult result = RunCoffer(Flags(), {"sh", "-c", "echo out; echo err >&2"});
  EXPECT_EQ(result.out, "out\n");
  EXPECT_EQ(result.err, "err\n") << result.Describe();
}

TEST_P(Streams, BinaryIsUntouched) {
  std::string bytes;
  for (int i = 0; i < 256 * 64; ++i) {
    bytes += static_cast<char>(i * 7 % 256);
  }
  const RunResult result = RunCoffer(Flags(), {"cat"}, {.input = bytes});
  EXPECT_EQ(result.out.size(), bytes.size()) << result.Describe();
  EXPECT_TRUE(result.out == bytes);
}

TEST_P(Streams, LargeInputBothWays) {
  std::string bytes(20 << 20, 'i');
  const RunResult counted = RunProbe(Flags(), {"count-stdin"}, {.input = bytes});
  EXPECT_TRUE(Contains(counted.out, "bytes " + std::to_string(bytes.size()) + " "))
      << counted.Describe();
  bytes.resize(8 << 20);
  const RunResult echoed = RunCoffer(Flags({"--output", "16MiB"}), {"cat"}, {.input = bytes});
  EXPECT_EQ(echoed.out.size(), bytes.size());
  EXPECT_TRUE(echoed.out == bytes);
  EXPECT_EQ(echoed.receipt["output"].value("truncated", true), false);
}

TEST_P(Streams, OutputComesWhileItRuns) {
  RunOptions options;
  options.input = std::string(Background::kKeepOpen, 5);
  Background run({CofferPath(), "run", "--level", level(), "--", "sh", "-c",
                  "echo first; read line; echo second"},
                 options);
  EXPECT_TRUE(run.WaitForOutput("first\n", Seconds(10)))
      << "output is held back until the end: " << run.err();
  EXPECT_FALSE(run.ended());
  run.CloseInput();
  const RunResult result = run.Wait(Seconds(20));
  EXPECT_EQ(result.out, "first\nsecond\n") << result.Describe();
}

TEST_P(Streams, InputThatNobodyReads) {
  const RunResult result = RunProbe(Flags(), {"exit", "6"}, {.input = std::string(5 << 20, 'x')});
  EXPECT_EQ(result.exit, 6) << result.Describe();
  EXPECT_LT(result.took.count(), 10.0);
}

TEST_P(Streams, InputThatNeverEnds) {
  // stdin stays open; the command ends; so must the call.
  RunOptions options;
  options.input = std::string(Background::kKeepOpen, 5);
  Background run({CofferPath(), "run", "--level", level(), "--", ProbePath(), "exit", "2"},
                 options);
  const RunResult result = run.Wait(Seconds(15));
  EXPECT_FALSE(result.timed_out) << "waits for its own stdin";
  EXPECT_EQ(result.exit, 2) << result.Describe();
}

TEST_P(Streams, ClosedDescriptors) {
  for (const int closed : {0, 1, 2}) {
    RunOptions options;
    options.in_child = [closed] { close(closed); };
    const RunResult result = RunProbe(Flags(), {"exit", "5"}, options);
    EXPECT_EQ(result.exit, 5) << "descriptor " << closed << " closed\n" << result.Describe();
  }
  RunOptions all;
  all.in_child = [] {
    close(0);
    close(1);
    close(2);
  };
  const RunResult result = RunProbe(Flags(), {"fds"}, all);
  EXPECT_EQ(result.exit, 0) << result.Describe();
}

TEST_P(Streams, AReaderThatGoesAway) {
  // coffer run ... | head -1: the command gets SIGPIPE or EPIPE and ends; coffer does not hang.
  const RunResult result =
      RunProgram({"sh", "-c",
                  CofferPath() + " run --level " + level() + " --output 1GiB -- " + ProbePath() +
                      " flood 500000000 | head -c 10"},
                 {.timeout = Seconds(30)});
  EXPECT_FALSE(result.timed_out) << result.Describe();
  EXPECT_EQ(result.out.size(), 10U);
}

TEST_P(Streams, AFullDeviceAsStdout) {
  RunOptions options;
  options.in_child = [] { dup2(open("/dev/full", O_WRONLY), 1); };
  const RunResult result = RunProbe(Flags(), {"flood", "100000"}, options);
  EXPECT_FALSE(result.timed_out) << result.Describe();
  EXPECT_TRUE(result.receipt.is_object()) << result.Describe();
}

TEST_P(Streams, TruncationIsSaidAndNotInsideTheData) {
  const RunResult result = RunProbe(Flags({"--output", "1000"}), {"flood", "5000"});
  EXPECT_EQ(result.out, std::string(1000, 'y')) << result.Describe();
  EXPECT_TRUE(Contains(result.err, "truncated at 1000B")) << result.Describe();
  EXPECT_EQ(result.exit, 0) << result.Describe();
  const RunResult failed =
      RunProbe(Flags({"--output", "1000", "--fail-on-cut"}), {"flood", "5000"});
  EXPECT_EQ(failed.exit, 122) << failed.Describe();
  EXPECT_EQ(failed.ErrorClass(), "limit.output") << failed.Describe();
  EXPECT_EQ(result.receipt["output"]["produced"], 5000) << result.receipt["output"].dump();
  EXPECT_EQ(result.receipt["output"]["truncated"], true);
  const RunResult exact = RunProbe(Flags({"--output", "5000"}), {"flood", "5000"});
  EXPECT_EQ(exact.out.size(), 5000U) << exact.Describe();
  EXPECT_EQ(exact.receipt["output"]["truncated"], false);
}

TEST_P(Streams, SignalsAreForwarded) {
  Background run({CofferPath(), "run", "--level", level(), "--", ProbePath(), "signals"});
  ASSERT_TRUE(run.WaitForOutput("ready")) << run.err();
  for (const auto& [number, name] :
       {std::pair{SIGHUP, "HUP"}, {SIGUSR1, "USR1"}, {SIGUSR2, "USR2"}}) {
    run.Signal(number);
    EXPECT_TRUE(run.WaitForOutput(std::string("signal ") + name + "\n", Seconds(10)))
        << name << " did not arrive: " << run.out();
  }
  run.Signal(SIGTERM);
  const RunResult result = run.Wait(Seconds(15));
  EXPECT_TRUE(Contains(result.out, "signal TERM")) << result.Describe();
  EXPECT_EQ(result.exit, 15) << "the command's own answer to SIGTERM\n" << result.Describe();
}

TEST_P(Streams, SigtermEndsWhatDoesNotCatchIt) {
  Background run({CofferPath(), "run", "--level", level(), "--", ProbePath(), "wait", NewToken()});
  ASSERT_TRUE(run.WaitForOutput("ready")) << run.err();
  run.Signal(SIGTERM);
  const RunResult result = run.Wait(Seconds(15));
  EXPECT_EQ(result.exit, 128 + SIGTERM) << result.Describe();
}

TEST_P(Streams, CtrlCEndsEverything) {
  // Even what ignores it: at the latest, the second one.
  for (const char* verb : {"wait", "stubborn"}) {
    const std::string token = NewToken();
    Background run({CofferPath(), "run", "--level", level(), "--wall", "100s", "--", ProbePath(),
                    verb, token});
    ASSERT_TRUE(run.WaitForOutput("ready")) << run.err();
    run.Signal(SIGINT);
    if (std::string(verb) == "stubborn") {
      WaitUntil([&] { return run.ended(); }, Seconds(1));
      run.Signal(SIGINT);
    }
    const RunResult result = run.Wait(Seconds(15));
    EXPECT_FALSE(result.timed_out) << verb;
    EXPECT_EQ(result.exit, 128 + SIGINT) << verb << "\n" << result.Describe();
    EXPECT_TRUE(FindProcesses(token).empty()) << verb;
  }
}

TEST_P(Streams, ThePayloadStartsWithPlainSignals) {
  RunOptions odd;
  odd.in_child = [] {
    signal(SIGPIPE, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    sigset_t some;
    sigemptyset(&some);
    sigaddset(&some, SIGUSR1);
    sigprocmask(SIG_BLOCK, &some, nullptr);
  };
  EXPECT_TRUE(Contains(RunOutside({"masks"}, odd).out, "ignored")) << "NO-CONTROL";
  const RunResult result = RunProbe(Flags(), {"masks"}, odd);
  EXPECT_EQ(result.exit, 0) << result.Describe();
  EXPECT_FALSE(Contains(result.out, "ignored") || Contains(result.out, "blocked"))
      << result.Describe();
}

INSTANTIATE_TEST_SUITE_P(Level, Streams, ::testing::Values("container", "process"), LevelTestName);

}  // namespace
}  // namespace coffer::test
