// SPDX-License-Identifier: Apache-2.0
//
// Retries with one Idempotency-Key: the call runs once, whoever asks, however often, before and after a restart.
#include <gtest/gtest.h>

#include <fstream>
#include <mutex>
#include <thread>

#include "tests/daemon/daemon.h"
#include "tests/support/tools_fixture.h"

namespace coffer::test {
namespace {

constexpr int kRetries = 14;
constexpr const char* kKey = "Idempotency-Key: storm\r\n";

size_t Runs(const Daemon& daemon, const std::string& session) {
  return Lines(ReadFile(daemon.Workspace(session) + "/began").value_or("")).size();
}

TEST(Retries, OfOneKeyRunTheCallOnce) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  const std::string session = daemon.NewSession(daemon.key());
  const Json call = Bash(WaitForGo() + "; echo done $RANDOM$RANDOM", session);

  std::mutex mutex;
  std::vector<HttpAnswer> answers;
  std::vector<std::thread> askers;
  for (int i = 0; i < kRetries; ++i) {
    askers.emplace_back([&] {
      HttpAnswer answer = daemon.Call(daemon.key(), call, kKey);
      const std::lock_guard lock(mutex);
      answers.push_back(std::move(answer));
    });
  }
  // All but the one that runs are told so while it runs; only then it may end.
  const bool refused = WaitUntil([&] {
    const std::lock_guard lock(mutex);
    return answers.size() == kRetries - 1;
  });
  EXPECT_EQ(daemon.Ask("PUT", "/v1/sessions/" + session + "/files/go", daemon.key(), "x").status,
            201);
  for (std::thread& asker : askers) {
    asker.join();
  }
  ASSERT_TRUE(refused) << answers.size() << " were answered before the call ended";
  for (int i = 0; i < kRetries - 1; ++i) {
    EXPECT_EQ(answers[static_cast<size_t>(i)].status, 409) << answers[static_cast<size_t>(i)].text;
  }
  const HttpAnswer first = answers.back();
  ASSERT_EQ(first.status, 200) << first.text;
  EXPECT_EQ(first.Outcome(), "success");
  EXPECT_EQ(Runs(daemon, session), 1U);

  // Now its answer is there for everyone who asks with the key, and for nobody who asks for something else.
  const auto expect_stored = [&] {
    const HttpAnswer again = daemon.Call(daemon.key(), call, kKey);
    EXPECT_EQ(again.status, 200);
    EXPECT_EQ(again.body, first.body);
    EXPECT_EQ(again.Field("Idempotency-Replayed"), "true");
    const HttpAnswer other = daemon.Call(daemon.key(), Bash("echo other", session), kKey);
    EXPECT_EQ(other.status, 422) << other.text;
    EXPECT_EQ(Runs(daemon, session), 1U);
  };
  expect_stored();
  EXPECT_EQ(daemon.Stop(), 0) << daemon.Said();
  ASSERT_TRUE(daemon.Start());
  expect_stored();

  // The control: without the key, and with another one, it runs.
  EXPECT_EQ(daemon.Call(daemon.key(), call).Outcome(), "success");
  EXPECT_EQ(Runs(daemon, session), 2U);
  const HttpAnswer fresh = daemon.Call(daemon.key(), call, "Idempotency-Key: other\r\n");
  EXPECT_EQ(fresh.Field("Idempotency-Replayed"), "");
  EXPECT_NE(fresh.body, first.body);
  EXPECT_EQ(Runs(daemon, session), 3U);
}

// Without a key a request that comes twice would run twice.
TEST(Retries, WhatCannotBeTakenBackNeedsAKey) {
  Daemon daemon;
  std::ofstream(daemon.tools() + "/send.toml")
      << IrreversibleToolText("send", "echo sent $RANDOM$RANDOM");
  ASSERT_TRUE(daemon.Start());
  const Json call = {{"tool", "send"}, {"args", Json::object()}};
  const HttpAnswer refused = daemon.Call(daemon.key(), call);
  EXPECT_EQ(refused.DeniedBy(), "policy.idempotency") << "OPEN: " << refused.text;
  const HttpAnswer first = daemon.Call(daemon.key(), call, kKey);
  EXPECT_EQ(first.Outcome(), "success") << "NO-CONTROL: " << first.text;
  const HttpAnswer again = daemon.Call(daemon.key(), call, kKey);
  EXPECT_EQ(again.body, first.body) << "OPEN: it ran again";
  const HttpAnswer other = daemon.Call(daemon.key(), call, "Idempotency-Key: other\r\n");
  EXPECT_EQ(other.Outcome(), "success") << other.text;
  EXPECT_NE(other.body["result"], first.body["result"]) << "NO-CONTROL";
}

}  // namespace
}  // namespace coffer::test
