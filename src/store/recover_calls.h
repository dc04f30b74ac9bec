// SPDX-License-Identifier: Apache-2.0
//
// The recovery that Store::Open runs. Only files of this folder include this header.
#pragma once

#include <vector>

#include "store/core.h"
#include "store/recovery.h"

namespace coffer::store {

Result<std::vector<RecoveredCall>> RecoverCalls(Core& core);

}  // namespace coffer::store
