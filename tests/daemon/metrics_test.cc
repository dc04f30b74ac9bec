// SPDX-License-Identifier: Apache-2.0
//
// What the daemon counts, seen from outside: by hand, by promtool, and by a Prometheus that scrapes it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <map>
#include <regex>
#include <set>

#include "store/baseline.h"
#include "store/store.h"
#include "tests/daemon/daemon.h"
#include "tests/gateway/harness.h"

namespace coffer::test {
namespace {

using Names = std::set<std::string>;

// "name{labels}" -> value.
std::map<std::string, double> Samples(const std::string& text) {
  std::map<std::string, double> samples;
  for (const std::string& line : Lines(text)) {
    if (!line.empty() && line[0] != '#') {
      const size_t space = line.rfind(' ');
      samples[line.substr(0, space)] = std::strtod(line.c_str() + space + 1, nullptr);
    }
  }
  return samples;
}

double At(const std::string& scrape, const std::string& series) {
  const auto samples = Samples(scrape);
  const auto found = samples.find(series);
  return found == samples.end() ? std::nan("") : found->second;
}

// The names after "# TYPE".
Names Exposed(const std::string& scrape) {
  Names names;
  for (const std::string& line : Lines(scrape)) {
    if (line.starts_with("# TYPE ")) {
      names.insert(line.substr(7, line.find(' ', 7) - 7));
    }
  }
  return names;
}

// As the owner of the unix socket, who sees all tenants.
std::string ScrapeAll(const Daemon& daemon) {
  gateway::RawClient client = gateway::RawClient::Unix(daemon.state() + "/coffer.sock");
  EXPECT_TRUE(client.Send(gateway::Request("GET", "/metrics", {}, "Connection: close\r\n")));
  const gateway::Reply1 reply = client.Receive();
  EXPECT_EQ(reply.status, 200) << reply.body;
  EXPECT_EQ(reply.Field("Content-Type"), "text/plain; version=0.0.4; charset=utf-8");
  return reply.body;
}

std::string ScrapeWith(const Daemon& daemon, const std::string& key) {
  const HttpAnswer answer = daemon.Ask("GET", "/metrics", key);
  EXPECT_EQ(answer.status, 200) << answer.text;
  return answer.text;
}

Json Python(const std::string& code) { return {{"tool", "python"}, {"args", {{"code", code}}}}; }

// Something of every kind: success, failure, a refused request, a denied system call, a cap.
void MakeEverythingHappen(const Daemon& daemon) {
  for (int i = 0; i < 3; ++i) {
    const HttpAnswer good = daemon.Call(daemon.key(), Bash("echo " + std::to_string(i)));
    EXPECT_EQ(good.Outcome(), "success") << good.text;
  }
  EXPECT_EQ(daemon.Call(daemon.key(), Bash("exit 3")).Outcome(), "error");
  EXPECT_EQ(daemon.Call(daemon.key(), {{"tool", "bash"}, {"args", {{"wrong", 1}}}}).Outcome(),
            "denied");
  (void)daemon.Call(daemon.key(), {{"tool", "no-such-tool-xyz"}, {"args", Json::object()}});
  const HttpAnswer tried = daemon.Call(
      daemon.key(), Python("import ctypes\nprint(ctypes.CDLL(None).unshare(0x10000000))"));
  EXPECT_EQ(tried.Outcome(), "success") << tried.text;
  // Who looks for the incident finds it in the call's receipt.
  const HttpAnswer receipt =
      daemon.Ask("GET", "/v1/calls/" + tried.At("call_id") + "/receipt", daemon.key());
  EXPECT_EQ(receipt.body["incidents"],
            Json::array({"namespace: unshare was tried once and denied"}))
      << receipt.text;
  const HttpAnswer loud = daemon.Call(daemon.key(), Python("print('x' * 3000000)"));
  EXPECT_NE(loud.status, 0);
}

constexpr const char* kGood = R"(coffer_calls_total{tool="bash",outcome="success"})";

TEST(Metrics, WhatHappenedIsThere) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  EXPECT_EQ(At(ScrapeAll(daemon), kGood), 0) << "from the start, so that rates are right";
  MakeEverythingHappen(daemon);
  const std::string scrape = ScrapeAll(daemon);
  EXPECT_EQ(At(scrape, kGood), 3);
  EXPECT_EQ(At(scrape, R"(coffer_calls_total{tool="bash",outcome="error"})"), 1);
  EXPECT_EQ(At(scrape, R"(coffer_calls_total{tool="bash",outcome="denied"})"), 1);
  EXPECT_EQ(At(scrape, R"(coffer_calls_total{tool="other",outcome="denied"})"), 1);
  EXPECT_EQ(At(scrape, R"(coffer_denials_total{surface="policy",rule="policy.args.schema"})"), 1);
  EXPECT_EQ(At(scrape, R"(coffer_denials_total{surface="policy",rule="policy.tool"})"), 1);
  EXPECT_EQ(At(scrape, R"(coffer_denials_total{surface="isolation",rule="seccomp.default"})"), 1);
  EXPECT_EQ(At(scrape, R"(coffer_incidents_total{kind="namespace"})"), 1);
  EXPECT_EQ(At(scrape, R"(coffer_incidents_total{kind="kernel"})"), 0);
  EXPECT_EQ(At(scrape, R"(coffer_cap_breaches_total{tool="python",cap="output"})"), 1);
  EXPECT_EQ(At(scrape, R"(coffer_call_duration_seconds_count{tool="bash"})"), 4);
  EXPECT_EQ(At(scrape, R"(coffer_call_duration_seconds_count{tool="python"})"), 2);
  EXPECT_GT(At(scrape, R"(coffer_call_duration_seconds_sum{tool="python"})"), 0.001);
  EXPECT_EQ(At(scrape, "coffer_sandbox_start_seconds_count"), 6);
  EXPECT_GT(At(scrape, "coffer_sandbox_start_seconds_sum"), 0);
  EXPECT_LT(At(scrape, "coffer_sandbox_start_seconds_sum"), 60);
  EXPECT_EQ(At(scrape, "coffer_queue_wait_seconds_count"), 6);
  EXPECT_EQ(At(scrape, "coffer_policy_eval_seconds_count"), 7);
  EXPECT_EQ(At(scrape, "coffer_calls_running"), 0);
  // A decision and a receipt of each call that ran, a receipt of each that did not.
  EXPECT_GE(At(scrape, "coffer_audit_append_seconds_count"), 6 * 2 + 2);
  EXPECT_GE(At(scrape, "coffer_audit_log_size"), 6 * 2 + 2);
  EXPECT_EQ(
      At(scrape, R"(coffer_http_requests_total{route="/v1/calls",method="POST",status="2xx"})"), 8)
      << "a denied call is answered like any other";
  EXPECT_GT(At(scrape, "process_resident_memory_bytes"), 1 << 20);
  EXPECT_GT(At(scrape, "process_open_fds"), 5);
  EXPECT_GT(At(scrape, "process_cpu_seconds_total"), 0);
  EXPECT_GT(At(scrape, "process_start_time_seconds"), 1.6e9);
  for (const char* never : {"no-such-tool-xyz", "unshare", "uid:", "\"local\"", "/tmp"}) {
    EXPECT_THAT(scrape, ::testing::Not(::testing::HasSubstr(never)));
  }
}

TEST(Metrics, ACallThatRunsIsCountedWhileItDoes) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  const std::string session = daemon.NewSession(daemon.key());
  const HttpAnswer started = daemon.Call(daemon.key(), Bash(WaitForGo(), session), kAsync);
  const auto running = [&] { return At(ScrapeAll(daemon), "coffer_calls_running"); };
  EXPECT_TRUE(WaitUntil([&] { return running() == 1; })) << started.text;
  EXPECT_EQ(
      daemon.Ask("PUT", "/v1/sessions/" + session + "/files/go", daemon.key(), "x").status / 100,
      2);
  EXPECT_TRUE(WaitUntil([&] { return running() == 0; }));
}

