// SPDX-License-Identifier: Apache-2.0
//
// A role or a runner is killed while calls run, again and again, at moments that are spread over the whole life of a call;
// the daemon is started again, and everything it said before is still true: what was answered has its answer, what
// nobody saw the end of is `unknown`, nothing ran twice, and nothing is left over.
//
// KILLS says how often (90). A few moments are random, from a seed that a failure prints; SEED sets it.
#include <dirent.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <mutex>
#include <random>
#include <set>
#include <string_view>
#include <thread>

#include "base/unique_fd.h"
#include "tests/daemon/daemon.h"
#include "tests/daemon/session_files.h"
#include "tests/support/host.h"

namespace coffer::test {
namespace {

long FromEnvironment(const char* name, long otherwise) {
  const char* const given = std::getenv(name);
  return given == nullptr ? otherwise : std::atol(given);
}

constexpr RoleOf kRoles[] = {RoleOf::kGateway, RoleOf::kWarden, RoleOf::kMonitor, RoleOf::kEgress};
constexpr unsigned kAnyRunner = 4;
constexpr unsigned kKinds = 5;
constexpr const char* kKindNames[] = {"gateway", "warden", "monitor", "egress", "runner"};

// One call, as its client saw it.
struct Sent {
  std::string name;  // its Idempotency-Key, and the line it writes
  bool async = false;
  HttpAnswer answer;
};

class Crash : public ::testing::Test {
 protected:
  void SetUp() override {
    traces_ = CofferTraces();
    mounts_ = Mounts();
    ASSERT_TRUE(daemon_.Start());
    session_ = daemon_.NewSession(daemon_.key());
  }

  Json CallOf(const std::string& name) const {
    return Bash("echo " + name + " >> ran; sleep 0.02", session_);
  }
  HttpAnswer Send(const std::string& name, bool async) const {
    return daemon_.Call(daemon_.key(), CallOf(name),
                        "Idempotency-Key: " + name + "\r\n" + (async ? kAsync : ""));
  }
  size_t Runs(const std::string& name) const {
    const Strings lines = Lines(ReadSessionFile(daemon_, session_, "ran"));
    return static_cast<size_t>(std::count(lines.begin(), lines.end(), name));
  }
  HttpAnswer Get(const std::string& call) const {
    return daemon_.Ask("GET", "/v1/calls/" + call, daemon_.key());
  }
  // How long a call takes when nobody is killed: the length over which the kills are spread.
  std::chrono::microseconds OneCall() {
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(Send(NewToken(), false).Outcome(), "success");
    return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() -
                                                                 begin);
  }

  // Kills a role, or any runner that there is; nothing else, should its number have gone to somebody new.
  bool Kill(unsigned kind) const {
    if (kind != kAnyRunner) {
      const pid_t role = daemon_.Find(kRoles[kind]);
      return role > 0 && ::kill(role, SIGKILL) == 0;
    }
    const pid_t warden = daemon_.Find(RoleOf::kWarden);
    return WaitUntil([&] {
      for (const pid_t runner : ChildrenOf(warden)) {
        const UniqueFd handle(static_cast<int>(::syscall(SYS_pidfd_open, runner, 0)));
        if (handle.valid() && StatusOf(runner)["PPid"] == std::to_string(warden) &&
            ::syscall(SYS_pidfd_send_signal, handle.get(), SIGKILL, nullptr, 0) == 0) {
          return true;
        }
      }
      return false;
    });
  }

  // Processes of this daemon, and all below them.
  std::vector<pid_t> Family() const {
    std::vector<pid_t> family = {daemon_.monitor()};
    for (size_t i = 0; i < family.size(); ++i) {
      for (const pid_t child : ChildrenOf(family[i])) {
        family.push_back(child);
      }
    }
    return family;
  }

