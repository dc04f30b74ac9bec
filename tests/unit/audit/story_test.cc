// SPDX-License-Identifier: Apache-2.0
#include "audit/story.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

#include "audit/receipt.h"

namespace coffer::audit {
namespace {

using std::chrono::milliseconds;

// Times of day in milliseconds, steps in microseconds since the boundary was made: told in one order, and never backwards.
TEST(Story, TimesAreInOrder) {
  Receipt receipt;
  receipt.identity.call_id = "x";
  receipt.outcome = "success";
  receipt.requested_at = milliseconds(1000);
  receipt.started_at = milliseconds(1171);
  receipt.finished_at = milliseconds(1271);
  receipt.steps_us = {{"start", 62692},
                      {"ready", 100597},
                      {"reading the call", 116176},
                      {"running", 144119},
                      {"done", 272152}};
  const Result<std::string> story = TellStory(FormatReceipt(receipt), "sealed");
  ASSERT_TRUE(story.ok()) << story.error().message;
  std::vector<double> times;
  for (size_t at = story->find('+'); at != std::string::npos; at = story->find('+', at + 1)) {
    times.push_back(std::atof(story->c_str() + at));
  }
  ASSERT_GE(times.size(), 7U) << *story;
  for (size_t i = 1; i < times.size(); ++i) {
    EXPECT_LE(times[i - 1], times[i]) << *story;
  }
  EXPECT_LT(story->find("ready"), story->find("launched")) << "it is launched when it is ready";
  EXPECT_LT(story->find("launched"), story->find("running"));
  EXPECT_GT(story->find("ended and sealed"), story->find("done"));
}

}  // namespace
}  // namespace coffer::audit
