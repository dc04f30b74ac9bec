// SPDX-License-Identifier: Apache-2.0
//
// A client that is gone is noticed while its request waits for the service: a reading is dropped, a change is done.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "tests/gateway/harness.h"
#include "tests/support/run.h"

namespace coffer::gateway {
namespace {

size_t Connections(RunningServer& server) {
  size_t count = 0;
  server.OnLoop([&] { count = server.server().stats().connections; });
  return count;
}

enum class Leaving { kClose, kReset, kCloseWithMoreSent };

TEST(Gone, AReadingOfAClientThatLeftIsDropped) {
  for (const Leaving how : {Leaving::kClose, Leaving::kReset, Leaving::kCloseWithMoreSent}) {
    RunningServer server;
    server.OnLoop([&] { server.service.hold = true; });
    RawClient stays = RawClient::Tcp(server.port());
    stays.Send(Request("GET", "/v1/tools", "agent-key"));
    {
      RawClient client = RawClient::Tcp(server.port());
      client.Send(Request("GET", "/v1/tools", "agent-key"));
      ASSERT_TRUE(server.Eventually([&] { return server.service.held() == 2; }));
      if (how == Leaving::kCloseWithMoreSent) {
        client.Send(Request("GET", "/v1/tools", "agent-key"));
      }
      if (how == Leaving::kReset) {
        client.Reset();
      }
    }
    EXPECT_TRUE(test::WaitUntil([&] { return Connections(server) == 1; }));
    server.OnLoop([&] { server.service.Release(); });
    EXPECT_EQ(stays.Receive().status, 200) << "the control";
    server.OnLoop([&] { EXPECT_EQ(server.service.asked.size(), 1U); });
  }
}

// The same over MCP, where a reading is a POST.
TEST(Gone, AReadingOverMcpOfAClientThatLeftIsDropped) {
  RunningServer server;
  const std::string request =
      Request("POST", "/mcp", "agent-key",
              "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
              "Mcp-Session-Id: " +
                  kSessionId + "\r\nMCP-Protocol-Version: 2025-11-25\r\n",
              R"({"jsonrpc":"2.0","id":1,"method":"tools/list"})");
  server.OnLoop([&] { server.service.hold = true; });
  RawClient stays = RawClient::Tcp(server.port());
  stays.Send(request);
  {
    RawClient leaves = RawClient::Tcp(server.port());
    leaves.Send(request);
    ASSERT_TRUE(server.Eventually([&] { return server.service.held() == 2; }));
    server.OnLoop([&] { server.service.ReleaseHeld(); });  // they are known now
    ASSERT_TRUE(server.Eventually([&] { return server.service.held() == 2; }));
  }
  EXPECT_TRUE(test::WaitUntil([&] { return Connections(server) == 1; })) << "before its answer";
  server.OnLoop([&] { server.service.Release(); });
  EXPECT_EQ(stays.Receive().status, 200);
  server.OnLoop([&] {
    ASSERT_EQ(server.service.wanted.size(), 2U);
    EXPECT_TRUE(server.service.wanted.front()) << "the control";
    EXPECT_FALSE(server.service.wanted.back());
  });
}

TEST(Gone, ACallOfAClientThatLeftIsMade) {
  RunningServer server;
  server.OnLoop([&] { server.service.hold = true; });
  {
    RawClient client = RawClient::Tcp(server.port());
    client.Send(CallOf(R"({"tool":"echo"})"));
    ASSERT_TRUE(server.Eventually([&] { return server.service.held() == 1; }));
  }
  // Time for several sweeps.
  std::this_thread::sleep_for(std::chrono::milliseconds(700));
  server.OnLoop([&] { server.service.Release(); });
  EXPECT_TRUE(server.Eventually([&] { return server.service.submitted.size() == 1; }));
  EXPECT_TRUE(test::WaitUntil([&] { return Connections(server) == 0; }));
}

}  // namespace
}  // namespace coffer::gateway
