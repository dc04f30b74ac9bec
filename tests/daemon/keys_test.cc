// SPDX-License-Identifier: Apache-2.0
//
// Who may do what: every role on every route, and keys that are none.
#include <gtest/gtest.h>

#include "tests/daemon/daemon.h"

namespace coffer::test {
namespace {

struct RouteCase {
  const char* method;
  const char* path;
  const char* body;
  const char* roles;  // a agent, p approver, o operator, u auditor
};

constexpr const char* kSwitchBody = R"({"reason":"test"})";
constexpr RouteCase kRoutes[] = {
    {"POST", "/v1/calls", R"({"tool":"nothing-of-this-name","args":{}})", "ao"},
    {"GET", "/v1/calls", "", "apou"},
    {"GET", "/v1/calls/ID", "", "apou"},
    {"GET", "/v1/calls/ID/events", "", "apou"},
    {"GET", "/v1/calls/ID/receipt", "", "apou"},
    {"GET", "/v1/calls/ID/transcript", "", "apou"},
    {"POST", "/v1/calls/ID/cancel", "", "ao"},
    {"GET", "/v1/calls/ID/files", "", "ao"},
    {"GET", "/v1/calls/ID/files/x", "", "ao"},
    {"POST", "/v1/sessions", "{}", "ao"},
    {"GET", "/v1/sessions", "", "apou"},
    {"GET", "/v1/sessions/ID", "", "apou"},
    {"DELETE", "/v1/sessions/ID", "", "ao"},
    {"POST", "/v1/sessions/ID/extend", R"({"lifetime_seconds":60})", "ao"},
    {"POST", "/v1/sessions/ID/processes", R"({"tool":"bash","args":{"command":"true"}})", "ao"},
    {"GET", "/v1/sessions/ID/processes", "", "apou"},
    {"GET", "/v1/sessions/ID/processes/ID", "", "apou"},
    {"GET", "/v1/sessions/ID/processes/ID/log", "", "apou"},
    {"POST", "/v1/sessions/ID/processes/ID/signal", R"({"signal":"HUP"})", "ao"},
    {"DELETE", "/v1/sessions/ID/processes/ID", "", "ao"},
    {"GET", "/v1/sessions/ID/files", "", "ao"},
    {"GET", "/v1/sessions/ID/files/x", "", "ao"},
    {"PUT", "/v1/sessions/ID/files/x", "x", "ao"},
    {"DELETE", "/v1/sessions/ID/files/x", "", "ao"},
    {"GET", "/v1/tools", "", "apou"},
    {"GET", "/v1/tools/bash", "", "apou"},
    {"POST", "/v1/keys", R"({"role":"agent","agent":"made"})", "o"},
    {"GET", "/v1/keys", "", "ou"},
    {"DELETE", "/v1/keys/0000000000000000", "", "o"},
    {"GET", "/v1/audit", "", "ou"},
    {"GET", "/v1/audit/checkpoint", "", "apou"},
    {"GET",
     "/v1/audit/objects/sha256:0000000000000000000000000000000000000000000000000000000000000000",
     "", "ou"},
    {"GET", "/v1/access", "", "ou"},
    {"POST", "/v1/access/ID.1", R"({"decision":"deny"})", "o"},
    {"GET", "/v1/switches", "", "ou"},
    {"PUT", "/v1/switches/agent/nobody", kSwitchBody, "o"},
    {"DELETE", "/v1/switches/agent/nobody", "", "o"},
};

HttpAnswer Ask(const Daemon& daemon, const RouteCase& route, const std::string& key) {
  std::string path = route.path;
  for (size_t at = path.find("ID"); at != std::string::npos; at = path.find("ID")) {
    path.replace(at, 2, kNoSuchId);
  }
  return daemon.Ask(route.method, path, key, route.body);
}

TEST(Keys, EveryRoleOnEveryRoute) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  for (const std::string role : {"agent", "approver", "operator", "auditor"}) {
    const std::string key = daemon.NewKey("local", role, "x-" + role)["key"];
    const char letter = role == "approver" ? 'p' : role == "auditor" ? 'u' : role[0];
    for (const RouteCase& route : kRoutes) {
      SCOPED_TRACE(role + ": " + route.method + " " + route.path);
      const HttpAnswer answer = Ask(daemon, route, key);
      const bool may = std::string(route.roles).find(letter) != std::string::npos;
      if (may) {
        EXPECT_NE(answer.status, 403) << answer.text;
        EXPECT_NE(answer.status, 401) << answer.text;
        EXPECT_NE(answer.status, 0);
      } else if (std::string(route.path) == "/v1/calls") {
        EXPECT_EQ(answer.DeniedBy(), "policy.role") << answer.text;
        EXPECT_FALSE(answer.At("call_id").empty()) << "it is in the record";
      } else {
        EXPECT_EQ(answer.status, 403) << answer.text;
      }
    }
  }
}

// The table above is complete: what the daemon says it offers is in it.
TEST(Keys, TheTableHasEveryRoute) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  const HttpAnswer document = daemon.Ask("GET", "/openapi.json", "");
  ASSERT_EQ(document.status, 200);
  size_t offered = 0;
  for (const auto& [path, item] : document.body["paths"].items()) {
    if (path.starts_with("/v1/")) {
      for (const char* method : {"get", "post", "put", "delete", "patch"}) {
        offered += item.contains(method) ? 1 : 0;
      }
    }
  }
  EXPECT_EQ(offered, std::size(kRoutes));
}

