// SPDX-License-Identifier: Apache-2.0
//
// The circuit breaker: an agent whose calls of a tool are denied too often waits for that tool; no other agent, tool or
// tenant does.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <fstream>

#include "tests/daemon/daemon.h"
#include "tests/daemon/egress_daemon.h"

namespace coffer::test {
namespace {

constexpr const char* kRule = "[breaker]\ndenials = 3\nwithin = \"1h\"\npause = \"1h\"\n";
constexpr const char* kPause = "/v1/switches/breaker/python:worker";

class Breaker : public ::testing::Test {
 protected:
  void Begin(const std::string& config) {
    Write(config);
    ASSERT_TRUE(daemon_.Start({"--config", file_}));
    key_ = daemon_.NewKey("local", "agent", "worker")["key"];
  }
  // Read by the gateway's own uid, wherever it lies.
  void Write(const std::string& text) {
    std::ofstream(file_, std::ios::trunc) << text;
    ASSERT_EQ(::chmod(file_.c_str(), 0644), 0);
  }
  HttpAnswer Python(const std::string& key, const std::string& code,
                    const std::string& session = {}, const std::string& fields = {}) {
    Json body = {{"tool", "python"}, {"args", {{"code", code + " # " + NewToken()}}}};
    if (!session.empty()) {
      body["session_id"] = session;
    }
    return daemon_.Call(key, body, fields);
  }
  // A call that the boundary lets do all it does.
  HttpAnswer Harmless(const std::string& key) { return Python(key, "print(1)"); }
  // One that is refused a system call that looks like an escape, and ends well.
  HttpAnswer Escape(const std::string& key) {
    return Python(key, "import ctypes\nprint(ctypes.CDLL(None).unshare(0x10000000))");
  }
  void Trip() {
    for (int i = 0; i < 3; ++i) {
      const HttpAnswer answer = Escape(key_);
      ASSERT_EQ(answer.Outcome(), "success") << answer.text;
      ASSERT_FALSE(answer.body["denials"].empty()) << "nothing was refused: " << answer.text;
    }
  }
  Json Switches() { return daemon_.Ask("GET", "/v1/switches", daemon_.key()).body["switches"]; }
  std::string Log() const { return *ReadFile(daemon_.state() + "/log/records"); }
  RunResult Switch(Strings words) const {
    words.insert(words.begin(), {CofferPath(), "switch"});
    words.insert(words.end(), {"--state", daemon_.state()});
    return RunProgram(words);
  }

  TempDir dir_;
  std::string file_ = dir_ / "coffer.toml";
  Daemon daemon_;
  std::string key_;
};

TEST_F(Breaker, TheNextCallAfterTheThirdRefusedSystemCallIsDenied) {
  Begin(kRule);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(Escape(key_).Outcome(), "success");
  }
  EXPECT_EQ(Harmless(key_).Outcome(), "success") << "the control: two are not three";
  EXPECT_EQ(Switches(), Json::array());
  EXPECT_EQ(Escape(key_).Outcome(), "success");

  const HttpAnswer denied = Harmless(key_);
  EXPECT_EQ(denied.DeniedBy(), "policy.breaker") << denied.text;
  EXPECT_FALSE(denied.Field("Retry-After").empty()) << denied.head;
  const HttpAnswer process =
      daemon_.Ask("POST", "/v1/sessions/" + daemon_.NewSession(key_) + "/processes", key_,
                  Json{{"tool", "python"}, {"args", {{"code", "print(1)"}}}}.dump());
  EXPECT_EQ(process.DeniedBy(), "policy.breaker") << process.text;
  EXPECT_FALSE(process.Field("Retry-After").empty()) << process.head;
  const HttpAnswer receipt =
      daemon_.Ask("GET", "/v1/calls/" + denied.At("call_id") + "/receipt", key_);
  EXPECT_EQ(receipt.body["error"]["class"], "policy.breaker") << receipt.text;

