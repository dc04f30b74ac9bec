// SPDX-License-Identifier: Apache-2.0
//
// One tenant floods the API with requests for a large answer: another tenant is served meanwhile, and the gateway's
// memory stays within its budget.
//
// Nothing here asserts a time. What is compared is the work that the gateway did, the order of answers, and memory.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <ctime>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "tests/daemon/daemon.h"
#include "tests/gateway/harness.h"

namespace coffer::test {
namespace {

constexpr long kMemoryKib = 256 * 1024;

class Flood : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(daemon_.Start());
    hostile_ = daemon_.NewKey("hostile", "agent", "h")["key"];
    victim_ = daemon_.NewKey("victim", "agent", "v")["key"];
    // A byte of output becomes six of JSON.
    const HttpAnswer made = daemon_.Call(
        hostile_, {{"tool", "python"},
                   {"args", {{"code", "import sys; sys.stdout.write('\\0' * (1 << 20))"}}}});
    ASSERT_EQ(made.Outcome(), "success") << made.text.substr(0, 400);
    ASSERT_GT(made.text.size(), 6U << 20);
    large_ = "/v1/calls/" + made.At("call_id");
    gateway_ = daemon_.Find(RoleOf::kGateway);
  }
  gateway::RawClient AskForLarge() const {
    gateway::RawClient client = gateway::RawClient::Tcp(daemon_.port());
    client.Send(gateway::Request("GET", large_, hostile_));
    return client;
  }
  // A call that prints as much when the clock says `when`.
  gateway::RawClient CallOverMcp(int number, long when) const {
    const std::string code = "import sys, time\n# " + std::to_string(number) +
                             "\ntime.sleep(max(0, " + std::to_string(when) +
                             " - time.time()))\nsys.stdout.write('\\0' * (1 << 20))";
    const Json message = {{"jsonrpc", "2.0"},
                          {"id", number},
                          {"method", "tools/call"},
                          {"params",
                           {{"name", "python"},
                            {"arguments", {{"code", code}}},
                            {"_meta",
                             {{"io.modelcontextprotocol/protocolVersion", "2026-07-28"},
                              {"io.modelcontextprotocol/clientCapabilities", Json::object()}}}}}};
    gateway::RawClient client = gateway::RawClient::Tcp(daemon_.port());
    client.Send(gateway::Request("POST", "/mcp", hostile_,
                                 "Content-Type: application/json\r\n"
                                 "Accept: application/json, text/event-stream\r\n"
                                 "MCP-Protocol-Version: 2026-07-28\r\n"
                                 "Mcp-Method: tools/call\r\nMcp-Name: python\r\n",
                                 PrintJson(message)));
    return client;
  }
  // User and system time of the gateway so far.
  double Cpu() const {
    const std::string stat = ReadFile("/proc/" + std::to_string(gateway_) + "/stat").value_or("");
    unsigned long user = 0, system = 0;
    std::sscanf(stat.c_str() + stat.rfind(')') + 1,
                " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system);
    return static_cast<double>(user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
  }
  long Kib(const char* field) const { return std::atol(StatusOf(gateway_)[field].c_str()); }
  bool VictimIsServed() const {
    return daemon_.Ask("GET", "/v1/tools", victim_).status == 200 &&
           daemon_.Ask("GET", "/healthz", "").status == 200;
  }
  static bool HasAnswer(const gateway::RawClient& client) {
    pollfd one{client.fd(), POLLIN, 0};
    return ::poll(&one, 1, 0) == 1;
  }
  // How many of the clients get their answer, read as the answers come. Requests that were sent together may be taken in
  // any order, and the tenant's unread answers keep its next one from being made: a client that insisted on the first
  // answer first could wait for ever.
  static size_t ReadAll(std::vector<gateway::RawClient> clients) {
    size_t answered = 0;
    while (!clients.empty()) {
      const bool came = WaitUntil(
          [&] { return std::any_of(clients.begin(), clients.end(), HasAnswer); }, Seconds(30));
      if (!came) {
        return answered;
      }
      const auto ready = std::find_if(clients.begin(), clients.end(), HasAnswer);
      answered += ready->Receive().status == 200 ? 1 : 0;
      clients.erase(ready);
    }
    return answered;
  }

  Daemon daemon_;
  std::string hostile_, victim_, large_;
  pid_t gateway_ = 0;
};

TEST_F(Flood, WorkForClientsThatAreGoneIsDropped) {
  // The control: what one answer costs if its client stays.
  const double before = Cpu();
  constexpr int kStay = 8;
  for (int i = 0; i < kStay; ++i) {
    EXPECT_EQ(daemon_.Ask("GET", large_, hostile_).status, 200);
  }
  const double each = (Cpu() - before) / kStay;
  EXPECT_GT(each, 0.002) << "the control: such an answer is work";

  constexpr int kGone = 400;
  const double begun = Cpu();
  for (int i = 0; i < kGone; ++i) {
    (void)AskForLarge();  // and closes
  }
  EXPECT_TRUE(VictimIsServed());
  EXPECT_TRUE(WaitUntil([&] { return daemon_.Ask("GET", large_, hostile_).status == 200; }))
      << "the tenant itself is served again";
  EXPECT_LT(Cpu() - begun, each * kGone / 4) << "most of it was not done";
  EXPECT_LT(Kib("VmHWM"), kMemoryKib);
}

TEST_F(Flood, ATenantWaitsBehindItself) {
  std::vector<gateway::RawClient> clients;
  constexpr size_t kClients = 30;
  for (size_t i = 0; i < kClients; ++i) {
    clients.push_back(AskForLarge());
  }
  EXPECT_TRUE(VictimIsServed());
  const auto served = std::count_if(clients.begin(), clients.end(), HasAnswer);
  EXPECT_LT(static_cast<size_t>(served), kClients / 2)
      << "the victim came last and did not wait for all who came before";
  EXPECT_EQ(ReadAll(std::move(clients)), kClients)
      << "the control: the work was real, and it is done in the end";
  EXPECT_LT(Kib("VmHWM"), kMemoryKib);
}

TEST_F(Flood, AnswersThatNobodyReadsFillNoMemory) {
  std::vector<gateway::RawClient> clients;
  for (int i = 0; i < 250; ++i) {
    clients.push_back(AskForLarge());
  }
  // Until it stops making answers.
  size_t had = 0;
  WaitUntil(
      [&] {
        ::usleep(1'000'000);
        const auto now =
            static_cast<size_t>(std::count_if(clients.begin(), clients.end(), HasAnswer));
        return std::exchange(had, now) == now && now > 0;
      },
      Seconds(60));
  EXPECT_LT(had, clients.size()) << "not all of them were made";
  EXPECT_LT(Kib("VmHWM"), kMemoryKib);
  EXPECT_TRUE(VictimIsServed());
  clients.clear();
  EXPECT_TRUE(
      WaitUntil([&] { return daemon_.Ask("GET", large_, hostile_).status == 200; }, Seconds(60)))
      << "it recovers";
}

// The same over MCP, where the answer says the output twice, and where a call's end makes it: no queue holds that up.
TEST_F(Flood, AnswersOfMcpThatNobodyReadsFillNoMemory) {
  // The control: what one answer is as a text.
  gateway::RawClient reader = CallOverMcp(0, 0);
  const gateway::Reply1 whole = reader.Receive();
  EXPECT_EQ(whole.status, 200);
  EXPECT_GT(whole.body.size(), 12U << 20);

  constexpr int kCalls = 30;
  constexpr int kEndTogether = 4;  // seconds from now
  std::vector<gateway::RawClient> clients;
  const auto when = static_cast<long>(::time(nullptr)) + kEndTogether;
  for (int i = 1; i <= kCalls; ++i) {
    clients.push_back(CallOverMcp(i, when));
  }
  size_t refused = 0;
  const bool answered = WaitUntil(
      [&] {
        refused += VictimIsServed() ? 0 : 1;
        ::usleep(100'000);
        return std::all_of(clients.begin(), clients.end(), HasAnswer);
      },
      Seconds(60));
  EXPECT_TRUE(answered) << "all of them have begun";
  EXPECT_EQ(refused, 0U) << "the other tenant was served all the time";
  EXPECT_GT(kCalls * whole.body.size(), size_t{kMemoryKib} << 10) << "the control";
  EXPECT_LT(Kib("VmHWM"), kMemoryKib);
  // What was begun is whole, and says what it always said.
  const gateway::Reply1 late = clients.back().Receive();
  EXPECT_EQ(late.status, 200);
  EXPECT_GT(late.body.size(), 12U << 20);
  clients.clear();
  EXPECT_TRUE(
      WaitUntil([&] { return daemon_.Ask("GET", large_, hostile_).status == 200; }, Seconds(60)))
      << "it recovers";
}

TEST_F(Flood, BodiesThatNeverEndFillNoMemory) {
  std::vector<gateway::RawClient> clients;
  size_t refused = 0;
  const std::string most(900 << 10, 'x');
  for (int i = 0; i < 300; ++i) {
    clients.push_back(gateway::RawClient::Tcp(daemon_.port()));
    clients.back().Send(gateway::Request("POST", "/v1/calls", hostile_,
                                         "Content-Type: application/json\r\nContent-Length: "
                                         "1048576\r\n"));
    (void)!::send(clients.back().fd(), most.data(), most.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  }
  EXPECT_TRUE(VictimIsServed());
  EXPECT_EQ(daemon_.Call(victim_, Bash("true")).Outcome(), "success");
  EXPECT_TRUE(WaitUntil([&] {
    refused = static_cast<size_t>(std::count_if(clients.begin(), clients.end(), HasAnswer));
    return refused > 100;
  }));
  for (gateway::RawClient& client : clients) {
    if (HasAnswer(client)) {
      const gateway::Reply1 reply = client.Receive();
      EXPECT_EQ(reply.status, 503);
      EXPECT_EQ(reply.Code(), "busy.memory");
      EXPECT_EQ(reply.Field("Retry-After"), "1");
      break;
    }
  }
  EXPECT_LT(Kib("VmHWM"), kMemoryKib);
  clients.clear();
  EXPECT_TRUE(WaitUntil([&] { return daemon_.Call(hostile_, Bash("true")).Outcome() == "success"; },
                        Seconds(30)))
      << "it recovers";
}

}  // namespace
}  // namespace coffer::test
