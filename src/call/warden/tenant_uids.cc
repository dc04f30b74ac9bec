// SPDX-License-Identifier: Apache-2.0
#include "call/warden/tenant_uids.h"

namespace coffer::call {
namespace {

Result<uint32_t> FirstOf(uint32_t number) {
  if (number == 0 || number > kMostTenants) {
    return Refused("isolation.uid", "there is no range of uids left for this tenant",
                   "a state directory has room for 8064 tenants; begin another one");
  }
  return kFirstTenantUid + (number - 1) * kUidsPerTenant;
}

}  // namespace

Result<isolation::UidRange> UidsOfTenant(uint32_t number) {
  if (number == 0) {
    return isolation::UidRange{};
  }
  TRY_ASSIGN(const uint32_t first, FirstOf(number));
  return isolation::UidRange{first + kWardenUids, kUidsPerTenant - kWardenUids};
}

Result<isolation::UidRange> UidOfTenant(uint32_t number, uint32_t index) {
  if (number == 0) {
    return isolation::UidRange{};
  }
  TRY_ASSIGN(const uint32_t first, FirstOf(number));
  if (index >= kWardenUids) {
    return Internal("isolation.uid", "more boundaries than uids");
  }
  return isolation::UidRange{first + index, 1};
}

}  // namespace coffer::call
