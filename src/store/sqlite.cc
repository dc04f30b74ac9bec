// SPDX-License-Identifier: Apache-2.0
#include "store/sqlite.h"

#include <errno.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <time.h>

#include <algorithm>
#include <limits>

#include "base/sys.h"

namespace coffer::store {
namespace {

Error Host(std::string_view code, std::string message, std::string_view hint, int system_error) {
  return {ErrorKind::kHost, std::string(code), std::move(message), std::string(hint), system_error};
}

// SQLite's answer as something a person can act on.
Error Explain(sqlite3* db, int problem) {
  const int system_error = db != nullptr ? ::sqlite3_system_errno(db) : 0;
  std::string words = db != nullptr ? ::sqlite3_errmsg(db) : ::sqlite3_errstr(problem);
  if (system_error != 0) {
    words += ": " + sys::ErrnoText(system_error);
  }
  const bool full = system_error == ENOSPC || system_error == EDQUOT;
  switch (problem & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return Host("store.busy", "the store is held by another process (" + words + ")",
                  "try again; if it stays, look for a process that hangs with the store open", 0);
    case SQLITE_FULL:
      return Host("store.full", "no space left for the store (" + words + ")",
                  "free space on the file system of the state directory", ENOSPC);
    case SQLITE_IOERR:
      if (full) {
        return Host("store.full", "no space left for the store (" + words + ")",
                    "free space on the file system of the state directory", system_error);
      }
      return Host("store.io", "the store's disk failed (" + words + ")",
                  "look at the kernel's log; nothing runs while decisions cannot be recorded",
                  system_error);
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return Host("store.readonly", "the store cannot be written (" + words + ")",
                  "the state directory and its files must belong to the user that runs this",
                  system_error);
    case SQLITE_CANTOPEN:
      return Host("store.open", "the store cannot be opened (" + words + ")",
                  "check the state directory's path, owner and permissions", system_error);
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return Host("store.corrupt", "the store is damaged (" + words + ")",
                  "restore coffer.db from a backup, or move the state directory away to start anew",
                  0);
    case SQLITE_NOMEM:
      return Host("store.memory", "not enough memory for the store", "", ENOMEM);
    default:
      return Internal("store.sqlite", fmt::format("unexpected answer {}: {}", problem, words));
  }
}

// SQLite counts what it allocates, under one lock for all connections. The count is not used, and a
// thread of low priority that is interrupted while it has that lock would make every other wait. It
// can be set once, before the first connection.
void CountNoMemory() {
  static const int once = ::sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
  (void)once;
}

}  // namespace

struct ConnectionHooks {
  // Short naps instead of SQLite's, which grow to 100 ms: a transaction here takes well under a millisecond.
  static int OnBusy(void* context, int before) {
    auto* self = static_cast<Connection*>(context);
    const Nanos now = BootTime();
    if (before == 0) {
      self->busy_since_ = now;
    }
    if (now - self->busy_since_ > self->busy_timeout_) {
      return 0;
    }
    const long micros = std::min(100L << std::min(before, 5), 2000L);
    const timespec nap{0, micros * 1000};
    ::nanosleep(&nap, nullptr);
    return 1;
  }
  static int OnWal(void* context, sqlite3* /*db*/, const char* /*name*/, int pages) {
    static_cast<Connection*>(context)->wal_pages_ = pages;
    return SQLITE_OK;
  }
};

Statement::Statement(Statement&& other) noexcept
    : db_(other.db_),
      raw_(std::exchange(other.raw_, nullptr)),
      busy_(std::exchange(other.busy_, nullptr)),
      next_(other.next_),
      problem_(other.problem_) {}

Statement::~Statement() {
  if (raw_ == nullptr) {
    return;
  }
  if (busy_ == nullptr) {
    ::sqlite3_finalize(raw_);
    return;
  }
  // A statement that is not reset keeps its transaction open.
  ::sqlite3_reset(raw_);
  ::sqlite3_clear_bindings(raw_);  // a bound receipt should not stay in memory
  *busy_ = false;
}

Statement& Statement::Bind(std::string_view text) {
  const char* bytes = text.data() != nullptr ? text.data() : "";  // a null pointer would be NULL
  const int answer =
      ::sqlite3_bind_text64(raw_, ++next_, bytes, text.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
  problem_ = problem_ != 0 ? problem_ : answer;
  return *this;
}

Statement& Statement::BindBlob(std::string_view bytes) {
  const int answer =
      ::sqlite3_bind_blob64(raw_, ++next_, bytes.data(), bytes.size(), SQLITE_TRANSIENT);
  problem_ = problem_ != 0 ? problem_ : answer;
  return *this;
}

Statement& Statement::Bind(int64_t number) {
  const int answer = ::sqlite3_bind_int64(raw_, ++next_, number);
  problem_ = problem_ != 0 ? problem_ : answer;
  return *this;
}

Statement& Statement::Bind(uint64_t number) {
  constexpr uint64_t kMost = std::numeric_limits<int64_t>::max();
  return Bind(static_cast<int64_t>(std::min(number, kMost)));
}

Statement& Statement::Bind(double number) {
  const int answer = ::sqlite3_bind_double(raw_, ++next_, number);
  problem_ = problem_ != 0 ? problem_ : answer;
  return *this;
}

Statement& Statement::BindNull() {
  const int answer = ::sqlite3_bind_null(raw_, ++next_);
  problem_ = problem_ != 0 ? problem_ : answer;
  return *this;
}

Result<bool> Statement::Step() {
  if (problem_ != 0) {
    return Explain(db_, problem_);
  }
  const int answer = ::sqlite3_step(raw_);
  if (answer == SQLITE_ROW || answer == SQLITE_DONE) {
    return answer == SQLITE_ROW;
  }
  return Explain(db_, answer);
}

Status Statement::Run() {
  for (;;) {
    TRY_ASSIGN(const bool row, Step());
    if (!row) {
      return {};
    }
  }
}

int64_t Statement::Int(int column) const { return ::sqlite3_column_int64(raw_, column); }

double Statement::Real(int column) const { return ::sqlite3_column_double(raw_, column); }

uint64_t Statement::Count(int column) const {
  return static_cast<uint64_t>(std::max<int64_t>(Int(column), 0));
}

std::string Statement::Text(int column) const {
  const void* bytes = ::sqlite3_column_blob(raw_, column);
  const int size = ::sqlite3_column_bytes(raw_, column);
  return bytes == nullptr ? std::string()
                          : std::string(static_cast<const char*>(bytes), static_cast<size_t>(size));
}

bool Statement::IsNull(int column) const {
  return ::sqlite3_column_type(raw_, column) == SQLITE_NULL;
}

std::optional<int> Statement::MaybeInt(int column) const {
  return IsNull(column) ? std::nullopt : std::optional<int>(static_cast<int>(Int(column)));
}

std::optional<Nanos> Statement::MaybeTime(int column) const {
  return IsNull(column) ? std::nullopt : std::optional<Nanos>(Time(column));
}

Result<std::unique_ptr<Connection>> Connection::Open(const std::string& path, Nanos busy_timeout) {
  CountNoMemory();
  std::unique_ptr<Connection> self(new Connection);
  self->busy_timeout_ = busy_timeout;
  // No mutex: core.h has one. The file is there already, made with the right owner and mode.
  // NOFOLLOW refuses a link anywhere in the path, so links above the database are resolved before.
  const size_t slash = path.rfind('/');
  const std::string above = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const std::unique_ptr<char, decltype(&::free)> real(::realpath(above.c_str(), nullptr), &::free);
  const std::string file =
      real == nullptr ? path : std::string(real.get()) + "/" + path.substr(slash + 1);
  const int answer = ::sqlite3_open_v2(
      file.c_str(), &self->db_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW,
      nullptr);
  if (answer != SQLITE_OK) {
    return Explain(self->db_, answer);
  }
  ::sqlite3_extended_result_codes(self->db_, 1);
  ::sqlite3_busy_handler(self->db_, &ConnectionHooks::OnBusy, self.get());
  // Checkpoints happen in Store::Maintain, not in the middle of a call.
  ::sqlite3_wal_hook(self->db_, &ConnectionHooks::OnWal, self.get());
  ::sqlite3_db_config(self->db_, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  // A damaged or hostile file must not do more than fail.
  ::sqlite3_db_config(self->db_, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  ::sqlite3_db_config(self->db_, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  return self;
}

Result<std::unique_ptr<Connection>> Connection::OpenInMemory() {
  CountNoMemory();
  std::unique_ptr<Connection> self(new Connection);
  const int answer =
      ::sqlite3_open_v2(":memory:", &self->db_,
                        SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, nullptr);
  if (answer != SQLITE_OK) {
    return Explain(self->db_, answer);
  }
  return self;
}

Connection::~Connection() {
  for (auto& [sql, kept] : kept_) {
    ::sqlite3_finalize(kept.raw);
  }
  ::sqlite3_close_v2(db_);
}

Result<Statement> Connection::Prepare(const char* sql) {
  Kept& kept = kept_[sql];
  if (kept.raw != nullptr && !kept.busy) {
    kept.busy = true;
    return Statement(db_, kept.raw, &kept.busy);
  }
  sqlite3_stmt* raw = nullptr;
  const int answer = ::sqlite3_prepare_v3(db_, sql, -1, SQLITE_PREPARE_PERSISTENT, &raw, nullptr);
  if (answer != SQLITE_OK) {
    return Explain(db_, answer);
  }
  if (kept.busy) {  // used twice at once: a second one, for this time only
    return Statement(db_, raw, nullptr);
  }
  kept = {raw, true};
  return Statement(db_, raw, &kept.busy);
}

Result<int64_t> Connection::Number(const char* sql) {
  TRY_ASSIGN(Statement statement, Prepare(sql));
  TRY_ASSIGN(const bool row, statement.Step());
  return row ? statement.Int(0) : 0;
}

Status Connection::Script(const std::string& sql) {
  const int answer = ::sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, nullptr);
  if (answer != SQLITE_OK) {
    return Explain(db_, answer);
  }
  return {};
}

Status Connection::ReadAll(const char* check) {
  TRY_ASSIGN(Statement statement, Prepare(check));
  TRY_ASSIGN(const bool row, statement.Step());
  const std::string words = row ? statement.Text(0) : "no answer";
  if (words != "ok") {
    return HostFault("store.corrupt", "the store is damaged (" + words + ")",
                     "stop the daemon, restore the state directory from a backup, start it again");
  }
  return {};
}

int64_t Connection::ReadStart(File which, std::span<char> bytes) const {
  // Through SQLite's own descriptors: closing another one of the database would drop the locks of this process.
  sqlite3_file* file = nullptr;
  const int wanted =
      which == File::kDatabase ? SQLITE_FCNTL_FILE_POINTER : SQLITE_FCNTL_JOURNAL_POINTER;
  sqlite3_int64 size = 0;
  if (::sqlite3_file_control(db_, "main", wanted, static_cast<void*>(&file)) != SQLITE_OK ||
      file == nullptr || file->pMethods == nullptr ||
      file->pMethods->xFileSize(file, &size) != SQLITE_OK) {
    return -1;
  }
  const int64_t there = std::min<int64_t>(size, static_cast<int64_t>(bytes.size()));
  if (there == 0) {
    return 0;
  }
  const int read = file->pMethods->xRead(file, bytes.data(), static_cast<int>(there), 0);
  return read == SQLITE_OK ? there : -1;
}

int64_t Connection::changes() const { return ::sqlite3_changes64(db_); }

bool Connection::in_transaction() const { return ::sqlite3_get_autocommit(db_) == 0; }

Result<bool> Connection::RunCheckpoint(Checkpoint mode) {
  // A connection that has read nothing yet has not opened the log, and would find nothing to move.
  TRY_ASSIGN([[maybe_unused]] const int64_t version, Number("PRAGMA user_version"));
  int how = SQLITE_CHECKPOINT_PASSIVE;
  if (mode == Checkpoint::kRestart) {
    how = SQLITE_CHECKPOINT_RESTART;
  } else if (mode == Checkpoint::kLast) {
    how = SQLITE_CHECKPOINT_TRUNCATE;
    busy_timeout_ = Nanos(-1);
  }
  const int answer = ::sqlite3_wal_checkpoint_v2(db_, nullptr, how, nullptr, nullptr);
  if ((answer & 0xff) == SQLITE_BUSY || (answer & 0xff) == SQLITE_LOCKED) {
    return false;
  }
  if (answer != SQLITE_OK) {
    return Explain(db_, answer);
  }
  return true;
}

Result<Transaction> Transaction::Begin(Connection& db) {
  TRY(db.Run("BEGIN IMMEDIATE"));
  return Transaction(db);
}

Status Transaction::Commit() {
  TRY(db_->Run("COMMIT"));  // on failure the destructor rolls back what SQLite has not
  db_ = nullptr;
  return {};
}

Transaction::~Transaction() {
  if (db_ != nullptr && db_->in_transaction()) {
    (void)db_->Run("ROLLBACK").ok();
  }
}

}  // namespace coffer::store
