// SPDX-License-Identifier: Apache-2.0
//
// A command finds a log that a crash tore, and is itself killed before any of its system calls: once nothing torn is left
// in the log, those who want to hear of it have been told, or will be. The real program is killed, from outside
// (tests/support/tracer.h).
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "store/outbox.h"
#include "store/receivers.h"
#include "store/store.h"
#include "tests/support/host.h"
#include "tests/support/tracer.h"

namespace coffer::test {
namespace {

constexpr const char* kTorn = "{\"torn\":";

class TornLog : public ::testing::Test {
 protected:
  void SetUp() override {
    const RunResult made = RunProgram(Words());
    ASSERT_EQ(made.exit, 0) << made.Describe();
    {
      Result<store::Store> store = store::Store::Open(state_);
      ASSERT_TRUE(store.ok()) << store.error().message;
      const std::vector<store::KnownReceiver> known = {{"all", {"log.*"}}};
      ASSERT_TRUE(store::KeepReceivers(*store, store::AllTenants{}, known).ok());
    }
    std::ofstream(Records(), std::ios::app) << kTorn;
    std::filesystem::rename(state_, dir_ / "base");
  }
  Strings Words() const {
    return {CofferPath(), "tools", "disable", "python", "--reason", "drill", "--state", state_};
  }
  std::string Records() const { return state_ + "/log/records"; }
  void Fresh() const {
    std::filesystem::remove_all(state_);
    std::filesystem::copy(dir_ / "base", state_, std::filesystem::copy_options::recursive);
    std::filesystem::remove(state_ + "/coffer.db-shm");
  }
  bool Torn() const { return Contains(*ReadFile(Records()), kTorn); }
  size_t Told() const {
    Result<store::Store> store = store::Store::Open(state_);
    EXPECT_TRUE(store.ok()) << store.error().message;
    const std::vector<store::OutboxRow> rows =
        store::ListDue(*store, store::AllTenants{}, "all", 100).value();
    size_t told = 0;
    for (const store::OutboxRow& row : rows) {
      told += Contains(row.body, "io.cofferdam.log.recovered") ? 1 : 0;
    }
    return told;
  }

  // Runs it on a fresh copy, and kills it before that call.
  Traced Kill(long at) {
    Fresh();
    Traced run = RunTraced(Words(), dir_ / "out", dir_ / "err",
                           [&](const TracedProcess& caller, const std::map<pid_t, TracedProcess>&) {
                             return caller.depth == 0 && caller.calls == at ? caller.pid : 0;
                           });
    EXPECT_FALSE(run.timed_out);
    return run;
  }
  // How many system calls it makes if nobody kills it; then it is told once. `why_` is set if nobody may trace.
  long Count() {
    const Traced whole = Kill(-1);
    EXPECT_FALSE(whole.killed);
    if (!whole.started) {
      why_ = "(" + whole.why + ")";
      return 0;
    }
    EXPECT_FALSE(Torn());
    EXPECT_EQ(Told(), 1U);
    for (const auto& [pid, process] : whole.family) {
      if (process.depth == 0) {
        return process.calls;
      }
    }
    return 0;
  }

  TempDir dir_;
  const std::string state_ = dir_ / "state";
  std::string why_;
  int torn_ = 0, cut_ = 0, told_twice_ = 0;
};

TEST_F(TornLog, IsToldWhoeverDies) {
  const long all = Count();
  if (!why_.empty()) {
    GTEST_SKIP() << "this host does not allow tracing: " << why_;
  }
  ASSERT_GT(all, 0);
  long first = 1;
#ifdef COFFER_SANITIZED
  // A sanitizer's runtime makes thousands of calls before main: only those around the cut.
  long uncut = 1, cut = all;
  while (cut - uncut > 1) {
    const long middle = (uncut + cut) / 2;
    Kill(middle);
    (Torn() ? uncut : cut) = middle;
  }
  first = std::max(1L, cut - 20);
  const long last = std::min(all, cut + 20);
#else
  const long last = all;
#endif
  for (long at = first; at <= last; ++at) {
    SCOPED_TRACE("killed before its system call " + std::to_string(at));
    Kill(at);
    if (Torn()) {
      ++torn_;
    } else {
      ++cut_;
      ASSERT_GE(Told(), 1U);
    }
    // The next one mends what the dead one left.
    const RunResult next = RunProgram(Words());
    ASSERT_EQ(next.exit, 0) << next.Describe();
    ASSERT_FALSE(Torn());
    const size_t told = Told();
    ASSERT_GE(told, 1U);
    told_twice_ += told > 1 ? 1 : 0;
  }
  EXPECT_GT(torn_, 0) << "kills before the cut";
  EXPECT_GT(cut_, 0) << "kills after it";
  EXPECT_GT(told_twice_, 0) << "kills between what is told and the cut";
}

}  // namespace
}  // namespace coffer::test
