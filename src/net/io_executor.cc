// SPDX-License-Identifier: Apache-2.0
#include "net/io_executor.h"

#include <boost/asio/post.hpp>
#include <chrono>

namespace coffer::net {
namespace {

// Room for a few short handlers. A long one has a turn of its own.
constexpr std::chrono::microseconds kTurn{50};

}  // namespace

Turns::Turns(boost::asio::execution_context& context)
    : boost::asio::execution_context::service(context),
      context_(static_cast<boost::asio::io_context&>(context)) {}

void Turns::Add(std::shared_ptr<Line> line, std::unique_ptr<Job> job) {
  if (over_) {
    return;
  }
  line->jobs.push_back(std::move(job));
  if (line->jobs.size() == 1 && current_ != line.get()) {
    waiting_.push_back(std::move(line));
  }
  Continue();
}

// One turn for each post: behind it the loop looks for events.
void Turns::Continue() {
  if (!posted_ && !waiting_.empty()) {
    posted_ = true;
    boost::asio::post(context_, [this] { RunTurn(); });
  }
}

void Turns::RunTurn() {
  posted_ = false;
  if (waiting_.empty()) {
    return;
  }
  const std::shared_ptr<Line> line = std::move(waiting_.front());
  waiting_.pop_front();
  current_ = line.get();
  const auto until = std::chrono::steady_clock::now() + kTurn;
  do {
    const std::unique_ptr<Job> job = std::move(line->jobs.front());
    line->jobs.pop_front();
    job->Run();
  } while (!line->jobs.empty() && std::chrono::steady_clock::now() < until);
  current_ = nullptr;
  if (!line->jobs.empty()) {
    waiting_.push_back(line);
  }
  Continue();
}

void Turns::shutdown() noexcept {
  over_ = true;
  // A job that is dropped may hold the last copy of an executor, and so of a line.
  for (const std::deque<std::shared_ptr<Line>> lines = std::exchange(waiting_, {});
       const std::shared_ptr<Line>& line : lines) {
    const std::deque<std::unique_ptr<Job>> jobs = std::exchange(line->jobs, {});
  }
}

}  // namespace coffer::net
