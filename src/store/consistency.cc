// SPDX-License-Identifier: Apache-2.0
#include "store/consistency.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.h"
#include "store/core.h"
#include "store/migrations.h"

namespace coffer::store {
namespace {

// Tables, indexes, triggers and views by kind and name, with the text that made them. Without those
// that SQLite makes for itself, which are known by more than their names: who writes the schema
// directly can give any name to a trigger.
using Schema = std::map<std::string, std::string>;

Result<Schema> ReadSchema(Connection& db) {
  Schema schema;
  TRY_ASSIGN(Statement query, db.Query("SELECT type || ' ' || name, sql FROM sqlite_schema "
                                       "WHERE sql IS NOT NULL AND NOT (type = 'table' AND "
                                       "name IN ('sqlite_stat1', 'sqlite_stat4'))"));
  for (;;) {
    TRY_ASSIGN(const bool row, query.Step());
    if (!row) {
      return schema;
    }
    schema.emplace(query.Text(0), query.Text(1));
  }
}

// An index whose text is not ours may hold other rows than we think, and a trigger changes what we write.
Status CompareSchema(Connection& db, std::vector<Inconsistency>& found) {
  TRY_ASSIGN(const std::unique_ptr<Connection> fresh, Connection::OpenInMemory());
  TRY(Migrate(*fresh));
  TRY_ASSIGN(const Schema ours, ReadSchema(*fresh));
  TRY_ASSIGN(const Schema theirs, ReadSchema(db));
  const auto add = [&](const std::string& object, std::string_view what) {
    found.push_back({"store.schema", fmt::format("the {} of the database {}", object, what)});
  };
  for (const auto& [object, sql] : theirs) {
    const auto known = ours.find(object);
    if (known == ours.end()) {
      add(object, "is not one of ours");
    } else if (known->second != sql) {
      add(object, "is not the one that we made");
    }
  }
  for (const auto& [object, sql] : ours) {
    if (!theirs.contains(object)) {
      add(object, "is gone");
    }
  }
  return {};
}

Status CompareIndexes(Connection& db, std::vector<Inconsistency>& found) {
  TRY_ASSIGN(Statement query, db.Query("PRAGMA integrity_check(100)"));
  std::vector<std::string> lines;
  for (;;) {
    TRY_ASSIGN(const bool row, query.Step());
    if (!row) {
      break;
    }
    lines.push_back(query.Text(0));
  }
  if (lines.size() != 1 || lines.front() != "ok") {
    lines.resize(std::min<size_t>(lines.size(), 3));
    found.push_back({"store.index",
                     "the database does not fit together, so lists may leave calls "
                     "out: " +
                         fmt::format("{}", fmt::join(lines, "; "))});
  }
  return {};
}

Status CompareTenants(Connection& db, std::vector<Inconsistency>& found) {
  TRY_ASSIGN(Statement query, db.Query("SELECT DISTINCT tenant FROM calls WHERE tenant NOT IN "
                                       "(SELECT name FROM tenants) LIMIT 100"));
  for (;;) {
    TRY_ASSIGN(const bool row, query.Step());
    if (!row) {
      return {};
    }
    found.push_back({"store.tenant", fmt::format("tenant {} has calls and is not in the database, "
                                                 "so lists leave them out",
                                                 query.Text(0))});
  }
}

}  // namespace

Result<std::vector<Inconsistency>> FindInconsistencies(Store& store, AllTenants /*tag*/) {
  return store.core().Read([](Connection& db) -> Result<std::vector<Inconsistency>> {
    std::vector<Inconsistency> found;
    TRY(CompareSchema(db, found));
    TRY(CompareIndexes(db, found));
    TRY(CompareTenants(db, found));
    return found;
  });
}

}  // namespace coffer::store
