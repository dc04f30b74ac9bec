// SPDX-License-Identifier: Apache-2.0
#include "daemon/event_log.h"

#include <gtest/gtest.h>

namespace coffer::daemon {
namespace {

gateway::EventBatch All(EventLog& log) {
  gateway::EventBatch all;
  (void)log.Wait(0, 1 << 30,
                 [&](gateway::Answer<gateway::EventBatch> got) { all = std::move(got.value()); });
  return all;
}

// However many calls print, their logs together stay within the room, and a watcher is told that something is missing.
TEST(EventRoom, BoundsAllLogsTogether) {
  const auto room = std::make_shared<EventRoom>(10'000);
  EventLog small(room), loud(room);
  small.AddOutput(gateway::CallEvent::Kind::kStdout, "hello");
  for (int i = 0; i < 100; ++i) {
    loud.AddOutput(gateway::CallEvent::Kind::kStdout, std::string(1000, 'x'));
  }
  EXPECT_LE(small.bytes() + loud.bytes(), 10'000U);
  EXPECT_TRUE(All(loud).gap);
  EXPECT_EQ(All(small).events.front().data, "hello") << "the loud one pays";
  EXPECT_FALSE(All(small).gap);
}

TEST(EventRoom, WithoutOneNothingIsLost) {
  EventLog log;
  for (int i = 0; i < 100; ++i) {
    log.AddOutput(gateway::CallEvent::Kind::kStdout, std::string(1000, 'x'));
  }
  EXPECT_EQ(All(log).events.size(), 100U) << "the control";
  EXPECT_FALSE(All(log).gap);
}

TEST(EventRoom, ALogThatIsGoneGivesItsRoomBack) {
  const auto room = std::make_shared<EventRoom>(10'000);
  for (int i = 0; i < 10; ++i) {
    EventLog log(room);
    log.AddOutput(gateway::CallEvent::Kind::kStdout, std::string(4000, 'x'));
    log.AddOutput(gateway::CallEvent::Kind::kStdout, std::string(4000, 'x'));
    EXPECT_FALSE(All(log).gap) << i;
  }
}

}  // namespace
}  // namespace coffer::daemon
