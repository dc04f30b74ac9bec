// SPDX-License-Identifier: Apache-2.0
//
// The files that calls exported, kept as long as their results (store/retention.h) and counted among the bytes that
// a tenant stores.
//
// A file is kept in pieces of kFilePiece bytes, so that neither a reader nor a verifier ever holds
// more than one. What is stored is not trusted: the sealed receipt has each file's path, size and
// hash, and readers compare.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/store.h"
#include "store/tenant.h"

namespace coffer::store {

inline constexpr size_t kFilePiece = 65536;

// A file as the store has it.
struct StoredFile {
  std::string path;
  uint64_t size = 0;
  std::string sha256;  // computed from the stored bytes
  bool operator==(const StoredFile&) const = default;
};

// Reads and hashes every byte. Nothing if there is no such file, or none any more.
Result<std::optional<StoredFile>> HashCallFile(Store& store, const TenantId& tenant,
                                               std::string_view call_id, std::string_view path);
// The paths alone, in order.
Result<std::vector<std::string>> ListCallFiles(Store& store, const TenantId& tenant,
                                               std::string_view call_id);
// The piece at `number * kFilePiece`; nothing if it is not there.
Result<std::optional<std::string>> ReadCallFilePiece(Store& store, const TenantId& tenant,
                                                     std::string_view call_id,
                                                     std::string_view path, uint64_t number);

}  // namespace coffer::store
