// SPDX-License-Identifier: Apache-2.0
#include "store/migrations.h"

#include <fmt/format.h>

#include <iterator>

namespace coffer::store {
namespace {

constexpr int64_t kApplicationId = 0x434f4652;  // "COFR"

// Times are nanoseconds since 1970. Everything that belongs to a tenant has the tenant first in its
// key, so a query of one tenant cannot reach the rows of another, and reads neighbouring pages.
// Calls and sessions sort by time, because their ids do.
constexpr const char* kSteps[] = {
    // 1
    R"sql(
CREATE TABLE tenants (
  number      INTEGER PRIMARY KEY AUTOINCREMENT,
  name        TEXT NOT NULL UNIQUE,
  created_at  INTEGER NOT NULL
) STRICT;

CREATE TABLE api_keys (
  id            TEXT PRIMARY KEY,
  tenant        TEXT NOT NULL,
  role          TEXT NOT NULL CHECK (role IN ('agent', 'approver', 'operator', 'auditor')),
  agent         TEXT NOT NULL,
  salt          TEXT NOT NULL,
  hash          TEXT NOT NULL,
  created_at    INTEGER NOT NULL,
  expires_at    INTEGER,
  revoked_at    INTEGER,
  last_used_at  INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX api_keys_of_tenant ON api_keys (tenant, id);

CREATE TABLE sessions (
  tenant      TEXT NOT NULL,
  id          TEXT NOT NULL,
  agent       TEXT NOT NULL,
  created_at  INTEGER NOT NULL,
  ends_at     INTEGER NOT NULL,
  ended_at    INTEGER,
  end_reason  TEXT,
  workspace   TEXT NOT NULL,
  most_calls      INTEGER NOT NULL,
  most_retries    INTEGER NOT NULL,
  most_cpu        INTEGER NOT NULL,
  most_bytes_out  INTEGER NOT NULL,
  PRIMARY KEY (tenant, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX sessions_open ON sessions (ends_at) WHERE ended_at IS NULL;

CREATE TABLE calls (
  tenant         TEXT NOT NULL,
  id             TEXT NOT NULL,
  state          TEXT NOT NULL CHECK (state IN
                   ('admitted', 'gated', 'recorded', 'started', 'finished', 'refused', 'unknown')),
  owner          INTEGER NOT NULL,
  parent_id      TEXT NOT NULL,
  session_id     TEXT NOT NULL,
  depth          INTEGER NOT NULL,
  agent          TEXT NOT NULL,
  user           TEXT NOT NULL,
  tool           TEXT NOT NULL,
  args_hash      TEXT NOT NULL,
  idempotency_key  TEXT NOT NULL,
  requested_at   INTEGER NOT NULL,
  waiting        INTEGER NOT NULL DEFAULT 0,
  tool_version   TEXT,
  manifest_hash  TEXT,
  envelope_id    TEXT,
  effect         TEXT,
  decided_at     INTEGER,
  started_at     INTEGER,
  supervisor_pid    INTEGER,
  supervisor_start  INTEGER,
  supervisor_boot   TEXT,
  finished_at    INTEGER,
  outcome        TEXT CHECK (outcome IN ('success', 'error', 'denied', 'terminated', 'unknown')),
  error_class    TEXT,
  error_message  TEXT,
  exit_code      INTEGER,
  exit_signal    INTEGER,
  cpu            INTEGER NOT NULL DEFAULT 0,
  bytes_out      INTEGER NOT NULL DEFAULT 0,
  cleanup        INTEGER NOT NULL DEFAULT 0,
  CHECK ((finished_at IS NULL) = (state IN ('admitted', 'gated', 'recorded', 'started'))),
  CHECK ((outcome IS NULL) = (finished_at IS NULL)),
  CHECK ((started_at IS NULL) = (state NOT IN ('started', 'finished', 'unknown'))),
  CHECK (waiting = (state = 'gated')),
  PRIMARY KEY (tenant, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX calls_open ON calls (tenant, tool, agent, waiting) WHERE finished_at IS NULL;
CREATE INDEX calls_cleanup ON calls (owner) WHERE cleanup = 1;

CREATE TABLE documents (
  tenant   TEXT NOT NULL,
  call_id  TEXT NOT NULL,
  kind     TEXT NOT NULL CHECK (kind IN ('args', 'receipt')),
  body     TEXT NOT NULL,
  PRIMARY KEY (tenant, call_id, kind)
) STRICT, WITHOUT ROWID;

CREATE TABLE results (
  tenant   TEXT NOT NULL,
  call_id  TEXT NOT NULL,
  body     TEXT NOT NULL,
  PRIMARY KEY (tenant, call_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE idempotency (
  tenant        TEXT NOT NULL,
  key           TEXT NOT NULL,
  request_hash  TEXT NOT NULL,
  call_id       TEXT NOT NULL,
  created_at    INTEGER NOT NULL,
  PRIMARY KEY (tenant, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_by_time ON idempotency (tenant, created_at);

CREATE TABLE rates (
  tenant    TEXT NOT NULL,
  scope     TEXT NOT NULL CHECK (scope IN ('tenant', 'agent', 'tool')),
  name      TEXT NOT NULL,
  taken_at  INTEGER NOT NULL,
  windows   BLOB NOT NULL,
  PRIMARY KEY (tenant, scope, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE spent (
  tenant     TEXT NOT NULL,
  scope      TEXT NOT NULL CHECK (scope IN ('tenant', 'session')),
  name       TEXT NOT NULL,
  since      INTEGER NOT NULL,
  period     INTEGER NOT NULL,
  calls      INTEGER NOT NULL,
  retries    INTEGER NOT NULL,
  cpu        INTEGER NOT NULL,
  bytes_out  INTEGER NOT NULL,
  PRIMARY KEY (tenant, scope, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE failures (
  tenant     TEXT NOT NULL,
  agent      TEXT NOT NULL,
  tool       TEXT NOT NULL,
  args_hash  TEXT NOT NULL,
  failed_at  INTEGER NOT NULL,
  PRIMARY KEY (tenant, agent, tool, args_hash)
) STRICT, WITHOUT ROWID;

CREATE TABLE switches (
  tenant  TEXT NOT NULL,
  kind    TEXT NOT NULL CHECK (kind IN ('tool', 'agent', 'session', 'tenant', 'disabled-tool')),
  name    TEXT NOT NULL,
  is_on   INTEGER NOT NULL,
  who     TEXT NOT NULL,
  why     TEXT NOT NULL,
  at      INTEGER NOT NULL,
  PRIMARY KEY (tenant, kind, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE facts (
  name   TEXT PRIMARY KEY,
  value  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO facts VALUES ('switch_generation', 0), ('first_key_made', 0);
)sql",
    // 2: the record: what an auditor filters by, who may see more than one tenant, what still has to be sent
    R"sql(
ALTER TABLE api_keys ADD COLUMN all_tenants INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN label TEXT NOT NULL DEFAULT '';

ALTER TABLE calls ADD COLUMN trace_id TEXT NOT NULL DEFAULT '';
ALTER TABLE calls ADD COLUMN denials INTEGER NOT NULL DEFAULT 0;
ALTER TABLE calls ADD COLUMN approval TEXT NOT NULL DEFAULT '';
ALTER TABLE calls ADD COLUMN log_index INTEGER;
CREATE INDEX calls_by_tool ON calls (tenant, tool, id);
CREATE INDEX calls_by_outcome ON calls (tenant, outcome, id);
CREATE INDEX calls_by_error ON calls (tenant, error_class, id) WHERE error_class IS NOT NULL;
CREATE INDEX calls_by_denial ON calls (tenant, id) WHERE denials > 0;
CREATE INDEX calls_by_approval ON calls (tenant, approval, id) WHERE approval <> '';
CREATE INDEX calls_by_parent ON calls (tenant, parent_id) WHERE parent_id <> '';
CREATE INDEX calls_by_session ON calls (tenant, session_id, id) WHERE session_id <> '';
CREATE INDEX calls_by_agent ON calls (tenant, agent, id);
CREATE INDEX calls_by_trace ON calls (tenant, trace_id) WHERE trace_id <> '';

CREATE TABLE outbox (
  id          INTEGER PRIMARY KEY AUTOINCREMENT,
  target      TEXT NOT NULL,
  tenant      TEXT NOT NULL,
  body        TEXT NOT NULL,
  created_at  INTEGER NOT NULL,
  next_at     INTEGER NOT NULL,
  attempts    INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX outbox_due ON outbox (target, next_at);

CREATE TABLE baselines (
  tenant   TEXT NOT NULL,
  tool     TEXT NOT NULL,
  measure  TEXT NOT NULL,
  hour     INTEGER NOT NULL,
  samples  INTEGER NOT NULL,
  total    REAL NOT NULL,
  squares  REAL NOT NULL,
  PRIMARY KEY (tenant, tool, measure, hour)
) STRICT, WITHOUT ROWID;
)sql",
    // 3: whom the daemon tells, for those who leave something for it to send
    R"sql(
CREATE TABLE receivers (
  name    TEXT PRIMARY KEY,
  events  TEXT NOT NULL
) STRICT, WITHOUT ROWID;
)sql",
    // 4: what a key is for, in its maker's words
    R"sql(
ALTER TABLE api_keys ADD COLUMN label TEXT NOT NULL DEFAULT '';
)sql",
    // 5: calls in the order of their receipts in the log, for a verifier that reads both side by side
    R"sql(
CREATE INDEX calls_by_log ON calls (log_index) WHERE finished_at IS NOT NULL;
)sql",
    // 6: calls that go on after their key was revoked; how large a session may grow, and whether the kernel sees to it;
    // the bytes of results and documents of each tenant, kept by triggers so that no statement can forget them
    R"sql(
ALTER TABLE api_keys ADD COLUMN keep_running INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN most_bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN enforced INTEGER NOT NULL DEFAULT 0;

CREATE TABLE stored (
  tenant  TEXT PRIMARY KEY,
  bytes   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO stored SELECT tenant, sum(bytes) FROM (
  SELECT tenant, length(CAST(body AS BLOB)) AS bytes FROM results UNION ALL
  SELECT tenant, length(CAST(body AS BLOB)) FROM documents) GROUP BY tenant;

CREATE TRIGGER result_added AFTER INSERT ON results BEGIN
  INSERT INTO stored VALUES (NEW.tenant, length(CAST(NEW.body AS BLOB)))
    ON CONFLICT (tenant) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER result_changed AFTER UPDATE OF body ON results BEGIN
  UPDATE stored SET bytes = bytes + length(CAST(NEW.body AS BLOB)) - length(CAST(OLD.body AS BLOB))
    WHERE tenant = NEW.tenant;
END;
CREATE TRIGGER result_removed AFTER DELETE ON results BEGIN
  UPDATE stored SET bytes = bytes - length(CAST(OLD.body AS BLOB)) WHERE tenant = OLD.tenant;
END;
CREATE TRIGGER document_added AFTER INSERT ON documents BEGIN
  INSERT INTO stored VALUES (NEW.tenant, length(CAST(NEW.body AS BLOB)))
    ON CONFLICT (tenant) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER document_changed AFTER UPDATE OF body ON documents BEGIN
  UPDATE stored SET bytes = bytes + length(CAST(NEW.body AS BLOB)) - length(CAST(OLD.body AS BLOB))
    WHERE tenant = NEW.tenant;
END;
CREATE TRIGGER document_removed AFTER DELETE ON documents BEGIN
  UPDATE stored SET bytes = bytes - length(CAST(OLD.body AS BLOB)) WHERE tenant = OLD.tenant;
END;
)sql",
    // 7: what the store's clock goes by since the last start of the host (store_clock.h)
    R"sql(
CREATE TABLE clock (
  only    INTEGER PRIMARY KEY CHECK (only = 1),
  boot    TEXT NOT NULL,
  uptime  INTEGER NOT NULL,
  time    INTEGER NOT NULL
) STRICT;
)sql",
    // 8: how often in a row an identical call failed, and when its agent last got something done
    R"sql(
ALTER TABLE failures ADD COLUMN times INTEGER NOT NULL DEFAULT 1;
CREATE TABLE progress (
  tenant  TEXT NOT NULL,
  agent   TEXT NOT NULL,
  at      INTEGER NOT NULL,
  PRIMARY KEY (tenant, agent)
) STRICT, WITHOUT ROWID;
)sql",
    // 9: what the agent said that a call is for; what ran and what it printed; what it was allowed
    R"sql(
ALTER TABLE calls ADD COLUMN reason TEXT NOT NULL DEFAULT '';

CREATE TABLE transcripts (
  tenant   TEXT NOT NULL,
  call_id  TEXT NOT NULL,
  body     TEXT NOT NULL,
  PRIMARY KEY (tenant, call_id)
) STRICT, WITHOUT ROWID;
CREATE TABLE objects (
  tenant   TEXT NOT NULL,
  hash     TEXT NOT NULL,
  body     TEXT NOT NULL,
  seen_at  INTEGER NOT NULL,
  PRIMARY KEY (tenant, hash)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER transcript_added AFTER INSERT ON transcripts BEGIN
  INSERT INTO stored VALUES (NEW.tenant, length(CAST(NEW.body AS BLOB)))
    ON CONFLICT (tenant) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER transcript_changed AFTER UPDATE OF body ON transcripts BEGIN
  UPDATE stored SET bytes = bytes + length(CAST(NEW.body AS BLOB)) - length(CAST(OLD.body AS BLOB))
    WHERE tenant = NEW.tenant;
END;
CREATE TRIGGER transcript_removed AFTER DELETE ON transcripts BEGIN
  UPDATE stored SET bytes = bytes - length(CAST(OLD.body AS BLOB)) WHERE tenant = OLD.tenant;
END;
CREATE TRIGGER object_added AFTER INSERT ON objects BEGIN
  INSERT INTO stored VALUES (NEW.tenant, length(CAST(NEW.body AS BLOB)))
    ON CONFLICT (tenant) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER object_removed AFTER DELETE ON objects BEGIN
  UPDATE stored SET bytes = bytes - length(CAST(OLD.body AS BLOB)) WHERE tenant = OLD.tenant;
END;
)sql",
    // 10: the files that a call exported, in pieces
    R"sql(
CREATE TABLE call_files (
  tenant   TEXT NOT NULL,
  call_id  TEXT NOT NULL,
  path     TEXT NOT NULL,
  piece    INTEGER NOT NULL,
  body     BLOB NOT NULL,
  PRIMARY KEY (tenant, call_id, path, piece)
) STRICT;

CREATE TRIGGER call_file_added AFTER INSERT ON call_files BEGIN
  INSERT INTO stored VALUES (NEW.tenant, length(NEW.body))
    ON CONFLICT (tenant) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER call_file_changed AFTER UPDATE OF body ON call_files BEGIN
  UPDATE stored SET bytes = bytes + length(NEW.body) - length(OLD.body) WHERE tenant = NEW.tenant;
END;
CREATE TRIGGER call_file_removed AFTER DELETE ON call_files BEGIN
  UPDATE stored SET bytes = bytes - length(OLD.body) WHERE tenant = OLD.tenant;
END;
)sql",
    // 11: bodies lie beside the keys, not in them. In a table WITHOUT ROWID a search reads the
    // whole body of each row that it compares with, so that one tenant's large results slowed every
    // other tenant's look-ups
    R"sql(
CREATE TABLE results_with_rowid (
  tenant   TEXT NOT NULL,
  call_id  TEXT NOT NULL,
  body     TEXT NOT NULL,
  PRIMARY KEY (tenant, call_id)
) STRICT;
INSERT INTO results_with_rowid (tenant, call_id, body) SELECT tenant, call_id, body FROM results;
DROP TABLE results;
ALTER TABLE results_with_rowid RENAME TO results;
CREATE TRIGGER result_added AFTER INSERT ON results BEGIN
  INSERT INTO stored VALUES (NEW.tenant, length(CAST(NEW.body AS BLOB)))
    ON CONFLICT (tenant) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER result_changed AFTER UPDATE OF body ON results BEGIN
  UPDATE stored SET bytes = bytes + length(CAST(NEW.body AS BLOB)) - length(CAST(OLD.body AS BLOB))
    WHERE tenant = NEW.tenant;
END;
CREATE TRIGGER result_removed AFTER DELETE ON results BEGIN
  UPDATE stored SET bytes = bytes - length(CAST(OLD.body AS BLOB)) WHERE tenant = OLD.tenant;
END;

CREATE TABLE documents_with_rowid (
  tenant   TEXT NOT NULL,
  call_id  TEXT NOT NULL,
  kind     TEXT NOT NULL CHECK (kind IN ('args', 'receipt')),
  body     TEXT NOT NULL,
  PRIMARY KEY (tenant, call_id, kind)
) STRICT;
INSERT INTO documents_with_rowid (tenant, call_id, kind, body) SELECT tenant, call_id, kind, body FROM documents;
DROP TABLE documents;
ALTER TABLE documents_with_rowid RENAME TO documents;
CREATE TRIGGER document_added AFTER INSERT ON documents BEGIN
  INSERT INTO stored VALUES (NEW.tenant, length(CAST(NEW.body AS BLOB)))
    ON CONFLICT (tenant) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER document_changed AFTER UPDATE OF body ON documents BEGIN
  UPDATE stored SET bytes = bytes + length(CAST(NEW.body AS BLOB)) - length(CAST(OLD.body AS BLOB))
    WHERE tenant = NEW.tenant;
END;
CREATE TRIGGER document_removed AFTER DELETE ON documents BEGIN
  UPDATE stored SET bytes = bytes - length(CAST(OLD.body AS BLOB)) WHERE tenant = OLD.tenant;
END;

CREATE TABLE transcripts_with_rowid (
  tenant   TEXT NOT NULL,
  call_id  TEXT NOT NULL,
  body     TEXT NOT NULL,
  PRIMARY KEY (tenant, call_id)
) STRICT;
INSERT INTO transcripts_with_rowid (tenant, call_id, body) SELECT tenant, call_id, body FROM transcripts;
DROP TABLE transcripts;
ALTER TABLE transcripts_with_rowid RENAME TO transcripts;
CREATE TRIGGER transcript_added AFTER INSERT ON transcripts BEGIN
  INSERT INTO stored VALUES (NEW.tenant, length(CAST(NEW.body AS BLOB)))
    ON CONFLICT (tenant) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER transcript_changed AFTER UPDATE OF body ON transcripts BEGIN
  UPDATE stored SET bytes = bytes + length(CAST(NEW.body AS BLOB)) - length(CAST(OLD.body AS BLOB))
    WHERE tenant = NEW.tenant;
END;
CREATE TRIGGER transcript_removed AFTER DELETE ON transcripts BEGIN
  UPDATE stored SET bytes = bytes - length(CAST(OLD.body AS BLOB)) WHERE tenant = OLD.tenant;
END;

CREATE TABLE objects_with_rowid (
  tenant   TEXT NOT NULL,
  hash     TEXT NOT NULL,
  body     TEXT NOT NULL,
  seen_at  INTEGER NOT NULL,
  PRIMARY KEY (tenant, hash)
) STRICT;
INSERT INTO objects_with_rowid (tenant, hash, body, seen_at) SELECT tenant, hash, body, seen_at FROM objects;
DROP TABLE objects;
ALTER TABLE objects_with_rowid RENAME TO objects;
CREATE TRIGGER object_added AFTER INSERT ON objects BEGIN
  INSERT INTO stored VALUES (NEW.tenant, length(CAST(NEW.body AS BLOB)))
    ON CONFLICT (tenant) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER object_removed AFTER DELETE ON objects BEGIN
  UPDATE stored SET bytes = bytes - length(CAST(OLD.body AS BLOB)) WHERE tenant = OLD.tenant;
END;
)sql",
    // 12: who made a key. What a key made is its maker's once the key itself is pruned.
    R"sql(
ALTER TABLE api_keys ADD COLUMN made_by TEXT NOT NULL DEFAULT '';
CREATE INDEX api_keys_by_maker ON api_keys (made_by);
CREATE TRIGGER api_key_removed AFTER DELETE ON api_keys WHEN OLD.made_by <> '' BEGIN
  UPDATE api_keys SET made_by = OLD.made_by WHERE made_by = OLD.id;
END;
)sql",
    // 13: the circuit breaker: calls that were denied something, and the agents that may not call a tool meanwhile
    R"sql(
CREATE TABLE denied_calls (
  tenant   TEXT NOT NULL,
  tool     TEXT NOT NULL,
  agent    TEXT NOT NULL,
  call_id  TEXT NOT NULL,
  at       INTEGER NOT NULL,
  PRIMARY KEY (tenant, tool, agent, call_id)
) STRICT, WITHOUT ROWID;
CREATE TABLE pauses (
  tenant  TEXT NOT NULL,
  tool    TEXT NOT NULL,
  agent   TEXT NOT NULL,
  why     TEXT NOT NULL,
  at      INTEGER NOT NULL,
  until   INTEGER NOT NULL,
  PRIMARY KEY (tenant, tool, agent)
) STRICT, WITHOUT ROWID;
)sql",
};

constexpr int kNewest = static_cast<int>(std::size(kSteps));

}  // namespace

Status Migrate(Connection& db) {
  TRY_ASSIGN(const int64_t version, db.Number("PRAGMA user_version"));
  TRY_ASSIGN(const int64_t application, db.Number("PRAGMA application_id"));
  TRY_ASSIGN(const int64_t tables, db.Number("SELECT count(*) FROM sqlite_master"));
  if (application != kApplicationId && (application != 0 || version != 0 || tables != 0)) {
    return HostFault("store.foreign", "coffer.db is the database of another program",
                     "choose another state directory");
  }
  if (version > kNewest) {
    return HostFault(
        "store.newer",
        fmt::format("the store has schema {}, this program knows {} at most", version, kNewest),
        "run the newer coffer that wrote it, or choose another state directory");
  }
  if (version < 0 || (version == 0) != (tables == 0)) {
    return HostFault("store.corrupt", "the store's schema and its version do not fit together",
                     "restore coffer.db from a backup");
  }
  if (version == kNewest) {
    return {};
  }
  TRY_ASSIGN(Transaction transaction, Transaction::Begin(db));
  for (int64_t step = version; step < kNewest; ++step) {
    TRY(db.Script(kSteps[step]));
  }
  TRY(db.Script(fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {};", kApplicationId,
                            kNewest)));
  return transaction.Commit();
}

}  // namespace coffer::store
