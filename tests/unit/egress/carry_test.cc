// SPDX-License-Identifier: Apache-2.0
#include "egress/carry.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <functional>
#include <future>
#include <thread>

namespace coffer::egress {
namespace {

constexpr size_t kBulk = size_t{8} << 20;
constexpr size_t kTook = size_t{64} * 1024;  // at a time, by a peer that reads

struct Pair {
  UniqueFd ours;   // what the proxy carries
  UniqueFd peers;  // what a test has
};

// Two ends of a TCP connection over the loopback.
Pair Connect() {
  const UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* name = reinterpret_cast<sockaddr*>(&address);
  EXPECT_EQ(::bind(listener.get(), name, size), 0);
  EXPECT_EQ(::listen(listener.get(), 1), 0);
  EXPECT_EQ(::getsockname(listener.get(), name, &size), 0);
  UniqueFd peers(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(::connect(peers.get(), name, size), 0);
  return {UniqueFd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC)), std::move(peers)};
}

// Bytes that are different at each place, so that a lost or doubled piece shows.
std::string Pattern(size_t size) {
  std::string made(size, '\0');
  uint64_t state = 88172645463325252ULL;
  for (char& byte : made) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    byte = static_cast<char>(state);
  }
  return made;
}

void SendAll(int fd, std::string_view data) {
  while (!data.empty()) {
    const ssize_t sent = ::send(fd, data.data(), data.size(), MSG_NOSIGNAL);
    if (sent <= 0) {
      return;
    }
    data.remove_prefix(static_cast<size_t>(sent));
  }
}

std::string ReadToEnd(int fd) {
  std::string all;
  std::string piece(kTook, '\0');
  for (;;) {
    const ssize_t got = ::recv(fd, piece.data(), piece.size(), 0);
    if (got <= 0) {
      return all;
    }
    all.append(piece, 0, static_cast<size_t>(got));
  }
}

// `text` with one byte of urgent data in its middle, which a reader that does not ask for it never sees.
void SendWithMark(int fd, std::string_view text) {
  SendAll(fd, text.substr(0, text.size() / 2));
  EXPECT_EQ(::send(fd, "!", 1, MSG_OOB | MSG_NOSIGNAL), 1);
  SendAll(fd, text.substr(text.size() / 2));
}

// A program and a server with the proxy between them, which carries on a thread of its own.
class CarryTest : public ::testing::Test {
 protected:
  // As the proxy's processes do: splice has no MSG_NOSIGNAL.
  void SetUp() override { ::signal(SIGPIPE, SIG_IGN); }
  void Start(size_t pipes = 16, ByteBudget* budget = nullptr) {
    pipes_.left = pipes;
    const auto plain = [this](UniqueFd fd) {
      net::Socket socket(executor_, net::asio::generic::stream_protocol(AF_INET, IPPROTO_TCP),
                         fd.Release());
      return std::make_unique<BufferedStream>(net::MakePlainStream(std::move(socket)));
    };
    a_ = plain(std::move(program_.ours));
    b_ = plain(std::move(server_.ours));
    if (budget != nullptr) {
      b_->Charge(*budget);
    }
    net::asio::co_spawn(
        executor_,
        [this]() -> net::Task<void> {
          co_await CarryBothWays(*a_, *b_, watchdog_, std::chrono::seconds(60), pipes_);
        },
        [this](std::exception_ptr) { loop_->Stop(); });
    carrying_ = std::thread([this] { loop_->Run(); });
  }
  void Join() {
    if (carrying_.joinable()) {
      carrying_.join();
    }
  }
  ~CarryTest() override {
    program_.peers.Reset();
    server_.peers.Reset();
    Join();
  }

  // What each of the two got from the other, if both send `text` and end.
  std::pair<std::string, std::string> Exchange(const std::string& text,
                                               void (*send)(int, std::string_view) = SendAll) {
    std::thread asking([&] {
      send(program_.peers.get(), text);
      ::shutdown(program_.peers.get(), SHUT_WR);
    });
    std::thread answering([&] {
      send(server_.peers.get(), text);
      ::shutdown(server_.peers.get(), SHUT_WR);
    });
    std::string by_server;
    std::thread reading([&] { by_server = ReadToEnd(server_.peers.get()); });
    std::string by_program = ReadToEnd(program_.peers.get());
    reading.join();
    asking.join();
    answering.join();
    Join();
    return {by_program, by_server};
  }

  // Of the thread that carries.
  std::chrono::nanoseconds CpuTime() {
    clockid_t clock{};
    timespec time{};
    EXPECT_EQ(::pthread_getcpuclockid(carrying_.native_handle(), &clock), 0);
    EXPECT_EQ(::clock_gettime(clock, &time), 0);
    return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
  }
  // On the loop.
  size_t PipesLeft() {
    std::promise<size_t> left;
    net::asio::post(executor_, [&] { left.set_value(pipes_.left); });
    return left.get_future().get();
  }

