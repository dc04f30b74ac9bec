// SPDX-License-Identifier: Apache-2.0
//
// Manifests and envelopes in canonical form, by the hash under which receipts name them: what a call was allowed can be
// looked up long after its manifest changed.
//
// An object is written in the transaction that records the decision of a call, once per tenant and hash. It is kept as
// long as calls that name it are. A reader gets a text only if its hash is the name that was asked for, so an edited
// object is not shown. Objects hold paths of the host: they are for operators and auditors, never for agents.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/store.h"
#include "store/tenant.h"

namespace coffer::store {

// Nothing if this tenant made no call with it, or if it was forgotten with its calls. An Error
// (record.broken) if what is stored under the hash has another one.
Result<std::optional<std::string>> FindObject(Store& store, const TenantId& tenant,
                                              std::string_view hash);
Result<std::optional<std::string>> FindObject(Store& store, AllTenants, std::string_view hash);

// An object that is not what calls name.
struct ObjectFault {
  std::string tenant;
  std::string hash;
  std::string call;    // the latest that names it; empty: the object is there, with another hash
  Nanos decided_at{};  // of that call
};
// At most `most` of each kind. Reads every object once: seconds for a large database.
Result<std::vector<ObjectFault>> FindObjectFaults(Store& store, AllTenants, uint32_t most);

}  // namespace coffer::store
