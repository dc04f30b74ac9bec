// SPDX-License-Identifier: Apache-2.0
//
// The configuration file: what it bounds, how it changes while the daemon runs, and that a bad one changes nothing.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "tests/daemon/daemon.h"

namespace coffer::test {
namespace {

Json DryRun(const std::string& word) {
  Json body = Bash("echo " + word);
  body["dry_run"] = true;
  return body;
}

// How many of `count` calls were let in before the first that was not.
int LetIn(const Daemon& daemon, const std::string& key, int count) {
  for (int i = 0; i < count; ++i) {
    if (const HttpAnswer answer = daemon.Call(key, DryRun(std::to_string(i)));
        answer.Outcome() != "success") {
      EXPECT_TRUE(answer.DeniedBy() == "policy.rate" || answer.DeniedBy() == "policy.budget")
          << answer.text;
      return i;
    }
  }
  return count;
}

class ConfigFile : public ::testing::Test {
 protected:
  // Read by the gateway's own uid, wherever it lies.
  void Write(const std::string& text) {
    std::ofstream(file_, std::ios::trunc) << text;
    ASSERT_EQ(::chmod(file_.c_str(), 0644), 0);
  }
  // True when what follows the signal is visible.
  bool Reload(const std::function<bool()>& visible) {
    ::kill(daemon_.monitor(), SIGHUP);
    return WaitUntil(visible, Seconds(10));
  }

  TempDir dir_;
  std::string file_ = dir_ / "coffer.toml";
  Daemon daemon_;
};

TEST_F(ConfigFile, QuotasHoldPerTenantAndPerAgent) {
  Write(R"(
[quotas.tenant]
calls = ["5/d"]
[tenant.small.quotas.tenant]
calls = ["2/d"]
[tenant.wide.quotas.tenant]
calls = ["50/d"]
[tenant.wide.quotas.agent]
calls = ["3/d"]
)");
  ASSERT_TRUE(daemon_.Start({"--config", file_}));
  EXPECT_EQ(LetIn(daemon_, daemon_.NewKey("some", "agent", "a")["key"], 10), 5);
  EXPECT_EQ(LetIn(daemon_, daemon_.NewKey("small", "agent", "a")["key"], 10), 2);
  // Another tenant's limit takes nothing from this one, and one agent's nothing from another's.
  EXPECT_EQ(LetIn(daemon_, daemon_.NewKey("wide", "agent", "a")["key"], 10), 3);
  EXPECT_EQ(LetIn(daemon_, daemon_.NewKey("wide", "agent", "b")["key"], 10), 3);
  const HttpAnswer answer = daemon_.Call(daemon_.NewKey("wide", "agent", "a")["key"], DryRun("x"));
  EXPECT_EQ(answer.DeniedBy(), "policy.rate") << answer.text;
  EXPECT_FALSE(answer.Field("Retry-After").empty());
}

// However many a rate limit refuses, each answer names a receipt that is there, and its place in the log.
TEST_F(ConfigFile, EveryRefusalOfAFloodHasAReceipt) {
  Write("[quotas.tenant]\ncalls = [\"3/d\"]\n");
  ASSERT_TRUE(daemon_.Start({"--config", file_}));
  const std::string key = daemon_.NewKey("some", "agent", "a")["key"];
  ASSERT_EQ(LetIn(daemon_, key, 3), 3);
  std::map<std::string, Json> refused;  // where the receipts are, by their ids
  constexpr int kFlood = 150;
  for (int i = 0; i < kFlood; ++i) {
    const HttpAnswer answer = daemon_.Call(key, DryRun(std::to_string(i)));
    ASSERT_EQ(answer.DeniedBy(), "policy.rate") << answer.text;
    ASSERT_TRUE(answer.body.contains("log")) << answer.text;
    refused.emplace(answer.At("call_id"), answer.body["log"]);
  }
  EXPECT_LT(refused.size(), kFlood) << "the control: it was a flood";
  for (const auto& [id, place] : refused) {
    const HttpAnswer receipt = daemon_.Ask("GET", "/v1/calls/" + id + "/receipt", key);
    ASSERT_EQ(receipt.status, 200) << id << receipt.text;
    EXPECT_EQ(receipt.body["outcome"], "denied");
    EXPECT_EQ(receipt.body["log"]["index"], place["index"]) << receipt.text;
  }
}

TEST_F(ConfigFile, BudgetsOfTenantsAndSessions) {
  Write(R"(
[budgets.session]
calls = 2
[tenant.poor.budgets.tenant]
calls = 3
)");
  ASSERT_TRUE(daemon_.Start({"--config", file_}));
  const std::string key = daemon_.NewKey("some", "agent", "a")["key"];
  const std::string poor = daemon_.NewKey("poor", "agent", "a")["key"];
  EXPECT_EQ(LetIn(daemon_, poor, 10), 3);
  for (const Json& how : {Json::object(), Json{{"max_calls", 1000}}}) {
    const std::string session = daemon_.NewSession(key, how);
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(daemon_.Call(key, Bash("true", session)).Outcome(), "success");
    }
    const HttpAnswer over = daemon_.Call(key, Bash("true", session));
    EXPECT_EQ(over.DeniedBy(), "policy.budget") << over.text;
    // Waiting does not help: the budget never comes back.
    EXPECT_EQ(over.Field("Retry-After"), "");
  }
  // A session may have less than that.
  const std::string session = daemon_.NewSession(key, {{"max_calls", 1}});
  EXPECT_EQ(daemon_.Call(key, Bash("true", session)).Outcome(), "success");
  EXPECT_EQ(daemon_.Call(key, Bash("true", session)).DeniedBy(), "policy.budget");
}

// A dry run was no attempt: what it showed to be allowed may be done at once.
TEST_F(ConfigFile, ADryRunIsNoFailure) {
  ASSERT_TRUE(daemon_.Start());
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(daemon_.Call(daemon_.key(), DryRun("x")).status, 200);
  }
  EXPECT_EQ(daemon_.Call(daemon_.key(), Bash("echo x")).Outcome(), "success");
}

