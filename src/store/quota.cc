// SPDX-License-Identifier: Apache-2.0
#include "store/quota.h"

#include <fmt/format.h>

#include <algorithm>

#include "store/core.h"
#include "store/quota_take.h"
#include "store/rate_windows.h"
#include "store/rows.h"

namespace coffer::store {
namespace {

using policy::RateRule;
using policy::SlidingWindow;

// How long a failure makes an identical call a retry.
constexpr Nanos kFailureMemory = std::chrono::hours(24);
// So many identical calls in a row must have failed before the next one has to wait.
constexpr uint64_t kFailuresInARow = 2;
// What a client is told that has to wait for a running call to end.
constexpr Nanos kAskAgain = std::chrono::seconds(1);

Admission OverQuota(AdmitVerdict verdict, std::string_view error_class, std::string reason,
                    Nanos retry_after) {
  Admission admission;
  admission.verdict = verdict;
  admission.error_class = error_class;
  admission.reason = std::move(reason);
  admission.retry_after = retry_after;
  return admission;
}

struct SpentRow {
  Nanos since{0};
  Nanos period{0};
  Spent spent;
};

Result<std::optional<SpentRow>> FindSpent(Connection& db, const TenantId& tenant,
                                          std::string_view scope, std::string_view name) {
  TRY_ASSIGN(Statement query, db.Query("SELECT since, period, calls, retries, cpu, bytes_out "
                                       "FROM spent WHERE tenant = ? AND scope = ? AND name = ?",
                                       tenant.name(), scope, name));
  TRY_ASSIGN(const bool row, query.Step());
  if (!row) {
    return std::optional<SpentRow>();
  }
  return std::optional<SpentRow>({query.Time(0),
                                  query.Time(1),
                                  {query.Count(2), query.Count(3), query.Time(4), query.Count(5)}});
}

bool IsOver(const SpentRow& row, Nanos period, Nanos now) {
  return period > Nanos(0) && now - row.since >= period;
}

// The name of what is spent, or nothing.
std::string_view WhatIsSpent(const Budget& budget, const Spent& spent, bool is_retry) {
  if (budget.calls > 0 && spent.calls >= budget.calls) {
    return "calls";
  }
  if (is_retry && budget.retries > 0 && spent.retries >= budget.retries) {
    return "retries";
  }
  if (budget.cpu > Nanos(0) && spent.cpu >= budget.cpu) {
    return "CPU time";
  }
  if (budget.bytes_out > 0 && spent.bytes_out >= budget.bytes_out) {
    return "bytes of output";
  }
  return {};
}

}  // namespace

Result<std::optional<Admission>> QuotaCheck::Look() {
  for (const auto look : {&QuotaCheck::LookAtRetries, &QuotaCheck::LookAtBudgets,
                          &QuotaCheck::LookAtRates, &QuotaCheck::LookAtConcurrency}) {
    TRY_ASSIGN(std::optional<Admission> no, (this->*look)());
    if (no.has_value()) {
      return no;
    }
  }
  return std::optional<Admission>();
}

Result<std::optional<Admission>> QuotaCheck::LookAtRetries() {
  if (request_.args_hash.empty()) {
    return std::optional<Admission>();
  }
  TRY_ASSIGN(Statement query,
             db_.Query("SELECT f.failed_at, f.times, coalesce(p.at >= f.failed_at, 0) "
                       "FROM failures f LEFT JOIN progress p USING (tenant, agent) "
                       "WHERE tenant = ? AND agent = ? AND tool = ? AND args_hash = ?",
                       request_.identity.tenant.name(), request_.identity.agent,
                       request_.identity.tool, request_.args_hash));
  TRY_ASSIGN(const bool row, query.Step());
  if (!row) {
    return std::optional<Admission>();
  }
  const Nanos ago = now_ - query.Time(0);  // negative if the clock was set back: then it is old
  is_retry_ = ago < kFailureMemory;
  const uint64_t times = query.Count(1);
  const bool progress = query.Int(2) != 0;  // something else succeeded since: the world may differ
  const Nanos cooldown = request_.quotas.retry_cooldown;
  if (!progress && times >= kFailuresInARow && ago >= Nanos(0) && ago < cooldown) {
    return std::optional<Admission>(OverQuota(
        AdmitVerdict::kRetryTooSoon, "policy.retry",
        fmt::format("the same call has just failed {} times in a row, and nothing else succeeded "
                    "in between; change something, or wait",
                    times),
        cooldown - ago));
  }
  return std::optional<Admission>();
}

Result<std::optional<Admission>> QuotaCheck::LookAtBudgets() {
  if (session_.has_value()) {
    const std::string_view what = WhatIsSpent(session_->budget, session_->spent, is_retry_);
    if (!what.empty()) {
      return std::optional<Admission>(
          OverQuota(AdmitVerdict::kBudgetSpent, "policy.budget",
                    fmt::format("the session's budget of {} is spent", what), Nanos(0)));
    }
  }
  // The oldest bodies are removed when the bound is passed (stored_bytes.h). So far beyond it that has not caught up.
  if (const uint64_t most = request_.quotas.stored_bytes; most > 0) {
    TRY_ASSIGN(const uint64_t stored, StoredBytesIn(db_, request_.identity.tenant));
    if (stored > most + most / 4) {
      return std::optional<Admission>(
          OverQuota(AdmitVerdict::kBudgetSpent, "policy.storage",
                    "the tenant's results and receipts take more room than it has", kAskAgain));
    }
  }
  const Budget& budget = request_.quotas.tenant_budget;
  TRY_ASSIGN(const std::optional<SpentRow> row,
             FindSpent(db_, request_.identity.tenant, "tenant", ""));
  if (!row.has_value() || IsOver(*row, budget.period, now_)) {
    return std::optional<Admission>();
  }
  const std::string_view what = WhatIsSpent(budget, row->spent, is_retry_);
  if (what.empty()) {
    return std::optional<Admission>();
  }
  const Nanos left = budget.period > Nanos(0) ? row->since + budget.period - now_ : Nanos(0);
  return std::optional<Admission>(OverQuota(AdmitVerdict::kBudgetSpent, "policy.budget",
                                            fmt::format("the tenant's budget of {} is spent", what),
                                            left));
}

Status QuotaCheck::Load(Gate& gate) {
  TRY_ASSIGN(Statement query, db_.Query("SELECT taken_at, windows FROM rates "
                                        "WHERE tenant = ? AND scope = ? AND name = ?",
                                        request_.identity.tenant.name(), gate.scope, gate.name));
  TRY_ASSIGN(const bool row, query.Step());
  const std::string bytes = row ? query.Text(1) : std::string();
  const Nanos taken_at = row ? query.Time(0) : Nanos(0);
  const auto load = [&](const RateRule& rule) {
    // Taken in the future: the clock was set back, and the window would stand still until then.
    gate.windows.push_back(taken_at > now_ + rule.window ? SlidingWindow(rule)
                                                         : UnpackWindow(bytes, rule));
  };
  for (const RateRule& rule : gate.limits.calls) {
    load(rule);
  }
  if (gate.limits.burst > 0) {
    load({gate.limits.burst, std::chrono::seconds(1)});
    gate.burst_is_last = true;
  }
  return {};
}

Result<std::optional<Admission>> QuotaCheck::LookAtRates() {
  gates_.push_back({"tenant", "", request_.quotas.tenant, {}});
  gates_.push_back({"agent", request_.identity.agent, request_.quotas.agent, {}});
  gates_.push_back({"tool", request_.identity.tool, request_.quotas.tool, {}});
  return LookAtGates();
}

Result<std::optional<Admission>> QuotaCheck::LookAtGates() {
  std::optional<Admission> worst;
  for (Gate& gate : gates_) {
    if (gate.limits.calls.empty() && gate.limits.burst == 0) {
      continue;
    }
    TRY(Load(gate));
    for (size_t i = 0; i < gate.windows.size(); ++i) {
      const Nanos wait = gate.windows[i].WaitAt(now_);
      if (wait > Nanos(0) && (!worst.has_value() || wait > worst->retry_after)) {
        const bool burst = gate.burst_is_last && i + 1 == gate.windows.size();
        const std::string limit = burst ? fmt::format("a burst of {}", gate.limits.burst)
                                        : policy::FormatRate(gate.windows[i].rule());
        worst =
            OverQuota(AdmitVerdict::kRateLimited, "policy.rate",
                      fmt::format("the {}'s rate limit of {} is reached", gate.scope, limit), wait);
      }
    }
  }
  return worst;
}

Result<std::optional<Admission>> QuotaCheck::LookAtConcurrency() {
  const Quotas& quotas = request_.quotas;
  if (quotas.tenant.concurrency + quotas.agent.concurrency + quotas.tool.concurrency == 0) {
    return std::optional<Admission>();
  }
  TRY_ASSIGN(Statement query, db_.Query("SELECT count(*), sum(agent = ?2), sum(tool = ?3) "
                                        "FROM calls INDEXED BY calls_open "
                                        "WHERE tenant = ?1 AND finished_at IS NULL AND waiting = 0 "
                                        "AND cleanup = 0",  // a refusal that is being written
                                        request_.identity.tenant.name(), request_.identity.agent,
                                        request_.identity.tool));
  TRY_ASSIGN([[maybe_unused]] const bool row, query.Step());
  for (size_t i = 0; i < gates_.size(); ++i) {
    const uint64_t most = gates_[i].limits.concurrency;
    if (most > 0 && query.Count(static_cast<int>(i)) >= most) {
      return std::optional<Admission>(OverQuota(
          AdmitVerdict::kRateLimited, "policy.rate",
          fmt::format("the {} already has {} calls running", gates_[i].scope, most), kAskAgain));
    }
  }
  return std::optional<Admission>();
}

Result<std::optional<Admission>> QuotaCheck::Charge() {
  // Names that no agent has: the rates of calls are not touched. The tool's do not count, because it may not exist.
  gates_.push_back({"tenant", "\nrefused", request_.quotas.tenant, {}});
  gates_.push_back({"agent", request_.identity.agent + "\nrefused", request_.quotas.agent, {}});
  TRY_ASSIGN(std::optional<Admission> no, LookAtGates());
  if (!no.has_value()) {
    TRY(TakeRates());
  }
  return no;
}

Result<std::optional<Admission>> QuotaCheck::ChargeInvalid() {
  TRY_ASSIGN(std::optional<Admission> no, LookAtRetries());
  return no.has_value() ? Result<std::optional<Admission>>(std::move(no)) : Charge();
}

Status QuotaCheck::TakeRates() {
  for (Gate& gate : gates_) {
    if (gate.windows.empty()) {
      continue;
    }
    for (SlidingWindow& window : gate.windows) {
      window.Take(now_);
    }
    TRY_ASSIGN(Statement put,
               db_.Query("INSERT INTO rates (tenant, scope, name, taken_at, windows) "
                         "VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET "
                         "taken_at = excluded.taken_at, windows = excluded.windows",
                         request_.identity.tenant.name(), gate.scope, gate.name, now_));
    TRY(put.BindBlob(PackWindows(gate.windows)).Run());
  }
  return {};
}

Status QuotaCheck::Take() {
  TRY(TakeRates());
  // A tenant's period that is over starts anew here; a session has none.
  const Nanos period = request_.quotas.tenant_budget.period;
  TRY(db_.Run(
      "INSERT INTO spent (tenant, scope, name, since, period, calls, retries, cpu, bytes_out) "
      "VALUES (?1, 'tenant', '', ?2, ?3, 1, ?4, 0, 0) ON CONFLICT DO UPDATE SET period = ?3, "
      "since     = iif(?3 > 0 AND ?2 - since >= ?3, ?2, since), "
      "calls     = iif(?3 > 0 AND ?2 - since >= ?3, 0, calls) + 1, "
      "retries   = iif(?3 > 0 AND ?2 - since >= ?3, 0, retries) + ?4, "
      "cpu       = iif(?3 > 0 AND ?2 - since >= ?3, 0, cpu), "
      "bytes_out = iif(?3 > 0 AND ?2 - since >= ?3, 0, bytes_out)",
      request_.identity.tenant.name(), now_, period, static_cast<int>(is_retry_)));
  if (session_.has_value()) {
    TRY(db_.Run(
        "INSERT INTO spent (tenant, scope, name, since, period, calls, retries, cpu, bytes_out) "
        "VALUES (?1, 'session', ?2, ?3, 0, 1, ?4, 0, 0) ON CONFLICT DO UPDATE SET "
        "calls = calls + 1, retries = retries + ?4",
        request_.identity.tenant.name(), session_->id, now_, static_cast<int>(is_retry_)));
  }
  return {};
}

Status AddSpent(Connection& db, const Call& call, Nanos cpu, uint64_t bytes_out) {
  // A call that runs for years must not make the sum wrap.
  return db.Run(
      "UPDATE spent SET cpu = min(cpu + ?3, 4611686018427387904), "
      "bytes_out = min(bytes_out + ?4, 4611686018427387904) "
      "WHERE tenant = ?1 AND ((scope = 'tenant' AND name = '') "
      "OR (scope = 'session' AND name = ?2))",
      call.identity.tenant.name(), call.identity.session_id,
      std::min<Nanos>(std::max(cpu, Nanos(0)), Nanos(1LL << 60)),
      std::min<uint64_t>(bytes_out, 1ULL << 60));
}

Status NoteFailure(Connection& db, const Call& call, Nanos now) {
  if (call.args_hash.empty()) {
    return {};
  }
  return db.Run(
      "INSERT INTO failures (tenant, agent, tool, args_hash, failed_at) VALUES (?1, ?2, ?3, ?4, "
      "?5) "
      "ON CONFLICT DO UPDATE SET failed_at = excluded.failed_at, times = iif(EXISTS (SELECT 1 FROM "
      "progress WHERE tenant = ?1 AND agent = ?2 AND at >= failed_at), 1, times + 1)",
      call.identity.tenant.name(), call.identity.agent, call.identity.tool, call.args_hash, now);
}

Status NoteProgressIn(Connection& db, const TenantId& tenant, std::string_view agent, Nanos now) {
  return db.Run(
      "INSERT INTO progress (tenant, agent, at) VALUES (?, ?, ?) "
      "ON CONFLICT DO UPDATE SET at = excluded.at",
      tenant.name(), agent, now);
}

Status NoteSuccess(Connection& db, const Call& call, Nanos now) {
  TRY(db.Run("DELETE FROM failures WHERE tenant = ? AND agent = ? AND tool = ? AND args_hash = ?",
             call.identity.tenant.name(), call.identity.agent, call.identity.tool, call.args_hash));
  return NoteProgressIn(db, call.identity.tenant, call.identity.agent, now);
}

Status NoteProgress(Store& store, const TenantId& tenant, std::string_view agent) {
  Core& core = store.core();
  return core.Write(Durability::kCommitted, [&](Connection& db) -> Status {
    return NoteProgressIn(db, tenant, agent, core.Now());
  });
}

}  // namespace coffer::store
