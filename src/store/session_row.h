// SPDX-License-Identifier: Apache-2.0
//
// Sessions inside the caller's transaction. Only files of this folder include this header.
#pragma once

#include "store/session.h"
#include "store/sqlite.h"

namespace coffer::store {

Result<std::optional<Session>> FindSessionIn(Connection& db, const TenantId& tenant,
                                             std::string_view id);

}  // namespace coffer::store