TEST(Metrics, WhoMayLookAndAtWhat) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  EXPECT_EQ(daemon.Ask("GET", "/metrics", "").status, 401);
  for (const char* role : {"agent", "approver"}) {
    const std::string key = daemon.NewKey("local", role, "x")["key"];
    EXPECT_EQ(daemon.Ask("GET", "/metrics", key).status, 403) << role;
  }
  const std::string mine = daemon.NewKey("mine", "operator", "x")["key"];
  const std::string yours = daemon.NewKey("yours", "auditor", "x")["key"];
  EXPECT_EQ(daemon.Call(mine, Bash("echo mine")).Outcome(), "success");
  EXPECT_EQ(daemon.Call(daemon.key(), Bash("echo local")).Outcome(), "success");
  EXPECT_EQ(At(ScrapeWith(daemon, mine), kGood), 1);
  EXPECT_EQ(At(ScrapeWith(daemon, yours), kGood), 0);
  EXPECT_EQ(At(ScrapeAll(daemon), kGood), 2) << "the sum";
  // The host is not a tenant's business.
  EXPECT_THAT(ScrapeWith(daemon, yours), ::testing::Not(::testing::HasSubstr("process_")));
  EXPECT_EQ(At(ScrapeWith(daemon, yours), "coffer_audit_append_seconds_count"), 0);
}

