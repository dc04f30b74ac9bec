// SPDX-License-Identifier: Apache-2.0
//
// Background processes of sessions: reached by the session's later calls on the ports they declare and by nothing else,
// bounded like every call, and gone with their session, their daemon, or a word.
#include <gtest/gtest.h>
#include <signal.h>

#include <set>

#include "tests/daemon/daemon.h"
#include "tests/support/host.h"

namespace coffer::test {
namespace {

constexpr const char* kServer = "exec python3 -u -m http.server 8000 --bind 127.0.0.1";

std::string Fetch(int port, int times = 1, const std::string& path = "page") {
  return "python3 -c \"\nimport urllib.request\nfor i in range(" + std::to_string(times) +
         "):\n  print(urllib.request.urlopen('http://127.0.0.1:" + std::to_string(port) + "/" +
         path + "', timeout=5).read().decode(), end='')\n\" # " + NewToken();
}

class Processes : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(daemon_.Start());
    session_ = daemon_.NewSession(daemon_.key());
    PutFile(session_, "page", "hello\n");
  }
  void PutFile(const std::string& session, const std::string& name, const std::string& text) {
    EXPECT_EQ(daemon_.Ask("PUT", "/v1/sessions/" + session + "/files/" + name, daemon_.key(), text)
                  .status,
              201);
  }
  std::string Place(const std::string& session, const std::string& process = {}) {
    return "/v1/sessions/" + session + "/processes" + (process.empty() ? "" : "/" + process);
  }
  HttpAnswer Begin(const std::string& session, const std::string& command, const Json& ports,
                   const std::string& tool = "bash") {
    const char* const argument = tool == "bash" ? "command" : "code";
    return daemon_.Ask(
        "POST", Place(session), daemon_.key(),
        Json{{"tool", tool}, {"args", {{argument, command}}}, {"ports", ports}}.dump());
  }
  Json Look(const std::string& process) {
    return daemon_.Ask("GET", Place(session_, process), daemon_.key()).body;
  }
  // What a call of that session prints; "" if it fails.
  std::string Run(const std::string& session, const std::string& command) {
    const HttpAnswer answer = daemon_.Call(daemon_.key(), Bash(command, session));
    return answer.Outcome() == "success" ? answer.body["result"]["stdout"].get<std::string>() : "";
  }
  bool Answers(const std::string& session, int port) {
    return WaitUntil([&] { return Run(session, Fetch(port)) == "hello\n"; }, Seconds(20));
  }
  // The processes of the daemon that are not its roles, with all their children.
  std::set<pid_t> Below(pid_t pid) {
    std::set<pid_t> found;
    for (const pid_t child : ChildrenOf(pid)) {
      found.insert(child);
      found.merge(Below(child));
    }
    return found;
  }

  Daemon daemon_;
  std::string session_;
};

