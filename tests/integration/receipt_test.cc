// SPDX-License-Identifier: Apache-2.0
//
// The receipt: every field, for every kind of end, and figures that are true.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/host.h"
#include "tests/support/verdicts.h"

namespace coffer::test {
namespace {

class Receipt : public LevelTest {
 protected:
  enum class Ran { kYes, kNo };
  static void ExpectComplete(const RunResult& result, Ran ran = Ran::kYes) {
    ASSERT_TRUE(result.receipt.is_object()) << result.Describe();
    const Json& receipt = result.receipt;
    for (const char* field :
         {"schema",        "call_id",     "parent_id",    "session_id",   "tenant",
          "agent",         "user",        "reason",       "tool",         "tool_version",
          "manifest_hash", "envelope_id", "effect",       "blast_radius", "args_hash",
          "args_redacted", "code_hash",   "requested_at", "started_at",   "finished_at",
          "duration_ms",   "isolation",   "limits",       "denials",      "scan",
          "approval",      "leases",      "network",      "syscalls",     "files",
          "output",        "incidents",   "outcome",      "error",        "exit",
          "cost",          "log",         "signature"}) {
      EXPECT_TRUE(receipt.contains(field)) << field;
    }
    for (const char* field : {"level", "layers", "floor", "missing"}) {
      EXPECT_TRUE(receipt["isolation"].contains(field)) << field;
    }
    EXPECT_TRUE(receipt["limits"].is_object());
    if (ran == Ran::kYes) {
      for (const char* cap :
           {"cpu", "wall", "memory", "processes", "open_files", "disk", "io", "output"}) {
        ASSERT_TRUE(receipt["limits"].contains(cap)) << cap << " in " << receipt["limits"].dump();
        for (const char* part : {"cap", "used", "breached", "enforced"}) {
          EXPECT_TRUE(receipt["limits"][cap].contains(part)) << cap << "." << part;
        }
      }
    }
    const std::string outcome = receipt["outcome"];
    EXPECT_TRUE(outcome == "success" || outcome == "error" || outcome == "denied" ||
                outcome == "terminated")
        << outcome;
    EXPECT_FALSE(receipt["call_id"].get<std::string>().empty());
  }
};

// What is refused may be anything, a secret included: the person at the terminal is told, the receipt is not.
TEST_P(Receipt, DoesNotQuoteWhatWasRefused) {
  const std::string secret = "/nonexistent/" + NewToken();
  const RunResult result = RunProbe(Flags({"--in", secret}), {"exit", "0"});
  EXPECT_EQ(result.exit, 120) << result.Describe();
  EXPECT_TRUE(Contains(result.err, secret)) << "the control: it is named where it may be";
  ASSERT_TRUE(result.receipt.is_object());
  EXPECT_FALSE(Contains(result.receipt.dump(), secret)) << result.receipt.dump();
}

TEST_P(Receipt, OfSuccess) {
  const RunResult result = RunProbe(Flags(), {"exit", "0"});
  ExpectComplete(result);
  EXPECT_EQ(result.receipt["outcome"], "success");
  EXPECT_EQ(result.receipt["exit"]["code"], 0);
  EXPECT_TRUE(result.receipt["error"].is_null()) << result.receipt["error"].dump();
}

// Whoever shows files of the host is promised that their I/O is counted; if no cgroup does it, that is told.
TEST_P(Receipt, BlockIoIsCountedOrCalledMissingWhereFilesAreShown) {
  const TempDir dir;
  for (const bool shown : {true, false}) {
    if (shown && IsRoot() && !container()) {
      continue;  // as root the process level takes no mounts
    }
    const RunResult result =
        RunProbe(Flags(shown ? Strings{"--ro", dir.path()} : Strings{}), {"exit", "0"});
    ExpectComplete(result);
    const Json& isolation = result.receipt["isolation"];
    const bool active = Contains(isolation["layers"].dump(), "cgroup-io");
    bool told = false;
    for (const Json& missing : isolation["missing"]) {
      if (missing["layer"] == "cgroup-io") {
        told = true;
        EXPECT_FALSE(missing["reason"].get<std::string>().empty()) << isolation.dump();
        EXPECT_FALSE(missing["stand_in"].get<std::string>().empty()) << isolation.dump();
      }
    }
    EXPECT_FALSE(active && told) << isolation.dump();
    EXPECT_EQ(active || told, shown || active) << isolation.dump();
  }
}

TEST_P(Receipt, OfFailureAndSignal) {
  const RunResult failed = RunProbe(Flags(), {"exit", "3"});
  ExpectComplete(failed);
  EXPECT_EQ(failed.receipt["outcome"], "error");
  const RunResult died = RunProbe(Flags(), {"die", "11"});
  ExpectComplete(died);
  EXPECT_EQ(died.receipt["outcome"], "terminated");
  EXPECT_EQ(died.receipt["exit"]["signal"], SIGSEGV);
}

TEST_P(Receipt, OfABreach) {
  const RunResult result = RunProbe(Flags({"--wall", "300ms"}), {"wait", "x"});
  ExpectComplete(result);
  EXPECT_EQ(result.exit, 122);
  EXPECT_EQ(result.receipt["outcome"], "terminated") << result.Describe();
  EXPECT_EQ(result.ErrorClass(), "limit.wall");
  EXPECT_EQ(result.receipt["limits"]["wall"]["breached"], true);
  EXPECT_TRUE(result.err.starts_with("coffer: limit.wall: ")) << result.err;
}

TEST_P(Receipt, OfARefusal) {
  const RunResult result = RunProbe(Flags({"--ro", "/etc"}), {"exit", "0"});
  EXPECT_EQ(result.exit, 120);
  ExpectComplete(result, Ran::kNo);
  EXPECT_EQ(result.receipt["outcome"], "denied") << result.Describe();
  EXPECT_FALSE(result.ErrorClass().empty());
}

TEST_P(Receipt, OfACommandThatIsNotThere) {
  const RunResult result = RunCoffer(Flags(), {"/nonexistent"});
  EXPECT_EQ(result.exit, 127);
  ExpectComplete(result, Ran::kNo);
}

TEST_P(Receipt, FiguresAreTrue) {
  const RunResult result = RunCoffer(
      Flags(), {"python3", "-c",
                "import time\nb = bytearray(60 << 20)\nt = time.process_time()\n"
                "while time.process_time() - t < 0.5: pass\ntime.sleep(0.5)\nprint('x' * 999)"});
  ExpectComplete(result);
  const Json& limits = result.receipt["limits"];
  const auto used = [&](const char* cap) -> double {
    const Json& value = limits[cap]["used"];
    return value.is_number() ? value.get<double>() : -1;
  };
  EXPECT_GT(used("memory"), 50.0 * (1 << 20)) << limits.dump();
  EXPECT_LT(used("memory"), 140.0 * (1 << 20)) << limits.dump();
  EXPECT_EQ(used("output"), 1000) << limits.dump();
  EXPECT_GE(used("processes"), 1) << limits.dump();
  EXPECT_GE(result.receipt["duration_ms"].get<double>(), 900)
      << result.receipt["duration_ms"].dump();
  EXPECT_LT(result.receipt["duration_ms"].get<double>(), 20000);
  // CPU and wall may be in any unit the receipt documents; their relation to the caps is not a matter of units.
  EXPECT_GT(used("cpu"), limits["cpu"]["cap"].get<double>() * 0.04) << limits.dump();
  EXPECT_LT(used("cpu"), limits["cpu"]["cap"].get<double>() * 0.5) << limits.dump();
  EXPECT_GT(used("wall"), limits["wall"]["cap"].get<double>() * 0.02) << limits.dump();
}

TEST_P(Receipt, TheOutputIsHashed) {
  const RunResult one = RunProbe(Flags(), {"args", "one"});
  const RunResult same = RunProbe(Flags(), {"args", "one"});
  const RunResult two = RunProbe(Flags(), {"args", "two"});
  ASSERT_TRUE(one.receipt.is_object() && two.receipt.is_object() && same.receipt.is_object());
  EXPECT_EQ(one.receipt["output"]["bytes"], static_cast<int>(one.out.size()));
  EXPECT_EQ(one.receipt["output"]["sha256"], same.receipt["output"]["sha256"]);
  EXPECT_NE(one.receipt["output"]["sha256"], two.receipt["output"]["sha256"]);
  EXPECT_EQ(one.receipt["envelope_id"], two.receipt["envelope_id"]) << "the same envelope";
  EXPECT_NE(one.receipt["call_id"], two.receipt["call_id"]);
  EXPECT_NE(one.receipt["args_hash"], two.receipt["args_hash"]);
}

TEST_P(Receipt, TheFileIsNotALink) {
  TempDir dir;
  const std::string victim = dir.Write("victim", "keep");
  ASSERT_EQ(symlink(victim.c_str(), (dir / "receipt").c_str()), 0);
  Strings argv = {CofferPath(), "run",       "--receipt", dir / "receipt",
                  "--",         ProbePath(), "exit",      "0"};
  // Somebody's link does not choose what is overwritten.
  const RunResult refused = RunProgram(argv);
  EXPECT_EQ(refused.exit, 120) << refused.Describe();
  EXPECT_TRUE(Contains(refused.err, "it is a link")) << refused.Describe();
  EXPECT_EQ(ReadFile(victim), "keep");
  ASSERT_EQ(unlink((dir / "receipt").c_str()), 0);
  EXPECT_EQ(RunProgram(argv).exit, 0) << "the control";
}

TEST_P(Receipt, SetupStepsHaveDurations) {
  const RunResult result = RunProbe(Flags(), {"exit", "0"});
  ASSERT_TRUE(result.receipt.is_object());
  const Json& steps = result.receipt["cost"]["steps_us"];
  ASSERT_TRUE(steps.is_object()) << result.receipt["cost"].dump();
  EXPECT_GE(steps.size(), 3U) << steps.dump();
  for (const auto& [step, micros] : steps.items()) {
    EXPECT_TRUE(micros.is_number_unsigned()) << step << ": " << micros.dump();
  }
}

INSTANTIATE_TEST_SUITE_P(Level, Receipt, ::testing::Values("container", "process"), LevelTestName);

}  // namespace
}  // namespace coffer::test
