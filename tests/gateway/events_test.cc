// SPDX-License-Identifier: Apache-2.0
//
// Server-sent events through the real server: order, resume, loss, heartbeats, clients that vanish.
#include <gtest/gtest.h>

#include <thread>

#include "tests/gateway/harness.h"

namespace coffer::gateway {
namespace {

using Kind = CallEvent::Kind;

std::string EventsOf(std::string_view more = {}) {
  return Request("GET", "/v1/calls/" + kCallId + "/events", "agent-key", more);
}

TEST(Events, AreStreamedAsTheyHappen) {
  RunningServer server;
  RawClient client = RawClient::Tcp(server.port());
  server.OnLoop([&] { server.service.AddEvent(Kind::kState, "running"); });
  client.Send(EventsOf());
  std::string seen = client.ReadUntil("id: 1\nevent: state\ndata: {\"state\":\"running\"}\n\n");
  EXPECT_NE(seen.find("Content-Type: text/event-stream\r\n"), std::string::npos);
  EXPECT_NE(seen.find("Transfer-Encoding: chunked\r\n"), std::string::npos);
  server.OnLoop([&] { server.service.AddEvent(Kind::kStdout, "a\nb"); });
  EXPECT_NE(client.ReadUntil("id: 2\nevent: stdout\ndata: {\"text\":\"a\\nb\"}\n\n"), "");
  server.OnLoop([&] { server.service.AddEvent(Kind::kStderr, "\xff"); });
  EXPECT_NE(client.ReadUntil("id: 3\nevent: stderr\ndata: {\"base64\":\"/w==\"}\n\n"), "");
  server.OnLoop([&] {
    server.service.AddEvent(Kind::kState, "finished");
    server.service.EndEvents();
  });
  EXPECT_NE(client.ReadUntil("0\r\n\r\n").find("id: 4\nevent: state\n"), std::string::npos);
  // The connection is good for more.
  client.Send(Request("GET", "/healthz"));
  EXPECT_EQ(client.Receive().status, 200);
}

TEST(Events, ResumeAfterTheLastSeen) {
  RunningServer server;
  server.OnLoop([&] {
    for (int i = 0; i < 10; ++i) {
      server.service.AddEvent(Kind::kStdout, "line " + std::to_string(i));
    }
    server.service.EndEvents();
  });
  RawClient client = RawClient::Tcp(server.port());
  client.Send(EventsOf("Last-Event-ID: 7\r\n"));
  const Reply1 reply = client.Receive();
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body.find("id: 7\n"), std::string::npos);
  EXPECT_NE(reply.body.find("id: 8\n"), std::string::npos);
  EXPECT_NE(reply.body.find("id: 10\n"), std::string::npos);
  EXPECT_EQ(reply.body.find("event: gap"), std::string::npos);
  // Seen everything, and nothing will follow: an EventSource must not come back for ever.
  client.Send(EventsOf("Last-Event-ID: 10\r\n"));
  EXPECT_EQ(client.Receive().status, 204);
}

TEST(Events, SayWhatIsLost) {
  RunningServer server;
  server.OnLoop([&] {
    for (int i = 0; i < 10; ++i) {
      server.service.AddEvent(Kind::kStdout, "x");
    }
    server.service.first_event = 6;
    server.service.EndEvents();
  });
  RawClient client = RawClient::Tcp(server.port());
  client.Send(EventsOf("Last-Event-ID: 2\r\n"));
  const Reply1 reply = client.Receive();
  const size_t gap = reply.body.find("event: gap\ndata: {}\n\n");
  ASSERT_NE(gap, std::string::npos);
  EXPECT_LT(gap, reply.body.find("id: 6\n"));
  EXPECT_EQ(reply.body.find("id: 5\n"), std::string::npos);
}

TEST(Events, OfAnUnknownCallAreAProblem) {
  RunningServer server;
  RawClient client = RawClient::Tcp(server.port());
  client.Send(Request("GET", "/v1/calls/" + kOtherId + "/events", "agent-key"));
  const Reply1 reply = client.Receive();
  EXPECT_EQ(reply.status, 404);
  EXPECT_EQ(reply.Code(), "call.unknown");
}

TEST(Events, ASilentStreamBeginsAndBeats) {
  ServerConfig config;
  config.http.limits.heartbeat = std::chrono::milliseconds(50);
  RunningServer server(config);
  RawClient client = RawClient::Tcp(server.port());
  client.Send(EventsOf());
  EXPECT_NE(client.ReadUntil(": still here\n\n").find("200 OK"), std::string::npos);
  EXPECT_NE(client.ReadUntil(": still here\n\n"), "");
}

TEST(Events, AVanishedClientLeavesNoWaitBehind) {
  ServerConfig config;
  config.http.limits.heartbeat = std::chrono::milliseconds(50);
  RunningServer server(config);
  for (int i = 0; i < 20; ++i) {
    RawClient client = RawClient::Tcp(server.port());
    client.Send(EventsOf());
    ASSERT_NE(client.ReadUntil("retry:"), "");
    client.Reset();
  }
  EXPECT_TRUE(server.Eventually([&] { return server.server().stats().connections == 0; }));
  server.OnLoop([&] { EXPECT_EQ(server.service.event_waits, 0U); });
}

TEST(Events, ManyListenersSeeTheSame) {
  RunningServer server;
  std::vector<RawClient> clients;
  for (int i = 0; i < 50; ++i) {
    clients.push_back(RawClient::Tcp(server.port()));
    clients.back().Send(EventsOf());
  }
  for (RawClient& client : clients) {
    ASSERT_NE(client.ReadUntil("retry:"), "");
  }
  server.OnLoop([&] {
    server.service.AddEvent(Kind::kStdout, "to all");
    server.service.EndEvents();
  });
  for (RawClient& client : clients) {
    EXPECT_NE(client.ReadUntil("0\r\n\r\n").find("to all"), std::string::npos);
  }
}

Refusal KeyIsRevoked() {
  return {
      .kind = RefusalKind::kUnauthenticated, .code = "auth.key", .message = "this key was revoked"};
}

constexpr const char* kEnd =
    "event: end\ndata: {\"code\":\"auth.key\",\"message\":\"this key was revoked\"}\n\n";

TEST(Events, ASilentStreamEndsWithItsKey) {
  ServerConfig config;
  config.http.limits.heartbeat = std::chrono::milliseconds(50);
  RunningServer server(config);
  RawClient client = RawClient::Tcp(server.port());
  client.Send(EventsOf());
  ASSERT_NE(client.ReadUntil(": still here\n\n"), "") << "the control";
  server.OnLoop([&] { server.service.watcher_refused = KeyIsRevoked(); });
  EXPECT_TRUE(client.ReadUntil("0\r\n\r\n").find(kEnd) != std::string::npos);
  server.OnLoop([&] { EXPECT_EQ(server.service.event_waits, 0U); });
  client.Send(Request("GET", "/healthz"));
  EXPECT_EQ(client.Receive().status, 200) << "the connection is good for more";
}

TEST(Events, NothingIsSaidToAKeyThatWasRevokedASecondAgo) {
  RunningServer server;
  RawClient client = RawClient::Tcp(server.port());
  server.OnLoop([&] { server.service.AddEvent(Kind::kStdout, "first"); });
  client.Send(EventsOf());
  ASSERT_NE(client.ReadUntil("first"), "");
  server.OnLoop([&] {
    EXPECT_EQ(server.service.watchers_checked, 1U);
    server.service.AddEvent(Kind::kStdout, "second");
  });
  ASSERT_NE(client.ReadUntil("second"), "");
  server.OnLoop([&] { EXPECT_EQ(server.service.watchers_checked, 1U) << "at most once a second"; });
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  server.OnLoop([&] { server.service.AddEvent(Kind::kStdout, "third"); });
  ASSERT_NE(client.ReadUntil("third"), "") << "the control";
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  server.OnLoop([&] {
    server.service.watcher_refused = KeyIsRevoked();
    server.service.AddEvent(Kind::kStdout, "fourth");
  });
  const std::string rest = client.ReadUntil("0\r\n\r\n");
  EXPECT_NE(rest.find(kEnd), std::string::npos) << rest;
  EXPECT_EQ(rest.find("fourth"), std::string::npos) << rest;
}

// A service that has no worker free ends nothing: the batch waits, and is not said before the service has answered.
TEST(Events, ABusyServiceIsAskedAgain) {
  RunningServer server;
  RawClient client = RawClient::Tcp(server.port());
  server.OnLoop([&] {
    server.service.watcher_refused = Refusal{.kind = RefusalKind::kUnavailable, .code = "busy"};
    server.service.AddEvent(Kind::kStdout, "waits");
  });
  client.Send(EventsOf());
  EXPECT_EQ(client.ReadUntil("retry: 1000\n\n").find("waits"), std::string::npos);
  server.OnLoop([&] { server.service.watcher_refused.reset(); });
  EXPECT_NE(client.ReadUntil("waits").find("waits"), std::string::npos);
}

TEST(Events, ADrainCutsStreamsAtItsDeadline) {
  RunningServer server;
  RawClient client = RawClient::Tcp(server.port());
  client.Send(EventsOf());
  ASSERT_NE(client.ReadUntil("retry:"), "");
  bool drained = false;
  server.OnLoop(
      [&] { server.server().Drain(std::chrono::milliseconds(50), [&] { drained = true; }); });
  EXPECT_TRUE(client.Ends());
  EXPECT_TRUE(server.Eventually([&] { return drained; }));
  server.OnLoop([&] { EXPECT_EQ(server.service.event_waits, 0U); });
}

}  // namespace
}  // namespace coffer::gateway
