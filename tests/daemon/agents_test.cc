// SPDX-License-Identifier: Apache-2.0
//
// Agents of one tenant: each sees, watches and ends its own calls and sessions, and nobody else's; who looks after
// the tenant sees all of them; and who was granted it, those of every tenant.
#include <gtest/gtest.h>

#include "tests/daemon/daemon.h"

namespace coffer::test {
namespace {

class Agents : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(daemon_.Start());
    owner_ = daemon_.NewKey("alpha", "agent", "owner")["key"];
    other_ = daemon_.NewKey("alpha", "agent", "other")["key"];
    session_ = daemon_.NewSession(owner_);
    const HttpAnswer began = daemon_.Call(owner_, Bash(WaitForGo(), session_), kAsync);
    ASSERT_EQ(began.status, 202) << began.text;
    call_ = began.At("call_id");
    ASSERT_TRUE(WaitUntil([&] { return Exists(daemon_.Workspace(session_) + "/began"); }));
  }
  void Finish() {
    EXPECT_EQ(daemon_.Ask("PUT", "/v1/sessions/" + session_ + "/files/go", owner_, "x").status,
              201);
    EXPECT_TRUE(WaitUntil([&] {
      return daemon_.Ask("GET", "/v1/calls/" + call_, owner_).At("state") == "finished";
    }));
  }
  std::string KeyOfAll(const std::string& tenant, const std::string& role) {
    const RunResult made =
        RunProgram({CofferPath(), "key", "new", "--tenant", tenant, "--role", role, "--agent",
                    "of-all", "--all-tenants", "--state", daemon_.state(), "--json"});
    EXPECT_EQ(made.exit, 0) << made.Describe();
    const Json key = Json::parse(made.out, nullptr, false);
    EXPECT_EQ(key["all_tenants"], true);
    return key["key"];
  }

  Daemon daemon_;
  std::string owner_, other_, session_, call_;
};

struct Look {
  const char* method;
  const char* path;  // CALL or SESSION in it
  bool is_over;      // only when the call has ended
};

constexpr Look kLooks[] = {
    {"GET", "/v1/calls/CALL", false},
    {"GET", "/v1/calls/CALL/events", true},
    {"GET", "/v1/calls/CALL/receipt", true},
    {"GET", "/v1/sessions/SESSION", false},
    {"GET", "/v1/sessions/SESSION/files", false},
    {"GET", "/v1/sessions/SESSION/files/began", false},
};
constexpr Look kDeeds[] = {
    {"POST", "/v1/calls/CALL/cancel", false},
    {"PUT", "/v1/sessions/SESSION/files/evil", false},
    {"DELETE", "/v1/sessions/SESSION/files/began", false},
    {"DELETE", "/v1/sessions/SESSION", false},
};

std::string Fill(std::string path, const std::string& call, const std::string& session) {
  if (const size_t at = path.find("CALL"); at != std::string::npos) {
    path.replace(at, 4, call);
  }
  if (const size_t at = path.find("SESSION"); at != std::string::npos) {
    path.replace(at, 7, session);
  }
  return path;
}

TEST_F(Agents, AnothersIsLikeNobodys) {
  const auto attack = [&](const Look& look) {
    SCOPED_TRACE(std::string(look.method) + " " + look.path);
    const std::string body = look.method == std::string("PUT") ? "x" : "";
    const HttpAnswer theirs =
        daemon_.Ask(look.method, Fill(look.path, call_, session_), other_, body);
    const HttpAnswer nobodys =
        daemon_.Ask(look.method, Fill(look.path, kNoSuchId, kNoSuchId), other_, body);
    EXPECT_EQ(theirs.status, 404) << theirs.text;
    EXPECT_EQ(theirs.text, nobodys.text);
  };
  for (const Look& look : kLooks) {
    attack(look);
  }
  for (const Look& deed : kDeeds) {
    attack(deed);
  }
  // Nothing of it had an effect.
  EXPECT_EQ(daemon_.Ask("GET", "/v1/calls/" + call_, owner_).At("state"), "running");
  EXPECT_FALSE(Contains(daemon_.Ask("GET", "/v1/sessions", other_).text, session_));
  EXPECT_TRUE(Contains(daemon_.Ask("GET", "/v1/sessions", owner_).text, session_));
  // Nor may it work in there, or below.
  EXPECT_EQ(daemon_.Call(other_, Bash("true", session_)).DeniedBy(), "policy.session");
  Json below = {{"tool", "python"}, {"args", {{"code", "pass"}}}, {"parent_id", call_}};
  const HttpAnswer child = daemon_.Call(other_, below);
  below["parent_id"] = kNoSuchId;
  EXPECT_EQ(child.DeniedBy(), "policy.parent") << child.text;
  Finish();
  for (const Look& look : kLooks) {
    attack(look);
    SCOPED_TRACE(std::string("control: ") + look.path);
    EXPECT_EQ(daemon_.Ask(look.method, Fill(look.path, call_, session_), owner_).status, 200);
  }
}

TEST_F(Agents, AnothersAnswerIsNotReplayed) {
  constexpr const char* kKey = "Idempotency-Key: same\r\n";
  EXPECT_EQ(daemon_.Call(owner_, Bash("echo of the owner"), kKey).Outcome(), "success");
  const HttpAnswer stolen = daemon_.Call(other_, Bash("echo of the owner"), kKey);
  EXPECT_EQ(stolen.status, 422) << stolen.text;
  EXPECT_FALSE(Contains(stolen.text, "of the owner"));
  EXPECT_EQ(daemon_.Call(owner_, Bash("echo of the owner"), kKey).Field("Idempotency-Replayed"),
            "true");
  Finish();
}

