// SPDX-License-Identifier: Apache-2.0
#include "audit/verify_store.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "audit/body_match.h"
#include "base/json.h"
#include "store/call_list.h"

namespace coffer::audit {
namespace {

constexpr Nanos kMoment = std::chrono::seconds(10);  // store::StoreOptions::busy_timeout

constexpr uint32_t kPage = 1000;

// No name of a tenant has a newline.
std::string KeyOf(std::string_view tenant, std::string_view call) {
  std::string key;
  key.reserve(tenant.size() + 1 + call.size());
  return key.append(tenant).append("\n").append(call);
}

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
    Logged& logged = receipts_[KeyOf(facts.tenant, facts.call)];
    logged = {{}, facts.seq, facts.at};
    if (facts.body.size() == logged.body.size()) {
      std::copy(facts.body.begin(), facts.body.end(), logged.body.begin());
    }
  } else if (facts.kind == LeafFacts::Kind::kEvent && facts.name == "pruned") {
    if (const Result<Json> detail = ParseJson(facts.detail); detail.ok() && detail->is_object()) {
      const Json before = detail->value("before", Json(0));
      int64_t& until = pruned_before_[std::string(facts.tenant)];
      until = std::max(until, before.is_number_integer() ? before.get<int64_t>() : 0);
    }
  }
}

struct StoreCheck::Work {
  struct Pair {
    store::EndedCall call;
    Logged logged;
    bool same = false;
  };
  std::vector<Pair> pairs;
  std::atomic<size_t> next = 0;
};

void StoreCheck::Match(Work& work) {
  for (size_t i = work.next++; i < work.pairs.size(); i = work.next++) {
    Work::Pair& pair = work.pairs[i];
    pair.same = HasBody(*pair.call.receipt, pair.logged.words());
  }
}

Status StoreCheck::CheckCalls(std::vector<LogFinding>& findings) {
  std::unique_ptr<Work> work;
  std::thread helper;
  const auto finish = [&] {
    if (work == nullptr) {
      return;
    }
    Match(*work);
    helper.join();
    for (const Work::Pair& pair : work->pairs) {
      ++bodies_;
      if (!pair.same) {
        findings.push_back(
            Finding(pair.logged.seq, "store.receipt",
                    fmt::format("the stored receipt of call {} is not the one that was logged",
                                pair.call.id)));
      }
    }
    work.reset();
  };
  // One page is read while another thread compares the one before.
  store::EndedPlace place;
  for (;;) {
    Result<std::vector<store::EndedCall>> calls =
        store::ListEnded(store_, store::AllTenants{}, place, kPage);
    finish();
    if (!calls.ok()) {
      return calls.error();
    }
    if (calls->empty()) {
      return {};
    }
    place = {calls->back().tenant, calls->back().id};
    work = std::make_unique<Work>();
    for (store::EndedCall& call : *calls) {
      if (call.finished_at >= began_) {
        continue;
      }
      const auto logged = receipts_.find(KeyOf(call.tenant, call.id));
      if (logged == receipts_.end()) {
        if (call.requested_at.count() >= first_at_) {
          findings.push_back(Finding(std::nullopt, "store.unlogged",
                                     fmt::format("call {} ended and is not in the log", call.id)));
        }
      } else if (call.receipt) {
        work->pairs.push_back({std::move(call), logged->second, false});
        receipts_.erase(logged);
      }
    }
    helper = std::thread([this, &held = *work] { Match(held); });
  }
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
  for (const auto& [key, logged] : receipts_) {
    const std::string tenant = key.substr(0, key.find('\n'));
    const std::string call = key.substr(tenant.size() + 1);
    const auto own = pruned_before_.find(tenant);
    const auto all = pruned_before_.find("");
    const int64_t until = std::max(own == pruned_before_.end() ? 0 : own->second,
                                   all == pruned_before_.end() ? 0 : all->second);
    if (logged.at < until || Nanos(logged.at) >= began_) {
      continue;
    }
    bool appears = false;
    if (Nanos(logged.at) > began_ - kMoment) {
      TRY_ASSIGN(appears, AppearsLater(tenant, call));
    }
    if (!appears) {
      findings.push_back(
          Finding(logged.seq, "store.gone",
                  fmt::format("the receipt of call {} is gone, and no pruning covers it", call)));
    }
  }
  return {};
}

}  // namespace coffer::audit
