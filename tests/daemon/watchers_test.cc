// SPDX-License-Identifier: Apache-2.0
//
// A stream of a call's events goes on no longer than the key that asked for it stands: revoked, expired, or its agent stopped.
#include <gtest/gtest.h>

#include "tests/daemon/daemon.h"
#include "tests/gateway/harness.h"

namespace coffer::test {
namespace {

class Watchers : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(daemon_.Start());
    const HttpAnswer began = daemon_.Call(
        daemon_.key(), Bash("i=0; while :; do echo tick-$i-; i=$((i+1)); sleep 0.2; done"), kAsync);
    ASSERT_EQ(began.status, 202) << began.text;
    call_ = began.At("call_id");
    control_ = daemon_.NewKey("local", "auditor", "control")["key"];
  }
  gateway::RawClient Watch(const std::string& key) const {
    gateway::RawClient client = gateway::RawClient::Tcp(daemon_.port());
    EXPECT_TRUE(client.Send("GET /v1/calls/" + call_ +
                            "/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + key +
                            "\r\n\r\n"));
    return client;
  }
  // `end` takes away what the key may; its stream says so and ends, and another one goes on.
  void ExpectEnd(const std::string& key, const std::string& code,
                 const std::function<void()>& end) const {
    gateway::RawClient watching = Watch(key);
    gateway::RawClient control = Watch(control_);
    ASSERT_TRUE(Contains(watching.ReadUntil("tick-1-"), "tick-1-"));
    end();
    const std::string rest = watching.ReadUntil("0\r\n\r\n");
    const std::string said = "event: end\ndata: {\"code\":\"" + code + "\"";
    EXPECT_TRUE(Contains(rest, said)) << rest;
    EXPECT_FALSE(Contains(rest.substr(std::min(rest.find(said), rest.size())), "tick-"));
    const size_t last = rest.rfind("tick-");
    const std::string after =
        last == std::string::npos
            ? "tick-9-"
            : "tick-" + std::to_string(std::stoi(rest.substr(last + 5)) + 7) + "-";
    EXPECT_TRUE(Contains(control.ReadUntil(after), after)) << "the control";
  }

  Daemon daemon_;
  std::string call_, control_;
};

TEST_F(Watchers, ARevokedKeyWatchesNoMore) {
  const Json key = daemon_.NewKey("local", "auditor", "watcher");
  const std::string id = key["id"];
  ExpectEnd(key["key"], "auth.key", [&] {
    EXPECT_EQ(RunProgram({CofferPath(), "key", "revoke", id, "--state", daemon_.state()}).exit, 0);
  });
  EXPECT_EQ(Watch(key["key"]).Receive().status, 401);
}

TEST_F(Watchers, AnExpiredKeyWatchesNoMore) {
  const HttpAnswer brief =
      daemon_.Ask("POST", "/v1/keys", daemon_.key(),
                  R"({"role":"auditor","agent":"watcher","expires_in_seconds":3})");
  ASSERT_EQ(brief.status, 201) << brief.text;
  ExpectEnd(brief.At("key"), "auth.key", [] {});
}

TEST_F(Watchers, AStoppedAgentWatchesNoMore) {
  const std::string key = daemon_.NewKey("local", "auditor", "watcher")["key"];
  ExpectEnd(key, "policy.switch", [&] {
    EXPECT_EQ(
        daemon_.Ask("PUT", "/v1/switches/agent/watcher", daemon_.key(), R"({"reason":"incident"})")
            .status,
        200);
  });
  const gateway::Reply1 again = Watch(key).Receive();
  EXPECT_EQ(again.status, 403) << again.body;
  // What has ended is the record, which it may read.
  EXPECT_EQ(daemon_.Ask("POST", "/v1/calls/" + call_ + "/cancel", daemon_.key()).status, 202);
  EXPECT_TRUE(WaitUntil([&] {
    return daemon_.Ask("GET", "/v1/calls/" + call_, daemon_.key()).At("state") == "finished";
  }));
  EXPECT_TRUE(WaitUntil([&] { return Watch(key).Receive().status == 200; }));
  // Also where one batch does not hold all of it.
  const HttpAnswer long_one =
      daemon_.Call(daemon_.key(), Bash("head -c 100000 /dev/zero | tr '\\0' x"));
  ASSERT_EQ(long_one.Outcome(), "success") << long_one.text;
  call_ = long_one.At("call_id");
  const gateway::Reply1 whole = Watch(key).Receive();
  EXPECT_EQ(whole.status, 200);
  EXPECT_GT(whole.body.size(), 100'000U);
  EXPECT_TRUE(Contains(whole.body, "{\"state\":\"finished\"}"));
}

}  // namespace
}  // namespace coffer::test
