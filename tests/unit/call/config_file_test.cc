// SPDX-License-Identifier: Apache-2.0
#include "call/config_file.h"

#include <gtest/gtest.h>

namespace coffer::call {
namespace {

using std::chrono::hours;

TEST(ConfigFile, NothingIsTheDefaults) {
  const Result<FileConfig> config = ReadConfigText("", "f");
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(config->QuotasOf(*store::TenantId::Parse("any")).tenant, policy::RateLimits{});
  EXPECT_EQ(config->QuotasOf(*store::TenantId::Parse("any")).tenant_budget, store::Budget{});
  EXPECT_EQ(config->general.retention.calls, hours(24 * 90));
  EXPECT_TRUE(config->webhooks.empty());
  EXPECT_TRUE(config->otlp.endpoint.empty());
  EXPECT_TRUE(config->anomaly.enabled);
  EXPECT_EQ(config->anomaly.window, hours(24 * 7));
}

TEST(ConfigFile, EverythingThatCanBeSaid) {
  const Result<FileConfig> config = ReadConfigText(R"(
[quotas.tenant]
calls = ["100/s", "5000/h"]
burst = 20
concurrency = 8
[quotas.agent]
calls = ["10/s"]
[budgets.tenant]
calls = 1000
retries = 10
cpu = "2h"
bytes_out = "1GiB"
period = "24h"
[budgets.session]
calls = 50
cpu = "60s"
[retention]
calls = "30d"
results = "48h"
sessions = "10d"
keys = "20d"
[tenant.acme.quotas.tenant]
burst = 5
[tenant.acme.budgets.session]
calls = 7
[tenant.acme.retention]
calls = "365d"
[[webhook]]
url = "https://example.com/hook"
secret_file = "/etc/coffer/hook.secret"
events = ["alert.*", "switch.on"]
[otlp]
endpoint = "http://127.0.0.1:4318"
headers_file = "/etc/coffer/otlp.headers"
[anomaly]
enabled = false
window = "3d"
deviations = 3
rate_factor = 4
)",
                                                   "f");
  ASSERT_TRUE(config.ok()) << config.error().message;
  const store::Quotas general = config->QuotasOf(*store::TenantId::Parse("other"));
  EXPECT_EQ(general.tenant.calls.size(), 2U);
  EXPECT_EQ(general.tenant.burst, 20U);
  EXPECT_EQ(general.agent.calls.front(), (policy::RateRule{10, std::chrono::seconds(1)}));
  EXPECT_EQ(general.tenant_budget.bytes_out, 1ULL << 30);
  EXPECT_EQ(general.tenant_budget.period, hours(24));
  // What a tenant does not name stays as it is in general.
  const TenantRules& acme = config->RulesOf(*store::TenantId::Parse("acme"));
  EXPECT_EQ(acme.tenant_rate.burst, 5U);
  EXPECT_EQ(acme.tenant_rate.calls.size(), 2U);
  EXPECT_EQ(acme.tenant_rate.concurrency, 8U);
  EXPECT_EQ(acme.session_budget.calls, 7U);
  EXPECT_EQ(acme.session_budget.cpu, std::chrono::seconds(60));
  EXPECT_EQ(acme.retention.calls, hours(24 * 365));
  EXPECT_EQ(acme.retention.results, hours(48));
  EXPECT_EQ(config->general.retention.calls, hours(24 * 30));
  ASSERT_EQ(config->webhooks.size(), 1U);
  EXPECT_EQ(config->webhooks[0].url, "https://example.com/hook");
  EXPECT_EQ(config->webhooks[0].secret_file, "/etc/coffer/hook.secret");
  EXPECT_EQ(config->webhooks[0].events, (std::vector<std::string>{"alert.*", "switch.on"}));
  EXPECT_EQ(config->otlp.endpoint, "http://127.0.0.1:4318");
  EXPECT_FALSE(config->anomaly.enabled);
  EXPECT_EQ(config->anomaly.window, hours(72));
  EXPECT_EQ(config->anomaly.deviations, 3U);
  EXPECT_EQ(config->anomaly.rate_factor, 4U);
}

TEST(ConfigFile, CeilingsHaveDefaultsAndCanBeChanged) {
  const policy::Limits usual = ParseConfigFile("").config.ceilings;
  EXPECT_EQ(usual, DefaultCeilings());
  EXPECT_EQ(usual.processes, 4096U);
  const ParsedConfig parsed = ParseConfigFile("[ceilings]\nmemory = \"1GiB\"\ncpu = \"5m\"\n");
  ASSERT_TRUE(parsed.mistakes.empty());
  EXPECT_EQ(parsed.config.ceilings.memory, 1ULL << 30);
  EXPECT_EQ(parsed.config.ceilings.cpu, std::chrono::minutes(5));
  EXPECT_EQ(parsed.config.ceilings.disk, usual.disk) << "what is not named stays";
  EXPECT_FALSE(ParseConfigFile("[ceilings]\ncalls = 3\n").mistakes.empty());
  EXPECT_FALSE(ParseConfigFile("[ceilings]\nprocesses = 0\n").mistakes.empty());
}

TEST(ConfigFile, StorageAndTheHost) {
  constexpr uint64_t kGiB = 1ULL << 30;
  const Result<FileConfig> config = ReadConfigText(R"(
[storage]
session = "50MiB"
[host]
calls = 20
memory = "2GiB"
tenant_share = 25
[tenant.acme.storage]
tenant = "1GiB"
)",
                                                   "f");
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->host, (HostLimits{20, 2 * kGiB, 25}));
  const StorageRules& general = config->RulesOf(*store::TenantId::Parse("any")).storage;
  EXPECT_EQ(general.Tenant(800 * kGiB), 8 * kGiB);
  EXPECT_EQ(general.Tenant(8 * kGiB), kGiB) << "an eighth of a small disk";
  EXPECT_EQ(general.session, 50ULL << 20);
  EXPECT_EQ(general.SessionsTogether(kGiB), 200ULL << 20) << "four of them at least";
  const StorageRules& acme = config->RulesOf(*store::TenantId::Parse("acme")).storage;
  EXPECT_EQ(acme.Tenant(8 * kGiB), kGiB);
  EXPECT_EQ(acme.Records(8 * kGiB), kGiB / 2);
  EXPECT_EQ(acme.session, 50ULL << 20);
  for (const char* wrong :
       {"[storage]\ntenant = \"1KiB\"\n", "[storage]\nsession = \"1TiB\"\n",
        "[storage]\nsession = \"1KiB\"\n", "[host]\ncalls = 0\n", "[host]\ntenant_share = 101\n",
        "[host]\nprocessors = 2\n", "[tenant.acme.host]\ncalls = 1\n"}) {
    EXPECT_FALSE(ReadConfigText(wrong, "f").ok()) << wrong;
  }
}

