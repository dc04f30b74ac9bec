// SPDX-License-Identifier: Apache-2.0
//
// Parents and children: how deep a chain of calls is, and whether it bites its own tail.
//
// Only files of this folder include this header.
#pragma once

#include <optional>
#include <vector>

#include "store/admission.h"
#include "store/sqlite.h"

namespace coffer::store {

// From the call to the one without a parent. Refused if a link is missing.
Result<std::vector<Call>> ChainIn(Connection& db, const TenantId& tenant, std::string_view id);

// Where a call of this parent stands: its depth, or the reason why it may not be.
struct Place {
  uint32_t depth = 0;
  std::optional<Admission> no;
};
Result<Place> FindPlace(Connection& db, const AdmitRequest& request);

}  // namespace coffer::store
