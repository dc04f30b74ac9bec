// SPDX-License-Identifier: Apache-2.0
#include "store/tenant_id.h"

#include <algorithm>

#include "base/text.h"

namespace coffer::store {

Result<TenantId> TenantId::Parse(std::string_view name) {
  const bool good = !name.empty() && name.size() <= 63 && name.front() != '-' &&
                    std::all_of(name.begin(), name.end(), [](char c) {
                      return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
                    });
  if (!good) {
    return Refused("policy.tenant", "\"" + Printable(name) + "\" is not a tenant's name",
                   "1 to 63 of a-z, 0-9 and '-', not beginning with '-'");
  }
  return TenantId(std::string(name));
}

}  // namespace coffer::store
