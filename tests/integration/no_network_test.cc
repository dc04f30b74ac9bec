// SPDX-License-Identifier: Apache-2.0
//
// A call without hosts to reach says so when its program looked for the network: in the receipt what was tried, and on stderr
// the flag, because programs seldom say more than "could not resolve host".
#include <gtest/gtest.h>

#include "tests/support/run.h"

namespace coffer::test {
namespace {

constexpr const char* kHint = "this call had no network; --allow ";

Strings Python(const std::string& code) { return {"python3", "-c", "import socket\n" + code}; }

TEST(NoNetwork, AnAddressOutsideIsADenialWithItsFix) {
  for (const auto& [connect, target] :
       {std::pair("socket.create_connection(('192.0.2.7', 443), 5)", "192.0.2.7:443"),
        std::pair("s = socket.socket(socket.AF_INET6); s.connect(('2001:db8::7', 25))",
                  "[2001:db8::7]:25"),
        std::pair("s = socket.socket(type=socket.SOCK_DGRAM); s.connect(('192.0.2.8', 123))",
                  "192.0.2.8:123")}) {
    const RunResult run = RunCoffer({"--level", "container", "--trace"}, Python(connect));
    EXPECT_EQ(run.exit, 1) << run.Describe();
    ASSERT_EQ(run.receipt["denials"].size(), 1U) << run.Describe();
    const Json denial = run.receipt["denials"][0];
    EXPECT_EQ(denial["surface"], "egress");
    EXPECT_EQ(denial["operation"], "connect");
    EXPECT_EQ(denial["target"], target);
    EXPECT_TRUE(Contains(denial["fix"], "--allow HOST[:PORT]"));
    EXPECT_TRUE(Contains(run.err, std::string("refused 1x ") + target)) << run.err;
    EXPECT_TRUE(Contains(run.err, kHint + std::string("HOST"))) << run.err;
  }
}

TEST(NoNetwork, AUrlInTheCommandNamesTheHostToAllow) {
  const RunResult run = RunCoffer({}, {"curl", "-sS", "-m", "5", "https://api.example.com/v1"});
  EXPECT_EQ(run.exit, 6) << run.Describe();
  EXPECT_TRUE(Contains(run.err, kHint + std::string("api.example.com"))) << run.err;
}

// Clients that try again until their time is spent say nothing themselves.
TEST(NoNetwork, AProgramThatTriesUntilTheWallIsTold) {
  const std::string waits = "import time; time.sleep(60)";
  const RunResult tries = RunCoffer(
      {"--wall", "2s"}, {"python3", "-c", waits, "https://packages.example.com/left-pad"});
  EXPECT_EQ(tries.ErrorClass(), "limit.wall") << tries.Describe();
  EXPECT_TRUE(Contains(tries.err, kHint + std::string("packages.example.com"))) << tries.err;
  const RunResult waited = RunCoffer({"--wall", "2s"}, {"python3", "-c", waits});
  EXPECT_EQ(waited.ErrorClass(), "limit.wall") << waited.Describe();
  EXPECT_FALSE(Contains(waited.err, kHint)) << "the control\n" << waited.err;
}

// A name server is looked for by programs that ask it themselves.
TEST(NoNetwork, ALookForANameIsADenial) {
  const RunResult run = RunCoffer({"--level", "container"},
                                  Python("s = socket.socket(type=socket.SOCK_DGRAM)\n"
                                         "s.connect(('127.0.0.1', 53)); s.send(b'x'); s.recv(1)"));
  EXPECT_EQ(run.exit, 1) << run.Describe();
  ASSERT_EQ(run.receipt["denials"].size(), 1U) << run.Describe();
  EXPECT_EQ(run.receipt["denials"][0]["operation"], "resolve");
}

TEST(NoNetwork, NothingIsSaidOfAProgramThatFailsForAnotherReason) {
  const std::string own =
      "s = socket.create_server(('127.0.0.1', 0)); socket.create_connection(s.getsockname())\n"
      "try: socket.create_connection(('127.0.0.1', 9), 5)\n"
      "except ConnectionRefusedError: exit(3)";
  const RunResult run = RunCoffer({"--level", "container"}, Python(own));
  EXPECT_EQ(run.exit, 3) << run.Describe();
  EXPECT_EQ(run.receipt["denials"], Json::array());
  EXPECT_FALSE(Contains(run.err, kHint)) << run.err;
  const RunResult fine = RunCoffer({}, {"echo", "https://api.example.com/"});
  EXPECT_EQ(fine.exit, 0);
  EXPECT_FALSE(Contains(fine.err, kHint)) << fine.err;
}

}  // namespace
}  // namespace coffer::test
