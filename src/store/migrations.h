// SPDX-License-Identifier: Apache-2.0
//
// The schema and its history: forward only, all steps in one transaction, so a store has either the
// old schema or the new.
//
// A step that was released is never edited; what changes is a new step at the end. Only files of
// this folder include this.
#pragma once

#include "base/result.h"
#include "store/sqlite.h"

namespace coffer::store {

// Brings an empty database or an older schema up to date. Refuses another program's database and a newer schema.
Status Migrate(Connection& db);

}  // namespace coffer::store
