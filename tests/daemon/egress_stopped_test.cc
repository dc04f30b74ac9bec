// SPDX-License-Identifier: Apache-2.0
//
// The role that dials for calls stands still: calls that need it end in their time or when they are cancelled, others go on, and when it
// runs again nothing of those calls is left in it.
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>

#include "tests/daemon/egress_daemon.h"

namespace coffer::test {
namespace {

class DaemonEgressStopped : public DaemonEgress {
 protected:
  ~DaemonEgressStopped() override { Continue(); }
  void Stop() {
    role_ = daemon_.Find(RoleOf::kProxy);
    ASSERT_GT(role_, 0);
    ASSERT_EQ(::kill(role_, SIGSTOP), 0);
  }
  void Continue() {
    if (role_ > 0) {
      ::kill(role_, SIGCONT);
    }
  }
  size_t Descriptors() const {
    size_t count = 0;
    for ([[maybe_unused]] const auto& entry :
         std::filesystem::directory_iterator("/proc/" + std::to_string(role_) + "/fd")) {
      ++count;
    }
    return count;
  }
  std::string Begin(const std::string& tool) const {
    const Json body = {{"tool", tool}, {"args", {{"script", kClient + Ask("api.test")}}}};
    return daemon_.Call(daemon_.key(), body, kAsync).At("call_id");
  }
  HttpAnswer Await(const std::string& id) const {
    HttpAnswer answer;
    EXPECT_TRUE(WaitUntil(
        [&] {
          answer = daemon_.Ask("GET", "/v1/calls/" + id, daemon_.key());
          return answer.At("state") != "running" && !answer.Outcome().empty();
        },
        Seconds(60)));
    return answer;
  }

  // So many there are, and none of them ran between twenty looks.
  bool RunnersSleep(size_t number) {
    std::string now;
    for (const pid_t runner : daemon_.Runners()) {
      now += ReadFile("/proc/" + std::to_string(runner) + "/status").value_or("");
    }
    size_t sleeping = 0;
    for (size_t at = 0; (at = now.find("State:\tS", at)) != std::string::npos; ++at) {
      ++sleeping;
    }
    looks_ = sleeping == number && now == before_ ? looks_ + 1 : 0;
    before_ = now;
    return looks_ >= 20;
  }

  pid_t role_ = 0;
  std::string before_;
  int looks_ = 0;
};

TEST_F(DaemonEgressStopped, CallsThatNeedItEndAndNothingOfThemIsLeft) {
  Declare("hasty", Plain("api.test"), "wall = \"1s\"\n");
  ASSERT_TRUE(Start());
  const HttpAnswer control = Call("hasty", Ask("api.test"));
  ASSERT_TRUE(Contains(Out(control), "hello")) << "NO-CONTROL\n" << control.text;

  Stop();
  const size_t before = IsRoot() ? Descriptors() : 0;
  // Two calls wait for the role: one is given up in its own time. The other began earlier and still waits then.
  const std::string patient = Begin("reader");
  ASSERT_FALSE(patient.empty());
  const HttpAnswer hasty = Call("hasty", Ask("api.test"));
  EXPECT_EQ(hasty.Outcome(), "error") << hasty.text;
  EXPECT_TRUE(Contains(hasty.text, "egress.start")) << hasty.text;
  EXPECT_EQ(daemon_.Ask("GET", "/v1/calls/" + patient, daemon_.key()).Outcome(), "")
      << "NO-CONTROL: it does not wait";
  const HttpAnswer other = Call("mute", "echo whole");
  EXPECT_EQ(Out(other), "whole\n") << other.text;

  // A third one is cancelled, and ends while the earlier one still waits.
  const std::string last = Begin("reader");
  ASSERT_TRUE(WaitUntil([&] { return RunnersSleep(2); })) << "NO-CONTROL: it does not wait";
  daemon_.Ask("POST", "/v1/calls/" + last + "/cancel", daemon_.key(), "{}");
  const HttpAnswer cancelled = Await(last);
  EXPECT_EQ(cancelled.Outcome(), "terminated") << cancelled.text;
  EXPECT_TRUE(Contains(cancelled.text, "policy.cancelled")) << cancelled.text;
  EXPECT_EQ(daemon_.Ask("GET", "/v1/calls/" + patient, daemon_.key()).Outcome(), "")
      << "OPEN: the cancelled call waited for the role";

  Continue();
  const HttpAnswer late = Await(patient);
  EXPECT_EQ(late.Outcome(), "success") << late.text;
  const HttpAnswer after = Call("reader", Ask("api.test"));
  EXPECT_TRUE(Contains(Out(after), "hello")) << after.text;
  if (IsRoot()) {
    EXPECT_TRUE(WaitUntil([&] { return Descriptors() <= before; }))
        << Descriptors() << " after " << before;
  }
}

}  // namespace
}  // namespace coffer::test
