// SPDX-License-Identifier: Apache-2.0
//
// SIGHUP again and again while calls hold the egress roles of before.
#include <signal.h>

#include <thread>

#include "tests/daemon/egress_daemon.h"
#include "tests/support/host.h"

namespace coffer::test {
namespace {

constexpr size_t kMostRetired = 4;

class DaemonEgressReload : public DaemonEgress {
 protected:
  std::vector<pid_t> Proxies() const {
    std::vector<pid_t> proxies;
    for (const pid_t child : ChildrenOf(daemon_.monitor())) {
      if (StatusOf(child)["Name"] == "coffer-proxy") {
        proxies.push_back(child);
      }
    }
    return proxies;
  }
  Json Waiting() const {
    return daemon_.Ask("GET", "/v1/access", daemon_.key()).body.value("access", Json::array());
  }
  void Answer(const std::string& id) const {
    EXPECT_EQ(
        daemon_.Ask("POST", "/v1/access/" + id, daemon_.key(), R"({"decision":"grant"})").status,
        200);
  }
};

// The same questions of a second call, and after a reload that changes nothing, have the same answers.
TEST_F(DaemonEgressReload, NW_31_ASecondCallAndAReloadDecideTheSame) {
  Declare("narrow", "[[network.allow]]\nhost = \"api.test\"\ntls = \"plain\"\nports = [" +
                        std::to_string(plain_) + "]\nmethods = [\"GET\"]\npaths = [\"/v1/**\"]\n");
  ASSERT_TRUE(Start());
  std::string script;
  const std::string port = " " + std::to_string(plain_) + " ";
  const Strings questions = {
      "GET api.test" + port + "/v1/x",         "GET api.test" + port + "/v2",
      "POST api.test" + port + "/v1/x",        "GET api.test 22 /v1/x",
      "GET other.test" + port + "/v1/x",       "GET api.test.evil.test" + port + "/v1/x",
      "GET 127.0.0.1" + port + "/v1/x",        "GET 169.254.169.254 80 /v1/x",
      "GET metadata.google.internal 80 /v1/x", "GET api.test" + port + "/v1/%2e%2e/v2"};
  for (const std::string& question : questions) {
    script += "ask " + question + " | grep -v ^Date:\n";
  }
  const std::string first = Out(Call("narrow", script));
  const auto count = [&](const std::string& part) {
    size_t found = 0;
    for (const std::string& line : Lines(first)) {
      found += line.starts_with(part) ? 1 : 0;
    }
    return found;
  };
  EXPECT_EQ(count("HTTP/1.1 200 "), 1U) << "NO-CONTROL, or OPEN\n" << first;
  EXPECT_EQ(count("HTTP/1.1 4"), 9U) << first;
  EXPECT_EQ(Out(Call("narrow", script)), first);
  const std::vector<pid_t> before = Proxies();
  ASSERT_EQ(before.size(), 1U);
  ASSERT_EQ(::kill(daemon_.monitor(), SIGHUP), 0);
  EXPECT_TRUE(WaitUntil(
      [&] {
        const std::vector<pid_t> now = Proxies();
        return now.size() == 1 && now[0] != before[0];
      },
      Seconds(30)));
  EXPECT_EQ(Out(Call("narrow", script)), first);
}

// Each earlier role has a call that waits. With four of them the next replacement waits too, says so, and is made when one
// of them has ended.
TEST_F(DaemonEgressReload, TooManyEarlierRolesDelayTheReplacementAndSaySo) {
  Declare("asker", Plain("api.test", "ask = true\n"));
  ASSERT_TRUE(Start());
  std::vector<std::thread> calls;
  std::vector<HttpAnswer> answers(kMostRetired + 1);
  for (size_t i = 0; i <= kMostRetired; ++i) {
    calls.emplace_back([this, &answer = answers[i]] { answer = Call("asker", Ask("api.test")); });
    EXPECT_TRUE(WaitUntil([&] { return Waiting().size() == i + 1; }, Seconds(30))) << i;
    EXPECT_FALSE(Contains(daemon_.Said(), "earlier egress roles")) << "NO-CONTROL";
    EXPECT_EQ(::kill(daemon_.monitor(), SIGHUP), 0);
    const size_t expected = std::min(i + 1, kMostRetired) + 1;
    EXPECT_TRUE(WaitUntil([&] { return Proxies().size() == expected; }, Seconds(30))) << i;
  }
  EXPECT_TRUE(
      WaitUntil([&] { return Contains(daemon_.Said(), "earlier egress roles"); }, Seconds(30)))
      << daemon_.Said();
  const std::vector<pid_t> before = Proxies();
  // The last call is in the role that should have been replaced. The others end first.
  const Json waiting = Waiting();
  ASSERT_EQ(waiting.size(), kMostRetired + 1);
  Answer(waiting[0]["id"]);
  const auto fresh = [&] {
    for (const pid_t pid : Proxies()) {
      if (std::find(before.begin(), before.end(), pid) == before.end()) {
        return true;
      }
    }
    return false;
  };
  EXPECT_TRUE(WaitUntil(fresh, Seconds(30))) << "the replacement was forgotten";
  EXPECT_TRUE(Contains(Out(Call("reader", Ask("api.test"))), "hello")) << "the new one serves";
  for (size_t i = 1; i < waiting.size(); ++i) {
    Answer(waiting[i]["id"]);
  }
  for (std::thread& call : calls) {
    call.join();
  }
  for (const HttpAnswer& answer : answers) {
    EXPECT_TRUE(Contains(Out(answer), "hello /v1/x")) << answer.text;
  }
  EXPECT_TRUE(WaitUntil([&] { return Proxies().size() == 1; }, Seconds(30)));
}

}  // namespace
}  // namespace coffer::test
