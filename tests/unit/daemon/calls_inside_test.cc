// SPDX-License-Identifier: Apache-2.0
//
// What the gateway makes of a relay that was broken into: the test is the relay. Each bound beside a relay that keeps to it.
#include "daemon/calls_inside.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <future>
#include <mutex>
#include <thread>

#include "call/warden/protocol.h"
#include "tests/support/run.h"

namespace coffer::daemon {
namespace {

using call::InsideFrame;
using test::WaitUntil;

std::string CallFrame(uint64_t number, const std::string& tool = "greet",
                      const std::string& key = "key", const std::string& body = "{}") {
  InsideFrame frame;
  frame.kind = InsideFrame::Kind::kCall;
  frame.number = number;
  frame.tool = tool;
  frame.key = key;
  frame.body = body;
  return EncodeInsideFrame(frame);
}

std::string CancelFrame(uint64_t number) {
  InsideFrame frame;
  frame.kind = InsideFrame::Kind::kCancel;
  frame.number = number;
  return EncodeInsideFrame(frame);
}

class BrokenRelay : public ::testing::Test {
 protected:
  void Open(uint64_t most_calls = 100, RelayBounds bounds = {}) {
    Result<call::SocketPair> pair = call::MakeSocketPair(SOCK_STREAM);
    ASSERT_TRUE(pair.ok());
    relay_ = std::move(pair->second);
    call::ReadyCall outer;
    outer.request.identity.call_id = "outer";
    outer.run.tools = {"greet"};
    outer.run.tool_calls = most_calls;
    outer.run.envelope.limits.wall = std::chrono::hours(1);
    InnerWays ways;
    ways.begin = [this](const InnerCall& call) {
      const std::lock_guard lock(mutex_);
      begun_.push_back(call);
      return true;
    };
    ways.stop = [this](const std::string& id) {
      const std::lock_guard lock(mutex_);
      stopped_.push_back(id);
    };
    ways.hold = [this](size_t) -> std::shared_ptr<void> {
      if (!has_room_) {
        return nullptr;
      }
      auto room = std::make_shared<int>();
      const std::lock_guard lock(mutex_);
      rooms_.push_back(room);
      return room;
    };
    ways.idle = [] {};
    OnLoop([&] {
      calls_ = std::make_unique<CallsInside>(*loop_, shelf_, outer, std::move(pair->first), "{}",
                                             std::move(ways), bounds);
    });
  }
  ~BrokenRelay() override {
    OnLoop([&] { calls_.reset(); });
    loop_->Stop();
    thread_.join();
  }

  void OnLoop(const std::function<void()>& task) {
    std::promise<void> done;
    loop_->Post([&] {
      task();
      done.set_value();
    });
    done.get_future().wait();
  }
  void Runs(uint64_t number) {
    OnLoop([&] { calls_->Runs(number, "call " + std::to_string(number), {}); });
  }
  // Returns what tells whether the answer is still held.
  std::weak_ptr<void> End(uint64_t number, size_t bytes) {
    auto room = std::make_shared<int>();
    const std::weak_ptr<void> held = room;
    call::ToolReply reply;
    reply.stdout_text.assign(bytes, 'x');
    RelayFrame frame{call::EncodeInsideReplyFrame(number, reply), std::move(room)};
    OnLoop([&] { calls_->Ended(number, std::move(frame), Nanos(0)); });
    return held;
  }

