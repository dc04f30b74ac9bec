// SPDX-License-Identifier: Apache-2.0
#include "egress/peer_watch.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/unique_fd.h"

namespace coffer::egress {
namespace {

constexpr Nanos kGrace = std::chrono::milliseconds(50);
constexpr Nanos kLong = std::chrono::seconds(30);

// A stream with our end of a pair, and the program's.
class PeerWatchTest : public ::testing::Test {
 protected:
  void SetUp() override {
    int pair[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    program_ = UniqueFd(pair[1]);
    net::Socket socket(net::ContextOf(*loop_).get_executor());
    net::error_code error;
    socket.assign(net::asio::generic::stream_protocol(AF_UNIX, 0), pair[0], error);
    ASSERT_FALSE(error);
    stream_ = net::MakePlainStream(std::move(socket));
  }
  // How often `gone` ran: at most `longest` for the first time, and a few graces for more.
  int TimesGone(Nanos longest) {
    int told = 0;
    Watchdog end(net::ContextOf(*loop_).get_executor(), [&] { loop_->Stop(); });
    PeerWatch watch(net::ContextOf(*loop_).get_executor(), *stream_, kGrace, [&] {
      ++told;
      end.Within(3 * kGrace);
    });
    end.Within(longest);
    loop_->Run();
    EXPECT_EQ(watch.gone(), told > 0);
    return told;
  }

  std::unique_ptr<net::Loop> loop_ = net::MakeLoop();
  std::unique_ptr<net::Stream> stream_;
  UniqueFd program_;
};

TEST_F(PeerWatchTest, AProgramThatClosedIsGoneOnce) {
  program_.Reset();
  EXPECT_EQ(TimesGone(kLong), 1);
}

TEST_F(PeerWatchTest, OneThatSentMoreBeforeIsGoneToo) {
  ASSERT_EQ(::write(program_.get(), "next", 4), 4);
  program_.Reset();
  EXPECT_EQ(TimesGone(kLong), 1);
}

TEST_F(PeerWatchTest, OneThatIsThereIsNot) {
  ASSERT_EQ(::write(program_.get(), "next", 4), 4);
  EXPECT_EQ(TimesGone(10 * kGrace), 0);
}

}  // namespace
}  // namespace coffer::egress
