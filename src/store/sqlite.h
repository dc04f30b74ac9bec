// SPDX-License-Identifier: Apache-2.0
//
// The little of SQLite that the store needs, as owners and Results: a connection, a statement, a transaction.
//
// SQL is always a literal and values are always bound, so nothing that came from outside becomes SQL. Statements are
// prepared once and kept by the address of their literal. A failure is an Error that a person can act on (disk full,
// read-only, corrupt, busy); SQLite's own words are in it. Not thread-safe: core.h puts a lock around a connection.
// Only files of this folder include this header.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace coffer::store {

// A statement that is being used. Goes back to its connection when it is destroyed, reset.
class Statement {
 public:
  Statement(sqlite3* db, sqlite3_stmt* raw, bool* busy) : db_(db), raw_(raw), busy_(busy) {}
  Statement(Statement&& other) noexcept;
  Statement& operator=(Statement&&) = delete;
  ~Statement();

  // The next parameter. A failure (memory, size) is kept and comes out of Step.
  Statement& Bind(std::string_view text);
  Statement& Bind(int64_t number);
  Statement& BindNull();
  Statement& Bind(const std::string& text) { return Bind(std::string_view(text)); }
  Statement& Bind(const char* text) { return Bind(std::string_view(text)); }
  Statement& Bind(int number) { return Bind(static_cast<int64_t>(number)); }
  Statement& Bind(Nanos time) { return Bind(static_cast<int64_t>(time.count())); }
  Statement& Bind(uint64_t number);  // beyond int64 becomes the largest int64
  Statement& Bind(double number);
  Statement& BindBlob(std::string_view bytes);
  template <typename T>
  Statement& Bind(const std::optional<T>& value) {
    return value.has_value() ? Bind(*value) : BindNull();
  }

  // True: there is a row.
  Result<bool> Step();
  // For statements without rows.
  Status Run();

  int64_t Int(int column) const;
  uint64_t Count(int column) const;  // never negative
  double Real(int column) const;
  Nanos Time(int column) const { return Nanos(Int(column)); }
  std::string Text(int column) const;  // also a blob; empty for NULL
  bool IsNull(int column) const;
  std::optional<int> MaybeInt(int column) const;
  std::optional<Nanos> MaybeTime(int column) const;

 private:
  sqlite3* db_;
  sqlite3_stmt* raw_;
  bool* busy_;  // of the connection's keeping; null: finalize
  int next_ = 0;
  int problem_ = 0;
};

class Connection {
 public:
  // The file must exist. `busy_timeout` bounds how long any statement waits for another process.
  static Result<std::unique_ptr<Connection>> Open(const std::string& path, Nanos busy_timeout);
  // An empty database of its own, without a file.
  static Result<std::unique_ptr<Connection>> OpenInMemory();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection();

  // `sql` is a literal: its address is the key of the cache.
  Result<Statement> Prepare(const char* sql);
  // Prepares and binds all values, in order.
  template <typename... Values>
  Result<Statement> Query(const char* sql, const Values&... values) {
    Result<Statement> statement = Prepare(sql);
    if (statement.ok()) {
      (statement->Bind(values), ...);
    }
    return statement;
  }
  // Query and Run.
  template <typename... Values>
  Status Run(const char* sql, const Values&... values) {
    TRY_ASSIGN(Statement statement, Query(sql, values...));
    return statement.Run();
  }
  // One integer of one row.
  Result<int64_t> Number(const char* sql);
  // Several statements, not cached, without values: migrations and pragmas.
  Status Script(const std::string& sql);

  // One of SQLite's own checks of everything; an Error (store.corrupt) says what it found.
  Status ReadAll(const char* check);
  // How many of the first bytes of a file there are, as it is now and not as it is in memory; -1: it could not be read.
  enum class File : uint8_t { kDatabase, kWal };
  int64_t ReadStart(File file, std::span<char> bytes) const;

  int64_t changes() const;  // rows that the last statement changed
  bool in_transaction() const;
  int wal_pages() const { return wal_pages_; }  // as of our last commit

  enum class Checkpoint : uint8_t {
    kPassive,  // never waits
    kRestart,  // waits for writers and readers, so that the file starts anew
    kLast,  // of a connection that is about to close: empties the file unless another connection uses it
  };
  // False: another connection was in the way; nothing is lost by that.
  Result<bool> RunCheckpoint(Checkpoint mode);

 private:
  struct Kept {
    sqlite3_stmt* raw = nullptr;
    bool busy = false;
  };
  Connection() = default;

  sqlite3* db_ = nullptr;
  std::map<const char*, Kept> kept_;
  Nanos busy_timeout_{0};
  Nanos busy_since_{0};
  int wal_pages_ = 0;
  friend struct ConnectionHooks;
};

// Rolled back unless committed.
class Transaction {
 public:
  // One that has begun.
  explicit Transaction(Connection& db) : db_(&db) {}
  // Takes the write lock at once (BEGIN IMMEDIATE): what is read is still true when it is written.
  static Result<Transaction> Begin(Connection& db);
  Transaction(Transaction&& other) noexcept : db_(std::exchange(other.db_, nullptr)) {}
  Transaction& operator=(Transaction&&) = delete;
  ~Transaction();
  Status Commit();

 private:
  Connection* db_;
};

}  // namespace coffer::store
