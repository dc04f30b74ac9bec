// SPDX-License-Identifier: Apache-2.0
//
// Two tenants of one daemon attack each other on every route that takes a name or an id, and learn nothing: what belongs
// to somebody else is answered with the same bytes as what does not exist.
#include <gtest/gtest.h>

#include "tests/daemon/daemon.h"

namespace coffer::test {
namespace {

class Tenants : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(daemon_.Start());
    const Json victim = daemon_.NewKey("alpha", "operator", "same-name");
    const Json attacker = daemon_.NewKey("beta", "operator", "same-name");
    ASSERT_TRUE(victim.is_object() && attacker.is_object());
    victim_ = victim["key"];
    victim_key_id_ = victim["id"];
    attacker_ = attacker["key"];
    attacker_key_id_ = attacker["id"];
    session_ = daemon_.NewSession(victim_);
  }
  void Let(const std::string& name) {
    EXPECT_EQ(
        daemon_.Ask("PUT", "/v1/sessions/" + session_ + "/files/" + name, victim_, "x").status,
        201);
  }
  std::string StateOf(const std::string& call) {
    return daemon_.Ask("GET", "/v1/calls/" + call, victim_).At("state");
  }
  // A call of the victim's that runs until Let("go").
  std::string StartCall() {
    const HttpAnswer began = daemon_.Call(victim_, Bash(WaitForGo(), session_), kAsync);
    EXPECT_EQ(began.status, 202) << began.text;
    EXPECT_TRUE(WaitUntil([&] { return Exists(daemon_.Workspace(session_) + "/began"); }));
    return began.At("call_id");
  }

  Daemon daemon_;
  std::string victim_, victim_key_id_, attacker_, attacker_key_id_, session_;
};

struct Attack {
  const char* method;
  const char* path;  // with ID in it
  const char* body;
  bool owner_sees;  // the control: its owner is not told that it does not exist
};

TEST_F(Tenants, AnothersIdIsLikeNoId) {
  const std::string call = StartCall();
  Let("x");
  const auto ask = [&](const Attack& attack, const std::string& id, const std::string& key) {
    std::string path = attack.path;
    path.replace(path.find("ID"), 2, id);
    return daemon_.Ask(attack.method, path, key, attack.body);
  };
  const auto attack_all = [&](const std::vector<Attack>& attacks, const std::string& id,
                              const std::string& no_id) {
    for (const Attack& attack : attacks) {
      SCOPED_TRACE(std::string(attack.method) + " " + attack.path);
      const HttpAnswer theirs = ask(attack, id, attacker_);
      const HttpAnswer nobodys = ask(attack, no_id, attacker_);
      EXPECT_EQ(theirs.status, 404) << theirs.text;
      EXPECT_EQ(theirs.status, nobodys.status);
      EXPECT_EQ(theirs.text, nobodys.text);
    }
  };
  const auto control_all = [&](const std::vector<Attack>& attacks, const std::string& id) {
    for (const Attack& attack : attacks) {
      SCOPED_TRACE(std::string("control: ") + attack.method + " " + attack.path);
      if (attack.owner_sees) {
        const HttpAnswer own = ask(attack, id, victim_);
        EXPECT_NE(own.status, 404) << own.text;
        EXPECT_NE(own.status, 0);
      }
    }
  };
  const std::vector<Attack> calls = {
      {"GET", "/v1/calls/ID", "", true},          {"GET", "/v1/calls/ID/receipt", "", true},
      {"GET", "/v1/calls/ID/events", "", true},   {"GET", "/v1/calls/ID/files", "", true},
      {"GET", "/v1/calls/ID/files/x", "", false}, {"POST", "/v1/calls/ID/cancel", "", true}};
  const std::vector<Attack> sessions = {{"GET", "/v1/sessions/ID", "", true},
                                        {"GET", "/v1/sessions/ID/files", "", true},
                                        {"GET", "/v1/sessions/ID/files/x", "", true},
                                        {"PUT", "/v1/sessions/ID/files/y", "evil", true},
                                        {"DELETE", "/v1/sessions/ID/files/x", "", true},
                                        {"DELETE", "/v1/sessions/ID", "", true}};
  const std::vector<Attack> keys = {{"DELETE", "/v1/keys/ID", "", true}};

  attack_all(calls, call, kNoSuchId);
  attack_all(sessions, session_, kNoSuchId);
  attack_all(keys, victim_key_id_, "0000000000000000");
  // None of it had an effect: the call runs, the session is open, its file is as it was, the key works.
  EXPECT_EQ(StateOf(call), "running");
  EXPECT_EQ(daemon_.Ask("GET", "/v1/sessions/" + session_ + "/files/x", victim_).text, "x");
  EXPECT_EQ(daemon_.Ask("GET", "/v1/sessions/" + session_ + "/files/y", victim_).status, 404);
  Let("go");
  EXPECT_TRUE(WaitUntil([&] { return StateOf(call) == "finished"; }));
  EXPECT_EQ(daemon_.Ask("GET", "/v1/calls/" + call, victim_).Outcome(), "success");
  // The same for a call that has ended, whose events are still kept.
  attack_all(calls, call, kNoSuchId);

  control_all(calls, call);
  control_all(sessions, session_);
  control_all(keys, victim_key_id_);
}

// Every refusal has an id of its own; the rest must be the same.
std::string WithoutReceipt(const HttpAnswer& answer) {
  Json body = answer.body;
  body.erase("call_id");
  body.erase("log");
  body.erase("denials");  // they name what was asked for, in the asker's own words
  return body.dump();
}

