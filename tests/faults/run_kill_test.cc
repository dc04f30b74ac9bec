// SPDX-License-Identifier: Apache-2.0
//
// The supervisor of `coffer run` is killed before system calls that are spread over all that it and its boundary make,
// one after the other: whatever the boundary was doing, nothing of it goes on.
//
// The payload ends by itself a second after the last kill that can be, so one that outlives its supervisor cannot hide. The
// real program is killed, from outside (tests/support/tracer.h). COFFER_FAULTS_ALL=1 kills before every single call.
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>

#include "tests/support/host.h"
#include "tests/support/tracer.h"

namespace coffer::test {
namespace {

constexpr long kNever = 1'000'000'000;
// Depths: the supervisor is 0, the shell 2.
constexpr int kInit = 1;
constexpr int kSleep = 3;

enum class Counted { kSupervisor, kBoundary };

class RunKill : public ::testing::TestWithParam<const char*> {
 protected:
  // Kills the supervisor before the `at`th call of those that are counted.
  Traced Run(Counted counted, long at, const char* work) {
    long calls = 0;
    return RunTraced(
        {CofferPath(), "run", "--quiet", "--level", GetParam(), "--", "/bin/sh", "-c", work},
        dir_ / "out", dir_ / "err",
        [&](const TracedProcess& caller, const std::map<pid_t, TracedProcess>& family) -> pid_t {
          if ((caller.depth == 0) != (counted == Counted::kSupervisor) || ++calls != at) {
            return 0;
          }
          pid_t supervisor = 0;
          for (const auto& [pid, process] : family) {
            if (process.depth == kSleep && !process.alive) {
              return 0;  // too late: it is at the second one
            }
            supervisor = process.depth == 0 ? pid : supervisor;
          }
          return supervisor;
        });
  }
  // The shell came to its own end.
  static bool Lived(const Traced& run) {
    return std::any_of(run.family.begin(), run.family.end(), [](const auto& one) {
      return one.second.depth > kInit && one.second.depth != kSleep && one.second.execs > 0 &&
             one.second.signal == 0;
    });
  }

