// SPDX-License-Identifier: Apache-2.0
//
// One tenant floods the API with requests for a large answer: another tenant is served meanwhile, and the gateway's
// memory stays within its budget.
//
// Nothing here asserts a time. What is compared is the work that the gateway did, the order of answers, and memory.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "limits/cgroup/host.h"
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
  static bool IsRefused(const gateway::RawClient& client) {
    std::array<char, 12> begin{};
    return ::recv(client.fd(), begin.data(), begin.size(), MSG_PEEK | MSG_DONTWAIT) == 12 &&
           std::string_view(begin.data(), begin.size()) == "HTTP/1.1 503";
  }
  gateway::Reply1 PostLarge(const std::string& key) const {
    gateway::RawClient client = gateway::RawClient::Tcp(daemon_.port());
    client.Send(gateway::Request("POST", "/v1/calls", key, "Content-Type: application/json\r\n",
                                 std::string(900 << 10, 'x')));
    return client.Receive();
  }
  // Waits until no more of the clients get an answer; how many have one by then.
  static size_t AnswersUntilQuiet(const std::vector<gateway::RawClient>& clients) {
    size_t had = 0;
    WaitUntil(
        [&] {
          ::usleep(1'000'000);
          const auto now =
              static_cast<size_t>(std::count_if(clients.begin(), clients.end(), HasAnswer));
          return std::exchange(had, now) == now && now > 0;
        },
        Seconds(60));
    return had;
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
  EXPECT_LT(AnswersUntilQuiet(clients), clients.size()) << "not all of them were made";
  EXPECT_LT(Kib("VmHWM"), kMemoryKib);
  EXPECT_TRUE(VictimIsServed());
  clients.clear();
  EXPECT_TRUE(
      WaitUntil([&] { return daemon_.Ask("GET", large_, hostile_).status == 200; }, Seconds(60)))
      << "it recovers";
}

// What a key may hold is not all that its tenant may hold: the other keys are served beside it.
TEST_F(Flood, AKeyWhoseAnswersNobodyReadsLeavesRoomToTheOtherKeysOfItsTenant) {
  const std::string other = daemon_.NewKey("hostile", "agent", "o")["key"];
  std::vector<gateway::RawClient> clients;
  for (int i = 0; i < 250; ++i) {
    clients.push_back(AskForLarge());
  }
  EXPECT_LT(AnswersUntilQuiet(clients), clients.size()) << "the others wait";
  EXPECT_TRUE(std::any_of(clients.begin(), clients.end(), IsRefused))
      << "the control: more than wait are refused";
  EXPECT_EQ(daemon_.Ask("GET", "/v1/tools", other).status, 200);
  EXPECT_EQ(PostLarge(other).status, 400) << "its body is read, and is no JSON";
  EXPECT_EQ(daemon_.Call(other, Bash("echo " + NewToken())).Outcome(), "success");
  EXPECT_TRUE(VictimIsServed());
  clients.clear();
  EXPECT_TRUE(WaitUntil([&] { return daemon_.Ask("GET", "/v1/tools", hostile_).status == 200; },
                        Seconds(60)))
      << "it recovers";
}

TEST_F(Flood, AKeyWhoseBodiesNeverEndLeavesRoomToTheOtherKeysOfItsTenant) {
  const std::string other = daemon_.NewKey("hostile", "agent", "o")["key"];
  std::vector<gateway::RawClient> clients;
  for (int i = 0; i < 60; ++i) {
    clients.push_back(gateway::RawClient::Tcp(daemon_.port()));
    clients.back().Send(gateway::Request("POST", "/v1/calls", hostile_,
                                         "Content-Type: application/json\r\nContent-Length: "
                                         "1048576\r\n"));
  }
  ASSERT_TRUE(WaitUntil([&] { return std::any_of(clients.begin(), clients.end(), HasAnswer); }));
  const gateway::Reply1 refused =
      std::find_if(clients.begin(), clients.end(), HasAnswer)->Receive();
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.Code(), "busy.memory");
  EXPECT_EQ(refused.Field("Retry-After"), "1");
  EXPECT_NE(refused.body.find("of this key"), std::string::npos) << refused.body;
  EXPECT_EQ(PostLarge(hostile_).Code(), "busy.memory");
  EXPECT_EQ(PostLarge(other).status, 400) << "its body is read, and is no JSON";
  clients.clear();
  EXPECT_TRUE(WaitUntil([&] { return PostLarge(hostile_).status == 400; }, Seconds(30)))
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