TEST_F(Tenants, NoCallInAnothersSessionOrBelowItsCalls) {
  const std::string call = StartCall();
  Json in_session = Bash("echo evil > evil", session_);
  Json in_none = Bash("echo evil > evil", kNoSuchId);
  const HttpAnswer theirs = daemon_.Call(attacker_, in_session);
  const HttpAnswer nobodys = daemon_.Call(attacker_, in_none);
  EXPECT_EQ(theirs.DeniedBy(), "policy.session") << theirs.text;
  EXPECT_EQ(WithoutReceipt(theirs), WithoutReceipt(nobodys));
  Json below = Bash("true");
  below["parent_id"] = call;
  const HttpAnswer child = daemon_.Call(attacker_, below);
  below["parent_id"] = kNoSuchId;
  const HttpAnswer orphan = daemon_.Call(attacker_, below);
  EXPECT_EQ(child.DeniedBy(), "policy.parent") << child.text;
  EXPECT_EQ(WithoutReceipt(child), WithoutReceipt(orphan));
  EXPECT_FALSE(Exists(daemon_.Workspace(session_) + "/evil"));
  Let("go");
  // The control: the owner's call does arrive there.
  EXPECT_EQ(daemon_.Call(victim_, in_session).Outcome(), "success");
  EXPECT_TRUE(Exists(daemon_.Workspace(session_) + "/evil"));
}

TEST_F(Tenants, IdempotencyKeysDoNotCollide) {
  constexpr const char* kSharedKey = "Idempotency-Key: shared\r\n";
  const HttpAnswer one = daemon_.Call(victim_, Bash("echo secret of alpha"), kSharedKey);
  const HttpAnswer other = daemon_.Call(attacker_, Bash("echo secret of alpha"), kSharedKey);
  const HttpAnswer differs = daemon_.Call(daemon_.key(), Bash("echo mine"), kSharedKey);
  EXPECT_EQ(one.status, 200) << one.text;
  EXPECT_EQ(other.status, 200) << other.text;
  EXPECT_EQ(other.Field("Idempotency-Replayed"), "");
  EXPECT_NE(one.At("call_id"), other.At("call_id"));
  EXPECT_EQ(differs.status, 200) << differs.text;
  // The control: within a tenant they do.
  EXPECT_EQ(daemon_.Call(victim_, Bash("echo mine"), kSharedKey).status, 422);
}

TEST_F(Tenants, ListsShowOnlyTheirOwn) {
  const std::string mine = daemon_.NewSession(attacker_);
  daemon_.NewKey("alpha", "agent", "alpha-only");
  EXPECT_EQ(
      daemon_
          .Ask("PUT", "/v1/switches/agent/alpha-only", victim_, R"({"reason":"only alpha knows"})")
          .status,
      200);
  struct List {
    const char* path;
    std::string theirs, own;
  };
  for (const List& list :
       {List{"/v1/sessions", session_, mine}, List{"/v1/keys", victim_key_id_, attacker_key_id_},
        List{"/v1/switches", "alpha-only", ""}}) {
    SCOPED_TRACE(list.path);
    const HttpAnswer seen = daemon_.Ask("GET", list.path, attacker_);
    EXPECT_EQ(seen.status, 200);
    EXPECT_FALSE(Contains(seen.text, list.theirs)) << seen.text;
    EXPECT_FALSE(Contains(seen.text, "alpha")) << seen.text;
    EXPECT_TRUE(Contains(seen.text, list.own)) << seen.text;
    EXPECT_TRUE(Contains(daemon_.Ask("GET", list.path, victim_).text, list.theirs));
  }
}

TEST_F(Tenants, SwitchesStopOnlyTheirOwn) {
  const std::string call = StartCall();
  for (const std::string& target : {std::string("tool/bash"), std::string("agent/same-name"),
                                    "session/" + session_, std::string("tenant/alpha")}) {
    SCOPED_TRACE(target);
    const HttpAnswer set =
        daemon_.Ask("PUT", "/v1/switches/" + target, attacker_, R"({"reason":"evil"})");
    EXPECT_NE(set.status, 0);
    EXPECT_EQ(daemon_.Call(victim_, Bash("echo fine")).Outcome(), "success");
    EXPECT_EQ(StateOf(call), "running");
  }
  // The control: they stop the attacker.
  EXPECT_EQ(daemon_.Call(attacker_, Bash("echo fine")).DeniedBy(), "policy.switch");
  Let("go");
}

// Agents of one tenant do not end each other's work either.
TEST_F(Tenants, AnotherAgentsSessionIsLikeNone) {
  const std::string other = daemon_.NewKey("alpha", "agent", "somebody-else")["key"];
  const std::string call = StartCall();
  const HttpAnswer theirs = daemon_.Ask("DELETE", "/v1/sessions/" + session_, other);
  const HttpAnswer nobodys = daemon_.Ask("DELETE", std::string("/v1/sessions/") + kNoSuchId, other);
  EXPECT_EQ(theirs.status, 404) << theirs.text;
  EXPECT_EQ(theirs.text, nobodys.text);
  Let("go");
  EXPECT_TRUE(WaitUntil([&] { return StateOf(call) == "finished"; }));
  EXPECT_EQ(daemon_.Ask("GET", "/v1/calls/" + call, victim_).Outcome(), "success");
}

}  // namespace
}  // namespace coffer::test
