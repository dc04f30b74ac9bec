// SPDX-License-Identifier: Apache-2.0
#include "audit/metrics/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <sstream>
#include <thread>

namespace coffer::audit {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// What a scraper reads: the name with its labels, and the value as it is written.
std::map<std::string, std::string> Samples(const std::string& text) {
  std::map<std::string, std::string> samples;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with('#')) {
      const size_t space = line.rfind(' ');
      EXPECT_NE(space, std::string::npos) << line;
      EXPECT_TRUE(samples.emplace(line.substr(0, space), line.substr(space + 1)).second)
          << "twice: " << line;
    }
  }
  return samples;
}

store::TenantId Id(const char* name) { return store::TenantId::Parse(name).value(); }

constexpr std::string_view kColours[] = {"red", "green", "policy.path"};
constexpr MetricLabel kByColour[] = {{"colour", kColours}};
constexpr MetricLabel kByToolAndColour[] = {{"tool", {}}, {"colour", kColours}};
constexpr double kBounds[] = {0.1, 1, 10};
constexpr MetricSpec kSpecs[] = {
    {"a_total", "As.", MetricKind::kCounter, kByColour, {}, true, false},
    {"b_seconds", "Bs.", MetricKind::kHistogram, {}, kBounds, false, false},
    {"c", "Cs.", MetricKind::kGauge, {}, {}, false, true, 0},
    {"d_total", "Ds.", MetricKind::kCounter, kByToolAndColour, {}, false, false},
    {"e", "Es.", MetricKind::kGauge, {}, {}, true, false, 1},
};

TEST(MetricRegistry, PrintsTheTextFormat) {
  MetricRegistry registry(kSpecs);
  registry.Add("t", 0, {"red"});
  registry.Add("t", 0, {"red"}, 2);
  registry.Observe("t", 1, {}, 0.1);  // a bound belongs to its bucket
  registry.Observe("t", 1, {}, 0.10001);
  registry.Observe("t", 1, {}, 100);
  EXPECT_EQ(registry.Print(Id("t")),
            "# HELP a_total As.\n"
            "# TYPE a_total counter\n"
            "a_total{colour=\"red\"} 3\n"
            "a_total{colour=\"green\"} 0\n"
            "a_total{colour=\"policy.path\"} 0\n"
            "# HELP b_seconds Bs.\n"
            "# TYPE b_seconds histogram\n"
            "b_seconds_bucket{le=\"0.1\"} 1\n"
            "b_seconds_bucket{le=\"1\"} 2\n"
            "b_seconds_bucket{le=\"10\"} 2\n"
            "b_seconds_bucket{le=\"+Inf\"} 3\n"
            "b_seconds_sum 100.20001\n"
            "b_seconds_count 3\n"
            "# HELP d_total Ds.\n"
            "# TYPE d_total counter\n"
            "# HELP e Es.\n"
            "# TYPE e gauge\n"
            "e 1\n");
}

// Whatever is said from outside: the series are those of the lists, and "other".
TEST(MetricRegistry, LabelsAreClosed) {
  MetricRegistry registry(kSpecs);
  registry.Allow("tool", {"bash", "other"});
  for (int i = 0; i < 10'000; ++i) {
    registry.Add("t", 3, {"tool-" + std::to_string(i), "host-" + std::to_string(i)});
    registry.Add("t", 0, {"x\"y\n" + std::to_string(i)});
  }
  registry.Add("t", 3, {"bash", "policy.path.broad.very"});
  registry.Add("t", 3, {"bash", "policy"});
  registry.Add("t", 3, {"bash"});  // too few: the rest is other
  const auto samples = Samples(registry.Print(store::AllTenants{}));
  EXPECT_EQ(samples.size(), 3U + 1U + 3U + 1U);
  EXPECT_EQ(samples.at(R"(d_total{tool="other",colour="other"})"), "10000");
  EXPECT_EQ(samples.at(R"(d_total{tool="bash",colour="policy.path"})"), "1");
  EXPECT_EQ(samples.at(R"(d_total{tool="bash",colour="other"})"), "2");
  EXPECT_EQ(samples.at(R"(a_total{colour="other"})"), "10000");
}

