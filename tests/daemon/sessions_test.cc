// SPDX-License-Identifier: Apache-2.0
//
// A session ends when it is told to, when its time is over, or when it has made all its calls; nothing of it is left.
#include <gtest/gtest.h>

#include "tests/daemon/daemon.h"

namespace coffer::test {
namespace {

class Sessions : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(daemon_.Start()); }
  HttpAnswer Get(const std::string& path) { return daemon_.Ask("GET", path, daemon_.key()); }
  std::string Begin(const std::string& session) {
    const HttpAnswer began = daemon_.Call(daemon_.key(), Bash(WaitForGo(), session), kAsync);
    EXPECT_EQ(began.status, 202) << began.text;
    EXPECT_TRUE(WaitUntil([&] { return Exists(daemon_.Workspace(session) + "/began"); }));
    return began.At("call_id");
  }
  void ExpectOver(const std::string& session, const std::string& call) {
    EXPECT_TRUE(WaitUntil([&] { return daemon_.Runners().empty(); }));
    EXPECT_TRUE(WaitUntil([&] { return Get("/v1/calls/" + call).At("state") == "finished"; }));
    EXPECT_EQ(Get("/v1/calls/" + call).Outcome(), "terminated");
    EXPECT_TRUE(WaitUntil([&] { return !Exists(daemon_.Workspace(session)); }));
    EXPECT_EQ(Get("/v1/sessions/" + session).At("state"), "ended");
    EXPECT_EQ(daemon_.Call(daemon_.key(), Bash("true", session)).DeniedBy(), "policy.session");
    EXPECT_EQ(Get("/v1/sessions/" + session + "/files").status, 409);
  }
  Daemon daemon_;
};

TEST_F(Sessions, KeepFilesFromCallToCall) {
  const std::string session = daemon_.NewSession(daemon_.key());
  const std::string other = daemon_.NewSession(daemon_.key());
  EXPECT_EQ(daemon_.Call(daemon_.key(), Bash("mkdir d; echo kept > d/f", session)).Outcome(),
            "success");
  EXPECT_EQ(daemon_.Call(daemon_.key(), Bash("cat d/f", session)).body["result"]["stdout"],
            "kept\n");
  EXPECT_EQ(Get("/v1/sessions/" + session + "/files/d/f").text, "kept\n");
  EXPECT_NE(daemon_.Call(daemon_.key(), Bash("cat d/f", other)).body["result"]["stdout"], "kept\n");
  EXPECT_EQ(Get("/v1/sessions/" + other + "/files/d/f").status, 404);
}

TEST_F(Sessions, EndKillsCallsAndRemovesFiles) {
  const std::string session = daemon_.NewSession(daemon_.key());
  const std::string stays = daemon_.NewSession(daemon_.key());
  EXPECT_EQ(daemon_.Call(daemon_.key(), Bash("mkdir -p a/b; touch a/b/c; ln -s / a/link", session))
                .Outcome(),
            "success");
  const std::string call = Begin(session);
  EXPECT_EQ(daemon_.Ask("DELETE", "/v1/sessions/" + session, daemon_.key()).status, 200);
  ExpectOver(session, call);
  EXPECT_TRUE(Exists(daemon_.Workspace(stays))) << "the control";
}

// The log says who or what ended a session: an agent, a lifetime; each once.
TEST_F(Sessions, AnEndIsInTheLog) {
  const std::string ended = daemon_.NewSession(daemon_.key());
  const std::string expired = daemon_.NewSession(daemon_.key(), {{"lifetime_seconds", 1}});
  const std::string open = daemon_.NewSession(daemon_.key());
  EXPECT_EQ(daemon_.Ask("DELETE", "/v1/sessions/" + ended, daemon_.key()).status, 200);
  EXPECT_EQ(daemon_.Ask("DELETE", "/v1/sessions/" + ended, daemon_.key()).status, 200);
  const auto reasons = [&](const std::string& session) {
    Strings found;
    for (const std::string& line : Lines(ReadFile(daemon_.state() + "/log/records").value_or(""))) {
      const Json leaf = Json::parse(line, nullptr, false);
      if (leaf.is_object() && leaf.value("name", "") == "session.ended" &&
          leaf["detail"].value("session", "") == session) {
        found.push_back(leaf["detail"].value("by", ""));
      }
    }
    return found;
  };
  EXPECT_TRUE(WaitUntil([&] { return !reasons(expired).empty(); }, Seconds(10)));
  EXPECT_EQ(reasons(expired), Strings{"lifetime"});
  EXPECT_EQ(reasons(ended).size(), 1U);
  EXPECT_NE(reasons(ended), Strings{""});
  EXPECT_EQ(reasons(open), Strings{}) << "the control";
}

