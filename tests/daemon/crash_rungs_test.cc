// SPDX-License-Identifier: Apache-2.0
//
// Every role of the daemon, and a runner, is killed while a call stands on each rung of the ladder, as the store and the
// log tell it: afterwards nothing is forgotten, nothing ran twice, and nothing is left. crash_test.cc kills at moments of
// time; here the moment is a system call of the gateway, by its number or by the rung on which the call stands before it,
// so that no rung is left to luck.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <fstream>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "tests/daemon/daemon.h"
#include "tests/daemon/session_files.h"
#include "tests/support/host.h"
#include "tests/support/tools_fixture.h"
#include "tests/support/wreck.h"

namespace coffer::test {
namespace {

enum Victim : unsigned { kGateway, kWarden, kMonitor, kEgress, kRunner, kVictims };
constexpr const char* kVictimNames[] = {"gateway", "warden", "monitor", "egress", "runner"};
// As the disk tells them apart; launch stands for launch, watch and settle, which the gateway only waits for.
constexpr Rung kOnDisk[] = {Rung::kAdmit,  Rung::kEvaluate, Rung::kRecord,
                            Rung::kLaunch, Rung::kSeal,     Rung::kAnswer};

const char* Name(Rung rung) { return kRungNames[static_cast<unsigned>(rung)]; }

// The moment of a kill.
struct Moment {
  long at = 1;               // not before this system call of the gateway
  std::optional<Rung> rung;  // nor before the call stands on this rung
};

class CrashRungs : public ::testing::Test {
 protected:
  // Asked at every system call of the daemon; does nothing until the test has armed it.
  pid_t Rule(const TracedProcess& caller, const std::map<pid_t, TracedProcess>& family) {
    const std::lock_guard lock(deciding_);
    if (!armed_ || killed_ || caller.pid != gateway_ || ++seen_ < moment_.at) {
      return 0;
    }
    pid_t victim = victim_ == kRunner ? 0 : pids_[victim_];
    for (const auto& [pid, process] : family) {
      if (victim_ == kRunner && process.parent == pids_[kWarden] && process.alive) {
        victim = pid;
      }
    }
    if (victim == 0) {
      return 0;  // there is no runner yet
    }
    if (moment_.rung && !Changed()) {
      return 0;
    }
    // The gateway stands still while this is read.
    const std::optional<LeftCall> now = FindLeft(ReadWreck(daemon_.state()), name_);
    rung_ = now ? now->OnDisk() : Rung::kAdmit;
    if (moment_.rung && rung_ != *moment_.rung) {
      return 0;
    }
    killed_ = true;
    return victim;
  }

  // Reading takes as long as a hundred system calls, and the whole daemon waits meanwhile.
  bool Changed() {
    std::vector<timespec> now;
    for (const char* name : {"/coffer.db", "/coffer.db-wal", "/log/records"}) {
      struct stat file{};
      (void)::stat((daemon_.state() + name).c_str(), &file);
      now.push_back(file.st_mtim);
      now.push_back({file.st_size, 0});
    }
    const bool same =
        std::equal(now.begin(), now.end(), read_.begin(), read_.end(),
                   [](const timespec& one, const timespec& other) {
                     return one.tv_sec == other.tv_sec && one.tv_nsec == other.tv_nsec;
                   });
    read_ = now;
    return !same;
  }

  // True if the tracer has killed a process. It kills no process afterwards.
  bool Disarm() {
    const std::lock_guard lock(deciding_);
    armed_ = false;
    return killed_;
  }

  bool StartTraced() {
    armed_ = false;
    if (!daemon_.StartTraced(
            [this](const auto& caller, const auto& family) { return Rule(caller, family); })) {
      return false;
    }
    pids_[kWarden] = daemon_.Find(RoleOf::kWarden);
    pids_[kEgress] = daemon_.Find(RoleOf::kEgress);
    pids_[kGateway] = daemon_.Find(RoleOf::kGateway);
    pids_[kMonitor] = daemon_.monitor();
    gateway_ = pids_[kGateway];
    return gateway_ > 0;
  }

  HttpAnswer Send(const std::string& name) const {
    const Json call =
        tool_.empty() ? Bash("echo " + name + " >> ran", session_)
                      : Json{{"tool", tool_}, {"args", {{"word", name}}}, {"session_id", session_}};
    return daemon_.Call(daemon_.key(), call, "Idempotency-Key: " + name + "\r\n");
  }
  long Runs(const std::string& name) const {
    const Strings lines = Lines(ReadSessionFile(daemon_, session_, "ran"));
    return std::count(lines.begin(), lines.end(), name);
  }