  Pair program_ = Connect();
  Pair server_ = Connect();
  const std::unique_ptr<net::Loop> loop_ = net::MakeLoop();
  const net::IoExecutor executor_ = net::IoExecutor::InTurns(net::ContextOf(*loop_));
  Watchdog watchdog_{executor_, [this] { loop_->Stop(); }};
  net::PipeAllowance pipes_{0};
  std::unique_ptr<BufferedStream> a_;
  std::unique_ptr<BufferedStream> b_;
  std::thread carrying_;
};

TEST_F(CarryTest, EveryByteArrivesBothWaysThroughPipes) {
  const std::string text = Pattern(kBulk);
  Start();
  const auto [by_program, by_server] = Exchange(text);
  EXPECT_TRUE(by_program == text) << by_program.size();
  EXPECT_TRUE(by_server == text) << by_server.size();
  EXPECT_EQ(b_->sent(), kBulk);
  EXPECT_EQ(b_->received(), kBulk);
  EXPECT_EQ(pipes_.left, 16U) << "a pipe was not given back";
}

TEST_F(CarryTest, WithoutAPipeBytesAreCopied) {
  const std::string text = Pattern(kBulk);
  Start(/*pipes=*/0);
  const auto [by_program, by_server] = Exchange(text);
  EXPECT_TRUE(by_program == text) << by_program.size();
  EXPECT_TRUE(by_server == text) << by_server.size();
  EXPECT_EQ(b_->sent(), kBulk);
  EXPECT_EQ(b_->received(), kBulk);
}

TEST_F(CarryTest, WithoutDescriptorsBytesAreCopied) {
  const std::string text = Pattern(kBulk);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  Start();
  const UniqueFd next(::dup(0));
  const rlimit none{static_cast<rlim_t>(next.get()), before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto [by_program, by_server] = Exchange(text);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(by_program == text) << by_program.size();
  EXPECT_TRUE(by_server == text) << by_server.size();
  EXPECT_EQ(pipes_.left, 16U);
}

// A little does not cost a pipe: a control for the tests that count them.
TEST_F(CarryTest, ADirectionWithMuchHasAPipe) {
  Start();
  const std::string text = Pattern(kBulk);
  std::thread sending([&] { SendAll(server_.peers.get(), text); });
  std::string got(kBulk, '\0');
  ASSERT_EQ(::recv(program_.peers.get(), got.data(), got.size(), MSG_WAITALL),
            static_cast<ssize_t>(kBulk));
  sending.join();
  EXPECT_EQ(PipesLeft(), 15U) << "the answer has one, the question has none";
}

// Bytes that leave never exceed the limit, also if they come in large pieces.
TEST_F(CarryTest, NoMoreLeavesThanTheBudget) {
  constexpr uint64_t kOut = uint64_t{3} << 20;
  ByteBudget budget(kOut, 0);
  Start(/*pipes=*/16, &budget);
  const std::string text = Pattern(kBulk);
  std::thread sending([&] { SendAll(program_.peers.get(), text); });
  const std::string got = ReadToEnd(server_.peers.get());
  sending.join();
  EXPECT_LE(got.size(), kOut);
  EXPECT_GT(got.size(), kOut / 2) << "ended long before the limit";
  EXPECT_TRUE(text.starts_with(got));
  EXPECT_TRUE(budget.Spent().has_value());
}

TEST_F(CarryTest, NoMoreComesInThanTheBudget) {
  constexpr uint64_t kIn = uint64_t{3} << 20;
  ByteBudget budget(0, kIn);
  Start(/*pipes=*/16, &budget);
  const std::string text = Pattern(kBulk);
  std::thread sending([&] { SendAll(server_.peers.get(), text); });
  const std::string got = ReadToEnd(program_.peers.get());
  EXPECT_LE(got.size(), kIn);
  EXPECT_GT(got.size(), kIn / 2) << "ended long before the limit";
  EXPECT_TRUE(text.starts_with(got));
  server_.peers.Reset();
  sending.join();
}

// A program that goes away in the middle of an answer ends the connection to the server, and its pipe is gone.
TEST_F(CarryTest, ATargetThatGoesAwayEndsBoth) {
  Start();
  const std::string text = Pattern(kBulk);
  std::thread sending([&] {
    SendAll(server_.peers.get(), text);
    SendAll(server_.peers.get(), text);
  });
  std::string some(kBulk / 2, '\0');
  ASSERT_EQ(::recv(program_.peers.get(), some.data(), some.size(), MSG_WAITALL),
            static_cast<ssize_t>(some.size()));
  program_.peers.Reset();
  sending.join();  // ends only because the server's connection is closed
  Join();
  EXPECT_EQ(pipes_.left, 16U);
}

// A direction that always has something to move lets other handlers of its boundary run after each piece.
TEST_F(CarryTest, ABulkTransferLetsOthersRun) {
  const std::string text = Pattern(kBulk);
  std::thread sending([&] {
    SendAll(program_.peers.get(), text);
    ::shutdown(program_.peers.get(), SHUT_WR);
  });
  Start();
  uint64_t seen = 0;
  uint64_t most = 0;  // bytes between two turns
  std::function<void()> again = [&] {
    most = std::max(most, b_->sent() - seen);
    seen = b_->sent();
    net::asio::post(executor_, again);
  };
  net::asio::post(executor_, [&] {
    seen = b_->sent();  // what went before this thread was ready
    net::asio::post(executor_, again);
  });
  std::thread reading([&] {
    EXPECT_EQ(ReadToEnd(server_.peers.get()).size(), kBulk);
    ::shutdown(server_.peers.get(), SHUT_WR);
  });
  sending.join();
  reading.join();
  Join();
  EXPECT_LE(most, uint64_t{1} << 20);
}

// splice stops at the mark of urgent data. Its direction is copied from there on, and nothing else is lost.
TEST_F(CarryTest, EveryByteBehindUrgentDataArrivesBothWays) {
  const std::string text = Pattern(kBulk);
  Start();
  const auto [by_program, by_server] = Exchange(text, SendWithMark);
  EXPECT_TRUE(by_program == text) << by_program.size();
  EXPECT_TRUE(by_server == text) << by_server.size();
  EXPECT_EQ(b_->sent(), kBulk);
  EXPECT_EQ(b_->received(), kBulk);
  EXPECT_EQ(pipes_.left, 16U);
}

// The same on a connection that stays open: the direction gives its pipe back and waits as any other.
TEST_F(CarryTest, UrgentDataCostsNoTime) {
  using std::chrono::milliseconds;
  const std::string text = Pattern(kBulk / 8);
  Start();
  SendAll(program_.peers.get(), text);
  std::string got(text.size(), '\0');
  const auto take = [&] {
    return ::recv(server_.peers.get(), got.data(), got.size(), MSG_WAITALL);
  };
  ASSERT_EQ(take(), static_cast<ssize_t>(got.size()));
  ASSERT_EQ(PipesLeft(), 15U) << "NO-CONTROL";
  const timeval limit{10, 0};
  ASSERT_EQ(::setsockopt(server_.peers.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)), 0);
  SendWithMark(program_.peers.get(), text);
  EXPECT_EQ(take(), static_cast<ssize_t>(got.size()));
  EXPECT_TRUE(got == text);
  const auto before = CpuTime();
  std::this_thread::sleep_for(milliseconds(400));
  EXPECT_LT(CpuTime() - before, milliseconds(100)) << "it turns round and round";
  EXPECT_EQ(PipesLeft(), 16U);
}

