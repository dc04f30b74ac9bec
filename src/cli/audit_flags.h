// SPDX-License-Identifier: Apache-2.0
//
// The flags of `coffer audit`, and the filters of its lists.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "call/verb_flags.h"
#include "store/call_list.h"
#include "store/tenant.h"

namespace coffer::cli {

// The filters of `coffer audit list` and `export`, as flags.
struct AuditFilter {
  std::optional<store::TenantId> tenant;  // nothing: all
  store::CallFilter calls;
};
Result<AuditFilter> ReadAuditFilter(const call::VerbFlags& flags);

Result<store::Page<store::Call>> ListFiltered(store::Store& store, const AuditFilter& filter,
                                              const store::PageRequest& page);

// A call by its id, of whatever tenant.
Result<store::Call> FindAnyCall(store::Store& store, const std::string& id);

}  // namespace coffer::cli