  // The client makes a call, and the tracer kills `victim` at `moment`. Returns the rung on which the call stood then, or
  // nothing if the tracer killed no process. The daemon runs again, and everything was checked.
  std::optional<Rung> Once(Victim victim, const Moment& moment) {
    const std::string name = NewToken();
    name_ = name;
    SCOPED_TRACE(std::string(kVictimNames[victim]) + " before the gateway's call " +
                 std::to_string(moment.at) +
                 (moment.rung ? std::string(" on ") + Name(*moment.rung) : ""));
    seen_ = 0;
    moment_ = moment;
    victim_ = victim;
    read_.clear();
    killed_ = false;
    armed_ = true;
    HttpAnswer answer;
    std::thread client([&] { answer = Send(name); });
    client.join();
    // The daemon makes calls of its own all the time, so that it comes to a number sooner or later. A runner that was
    // killed leaves the daemon alive.
    (void)WaitUntil([&] { return killed_.load(); }, Seconds(3));
    if (!Disarm() || victim == kRunner) {
      EXPECT_EQ(daemon_.Stop(), 0) << daemon_.Said();
    } else {
      EXPECT_TRUE(daemon_.Gone(Seconds(20)));
    }
    kills_ += killed_ ? 1 : 0;
    const std::optional<LeftCall> left = FindLeft(ReadWreck(daemon_.state()), name);
    const long before = Runs(name);
    EXPECT_LE(before, 1);
    EXPECT_TRUE(StartTraced());
    Judge(name, answer, left, before);
    return killed_ ? std::optional<Rung>(rung_) : std::nullopt;
  }

  void Judge(const std::string& name, const HttpAnswer& heard, const std::optional<LeftCall>& left,
             long before) {
    for (const LeftCall& call : ReadWreck(daemon_.state())) {
      EXPECT_EQ(call.OnDisk(), Rung::kAnswer) << call.id << " is still " << call.state;
      EXPECT_TRUE(call.receipt) << call.id << " has no receipt";
    }
    const HttpAnswer again = Send(name);
    const long runs = Runs(name);
    if (!left || left->state == "admitted") {
      EXPECT_EQ(heard.status, 0) << heard.text;
      EXPECT_EQ(before, 0);
      EXPECT_EQ(again.Outcome(), "success") << again.text;
      EXPECT_EQ(runs, 1);
      return;
    }
    EXPECT_EQ(runs, before) << "it ran again: " << again.text;
    const HttpAnswer now = daemon_.Ask("GET", "/v1/calls/" + left->id, daemon_.key());
    EXPECT_EQ(now.status, 200) << now.text;
    EXPECT_EQ(now.At("state"), "finished") << now.text;
    if (left->state == "finished") {
      EXPECT_EQ(now.Outcome(), again.Outcome());
      EXPECT_TRUE(now.Outcome() != "success" || runs == 1) << now.text;
    } else {
      EXPECT_EQ(now.Outcome(), "unknown") << now.text;
      EXPECT_NE(again.Outcome(), "success") << again.text;
    }
    EXPECT_TRUE(heard.status != 200 || heard.Outcome() == now.Outcome()) << heard.text << now.text;
  }

  // Until the daemon runs traced and has a session; the return is how long a call is, in system calls of the gateway. 0: this
  // host lets no process trace.
  long Prepare() {
    if (const Traced probe = RunTraced({"/bin/true"}, "/dev/null", "/dev/null",
                                       [](const auto&, const auto&) { return 0; });
        !probe.started) {
      return 0;
    }
    EXPECT_TRUE(StartTraced());
    session_ = daemon_.NewSession(daemon_.key());
    EXPECT_FALSE(session_.empty());
    moment_.at = 1'000'000'000;
    seen_ = 0;
    armed_ = true;
    const HttpAnswer first = Send("first");
    EXPECT_EQ(first.Outcome(), "success") << first.text;
    armed_ = false;
    EXPECT_GT(seen_, 20);
    return seen_;
  }