TEST(Keys, WithoutAGoodKeyNothingIsAnswered) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  std::string changed = daemon.key();
  changed.back() = changed.back() == '0' ? '1' : '0';
  for (const std::string& key :
       {std::string(), std::string("garbage"), changed,
        daemon.key().substr(0, daemon.key().size() - 1), daemon.key() + "0", std::string(4000, 'a'),
        std::string("coffer_0000000000000000_00")}) {
    for (const RouteCase& route : kRoutes) {
      SCOPED_TRACE(key.substr(0, 30) + ": " + route.method + " " + route.path);
      EXPECT_EQ(Ask(daemon, route, key).status, 401);
    }
  }
  // The control, and what is for everyone.
  EXPECT_EQ(daemon.Ask("GET", "/v1/tools", daemon.key()).status, 200);
  EXPECT_EQ(daemon.Ask("GET", "/healthz", "").status, 200);
}

TEST(Keys, RevokedAndExpired) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  const auto works = [&](const std::string& key) {
    return daemon.Ask("GET", "/v1/tools", key).status;
  };
  const HttpAnswer revoked =
      daemon.Ask("POST", "/v1/keys", daemon.key(), R"({"role":"agent","agent":"x"})");
  ASSERT_EQ(revoked.status, 201) << revoked.text;
  EXPECT_EQ(works(revoked.At("key")), 200);
  EXPECT_EQ(daemon.Ask("DELETE", "/v1/keys/" + revoked.At("key_id"), daemon.key()).status, 200);
  EXPECT_EQ(works(revoked.At("key")), 401);

  const HttpAnswer brief = daemon.Ask("POST", "/v1/keys", daemon.key(),
                                      R"({"role":"agent","agent":"x","expires_in_seconds":1})");
  const auto made = std::chrono::steady_clock::now();
  ASSERT_EQ(brief.status, 201) << brief.text;
  EXPECT_TRUE(WaitUntil([&] { return works(brief.At("key")) == 401; }, Seconds(5)));
  EXPECT_GT(std::chrono::steady_clock::now() - made, std::chrono::milliseconds(500))
      << "it never worked";

  // One that another process revokes, while the daemon runs.
  const Json outside = daemon.NewKey("local", "agent", "outside");
  EXPECT_EQ(works(outside["key"]), 200);
  const std::string id = outside["id"];
  EXPECT_EQ(RunProgram({CofferPath(), "key", "revoke", id, "--state", daemon.state()}).exit, 0);
  EXPECT_TRUE(WaitUntil([&] { return works(outside["key"]) == 401; }, Seconds(1)));
  EXPECT_EQ(works(daemon.key()), 200);
}

