// SPDX-License-Identifier: Apache-2.0
//
// Every system call of a run fails once, one per run: whatever fails, the command runs with every layer or not at all,
// the exit status tells which, and nothing is left behind.
//
// coffer-faults fails the Nth call of the whole process family (base/fault.h). The command copies its own
// /proc/self/status to /out, so that a run that went ahead shows under which confinement. All N are tried where that
// is quick; COFFER_FAULTS_ALL=1 tries all N everywhere.
#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "tests/support/host.h"

namespace coffer::test {
namespace {

std::string FaultsPath() {
  const char* path = getenv("COFFER_FAULTS_BIN");
  return path != nullptr && *path != '\0'
             ? path
             : (std::filesystem::path(CofferPath()).parent_path() / "coffer-faults").string();
}

struct Sweep {
  const char* name;
  Strings flags;
  bool receipt;
  bool out;  // a writable mount; the process level takes none as root
  int error;
  int most;  // how many N to try unless all are asked for
};

std::ostream& operator<<(std::ostream& stream, const Sweep& sweep) { return stream << sweep.name; }

// The lines of /proc/self/status that say how a process is confined.
Strings Confinement(const std::string& status) {
  static const std::set<std::string> kFields = {
      "Uid",    "Gid",    "Groups", "CapInh",     "CapPrm",  "CapEff",
      "CapBnd", "CapAmb", "NSpid",  "NoNewPrivs", "Seccomp", "Seccomp_filters"};
  Strings lines;
  for (const std::string& line : Lines(status)) {
    if (kFields.count(line.substr(0, line.find(':'))) != 0) {
      lines.push_back(line);
    }
  }
  return lines;
}

struct Trial {
  RunResult result;
  std::string seam;  // what the seam wrote at the end: how many calls it saw
  long calls = 0;
  bool marker = false;  // the command ran
  Strings confinement;  // as the command saw it
  Json isolation;       // of the receipt; null without one
  std::string outcome;
  Strings left;  // what should not be there
};

class FaultSweep : public ::testing::TestWithParam<Sweep> {
 protected:
  Trial Once(long fail_at) const {
    const Sweep& sweep = GetParam();
    TempDir dir;
    const std::string token = NewToken();
    const std::string out = dir.MakeDir("out", 0777);
    Strings words = {FaultsPath(), "run", "--env", "TOKEN=" + token};
    words.insert(words.end(), sweep.flags.begin(), sweep.flags.end());
    if (sweep.receipt) {
      words.insert(words.end(), {"--receipt", dir / "receipt.json"});
    }
    if (sweep.out) {
      words.insert(words.end(), {"--out", out, "--", ProbePath(), "copy", "/proc/self/status",
                                 "/out/" + token, "0644"});
    } else {
      words.insert(words.end(), {"--", ProbePath(), "args", token});
    }
    Trial run;
    pid_t pid = 0;
    {
      RunOptions options;
      options.environment =
          Strings{"PATH=/usr/bin:/bin", "COFFER_FAULT_AT=" + std::to_string(fail_at),
                  "COFFER_FAULT_ERRNO=" + std::to_string(sweep.error),
                  "COFFER_FAULT_COUNT=" + (dir / "count")};
      Background process(words, options);
      pid = process.pid();
      run.result = process.Wait(Seconds(30));
    }
    run.seam = ReadFile(dir / "count").value_or("0");
    run.calls = atol(run.seam.c_str());
    run.marker = sweep.out ? Exists(out + "/" + token) : Contains(run.result.out, token);
    run.confinement = Confinement(ReadFile(out + "/" + token).value_or(""));
    if (const auto text = ReadFile(dir / "receipt.json")) {
      const Json receipt = Json::parse(*text);
      run.isolation = receipt["isolation"];
      run.outcome = receipt["outcome"];
      // Output may be what the fault took away; the receipt then knows better.
      run.marker = run.marker || (!sweep.out && receipt["exit"]["code"] == 0);
    }
    run.left = LeftBehind(dir, pid, token);
    return run;
  }

  static Strings LeftBehind(const TempDir& dir, pid_t pid, const std::string& token) {
    Strings left;
    const std::string cgroup = "/coffer-" + std::to_string(pid) + "-";
    const std::string leaf = "/coffer-supervisor-" + std::to_string(pid) + "-";
    const std::string scratch = "/coffer-scratch-" + std::to_string(pid) + "-";
    for (const std::string& trace : CofferTraces()) {
      for (const std::string& ours : {cgroup, leaf, scratch}) {
        if (Contains(trace, ours) && Exists(trace)) {
          left.push_back(trace);
          std::error_code ignored;
          std::filesystem::remove_all(trace, ignored);
        }
      }
    }
    for (const auto& entry : std::filesystem::directory_iterator(dir.path())) {
      const std::string name = entry.path().filename();
      if (name != "out" && name != "receipt.json" && name != "count") {
        left.push_back(entry.path());
      }
    }
    for (const std::string& line : Lines(ReadFile("/proc/self/mountinfo").value_or(""))) {
      if (Contains(line, dir.path())) {
        left.push_back("mount " + line);
      }
    }
    WaitUntil([&] { return FindProcesses(token, Supervisors::kCount).empty(); }, Seconds(5));
    for (const pid_t process : FindProcesses(token, Supervisors::kCount)) {
      left.push_back("process " + std::to_string(process));
      kill(process, SIGKILL);
    }
    return left;
  }

