// SPDX-License-Identifier: Apache-2.0
//
// Files of a call inside the caller's transaction. Only files of this folder include this header.
#pragma once

#include <string_view>
#include <vector>

#include "store/call_files.h"
#include "store/sqlite.h"

namespace coffer::store {

Status PutCallFile(Connection& db, const TenantId& tenant, std::string_view call_id,
                   std::string_view path, std::string_view bytes);
Status RemoveCallFiles(Connection& db, const TenantId& tenant, std::string_view call_id);
// In the order of their paths; none if there are none, or none any more. Reads and hashes every byte. `tenant` is a name
// as it stands in a row.
Result<std::vector<StoredFile>> HashCallFilesIn(Connection& db, std::string_view tenant,
                                                std::string_view call_id);

}  // namespace coffer::store
