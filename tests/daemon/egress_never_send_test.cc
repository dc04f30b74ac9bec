// SPDX-License-Identifier: Apache-2.0
//
// `never_send` of [egress]: values that no request of any tool may hold. They hold for every tool whose requests are
// looked into, are read again on SIGHUP, and a file that cannot be used changes nothing.
#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <random>

#include "tests/daemon/egress_daemon.h"

namespace coffer::test {
namespace {

class DaemonNeverSend : public DaemonEgress {
 protected:
  std::string file() const { return dir_.path() + "/never-send"; }
  void Write(const std::string& values, mode_t mode = 0600) const {
    std::ofstream(file(), std::ios::trunc) << values;
    ASSERT_EQ(::chmod(file().c_str(), mode), 0);
  }
  void ConfigureFile() const { Configure("never_send = \"" + file() + "\"\n"); }
  void Reload() const { ASSERT_EQ(::kill(daemon_.monitor(), SIGHUP), 0); }
  HttpAnswer Send(const std::string& value) const {
    return Call("reader", Ask("api.test", "/v1/" + value));
  }
  bool Becomes(const std::string& value, const std::string& part) const {
    return WaitUntil([&] { return Contains(Out(Send(value)), part); }, Seconds(60));
  }
};

TEST_F(DaemonNeverSend, ItHoldsForToolsAndIsReadAgain) {
  Write("first-value\n");
  ConfigureFile();
  ASSERT_TRUE(Start());
  EXPECT_TRUE(Contains(Out(Send("second-value")), "hello /v1/second-value")) << "NO-CONTROL";
  EXPECT_TRUE(Contains(Seen(), "second-value")) << "NO-CONTROL";
  const HttpAnswer refused = Send("first-value");
  EXPECT_TRUE(Contains(Out(refused), "403 Forbidden")) << refused.text;
  EXPECT_TRUE(Contains(Out(refused), "line 1")) << refused.text;
  EXPECT_EQ(Seen(), "") << "OPEN: the server heard of it";
  const Json receipt = ReceiptOf(refused);
  ASSERT_EQ(receipt["denials"].size(), 1U) << receipt.dump();
  EXPECT_EQ(receipt["denials"][0]["rule"], "egress.never_send");
  EXPECT_FALSE(Contains(receipt["denials"].dump() + receipt["network"].dump(), "first-value"));
  EXPECT_EQ(receipt["incidents"],
            Json::array({"leak: a request that held a value which must never leave was stopped"}));
  EXPECT_TRUE(Contains(daemon_.Ask("GET", "/metrics", daemon_.key()).text,
                       "coffer_incidents_total{kind=\"leak\"} 1"));

  Write("\nsecond-value\n");
  EXPECT_TRUE(Contains(Out(Send("second-value")), "hello")) << "it is not told yet";
  Reload();
  EXPECT_TRUE(Becomes("second-value", "line 2"));
  EXPECT_TRUE(Contains(Out(Send("first-value")), "hello"));
  Configure("");
  Reload();
  EXPECT_TRUE(Becomes("second-value", "hello"));
}

TEST_F(DaemonNeverSend, AFileThatCannotBeUsedChangesNothing) {
  Write("first-value\n");
  ConfigureFile();
  ASSERT_TRUE(Start());
  EXPECT_TRUE(Contains(Out(Send("first-value")), "line 1")) << "NO-CONTROL";
  const auto says = [&](const std::string& part) {
    return WaitUntil([&] { return Contains(daemon_.Said(), part); }, Seconds(30));
  };
  Write("other-value\nqqqqqqq\n");
  Reload();
  EXPECT_TRUE(says("line 2 has 7 bytes")) << daemon_.Said();
  EXPECT_FALSE(Contains(daemon_.Said(), "qqq")) << "a part of a value";
  EXPECT_TRUE(Contains(Out(Send("first-value")), "line 1")) << "OPEN";
  Write("other-value\n", 0644);
  Reload();
  EXPECT_TRUE(says("other users may read or change it")) << daemon_.Said();
  EXPECT_TRUE(Contains(Out(Send("first-value")), "line 1")) << "OPEN";
  Write("other-value\n");
  Reload();
  EXPECT_TRUE(Becomes("other-value", "line 1"));
  EXPECT_TRUE(Contains(Out(Send("first-value")), "hello"));
}

TEST_F(DaemonNeverSend, ADaemonDoesNotStartWithoutItsFile) {
  const auto start = [&] {
    return RunProgram({CofferPath(), "serve", "--state", daemon_.state(), "--tools",
                       daemon_.tools(), "--listen", "127.0.0.1:0", "--config", file_},
                      {.timeout = Seconds(20)});
  };
  ConfigureFile();
  const RunResult run = start();
  EXPECT_EQ(run.exit, 120) << run.Describe();
  EXPECT_TRUE(Contains(run.err, "egress.never_send: cannot open")) << run.err;
  Write("first-value\n");
  EXPECT_TRUE(Start()) << "NO-CONTROL";
}

// Values are the configuration's, the same for all calls. What finds them takes 10 MiB for a full file.
TEST_F(DaemonNeverSend, CallsShareWhatFindsTheValues) {
  constexpr size_t kValues = 64;
  constexpr size_t kCalls = 6;
  std::mt19937 random(7);  // NOLINT(cert-msc51-cpp)
  std::string values;
  for (size_t i = 0; i < (kValues - 1) * 256; ++i) {
    values += static_cast<char>(std::uniform_int_distribution<int>('!', '~')(random));
    values += i % 256 == 255 ? "\n" : "";
  }
  const std::string last = "a-last-value";
  Write(values + last + "\n");
  ConfigureFile();
  ASSERT_TRUE(Start());
  EXPECT_TRUE(Contains(Out(Send(last)), "line 64")) << "NO-CONTROL";
  const pid_t role = daemon_.Find(RoleOf::kProxy);
  const auto used = [&] {
    return std::strtoul(StatusOf(role)["RssAnon"].c_str(), nullptr, 10) / 1024;
  };
  const size_t before = used();
  ASSERT_GT(before, 0U) << "NO-CONTROL";
  std::vector<std::string> calls;
  for (size_t i = 0; i < kCalls; ++i) {
    const Json body = {{"tool", "reader"},
                       {"args", {{"script", kClient + Ask("api.test") + "; sleep 20"}}}};
    calls.push_back(daemon_.Call(daemon_.key(), body, kAsync).At("call_id"));
  }
  const auto served = [&] {
    const std::vector<std::string> lines = Lines(ReadFile(dir_.path() + "/seen").value_or(""));
    return static_cast<size_t>(std::count_if(
        lines.begin(), lines.end(), [](const auto& line) { return Contains(line, "/v1/x"); }));
  };
  EXPECT_TRUE(WaitUntil([&] { return served() >= kCalls; }, Seconds(60))) << served();
  EXPECT_LT(used() - before, kCalls * 4) << "MiB beside the first call's";
  for (const std::string& id : calls) {
    (void)daemon_.Ask("POST", "/v1/calls/" + id + "/cancel", daemon_.key());
  }
}

}  // namespace
}  // namespace coffer::test
