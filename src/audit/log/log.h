// SPDX-License-Identifier: Apache-2.0
//
// The audit log: append only, a Merkle tree over its records, a signed checkpoint behind every batch.
//
// When Append returns, the record is on disk. Threads that append at the same time share one write and one fdatasync;
// processes take turns with a lock on the file and first read what the others wrote. Nothing that was acknowledged is
// ever dropped: what a crash left behind the last valid checkpoint was not acknowledged, is cut off when the log is
// opened, and an event `log.recovered` says so. If the disk fails, Append fails with `audit.log` and nothing was
// recorded; the log opens itself again with the next Append. A log that lost records, or that was edited, is
// refused with `audit.log.damaged`.
//
// It does not protect against an attacker who has the key: keep checkpoints elsewhere
// (docs/AUDIT_LOG.md). Opening looks at the end only; VerifyLog (verify_log.h) looks at everything.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "audit/log/call_records.h"
#include "audit/log/records.h"
#include "audit/log/signer.h"
#include "audit/receipt.h"
#include "base/clock.h"
#include "base/result.h"

namespace coffer::audit {

struct Appended {
  LogPosition position;
  std::string leaf;                // the line, without its newline
  std::vector<std::string> proof;  // hex, from the leaf up: RFC 9162, 2.1.3
};

struct LogOptions {
  bool fsync = true;                              // false: for tests
  Nanos busy_timeout = std::chrono::seconds(10);  // for another process that has the lock
  // Told of every record that is on disk: whose, how long that took, and how many there are. From any thread.
  std::function<void(const std::string& tenant, Nanos took, uint64_t size)> appended = {};
  // Asked before what a crash left is cut off, with the event that will say so in the log: the
  // moment to tell others. If it fails, nothing is cut, and the log cannot be used until it is
  // asked again and does not. From any thread.
  std::function<Status(const EventRecord& event)> recovering = {};
};

class Log {
 public:
  // Makes the directory, the key and an empty log if there are none. As root, what it makes belongs to the owner of the
  // directory above.
  static Result<Log> Open(const std::string& directory, LogOptions options = {});
  Log(Log&&) noexcept;
  Log& operator=(Log&&) noexcept;
  ~Log();

  // May be called from any number of threads at once.
  Result<Appended> Append(const DecisionRecord& record);
  Result<Appended> Append(const ReceiptRecord& record);
  Result<Appended> Append(const EventRecord& record);

  // Fills in what the log has of these calls, also what other processes have appended. Reads from
  // the end backwards until everything is older than `since`, by the clock of its writer.
  Status FindRecords(CallRecordsByKey& sought, Nanos since) const;

  // The newest checkpoint as a C2SP signed note, with what other processes have appended.
  Result<std::string> Checkpoint();

  const std::string& origin() const;
  const PublicKey& public_key() const;
  const std::string& key_id() const { return public_key().id(); }
  std::string Sign(std::string_view bytes) const;  // 64 bytes

 private:
  struct Impl;
  explicit Log(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace coffer::audit