  // Layers of the clean run that this one was without. EPERM is what a host says that forbids something: a layer that not
  // every host has may then be missing, if the receipt says so and why. No other failure may cost a layer.
  static Strings MissingLayers(const Trial& run, const Trial& clean, bool host_forbids) {
    std::set<std::string> told;
    for (const Json& missing : run.isolation["missing"]) {
      if (missing["reason"].is_string() && !missing["reason"].get<std::string>().empty()) {
        told.insert(missing["layer"].get<std::string>());
      }
    }
    const std::set<std::string> active = run.isolation["layers"];
    Strings gone;
    for (const std::string& layer : clean.isolation["layers"].get<Strings>()) {
      const bool optional = layer == "landlock" || layer.starts_with("cgroup-");
      if (active.count(layer) == 0 && !(host_forbids && optional && told.count(layer) != 0)) {
        gone.push_back(layer);
      }
    }
    return gone;
  }

  // What is wrong with a run, in words; nothing if it is as it should be.
  static std::string Judge(const Trial& run, const Trial& clean, bool host_forbids) {
    std::string wrong;
    const auto complain = [&](const std::string& text) {
      wrong += (wrong.empty() ? "" : "; ") + text;
    };
    const int exit = run.result.exit;
    if (run.result.timed_out) {
      complain("hung");
    }
    if (run.result.signal != 0) {
      complain("died of signal " + std::to_string(run.result.signal));
    }
    // Killed because how much it wrote could not be told: the limit is then taken as reached.
    const bool limited = exit == 122 && Contains(run.result.err, "coffer: limit.");
    if (run.marker) {
      // 141: our own output broke, and the command got SIGPIPE as it would without us.
      if (exit != 0 && exit != 125 && exit != 128 + SIGPIPE && !limited) {
        complain("the command ran, and the exit status is " + std::to_string(exit));
      }
      // A host may forbid a /proc inside: then there is none, and the command could copy nothing.
      if (!run.confinement.empty() && run.confinement != clean.confinement) {
        complain("the command ran less confined: " + ::testing::PrintToString(run.confinement));
      }
      if (!run.isolation.is_null() && exit == 0) {
        for (const std::string& layer : MissingLayers(run, clean, host_forbids)) {
          complain("without " + layer);
        }
        if (run.isolation["level"] != clean.isolation["level"]) {
          complain("at another level");
        }
      }
    } else if (exit != 120 && (exit < 125 || exit > 127) && !limited) {
      complain("the command did not run, and the exit status is " + std::to_string(exit));
    }
    if (exit == 0 && run.isolation.is_null() != clean.isolation.is_null()) {
      complain("success without a receipt");
    }
    if (exit != 0 && run.outcome == "success") {
      complain("the receipt says success");
    }
    if (exit != 0 && exit != 128 + SIGPIPE && run.result.err.empty() && !run.result.timed_out) {
      complain("failed without a word");
    }
    for (const std::string& left : run.left) {
      complain("left behind: " + left);
    }
    return wrong;
  }
};

TEST_P(FaultSweep, EveryCallOnce) {
  const Sweep& sweep = GetParam();
  ASSERT_TRUE(Exists(FaultsPath())) << FaultsPath();
  ASSERT_TRUE(Exists(ProbePath())) << ProbePath();
  const Trial clean = Once(1000000000);
  ASSERT_EQ(clean.result.exit, 0) << clean.result.Describe();
  ASSERT_TRUE(clean.marker) << clean.result.Describe();
  ASSERT_GT(clean.calls, 50) << "the seam does not count";
  ASSERT_TRUE(clean.left.empty()) << ::testing::PrintToString(clean.left);
  if (sweep.receipt) {
    ASSERT_FALSE(clean.isolation.is_null());
  }
  const bool all = getenv("COFFER_FAULTS_ALL") != nullptr;
#ifdef COFFER_SANITIZED
  const long most =
      std::min<long>(sweep.most, 60);  // far slower, and the plain build tries them all
#else
  const long most = sweep.most;
#endif
  const long stride = all ? 1 : std::max<long>(1, (clean.calls + most - 1) / most);
  int ran = 0, refused = 0;
  long calls = clean.calls;
  for (long n = 1; n <= calls; n += stride) {
    const Trial run = Once(n);
    (run.marker ? ran : refused) += 1;
    if (const std::string wrong = Judge(run, clean, sweep.error == EPERM); !wrong.empty()) {
      ADD_FAILURE() << "call " << n << " of " << clean.calls << " fails with "
                    << strerrorname_np(sweep.error) << ": " << wrong << "\n  exit "
                    << run.result.exit << ", stderr: " << run.result.err
                    << "  the seam: " << run.seam;
    }
    // A run may make more calls than the clean one: the loop ends where runs end, not where that one did.
    calls = std::max(calls, std::min(run.calls, clean.calls + 200));
  }
  // Both kinds of end must have been seen, or the sweep proves nothing.
  EXPECT_GT(refused, 10);
  EXPECT_GT(ran, 0);
  RecordProperty("calls", std::to_string(calls));
  std::printf("%s: %ld calls, stride %ld: %d refused, %d ran\n", sweep.name, calls, stride, refused,
              ran);
}

// The process level as root takes no mounts: there the command's output is the marker.
INSTANTIATE_TEST_SUITE_P(
    Runs, FaultSweep,
    ::testing::Values(Sweep{"ReceiptEperm", {}, true, true, EPERM, 400},
                      Sweep{"ReceiptEnomem", {}, true, true, ENOMEM, 60},
                      Sweep{"NoReceiptEperm", {"--quiet"}, false, true, EPERM, 150},
                      Sweep{"NoReceiptEio", {"--quiet"}, false, true, EIO, 60},
                      Sweep{"ProcessEperm", {"--level", "process"}, true, false, EPERM, 200},
                      Sweep{"ProcessEagain", {"--level", "process"}, true, false, EAGAIN, 60}),
    [](const auto& sweep) { return std::string(sweep.param.name); });

}  // namespace
}  // namespace coffer::test