  // One round: calls from two sides and a session that comes and goes, a kill in the middle. What the clients saw.
  std::vector<Sent> KillDuringCalls(unsigned kind, std::chrono::microseconds moment) {
    std::vector<Sent> all;
    std::mutex mutex;
    std::atomic<bool> stop = false;
    std::vector<std::thread> clients;
    for (const bool async : {false, true}) {
      clients.emplace_back([&, async] {
        // Those that do not wait for their end send two; the other goes on until the kill.
        for (int i = 0; !stop && (!async || i < 2); ++i) {
          Sent sent{NewToken(), async, {}};
          sent.answer = Send(sent.name, sent.async);
          const bool lost = sent.answer.status == 0;
          const std::lock_guard lock(mutex);
          all.push_back(std::move(sent));
          if (lost) {
            return;
          }
        }
      });
    }
    clients.emplace_back([&] {
      while (!stop) {
        const HttpAnswer made = daemon_.Ask("POST", "/v1/sessions", daemon_.key(), "{}");
        if (made.status == 0 ||
            daemon_.Ask("DELETE", "/v1/sessions/" + made.At("session_id"), daemon_.key()).status ==
                0) {
          return;
        }
      }
    });
    const auto when = std::chrono::steady_clock::now() + moment;
    std::this_thread::sleep_until(when);  // the moment itself, not a wait for something
    const std::vector<pid_t> family = Family();
    seen_.insert(family.begin(), family.end());
    EXPECT_TRUE(Kill(kind));
    stop = true;
    if (kind == kAnyRunner) {
      for (std::thread& client : clients) {
        client.join();
      }
      EXPECT_FALSE(daemon_.Gone(Seconds(0))) << "a runner's death took the daemon along";
      return all;
    }
    EXPECT_TRUE(daemon_.Gone());
    for (std::thread& client : clients) {
      client.join();
    }
    for (const pid_t pid : family) {
      EXPECT_TRUE(WaitUntil([&] { return !IsAlive(pid); }, Seconds(5))) << pid << " goes on";
    }
    EXPECT_TRUE(daemon_.Start());
    return all;
  }

  void Judge(const Sent& sent) {
    SCOPED_TRACE(sent.name + (sent.async ? " async: " : ": ") + sent.answer.text);
    const std::string call = sent.answer.At("call_id");
    if (sent.answer.status == 200) {
      const HttpAnswer now = Get(call);
      EXPECT_EQ(now.At("state"), "finished");
      EXPECT_EQ(now.Outcome(), sent.answer.Outcome());
      EXPECT_EQ(now.body["result"], sent.answer.body["result"]);
    } else if (sent.answer.status == 202) {
      EXPECT_TRUE(WaitUntil([&] { return Get(call).At("state") == "finished"; }));
    }
    const size_t before = Runs(sent.name);
    // A client that heard nothing asks again with its key: the call runs now if it never did, and never twice.
    const HttpAnswer again = Send(sent.name, false);
    EXPECT_TRUE(again.status == 200 || again.status == 500) << again.text;
    const HttpAnswer end = Get(call.empty() ? again.At("call_id") : call);
    EXPECT_EQ(end.At("state"), "finished") << end.text;
    // Every call that ended has its receipt, also one whose process died.
    EXPECT_EQ(
        daemon_.Ask("GET", "/v1/calls/" + end.At("call_id") + "/receipt", daemon_.key()).status,
        200);
    const size_t runs = Runs(sent.name);
    const bool heard = sent.answer.status != 0;
    if (end.Outcome() == "success") {
      EXPECT_EQ(runs, 1U) << end.text;
      ++(heard ? answered_ : before == 0 ? ran_later_ : ended_unheard_);
    } else if (end.Outcome() == "unknown") {
      EXPECT_LE(runs, 1U) << end.text;
      EXPECT_EQ(runs, before) << "it was run again: " << end.text;
      ++(runs == 0 ? unknown_before_ : unknown_after_);
    } else {
      EXPECT_EQ(end.Outcome(), "error") << end.text;
      EXPECT_EQ(runs, 0U) << end.text;
      ++refused_;
    }
  }

