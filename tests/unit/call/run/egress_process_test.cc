// SPDX-License-Identifier: Apache-2.0
//
// The supervisor's side of an egress role that stops on the way: the test is the role.
#include "call/run/egress_process.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string_view>
#include <thread>

#include "base/passed_fds.h"

namespace coffer::call {
namespace {

constexpr Nanos kLong = std::chrono::hours(1);

class EgressProcessTest : public ::testing::Test {
 protected:
  void SetUp() override {
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    door_ = UniqueFd(ends[0]);
    role_ = UniqueFd(ends[1]);
  }
  // Asks, and takes the call as the role.
  EgressProcess Ask(Nanos patience) {
    Result<EgressProcess> asked = EgressProcess::Ask(door_.get(), EgressOrder(), patience);
    EXPECT_TRUE(asked.ok());
    PassedFds received = ReceivePassedFds(role_.get(), MSG_DONTWAIT);
    EXPECT_EQ(received.fds.size(), 3U);
    control_ = received.fds.empty() ? UniqueFd() : std::move(received.fds[0]);
    return std::move(asked).value();
  }
  void Say(std::string_view message) const {
    ASSERT_EQ(::send(control_.get(), message.data(), message.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(message.size()));
  }
  static std::string CodeOf(const Result<std::string>& result) {
    return result.ok() ? "said: " + *result : result.error().code;
  }

  UniqueFd door_, role_, control_;
};

TEST_F(EgressProcessTest, ARoleThatStopsBetweenItsTwoMessagesIsGivenUp) {
  EgressProcess process = Ask(std::chrono::milliseconds(50));
  Say("Kcertificate");
  EXPECT_EQ(CodeOf(process.AwaitAuthority()), "said: certificate");
  EXPECT_EQ(CodeOf(process.AwaitReady()), "egress.start");

  EgressProcess whole = Ask(kLong);
  Say("Kcertificate");
  Say("R");
  EXPECT_EQ(CodeOf(whole.AwaitAuthority()), "said: certificate");
  EXPECT_EQ(CodeOf(whole.AwaitReady()), "said: ") << "NO-CONTROL";
}

TEST_F(EgressProcessTest, ARoleThatDiesBetweenThemIsNoticed) {
  EgressProcess process = Ask(kLong);
  Say("K");
  control_.Reset();
  EXPECT_EQ(CodeOf(process.AwaitAuthority()), "said: ");
  EXPECT_EQ(CodeOf(process.AwaitReady()), "egress.start");
}

TEST_F(EgressProcessTest, WaitingEndsWhenItIsToldTo) {
  const UniqueFd told(::eventfd(0, EFD_CLOEXEC));
  EgressProcess process = Ask(kLong);
  process.StopWaitingWhen(told.get());
  Say("K");
  EXPECT_EQ(CodeOf(process.AwaitAuthority()), "said: ") << "NO-CONTROL";
  std::thread later([&] { ASSERT_EQ(::eventfd_write(told.get(), 1), 0); });
  EXPECT_EQ(CodeOf(process.AwaitReady()), "egress.start");
  later.join();
}

// What the role cannot do is the host's fault; what it refuses is not.
TEST_F(EgressProcessTest, TheRolesReasonHasItsKind) {
  for (const auto& [word, kind] :
       {std::pair{"E", ErrorKind::kRefused}, std::pair{"H", ErrorKind::kHost}}) {
    EgressProcess process = Ask(kLong);
    Say(std::string(word) + "why not\nwhat to do");
    const Result<std::string> answer = process.AwaitAuthority();
    ASSERT_FALSE(answer.ok());
    EXPECT_EQ(answer.error().kind, kind);
    EXPECT_EQ(answer.error().message, "why not");
    EXPECT_EQ(answer.error().hint, "what to do");
  }
}

}  // namespace
}  // namespace coffer::call
