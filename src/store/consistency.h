// SPDX-License-Identifier: Apache-2.0
//
// Whether the parts of the database fit each other. Lists search indexes and read the tenants
// first: a call that an index leaves out, or whose tenant is not in its table, is in the database
// and in no list. A reader of the rows does not see that, so `coffer audit verify` asks here too.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "store/tenant.h"

namespace coffer::store {

struct Inconsistency {
  std::string code;  // of docs/AUDIT_LOG.md
  std::string message;
};

// Seconds for a large database.
Result<std::vector<Inconsistency>> FindInconsistencies(Store& store, AllTenants);

}  // namespace coffer::store
