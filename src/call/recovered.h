// SPDX-License-Identifier: Apache-2.0
//
// What is owed to a call whose process died: a receipt that says what is known, and the word that nothing of it is left.
//
// A boundary dies with its supervisor, and the next one sweeps its cgroup, so there is nothing to clean up but the record.
#pragma once

#include <span>

#include "base/result.h"
#include "store/recovery.h"
#include "store/store.h"

namespace coffer::call {

Status SettleRecovered(store::Store& store, std::span<const store::RecoveredCall> calls);

}  // namespace coffer::call
