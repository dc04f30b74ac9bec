// SPDX-License-Identifier: Apache-2.0
//
// The part of the outbox that runs inside the transaction of something else. Only files of this folder include this.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "store/sqlite.h"

namespace coffer::store {

Status PutInOutbox(Connection& db, Nanos now, std::span<const std::string> receivers,
                   std::string_view tenant, std::string_view body);

}  // namespace coffer::store
