// SPDX-License-Identifier: Apache-2.0
//
// A large answer is made while its client reads it. A client that does not read holds what the answer is made from, not the
// answer; for one that leaves nothing more is made.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "gateway/http/json_pieces.h"
#include "tests/gateway/harness.h"
#include "tests/support/run.h"

namespace coffer::gateway {
namespace {

constexpr size_t kOutput = 8 << 20;
constexpr int kPieces = 6 * kOutput / JsonPieces::kPieceBytes;

// Until the kernel's buffers are full, and no further step is made.
int StepsUntilQuiet(RunningServer& server) {
  int before = -1;
  (void)test::WaitUntil([&] {
    const int now = server.service.steps;
    return now > 0 && now == std::exchange(before, now);
  });
  return before;
}

TEST(Streamed, AnAnswerIsMadeWhileItIsRead) {
  RunningServer server;
  RawClient client = RawClient::Tcp(server.port());
  client.Send(CallOf(R"({"tool":"huge"})"));
  EXPECT_LT(StepsUntilQuiet(server), kPieces / 2);
  EXPECT_GE(server.service.bytes_held, kOutput);
  EXPECT_LT(server.service.bytes_held, kOutput * 5 / 4) << "not six times as much";
  const Reply1 reply = client.Receive();
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(nlohmann::json::parse(reply.body)["result"]["stdout"], std::string(kOutput, '\0'));
  EXPECT_GE(server.service.steps, kPieces);
  EXPECT_TRUE(test::WaitUntil([&] { return server.service.bytes_held == 0; }));
}

TEST(Streamed, NothingMoreIsMadeForAClientThatLeft) {
  for (const bool reset : {false, true}) {
    RunningServer server;
    {
      RawClient client = RawClient::Tcp(server.port());
      client.Send(CallOf(R"({"tool":"huge"})"));
      ASSERT_TRUE(test::WaitUntil([&] { return server.service.steps > 0; }));
      if (reset) {
        client.Reset();
      }
    }
    EXPECT_TRUE(test::WaitUntil([&] { return server.service.bytes_held == 0; }));
    EXPECT_LT(server.service.steps, kPieces / 2);
    RawClient next = RawClient::Tcp(server.port());
    next.Send(CallOf(R"({"tool":"huge"})"));
    EXPECT_EQ(next.Receive().status, 200);
    EXPECT_GE(server.service.steps, kPieces) << "the control";
  }
}

// Without chunks the end of the connection is the end of the answer.
TEST(Streamed, AnOldClientGetsItToTheEndOfTheConnection) {
  RunningServer server;
  RawClient client = RawClient::Tcp(server.port());
  std::string request = CallOf(R"({"tool":"big"})");
  request.replace(request.find("HTTP/1.1"), 8, "HTTP/1.0");
  client.Send(request);
  std::string all;
  for (std::string some = client.ReadSome(); !some.empty(); some = client.ReadSome()) {
    all += some;
  }
  const size_t body = all.find("\r\n\r\n") + 4;
  EXPECT_EQ(all.find("Transfer-Encoding"), std::string::npos);
  EXPECT_EQ(nlohmann::json::parse(all.substr(body))["result"]["stdout"].get<std::string>().size(),
            1U << 20);
}

}  // namespace
}  // namespace coffer::gateway