  ASSERT_EQ(Switches().size(), 1U);
  const Json pause = Switches()[0];
  EXPECT_EQ(pause["scope"], "breaker");
  EXPECT_EQ(pause["name"], "python:worker");
  EXPECT_EQ(pause["tenant"], "local");
  EXPECT_FALSE(pause["until"].is_null());
  EXPECT_TRUE(Contains(Log(), "\"breaker.tripped\""));
  const HttpAnswer scrape = daemon_.Ask("GET", "/metrics", daemon_.key());
  EXPECT_TRUE(Contains(scrape.text, "coffer_breaker_trips_total{tool=\"python\"} 1\n"));
  EXPECT_TRUE(Contains(scrape.text, "coffer_breaker_trips_total{tool=\"bash\"} 0\n"));
}

// What one agent's payloads do, at will, stops no other agent.
TEST_F(Breaker, StopsNoOtherAgentToolOrTenant) {
  Begin(kRule);
  const std::string colleague = daemon_.NewKey("local", "agent", "colleague")["key"];
  const std::string namesake = daemon_.NewKey("other", "agent", "worker")["key"];
  Trip();
  EXPECT_EQ(Harmless(key_).DeniedBy(), "policy.breaker") << "the control";
  EXPECT_EQ(Harmless(colleague).Outcome(), "success");
  EXPECT_EQ(Harmless(namesake).Outcome(), "success");
  EXPECT_EQ(daemon_.Call(key_, Bash("echo 1")).Outcome(), "success") << "bash is not python";
  const HttpAnswer seen =
      daemon_.Ask("GET", "/v1/switches", daemon_.NewKey("other", "operator", "o")["key"]);
  EXPECT_EQ(seen.body["switches"], Json::array()) << seen.text;
}

TEST_F(Breaker, WhatRunsGoesOn) {
  Begin(kRule);
  const std::string session = daemon_.NewSession(key_);
  const HttpAnswer began = Python(key_,
                                  "import os, time\nopen('began', 'w').close()\n"
                                  "while not os.path.exists('go'): time.sleep(0.01)\nprint('done')",
                                  session, kAsync);
  ASSERT_TRUE(WaitUntil([&] { return Exists(daemon_.Workspace(session) + "/began"); }));
  Trip();
  EXPECT_EQ(Harmless(key_).DeniedBy(), "policy.breaker") << "the control";
  std::ofstream(daemon_.Workspace(session) + "/go") << "";
  const auto view = [&] { return daemon_.Ask("GET", "/v1/calls/" + began.At("call_id"), key_); };
  EXPECT_TRUE(WaitUntil([&] { return view().At("state") == "finished"; }));
  EXPECT_EQ(view().Outcome(), "success") << view().text;
}

TEST_F(Breaker, AnOperatorLiftsItAndNeitherTheAgentNorAnotherTenantDoes) {
  Begin(kRule);
  const std::string also_worker = daemon_.NewKey("local", "operator", "worker")["key"];
  const std::string stranger = daemon_.NewKey("other", "operator", "olga")["key"];
  Trip();
  EXPECT_EQ(daemon_.Ask("DELETE", kPause, key_).status, 403);
  // The same agent, with an operator's key.
  const HttpAnswer own = daemon_.Ask("DELETE", kPause, also_worker);
  EXPECT_EQ(own.status, 403) << own.text;
  EXPECT_EQ(own.At("code"), "policy.breaker");
  EXPECT_EQ(daemon_.Ask("DELETE", kPause, stranger).status, 404);
  EXPECT_EQ(daemon_.Ask("PUT", kPause, daemon_.key(), R"({"reason":"x"})").At("code"),
            "switch.breaker");
  EXPECT_EQ(Harmless(key_).DeniedBy(), "policy.breaker");

  const HttpAnswer lifted = daemon_.Ask("DELETE", kPause, daemon_.key());
  EXPECT_EQ(lifted.status, 204) << lifted.text;
  EXPECT_EQ(Harmless(key_).Outcome(), "success");
  EXPECT_EQ(Switches(), Json::array());
  EXPECT_EQ(daemon_.Ask("DELETE", kPause, daemon_.key()).At("code"), "switch.unknown");
  EXPECT_TRUE(Contains(Log(), "\"switch.off\""));
}

TEST_F(Breaker, SurvivesARestartAndIsLiftedFromTheCommandLine) {
  Begin(kRule);
  Trip();
  ASSERT_EQ(daemon_.Stop(), 0);
  ASSERT_TRUE(daemon_.Start({"--config", file_}));
  EXPECT_EQ(Harmless(key_).DeniedBy(), "policy.breaker");
  const RunResult list = Switch({"list", "--json"});
  EXPECT_TRUE(Contains(list.out, "python:worker")) << list.out << list.err;
  EXPECT_NE(Switch({"on", "breaker", "python:worker", "--reason", "x"}).exit, 0);
  EXPECT_NE(Switch({"off", "breaker", "python:nobody"}).exit, 0) << "the control";
  const RunResult off = Switch({"off", "breaker", "python:worker"});
  EXPECT_EQ(off.exit, 0) << off.err;
  EXPECT_EQ(Harmless(key_).Outcome(), "success");
}

TEST_F(Breaker, EndsByItself) {
  Begin("[breaker]\npause = \"2s\"\n");
  Trip();
  EXPECT_TRUE(Contains(Log(), "\"breaker.tripped\"")) << "the control";
  EXPECT_TRUE(WaitUntil([&] { return Switches().empty(); }, Seconds(30)));
  EXPECT_EQ(Harmless(key_).Outcome(), "success");
}

TEST_F(Breaker, IsOffWithoutASectionAndComesWithAReload) {
  Begin("");
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(Escape(key_).Outcome(), "success");
  }
  EXPECT_EQ(Harmless(key_).Outcome(), "success");
  Write(kRule);
  ASSERT_EQ(::kill(daemon_.monitor(), SIGHUP), 0);
  EXPECT_TRUE(WaitUntil([&] { return Escape(key_).DeniedBy() == "policy.breaker"; }, Seconds(60)));
}

class BreakerEgress : public DaemonEgress {};

TEST_F(BreakerEgress, TheNextCallAfterTheThirdRefusedDestinationIsDenied) {
  Configure(kRule);
  ASSERT_TRUE(Start());
  const auto outside = [this] { return Call("reader", Ask("other.test")); };
  const auto inside = [this] { return Call("reader", Ask("api.test")); };
  for (int i = 0; i < 2; ++i) {
    const HttpAnswer refused = outside();
    EXPECT_EQ(refused.Outcome(), "success") << refused.text;
    EXPECT_FALSE(refused.body["denials"].empty()) << refused.text;
  }
  EXPECT_EQ(inside().Outcome(), "success") << "the control: two are not three";
  EXPECT_EQ(outside().Outcome(), "success");
  EXPECT_EQ(inside().DeniedBy(), "policy.breaker");
  EXPECT_EQ(Call("mute", "true").Outcome(), "success") << "another tool";
}

}  // namespace
}  // namespace coffer::test