// Whatever a call has done to its directories. How the call itself ends is not the point: where nobody but its owner
// can look into a closed directory, it cannot be measured either, and the call is stopped.
TEST_F(Sessions, EndRemovesWhatACallHasClosed) {
  const std::string session = daemon_.NewSession(daemon_.key());
  (void)daemon_.Call(daemon_.key(), Bash("mkdir -p a/b r/s; touch a/b/c r/s/t; chmod 500 r/s r; "
                                         "chmod 0 a/b a; chmod 0 .",
                                         session));
  EXPECT_TRUE(Exists(daemon_.Workspace(session)));
  EXPECT_EQ(daemon_.Ask("DELETE", "/v1/sessions/" + session, daemon_.key()).status, 200);
  EXPECT_TRUE(WaitUntil([&] { return !Exists(daemon_.Workspace(session)); }));
}

TEST_F(Sessions, EndRemovesATreeOfAnyDepth) {
  const std::string session = daemon_.NewSession(daemon_.key());
  (void)daemon_.Call(
      daemon_.key(),
      Bash("i=0; while [ $i -lt 100 ]; do mkdir d; cd d; i=$((i+1)); done", session));
  EXPECT_TRUE(Exists(daemon_.Workspace(session) + "/d/d/d"));
  EXPECT_EQ(daemon_.Ask("DELETE", "/v1/sessions/" + session, daemon_.key()).status, 200);
  EXPECT_TRUE(WaitUntil([&] { return !Exists(daemon_.Workspace(session)); }, Seconds(10)));
}

// Whatever it writes while it is being ended.
TEST_F(Sessions, EndRemovesFilesOfACallThatWritesOn) {
  for (int round = 0; round < 4; ++round) {
    const std::string session = daemon_.NewSession(daemon_.key());
    EXPECT_EQ(daemon_
                  .Call(daemon_.key(),
                        Bash("touch began; i=0; while :; do mkdir -p d$i; : > d$i/f; i=$((i+1)); "
                             "done # " +
                                 NewToken(),
                             session),
                        kAsync)
                  .status,
              202);
    ASSERT_TRUE(WaitUntil([&] { return Exists(daemon_.Workspace(session) + "/began"); }));
    EXPECT_EQ(daemon_.Ask("DELETE", "/v1/sessions/" + session, daemon_.key()).status, 200);
    EXPECT_TRUE(WaitUntil([&] { return daemon_.Runners().empty(); }));
    EXPECT_TRUE(WaitUntil([&] { return !Exists(daemon_.Workspace(session)); }));
  }
}

TEST_F(Sessions, EndWhenTheirTimeIsOver) {
  const std::string session = daemon_.NewSession(daemon_.key(), {{"lifetime_seconds", 1}});
  const std::string stays = daemon_.NewSession(daemon_.key(), {{"lifetime_seconds", 3600}});
  const auto begin = std::chrono::steady_clock::now();
  const std::string call = Begin(session);
  EXPECT_TRUE(
      WaitUntil([&] { return Get("/v1/calls/" + call).At("state") == "finished"; }, Seconds(20)));
  EXPECT_GT(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(500))
      << "it never lived";
  ExpectOver(session, call);
  EXPECT_EQ(Get("/v1/sessions/" + stays).At("state"), "open");
  EXPECT_TRUE(Exists(daemon_.Workspace(stays)));
}

TEST_F(Sessions, EndTheirCallsWithTheirBudget) {
  const std::string session = daemon_.NewSession(daemon_.key(), {{"max_calls", 2}});
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(daemon_.Call(daemon_.key(), Bash("echo >> ran", session)).Outcome(), "success");
  }
  const HttpAnswer third = daemon_.Call(daemon_.key(), Bash("echo >> ran", session));
  EXPECT_EQ(third.DeniedBy(), "policy.budget") << third.text;
  EXPECT_EQ(Lines(ReadFile(daemon_.Workspace(session) + "/ran").value_or("")).size(), 2U);
  // The control: a session without a budget goes on.
  const std::string free = daemon_.NewSession(daemon_.key());
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(daemon_.Call(daemon_.key(), Bash("echo >> ran", free)).Outcome(), "success");
  }
}

}  // namespace
}  // namespace coffer::test