TEST_F(ConfigFile, ReloadsOnHangup) {
  Write("[quotas.tenant]\ncalls = [\"1/d\"]\n");
  ASSERT_TRUE(daemon_.Start({"--config", file_}));
  const std::string key = daemon_.NewKey("some", "agent", "a")["key"];
  EXPECT_EQ(LetIn(daemon_, key, 5), 1);
  Write("[quotas.tenant]\ncalls = [\"1000/d\"]\n");
  EXPECT_TRUE(Reload([&] { return daemon_.Call(key, DryRun("again")).Outcome() == "success"; }));
  // A bad file changes nothing and is named, with its line.
  Write("[quotas.tenant]\ncalls = [\"1/d\"]\nbad = 1\n");
  EXPECT_TRUE(Reload([&] { return daemon_.Said().find("coffer.toml:3:1") != std::string::npos; }));
  EXPECT_EQ(LetIn(daemon_, key, 5), 5);
  // A file that was named and is gone is a mistake too.
  ASSERT_EQ(::unlink(file_.c_str()), 0);
  EXPECT_TRUE(Reload([&] { return daemon_.Said().find("cannot open") != std::string::npos; }));
  EXPECT_EQ(LetIn(daemon_, key, 5), 5);
}

// A key file that only root may read is how these files are kept; the gateway is not root.
TEST_F(ConfigFile, AFileThatOnlyTheMonitorMayReadIsReloaded) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "an ordinary user's roles share one uid";
  }
  Write("[quotas.tenant]\ncalls = [\"1/d\"]\n");
  ASSERT_EQ(::chmod(file_.c_str(), 0600), 0);
  ASSERT_TRUE(daemon_.Start({"--config", file_}));
  const std::string key = daemon_.NewKey("some", "agent", "a")["key"];
  EXPECT_EQ(LetIn(daemon_, key, 5), 1);
  std::ofstream(file_, std::ios::trunc) << "[quotas.tenant]\ncalls = [\"1000/d\"]\n";
  EXPECT_TRUE(Reload([&] { return daemon_.Call(key, DryRun("again")).status == 200; }));
}

// As root the state directory belongs to the gateway, which may have been broken into: nothing there is policy.
TEST_F(ConfigFile, NothingThatTheGatewayCouldWriteIsPolicy) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "an ordinary user's roles share one uid";
  }
  ASSERT_TRUE(daemon_.Start());
  EXPECT_EQ(daemon_.Stop(), 0);
  const auto start = [&](const Strings& more) {
    Strings words = {CofferPath(), "serve", "--state", daemon_.state(), "--listen", "127.0.0.1:0"};
    words.insert(words.end(), more.begin(), more.end());
    return RunProgram(words, {.timeout = Seconds(20)});
  };
  const std::string inside = daemon_.state() + "/policy";
  ASSERT_EQ(::mkdir(inside.c_str(), 0755), 0);
  std::ofstream(inside + "/coffer.toml") << "";
  for (const Strings& flags :
       {Strings{"--config", inside + "/coffer.toml"}, Strings{"--tools", inside}}) {
    const RunResult run = start(flags);
    EXPECT_EQ(run.exit, 120) << run.Describe();
    EXPECT_TRUE(Contains(run.err, "policy.operator")) << run.err;
    EXPECT_TRUE(Contains(run.err, "belongs to uid")) << run.err;
  }
  // A link of the operator's own is not followed either: where it leads may be changed by others.
  Write("");
  const std::string link = dir_ / "link.toml";
  ASSERT_EQ(::symlink(file_.c_str(), link.c_str()), 0);
  EXPECT_EQ(start({"--config", link}).exit, 120);
  // What others could change is not policy.
  ASSERT_EQ(::chmod(file_.c_str(), 0666), 0);
  EXPECT_EQ(start({"--config", file_}).exit, 120);
  // The control: the same file, when it is the operator's alone.
  ASSERT_EQ(::chmod(file_.c_str(), 0644), 0);
  EXPECT_TRUE(daemon_.Start({"--config", file_}));
}

TEST_F(ConfigFile, TheDefaultIsInTheOperatorsDirectory) {
  ASSERT_TRUE(daemon_.Start());
  const std::string key = daemon_.NewKey("some", "agent", "a")["key"];
  EXPECT_EQ(LetIn(daemon_, key, 3), 3);
  file_ = daemon_.config() + "/coffer.toml";
  Write("[quotas.agent]\ncalls = [\"1/d\"]\n");
  EXPECT_TRUE(
      Reload([&] { return daemon_.Call(key, DryRun("again")).DeniedBy() == "policy.rate"; }));
  // Without it, nothing is bounded again.
  ASSERT_EQ(::unlink(file_.c_str()), 0);
  EXPECT_TRUE(Reload([&] { return daemon_.Call(key, DryRun("again")).status == 200; }));
}

TEST_F(ConfigFile, ABadFileAtTheStartIsRefused) {
  Write("[quotas.tenant]\nbad = 1\n[otlp]\nworse = 1\n");
  const RunResult run = RunProgram({CofferPath(), "serve", "--state", daemon_.state(), "--listen",
                                    "127.0.0.1:0", "--config", file_});
  EXPECT_EQ(run.exit, 120);
  EXPECT_NE(run.err.find("coffer.toml:2:1: "), std::string::npos) << run.err;
  EXPECT_NE(run.err.find("coffer.toml:4:1: "), std::string::npos) << run.err;
}

}  // namespace
}  // namespace coffer::test
