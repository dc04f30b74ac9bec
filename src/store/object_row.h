// SPDX-License-Identifier: Apache-2.0
//
// Objects (objects.h) inside the caller's transaction. Only files of this folder include this header.
#pragma once

#include <string_view>

#include "store/core.h"
#include "store/sqlite.h"
#include "store/tenant_id.h"

namespace coffer::store {

// An empty body is none.
Status KeepObject(const Core& core, Connection& db, const TenantId& tenant, std::string_view hash,
                  std::string_view body);
// Those that only calls used which are gone.
Status ForgetUnusedObjects(Connection& db, const TenantId& tenant);

}  // namespace coffer::store
