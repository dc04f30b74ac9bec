// SPDX-License-Identifier: Apache-2.0
//
// The receipt: every field, for every kind of end, and figures that are true.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <map>

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

// The list and the sentence are of what was examined: inputs and a script come in by copy and can be read like a mount.
TEST_P(Receipt, TheBlastRadiusHasInputsAndTheScript) {
  const TempDir dir;
  Strings flags = {CofferPath(), "run", "--level", level(), "--receipt", dir / "receipt"};
  Strings named;
  for (int i = 0; i < 70; ++i) {
    named.push_back(dir.Write("input-" + std::to_string(i), "x"));
    flags.insert(flags.end(), {"--in", named.back()});
  }
  const std::string system = "/usr/bin/env";  // whose it is was looked up, not taken for granted
  flags.insert(flags.end(), {"--in", system});
  named.push_back(dir.Write("script.sh", "#!/bin/sh\nls | grep -c ^input-\n", 0755));
  flags.push_back(named.back());
  const RunResult result = RunProgram(flags);
  EXPECT_EQ(result.out, "70\n") << "NO-CONTROL: they are there\n" << result.Describe();
  const Json receipt = Json::parse(ReadFile(dir / "receipt").value_or("null"));
  ASSERT_TRUE(receipt.is_object()) << result.Describe();
  std::map<std::string, std::string> bound;
  for (const Json& entry : receipt["files"]["bound"]) {
    EXPECT_TRUE(entry["count"] == 1 || entry["class"] == "system") << "summarised: " << entry;
    bound[entry["path"]] =
        entry["class"].get<std::string>() + " " + entry["why"].get<std::string>();
  }
  const std::string radius = receipt["blast_radius"];
  for (const std::string& path : named) {
    EXPECT_EQ(bound[path], path == named.back() ? "caller script" : "caller input") << path;
    EXPECT_TRUE(Contains(radius, path)) << path << "\n" << radius;
  }
  EXPECT_EQ(bound[system], "system input");
  EXPECT_TRUE(Contains(radius, system)) << radius;
  const RunResult plain = RunCoffer(Flags({"--runtime", "base"}), {"/usr/bin/true"});
  EXPECT_TRUE(Contains(plain.receipt["blast_radius"].get<std::string>(),
                       "can read no host file but its runtime;"))
      << "NO-CONTROL\n"
      << plain.Describe();
}

// A way out that is named works; where there is none, that is said.
TEST_P(Receipt, TheFixOfARefusedCallIsTrue) {
  const auto fix = [&](const char* script, const Strings& flags) {
    const RunResult result = RunCoffer(Flags(flags), {"/usr/bin/python3", "-c", script});
    for (const Json& denial : result.receipt["denials"]) {
      if (denial["operation"] == "syscall") {
        return denial["fix"].get<std::string>();
      }
    }
    return "none: " + result.Describe();
  };
  const char* const ptrace = "import ctypes; ctypes.CDLL(None).ptrace(0, 0, 0, 0)";
  EXPECT_EQ(fix(ptrace, {}), "no flag and no profile allows it: docs/SECCOMP.md says why");
  const char* const queue = "import ctypes; ctypes.CDLL(None).msgget(0, 0o1600)";
  const char* const tcp = "import socket; socket.socket()";
  if (level() == "process") {
    EXPECT_EQ(fix(tcp, {}), "use --level container: the process level has no sockets");
    return;
  }
  EXPECT_EQ(fix(queue, {}), "use --seccomp compat, or a profile that allows it");
  EXPECT_TRUE(fix(queue, {"--seccomp", "compat"}).starts_with("none: ")) << "compat allows it";
  EXPECT_EQ(fix(tcp, {"--seccomp", "strict"}), "use --seccomp compat, or a profile that allows it");
  EXPECT_TRUE(fix(tcp, {"--seccomp", "compat"}).starts_with("none: "));
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