TEST(ConfigFile, TheTenantsTablesMayComeFirst) {
  const Result<FileConfig> config =
      ReadConfigText("[tenant.a.quotas.agent]\nburst = 1\n[quotas.agent]\nconcurrency = 9\n", "f");
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(config->RulesOf(*store::TenantId::Parse("a")).agent_rate.concurrency, 9U);
  EXPECT_EQ(config->RulesOf(*store::TenantId::Parse("a")).agent_rate.burst, 1U);
  EXPECT_EQ(config->RulesOf(*store::TenantId::Parse("b")).agent_rate.burst, 0U);
}

TEST(ConfigFile, MistakesHaveTheirPlace) {
  const struct {
    const char* text;
    const char* says;
  } cases[] = {
      {"[quota.tenant]\n", "f:1:2: the file has no table \"quota\": did you mean quotas?"},
      {"[quotas.tenant]\nburts = 1\n", "f:2:1: [quotas.tenant] has no key \"burts\""},
      {"[quotas.tool]\nburst = 1\n", "f:1:9: [quotas] has no key \"tool\""},
      {"[quotas.agent]\nburst = 0\n", "f:2:9: quotas.agent.burst: 0 is out of range"},
      {"[quotas.agent]\ncalls = [\"x\"]\n", "f:2:10: quotas.agent.calls: "},
      {"[quotas.agent]\ncalls = \"1/s\"\n", "quotas.agent.calls: an array is wanted"},
      {"[budgets.session]\nperiod = \"1h\"\n", "[budgets.session] has no key \"period\""},
      {"[budgets.tenant]\ncpu = 5\n", "budgets.tenant.cpu: a string is wanted"},
      {"[retention]\nresults = \"1h\"\n", "f:2:11: retention.results: shorter than the 24 hours"},
      {"[tenant.UP.quotas.tenant]\nburst = 1\n", "f:1:9: \"UP\" is not a tenant's name"},
      {"[tenant]\nx = 1\n", "f:2:1: tenant.x is not a table"},
      {"[tenant.x]\nwebhook = 1\n", "[tenant.x] has no key \"webhook\""},
      {"[[webhook]]\nsecret_file = \"/x\"\n", "webhook.url is missing"},
      {"[[webhook]]\nurl = \"ftp://x\"\n", "f:2:7: webhook.url: neither https"},
      {"[[webhook]]\nurl = \"http://x\"\nsecret_file = \"x\"\n", "not an absolute path"},
      {"[webhook]\nurl = \"http://x\"\n", "webhook: an array is wanted"},
      {"[otlp]\n", "otlp.endpoint is missing"},
      {"[anomaly]\nenabled = \"yes\"\n", "anomaly.enabled: true or false is wanted"},
      {"[quotas\n", "f:1:"},
      {"[[peer]]\ntenant = \"a\"\nrole = \"agent\"\n", "peer.uid: missing"},
      {"[[peer]]\nuid = 0\ntenant = \"a\"\nrole = \"agent\"\n",
       "f:2:7: peer.uid: 0 is out of range"},
      {"[[peer]]\nuid = -1\ntenant = \"a\"\nrole = \"agent\"\n", "f:2:7: peer.uid: "},
      {"[[peer]]\nuid = 4294967295\ntenant = \"a\"\nrole = \"agent\"\n", "f:2:7: peer.uid: "},
      {"[[peer]]\nuid = 65534\ntenant = \"a\"\nrole = \"agent\"\n", "another user namespace"},
      {"[[peer]]\nuid = 5\nrole = \"agent\"\n", "peer.tenant is missing"},
      {"[[peer]]\nuid = 5\ntenant = \"A B\"\nrole = \"agent\"\n",
       "peer.tenant: not a tenant's name"},
      {"[[peer]]\nuid = 5\ntenant = \"a\"\n", "peer.role is missing"},
      {"[[peer]]\nuid = 5\ntenant = \"a\"\nrole = \"root\"\n", "peer.role: not a role"},
      {"[[peer]]\nuid = 5\ntenant = \"a\"\nrole = \"agent\"\nagent = \"a b\"\n",
       "peer.agent: not a name"},
      {"[[peer]]\nuid = 5\ntenant = \"a\"\nrole = \"agent\"\n"
       "[[peer]]\nuid = 5\ntenant = \"b\"\nrole = \"agent\"\n",
       "f:6:7: peer.uid: twice in this file"},
  };
  for (const auto& [text, says] : cases) {
    const Result<FileConfig> config = ReadConfigText(text, "f");
    ASSERT_FALSE(config.ok()) << text;
    EXPECT_NE(config.error().message.find(says), std::string::npos)
        << text << "says: " << config.error().message;
  }
}

