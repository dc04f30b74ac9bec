// SPDX-License-Identifier: Apache-2.0
//
// Calls of calls in a daemon where something goes wrong on the way: a relay that does not answer, rights that are taken away between a
// call and its calls, answers that are not read. Each beside the same thing where it works.
#include <gtest/gtest.h>
#include <signal.h>

#include "tests/daemon/calls_daemon.h"

namespace coffer::test {
namespace {

// It may have been broken into, and then it does not end because it is asked to.
TEST_F(CallsOfDaemon, ARelayThatDoesNotListenEndsWithItsRunner) {
  Declare("greet", "echo hello");
  Declare("script", "coffer call greet; exec sleep 61", MayCall("\"greet\""));
  Start();
  const std::string id = Begin("script");
  ASSERT_TRUE(WaitUntil([&] { return Relay() != 0 && Sleeps(61) && CountOf("greet") == 1; }));
  const pid_t relay = Relay();
  ASSERT_EQ(::kill(relay, SIGSTOP), 0);
  ASSERT_TRUE(WaitUntil([&] { return StatusOf(relay)["State"].find('T') != std::string::npos; }));
  EXPECT_TRUE(IsAlive(relay)) << "NO-CONTROL";
  ::kill(RunnerOf(relay), SIGKILL);
  EXPECT_TRUE(WaitUntil([&] { return !IsAlive(relay); })) << "OPEN: the relay outlives its call";
  EXPECT_FALSE(Await(id).Outcome().empty());
}

// The call itself may go on; what it asks for is judged when it asks.
TEST_F(CallsOfDaemon, WhatIsTakenAwayWhileACallRunsItsCallsDoNotHave) {
  Declare("greet", "echo hello");
  Declare("script", "while coffer call greet 2>&1; do sleep 0.1; done; exec sleep 61",
          MayCall("\"greet\"", "most = 10000\n") + "[limits]\nwall = \"100s\"\n");
  Start();
  const HttpAnswer made =
      daemon_.Ask("POST", "/v1/keys", daemon_.key(), R"({"role":"agent","agent":"worker"})");
  ASSERT_EQ(made.status, 201) << made.text;
  const auto begin = [&] {
    const int before = CountOf("greet");
    const HttpAnswer begun = daemon_.Call(made.At("key"), {{"tool", "script"}}, kAsync);
    EXPECT_TRUE(WaitUntil([&] { return CountOf("greet") >= before + 2; }))
        << "NO-CONTROL" << begun.text;
    return begun.At("call_id");
  };
  const auto cancel = [&](const std::string& id) {
    daemon_.Ask("POST", "/v1/calls/" + id + "/cancel", daemon_.key(), "{}");
    EXPECT_EQ(Await(id).Outcome(), "terminated");
  };

  // A switch on the tool that it calls: the calling one is not stopped.
  std::string id = begin();
  ASSERT_EQ(
      daemon_.Ask("PUT", "/v1/switches/tool/greet", daemon_.key(), R"({"reason":"x"})").status,
      200);
  EXPECT_TRUE(WaitUntil([&] { return Sleeps(61); })) << "OPEN: it is called all the same";
  EXPECT_NE(ByTool()["greet"]["outcome"], "success") << "one that ran was ended";
  ASSERT_EQ(daemon_.Ask("DELETE", "/v1/switches/tool/greet", daemon_.key()).status, 204);
  cancel(id);

  // The key is revoked, and its calls may go on.
  id = begin();
  ASSERT_EQ(
      daemon_.Ask("DELETE", "/v1/keys/" + made.At("key_id") + "?keep_running=true", daemon_.key())
          .status,
      200);
  EXPECT_TRUE(WaitUntil([&] { return Sleeps(61); })) << "OPEN: a revoked key makes calls";
  const int after = CountOf("greet");
  cancel(id);
  EXPECT_EQ(CountOf("greet"), after);
}

// What a program does not read waits in its relay and is bounded there; the gateway gives it nothing more, and serves others.
TEST_F(CallsOfDaemon, LongAnswersThatAreNotReadHoldUpNobody) {
  const std::string small = "[limits]\nmemory = \"64MiB\"\ncpu = \"5s\"\noutput = \"4MiB\"\n";
  Declare("greet", "echo hello");
  // More than a client may leave unread, and all of them together less than a tenant may hold.
  Declare("long", "head -c 1200000 /dev/zero | tr '\\0' x", small);
  DeclarePython("deaf", MayCall("\"long\"", "most = 1000\n") +
                            "[limits]\nwall = \"100s\"\ncpu = \"60s\"\nmemory = \"512MiB\"\n"
                            "output = \"4MiB\"\n");
  const std::string hostile = kPythonInside + R"(
import time
clients = [connect() for _ in range(8)]
for s in clients:
    for i in range(4): s.sendall(line("tools/call", {"name": "long"}, i))
time.sleep(60)
)";
  Start();
  std::vector<std::string> begun;
  for (int i = 0; i < 2; ++i) {
    begun.push_back(
        daemon_.Call(daemon_.key(), {{"tool", "deaf"}, {"args", {{"word", hostile}}}}, kAsync)
            .At("call_id"));
  }
  // Each client is given what it may leave unread, and no more: an answer that is under way is finished.
  EXPECT_TRUE(WaitUntil([&] { return CountOf("long") >= 8; }, Seconds(60))) << "NO-CONTROL";
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(Out(Call("greet")), "hello\n");
  }
  for (const std::string& id : begun) {
    daemon_.Ask("POST", "/v1/calls/" + id + "/cancel", daemon_.key(), "{}");
    const HttpAnswer ended = Await(id);
    EXPECT_EQ(ended.Outcome(), "terminated") << ended.text;
  }
  EXPECT_LE(CountOf("long"), 2 * (8 + 8 * 2)) << "OPEN: calls are made whose answers are not read";
  EXPECT_EQ(Audit({"verify"}).exit, 0);
}

}  // namespace
}  // namespace coffer::test
