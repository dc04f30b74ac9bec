// SPDX-License-Identifier: Apache-2.0
#include "call/host_budget.h"

#include <fmt/format.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>

#include "base/fair_share.h"

namespace coffer::call {
namespace {

constexpr uint64_t kCallsPerProcessor = 64;
constexpr uint64_t kMostCalls = 256;  // the warden's own limit
constexpr uint64_t kHardlyLess = 512ULL << 20;

uint64_t HostMemory() {
  struct sysinfo info{};
  return ::sysinfo(&info) == 0 ? uint64_t{info.totalram} * info.mem_unit : kHardlyLess;
}

}  // namespace

HostLimits CompleteLimits(HostLimits limits, std::optional<uint64_t> surrounding) {
  if (limits.calls == 0) {
    const long processors = ::sysconf(_SC_NPROCESSORS_ONLN);
    limits.calls = std::min(
        kMostCalls, kCallsPerProcessor * static_cast<uint64_t>(std::max<long>(processors, 1)));
  }
  if (limits.memory == 0) {
    const uint64_t memory = std::min(HostMemory(), surrounding.value_or(UINT64_MAX));
    limits.memory = std::max(memory / 4 * 3, kHardlyLess);
  }
  return limits;
}

void HostBudget::SetLimits(const HostLimits& limits) {
  const std::lock_guard lock(state_->mutex);
  state_->limits = limits;
}

HostBudget::Answer HostBudget::Take(const store::TenantId& tenant, uint64_t memory) {
  const std::lock_guard lock(state_->mutex);
  const HostLimits& most = state_->limits;
  const FairShare calls{most.calls, most.tenant_share, 1};
  const FairShare promised{most.memory, most.tenant_share, 0};
  Use& own = state_->tenants[tenant];
  Use& all = state_->all;
  const uint64_t share = FairShare::PartOf(most.memory, most.tenant_share);
  std::string reason;
  if (memory > most.memory) {
    reason = fmt::format("the call may use {} bytes of memory, and all calls together {}", memory,
                         most.memory);
  } else if (own.calls > 0 && own.calls >= FairShare::PartOf(most.calls, most.tenant_share)) {
    reason = fmt::format("the tenant has {} calls running, its share of this host", own.calls);
  } else if (own.calls > 0 && own.memory + memory > share) {
    reason =
        fmt::format("the tenant's calls may use {} bytes of memory, its share of this host", share);
  } else if (all.calls >= most.calls) {
    reason = fmt::format("this host runs {} calls, as many as it can", all.calls);
  } else if (all.memory + memory > most.memory) {
    reason = "the memory of this host is promised to calls that run";
  } else if (own.calls > 0 && !calls.Leaves(own.calls + 1, all.calls + 1)) {
    reason = fmt::format(
        "the tenant has {} calls running, and the remaining places are reserved for other tenants",
        own.calls);
  } else if (own.calls > 0 && !promised.Leaves(own.memory + memory, all.memory + memory)) {
    reason = "the remaining memory of this host is reserved for other tenants";
  }
  if (!reason.empty()) {
    if (own.calls == 0) {
      state_->tenants.erase(tenant);
    }
    return {nullptr, std::move(reason)};
  }
  for (Use* use : {&own, &all}) {
    ++use->calls;
    use->memory += memory;
  }
  const auto give_back = [state = state_, tenant, memory](const int* seat) {
    delete seat;
    const std::lock_guard again(state->mutex);
    const auto found = state->tenants.find(tenant);
    for (Use* use : {&found->second, &state->all}) {
      --use->calls;
      use->memory -= memory;
    }
    if (found->second.calls == 0) {
      state->tenants.erase(found);
    }
  };
  return {std::shared_ptr<const int>(new int(0), give_back), ""};
}

}  // namespace coffer::call
