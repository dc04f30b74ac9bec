// SPDX-License-Identifier: Apache-2.0
#include "limits/queue_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <string>

#include "base/unique_fd.h"

namespace coffer::limits {
namespace {

struct Pair {
  explicit Pair(int type) {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends.data()), 0);
    sender = UniqueFd(ends[0]);
    receiver = UniqueFd(ends[1]);
  }
  UniqueFd sender;
  UniqueFd receiver;
};

TEST(QueueMemory, WhatALivingSenderSentCountsForIt) {
  const Pair pair(SOCK_STREAM);
  EXPECT_EQ(MeasureSocket(pair.sender.get()).bytes, 0U) << "the control: nothing was sent";
  ASSERT_EQ(::send(pair.sender.get(), "x", 1, 0), 1);
  EXPECT_GT(MeasureSocket(pair.sender.get()).bytes, 0U);
  EXPECT_EQ(MeasureSocket(pair.sender.get()).family, AF_UNIX);
  EXPECT_FALSE(MeasureSocket(pair.receiver.get()).unread_from_closed);
}

TEST(QueueMemory, AClosedSenderIsKnownBehindAnEmptyMessage) {
  for (const int type : {SOCK_STREAM, SOCK_SEQPACKET}) {
    Pair pair(type);
    if (type != SOCK_STREAM) {
      ASSERT_EQ(::send(pair.sender.get(), "", 0, 0), 0);
    }
    ASSERT_EQ(::send(pair.sender.get(), "x", 1, 0), 1);
    pair.sender.Reset();
    EXPECT_TRUE(MeasureSocket(pair.receiver.get()).unread_from_closed) << type;
  }
  Pair read(SOCK_STREAM);
  read.sender.Reset();
  EXPECT_FALSE(MeasureSocket(read.receiver.get()).unread_from_closed) << "nothing is unread";
}

TEST(QueueMemory, APipeIsFullOrEmpty) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const UniqueFd from(ends[0]);
  const UniqueFd to(ends[1]);
  EXPECT_EQ(MeasurePipe(from.get()).bytes, 0U);
  ASSERT_EQ(::write(to.get(), "x", 1), 1);
  EXPECT_EQ(MeasurePipe(from.get()).bytes, static_cast<uint64_t>(::fcntl(to.get(), F_GETPIPE_SZ)));
}

TEST(QueueMemory, WhatCannotBeAskedIsChargedInFull) {
  EXPECT_GE(MostOfAQueue(), 1U << 20);
  EXPECT_EQ(MeasurePipe(-1).bytes, MostOfAQueue());
  EXPECT_EQ(MeasureSocket(-1).bytes, MostOfAQueue());
  EXPECT_FALSE(MeasureSocket(-1).holds_nothing);
}

TEST(QueueMemory, AShadowHoldsNothing) {
  const Pair pair(SOCK_STREAM);
  const std::string path = "/proc/self/fd/" + std::to_string(pair.sender.get());
  const UniqueFd shadow(::open(path.c_str(), O_PATH | O_CLOEXEC));
  ASSERT_TRUE(shadow);
  EXPECT_TRUE(MeasureSocket(shadow.get()).holds_nothing);
  EXPECT_FALSE(MeasureSocket(pair.sender.get()).holds_nothing);
}

}  // namespace
}  // namespace coffer::limits