// ---- the dashboard and the page ----

std::string Source(const std::string& name) {
  const char* root = std::getenv("COFFER_SOURCE");
  return ReadFile((root == nullptr ? std::string(".") : std::string(root)) + "/" + name)
      .value_or("");
}

// Names of metrics in a text, without the endings of a histogram's parts.
Names Mentioned(const std::string& text, const Names& exposed) {
  static const std::regex kName("\\b(?:coffer|process)_[a-z_]+\\b");
  Names names;
  for (std::sregex_iterator at(text.begin(), text.end(), kName), end; at != end; ++at) {
    std::string name = at->str();
    for (const char* part : {"_bucket", "_sum", "_count"}) {
      const std::string ending = part;
      if (name.ends_with(ending) && exposed.contains(name.substr(0, name.size() - ending.size()))) {
        name.resize(name.size() - ending.size());
      }
    }
    names.insert(name);
  }
  return names;
}

void CollectExpressions(const Json& node, std::string& into) {
  if (node.is_object() && node.contains("expr")) {
    into += node["expr"].get<std::string>() + "\n";
  }
  if (node.is_structured()) {
    for (const Json& child : node) {
      CollectExpressions(child, into);
    }
  }
}

TEST(Metrics, TheDashboardAndThePageNameWhatThereIs) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  MakeEverythingHappen(daemon);
  const std::string scrape = ScrapeAll(daemon);
  const Names exposed = Exposed(scrape);
  ASSERT_GE(exposed.size(), 15U);
  // Every one has a value, not only a name.
  Names valued;
  for (const auto& [series, value] : Samples(scrape)) {
    valued.merge(Mentioned(series.substr(0, series.find('{')), exposed));
  }
  EXPECT_EQ(valued, exposed);
  // In the page's table: all of them, and nothing else.
  std::string table;
  for (const std::string& line : Lines(Source("docs/METRICS.md"))) {
    if (line.starts_with("| `")) {
      table += line.substr(0, line.find('|', 2)) + "\n";
    }
  }
  Names documented = Mentioned(table, exposed);
  EXPECT_EQ(documented, exposed);
  // In the dashboard: all of them, and nothing that is not there.
  const Json dashboard = Json::parse(Source("deploy/grafana/coffer.json"));
  std::string expressions;
  CollectExpressions(dashboard, expressions);
  EXPECT_EQ(Mentioned(expressions, exposed), exposed);
  std::set<int> ids;
  for (const Json& panel : dashboard["panels"]) {
    EXPECT_TRUE(ids.insert(panel["id"].get<int>()).second) << "two panels with one id";
  }
}

// ---- Prometheus itself ----

// A program of Debian's package `prometheus`. Without it the test is skipped, but not in CI.
std::string FindProgram(const char* name) {
  for (const char* place : {"/usr/bin/", "/usr/local/bin/"}) {
    if (::access((std::string(place) + name).c_str(), X_OK) == 0) {
      return std::string(place) + name;
    }
  }
  return "";
}

#define NEED_PROGRAM(path)                                                                   \
  do {                                                                                       \
    if ((path).empty()) {                                                                    \
      const char* ci = std::getenv("CI");                                                    \
      ASSERT_FALSE(ci != nullptr && std::string(ci) == "true") << "prometheus is not there"; \
      GTEST_SKIP() << "Prometheus is not installed: scripts/setup.sh conformance";           \
    }                                                                                        \
  } while (false)

TEST(Metrics, PromtoolFindsNothing) {
  const std::string promtool = FindProgram("promtool");
  NEED_PROGRAM(promtool);
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  MakeEverythingHappen(daemon);
  for (const std::string& scrape : {ScrapeAll(daemon), ScrapeWith(daemon, daemon.key())}) {
    RunOptions options;
    options.input = scrape;
    const RunResult checked = RunProgram({promtool, "check", "metrics"}, options);
    EXPECT_EQ(checked.exit, 0) << checked.Describe();
    EXPECT_EQ(checked.out + checked.err, "");
  }
  // The control: it does find something.
  RunOptions options;
  options.input = "# TYPE bad counter\nbad 1\n";
  EXPECT_NE(RunProgram({promtool, "check", "metrics"}, options).exit, 0);
}