TEST_F(Agents, WhoLooksAfterTheTenantSeesAll) {
  Finish();
  for (const std::string role : {"operator", "auditor", "approver"}) {
    const std::string key = daemon_.NewKey("alpha", role, "a-" + role)["key"];
    EXPECT_EQ(daemon_.Ask("GET", "/v1/calls/" + call_, key).status, 200) << role;
    EXPECT_EQ(daemon_.Ask("GET", "/v1/calls/" + call_ + "/receipt", key).status, 200) << role;
    EXPECT_EQ(daemon_.Ask("GET", "/v1/calls/" + call_ + "/events", key).status, 200) << role;
    EXPECT_EQ(daemon_.Ask("GET", "/v1/sessions/" + session_, key).status, 200) << role;
  }
  const std::string stranger = daemon_.NewKey("beta", "operator", "owner")["key"];
  EXPECT_EQ(daemon_.Ask("GET", "/v1/calls/" + call_, stranger).status, 404);
}

TEST_F(Agents, WhoWasGrantedItSeesTheSwitchesOfEveryTenant) {
  const std::string alpha = daemon_.NewKey("alpha", "operator", "ops")["key"];
  daemon_.NewKey("alpha", "agent", "nobody");
  ASSERT_EQ(
      daemon_.Ask("PUT", "/v1/switches/agent/nobody", alpha, R"({"reason":"its own"})").status,
      200);
  const auto seen = [&](const std::string& key) {
    const HttpAnswer list = daemon_.Ask("GET", "/v1/switches", key);
    for (const Json& one : list.body["switches"]) {
      if (one["tenant"] == "alpha" && one["scope"] == "agent" && one["name"] == "nobody") {
        return one["reason"].get<std::string>();
      }
    }
    return std::string("none");
  };
  EXPECT_EQ(seen(alpha), "its own");
  EXPECT_EQ(seen(KeyOfAll("beta", "auditor")), "its own");
  EXPECT_EQ(seen(daemon_.NewKey("beta", "operator", "x")["key"]), "none") << "another tenant";
  Finish();
}

TEST_F(Agents, WhoWasGrantedItSeesEveryTenant) {
  for (const std::string role : {"operator", "auditor"}) {
    SCOPED_TRACE(role);
    const std::string key = KeyOfAll("beta", role);
    EXPECT_EQ(daemon_.Ask("GET", "/v1/calls/" + call_, key).At("state"), "running");
    const HttpAnswer session = daemon_.Ask("GET", "/v1/sessions/" + session_, key);
    EXPECT_EQ(session.status, 200);
    EXPECT_EQ(session.At("tenant"), "alpha");
    EXPECT_TRUE(Contains(daemon_.Ask("GET", "/v1/sessions", key).text, session_));
    const HttpAnswer keys = daemon_.Ask("GET", "/v1/keys", key);
    EXPECT_TRUE(Contains(keys.text, "\"alpha\"") && Contains(keys.text, "\"beta\"")) << keys.text;
    EXPECT_TRUE(Contains(keys.text, "\"all_tenants\":true")) << keys.text;
  }
  // The control: an operator of that tenant without it.
  const std::string plain = daemon_.NewKey("beta", "operator", "x")["key"];
  EXPECT_EQ(daemon_.Ask("GET", "/v1/calls/" + call_, plain).status, 404);
  EXPECT_FALSE(Contains(daemon_.Ask("GET", "/v1/keys", plain).text, "\"alpha\""));
  // What it makes is its own tenant's; what it ends may be anybody's, if it is an operator.
  const std::string of_all = KeyOfAll("beta", "operator");
  EXPECT_EQ(daemon_.Ask("GET", "/v1/sessions/" + daemon_.NewSession(of_all), of_all).At("tenant"),
            "beta");
  EXPECT_EQ(
      daemon_.Ask("POST", "/v1/calls/" + call_ + "/cancel", KeyOfAll("beta", "auditor")).status,
      403);
  EXPECT_EQ(daemon_.Ask("POST", "/v1/calls/" + call_ + "/cancel", of_all).status, 202);
  EXPECT_TRUE(WaitUntil(
      [&] { return daemon_.Ask("GET", "/v1/calls/" + call_, owner_).At("state") == "finished"; }));
}

TEST_F(Agents, OnlyOperatorsAndAuditorsAreGrantedIt) {
  for (const std::string role : {"agent", "approver"}) {
    const RunResult made = RunProgram(
        {CofferPath(), "key", "new", "--role", role, "--all-tenants", "--state", daemon_.state()});
    EXPECT_EQ(made.exit, 120) << made.Describe();
  }
  // An operator cannot give it away over HTTP either.
  const HttpAnswer asked = daemon_.Ask("POST", "/v1/keys", daemon_.key(),
                                       R"({"role":"operator","agent":"x","all_tenants":true})");
  EXPECT_GE(asked.status, 400);
  Finish();
}

TEST_F(Agents, ASessionsLabelIsKept) {
  const std::string session = daemon_.NewSession(owner_, {{"label", "build 7"}});
  EXPECT_EQ(daemon_.Ask("GET", "/v1/sessions/" + session, owner_).At("label"), "build 7");
  EXPECT_TRUE(Contains(daemon_.Ask("GET", "/v1/sessions", owner_).text, "build 7"));
  Finish();
}

}  // namespace
}  // namespace coffer::test