  TempDir dir_;
};

TEST_P(RunKill, NothingOutlivesTheSupervisor) {
  // A run that other programs held up makes more calls than those that follow: the shortest of three is taken.
  long supervisor = 0, boundary = 0;
  for (int round = 0; round < 3; ++round) {
    const Traced clean = Run(Counted::kSupervisor, kNever, "sleep 0; sleep 0; true");
    if (!clean.started) {
      GTEST_SKIP() << "this host does not allow tracing: " << clean.why;
    }
    ASSERT_EQ(clean.exit, 0) << ReadFile(dir_ / "err").value_or("");
    ASSERT_TRUE(Lived(clean)) << "the control: a payload that is left alone comes to its end";
    long own = 0, inside = 0;
    for (const auto& [pid, process] : clean.family) {
      (process.depth == 0 ? own : inside) += process.calls;
    }
    supervisor = round == 0 ? own : std::min(supervisor, own);
    boundary = round == 0 ? inside : std::min(boundary, inside);
  }
  ASSERT_GT(supervisor, 50);
  ASSERT_GT(boundary, 50);
  const bool all = getenv("COFFER_FAULTS_ALL") != nullptr;
  constexpr long kEach = 40;
  long kills = 0, after_start = 0;
  for (const auto& [counted, calls] :
       {std::pair(Counted::kSupervisor, supervisor), std::pair(Counted::kBoundary, boundary)}) {
    const long stride = all ? 1 : std::max<long>(1, calls / kEach);
    for (long at = 1; at <= calls && !HasFailure(); at += stride) {
      const Traced run = Run(counted, at, "sleep 0.1; sleep 1; true");
      if (!run.killed) {
        continue;  // this time there were fewer calls
      }
      ++kills;
      after_start += run.at_kill.size() > 2 ? 1 : 0;
      EXPECT_FALSE(Lived(run)) << "killed before call " << at << " of "
                               << (counted == Counted::kSupervisor ? "the supervisor"
                                                                   : "the boundary");
      EXPECT_FALSE(run.timed_out);
    }
  }
  EXPECT_GE(kills, 2 * kEach * 3 / 4) << "the control: most of them came to their call";
  EXPECT_GT(after_start, 10) << "the control: there was more than a supervisor and an init";
  const RunResult swept = RunProgram({CofferPath(), "doctor", "--sweep"});
  EXPECT_EQ(swept.exit, 0) << swept.Describe();
}

// Its boundary is begun before its command is looked up (call/run/begin.h).
TEST(RunRefused, ABoundaryThatWasBegunEndsWithTheRefusal) {
  TempDir dir;
  const auto run = [&dir](const char* command) {
    return RunTraced({CofferPath(), "run", "--quiet", "--", command}, dir / "out", dir / "err",
                     [](const TracedProcess&, const auto&) { return pid_t{0}; });
  };
  const auto begun = [](const Traced& traced) {
    return std::any_of(traced.family.begin(), traced.family.end(),
                       [](const auto& one) { return one.second.depth == kInit; });
  };
  const auto execs = [](const Traced& traced) {
    return std::count_if(traced.family.begin(), traced.family.end(), [](const auto& one) {
      return one.second.depth > 0 && one.second.execs > 0;
    });
  };
  const Traced clean = run("/bin/true");
  if (!clean.started) {
    GTEST_SKIP() << "this host does not allow tracing: " << clean.why;
  }
  ASSERT_EQ(clean.exit, 0) << ReadFile(dir / "err").value_or("");
  EXPECT_EQ(execs(clean), 1) << "the control: a command that is there is seen to run";
  const std::vector<std::string> before = CofferTraces();
  const Traced refused = run("/nonexistent/command");
  EXPECT_EQ(refused.exit, 127);
  EXPECT_TRUE(Contains(ReadFile(dir / "err").value_or(""), "/nonexistent/command"));
  EXPECT_TRUE(begun(refused)) << "the control: there was an init to end";
  EXPECT_EQ(execs(refused), 0);
  for (const std::string& trace : StayingTraces(before)) {
    ADD_FAILURE() << "left behind: " << trace;
  }
}

TEST(RunRefused, ASignalWhileTheCommandIsLookedUpEndsItAsUsual) {
  TempDir dir;
  // SIGTERM for the supervisor at the `at`th call that it makes beside an init. How many it makes until the command is found
  // depends on the architecture; the first ones are always before.
  const auto run = [&dir](long at) {
    long calls = 0;
    return RunTraced({CofferPath(), "run", "--quiet", "--", "/bin/true"}, dir / "out", dir / "err",
                     [&calls, at](const TracedProcess& caller, const auto& family) {
                       if (caller.depth == 0 && family.size() > 1 && ++calls == at) {
                         kill(caller.pid, SIGTERM);
                       }
                       return pid_t{0};
                     });
  };
  const auto execs = [](const Traced& traced) {
    return std::count_if(traced.family.begin(), traced.family.end(), [](const auto& one) {
      return one.second.depth > 0 && one.second.execs > 0;
    });
  };
  const Traced clean = run(kNever);
  if (!clean.started) {
    GTEST_SKIP() << "this host does not allow tracing: " << clean.why;
  }
  EXPECT_EQ(clean.exit, 0) << ReadFile(dir / "err").value_or("");
  EXPECT_EQ(execs(clean), 1) << "the control: it runs if no signal comes";
  const std::vector<std::string> before = CofferTraces();
  const Traced ended = run(10);
  EXPECT_EQ(ended.signal, SIGTERM) << "exit " << ended.exit;
  EXPECT_GT(ended.family.size(), 1U) << "the control: there was an init";
  EXPECT_EQ(execs(ended), 0) << "the command ran";
  for (const std::string& trace : StayingTraces(before)) {
    ADD_FAILURE() << "left behind: " << trace;
  }
}

// With a network whose requests are judged: init waits for a certificate, and the egress process begins before it.
TEST(RunStart, AnInitThatIsKilledEndsItsCall) {
  TempDir dir;
  long calls = 0;
  const auto run = [&](long at) {
    calls = 0;
    return RunTraced(
        {CofferPath(), "run", "--quiet", "--allow", "GET https://api.test/**", "--", "/bin/true"},
        dir / "out", dir / "err", [&calls, at](const TracedProcess& caller, const auto&) -> pid_t {
          const bool init = caller.depth == kInit && caller.ordinal == 1;
          return init && ++calls == at ? caller.pid : 0;
        });
  };
  const Traced clean = run(kNever);
  if (!clean.started) {
    GTEST_SKIP() << "this host does not allow tracing: " << clean.why;
  }
  ASSERT_EQ(clean.exit, 0) << ReadFile(dir / "err").value_or("");
  const long all = calls;
  ASSERT_GT(all, 100) << "NO-CONTROL: that was not init";
  const std::vector<std::string> before = CofferTraces();
  const long step = getenv("COFFER_FAULTS_ALL") != nullptr ? 1 : all / 24;
  int not_started = 0;
  for (long at = 1; at <= all; at += step) {
    SCOPED_TRACE("init was killed before its call " + std::to_string(at) + " of " +
                 std::to_string(all));
    const Traced killed = run(at);
    const std::string said = ReadFile(dir / "err").value_or("");
    if (!killed.killed) {
      continue;  // it made fewer calls this time
    }
    EXPECT_FALSE(killed.timed_out) << "OPEN: the call hangs";
    const auto below = [&killed](int execs) {
      return std::any_of(killed.family.begin(), killed.family.end(), [execs](const auto& one) {
        return one.second.depth > kInit && one.second.execs >= execs;
      });
    };
    const bool cloned = below(0), started = below(1);
    not_started += started ? 0 : 1;
    // Success is that of a command that ran: init is killed after its end, or was not needed yet and made anew.
    EXPECT_TRUE(killed.exit == 125 || (cloned && killed.exit == 128 + SIGKILL) ||
                (started && killed.exit == 0))
        << "exit " << killed.exit << "\n"
        << said;
    EXPECT_TRUE(killed.exit != 125 || Contains(said, "coffer: ")) << said;
    EXPECT_TRUE(cloned || Contains(said, "coffer: isolation.")) << said;
  }
  EXPECT_GT(not_started, 5) << "NO-CONTROL: it was killed too late";
  for (const std::string& trace : StayingTraces(before)) {
    ADD_FAILURE() << "left behind: " << trace;
  }
}

INSTANTIATE_TEST_SUITE_P(Level, RunKill, ::testing::Values("container", "process"),
                         [](const auto& level) { return std::string(level.param); });

}  // namespace
}  // namespace coffer::test