// CPU time of one thread of the gateway, or with all of them; in clock ticks.
uint64_t Ticks(const std::string& stat_file) {
  const std::string stat = ReadFile(stat_file).value_or("");
  unsigned long user = 0, system = 0;
  std::sscanf(stat.c_str() + stat.rfind(')') + 1,
              " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system);
  return user + system;
}

// The loop serves every tenant: it neither formats nor compresses what a process printed. It is the first thread.
TEST_F(Processes, WhatOnePrintedIsMadeIntoAnAnswerOffTheLoop) {
  const HttpAnswer begun = Begin(session_, "head -c 1000000 /dev/zero; echo; exec sleep 600", {});
  ASSERT_EQ(begun.status, 201) << begun.text;
  const std::string log = Place(session_, begun.At("process_id")) + "/log?limit=1048576";
  ASSERT_TRUE(WaitUntil([&] {
    const HttpAnswer answer = daemon_.Ask("GET", log, daemon_.key());
    return answer.status == 200 && answer.body["next"] == 1'000'001;
  }));
  const std::string gateway = "/proc/" + std::to_string(daemon_.Find(RoleOf::kGateway));
  const std::string loop = gateway + "/task" + gateway.substr(gateway.rfind('/')) + "/stat";
  const uint64_t all_before = Ticks(gateway + "/stat");
  const uint64_t loop_before = Ticks(loop);
  for (int i = 0; i < 20; ++i) {
    const HttpAnswer answer =
        daemon_.Ask("GET", log, daemon_.key(), "", "Accept-Encoding: gzip\r\n");
    ASSERT_EQ(answer.Field("Content-Encoding"), "gzip");
  }
  const uint64_t all = Ticks(gateway + "/stat") - all_before;
  EXPECT_GE(all, 10U) << "the control: it is work";
  EXPECT_LT(Ticks(loop) - loop_before, all / 2) << "of " << all;
}

TEST_F(Processes, AreReachedByLaterCallsOfTheirSessionAlone) {
  const HttpAnswer begun = Begin(session_, kServer, {8000});
  ASSERT_EQ(begun.status, 201) << begun.text;
  const std::string id = begun.At("process_id");
  EXPECT_EQ(begun.Field("Location"), Place(session_, id));
  ASSERT_TRUE(Answers(session_, 8000)) << Look(id);
  // More in all than can be open at the same time: what is over is used again.
  std::string all;
  for (int i = 0; i < 40; ++i) {
    all += "hello\n";
  }
  EXPECT_EQ(Run(session_, Fetch(8000, 40)), all);
  // And more at the same time than there are: some wait.
  EXPECT_EQ(Run(session_,
                "python3 -c \"import sys, urllib.request as u, threading as t\n"
                "page = lambda: u.urlopen('http://127.0.0.1:8000/page', timeout=20).read()\n"
                "ask = lambda: sys.stdout.write(repr(page()) + chr(10))\n"
                "all = [t.Thread(target=ask) for _ in range(24)]\n"
                "[one.start() for one in all]; [one.join() for one in all]\" "
                "| sort | uniq -c | tr -s ' ' # " +
                    NewToken()),
            " 24 b'hello\\n'\n");
  // A large answer comes whole.
  EXPECT_EQ(Run(session_, "head -c 3000000 /dev/zero > big"), "");
  EXPECT_EQ(Run(session_,
                "python3 -c \"import urllib.request as u; "
                "print(len(u.urlopen('http://127.0.0.1:8000/big').read()))\""),
            "3000000\n");

  // Another session of the same agent, and one of another tenant, have loopbacks of their own.
  const std::string other = daemon_.NewSession(daemon_.key());
  PutFile(other, "page", "hello\n");
  EXPECT_EQ(Run(other, Fetch(8000)), "");
  const Json stranger = daemon_.NewKey("acme", "agent", "mallory");
  const std::string key = stranger.value("key", "");
  const std::string theirs = daemon_.NewSession(key);
  EXPECT_NE(daemon_.Call(key, Bash(Fetch(8000), theirs)).Outcome(), "success");
  EXPECT_EQ(daemon_.Ask("GET", Place(session_, id), key).status, 404);
  EXPECT_EQ(daemon_.Ask("GET", Place(session_, id) + "/log", key).status, 404);
  EXPECT_EQ(daemon_.Ask("DELETE", Place(session_, id), key).status, 404);
  EXPECT_EQ(daemon_.Ask("GET", Place(theirs, id), key).status, 404) << "by a session of its own";
  EXPECT_EQ(daemon_.Ask("GET", Place(session_), key).status, 404);
  // A call without the session sees nothing of it.
  EXPECT_NE(daemon_.Call(daemon_.key(), Bash(Fetch(8000))).Outcome(), "success");
  EXPECT_TRUE(Answers(session_, 8000)) << "the control: it still answers";
}

TEST_F(Processes, DeclareTheirPorts) {
  const HttpAnswer begun = Begin(
      session_, "python3 -u -m http.server 8001 & exec python3 -u -m http.server 8000", {8000});
  ASSERT_EQ(begun.status, 201) << begun.text;
  ASSERT_TRUE(Answers(session_, 8000));
  EXPECT_EQ(Run(session_, Fetch(8001)), "") << "not declared";
  const HttpAnswer again = Begin(session_, kServer, {8000});
  EXPECT_EQ(again.At("outcome"), "denied") << again.text;
  EXPECT_EQ(again.body["error"]["class"], "policy.ports") << again.text;
  const HttpAnswer low = Begin(session_, kServer, {80});
  EXPECT_EQ(low.body["error"]["class"], "policy.ports") << low.text;
  // A process reaches those that were there before it.
  const HttpAnswer second = Begin(
      session_, "sleep 0.2; " + Fetch(8000) + "\nexec python3 -u -m http.server 8002", {8002});
  ASSERT_EQ(second.status, 201) << second.text;
  EXPECT_TRUE(Answers(session_, 8002));
  EXPECT_TRUE(WaitUntil([&] {
    return daemon_
               .Ask("GET", Place(session_, second.At("process_id")) + "/log?follow=1",
                    daemon_.key())
               .At("text")
               .find("hello\n") != std::string::npos;
  }));
  EXPECT_EQ(daemon_.Ask("GET", Place(session_), daemon_.key()).body["processes"].size(), 2U);
}

TEST_F(Processes, WhatIsNotAPortIsRefused) {
  // A call that repeats one that failed is refused for that.
  const auto fresh = [] { return std::string(kServer) + " # " + NewToken(); };
  Json many = Json::array();
  Json huge = Json::array();
  for (int port = 3000; port < 3009; ++port) {
    many.push_back(port);
  }
  for (int i = 0; i < 100000; ++i) {
    huge.push_back(8000);
  }
  for (const Json& ports :
       {Json::array({0}), Json::array({1023}), Json::array({65536}), Json::array({65536 + 8000}),
        Json::array({-1}), Json::array({8000.5}), Json::array({"8000"}), Json::array({8000, 8000}),
        Json::array({Json::array({8000})}), Json::object(), Json("8000"), Json(8000), many, huge}) {
    const HttpAnswer answer = Begin(session_, fresh(), ports);
    const bool denied =
        answer.Outcome() == "denied" && answer.body["error"].value("class", "") == "policy.ports";
    EXPECT_TRUE(answer.status == 400 || denied)
        << ports.dump().substr(0, 80) << " " << answer.status << " " << answer.text;
  }
  EXPECT_TRUE(daemon_.Runners().empty());
  EXPECT_EQ(Begin(session_, fresh(), {8000}).status, 201) << "the control";
}

TEST_F(Processes, NeedAManifestThatAllowsThem) {
  const HttpAnswer refused = Begin(session_, "print(1)", Json::array(), "python");
  EXPECT_EQ(refused.body["error"]["class"], "policy.background") << refused.text;
  EXPECT_EQ(Begin(kNoSuchId, kServer, {8000}).Outcome(), "denied");
  EXPECT_TRUE(daemon_.Runners().empty());
}

TEST_F(Processes, HaveALogAndHearSignals) {
  const HttpAnswer begun = Begin(
      session_, "trap 'echo reloaded' HUP; echo up; while :; do sleep 0.05; done", Json::array());
  ASSERT_EQ(begun.status, 201) << begun.text;
  const std::string id = begun.At("process_id");
  const std::string log = Place(session_, id) + "/log";
  HttpAnswer read = daemon_.Ask("GET", log + "?follow=20", daemon_.key());
  EXPECT_EQ(read.At("text"), "up\n");
  EXPECT_EQ(read.body["ended"], false);
  EXPECT_EQ(daemon_.Ask("GET", log + "?offset=1&limit=1", daemon_.key()).At("text"), "p");
  const auto send = [&](const std::string& name) {
    return daemon_
        .Ask("POST", Place(session_, id) + "/signal", daemon_.key(), Json{{"signal", name}}.dump())
        .status;
  };
  EXPECT_EQ(send("STOP"), 400);
  EXPECT_EQ(send("HUP"), 202);
  // A child of the shell hears the signal too, and the shell says so before or after.
  EXPECT_TRUE(WaitUntil([&] {
    read = daemon_.Ask("GET", log + "?follow=20&offset=3", daemon_.key());
    return read.At("text").find("reloaded\n") != std::string::npos;
  })) << read.text;
  EXPECT_EQ(daemon_.Ask("DELETE", Place(session_, id), daemon_.key()).status, 202);
  EXPECT_TRUE(WaitUntil([&] { return Look(id).value("state", "") == "ended"; }));
  EXPECT_EQ(Look(id).value("outcome", ""), "terminated");
  EXPECT_EQ(send("HUP"), 409);
  EXPECT_EQ(daemon_.Ask("GET", log, daemon_.key()).body["ended"], true);
  EXPECT_EQ(daemon_.Ask("GET", "/v1/calls/" + id + "/receipt", daemon_.key()).status, 200);
  // The gateway hears of the end from the runner, which is gone only after that.
  EXPECT_TRUE(WaitUntil([&] { return daemon_.Runners().empty(); }));
}

TEST_F(Processes, HaveLimitsOfTheirOwn) {
  const HttpAnswer begun = Begin(
      session_, "python3 -c 'b = bytearray(1 << 29); print(len(b))'; sleep 60", Json::array());
  ASSERT_EQ(begun.status, 201) << begun.text;
  const std::string id = begun.At("process_id");
  EXPECT_TRUE(WaitUntil([&] { return Look(id).value("state", "") == "ended"; }, Seconds(30)));
  EXPECT_EQ(Look(id)["error"]["class"], "limit.memory") << Look(id);
  // The call's own wall of 30 s is not the process's.
  const HttpAnswer receipt = daemon_.Ask("GET", "/v1/calls/" + id + "/receipt", daemon_.key());
  EXPECT_GT(receipt.body["limits"]["wall"].value("cap", int64_t{0}), 3600LL * 1000);
}

TEST_F(Processes, AreGoneWithTheirSession) {
  const HttpAnswer begun = Begin(session_, kServer, {8000});
  ASSERT_TRUE(Answers(session_, 8000));
  const std::set<pid_t> pids = Below(daemon_.Find(RoleOf::kWarden));
  EXPECT_GE(pids.size(), 4U) << "runner, init, forwarder and the server";
  EXPECT_EQ(daemon_.Ask("DELETE", "/v1/sessions/" + session_, daemon_.key()).status, 200);
  EXPECT_TRUE(WaitUntil([&] { return daemon_.Runners().empty(); }));
  for (const pid_t pid : pids) {
    EXPECT_TRUE(WaitUntil([&] { return !IsAlive(pid); })) << pid;
  }
  // DELETE answers when the session is closed. The calls in it end after that, and each is sealed when it has ended.
  const auto call = [&] {
    return daemon_.Ask("GET", "/v1/calls/" + begun.At("process_id"), daemon_.key());
  };
  EXPECT_TRUE(WaitUntil([&] { return call().At("state") == "finished"; })) << call().text;
  EXPECT_EQ(call().Outcome(), "terminated") << call().text;
}

TEST_F(Processes, AreGoneWithTheirDaemon) {
  const Strings traces = CofferTraces();
  ASSERT_EQ(Begin(session_, kServer, {8000}).status, 201);
  ASSERT_TRUE(Answers(session_, 8000));
  const std::set<pid_t> pids = Below(daemon_.monitor());
  EXPECT_GE(pids.size(), 7U);
  ASSERT_EQ(::kill(daemon_.monitor(), SIGKILL), 0);
  EXPECT_TRUE(daemon_.Gone());
  for (const pid_t pid : pids) {
    EXPECT_TRUE(WaitUntil([&] { return !IsAlive(pid); })) << pid;
  }
}

TEST_F(Processes, DoNotKeepTheDaemonFromStopping) {
  ASSERT_EQ(Begin(session_, kServer, {8000}).status, 201);
  ASSERT_TRUE(Answers(session_, 8000));
  const auto began = std::chrono::steady_clock::now();
  EXPECT_EQ(daemon_.Stop(), 0) << daemon_.Said();
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(9));
}

// The forwarder is no way out: it holds no power, can make no socket, and carries only what it was given.
TEST_F(Processes, AForwarderHasNoPower) {
  ASSERT_EQ(Begin(session_, kServer, {8000}).status, 201);
  ASSERT_TRUE(Answers(session_, 8000));
  size_t forwarders = 0;
  for (const pid_t runner : daemon_.Runners()) {
    for (const pid_t child : ChildrenOf(runner)) {
      std::map<std::string, std::string> status = StatusOf(child);
      // Init is the first of a pid namespace of its own; the forwarder is in ours.
      if (status["NSpid"].find('\t') != std::string::npos) {
        continue;
      }
      ++forwarders;
      EXPECT_EQ(status["CapEff"], "0000000000000000");
      EXPECT_EQ(status["CapPrm"], "0000000000000000");
      EXPECT_EQ(status["NoNewPrivs"], "1");
      EXPECT_EQ(status["Seccomp"], "2");
      EXPECT_FALSE(status["Uid"].starts_with("0\t")) << status["Uid"];
    }
  }
  EXPECT_EQ(forwarders, 1U);
}

}  // namespace
}  // namespace coffer::test