  bool Send(const std::string& bytes) const {
    return ::send(relay_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(bytes.size());
  }
  // As much of it as the gateway reads; the return says how much.
  size_t SendAtOnce(std::string_view bytes) const {
    size_t sent = 0;
    while (sent < bytes.size()) {
      const ssize_t now = ::send(relay_.get(), bytes.data() + sent, bytes.size() - sent,
                                 MSG_NOSIGNAL | MSG_DONTWAIT);
      if (now > 0) {
        sent += static_cast<size_t>(now);
        continue;
      }
      pollfd writable{relay_.get(), POLLOUT, 0};
      if (::poll(&writable, 1, 300) != 1) {
        break;  // it is not read any more
      }
    }
    return sent;
  }
  // The next frame; none: the gateway has closed the socket, or says nothing for ten seconds.
  std::optional<InsideFrame> Next() {
    for (;;) {
      Result<std::optional<InsideFrame>> next = in_->Next();
      if (!next.ok() || *next) {
        return next.ok() ? std::move(*next) : std::nullopt;
      }
      std::array<char, 65536> piece;
      pollfd readable{relay_.get(), POLLIN, 0};
      const ssize_t got = ::poll(&readable, 1, 10'000) == 1
                              ? ::recv(relay_.get(), piece.data(), piece.size(), 0)
                              : 0;
      if (got <= 0) {
        return std::nullopt;
      }
      in_->Add({piece.data(), static_cast<size_t>(got)});
    }
  }
  bool IsClosed() {
    while (Next()) {
    }
    pollfd ended{relay_.get(), POLLIN, 0};
    char byte = 0;
    return ::poll(&ended, 1, 0) == 1 && ::recv(relay_.get(), &byte, 1, 0) <= 0;
  }

  size_t begun() {
    const std::lock_guard lock(mutex_);
    return begun_.size();
  }
  size_t stopped() {
    const std::lock_guard lock(mutex_);
    return stopped_.size();
  }
  bool HoldsRoom() {
    const std::lock_guard lock(mutex_);
    return std::any_of(rooms_.begin(), rooms_.end(),
                       [](const auto& one) { return !one.expired(); });
  }

  std::unique_ptr<net::Loop> loop_ = net::MakeLoop();
  std::thread thread_{[this] { loop_->Run(); }};
  call::ToolShelf shelf_{std::vector<std::string>()};
  UniqueFd relay_;
  std::optional<call::InsideFrameReader> in_{call::InsidePeer::kGateway};
  std::mutex mutex_;
  std::vector<InnerCall> begun_;
  std::vector<std::string> stopped_;
  std::vector<std::weak_ptr<void>> rooms_;
  std::atomic<bool> has_room_ = true;
  std::unique_ptr<CallsInside> calls_;
};

TEST_F(BrokenRelay, ThatDoesWhatRelaysDoIsAnswered) {
  Open();
  const std::optional<InsideFrame> tools = Next();
  ASSERT_TRUE(tools && tools->kind == InsideFrame::Kind::kTools);
  for (const uint64_t number : {1U, 2U, 9U}) {
    ASSERT_TRUE(Send(CallFrame(number)));
    ASSERT_TRUE(WaitUntil([&] { return begun() == (number == 9 ? 3 : number); }));
    EXPECT_EQ(begun_.back().request->identity.parent_id, "outer");
    const std::weak_ptr<void> held = End(number, size_t{4} << 20);
    const std::optional<InsideFrame> reply = Next();
    ASSERT_TRUE(reply && reply->kind == InsideFrame::Kind::kReply);
    EXPECT_EQ(reply->number, number);
    EXPECT_EQ(call::DecodeInsideReply(reply->body)->stdout_text.size(), size_t{4} << 20);
    EXPECT_TRUE(WaitUntil([&] { return held.expired(); }));
  }
  EXPECT_EQ(stopped(), 0U);
}

TEST_F(BrokenRelay, ThatSendsWhatNoRelaySendsIsCutOffAndItsCallsEnd) {
  const std::string good = CallFrame(2);
  std::string huge = good;
  huge[23] = '\x7f';
  const std::map<std::string, std::string> hostile = {
      {"bytes", std::string(1000, '\xff')},
      {"zeros", std::string(1000, '\0')},
      {"a length", huge},
      {"a reply for a call", call::EncodeInsideReplyFrame(1, {})},
      {"number 0", CallFrame(0)},
      {"a number again", CallFrame(1)},
      {"upper case", CallFrame(2, "Greet")},
      {"a path", CallFrame(2, "../greet")},
      {"no name", CallFrame(2, "")},
      {"no key", CallFrame(2, "greet", "")},
      {"five at once", CallFrame(2) + CallFrame(3) + CallFrame(4) + CallFrame(5)},
      {"a frame and then bytes", good + std::string(1000, 'x')},
  };
  for (const auto& [what, bytes] : hostile) {
    SCOPED_TRACE(what);
    begun_.clear();
    stopped_.clear();
    in_.emplace(call::InsidePeer::kGateway);
    Open();
    ASSERT_TRUE(Send(CallFrame(1)));
    ASSERT_TRUE(WaitUntil([&] { return begun() == 1; })) << "NO-CONTROL";
    Runs(1);
    ASSERT_TRUE(Send(bytes));
    EXPECT_TRUE(WaitUntil([&] { return stopped() == 1; })) << "OPEN: its call goes on";
    EXPECT_LE(begun(), 4U);
    // The end of what had begun is not told to a client; the relay hears it.
    const size_t running = begun();
    for (uint64_t number = 1; number <= running; ++number) {
      End(number, 10);
    }
    EXPECT_TRUE(IsClosed());
    OnLoop([&] { calls_.reset(); });
  }
}

TEST_F(BrokenRelay, ThatReadsTooSlowlyIsCutOffAndNothingIsHeldForIt) {
  RelayBounds bounds;
  bounds.pace = {std::chrono::seconds(4), 1 << 20};
  Open(100, bounds);
  std::vector<std::weak_ptr<void>> held;
  for (uint64_t number = 1; number <= 4; ++number) {
    ASSERT_TRUE(Send(CallFrame(number)));
    ASSERT_TRUE(WaitUntil([&] { return begun() == number; }));
  }
  Runs(4);
  for (uint64_t number = 1; number <= 3; ++number) {
    held.push_back(End(number, size_t{4} << 20));
  }
  const auto is_held = [&] {
    return std::any_of(held.begin(), held.end(), [](const auto& one) { return !one.expired(); });
  };
  EXPECT_TRUE(is_held()) << "NO-CONTROL";
  EXPECT_EQ(stopped(), 0U) << "NO-CONTROL";
  // A byte now and then is less than the pace.
  EXPECT_TRUE(WaitUntil(
      [&] {
        char byte = 0;
        (void)::recv(relay_.get(), &byte, 1, MSG_DONTWAIT);
        return !is_held();
      },
      test::Seconds(30)))
      << "OPEN: the gateway holds what is not read";
  EXPECT_TRUE(WaitUntil([&] { return stopped() == 1; }));
}

TEST_F(BrokenRelay, ThatDoesNotReadIsNotReadEither) {
  RelayBounds bounds;
  bounds.unread = 65536;
  bounds.frames = bounds.bytes = SIZE_MAX;  // only what is not read holds it up
  Open(0, bounds);
  constexpr uint64_t kFrames = 20'000;
  std::string flood;
  for (uint64_t number = 1; number <= kFrames; ++number) {
    flood += CallFrame(number);
  }
  const size_t sent = SendAtOnce(flood);
  EXPECT_LT(sent, flood.size()) << "OPEN: every frame was read, and its refusal waits in memory";
  // The same with a relay that reads: all of them are refused.
  std::thread rest([&] { EXPECT_TRUE(Send(flood.substr(sent))); });
  std::optional<InsideFrame> last;
  while ((last = Next()) && last->number != kFrames) {
  }
  rest.join();
  ASSERT_TRUE(last) << "NO-CONTROL";
  EXPECT_EQ(last->kind, InsideFrame::Kind::kRefusal);
  EXPECT_EQ(begun(), 0U);
}

TEST_F(BrokenRelay, ThatFloodsIsReadLater) {
  RelayBounds bounds;
  bounds.bytes = 1 << 20;
  Open(0, bounds);
  std::thread reader([this] {
    while (Next()) {
    }
  });
  std::string flood;
  for (uint64_t number = 1; number <= 4; ++number) {
    flood += CallFrame(number, "greet", "key", std::string(1 << 20, 'x'));
  }
  const auto began = std::chrono::steady_clock::now();
  EXPECT_TRUE(Send(flood));
  EXPECT_GT(std::chrono::steady_clock::now() - began, std::chrono::seconds(1))
      << "OPEN: 4 MiB were read at once";
  OnLoop([&] { calls_.reset(); });
  reader.join();
}

TEST_F(BrokenRelay, ThatCancelsAThousandTimesStopsACallOnce) {
  Open();
  ASSERT_TRUE(Send(CallFrame(1)));
  ASSERT_TRUE(WaitUntil([&] { return begun() == 1; }));
  Runs(1);
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(Send(CancelFrame(1) + CancelFrame(7)));
  }
  ASSERT_TRUE(Send(CallFrame(2)));
  ASSERT_TRUE(WaitUntil([&] { return begun() == 2; })) << "the frames before it were read";
  EXPECT_EQ(stopped(), 1U);
}

TEST_F(BrokenRelay, WhoseLongFramesHaveNoRoomIsReadWhenThereIsSome) {
  Open();
  has_room_ = false;
  const std::string frame = CallFrame(1, "greet", "key", std::string(1 << 20, 'x'));
  const size_t sent = SendAtOnce(frame);
  EXPECT_LT(sent, frame.size()) << "OPEN: the gateway holds what no tenant answers for";
  EXPECT_EQ(begun(), 0U);
  has_room_ = true;
  EXPECT_EQ(SendAtOnce(std::string_view(frame).substr(sent)), frame.size() - sent) << "NO-CONTROL";
  ASSERT_TRUE(WaitUntil([&] { return begun() == 1; })) << "NO-CONTROL";
  EXPECT_TRUE(HoldsRoom());
  // The call has it; a frame that never becomes whole has it until the relay is gone.
  OnLoop([&] { begun_.clear(); });
  EXPECT_FALSE(HoldsRoom());
  const std::string half = CallFrame(2, "greet", "key", std::string(1 << 20, 'x'));
  ASSERT_EQ(SendAtOnce(std::string_view(half).substr(0, 500'000)), 500'000U);
  EXPECT_TRUE(WaitUntil([&] { return HoldsRoom(); }));
  End(1, 10);
  relay_.Reset();
  EXPECT_TRUE(WaitUntil([&] { return !HoldsRoom(); }));
}

TEST_F(BrokenRelay, ThatHearsNothingAnyMoreIsCutOffAtOnce) {
  Open();
  for (const uint64_t number : {1U, 2U}) {
    ASSERT_TRUE(Send(CallFrame(number)));
    ASSERT_TRUE(WaitUntil([&] { return begun() == number; }));
  }
  Runs(2);
  ASSERT_EQ(::shutdown(relay_.get(), SHUT_RD), 0);
  EXPECT_EQ(stopped(), 0U) << "NO-CONTROL";
  End(1, 10);
  EXPECT_TRUE(WaitUntil([&] { return stopped() == 1; })) << "OPEN: its calls go on";
}

}  // namespace
}  // namespace coffer::daemon