  // Of what was not there before.
  Strings Left(bool cgroups) const {
    Strings now = CofferTraces();
    Strings fresh;
    std::set_difference(now.begin(), now.end(), traces_.begin(), traces_.end(),
                        std::back_inserter(fresh));
    std::erase_if(fresh, [&](const std::string& path) {
      // What boundaries are called ("coffer-PID-..."), not what benchmarks and other tests call theirs. A daemon that
      // runs has one such.
      constexpr std::string_view kScratch = "/tmp/coffer-scratch-", kCgroup = "/coffer-";
      const size_t name = path.rfind(kCgroup);
      const int pid =
          name == std::string::npos ? 0 : std::atoi(path.c_str() + name + kCgroup.size());
      return cgroups ? !path.starts_with("/sys/fs/") || pid == 0 || IsAlive(pid)
                     : !path.starts_with(kScratch) ||
                           !seen_.contains(std::atoi(path.c_str() + kScratch.size()));
    });
    return fresh;
  }
  // But for those of other tests.
  static Strings Mounts() {
    Strings mounts = Lines(ReadFile("/proc/self/mounts").value_or(""));
    std::erase_if(mounts, [](const std::string& line) { return Contains(line, "/mounts/"); });
    return mounts;
  }
  void ExpectNothingLeft() {
    // A runner that was killed leaves its cgroups to the next start.
    EXPECT_EQ(daemon_.Stop(), 0);
    ASSERT_TRUE(daemon_.Start());
    EXPECT_EQ(Send("last", false).Outcome(), "success");
    EXPECT_TRUE(WaitUntil([&] { return daemon_.Runners().empty(); }, Seconds(5)));
    // Others may run boundaries beside this test; theirs go away by themselves. What a crash left is swept by the calls
    // that follow it.
    for (const bool cgroups : {true, false}) {
      Strings left = Left(cgroups);
      EXPECT_TRUE(WaitUntil(
          [&] {
            EXPECT_EQ(Send(NewToken(), false).Outcome(), "success");
            std::erase_if(left, [](const std::string& path) { return !Exists(path); });
            return left.empty();
          },
          Seconds(20)))
          << left.size() << " are left, such as " << left.front();
    }
    EXPECT_EQ(Mounts(), mounts_);
    // Workspaces belong to open sessions.
    size_t open = 0;
    for (std::string page = "/v1/sessions?limit=1000"; !page.empty();) {
      const HttpAnswer sessions = daemon_.Ask("GET", page, daemon_.key());
      for (const Json& session : sessions.body["sessions"]) {
        open += session["state"] == "open" ? 1 : 0;
      }
      const std::string next = sessions.At("next");
      page = next.empty() ? "" : "/v1/sessions?limit=1000&cursor=" + next;
    }
    EXPECT_GE(open, 1U);
    EXPECT_TRUE(WaitUntil([&] { return Workspaces() <= open; }))
        << Workspaces() << " workspaces for " << open << " sessions";
  }
  size_t Workspaces() const {
    size_t found = 0;
    DIR* const dir = ::opendir((daemon_.state() + "/sessions").c_str());
    while (const dirent* entry = ::readdir(dir)) {
      found += entry->d_name[0] != '.' ? 1 : 0;
    }
    ::closedir(dir);
    return found;
  }

  Daemon daemon_;
  std::string session_;
  Strings traces_, mounts_;
  std::set<pid_t> seen_;  // processes that were ours when something was killed
  size_t answered_ = 0, ended_unheard_ = 0, ran_later_ = 0, unknown_before_ = 0, unknown_after_ = 0,
         refused_ = 0;
};

TEST_F(Crash, AtAnyMomentLeavesEverythingTrue) {
  const long kills = FromEnvironment("KILLS", 90);
  const long seed = FromEnvironment("SEED", static_cast<long>(std::random_device{}()));
  SCOPED_TRACE("SEED=" + std::to_string(seed));
  std::mt19937 random(static_cast<unsigned>(seed));
  EXPECT_EQ(Send("warm", false).Outcome(), "success");
  const std::chrono::microseconds length = OneCall();
  for (long i = 0; i < kills && !HasFailure(); ++i) {
    const auto kind = static_cast<unsigned>(i) % kKinds;
    // Golden-ratio steps cover the length of a call evenly, however many there are; a third is random.
    const double share =
        i % 3 == 2 ? static_cast<double>(random() % 1000) / 1000 : std::fmod(0.618034 * i, 1.0);
    const std::chrono::microseconds moment(
        static_cast<int64_t>(share * 1.2 * static_cast<double>(length.count())));
    SCOPED_TRACE("kill " + std::to_string(i) + ": " + kKindNames[kind] + " after " +
                 std::to_string(moment.count()) + " us");
    for (const Sent& sent : KillDuringCalls(kind, moment)) {
      Judge(sent);
    }
  }
  std::printf(
      "answered %zu, ended unheard %zu, never began %zu, unknown before its command %zu, "
      "unknown after it %zu, refused %zu\n",
      answered_, ended_unheard_, ran_later_, unknown_before_, unknown_after_, refused_);
  // The controls: calls were hit on every part of their way, and others were not hit.
  const size_t some = std::max<size_t>(1, static_cast<size_t>(kills) / 100);
  EXPECT_GE(answered_, some);
  EXPECT_GE(ran_later_, some);
  EXPECT_GE(unknown_before_, some);
  EXPECT_GE(unknown_after_, some);
  ExpectNothingLeft();
}

}  // namespace
}  // namespace coffer::test
