// SPDX-License-Identifier: Apache-2.0
#include "isolation/netlink_request.h"

#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <utility>

namespace coffer::isolation {
namespace {

class Pair {
 public:
  Pair() { ::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends_); }
  ~Pair() {
    ::close(ends_[0]);
    ::close(ends_[1]);
  }
  int ours() const { return ends_[0]; }
  int kernels() const { return ends_[1]; }
  void Answer(int error) const {
    struct {
      nlmsghdr head;
      nlmsgerr body;
    } answer{};
    answer.head.nlmsg_len = sizeof(answer);
    answer.head.nlmsg_type = NLMSG_ERROR;
    answer.body.error = error;
    (void)!::write(ends_[1], &answer, sizeof(answer));
  }

 private:
  int ends_[2] = {-1, -1};
};

TEST(NetlinkRequest, MessagesAndAttributesHaveTheirLengths) {
  Pair pair;
  pair.Answer(0);
  NetlinkRequest request;
  request.Begin(7, NLM_F_ACK, "head");
  request.Add(1, "abc");
  const size_t nested = request.BeginNested(2);
  request.AddBigEndian(3, 0x01020304);
  request.EndNested(nested);
  request.Begin(8, 0, "");
  ASSERT_TRUE(request.Send(pair.ours(), "test").ok());
  char bytes[256];
  const ssize_t got = ::read(pair.kernels(), bytes, sizeof(bytes));
  ASSERT_EQ(got, 16 + 4 + 8 + 4 + 8 + 16);
  nlmsghdr first;
  memcpy(&first, bytes, sizeof(first));
  EXPECT_EQ(first.nlmsg_len, 40u);
  EXPECT_EQ(first.nlmsg_type, 7);
  EXPECT_EQ(first.nlmsg_flags, NLM_F_REQUEST | NLM_F_ACK);
  EXPECT_EQ(std::string(bytes + 16, 4), "head");
  EXPECT_EQ(std::string(bytes + 24, 4), std::string("abc\0", 4)) << "padded";
  nlattr outer;
  memcpy(&outer, bytes + 28, sizeof(outer));
  EXPECT_EQ(outer.nla_len, 12);
  EXPECT_EQ(outer.nla_type, 2 | NLA_F_NESTED);
  EXPECT_EQ(std::string(bytes + 36, 4), "\x01\x02\x03\x04");
}

TEST(NetlinkRequest, AnErrorOrNoAnswerIsAFailure) {
  for (const int error : {-EPERM, -EOPNOTSUPP}) {
    Pair pair;
    pair.Answer(0);
    pair.Answer(error);
    NetlinkRequest request;
    request.Begin(7, NLM_F_ACK, "");
    const Status sent = request.Send(pair.ours(), "test");
    ASSERT_FALSE(sent.ok());
    EXPECT_EQ(sent.error().sys_errno, -error);
  }
  Pair silent;
  ASSERT_EQ(::fcntl(silent.ours(), F_SETFL, O_NONBLOCK), 0);
  NetlinkRequest request;
  request.Begin(7, NLM_F_ACK, "");
  EXPECT_FALSE(request.Send(silent.ours(), "test").ok());
}

TEST(NetlinkRequest, AListIsReadToItsEnd) {
  const Pair pair;
  ASSERT_EQ(::write(pair.kernels(), "first part, ", 12), 12);
  ASSERT_EQ(::write(pair.kernels(), "second", 6), 6);
  NetlinkRequest request;
  request.Begin(7, NLM_F_DUMP, "");
  const Result<std::string> list = request.Ask(pair.ours(), "test");
  ASSERT_TRUE(list.ok()) << list.error().message;
  EXPECT_EQ(*list, "first part, second");
}

TEST(NetlinkRequest, AListThatIsRefusedOrDoesNotComeIsAFailure) {
  const Pair refused;
  refused.Answer(-EPERM);
  const Pair silent;
  for (const auto& [pair, error] : {std::pair(&refused, EPERM), std::pair(&silent, EAGAIN)}) {
    NetlinkRequest request;
    request.Begin(7, NLM_F_DUMP, "");
    const Result<std::string> list = request.Ask(pair->ours(), "test");
    ASSERT_FALSE(list.ok());
    EXPECT_EQ(list.error().sys_errno, error);
  }
}

}  // namespace
}  // namespace coffer::isolation
