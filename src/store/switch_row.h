// SPDX-License-Identifier: Apache-2.0
//
// Switches inside the caller's transaction. Only files of this folder include this header.
#pragma once

#include "store/sqlite.h"
#include "store/switches.h"

namespace coffer::store {

Result<std::optional<Switch>> FindSwitchIn(Connection& db, const TenantId& tenant,
                                           const SwitchSubject& subject);

}  // namespace coffer::store