class Prometheus {
 public:
  Prometheus(const std::string& program, uint16_t target, const std::string& key) {
    dir_.Write("key", key, 0600);
    dir_.Write("prometheus.yml",
               "global: {scrape_interval: 1s, scrape_timeout: 1s}\n"
               "scrape_configs:\n"
               "- job_name: coffer\n"
               "  authorization: {credentials_file: " +
                   dir_ / "key" +
                   "}\n"
                   "  static_configs: [{targets: ['127.0.0.1:" +
                   std::to_string(target) + "']}]\n");
    for (int attempt = 0; attempt < 5 && port_ == 0; ++attempt) {
      // It does not say which port it got, so it is told one that was free a moment ago.
      const uint16_t port = FreePort();
      process_ = std::make_unique<Background>(
          Strings{program, "--config.file=" + dir_ / "prometheus.yml",
                  "--storage.tsdb.path=" + dir_ / "data",
                  "--web.listen-address=127.0.0.1:" + std::to_string(port)});
      if (WaitUntil([&] { return process_->ended() || Get(port, "/-/ready").status == 200; },
                    Seconds(60)) &&
          !process_->ended()) {
        port_ = port;
      }
    }
    EXPECT_NE(port_, 0) << process_->err();
  }
  ~Prometheus() {
    process_->Signal(SIGKILL);
    process_->Wait(Seconds(5));
  }

  // The value of an instant query with one answer, or not a number.
  double Ask(const std::string& query) const {
    std::string encoded;
    for (const char c : query) {
      static constexpr char kDigits[] = "0123456789ABCDEF";
      if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
        encoded += c;
      } else {
        encoded += {'%', kDigits[static_cast<unsigned char>(c) >> 4], kDigits[c & 15]};
      }
    }
    const gateway::Reply1 reply = Get(port_, "/api/v1/query?query=" + encoded);
    const Json answer = Json::parse(reply.body, nullptr, false);
    if (reply.status != 200 || answer.is_discarded() || answer["data"]["result"].size() != 1) {
      return std::nan("");
    }
    return std::strtod(answer["data"]["result"][0]["value"][1].get<std::string>().c_str(), nullptr);
  }

 private:
  static gateway::Reply1 Get(uint16_t port, const std::string& path) {
    gateway::RawClient client = gateway::RawClient::Tcp(port);
    if (!client.connected() ||
        !client.Send(gateway::Request("GET", path, {}, "Connection: close\r\n"))) {
      return {};
    }
    return client.Receive();
  }
  static uint16_t FreePort() {
    gateway::ServerConfig config;
    gateway::RunningServer server(std::move(config));
    return server.port();
  }

  TempDir dir_;
  std::unique_ptr<Background> process_;
  uint16_t port_ = 0;
};

TEST(Metrics, ARealPrometheusScrapesIt) {
  const std::string program = FindProgram("prometheus");
  NEED_PROGRAM(program);
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  MakeEverythingHappen(daemon);
  const Prometheus prometheus(program, daemon.port(), daemon.key());
  ASSERT_TRUE(WaitUntil([&] { return prometheus.Ask(kGood) == 3; }, Seconds(30)))
      << prometheus.Ask("up") << " " << prometheus.Ask(kGood);
  EXPECT_EQ(prometheus.Ask("up{job=\"coffer\"}"), 1);
  EXPECT_EQ(prometheus.Ask("sum(coffer_calls_total)"), 8);
  EXPECT_EQ(prometheus.Ask(R"(coffer_incidents_total{kind="namespace"})"), 1);
  EXPECT_EQ(prometheus.Ask(R"(coffer_cap_breaches_total{tool="python",cap="output"})"), 1);
  EXPECT_EQ(prometheus.Ask("coffer_build_info"), 1);
  // A histogram that Prometheus takes for one.
  const double median =
      prometheus.Ask("histogram_quantile(0.5, sum by (le) (coffer_call_duration_seconds_bucket))");
  EXPECT_GT(median, 0);
  EXPECT_LT(median, 30);
  // Time passes, calls are made, it follows.
  EXPECT_EQ(daemon.Call(daemon.key(), Bash("echo later")).Outcome(), "success");
  EXPECT_TRUE(WaitUntil([&] { return prometheus.Ask(kGood) == 4; }, Seconds(30)));
  // The control: with a key that may not look, it is down.
  const std::string agent = daemon.NewKey("local", "agent", "x")["key"];
  const Prometheus refused(program, daemon.port(), agent);
  EXPECT_TRUE(WaitUntil([&] { return refused.Ask("up{job=\"coffer\"}") == 0; }, Seconds(30)));
}

