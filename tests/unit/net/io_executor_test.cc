// SPDX-License-Identifier: Apache-2.0
//
// Turns between lines of handlers: in which order they run, and that events of others are seen in between. What is long is made
// long with the clock: a handler that spins for a whole turn.
#include "net/io_executor.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "net/asio.h"

namespace coffer::net {
namespace {

void SpinForATurn() {
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(1);
  while (std::chrono::steady_clock::now() < until) {
  }
}

class IoExecutorTest : public ::testing::Test {
 protected:
  void Run() {
    context_->restart();
    context_->run();
  }
  // Notes its name, after a long time of its own.
  void PostLong(const IoExecutor& to, const std::string& name) {
    asio::post(to, [this, name] {
      SpinForATurn();
      ran_.push_back(name);
    });
  }

  std::unique_ptr<asio::io_context> context_ = std::make_unique<asio::io_context>(1);
  std::vector<std::string> ran_;
};

TEST_F(IoExecutorTest, AManyAndAFewTakeTurns) {
  const IoExecutor many = IoExecutor::InTurns(*context_);
  const IoExecutor few = IoExecutor::InTurns(*context_);
  for (int i = 0; i < 4; ++i) {
    PostLong(many, "many");
  }
  PostLong(few, "few");
  PostLong(few, "few");
  Run();
  EXPECT_EQ(ran_, (std::vector<std::string>{"many", "few", "many", "few", "many", "many"}));

  // The control: on the loop's own executor they run in the order they came in.
  ran_.clear();
  const IoExecutor loop = context_->get_executor();
  for (int i = 0; i < 4; ++i) {
    PostLong(loop, "many");
  }
  PostLong(loop, "few");
  Run();
  EXPECT_EQ(ran_.back(), "few") << "NO-CONTROL";
}

TEST_F(IoExecutorTest, ShortHandlersShareATurn) {
  const IoExecutor one = IoExecutor::InTurns(*context_);
  const IoExecutor other = IoExecutor::InTurns(*context_);
  // A busy machine may take a turn's time between two of them.
  bool shared = false;
  for (int i = 0; i < 100 && !shared; ++i) {
    ran_.clear();
    asio::post(one, [this] { ran_.emplace_back("one"); });
    asio::post(one, [this] { ran_.emplace_back("one"); });
    asio::post(other, [this] { ran_.emplace_back("other"); });
    Run();
    shared = ran_ == std::vector<std::string>{"one", "one", "other"};
  }
  EXPECT_TRUE(shared);
}

// What becomes ready while others wait for their turn: the loop looks for it between two turns.
TEST_F(IoExecutorTest, EventsAreSeenBetweenTurns) {
  const IoExecutor many = IoExecutor::InTurns(*context_);
  const IoExecutor few = IoExecutor::InTurns(*context_);
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  Socket socket(few);
  socket.assign(asio::generic::stream_protocol(AF_UNIX, 0), ends[0]);
  char byte = 0;
  socket.async_read_some(asio::buffer(&byte, 1),
                         [this](error_code, size_t) { ran_.emplace_back("few"); });
  asio::post(many, [this, far = ends[1]] {
    ASSERT_EQ(::write(far, "x", 1), 1);
    SpinForATurn();
    ran_.emplace_back("many");
  });
  for (int i = 0; i < 8; ++i) {
    PostLong(many, "many");
  }
  Run();
  ::close(ends[1]);
  ASSERT_EQ(ran_.size(), 10U);
  // Behind the turn in which it came, the one that was posted already, and the one before which it was seen.
  const auto place = std::find(ran_.begin(), ran_.end(), "few") - ran_.begin();
  EXPECT_LE(place, 3) << ::testing::PrintToString(ran_);
}

TEST_F(IoExecutorTest, InsideItsOwnTurnItRunsAtOnce) {
  const IoExecutor line = IoExecutor::InTurns(*context_);
  const IoExecutor other = IoExecutor::InTurns(*context_);
  asio::post(line, [&] {
    asio::dispatch(line, [this] { ran_.emplace_back("own"); });
    asio::dispatch(other, [this] { ran_.emplace_back("other's"); });
    asio::post(line, [this] { ran_.emplace_back("posted"); });
    ran_.emplace_back("after");
  });
  Run();
  ASSERT_EQ(ran_.size(), 4U);
  EXPECT_EQ(ran_[0], "own");
  EXPECT_EQ(ran_[1], "after");
}

TEST_F(IoExecutorTest, AnotherThreadMayPost) {
  const IoExecutor line = IoExecutor::InTurns(*context_);
  const auto guard = asio::make_work_guard(*context_);
  const std::thread::id own = std::this_thread::get_id();
  std::vector<std::thread> others;
  int count = 0;
  for (int i = 0; i < 4; ++i) {
    others.emplace_back([&] {
      for (int j = 0; j < 100; ++j) {
        asio::post(line, [&] {
          EXPECT_EQ(std::this_thread::get_id(), own);
          if (++count == 400) {
            context_->stop();
          }
        });
      }
    });
  }
  Run();
  for (std::thread& other : others) {
    other.join();
  }
  EXPECT_EQ(count, 400);
}

// As the loop's own does it: no handler runs, and what it holds is dropped.
TEST_F(IoExecutorTest, WhatIsQueuedEndsWithTheLoop) {
  auto held = std::make_shared<int>(0);
  {
    const IoExecutor line = IoExecutor::InTurns(*context_);
    asio::post(line, [this] { context_->stop(); });
    // It holds its own line.
    asio::post(line, [this, held, line] { ran_.emplace_back("ran"); });
    asio::post(*context_, [this, held, line] {
      asio::post(line, [this, held, line] { ran_.emplace_back("ran"); });
    });
  }
  for (int i = 0; i < 3; ++i) {
    context_->run_one();  // until all are in the line, before its turn
  }
  EXPECT_GT(held.use_count(), 1) << "NO-CONTROL";
  context_.reset();
  EXPECT_EQ(held.use_count(), 1);
  EXPECT_TRUE(ran_.empty());
}

}  // namespace
}  // namespace coffer::net
