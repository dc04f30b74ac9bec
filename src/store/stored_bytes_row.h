// SPDX-License-Identifier: Apache-2.0
//
// The sum inside the caller's transaction. Only files of this folder include this header.
#pragma once

#include "store/sqlite.h"
#include "store/tenant.h"

namespace coffer::store {

Result<uint64_t> StoredBytesIn(Connection& db, const TenantId& tenant);

}  // namespace coffer::store
