// SPDX-License-Identifier: Apache-2.0
#include "audit/verify_store.h"

#include <fmt/format.h>
#include <time.h>

#include <nlohmann/json.hpp>

#include "audit/seal.h"
#include "base/json.h"
#include "store/call_list.h"

namespace coffer::audit {
namespace {

constexpr Nanos kMoment = std::chrono::seconds(10);  // store::StoreOptions::busy_timeout

LogFinding Finding(std::optional<uint64_t> seq, std::string code, std::string message) {
  LogFinding finding;
  finding.seq = seq;
  finding.code = std::move(code);
  finding.message = std::move(message);
  return finding;
}

}  // namespace

void StoreCheck::Note(const LeafFacts& facts) {
  if (first_at_ == 0) {
    first_at_ = facts.at;
  }
  if (facts.kind == LeafFacts::Kind::kReceipt) {
    receipts_[{std::string(facts.tenant), std::string(facts.call)}] = {std::string(facts.body),
                                                                       facts.seq, facts.at};
  } else if (facts.kind == LeafFacts::Kind::kEvent && facts.name == "pruned") {
    if (const Result<Json> detail = ParseJson(facts.detail); detail.ok() && detail->is_object()) {
      const Json before = detail->value("before", Json(0));
      int64_t& until = pruned_before_[std::string(facts.tenant)];
      until = std::max(until, before.is_number_integer() ? before.get<int64_t>() : 0);
    }
  }
}

Status StoreCheck::CheckCalls(std::vector<LogFinding>& findings) {
  store::PageRequest page;
  page.limit = 1000;
  do {
    TRY_ASSIGN(const store::Page<store::Call> calls,
               store::ListCalls(store_, store::AllTenants{}, {}, page));
    for (const store::Call& call : calls.rows) {
      if (!store::HasEnded(call.state) || call.finished_at.value_or(began_) >= began_) {
        continue;
      }
      const auto logged = receipts_.find({call.tenant.name(), call.id});
      if (logged == receipts_.end()) {
        if (call.requested_at.count() >= first_at_) {
          findings.push_back(Finding(std::nullopt, "store.unlogged",
                                     fmt::format("call {} ended and is not in the log", call.id)));
        }
        continue;
      }
      TRY_ASSIGN(const std::optional<std::string> receipt,
                 store::FindReceipt(store_, call.tenant, call.id));
      if (receipt) {
        const Result<std::string> body = BodyHash(*receipt);
        ++bodies_;
        if (!body.ok() || *body != logged->second.body) {
          findings.push_back(
              Finding(logged->second.seq, "store.receipt",
                      fmt::format("the stored receipt of call {} is not the one that was logged",
                                  call.id)));
        }
        receipts_.erase(logged);
      }
    }
    page.cursor = calls.next;
  } while (!page.cursor.empty());
  return {};
}

Result<bool> StoreCheck::AppearsLater(const std::string& tenant, const std::string& call) {
  TRY_ASSIGN(const store::TenantId id, store::TenantId::Parse(tenant));
  for (int i = 0; i < 20; ++i) {
    TRY_ASSIGN(const std::optional<std::string> receipt, store::FindReceipt(store_, id, call));
    if (receipt) {
      return true;
    }
    const timespec pause{0, 100'000'000};
    ::nanosleep(&pause, nullptr);
  }
  return false;
}

Status StoreCheck::Finish(std::vector<LogFinding>& findings) {
  TRY(CheckCalls(findings));
  // What is left has no receipt in the store any more.
  for (const auto& [call, logged] : receipts_) {
    const auto own = pruned_before_.find(call.first);
    const auto all = pruned_before_.find("");
    const int64_t until = std::max(own == pruned_before_.end() ? 0 : own->second,
                                   all == pruned_before_.end() ? 0 : all->second);
    if (logged.at < until || Nanos(logged.at) >= began_) {
      continue;
    }
    bool appears = false;
    if (Nanos(logged.at) > began_ - kMoment) {
      TRY_ASSIGN(appears, AppearsLater(call.first, call.second));
    }
    if (!appears) {
      findings.push_back(Finding(
          logged.seq, "store.gone",
          fmt::format("the receipt of call {} is gone, and no pruning covers it", call.second)));
    }
  }
  return {};
}

}  // namespace coffer::audit
