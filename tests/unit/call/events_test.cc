// SPDX-License-Identifier: Apache-2.0
//
// What happened is told and logged, each once while nothing dies, however long the disk was gone.
#include "call/events.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>

#include "store/outbox.h"
#include "tests/support/run.h"

namespace coffer::call {
namespace {

constexpr size_t kMost = 3;

class EventsTest : public ::testing::Test {
 protected:
  EventsTest() {
    Result<store::Store> store = store::Store::Open(dir_ / "state");
    EXPECT_TRUE(store.ok()) << store.error().message;
    store_ = std::make_unique<store::Store>(std::move(store).value());
    Result<audit::Log> log = OpenLog(*store_, dir_ / "state/log");
    EXPECT_TRUE(log.ok()) << log.error().message;
    log_ = std::make_unique<audit::Log>(std::move(log).value());
    events_ = std::make_unique<Events>(*store_, *log_, kMost);
    events_->Receive([this](std::string_view) {
      return everybody_ ? std::vector<std::string>{"all"} : std::vector<std::string>();
    });
  }
  static audit::EventRecord Named(const std::string& name) {
    audit::EventRecord event;
    event.name = name;
    return event;
  }
  size_t Told(const std::string& name) {
    const std::vector<store::OutboxRow> rows =
        store::ListDue(*store_, store::AllTenants{}, "all", 100).value();
    size_t count = 0;
    for (const store::OutboxRow& row : rows) {
      count += test::Contains(row.body, "\"io.cofferdam." + name + "\"") ? 1 : 0;
    }
    return count;
  }
  size_t Logged(const std::string& name) const {
    size_t count = 0;
    for (const std::string& line : test::Lines(*test::ReadFile(records_))) {
      count += test::Contains(line, "\"name\":\"" + name + "\"") ? 1 : 0;
    }
    return count;
  }
  void BreakLog() {
    good_ = *test::ReadFile(records_);
    std::ofstream(records_, std::ios::trunc) << good_.substr(0, 10);
  }
  void MendLog() const { std::ofstream(records_, std::ios::trunc) << good_; }

  test::TempDir dir_;
  const std::string records_ = dir_ / "state/log/records";
  std::string good_;
  bool everybody_ = true;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<audit::Log> log_;
  std::unique_ptr<Events> events_;
};

TEST_F(EventsTest, WhatIsSaidIsToldAndLogged) {
  ASSERT_TRUE(events_->Say(Named("switch.on")).ok());
  EXPECT_EQ(Told("switch.on"), 1U);
  EXPECT_EQ(Logged("switch.on"), 1U);
  everybody_ = false;
  ASSERT_TRUE(events_->Say(Named("switch.off")).ok());
  EXPECT_EQ(Told("switch.off"), 0U) << "nobody wants to know";
  EXPECT_EQ(Logged("switch.off"), 1U);
}

TEST_F(EventsTest, WhatFailsIsNotSaidAgainUnlessItWasToBeKept) {
  BreakLog();
  EXPECT_FALSE(events_->Say(Named("key.created")).ok());
  EXPECT_FALSE(events_->SayOrKeep(Named("alert.rate")).ok());
  EXPECT_FALSE(events_->SayKept().ok()) << "the control";
  MendLog();
  ASSERT_TRUE(events_->SayKept().ok());
  ASSERT_TRUE(events_->SayKept().ok());
  EXPECT_EQ(Logged("key.created"), 0U);
  EXPECT_EQ(Logged("alert.rate"), 1U);
  EXPECT_EQ(Told("alert.rate"), 1U) << "and not with each attempt";
}

// The receivers come first: what they cannot be told is not in the log either, so that it is said again.
TEST_F(EventsTest, WhatCannotBeToldIsNotLoggedYet) {
  const std::string database = dir_ / "state/coffer.db";
  std::filesystem::rename(database, database + ".away");
  EXPECT_FALSE(events_->SayOrKeep(Named("alert.rate")).ok());
  EXPECT_FALSE(events_->SayKept().ok());
  EXPECT_EQ(Logged("alert.rate"), 0U);
  std::filesystem::rename(database + ".away", database);
  ASSERT_TRUE(test::WaitUntil([&] { return store_->Inspect().ok(); }, test::Seconds(5)));
  ASSERT_TRUE(events_->SayKept().ok());
  EXPECT_EQ(Told("alert.rate"), 1U);
  EXPECT_EQ(Logged("alert.rate"), 1U);
}

TEST_F(EventsTest, WhatIsTooMuchToKeepIsCounted) {
  BreakLog();
  for (size_t i = 0; i < kMost + 2; ++i) {
    EXPECT_FALSE(events_->SayOrKeep(Named("alert.rate")).ok());
  }
  MendLog();
  ASSERT_TRUE(events_->SayKept().ok());
  EXPECT_EQ(Logged("alert.rate"), kMost);
  EXPECT_EQ(Logged("events.lost"), 1U);
  EXPECT_TRUE(test::Contains(*test::ReadFile(records_), "\"count\":2"));
}

// One that no log takes does not hold up the others, nor the calls that wait for what is kept.
TEST_F(EventsTest, WhatCanNeverBeWrittenIsNotKeptForever) {
  audit::EventRecord huge = Named("alert.rate");
  huge.detail = {{"words", std::string(70'000, 'x')}};
  everybody_ = false;
  EXPECT_FALSE(events_->SayOrKeep(huge).ok());
  BreakLog();
  EXPECT_FALSE(events_->SayOrKeep(Named("switch.on")).ok());
  MendLog();
  EXPECT_TRUE(events_->SayKept().ok());
  EXPECT_EQ(Logged("switch.on"), 1U);
  EXPECT_EQ(Logged("alert.rate"), 0U);
  EXPECT_EQ(Logged("events.lost"), 1U);
}

}  // namespace
}  // namespace coffer::call