  // Nothing is left, and the daemon goes on.
  void Finish(const Strings& traces) {
    EXPECT_EQ(daemon_.Stop(), 0);
    const RunResult verified =
        RunProgram({CofferPath(), "audit", "verify", "--state", daemon_.state()});
    EXPECT_EQ(verified.exit, 0) << verified.Describe();
    EXPECT_TRUE(daemon_.Start());  // sweeps
    const HttpAnswer last = Send("last");
    EXPECT_EQ(last.Outcome(), "success") << last.text;
    EXPECT_EQ(daemon_.Stop(), 0);
    Strings left = StayingTraces(traces);
    std::erase_if(left, [](const std::string& path) { return !path.starts_with("/sys/fs/"); });
    EXPECT_TRUE(left.empty()) << ::testing::PrintToString(left);
  }

  Daemon daemon_;
  std::string tool_;  // that is called; empty: bash
  std::mutex
      deciding_;  // a kill that is decided while the test gives up would be taken for the daemon's own end
  std::string session_;
  std::string name_;  // of the call; set before armed_ is
  Moment moment_;     // set before armed_ is
  std::vector<timespec>
      read_;  // times and sizes of the files at the last reading; cleared before armed_ is set
  Rung rung_ = Rung::kAdmit;  // written by the tracer before killed_ is
  std::atomic<bool> killed_ = false;
  std::atomic<bool> armed_ = false;
  std::atomic<long> seen_ = 0;
  std::atomic<Victim> victim_ = kGateway;
  std::atomic<pid_t> gateway_ = 0;
  pid_t pids_[kRunner] = {};
  long kills_ = 0;
};

TEST_F(CrashRungs, EveryRoleOnEveryRung) {
  const Strings traces = CofferTraces();
  const long length = Prepare();
  if (length == 0) {
    GTEST_SKIP() << "this host lets no process trace";
  }
  ASSERT_FALSE(HasFailure());

  // The gateway all over the length of a call; then everybody on every rung, however short it is.
  std::set<Rung> met[kVictims];
  const long stride = std::max<long>(1, length / 25);
  for (long at = 1; at <= length + 2 * stride && !HasFailure(); at += stride) {
    if (const std::optional<Rung> rung = Once(kGateway, {.at = at})) {
      met[kGateway].insert(*rung);
    }
  }
  constexpr int kAttempts = 3;
  for (unsigned victim = 0; victim < kVictims; ++victim) {
    for (const Rung rung : kOnDisk) {
      if (victim == kRunner && rung != Rung::kLaunch) {
        continue;  // it lives while a call runs, and at no other time
      }
      for (int attempt = 0; attempt < kAttempts && !met[victim].contains(rung) && !HasFailure();
           ++attempt) {
        if (Once(static_cast<Victim>(victim), {.rung = rung})) {
          met[victim].insert(rung);
        }
      }
      EXPECT_TRUE(met[victim].contains(rung))
          << kVictimNames[victim] << " was never killed on " << Name(rung);
    }
  }
  std::printf("%ld kills; a call is %ld system calls of the gateway\n", kills_, length);
  Finish(traces);
}

// A call whose program makes a call: the gateway all over its length, so that either stands on any rung, and the two that launch.
// Judge looks at the receipts of both.
TEST_F(CrashRungs, ACallThatMakesACall) {
  const Strings traces = CofferTraces();
  // Each inner call has arguments of its own, so that none is refused because one like it has just failed. No braces: a
  // manifest takes them for the name of an argument.
  constexpr const char* kOuter =
      R"sh(coffer call inner "$(printf '\173"word":"%s"\175' $1)" >/dev/null && echo $1 >> /workspace/ran)sh";
  tool_ = "outer";
  std::ofstream(daemon_.tools() + "/inner.toml") << BashToolText("inner", "echo inner");
  std::ofstream(daemon_.tools() + "/outer.toml") << BashToolText(
      "outer", kOuter, "[calls]\ntools = [\"inner\"]\n[files]\nworkspace = \"session-write\"\n");
  const long length = Prepare();
  if (length == 0) {
    GTEST_SKIP() << "this host lets no process trace";
  }
  ASSERT_FALSE(HasFailure());
  EXPECT_EQ(Runs("first"), 1);
  const long stride = std::max<long>(1, length / 15);
  for (long at = 1; at <= length + stride && !HasFailure(); at += stride) {
    (void)Once(kGateway, {.at = at});
  }
  for (const Victim victim : {kWarden, kRunner}) {
    for (int i = 0; i < 3 && !HasFailure(); ++i) {
      (void)Once(victim, {.at = length * (i + 2) / 6});
    }
  }
  std::printf("%ld kills; such a call is %ld system calls of the gateway\n", kills_, length);
  EXPECT_GE(kills_, 10);
  Finish(traces);
}

}  // namespace
}  // namespace coffer::test