TEST(MetricRegistry, ANameIsQuotedAsTheFormatWants) {
  MetricRegistry registry(kSpecs);
  registry.Allow("tool", {"a\\b\"c\nd"});
  registry.Add("t", 3, {"a\\b\"c\nd", "red"});
  EXPECT_THAT(registry.Print(Id("t")),
              HasSubstr("d_total{tool=\"a\\\\b\\\"c\\nd\",colour=\"red\"} 1\n"));
}

TEST(MetricRegistry, ATenantSeesItsOwnAndTheSumIsTheSum) {
  MetricRegistry registry(kSpecs);
  registry.Add("a", 0, {"red"}, 3);
  registry.Add("b", 0, {"red"}, 4);
  registry.Add("", 0, {"red"}, 10);  // nobody's
  registry.Observe("a", 1, {}, 1);
  registry.Observe("b", 1, {}, 2);
  registry.Set("a", 4, {}, 5);
  registry.Set("a", 4, {}, 7);
  registry.Set("b", 4, {}, 2);
  registry.Set("", 2, {}, 9);
  const auto a = Samples(registry.Print(Id("a")));
  const auto b = Samples(registry.Print(Id("b")));
  const auto c = Samples(registry.Print(Id("c")));
  const auto all = Samples(registry.Print(store::AllTenants{}));
  EXPECT_EQ(a.at(R"(a_total{colour="red"})"), "3");
  EXPECT_EQ(b.at(R"(a_total{colour="red"})"), "4");
  EXPECT_EQ(c.at(R"(a_total{colour="red"})"), "0");
  EXPECT_EQ(all.at(R"(a_total{colour="red"})"), "17");
  EXPECT_EQ(a.at("b_seconds_sum"), "1");
  EXPECT_FALSE(c.contains("b_seconds_sum"));
  EXPECT_EQ(all.at("b_seconds_count"), "2");
  EXPECT_EQ(a.at("e"), "7");
  EXPECT_EQ(all.at("e"), "9");
  // What is about the host is not a tenant's.
  EXPECT_FALSE(a.contains("c"));
  EXPECT_EQ(all.at("c"), "9");
}

