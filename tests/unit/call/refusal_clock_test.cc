// SPDX-License-Identifier: Apache-2.0
//
// The clock is set by a day, in either direction: what a tenant's refusals may add to the log comes back no sooner
// and no later. The control is a store with a clock that is simply believed.
#include <atomic>

#include "tests/unit/call/recorder_fixture.h"

namespace coffer::call {
namespace {

class RefusalClock : public RecorderTest, public ::testing::WithParamInterface<int> {
 protected:
  using hours = std::chrono::hours;
  static constexpr Nanos kDay = hours(24);

  // Spends the allowance of a tenant, at one record an hour.
  void Spend(bool believed) {
    EndRecorder();
    log_.reset();
    store_.reset();
    store::StoreOptions options;
    options.fsync = false;
    options.wall = [this] { return 18'000 * kDay + Nanos(passed_) + Nanos(set_); };
    options.uptime = [this] { return hours(1) + Nanos(passed_); };
    options.boot_id = "one";
    if (believed) {
      options.clock = options.wall;
    }
    const std::string state = dir_ / (believed ? "believed" : "own");
    Result<store::Store> opened = store::Store::Open(state, options);
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    store_ = std::make_unique<store::Store>(std::move(opened).value());
    ASSERT_TRUE(store::EnsureTenant(*store_, store::TenantId::Local()).ok());
    Result<audit::Log> log = audit::Log::Open(state + "/log");
    ASSERT_TRUE(log.ok()) << log.error().message;
    log_ = std::make_unique<audit::Log>(std::move(log).value());
    Begin({10, hours(1)});
    for (int i = 0; i < 20; ++i) {
      (void)IsSpent();
    }
    ASSERT_TRUE(IsSpent());
  }
  // Makes one more refusal, of another call each time.
  bool IsSpent() {
    const std::string args = R"({"code":)" + std::to_string(++asked_) + "}";
    return Refused(Asking("python", args)).refusal == ToolRefusal::kRateLimited;
  }
  void Pass(Nanos time) { passed_ += time.count(); }
  void SetClock(Nanos by) { set_ += by.count(); }

  std::atomic<int64_t> passed_{0};
  std::atomic<int64_t> set_{0};
  int asked_ = 0;
};

INSTANTIATE_TEST_SUITE_P(ADay, RefusalClock, ::testing::Values(-1, 1),
                         [](const auto& given) { return given.param < 0 ? "Back" : "Forward"; });

TEST_P(RefusalClock, TheAllowanceComesBackAtItsTime) {
  Spend(false);
  SetClock(GetParam() * kDay);
  EXPECT_TRUE(IsSpent());
  Pass(std::chrono::minutes(50));
  EXPECT_TRUE(IsSpent()) << "not yet";
  Pass(hours(4));
  EXPECT_FALSE(IsSpent()) << "two records are allowed after three hours at most";
}

TEST_P(RefusalClock, ABelievedClockWouldGiveItBackOrKeepIt) {
  Spend(true);
  SetClock(GetParam() * kDay);
  Pass(hours(4));
  EXPECT_EQ(IsSpent(), GetParam() < 0) << "the control";
  if (GetParam() > 0) {
    Spend(true);
    SetClock(kDay);
    EXPECT_FALSE(IsSpent()) << "the control: at once";
  }
}

}  // namespace
}  // namespace coffer::call
