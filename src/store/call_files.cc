// SPDX-License-Identifier: Apache-2.0
#include "store/call_files.h"

#include "base/hash.h"
#include "store/core.h"
#include "store/rows.h"

namespace coffer::store {
namespace {

// The rows are those of one file after the other, each in order: path, body, piece. A file is read by the numbers of its
// pieces: one whose numbers have a gap, or whose pieces are of other lengths, could not be, and gets no hash.
Result<std::vector<StoredFile>> HashRows(Statement& query) {
  std::vector<StoredFile> files;
  std::optional<Sha256> hash;
  int64_t number = 0;  // of the next piece
  bool whole = true;
  const auto finish = [&] {
    if (hash) {
      files.back().sha256 = whole ? hash->Finish() : std::string();
    }
  };
  for (;;) {
    TRY_ASSIGN(const bool row, query.Step());
    if (!row) {
      break;
    }
    const std::string path = query.Text(0);
    if (files.empty() || files.back().path != path) {
      finish();
      hash.emplace();
      files.push_back({path, 0, ""});
      number = 0;
      whole = true;
    }
    const std::string piece = query.Text(1);
    whole = whole && query.Int(2) == number &&
            files.back().size == static_cast<uint64_t>(number) * kFilePiece;
    ++number;
    hash->Update(piece);
    files.back().size += piece.size();
  }
  finish();
  return files;
}

}  // namespace

Status PutCallFile(Connection& db, const TenantId& tenant, std::string_view call_id,
                   std::string_view path, std::string_view bytes) {
  // One that is empty has one piece too: else it would not be there.
  for (size_t at = 0; at == 0 || at < bytes.size(); at += kFilePiece) {
    TRY_ASSIGN(Statement insert,
               db.Query("INSERT INTO call_files (tenant, call_id, path, piece, body) VALUES "
                        "(?, ?, ?, ?, ?)",
                        tenant.name(), call_id, path, static_cast<int64_t>(at / kFilePiece)));
    insert.BindBlob(bytes.substr(at, kFilePiece));
    TRY(insert.Run());
  }
  return {};
}

Status RemoveCallFiles(Connection& db, const TenantId& tenant, std::string_view call_id) {
  return db.Run("DELETE FROM call_files WHERE tenant = ? AND call_id = ?", tenant.name(), call_id);
}

Result<std::vector<StoredFile>> HashCallFilesIn(Connection& db, std::string_view tenant,
                                                std::string_view call_id) {
  TRY_ASSIGN(Statement query,
             db.Query("SELECT path, body, piece FROM call_files WHERE tenant = ? AND call_id = ? "
                      "ORDER BY path, piece",
                      tenant, call_id));
  return HashRows(query);
}

Result<std::optional<StoredFile>> HashCallFile(Store& store, const TenantId& tenant,
                                               std::string_view call_id, std::string_view path) {
  return store.core().Read([&](Connection& db) -> Result<std::optional<StoredFile>> {
    TRY_ASSIGN(Statement query,
               db.Query("SELECT path, body, piece FROM call_files WHERE tenant = ? AND call_id = ? "
                        "AND path = ? ORDER BY piece",
                        tenant.name(), call_id, path));
    TRY_ASSIGN(std::vector<StoredFile> files, HashRows(query));
    return files.empty() ? std::optional<StoredFile>() : std::optional(std::move(files.front()));
  });
}

Result<std::vector<std::string>> ListCallFiles(Store& store, const TenantId& tenant,
                                               std::string_view call_id) {
  return store.core().Read([&](Connection& db) -> Result<std::vector<std::string>> {
    TRY_ASSIGN(Statement query,
               db.Query("SELECT path FROM call_files WHERE tenant = ? AND call_id = ? "
                        "AND piece = 0 ORDER BY path",
                        tenant.name(), call_id));
    std::vector<std::string> paths;
    for (;;) {
      TRY_ASSIGN(const bool row, query.Step());
      if (!row) {
        return paths;
      }
      paths.push_back(query.Text(0));
    }
  });
}

Result<std::optional<std::string>> ReadCallFilePiece(Store& store, const TenantId& tenant,
                                                     std::string_view call_id,
                                                     std::string_view path, uint64_t number) {
  return store.core().Read([&](Connection& db) -> Result<std::optional<std::string>> {
    TRY_ASSIGN(Statement query,
               db.Query("SELECT body FROM call_files WHERE tenant = ? AND call_id = ? "
                        "AND path = ? AND piece = ?",
                        tenant.name(), call_id, path, number));
    TRY_ASSIGN(const bool row, query.Step());
    return row ? std::optional(query.Text(0)) : std::nullopt;
  });
}

}  // namespace coffer::store