TEST(MetricRegistry, ThreadsLoseNothing) {
  MetricRegistry registry(kSpecs);
  registry.Allow("tool", {"bash"});
  constexpr int kThreads = 4;
  constexpr int kRounds = 5'000;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&registry, t] {
      const std::string tenant = t % 2 == 0 ? "even" : "odd";
      for (int i = 0; i < kRounds; ++i) {
        registry.Add(tenant, 3, {"bash", "red"});
        registry.Observe(tenant, 1, {}, 0.5);
        if (i % 1000 == 0) {
          registry.Allow("tool", {"tool-" + std::to_string(i)});
          (void)registry.Print(store::AllTenants{});
        }
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  const auto all = Samples(registry.Print(store::AllTenants{}));
  EXPECT_EQ(all.at(R"(d_total{tool="bash",colour="red"})"), std::to_string(kThreads * kRounds));
  EXPECT_EQ(all.at("b_seconds_count"), std::to_string(kThreads * kRounds));
  EXPECT_EQ(Samples(registry.Print(Id("odd"))).at("b_seconds_count"),
            std::to_string(kThreads / 2 * kRounds));
}

// ---- the table and what feeds it ----

TEST(MetricTable, NamesFollowTheConventions) {
  std::set<std::string_view> names;
  for (const MetricSpec& spec : MetricSpecs()) {
    SCOPED_TRACE(std::string(spec.name));
    EXPECT_TRUE(names.insert(spec.name).second);
    EXPECT_TRUE(spec.name.starts_with("coffer_") || spec.name.starts_with("process_"));
    EXPECT_TRUE(spec.help.ends_with("."));
    EXPECT_EQ(spec.help.find_first_of("\\\n"), std::string_view::npos);
    EXPECT_EQ(spec.name.ends_with("_total"), spec.kind == MetricKind::kCounter);
    EXPECT_EQ(spec.name.ends_with("_seconds") && !spec.name.starts_with("process_"),
              spec.kind == MetricKind::kHistogram);
    EXPECT_LE(spec.labels.size(), kMaxLabels);
    EXPECT_TRUE(std::is_sorted(spec.bounds.begin(), spec.bounds.end()));
    EXPECT_EQ(spec.bounds.empty(), spec.kind != MetricKind::kHistogram);
    for (const MetricLabel& label : spec.labels) {
      // What must never be a label.
      for (const char* never : {"tenant", "call", "user", "host", "agent", "session", "id"}) {
        EXPECT_NE(label.name, never);
      }
      const std::set<std::string_view> values(label.values.begin(), label.values.end());
      EXPECT_EQ(values.size(), label.values.size());
      EXPECT_FALSE(values.contains(kOtherValue));
      if (label.values.empty()) {
        EXPECT_TRUE(label.name == "tool" || label.name == "route");
      }
    }
  }
}

Receipt Ended() {
  using std::chrono::microseconds;
  using std::chrono::milliseconds;
  Receipt receipt;
  receipt.identity.tenant = *store::TenantId::Parse("acme");
  receipt.identity.call_id = "the-call-id";
  receipt.identity.agent = "the-agent";
  receipt.identity.user = "the-user";
  receipt.identity.tool = "bash";
  receipt.outcome = "terminated";
  receipt.error_class = "limit.memory";
  receipt.requested_at = Nanos(1'000'000'000);
  receipt.started_at = receipt.requested_at + milliseconds(10);
  receipt.finished_at = receipt.requested_at + milliseconds(2000);
  receipt.steps_us = {{"start", 100}, {"running", 4000}, {"done", 9000}};
  receipt.limits = {{"memory", {10, 10, "bytes", true}}, {"cpu", {10, 1, "ns", false}}};
  receipt.denials = {{"isolation", "syscall", "unshare(0)", "seccomp.default", "", "", 3}};
  return receipt;
}

TEST(Metrics, ACallThatEnded) {
  Metrics metrics;
  metrics.AllowTools({"bash"});
  metrics.CallEnded(Ended());
  const std::string text = metrics.Print(Id("acme"));
  const auto samples = Samples(text);
  EXPECT_EQ(samples.at(R"(coffer_calls_total{tool="bash",outcome="terminated"})"), "1");
  EXPECT_EQ(samples.at(R"(coffer_calls_total{tool="bash",outcome="success"})"), "0");
  EXPECT_EQ(samples.at(R"(coffer_call_errors_total{class="limit.memory"})"), "1");
  EXPECT_EQ(samples.at(R"(coffer_call_duration_seconds_sum{tool="bash"})"), "2");
  EXPECT_EQ(samples.at(R"(coffer_call_duration_seconds_bucket{tool="bash",le="1"})"), "0");
  EXPECT_EQ(samples.at(R"(coffer_call_duration_seconds_bucket{tool="bash",le="2.5"})"), "1");
  EXPECT_EQ(samples.at("coffer_sandbox_start_seconds_sum"), "0.004");
  EXPECT_EQ(samples.at(R"(coffer_cap_breaches_total{tool="bash",cap="memory"})"), "1");
  EXPECT_EQ(samples.at(R"(coffer_cap_breaches_total{tool="bash",cap="cpu"})"), "0");
  EXPECT_EQ(samples.at(R"(coffer_denials_total{surface="isolation",rule="seccomp.default"})"), "3");
  EXPECT_EQ(samples.at("coffer_build_info{version=\"" COFFER_VERSION "\"}"), "1");
  for (const char* secret : {"acme", "the-call-id", "the-agent", "the-user", "unshare"}) {
    EXPECT_THAT(text, Not(HasSubstr(secret)));
  }
  EXPECT_THAT(text, Not(HasSubstr("process_")));
  EXPECT_EQ(Samples(metrics.Print(Id("other-tenant")))
                .at(R"(coffer_calls_total{tool="bash",outcome="terminated"})"),
            "0");
}

TEST(Metrics, RefusedRehearsedAndNeverStarted) {
  Metrics metrics;
  metrics.AllowTools({"bash"});
  Receipt rehearsed = Ended();
  rehearsed.denials = {{"policy", "call", "bash", "policy.dry_run", "", "", 1}};
  metrics.CallEnded(rehearsed);
  Receipt refused = Ended();
  refused.started_at = Nanos(0);
  refused.steps_us.clear();
  refused.limits.clear();
  refused.outcome = "denied";
  refused.error_class = "policy.args.schema";
  refused.denials = {{"policy", "call", "bash", "policy.args.schema", "", "", 1}};
  metrics.CallEnded(refused);
  refused.identity.tool = "../../etc/passwd";
  refused.error_class = "policy.tool";
  refused.denials = {{"policy", "call", "../../etc/passwd", "policy.tool", "", "", 1}};
  metrics.CallEnded(refused);
  const auto samples = Samples(metrics.Print(Id("acme")));
  EXPECT_EQ(samples.at(R"(coffer_calls_total{tool="bash",outcome="denied"})"), "1");
  EXPECT_EQ(samples.at(R"(coffer_calls_total{tool="other",outcome="denied"})"), "1");
  EXPECT_EQ(samples.at(R"(coffer_denials_total{surface="policy",rule="policy.tool"})"), "1");
  EXPECT_EQ(samples.at(R"(coffer_denials_total{surface="policy",rule="policy.args.schema"})"), "1");
  EXPECT_EQ(samples.at(R"(coffer_call_errors_total{class="policy"})"), "2");
  EXPECT_EQ(samples.at("coffer_sandbox_start_seconds_count"), "0");
  EXPECT_FALSE(samples.contains(R"(coffer_call_duration_seconds_count{tool="bash"})"));
}

TEST(Metrics, TheRest) {
  Metrics metrics;
  metrics.AllowRoutes({"/v1/calls/{call_id}"});
  metrics.CallRuns("a");
  metrics.CallRuns("b");
  metrics.CallIsOver("a");
  metrics.Waited("a", std::chrono::milliseconds(3));
  metrics.Evaluated("a", std::chrono::microseconds(300));
  metrics.Appended("a", std::chrono::milliseconds(1));
  metrics.LogGrew(12);
  metrics.LogGrew(13);
  metrics.Happened("a", "namespace");
  metrics.Alerted("a", "rate");
  metrics.Answered("a", "/v1/calls/{call_id}", "GET", 200);
  metrics.Answered("", "/wp-login.php", "PROPFIND", 404);
  metrics.Answered("", "", "", 999);
  metrics.Measured({1e9, 20, 1.5, 1.7e9});
  metrics.Delivered(5, 2, 0);
  metrics.Delivered(7, 2, 1);
  const auto all = Samples(metrics.Print(store::AllTenants{}));
  EXPECT_EQ(all.at("coffer_calls_running"), "1");
  EXPECT_EQ(Samples(metrics.Print(Id("a"))).at("coffer_calls_running"), "0");
  EXPECT_EQ(all.at("coffer_queue_wait_seconds_sum"), "0.003");
  EXPECT_EQ(all.at("coffer_policy_eval_seconds_sum"), "0.0003");
  EXPECT_EQ(all.at("coffer_audit_append_seconds_count"), "1");
  EXPECT_EQ(all.at("coffer_audit_log_size"), "13");
  EXPECT_EQ(all.at(R"(coffer_incidents_total{kind="namespace"})"), "1");
  EXPECT_EQ(all.at(R"(coffer_alerts_total{kind="rate"})"), "1");
  EXPECT_EQ(all.at(R"(coffer_alerts_total{kind="memory"})"), "0");
  EXPECT_EQ(
      all.at(
          R"(coffer_http_requests_total{route="/v1/calls/{call_id}",method="GET",status="2xx"})"),
      "1");
  EXPECT_EQ(all.at(R"(coffer_http_requests_total{route="other",method="other",status="4xx"})"),
            "1");
  EXPECT_EQ(all.at(R"(coffer_http_requests_total{route="other",method="other",status="other"})"),
            "1");
  EXPECT_EQ(all.at(R"(coffer_deliveries_total{result="sent"})"), "7");
  EXPECT_EQ(all.at(R"(coffer_deliveries_total{result="dropped"})"), "1");
  EXPECT_EQ(all.at("process_resident_memory_bytes"), "1000000000");
  EXPECT_EQ(all.at("process_cpu_seconds_total"), "1.5");
}

}  // namespace
}  // namespace coffer::audit
