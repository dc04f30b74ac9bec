// SPDX-License-Identifier: Apache-2.0
#include "call/config_file.h"

#include <errno.h>
#include <fmt/format.h>

#include <algorithm>

#include "base/quantity.h"
#include "base/regular_file.h"
#include "base/text.h"
#include "policy/manifest/table_reader.h"
#include "policy/manifest/toml_tree.h"
#include "store/key.h"
#include "store/tenant.h"

namespace coffer::call {
namespace {

using policy::MistakeList;
using policy::TableReader;
using policy::TomlEntry;
using policy::TomlNode;
using Keys = std::vector<std::string_view>;

constexpr uint64_t kMostCount = 1'000'000;
constexpr uint64_t kMostBudget = 1'000'000'000'000;
constexpr uint64_t kLeastStorage = 16ULL << 20;
constexpr uint64_t kLeastSession = 1ULL << 20;
constexpr uint64_t kMostSession = 64ULL << 30;
constexpr uint64_t kUsualStorage = 8ULL << 30;
constexpr uint64_t kDiskShare = 8;  // one part of it
constexpr uint64_t kFewSessions = 4;
constexpr uint64_t kUsualDenials = 3;
constexpr uint64_t kMostDenials = 100;
constexpr size_t kMostWebhooks = 16;
constexpr size_t kMostPeers = 1000;
constexpr uint64_t kMostUid = 0xfffffffe;  // the next one, (uid_t)-1, is no uid
constexpr uint32_t kOverflowUid = 65534;
constexpr size_t kMostFileBytes = 1 << 20;

void ReadRate(const TomlNode& table, const std::string& path, policy::RateLimits& limits,
              MistakeList& mistakes) {
  TableReader reader(table, path, Keys{"calls", "burst", "concurrency"}, mistakes);
  if (const auto rules = reader.Strings("calls")) {
    limits.calls.clear();
    for (size_t i = 0; i < rules->size(); ++i) {
      const Result<policy::RateRule> rule = policy::ParseRate((*rules)[i]);
      if (rule.ok()) {
        limits.calls.push_back(*rule);
      } else {
        mistakes.Add(reader.Find("calls")->value.items[i].at,
                     reader.NameOf("calls") + ": " + Printable(rule.error().message),
                     rule.error().hint);
      }
    }
    if (rules->size() > 4) {
      reader.Add("calls", "more than 4 windows", "one per second, minute, hour and day is enough");
    }
  }
  limits.burst = reader.Count("burst", 1, kMostCount).value_or(limits.burst);
  limits.concurrency = reader.Count("concurrency", 1, kMostCount).value_or(limits.concurrency);
}

void ReadBudget(const TomlNode& table, const std::string& path, bool has_period,
                store::Budget& budget, MistakeList& mistakes) {
  Keys keys = {"calls", "retries", "cpu", "bytes_out"};
  if (has_period) {
    keys.emplace_back("period");
  }
  TableReader reader(table, path, keys, mistakes);
  budget.calls = reader.Count("calls", 1, kMostBudget).value_or(budget.calls);
  budget.retries = reader.Count("retries", 1, kMostBudget).value_or(budget.retries);
  reader.Duration(budget.cpu, "cpu");
  reader.Parsed(budget.bytes_out, "bytes_out", ParseSize);
  if (has_period) {
    reader.Duration(budget.period, "period");
  }
}

void ReadRetention(const TomlNode& table, const std::string& path, store::Retention& retention,
                   MistakeList& mistakes) {
  TableReader reader(table, path, Keys{"calls", "results", "sessions", "keys", "transcripts"},
                     mistakes);
  reader.Duration(retention.calls, "calls");
  reader.Duration(retention.results, "results");
  reader.Duration(retention.sessions, "sessions");
  reader.Duration(retention.keys, "keys");
  reader.Duration(retention.transcripts, "transcripts");
  for (const auto& [key, value] :
       {std::pair("calls", retention.calls), std::pair("results", retention.results),
        std::pair("transcripts", retention.transcripts)}) {
    if (value < store::kIdempotencyTime && reader.Find(key) != nullptr) {
      reader.Add(key, "shorter than the 24 hours in which a retry must find its result",
                 "write 24h or more");
    }
  }
}

void ReadStorage(const TomlNode& table, const std::string& path, StorageRules& storage,
                 MistakeList& mistakes) {
  TableReader reader(table, path, Keys{"tenant", "session"}, mistakes);
  reader.Parsed(storage.tenant, "tenant", ParseSize);
  reader.Parsed(storage.session, "session", ParseSize);
  if (reader.Find("tenant") != nullptr && storage.tenant < kLeastStorage) {
    reader.Add("tenant", "too little to keep anything", "write 16MiB or more");
  }
  if (storage.session < kLeastSession || storage.session > kMostSession) {
    reader.Add("session", "not a size for a session", "write 1MiB to 64GiB");
  }
}

void ReadBreaker(const TomlNode& table, const std::string& path, BreakerConfig& breaker,
                 MistakeList& mistakes) {
  TableReader reader(table, path, Keys{"denials", "within", "pause", "counts"}, mistakes);
  store::BreakerRule& rule = breaker.rule;
  const uint64_t usual = rule.denials == 0 ? kUsualDenials : rule.denials;
  rule.denials = reader.Count("denials", 0, kMostDenials).value_or(usual);
  reader.Duration(rule.within, "within");
  reader.Duration(rule.pause, "pause");
  for (const auto& [key, value] :
       {std::pair("within", rule.within), std::pair("pause", rule.pause)}) {
    if (value < std::chrono::seconds(1) || value > store::kLongestBreakerWindow) {
      reader.Add(key, "not a time for a breaker", "write 1s to 24h");
    }
  }
  if (const auto counts = reader.Strings("counts")) {
    std::pair<std::string_view, bool*> kinds[] = {{"egress", &breaker.egress},
                                                  {"incidents", &breaker.incidents},
                                                  {"isolation", &breaker.isolation},
                                                  {"policy", &breaker.policy}};
    for (const auto& [name, counted] : kinds) {
      *counted = std::find(counts->begin(), counts->end(), name) != counts->end();
    }
    for (size_t i = 0; i < counts->size(); ++i) {
      if (std::none_of(std::begin(kinds), std::end(kinds),
                       [&](const auto& kind) { return kind.first == (*counts)[i]; })) {
        mistakes.Add(reader.Find("counts")->value.items[i].at,
                     fmt::format("{}: \"{}\" is nothing that counts", reader.NameOf("counts"),
                                 Printable((*counts)[i])),
                     "egress, incidents, isolation or policy");
      }
    }
  }
}

void ReadHost(TableReader& root, FileConfig& config, MistakeList& mistakes) {
  const TomlNode* const table = root.Table("host");
  if (table == nullptr) {
    return;
  }
  TableReader reader(*table, "host", Keys{"calls", "memory", "tenant_share"}, mistakes);
  config.host.calls = reader.Count("calls", 1, kMostCount).value_or(config.host.calls);
  reader.Parsed(config.host.memory, "memory", ParseSize);
  config.host.tenant_share =
      reader.Count("tenant_share", 1, 100).value_or(config.host.tenant_share);
}

// quotas, budgets, retention, storage and breaker of all tenants, or of one.
void ReadRules(TableReader& root, const std::string& prefix, TenantRules& rules,
               MistakeList& mistakes) {
  if (const TomlNode* const quotas = root.Table("quotas")) {
    const std::string path = prefix + "quotas";
    TableReader reader(*quotas, path, Keys{"tenant", "agent"}, mistakes);
    if (const TomlNode* const table = reader.Table("tenant")) {
      ReadRate(*table, path + ".tenant", rules.tenant_rate, mistakes);
    }
    if (const TomlNode* const table = reader.Table("agent")) {
      ReadRate(*table, path + ".agent", rules.agent_rate, mistakes);
    }
  }
  if (const TomlNode* const budgets = root.Table("budgets")) {
    const std::string path = prefix + "budgets";
    TableReader reader(*budgets, path, Keys{"tenant", "session"}, mistakes);
    if (const TomlNode* const table = reader.Table("tenant")) {
      ReadBudget(*table, path + ".tenant", true, rules.tenant_budget, mistakes);
    }
    if (const TomlNode* const table = reader.Table("session")) {
      ReadBudget(*table, path + ".session", false, rules.session_budget, mistakes);
    }
  }
  if (const TomlNode* const retention = root.Table("retention")) {
    ReadRetention(*retention, prefix + "retention", rules.retention, mistakes);
  }
  if (const TomlNode* const storage = root.Table("storage")) {
    ReadStorage(*storage, prefix + "storage", rules.storage, mistakes);
  }
  if (const TomlNode* const breaker = root.Table("breaker")) {
    ReadBreaker(*breaker, prefix + "breaker", rules.breaker, mistakes);
  }
  if (const auto record = root.Choice("record", {"full", "hashes"})) {
    rules.keeps_transcripts = *record == 0;
  }
}

void ReadTenants(TableReader& root, FileConfig& config, MistakeList& mistakes) {
  const TomlNode* const tenants = root.Table("tenant");
  if (tenants == nullptr) {
    return;
  }
  for (const TomlEntry& entry : tenants->entries) {
    const Result<store::TenantId> name = store::TenantId::Parse(entry.key);
    if (!name.ok() || entry.value.kind != policy::TomlKind::kTable) {
      mistakes.Add(entry.at,
                   name.ok() ? fmt::format("tenant.{} is not a table", entry.key)
                             : fmt::format("\"{}\" is not a tenant's name", Printable(entry.key)),
                   "write [tenant.NAME.quotas.tenant]");
      continue;
    }
    const std::string path = "tenant." + entry.key;
    TableReader reader(entry.value, path,
                       Keys{"quotas", "budgets", "retention", "storage", "breaker", "record"},
                       mistakes);
    TenantRules rules = config.general;
    ReadRules(reader, path + ".", rules, mistakes);
    config.tenants.emplace(*name, std::move(rules));
  }
}

std::string AbsoluteFile(TableReader& reader, std::string_view key) {
  const std::string path = reader.String(key).value_or("");
  if (!path.empty() && path.front() != '/') {
    reader.Add(key, "not an absolute path", "begin it with /");
  }
  return path;
}

bool IsHttp(std::string_view url) {
  return url.starts_with("https://") || url.starts_with("http://");
}

void ReadWebhooks(TableReader& root, FileConfig& config, MistakeList& mistakes) {
  for (const TomlNode* const table : root.Tables("webhook")) {
    TableReader reader(*table, "webhook", Keys{"url", "secret_file", "events"}, mistakes);
    egress::WebhookConfig hook;
    hook.url = reader.Required("url", "\"https://example.com/hook\"").value_or("");
    if (!hook.url.empty() && !IsHttp(hook.url)) {
      reader.Add("url", "neither https:// nor http://", "write the whole URL");
    }
    hook.secret_file = AbsoluteFile(reader, "secret_file");
    hook.events = reader.Strings("events").value_or(std::vector<std::string>());
    config.webhooks.push_back(std::move(hook));
  }
  if (config.webhooks.size() > kMostWebhooks) {
    root.Add("webhook", fmt::format("more than {}", kMostWebhooks),
             "let one receiver send to the others");
  }
}

void ReadOtlp(TableReader& root, FileConfig& config, MistakeList& mistakes) {
  const TomlNode* const table = root.Table("otlp");
  if (table == nullptr) {
    return;
  }
  TableReader reader(*table, "otlp", Keys{"endpoint", "headers_file"}, mistakes);
  config.otlp.endpoint = reader.Required("endpoint", "\"http://127.0.0.1:4318\"").value_or("");
  if (!config.otlp.endpoint.empty() && !IsHttp(config.otlp.endpoint)) {
    reader.Add("endpoint", "neither https:// nor http://", "write the whole URL");
  }
  config.otlp.headers_file = AbsoluteFile(reader, "headers_file");
}

void ReadAnomaly(TableReader& root, FileConfig& config, MistakeList& mistakes) {
  const TomlNode* const table = root.Table("anomaly");
  if (table == nullptr) {
    return;
  }
  TableReader reader(*table, "anomaly", Keys{"enabled", "window", "deviations", "rate_factor"},
                     mistakes);
  AnomalyConfig& anomaly = config.anomaly;
  anomaly.enabled = reader.Boolean("enabled").value_or(anomaly.enabled);
  reader.Duration(anomaly.window, "window");
  anomaly.deviations = reader.Count("deviations", 1, 100).value_or(anomaly.deviations);
  anomaly.rate_factor = reader.Count("rate_factor", 2, 1000).value_or(anomaly.rate_factor);
}

void ReadPeers(TableReader& root, FileConfig& config, MistakeList& mistakes) {
  for (const TomlNode* const table : root.Tables("peer")) {
    TableReader reader(*table, "peer", Keys{"uid", "tenant", "role", "agent"}, mistakes);
    PeerConfig peer;
    // Root needs no entry: root is the operator here, whatever a file says.
    const std::optional<uint64_t> uid = reader.Count("uid", 1, kMostUid);
    if (!uid && reader.Find("uid") == nullptr) {
      reader.Add("uid", "missing", "write uid = 1001, as `id -u USER` says it");
    }
    peer.uid = static_cast<uint32_t>(uid.value_or(0));
    if (peer.uid == kOverflowUid) {
      reader.Add("uid", "the uid that users of another user namespace appear with",
                 "give those users keys");
    }
    if (uid && config.FindPeer(peer.uid) != nullptr) {
      reader.Add("uid", "twice in this file", "one entry for each uid");
    }
    if (Result<store::TenantId> tenant =
            store::TenantId::Parse(reader.Required("tenant", "\"local\"").value_or("local"));
        tenant.ok()) {
      peer.tenant = std::move(tenant).value();
    } else {
      reader.Add("tenant", "not a tenant's name", "lower-case letters, digits and -");
    }
    const std::string role = reader.Required("role", "\"agent\"").value_or("agent");
    const std::optional<store::Role> found = store::FindRole(role);
    if (!found) {
      reader.Add("role", "not a role", "agent, approver, operator or auditor");
    }
    peer.role = found.value_or(store::Role::kAgent);
    peer.agent = reader.String("agent").value_or(fmt::format("uid-{}", peer.uid));
    if (!store::IsAgentName(peer.agent)) {
      reader.Add("agent", "not a name", "1 to 128 printable ASCII characters, no spaces");
    }
    config.peers.push_back(std::move(peer));
  }
  if (config.peers.size() > kMostPeers) {
    root.Add("peer", fmt::format("more than {}", kMostPeers),
             "give keys to the users of the other uids");
  }
}

}  // namespace

const PeerConfig* FileConfig::FindPeer(uint32_t uid) const {
  const auto found = std::find_if(peers.begin(), peers.end(),
                                  [&](const PeerConfig& peer) { return peer.uid == uid; });
  return found == peers.end() ? nullptr : &*found;
}

uint64_t StorageRules::Tenant(uint64_t disk) const {
  if (tenant != 0) {
    return tenant;
  }
  return disk == 0 ? kUsualStorage : std::min(kUsualStorage, disk / kDiskShare);
}

uint64_t StorageRules::SessionsTogether(uint64_t disk) const {
  return std::max(Tenant(disk) / 2, kFewSessions * session);
}

const TenantRules& FileConfig::RulesOf(const store::TenantId& tenant) const {
  const auto found = tenants.find(tenant);
  return found == tenants.end() ? general : found->second;
}

store::Quotas FileConfig::QuotasOf(const store::TenantId& tenant) const {
  const TenantRules& rules = RulesOf(tenant);
  store::Quotas quotas;
  quotas.tenant = rules.tenant_rate;
  quotas.agent = rules.agent_rate;
  quotas.tenant_budget = rules.tenant_budget;
  return quotas;
}

ParsedConfig ParseConfigFile(std::string_view text) {
  ParsedConfig parsed;
  const std::variant<TomlNode, policy::Mistake> read = policy::ReadToml(text);
  if (const auto* mistake = std::get_if<policy::Mistake>(&read)) {
    parsed.mistakes.push_back(*mistake);
    return parsed;
  }
  MistakeList mistakes;
  FileConfig config;
  TableReader root(std::get<TomlNode>(read), "",
                   Keys{"quotas", "budgets", "retention", "storage", "breaker", "record", "host",
                        "tenant", "webhook", "otlp", "anomaly", "peer", "ceilings", "egress"},
                   mistakes);
  ReadRules(root, "", config.general, mistakes);
  ReadHost(root, config, mistakes);
  ReadTenants(root, config, mistakes);
  ReadWebhooks(root, config, mistakes);
  ReadOtlp(root, config, mistakes);
  ReadAnomaly(root, config, mistakes);
  ReadPeers(root, config, mistakes);
  ReadCeilings(root, config.ceilings, mistakes);
  ReadEgressConfig(root, config.egress, mistakes);
  parsed.mistakes = mistakes.Take();
  if (parsed.mistakes.empty()) {
    parsed.config = std::move(config);
  }
  return parsed;
}

Result<FileConfig> ReadConfigText(std::string_view text, std::string_view file) {
  ParsedConfig parsed = ParseConfigFile(text);
  if (parsed.mistakes.empty()) {
    return std::move(parsed.config);
  }
  std::string message;
  for (const policy::Mistake& mistake : parsed.mistakes) {
    message += (message.empty() ? "" : "\n") + policy::FormatMistake(file, mistake);
  }
  return Refused("policy.config", std::move(message), "`coffer help config` names every key");
}

Result<FileConfig> LoadConfigFile(const std::string& file, bool may_be_missing) {
  if (file.empty()) {
    return FileConfig{};
  }
  const Result<std::string> text = sys::ReadRegular(file, kMostFileBytes);
  if (!text.ok()) {
    if (may_be_missing && text.error().sys_errno == ENOENT) {
      return FileConfig{};
    }
    return Refused(
        "policy.config", text.error().message,
        "make it readable for the user who runs coffer: its limits hold for every caller");
  }
  return ReadConfigText(*text, file);
}

}  // namespace coffer::call
