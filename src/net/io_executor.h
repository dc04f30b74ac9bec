// SPDX-License-Identifier: Apache-2.0
//
// Where handlers of the loop run: on its thread, as soon as they are ready, or in turns with those of others.
//
// A line holds the handlers of one party, for example of one boundary. Lines that have something to
// do take turns: one long handler or a few short ones, then the next line, and the loop looks for
// new events in between. So a party with many connections holds up another one by a few turns for
// each of the other's events, however much it has ready. Without a line an executor is the loop's
// own.
//
// From any thread. A handler that is queued when the loop is destroyed is dropped.
#pragma once

#include <boost/asio/execution.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/io_context.hpp>
#include <deque>
#include <memory>
#include <utility>

namespace coffer::net {

// All lines of one loop.
class Turns : public boost::asio::execution_context::service {
 public:
  using key_type = Turns;
  inline static boost::asio::execution_context::id id;

  struct Job {
    virtual ~Job() = default;
    virtual void Run() = 0;
  };
  struct Line {
    std::deque<std::unique_ptr<Job>> jobs;
  };
  explicit Turns(boost::asio::execution_context& context);

  void Add(std::shared_ptr<Line> line, std::unique_ptr<Job> job);
  // A handler of this line runs now.
  bool IsAtTurn(const Line& line) const { return current_ == &line; }

 private:
  void shutdown() noexcept override;
  void RunTurn();
  void Continue();

  boost::asio::io_context& context_;
  std::deque<std::shared_ptr<Line>> waiting_;  // lines with jobs, each once
  const Line* current_ = nullptr;
  bool posted_ = false;
  bool over_ = false;
};

// Meets the requirements of an executor of Boost.Asio. Copies are equal.
class IoExecutor {
  using Inner = boost::asio::io_context::executor_type;
  using Blocking = boost::asio::execution::blocking_t;

 public:
  // Not explicit: an executor of the context is one without a line.
  // NOLINTNEXTLINE(google-explicit-constructor)
  IoExecutor(Inner inner) noexcept : inner_(std::move(inner)) {}
  // Asio copies executors, also where it moves what holds them.
  IoExecutor(const IoExecutor& other) = default;
  IoExecutor& operator=(const IoExecutor& other) = default;
  ~IoExecutor() = default;
  // With a line of its own, which it shares with its copies.
  static IoExecutor InTurns(boost::asio::io_context& context) {
    IoExecutor made(context.get_executor());
    made.turns_ = &boost::asio::use_service<Turns>(context);
    made.line_ = std::make_shared<Turns::Line>();
    return made;
  }

  bool operator==(const IoExecutor& other) const noexcept {
    return inner_ == other.inner_ && line_ == other.line_ && never_ == other.never_;
  }

  boost::asio::execution_context& query(boost::asio::execution::context_t) const noexcept {
    return inner_.context();
  }
  Blocking query(Blocking) const noexcept {
    return never_ ? Blocking(Blocking::never) : Blocking(Blocking::possibly);
  }
  IoExecutor require(Blocking::never_t) const noexcept { return With(/*never=*/true); }
  IoExecutor require(Blocking::possibly_t) const noexcept { return With(/*never=*/false); }

  template <typename Function>
  void execute(Function&& function) const {
    if (line_ == nullptr) {
      if (never_) {
        boost::asio::require(inner_, Blocking::never).execute(std::forward<Function>(function));
      } else {
        inner_.execute(std::forward<Function>(function));
      }
      return;
    }
    const bool on_loop = inner_.running_in_this_thread();
    if (on_loop && !never_ && turns_->IsAtTurn(*line_)) {
      std::decay_t<Function>(std::forward<Function>(function))();
      return;
    }
    std::unique_ptr<Turns::Job> job =
        std::make_unique<JobOf<std::decay_t<Function>>>(std::forward<Function>(function));
    if (on_loop) {
      turns_->Add(line_, std::move(job));
    } else {
      boost::asio::require(inner_, Blocking::never)
          .execute([turns = turns_, line = line_, job = std::move(job)]() mutable {
            turns->Add(std::move(line), std::move(job));
          });
    }
  }

 private:
  template <typename Function>
  struct JobOf : Turns::Job {
    explicit JobOf(Function given) : function(std::move(given)) {}
    void Run() override { std::move(function)(); }
    Function function;
  };

  IoExecutor With(bool never) const noexcept {
    IoExecutor other = *this;
    other.never_ = never;
    return other;
  }

  Inner inner_;
  Turns* turns_ = nullptr;  // lives as long as the context
  std::shared_ptr<Turns::Line> line_;
  bool never_ = false;  // never inside the caller, also if it is on the loop
};

}  // namespace coffer::net
