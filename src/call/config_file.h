// SPDX-License-Identifier: Apache-2.0
//
// The configuration file: budgets of tenants and agents, retention, users of the unix socket, receivers of events.
// One file for the daemon and for `coffer call` without it.
//
// TOML, strict like a manifest: an unknown key, a wrong type or a value out of range is a mistake with its place, all
// are reported together, and a file with one mistake gives nothing. Everything has a default, so there need be no file.
// [tenant.NAME.*] repeats the general tables for one tenant: what it does not name stays as it is in general. The
// files whose names it holds are not opened here.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "call/breaker.h"
#include "call/config_ceilings.h"
#include "call/config_egress.h"
#include "call/host_budget.h"
#include "egress/receiver_config.h"
#include "policy/manifest/mistake.h"
#include "policy/rate.h"
#include "store/key.h"
#include "store/quota.h"
#include "store/retention.h"

namespace coffer::call {

// How much is kept for a tenant on this host's disk: [storage].
struct StorageRules {
  uint64_t tenant = 0;  // results, receipts and sessions; 0: 8 GiB, or an eighth of a smaller disk
  uint64_t session = 100ULL << 20;  // files of one session

  uint64_t Tenant(uint64_t disk) const;
  // Of that for results and receipts: one half.
  uint64_t Records(uint64_t disk) const { return Tenant(disk) / 2; }
  // Of that for open sessions: one half, but never less than four of them.
  uint64_t SessionsTogether(uint64_t disk) const;
  bool operator==(const StorageRules&) const = default;
};

// What holds for one tenant.
struct TenantRules {
  policy::RateLimits tenant_rate;
  policy::RateLimits agent_rate;  // of each agent of the tenant
  store::Budget tenant_budget;
  store::Budget
      session_budget;  // of every session, and at most this where a session asks for its own
  store::Retention retention;
  StorageRules storage;
  BreakerConfig breaker;          // [breaker]; off where there is none
  bool keeps_transcripts = true;  // record = "full" | "hashes": what its calls run and print
};

// When a measure counts as unusual: [anomaly].
struct AnomalyConfig {
  bool enabled = true;
  Nanos window = std::chrono::hours(24 * 7);
  uint64_t deviations = 2;
  uint64_t rate_factor = 2;
};

// The identity that a uid of this machine has on the unix socket without a key: [[peer]].
struct PeerConfig {
  uint32_t uid = 0;
  store::TenantId tenant = store::TenantId::None();  // made if it is not there yet
  store::Role role = store::Role::kAgent;
  std::string agent;  // the name it acts under
};

struct FileConfig {
  HostLimits host;
  TenantRules general;
  std::map<store::TenantId, TenantRules> tenants;  // complete: general with what is its own
  std::vector<egress::WebhookConfig> webhooks;
  egress::OtlpConfig otlp;
  AnomalyConfig anomaly;
  std::vector<PeerConfig> peers;  // one for each uid
  policy::Limits ceilings = DefaultCeilings();
  EgressFileConfig egress;

  const TenantRules& RulesOf(const store::TenantId& tenant) const;
  // As the ladder asks for them; the tool's own limits and the cooldown are added there.
  store::Quotas QuotasOf(const store::TenantId& tenant) const;
  // Null: no peer has that uid.
  const PeerConfig* FindPeer(uint32_t uid) const;
};

struct ParsedConfig {
  FileConfig config;                      // the defaults if there is a mistake
  std::vector<policy::Mistake> mistakes;  // sorted by position
};

ParsedConfig ParseConfigFile(std::string_view text);

// The same as an Error that names `file` and every mistake, for the start and the log.
Result<FileConfig> ReadConfigText(std::string_view text, std::string_view file);

// The file of a state directory, or another one. One that was not asked for by name need not be there.
Result<FileConfig> LoadConfigFile(const std::string& file, bool may_be_missing);

}  // namespace coffer::call