// ---- what is unusual ----

std::string AlertSeries(const char* kind) {
  return std::string("coffer_alerts_total{kind=\"") + kind + "\"}";
}

TEST(Metrics, TheUnusualIsAnAlertAndAnEvent) {
  Daemon daemon;
  ASSERT_TRUE(daemon.Start());
  ASSERT_EQ(daemon.Stop(), 0);
  // All of it in one hour: not in the last half minute of one.
  const auto into_the_hour = [] { return WallTime() % std::chrono::hours(1); };
  ASSERT_TRUE(WaitUntil([&] { return into_the_hour() < std::chrono::seconds(3570); }, Seconds(40)));
  const int64_t hour = std::chrono::duration_cast<std::chrono::hours>(WallTime()).count();
  {
    // A day in which bash was called twice an hour, for a tenth of a second each.
    Result<store::Store> store = store::Store::Open(daemon.state());
    ASSERT_TRUE(store.ok());
    std::vector<store::BaselineHour> past;
    for (int64_t before = 2; before <= 26; ++before) {
      past.push_back({"bash", "rate", hour - before, 2, 2, 2});
      past.push_back({"bash", "denials", hour - before, 2, 0, 0});
      past.push_back({"bash", "output", hour - before, 4, 40, 400});
    }
    ASSERT_TRUE(store::AddBaselines(*store, store::TenantId::Local(), past).ok());
  }
  ASSERT_TRUE(daemon.Start());
  const std::string other = daemon.NewKey("other", "operator", "x")["key"];
  const std::string event = R"("name":"alert.rate")";
  const auto logged = [&] {
    return Contains(ReadFile(daemon.state() + "/log/records").value_or(""), event);
  };
  for (int i = 0; i < 9; ++i) {
    ASSERT_EQ(daemon.Call(daemon.key(), Bash("echo " + std::to_string(i))).Outcome(), "success");
  }
  EXPECT_EQ(At(ScrapeAll(daemon), AlertSeries("rate")), 0);
  EXPECT_FALSE(logged());
  for (int i = 10; i < 14; ++i) {
    ASSERT_EQ(daemon.Call(daemon.key(), Bash("echo " + std::to_string(i))).Outcome(), "success");
    ASSERT_EQ(daemon.Call(other, Bash("echo " + std::to_string(i))).Outcome(), "success");
  }
  EXPECT_EQ(At(ScrapeAll(daemon), AlertSeries("rate")), 1) << "once an hour, however often";
  EXPECT_EQ(At(ScrapeWith(daemon, other), AlertSeries("rate")), 0);
  EXPECT_TRUE(WaitUntil(logged));
  EXPECT_EQ(At(ScrapeAll(daemon), AlertSeries("output")), 0);
  ASSERT_EQ(daemon.Call(daemon.key(), Bash("head -c 500000 /dev/zero")).Outcome(), "success");
  EXPECT_EQ(At(ScrapeAll(daemon), AlertSeries("output")), 1);

  // What was counted is there after a restart, and this hour's alert is not raised again.
  ASSERT_EQ(daemon.Stop(), 0);
  {
    Result<store::Store> store = store::Store::Open(daemon.state());
    ASSERT_TRUE(store.ok());
    const auto kept = store::ReadBaselines(*store, store::TenantId::Local(), "bash", hour);
    ASSERT_TRUE(kept.ok());
    double calls = 0;
    for (const store::BaselineHour& one : *kept) {
      calls += one.measure == "rate" ? one.total : 0;
    }
    EXPECT_EQ(calls, 14);
  }
  if (std::chrono::duration_cast<std::chrono::hours>(WallTime()).count() == hour) {
    ASSERT_TRUE(daemon.Start());
    ASSERT_EQ(daemon.Call(daemon.key(), Bash("echo again")).Outcome(), "success");
    EXPECT_EQ(At(ScrapeAll(daemon), AlertSeries("rate")), 0);
  }
}

}  // namespace
}  // namespace coffer::test