// A daemon whose memory budget is small: its gateway starts in a cgroup with a limit, which is lifted once the budget
// was taken from it.
class SmallBudget : public Flood {
 protected:
  static constexpr uint64_t kLimit = 56ULL << 20;  // the budget is three quarters of it
  void SetUp() override {
    if (::geteuid() != 0) {
      GTEST_SKIP() << "only root may limit a cgroup";
    }
    const Result<limits::CgroupHost> host = limits::ProbeCgroups();
    ASSERT_TRUE(host.ok());
    const limits::ControllerPlace& memory = host->at(limits::Controller::kMemory);
    if (!memory.usable || host->v2_move_self) {
      GTEST_SKIP() << "no memory cgroup can be made here: " << memory.why_not;
    }
    if (!host->v2_enable.empty()) {
      ASSERT_TRUE(Write(host->v2_dir + "/cgroup.subtree_control", host->v2_enable));
    }
    const bool v2 = memory.version == limits::CgroupVersion::kV2;
    cgroup_ = memory.dir + "/test-" + NewToken();
    const std::string limit = cgroup_ + (v2 ? "/memory.max" : "/memory.limit_in_bytes");
    const std::string own =
        (v2 ? memory.mount_point + memory.own_path : memory.dir) + "/cgroup.procs";
    ASSERT_EQ(::mkdir(cgroup_.c_str(), 0755), 0) << cgroup_;
    ASSERT_TRUE(Write(limit, std::to_string(kLimit)));
    ASSERT_TRUE(Write(cgroup_ + "/cgroup.procs", "0"));
    Flood::SetUp();
    EXPECT_TRUE(Write(own, "0"));
    EXPECT_TRUE(Write(limit, v2 ? "max" : "-1"));
  }
  void TearDown() override {
    if (!cgroup_.empty()) {
      (void)daemon_.Stop();
      EXPECT_TRUE(WaitUntil([&] { return ::rmdir(cgroup_.c_str()) == 0; })) << cgroup_;
    }
  }
  static bool Write(const std::string& file, const std::string& value) {
    std::ofstream to(file);
    to << value << std::flush;
    return to.good();
  }
  bool HostileIsRefused() const {
    const HttpAnswer answer = daemon_.Ask("GET", "/v1/tools", hostile_);
    return answer.status == 503 && answer.At("code") == "busy.memory";
  }
  std::string cgroup_;
};

// Past the budget and not far past it, the tenant that holds most is refused, and one that holds nothing is served. One key
// may not hold that much.
TEST_F(SmallBudget, ATenantThatHoldsNothingIsServedWhileTheOneThatHoldsMostIsRefused) {
  EXPECT_FALSE(HostileIsRefused()) << "the control: before";
  std::vector<gateway::RawClient> clients;
  const std::string most(900 << 10, 'x');
  constexpr size_t kMost = 60;
  const std::string second = daemon_.NewKey("hostile", "agent", "h2")["key"];
  const std::string third = daemon_.NewKey("hostile", "agent", "h3")["key"];
  while (clients.size() < kMost && !HostileIsRefused()) {
    // Each has half of what is left of 48 MiB.
    const std::string& key = clients.size() < 24 ? hostile_ : clients.size() < 36 ? second : third;
    clients.push_back(gateway::RawClient::Tcp(daemon_.port()));
    clients.back().Send(gateway::Request("POST", "/v1/calls", key,
                                         "Content-Type: application/json\r\nContent-Length: "
                                         "1048576\r\n"));
    (void)!::send(clients.back().fd(), most.data(), most.size(), MSG_NOSIGNAL);
  }
  // What was sent last may still be on its way.
  ASSERT_TRUE(WaitUntil([&] { return HostileIsRefused(); })) << "it never came to that";
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(HostileIsRefused());
    EXPECT_EQ(daemon_.Ask("GET", "/v1/tools", victim_).status, 200);
    EXPECT_EQ(daemon_.Call(victim_, Bash("echo " + NewToken())).Outcome(), "success");
    ASSERT_TRUE(HostileIsRefused()) << "all the time";
  }
  clients.clear();
  EXPECT_TRUE(WaitUntil([&] { return !HostileIsRefused(); })) << "it recovers";
  EXPECT_EQ(daemon_.Call(hostile_, Bash("true")).Outcome(), "success");
}

}  // namespace
}  // namespace coffer::test
