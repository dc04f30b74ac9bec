// SPDX-License-Identifier: Apache-2.0
#include "base/passed_fds.h"

#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <string_view>

namespace coffer {
namespace {

struct Pair {
  UniqueFd ours;
  UniqueFd theirs;
};

Pair MakePair() {
  int ends[2] = {-1, -1};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

ino_t InodeOf(int fd) {
  struct stat info{};
  EXPECT_EQ(::fstat(fd, &info), 0);
  return info.st_ino;
}

std::span<const std::byte> BytesOf(std::string_view text) { return std::as_bytes(std::span(text)); }

TEST(PassedFds, ArriveInOrderWithTheirMessage) {
  const Pair pair = MakePair();
  const std::array<int, 2> given = {pair.ours.get(), pair.theirs.get()};
  ASSERT_EQ(SendWithFds(pair.ours.get(), BytesOf("abc"), given), 3);
  std::array<char, 8> room{};
  const MessageWithFds came =
      ReceiveWithFds(pair.theirs.get(), std::as_writable_bytes(std::span(room)));
  EXPECT_EQ(came.got, 3);
  EXPECT_FALSE(came.cut);
  EXPECT_EQ(std::string_view(room.data()), "abc");
  ASSERT_EQ(came.fds.size(), 2U);
  for (size_t i = 0; i < given.size(); ++i) {
    EXPECT_EQ(InodeOf(came.fds[i].get()), InodeOf(given[i]));
    EXPECT_EQ(::fcntl(came.fds[i].get(), F_GETFD), FD_CLOEXEC);
  }
}

TEST(PassedFds, AMessageMayBringNone) {
  const Pair pair = MakePair();
  ASSERT_EQ(SendPassedFds(pair.ours.get(), 'x', {}), 0);
  const PassedFds came = ReceivePassedFds(pair.theirs.get());
  EXPECT_EQ(came.got, 1);
  EXPECT_EQ(came.word, 'x');
  EXPECT_TRUE(came.fds.empty());
}

TEST(PassedFds, MoreThanTheRoomAreNotSent) {
  const Pair pair = MakePair();
  std::array<int, kMostPassedFds + 1> given{};
  EXPECT_EQ(SendWithFds(pair.ours.get(), BytesOf("a"), given), -EINVAL);
}

TEST(PassedFds, WhatHasNoRoomIsSaidToBeCut) {
  const Pair pair = MakePair();
  std::array<char, 2> room{};
  ASSERT_EQ(SendWithFds(pair.ours.get(), BytesOf("abc"), {}), 3);
  EXPECT_TRUE(ReceiveWithFds(pair.theirs.get(), std::as_writable_bytes(std::span(room))).cut);

  // A peer of our own program sends no more than the room; one that was broken into does.
  constexpr size_t kMany = 3 * kMostPassedFds;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMany * sizeof(int))> control{};
  char word = 'a';
  iovec part{&word, 1};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  cmsghdr* const rights = CMSG_FIRSTHDR(&header);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(kMany * sizeof(int));
  std::array<int, kMany> given{};
  given.fill(pair.ours.get());
  memcpy(CMSG_DATA(rights), given.data(), sizeof(given));
  ASSERT_EQ(::sendmsg(pair.ours.get(), &header, 0), 1);
  const MessageWithFds came =
      ReceiveWithFds(pair.theirs.get(), std::as_writable_bytes(std::span(room)));
  EXPECT_TRUE(came.cut);
  EXPECT_GE(came.fds.size(), kMostPassedFds) << "they are open, so they are owned";
}

TEST(PassedFds, WithoutAMessageItIsSaidWhy) {
  Pair pair = MakePair();
  EXPECT_EQ(ReceivePassedFds(pair.theirs.get(), MSG_DONTWAIT).got, -EAGAIN);
  pair.ours.Reset();
  EXPECT_EQ(ReceivePassedFds(pair.theirs.get()).got, 0);
  EXPECT_EQ(SendPassedFds(pair.theirs.get(), 'x', {}), -EPIPE);
}

}  // namespace
}  // namespace coffer
