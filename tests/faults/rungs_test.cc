// SPDX-License-Identifier: Apache-2.0
//
// `coffer call` is killed on every rung of the ladder, before system calls that are spread over all that it makes: what
// had not started runs when it is asked for again, what had started is `unknown` and never runs again, what had ended has
// its answer, and the next process leaves nothing of the dead one: no process, no cgroup, no mount, no directory, no
// open call, and a log that verifies.
//
// The real program is killed, from outside (tests/support/tracer.h). COFFER_FAULTS_ALL=1 kills before every single call.
#include <gtest/gtest.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <set>

#include "tests/support/host.h"
#include "tests/support/tracer.h"
#include "tests/support/wreck.h"

namespace coffer::test {
namespace {

// Processes of a call, by their distance from `coffer call`.
enum class Who { kCaller, kRunner, kInside };
constexpr const char* kWhoNames[] = {"coffer call", "the runner", "something inside"};

Who WhoIs(const TracedProcess& process) {
  return process.depth == 0 ? Who::kCaller : process.depth == 1 ? Who::kRunner : Who::kInside;
}

// Kills `victim` before the `at`th call that `counted` makes (all of that kind together).
struct Aim {
  Who counted;
  long at;
  Who victim;
};

// Leaves a mark where it runs; two marks would be two runs.
constexpr const char* kManifest = R"(
[tool]
name = "mark"
version = "1.0.0"
owner = "tests"
summary = "Leave a mark."
effect = "irreversible"
[input.schema]
type = "object"
required = ["name"]
properties.name = { type = "string", maxLength = 64 }
[run]
runtime = "bash"
argv = ["bash", "--noprofile", "--norc", "-c", "echo \"$1\" >> /marks/ran; cat /marks/ran > /dev/null", "mark", "{name}"]
[approval]
when = "never"
[isolation]
level = "container"
[[files.mount]]
dangerously_host = "@MARKS@"
reason = "as root the directory of this test is root's"
at = "/marks"
mode = "write"
[[examples.allow]]
args = { name = "a" }
why = "a mark"
[[examples.deny]]
args = {}
why = "no name"
)";

class Rungs : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string manifest = kManifest;
    const std::string slot = "@MARKS@";
    manifest.replace(manifest.find(slot), slot.size(), dir_.MakeDir("marks", 0777));
    dir_.MakeDir("tools");
    dir_.Write("tools/mark.toml", manifest);
    // A table of our own, in which no other test mounts anything; what a call leaves in its caller's still shows.
    if (IsRoot()) {
      ASSERT_EQ(unshare(CLONE_NEWNS), 0);
      ASSERT_EQ(mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr), 0);
    }
    mounts_ = ReadFile("/proc/self/mountinfo").value_or("");
    // The first call makes the store and the key of the log.
    const RunResult first = RunProgram(Words("first"));
    ASSERT_EQ(first.exit, 0) << first.Describe();
    ASSERT_EQ(Marks("first"), 1);
    std::filesystem::rename(state_, dir_ / "base");
  }

  // The same state every time: a store that has grown makes other system calls, and their numbers would mean nothing.
  void Fresh() const {
    std::filesystem::remove_all(state_);
    std::filesystem::copy(dir_ / "base", state_, std::filesystem::copy_options::recursive);
    std::filesystem::remove(state_ + "/coffer.db-shm");
  }

  Strings Words(const std::string& name) const {
    return {CofferPath(),   "call",   "mark",
            "--state",      state_,   "--tools",
            dir_ / "tools", "--args", R"({"name": ")" + name + "\"}",
            "--key",        name,     "--json"};
  }
  long Marks(const std::string& name) const {
    const Strings lines = Lines(ReadFile(dir_ / "marks/ran").value_or(""));
    return std::count(lines.begin(), lines.end(), name);
  }
  RunResult Coffer(Strings words) const {
    words.insert(words.begin(), CofferPath());
    words.insert(words.end(), {"--state", state_});
    return RunProgram(words);
  }

  // Cgroups and directories that carry the number of one of these processes.
  static Strings TracesOf(const std::set<pid_t>& pids) {
    Strings left;
    for (const std::string& trace : CofferTraces()) {
      for (const char* kind : {"/coffer-", "/coffer-supervisor-", "/coffer-scratch-"}) {
        const size_t at = trace.rfind(kind);
        if (at != std::string::npos &&
            pids.contains(std::atoi(trace.c_str() + at + std::string(kind).size())) &&
            Exists(trace)) {
          left.push_back(trace);
        }
      }
    }
    return left;
  }

  Traced Run(const std::string& name, const Aim& aim) {
    long seen = 0;
    return RunTraced(
        Words(name), dir_ / "out", dir_ / "err",
        [&](const TracedProcess& caller, const std::map<pid_t, TracedProcess>& family) -> pid_t {
          if (WhoIs(caller) != aim.counted || ++seen < aim.at) {
            return 0;
          }
          if (aim.victim == aim.counted) {
            return caller.pid;
          }
          for (const auto& [pid, process] : family) {
            if (WhoIs(process) == aim.victim && process.alive) {
              return pid;
            }
          }
          return 0;
        });
  }

  static Rung RungOf(const std::optional<LeftCall>& left, const Traced& run) {
    const Rung disk = left ? left->OnDisk() : Rung::kAdmit;
    if (disk != Rung::kLaunch) {
      return disk;
    }
    // Started: whether its command had begun, and whether the boundary still stood, only processes tell.
    bool began = false, stands = false;
    for (const auto& [pid, process] : run.at_kill) {
      if (WhoIs(process) == Who::kInside) {
        began = began || process.execs > 0;
        stands = stands || process.alive;
      }
    }
    return !began ? Rung::kLaunch : stands ? Rung::kWatch : Rung::kSettle;
  }

  // One kill, one recovery, all checks. False: the call was over before it came to that system call.
  bool Once(const Aim& aim) {
    Fresh();
    const std::string name = NewToken();
    const Traced run = Run(name, aim);
    EXPECT_TRUE(run.started) << run.why;
    EXPECT_FALSE(run.timed_out);
    if (!run.killed) {
      return false;
    }
    SCOPED_TRACE(std::string(kWhoNames[static_cast<int>(aim.victim)]) + " was killed before call " +
                 std::to_string(aim.at) + " of " + kWhoNames[static_cast<int>(aim.counted)]);
    ++kills_;
    // Nobody is left: RunTraced returns when the last process of the family has ended, each by itself.
    std::set<pid_t> pids;
    for (const auto& [pid, process] : run.family) {
      EXPECT_FALSE(process.alive) << pid;
      pids.insert(pid);
    }
    const std::optional<LeftCall> left = FindLeft(ReadWreck(state_), name);
    const long before = Marks(name);
    EXPECT_LE(before, 1);
    const bool survived = run.signal == 0;  // `coffer call` itself, which then told the end
    if (!survived) {
      const Rung rung = RungOf(left, run);
      ++hits_[static_cast<unsigned>(rung)];
      last_ = rung;
      leftovers_ += TracesOf(pids).size();
      open_calls_ += left && rung != Rung::kAnswer ? 1 : 0;
    }

    // Somebody who heard nothing asks again: this process is also the one that recovers.
    const RunResult again = RunProgram(Words(name));
    const Json answer = Json::parse(again.out, nullptr, false);
    EXPECT_FALSE(answer.is_discarded()) << again.Describe();
    const std::string outcome = answer.value("outcome", "");
    const std::vector<LeftCall> now = ReadWreck(state_);
    for (const LeftCall& call : now) {
      EXPECT_EQ(call.OnDisk(), Rung::kAnswer) << call.id << " is still " << call.state;
      EXPECT_TRUE(call.receipt) << call.id << " has no receipt";
    }
    const auto state_now = [&]() -> std::string {
      for (const LeftCall& call : now) {
        if (left && call.id == left->id) {
          return call.state;
        }
      }
      return "";
    };
    if (!left || left->state == "admitted") {
      EXPECT_EQ(before, 0);
      EXPECT_EQ(outcome, "success") << again.Describe();
      EXPECT_EQ(Marks(name), 1);
      EXPECT_EQ(state_now(), left ? "refused" : "");
    } else {
      EXPECT_EQ(answer.value("call_id", ""), left->id);
      EXPECT_TRUE(answer.value("replayed", false)) << again.Describe();
      EXPECT_EQ(Marks(name), before) << "it ran again: " << again.Describe();
      if (left->state == "finished") {
        EXPECT_EQ(state_now(), "finished");
        EXPECT_TRUE(outcome != "success" || before == 1) << again.Describe();
      } else {
        EXPECT_EQ(state_now(), "unknown");
        EXPECT_EQ(outcome, "unknown") << again.Describe();
        EXPECT_EQ(again.exit, 125);
      }
    }

    // A call that launches a boundary sweeps; the one above may have had nothing to launch.
    const RunResult next = RunProgram(Words(name + "next"));
    EXPECT_EQ(next.exit, 0) << next.Describe();
    EXPECT_TRUE(WaitUntil([&] { return TracesOf(pids).empty(); }))
        << ::testing::PrintToString(TracesOf(pids));
    EXPECT_TRUE(FindProcesses(name, Supervisors::kCount).empty());
    EXPECT_EQ(ReadFile("/proc/self/mountinfo").value_or(""), mounts_);
    const RunResult verified = Coffer({"audit", "verify"});
    EXPECT_EQ(verified.exit, 0) << verified.Describe();
    return true;
  }

  // How many calls processes of that kind make when nobody is killed.
  long CallsOf(Who who) {
    Fresh();
    const std::string name = NewToken();
    const Traced clean = Run(name, {Who::kCaller, 1'000'000'000, Who::kCaller});
    EXPECT_EQ(clean.exit, 0) << ReadFile(dir_ / "err").value_or("");
    EXPECT_EQ(Marks(name), 1);
    long calls = 0;
    for (const auto& [pid, process] : clean.family) {
      calls += WhoIs(process) == who ? process.calls : 0;
    }
    return calls;
  }

  TempDir dir_;
  const std::string state_ = dir_ / "state";
  std::string mounts_;
  long kills_ = 0;
  std::array<long, kRungs> hits_{};
  Rung last_ = Rung::kAdmit;
  size_t leftovers_ = 0, open_calls_ = 0;  // before recovery: what it has to do
};

TEST_F(Rungs, AKillOnEachLeavesEverythingTrue) {
  const bool all = getenv("COFFER_FAULTS_ALL") != nullptr;
  if (const Traced probe = RunTraced({"/bin/true"}, dir_ / "out", dir_ / "err",
                                     [](const auto&, const auto&) { return 0; });
      !probe.started) {
    GTEST_SKIP() << "this host does not allow tracing: " << probe.why;
  }
  const long caller = CallsOf(Who::kCaller), runner = CallsOf(Who::kRunner),
             inside = CallsOf(Who::kInside);
  ASSERT_GT(caller, 100);
  ASSERT_GT(runner, 100);
  ASSERT_GT(inside, 100);
#ifdef COFFER_SANITIZED
  constexpr long kShare = 4;  // far slower, and the plain build kills at all
#else
  constexpr long kShare = 1;
#endif
  // Every rung of the caller, densely; then everybody else, and the caller while they are at work.
  const struct {
    Who counted;
    Who victim;
    long calls;
    long kills;
  } kSweeps[] = {
      {Who::kCaller, Who::kCaller, caller, 120}, {Who::kRunner, Who::kCaller, runner, 45},
      {Who::kInside, Who::kCaller, inside, 25},  {Who::kRunner, Who::kRunner, runner, 25},
      {Who::kInside, Who::kRunner, inside, 15},  {Who::kInside, Who::kInside, inside, 15}};
  std::map<long, Rung> met;  // by the number of the caller's own call
  for (const auto& sweep : kSweeps) {
    const long stride = all ? 1 : std::max<long>(1, sweep.calls * kShare / sweep.kills);
    for (long at = 1; at <= sweep.calls && !HasFailure(); at += stride) {
      if (Once({sweep.counted, at, sweep.victim}) && sweep.counted == Who::kCaller) {
        met[at] = last_;
      }
    }
  }
  // A rung of few calls may lie between two that were tried.
  for (auto next = met.begin(); next != met.end() && !HasFailure();) {
    const auto [from, rung] = *next++;
    if (next == met.end()) {
      break;
    }
    for (long at = from + 1; at < next->first && !HasFailure(); ++at) {
      const auto missed = [&] {
        for (auto between = static_cast<unsigned>(rung) + 1;
             between < static_cast<unsigned>(next->second); ++between) {
          if (hits_[between] == 0) {
            return true;
          }
        }
        return false;
      };
      if (!missed()) {
        break;
      }
      Once({Who::kCaller, at, Who::kCaller});
    }
  }
  std::printf("%ld kills;", kills_);
  for (unsigned rung = 0; rung < kRungs; ++rung) {
    std::printf(" %s %ld", kRungNames[rung], hits_[rung]);
    EXPECT_GT(hits_[rung], 0) << "nobody was killed on the rung " << kRungNames[rung];
  }
  std::printf("; before recovery %zu traces and %zu open calls\n", leftovers_, open_calls_);
  EXPECT_GE(kills_ * kShare, 200);
  // The control: without recovery there is something to be found, and the same eyes see it.
  EXPECT_TRUE(leftovers_ > 0 || !IsRoot()) << "an ordinary user may have no cgroups to leave";
  EXPECT_GT(open_calls_, 0U);
}

}  // namespace
}  // namespace coffer::test