// A mark behind which nothing has come yet is waited at, and costs no time either.
TEST_F(CarryTest, AMarkWithNothingBehindItIsWaitedAt) {
  using std::chrono::milliseconds;
  const std::string text = Pattern(kBulk / 8);
  Start();
  SendAll(program_.peers.get(), text);
  std::string got(text.size(), '\0');
  const auto take = [&] {
    return ::recv(server_.peers.get(), got.data(), got.size(), MSG_WAITALL);
  };
  ASSERT_EQ(take(), static_cast<ssize_t>(got.size()));
  ASSERT_EQ(::send(program_.peers.get(), "!", 1, MSG_OOB), 1);
  const auto before = CpuTime();
  std::this_thread::sleep_for(milliseconds(400));
  EXPECT_LT(CpuTime() - before, milliseconds(100)) << "it turns round and round";
  SendAll(program_.peers.get(), text);
  EXPECT_EQ(take(), static_cast<ssize_t>(got.size()));
  EXPECT_TRUE(got == text);
}

// What was written of a piece whose target takes no more is counted: all that is in the buffers of the two sockets.
TEST_F(CarryTest, WhatIsWrittenOfATornPieceIsCounted) {
  Start();
  const std::string text = Pattern(kBulk);
  std::thread sending([&] {
    for (int i = 0; i < 4; ++i) {
      SendAll(program_.peers.get(), text);
    }
  });
  struct Counts {
    uint64_t sent = 0, received = 0;
    int queued = 0;  // by the proxy's socket
  };
  const auto look = [&] {
    std::promise<Counts> now;
    net::asio::post(executor_, [&] {
      Counts counts{b_->sent(), a_->received()};
      EXPECT_EQ(::ioctl(b_->stream().plain_socket()->native_handle(), TIOCOUTQ, &counts.queued), 0);
      now.set_value(counts);
    });
    return now.get_future().get();
  };
  Counts last;
  for (uint64_t before = 1; last.received == 0 || last.received != before;) {
    before = last.received;
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    last = look();
  }
  int arrived = 0;
  EXPECT_EQ(::ioctl(server_.peers.get(), FIONREAD, &arrived), 0);
  EXPECT_LT(last.sent, last.received) << "NO-CONTROL: no piece is torn";
  EXPECT_EQ(last.sent, static_cast<uint64_t>(last.queued) + static_cast<uint64_t>(arrived));
  server_.peers.Reset();
  sending.join();
}

}  // namespace
}  // namespace coffer::egress
