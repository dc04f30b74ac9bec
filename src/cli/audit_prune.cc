// SPDX-License-Identifier: Apache-2.0
//
// coffer audit prune: forgets what is older than asked, and says what it kept all the same, and why.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/quantity.h"
#include "cli/audit_flags.h"
#include "cli/verb_audit.h"
#include "store/call_list.h"
#include "store/retention.h"
#include "store/tenant.h"

namespace coffer::cli {
namespace {

// Calls that are older than asked and still there.
struct Kept {
  uint64_t running = 0;  // not ended
  uint64_t recent =
      0;  // ended within the time in which a retry with the same key gets the same answer
  uint64_t other = 0;  // their key was used again, or what they left waits for a cleanup
};

Status Count(store::Store& store, const store::TenantId& tenant, Nanos before, Kept& kept) {
  constexpr int kMostPages = 1000;
  store::CallFilter old;
  old.until = before;
  store::PageRequest page{1000, ""};
  for (int i = 0; i < kMostPages; ++i) {
    TRY_ASSIGN(const store::Page<store::Call> calls, store::ListCalls(store, tenant, old, page));
    for (const store::Call& call : calls.rows) {
      if (!call.finished_at) {
        ++kept.running;
      } else if (*call.finished_at > store.Now() - store::kIdempotencyTime) {
        ++kept.recent;
      } else {
        ++kept.other;
      }
    }
    page.cursor = calls.next;
    if (page.cursor.empty()) {
      break;
    }
  }
  return {};
}

std::string SummaryOf(uint64_t forgotten, const Kept& kept) {
  std::string text =
      fmt::format("{} calls were forgotten; the log keeps their hashes\n", forgotten);
  if (kept.recent > 0) {
    text += fmt::format(
        "{} that are older than asked were kept: calls stay for {} hours after they ended, so that "
        "a "
        "retry with the same idempotency key gets the same answer\n",
        kept.recent,
        std::chrono::duration_cast<std::chrono::hours>(store::kIdempotencyTime).count());
  }
  if (kept.running > 0) {
    text += fmt::format("{} were kept because they have not ended\n", kept.running);
  }
  if (kept.other > 0) {
    text += fmt::format(
        "{} were kept because their idempotency key is still remembered, or what they left waits "
        "to be cleaned up\n",
        kept.other);
  }
  return text;
}

}  // namespace

Result<std::string> AuditPrune(const call::VerbFlags& flags, State& state) {
  TRY_ASSIGN(const Nanos age, ParseDuration(flags.Value("--older-than")));
  TRY_ASSIGN(const AuditFilter filter, ReadAuditFilter(flags));
  store::Retention retention;
  retention.calls = retention.transcripts = age;
  TRY_ASSIGN(const std::vector<store::Tenant> tenants,
             store::ListTenants(state.store(), store::AllTenants{}));
  uint64_t calls = 0;
  Kept kept;
  for (const store::Tenant& tenant : tenants) {
    if (filter.tenant && tenant.id != *filter.tenant) {
      continue;
    }
    for (uint64_t gone = 1; gone > 0; calls += gone) {
      TRY_ASSIGN(const store::Pruned pruned, state.recorder().Prune(tenant.id, retention));
      gone = pruned.calls;
    }
    TRY(Count(state.store(), tenant.id, state.store().Now() - age, kept));
  }
  return flags.json()
             ? PrintJson(Json{
                   {"calls", calls},
                   {"kept",
                    {{"recent", kept.recent}, {"running", kept.running}, {"other", kept.other}}}}) +
                   "\n"
             : SummaryOf(calls, kept);
}

}  // namespace coffer::cli
