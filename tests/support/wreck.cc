// SPDX-License-Identifier: Apache-2.0
#include "tests/support/wreck.h"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <filesystem>
#include <set>

namespace coffer::test {
namespace {

namespace fs = std::filesystem;

std::string Column(sqlite3_stmt* row, int column) {
  const unsigned char* const text = ::sqlite3_column_text(row, column);
  return text == nullptr ? "" : reinterpret_cast<const char*>(text);
}

std::vector<LeftCall> ReadStore(const std::string& file) {
  std::vector<LeftCall> calls;
  sqlite3* db = nullptr;
  sqlite3_stmt* rows = nullptr;
  if (::sqlite3_open_v2(file.c_str(), &db, SQLITE_OPEN_READWRITE, nullptr) == SQLITE_OK &&
      ::sqlite3_prepare_v2(db, "SELECT id, idempotency_key, state FROM calls", -1, &rows,
                           nullptr) == SQLITE_OK) {
    while (::sqlite3_step(rows) == SQLITE_ROW) {
      calls.push_back({Column(rows, 0), Column(rows, 1), Column(rows, 2)});
    }
  }
  // A store that was killed while it was made has no tables yet, and so no calls.
  ::sqlite3_finalize(rows);
  ::sqlite3_close(db);
  return calls;
}

}  // namespace

Rung LeftCall::OnDisk() const {
  if (state == "finished" || state == "refused" || state == "unknown") {
    return Rung::kAnswer;
  }
  if (receipt) {
    return Rung::kSeal;
  }
  if (state == "started") {
    return Rung::kLaunch;
  }
  return decision ? Rung::kRecord : Rung::kEvaluate;
}

std::vector<LeftCall> ReadWreck(const std::string& state) {
  // Opening a store is already a part of its recovery, so that is done to a copy.
  TempDir copy;
  std::error_code problem;
  for (const char* name : {"coffer.db", "coffer.db-wal"}) {
    fs::copy_file(state + "/" + name, copy / name, problem);
  }
  if (!Exists(copy / "coffer.db")) {
    return {};
  }
  std::vector<LeftCall> calls = ReadStore(copy / "coffer.db");
  // Only what a checkpoint covers counts: the rest nobody was told about.
  std::set<std::string> decided, sealed, decided_now, sealed_now;
  for (const std::string& line : Lines(ReadFile(state + "/log/records").value_or(""))) {
    if (line.starts_with("=")) {
      decided.merge(decided_now);
      sealed.merge(sealed_now);
      decided_now.clear();
      sealed_now.clear();
    } else if (line.starts_with("{")) {
      const Json record = Json::parse(line, nullptr, /*allow_exceptions=*/false);
      const bool whole = !record.is_discarded() && record.contains("call");
      if (whole && record["kind"] == "decision") {
        decided_now.insert(record["call"]);
      } else if (whole && record["kind"] == "receipt") {
        sealed_now.insert(record["call"]);
      }
    }
  }
  for (LeftCall& call : calls) {
    call.decision = decided.contains(call.id);
    call.receipt = sealed.contains(call.id);
  }
  return calls;
}

std::optional<LeftCall> FindLeft(const std::vector<LeftCall>& wreck, const std::string& key) {
  for (const LeftCall& call : wreck) {
    if (call.key == key) {
      return call;
    }
  }
  return std::nullopt;
}

}  // namespace coffer::test
