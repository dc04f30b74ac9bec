// SPDX-License-Identifier: Apache-2.0
#include "tests/support/wreck.h"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <cstdio>
#include <filesystem>
#include <set>

namespace coffer::test {
namespace {

namespace fs = std::filesystem;

constexpr size_t kIdLength = 36;

std::string Column(sqlite3_stmt* row, int column) {
  const unsigned char* const text = ::sqlite3_column_text(row, column);
  return text == nullptr ? "" : reinterpret_cast<const char*>(text);
}

std::vector<LeftCall> ReadStore(const std::string& file) {
  std::vector<LeftCall> calls;
  sqlite3* db = nullptr;
  sqlite3_stmt* rows = nullptr;
  // The copy is thrown away, so closing it writes nothing back: that would be most of the time.
  if (::sqlite3_open_v2(file.c_str(), &db, SQLITE_OPEN_READWRITE, nullptr) == SQLITE_OK &&
      ::sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr) == SQLITE_OK &&
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
      // Quotes inside strings are escaped, so this is a member and nothing else. Parsing would take too long here.
      const std::string member = "\"call\":\"";
      const size_t at = line.find(member);
      const std::string id =
          at == std::string::npos ? "" : line.substr(at + member.size(), kIdLength);
      if (Contains(line, "\"kind\":\"decision\"")) {
        decided_now.insert(id);
      } else if (Contains(line, "\"kind\":\"receipt\"")) {
        sealed_now.insert(id);
      }
    }
  }
  for (LeftCall& call : calls) {
    call.decision = decided.contains(call.id);
    call.receipt = sealed.contains(call.id);
  }
  return calls;
}

std::string AgeCall(const std::string& state, const std::string& id, int days) {
  // A UUID of version 7 begins with 48 bits of milliseconds.
  const long long milliseconds = std::stoll(id.substr(0, 8) + id.substr(9, 4), nullptr, 16) -
                                 static_cast<long long>(days) * 24 * 3600 * 1000;
  char begin[16];
  std::snprintf(begin, sizeof(begin), "%012llx", milliseconds);
  const std::string older = std::string(begin, 8) + "-" + std::string(begin + 8, 4) + id.substr(13);
  const std::string nanos = std::to_string(static_cast<long long>(days) * 24 * 3600) + "000000000";
  const std::string set = "'" + older + "' WHERE ", is = " = '" + id + "';";
  const std::string sql = "UPDATE calls SET requested_at = requested_at - " + nanos +
                          ", finished_at = finished_at - " + nanos + ", id = " + set + "id" + is +
                          "UPDATE documents SET call_id = " + set + "call_id" + is +
                          "UPDATE results SET call_id = " + set + "call_id" + is;
  sqlite3* db = nullptr;
  char* problem = nullptr;
  EXPECT_EQ(::sqlite3_open((state + "/coffer.db").c_str(), &db), SQLITE_OK);
  EXPECT_EQ(::sqlite3_exec(db, sql.c_str(), nullptr, nullptr, &problem), SQLITE_OK)
      << (problem == nullptr ? "" : problem);
  ::sqlite3_free(problem);
  ::sqlite3_close(db);
  return older;
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
