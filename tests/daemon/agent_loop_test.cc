// SPDX-License-Identifier: Apache-2.0
//
// What an agent does all day: run, fail, edit, run again; ask for less, look at what it did, stay a little longer.
#include <gtest/gtest.h>

#include "tests/daemon/daemon.h"

namespace coffer::test {
namespace {

class AgentLoop : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(daemon_.Start());
    key_ = daemon_.NewKey("local", "agent", "coder").value("key", "");
    session_ = daemon_.NewSession(key_);
  }
  HttpAnswer Put(const std::string& name, const std::string& text) {
    return daemon_.Ask("PUT", "/v1/sessions/" + session_ + "/files/" + name, key_, text);
  }
  static std::string Class(const HttpAnswer& answer) {
    return answer.body["error"].is_object() ? answer.body["error"].value("class", "") : "";
  }
  HttpAnswer Run(const std::string& command) { return daemon_.Call(key_, Bash(command, session_)); }

  Daemon daemon_;
  std::string key_, session_;
};

TEST_F(AgentLoop, WhatFailedRunsAgainAtOnceAfterAChange) {
  EXPECT_EQ(Put("check.sh", "exit 1\n").status, 201);
  const std::string tests = "bash check.sh";
  EXPECT_EQ(Run(tests).Outcome(), "error");
  EXPECT_EQ(Run(tests).Outcome(), "error") << "a second look is free";
  const auto waits = [&] { return Class(Run(tests)) == "policy.retry"; };
  EXPECT_TRUE(waits()) << "the third time in a row";
  // Failures change nothing.
  EXPECT_EQ(Run("false").Outcome(), "error");
  EXPECT_TRUE(waits());
  // A call that succeeds does, and so does a file.
  EXPECT_EQ(Run("echo 'exit 2' > check.sh").Outcome(), "success");
  EXPECT_EQ(Run(tests).Outcome(), "error");
  EXPECT_EQ(Run(tests).Outcome(), "error");
  EXPECT_TRUE(waits()) << "the control: the rule still holds";
  EXPECT_EQ(Put("check.sh", "echo good\n").status, 201);
  EXPECT_EQ(Run(tests).Outcome(), "success");
}

TEST_F(AgentLoop, ACallMayAskForLess) {
  Json call = Bash("ulimit -n; sleep 20", session_);
  call["limits"] = {{"wall", "300ms"}, {"open_files", 33}};
  const HttpAnswer less = daemon_.Call(key_, call);
  EXPECT_EQ(less.Outcome(), "terminated") << less.text;
  EXPECT_EQ(less.body["error"]["class"], "limit.wall");
  EXPECT_EQ(less.body["result"]["stdout"], "33\n");
  call["limits"] = {{"memory", "1TiB"}, {"open_files", 33}};
  const HttpAnswer more = daemon_.Call(key_, call);
  EXPECT_EQ(more.Outcome(), "denied") << more.text;
  EXPECT_EQ(more.body["error"]["class"], "policy.limits");
  EXPECT_NE(more.body["error"]["message"].get<std::string>().find("256MiB"), std::string::npos);
}

TEST_F(AgentLoop, ASessionLivesLongerWithinItsBound) {
  const auto extend = [&](const std::string& key, uint64_t seconds) {
    return daemon_.Ask("POST", "/v1/sessions/" + session_ + "/extend", key,
                       Json{{"lifetime_seconds", seconds}}.dump());
  };
  const std::string before = daemon_.Ask("GET", "/v1/sessions/" + session_, key_).At("expires_at");
  const HttpAnswer longer = extend(key_, 7200);
  EXPECT_EQ(longer.status, 200) << longer.text;
  EXPECT_GT(longer.At("expires_at"), before);
  EXPECT_EQ(extend(key_, 60).At("expires_at"), longer.At("expires_at")) << "never nearer";
  const HttpAnswer beyond = extend(key_, 86401);
  EXPECT_EQ(beyond.status, 400) << beyond.text;
  EXPECT_NE(beyond.text.find("86400"), std::string::npos) << "the bound is named";
  EXPECT_EQ(daemon_.Ask("POST", "/v1/sessions", key_, R"({"lifetime_seconds": 86401})").status,
            400);
  const std::string stranger = daemon_.NewKey("local", "agent", "other").value("key", "");
  EXPECT_EQ(extend(stranger, 7200).status, 404);
  EXPECT_EQ(daemon_.Ask("DELETE", "/v1/sessions/" + session_, key_).status, 200);
  EXPECT_EQ(extend(key_, 7200).status, 409);
}

TEST_F(AgentLoop, FilesAreListedByPrefix) {
  for (const char* name : {"src/a.py", "src/b.py", "docs/a.md", "srcs"}) {
    EXPECT_EQ(Put(name, "x").status, 201);
  }
  const auto count = [&](const std::string& prefix) {
    return daemon_.Ask("GET", "/v1/sessions/" + session_ + "/files?prefix=" + prefix, key_)
        .body["files"]
        .size();
  };
  EXPECT_EQ(count("src/"), 2U);
  EXPECT_EQ(count("src"), 3U);
  EXPECT_EQ(count("docs/a"), 1U);
  EXPECT_EQ(count("nothing"), 0U);
}

TEST_F(AgentLoop, AnAgentListsItsOwnCalls) {
  const std::string other = daemon_.NewKey("local", "agent", "other").value("key", "");
  const std::string mine = Run("true").At("call_id");
  const std::string theirs = daemon_.Call(other, Bash("true")).At("call_id");
  const auto listed = [&](const std::string& key, const std::string& query = "") {
    Strings ids;
    const Json page = daemon_.Ask("GET", "/v1/calls" + query, key).body;
    for (const Json& call : page["calls"]) {
      ids.push_back(call.value("call_id", ""));
    }
    return ids;
  };
  EXPECT_EQ(listed(key_), Strings{mine});
  EXPECT_EQ(listed(other), Strings{theirs});
  EXPECT_EQ(listed(daemon_.key()).size(), 2U) << "an operator sees those of the tenant";
  EXPECT_EQ(listed(key_, "?session=" + session_), Strings{mine});
  EXPECT_EQ(listed(key_, "?outcome=denied"), Strings{});
  EXPECT_EQ(daemon_.Ask("GET", "/v1/calls?agent=other", key_).status, 400);
}

}  // namespace
}  // namespace coffer::test