TEST(Keys, KeepTheirLabel) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  const HttpAnswer made = daemon.Ask("POST", "/v1/keys", daemon.key(),
                                     R"({"role":"agent","agent":"x","label":"the nightly build"})");
  ASSERT_EQ(made.status, 201) << made.text;
  EXPECT_EQ(made.At("label"), "the nightly build");
  EXPECT_EQ(daemon.Stop(), 0);
  ASSERT_TRUE(daemon.Start());
  const std::string id = made.At("key_id");
  size_t found = 0;
  const HttpAnswer list = daemon.Ask("GET", "/v1/keys", daemon.key());
  for (const Json& key : list.body["keys"]) {
    found += key["key_id"] == id && key["label"] == "the nightly build" ? 1 : 0;
    EXPECT_TRUE(key["key_id"] == id || key["label"].is_null()) << key;
  }
  EXPECT_EQ(found, 1U);
}

// A stolen operator's key has made others. They name it, and end with it if that is asked for.
TEST(Keys, WhatAStolenKeyMadeIsNamedAndEndsWithIt) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  constexpr const char* kOperator = R"({"role":"operator","agent":"thief"})";
  const auto make = [&](const std::string& with) {
    const HttpAnswer made = daemon.Ask("POST", "/v1/keys", with, kOperator);
    EXPECT_EQ(made.status, 201) << made.text;
    return std::pair(made.At("key_id"), made.At("key"));
  };
  const auto works = [&](const std::string& key) {
    return daemon.Ask("GET", "/v1/keys", key).status == 200;
  };
  for (const bool from_outside : {false, true}) {
    SCOPED_TRACE(from_outside);
    const auto [stolen, stolen_key] = make(daemon.key());
    const auto [child, child_key] = make(stolen_key);
    const auto [grandchild, grandchild_key] = make(child_key);
    bool named = false;
    const HttpAnswer list = daemon.Ask("GET", "/v1/keys", daemon.key());
    for (const Json& key : list.body["keys"]) {
      named = named || (key["key_id"] == child && key["made_by"] == stolen);
    }
    EXPECT_TRUE(named);
    const RunResult listed = RunProgram({CofferPath(), "key", "list", "--state", daemon.state()});
    EXPECT_TRUE(Contains(listed.out, stolen + "  valid")) << listed.Describe();
    // The control: without the word for it, only the named one ends.
    ASSERT_EQ(daemon.Ask("DELETE", "/v1/keys/" + stolen, daemon.key()).status, 200);
    EXPECT_FALSE(works(stolen_key));
    EXPECT_TRUE(works(child_key));
    if (from_outside) {
      const RunResult revoked = RunProgram(
          {CofferPath(), "key", "revoke", stolen, "--with-keys", "--state", daemon.state()});
      EXPECT_EQ(revoked.exit, 0) << revoked.Describe();
      EXPECT_TRUE(Contains(revoked.out, grandchild)) << revoked.Describe();
    } else {
      EXPECT_EQ(daemon.Ask("DELETE", "/v1/keys/" + stolen + "?with_keys=yes", daemon.key()).status,
                400);
      EXPECT_EQ(daemon.Ask("DELETE", "/v1/keys/" + stolen + "?with_keys=true", daemon.key()).status,
                200);
    }
    EXPECT_FALSE(works(child_key));
    EXPECT_FALSE(works(grandchild_key));
    EXPECT_TRUE(works(daemon.key())) << "the maker of the stolen one goes on";
  }
}

// What OPERATIONS says about journals: a key before the first start, as whoever starts the daemon.
TEST(Keys, AStateDirectoryThatACommandMadeIsTheDaemons) {
  Daemon daemon;
  const std::string key = daemon.NewKey("local", "operator", "early")["key"];
  ASSERT_TRUE(daemon.Start());
  EXPECT_EQ(daemon.key(), "") << "a first key was made although there is one";
  EXPECT_EQ(daemon.Call(key, Bash("true")).Outcome(), "success");
}

}  // namespace
}  // namespace coffer::test