TEST(ConfigFile, PeersAreKnownByTheirUid) {
  const Result<FileConfig> config = ReadConfigText(R"(
[[peer]]
uid = 1001
tenant = "acme"
role = "auditor"
agent = "eyes"
[[peer]]
uid = 1002
tenant = "acme"
role = "agent"
)",
                                                   "f");
  ASSERT_TRUE(config.ok()) << config.error().message;
  ASSERT_NE(config->FindPeer(1001), nullptr);
  EXPECT_EQ(config->FindPeer(1001)->tenant.name(), "acme");
  EXPECT_EQ(config->FindPeer(1001)->role, store::Role::kAuditor);
  EXPECT_EQ(config->FindPeer(1001)->agent, "eyes");
  EXPECT_EQ(config->FindPeer(1002)->agent, "uid-1002");
  EXPECT_EQ(config->FindPeer(1003), nullptr);
  EXPECT_EQ(config->FindPeer(0), nullptr);
}

TEST(ConfigFile, AllMistakesAreToldAtOnceAndNothingIsHalfRead) {
  const ParsedConfig parsed =
      ParseConfigFile("[quotas.tenant]\nburst = 3\nx = 1\n[anomaly]\ny = 2\n");
  EXPECT_EQ(parsed.mistakes.size(), 2U);
  EXPECT_EQ(parsed.config.general.tenant_rate.burst, 0U);
}

}  // namespace
}  // namespace coffer::call
