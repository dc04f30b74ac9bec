// SPDX-License-Identifier: Apache-2.0
#include "call/host_budget.h"

#include <fmt/format.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>

#include "base/sys.h"

namespace coffer::call {
namespace {

constexpr uint64_t kCallsPerProcessor = 64;
constexpr uint64_t kMostCalls = 256;  // the warden's own limit
constexpr uint64_t kLastPart = 8;     // of the whole: only for tenants that have no place
constexpr uint64_t kHardlyLess = 512ULL << 20;

// The smaller of the host's memory and what the file of a cgroup allows, if there is one and it says a number.
uint64_t HostMemory() {
  struct sysinfo info{};
  uint64_t memory = ::sysinfo(&info) == 0 ? uint64_t{info.totalram} * info.mem_unit : kHardlyLess;
  for (const char* path :
       {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    const Result<std::string> text = sys::ReadFile(path, 64);
    const uint64_t said = text.ok() ? std::strtoull(text->c_str(), nullptr, 10) : 0;
    if (said > 0) {
      memory = std::min(memory, said);
    }
  }
  return memory;
}

}  // namespace

HostLimits CompleteLimits(HostLimits limits) {
  if (limits.calls == 0) {
    const long processors = ::sysconf(_SC_NPROCESSORS_ONLN);
    limits.calls = std::min(
        kMostCalls, kCallsPerProcessor * static_cast<uint64_t>(std::max<long>(processors, 1)));
  }
  if (limits.memory == 0) {
    limits.memory = std::max(HostMemory() / 4 * 3, kHardlyLess);
  }
  return limits;
}

void HostBudget::SetLimits(const HostLimits& limits) {
  const std::lock_guard lock(state_->mutex);
  state_->limits = limits;
}

namespace {

// `percent` of `all`, without running over.
uint64_t PartOf(uint64_t all, uint64_t percent) {
  return all / 100 * percent + all % 100 * percent / 100;
}

// Whether a tenant that has a place already leaves enough of `most` if it takes more: of what others do not use it has at most
// its share, and the last part is not for it. `own` and `all` count what it asks for.
bool LeavesEnough(uint64_t own, uint64_t all, uint64_t most, uint64_t percent, uint64_t one) {
  const uint64_t share = PartOf(most, percent);
  const uint64_t last = std::min(std::max(most / kLastPart, one), most - share);
  if (all > most || most - all < last) {
    return false;
  }
  return own <= PartOf(most - (all - own), percent);
}

}  // namespace

HostBudget::Answer HostBudget::Take(const store::TenantId& tenant, uint64_t memory) {
  const std::lock_guard lock(state_->mutex);
  const HostLimits& most = state_->limits;
  const uint64_t percent = most.tenant_share;
  Use& own = state_->tenants[tenant];
  Use& all = state_->all;
  std::string reason;
  if (memory > most.memory) {
    reason = fmt::format("the call may use {} bytes of memory, and all calls together {}", memory,
                         most.memory);
  } else if (own.calls > 0 && own.calls >= PartOf(most.calls, percent)) {
    reason = fmt::format("the tenant has {} calls running, its share of this host", own.calls);
  } else if (own.calls > 0 && own.memory + memory > PartOf(most.memory, percent)) {
    reason = fmt::format("the tenant's calls may use {} bytes of memory, its share of this host",
                         PartOf(most.memory, percent));
  } else if (all.calls >= most.calls) {
    reason = fmt::format("this host runs {} calls, as many as it can", all.calls);
  } else if (all.memory + memory > most.memory) {
    reason = "the memory of this host is promised to calls that run";
  } else if (own.calls > 0 && !LeavesEnough(own.calls + 1, all.calls + 1, most.calls, percent, 1)) {
    reason = fmt::format(
        "the tenant has {} calls running, and what is left of this host is for other tenants",
        own.calls);
  } else if (own.calls > 0 &&
             !LeavesEnough(own.memory + memory, all.memory + memory, most.memory, percent, 0)) {
    reason = "what is left of this host's memory is for other tenants";
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
