// SPDX-License-Identifier: Apache-2.0
//
// Uploads into one session, all at the same time, stay within its size.
#include "daemon/session_space.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace coffer::daemon {
namespace {

constexpr uint64_t kMebibyte = 1ULL << 20;
constexpr SessionSpace::Room kMost{100 * kMebibyte, 1000};

TEST(SessionSpace, FiveAtOnceDoNotPassTheSize) {
  SessionSpace space;
  std::atomic<uint64_t> written = 0;
  std::vector<std::thread> uploads;
  for (int i = 0; i < 5; ++i) {
    uploads.emplace_back([&] {
      const auto part = space.Begin("s", kMost, {0, 0}, 0);
      for (int piece = 0; part != nullptr && piece < 60; ++piece) {
        if (!part->Grow(kMebibyte)) {
          return;
        }
        written += kMebibyte;
        std::this_thread::yield();
      }
      if (part != nullptr) {
        part->Keep();
      }
    });
  }
  for (std::thread& upload : uploads) {
    upload.join();
  }
  EXPECT_GT(written, 50 * kMebibyte);
  // What gave up gave back, so all together may have written more over time, never at once; so one more check:
  SessionSpace fresh;
  std::vector<std::unique_ptr<SessionSpace::Part>> parts;
  for (int i = 0; i < 5; ++i) {
    parts.push_back(fresh.Begin("s", kMost, {0, 0}, 60 * kMebibyte));
  }
  EXPECT_NE(parts[0], nullptr);
  for (int i = 1; i < 5; ++i) {
    EXPECT_EQ(parts[static_cast<size_t>(i)], nullptr);
  }
}

TEST(SessionSpace, WhatIsDiscardedIsGivenBackAndWhatIsKeptIsNot) {
  SessionSpace space;
  auto holds_open = space.Begin("s", kMost, {0, 0}, kMebibyte);
  ASSERT_NE(holds_open, nullptr);
  {
    const auto discarded = space.Begin("s", kMost, {0, 0}, 90 * kMebibyte);
  }
  auto kept = space.Begin("s", kMost, {0, 0}, 90 * kMebibyte);
  ASSERT_NE(kept, nullptr);
  kept->Keep();
  kept.reset();
  EXPECT_FALSE(holds_open->Grow(20 * kMebibyte)) << "the file that is there counts";
  EXPECT_TRUE(holds_open->Grow(5 * kMebibyte));
}

TEST(SessionSpace, FilesAreCountedToo) {
  SessionSpace space;
  EXPECT_EQ(space.Begin("s", kMost, {0, 1000}, 1), nullptr);
  const auto one = space.Begin("s", kMost, {0, 998}, 1);
  const auto two = space.Begin("s", kMost, {0, 998}, 1);
  EXPECT_NE(two, nullptr);
  EXPECT_EQ(space.Begin("s", kMost, {0, 998}, 1), nullptr);
  EXPECT_NE(space.Begin("another", kMost, {0, 998}, 1), nullptr);
}

}  // namespace
}  // namespace coffer::daemon
