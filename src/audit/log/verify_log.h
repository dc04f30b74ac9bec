// SPDX-License-Identifier: Apache-2.0
//
// Reads a whole log and says everything that is wrong with it, with nothing but its files and a public key.
//
// Flip a byte, drop, repeat or exchange lines: it is found and named. What it cannot see is a log that was cut back to
// an earlier checkpoint, or rewritten by an attacker with the key; a checkpoint that was kept elsewhere shows both. The
// caches beside the log are not looked at. It may run while the log is written: it reads to the end of the last batch.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "audit/log/records_scan.h"
#include "audit/log/signer.h"
#include "base/result.h"

namespace coffer::audit {

struct LogFinding {
  uint64_t line = 0;            // from 1; 0: the log as a whole
  std::optional<uint64_t> seq;  // of the record, if it is about one
  std::string code;             // "log.root"; the list is in docs/AUDIT_LOG.md
  std::string message;
};

struct VerifyOptions {
  std::optional<PublicKey> key;                // otherwise the directory's key.pub
  std::optional<std::string> kept_checkpoint;  // a signed note (Log::Checkpoint) from elsewhere
  // Called for every record that can be read, in order, on the calling thread; what it returns becomes a finding
  // (line and seq are filled in). For bodies and for what the store knows. The views of the facts end with the call.
  std::function<std::optional<LogFinding>(const LeafFacts&)> on_record;
  size_t max_findings = 1000;
  int threads = 0;  // 0: as many as there are processors, at most 8
};

struct LogVerdict {
  std::vector<LogFinding> findings;  // none: the log is good
  bool more_findings = false;        // there were more than max_findings
  std::vector<LogFinding> notes;     // nothing is wrong with it, and a reader should know
  uint64_t records = 0;
  uint64_t checkpoints = 0;
  uint64_t size = 0;  // of the last checkpoint
  std::string root;   // of the last checkpoint, hex
  std::string key_id;
  std::string origin;
  uint64_t bytes = 0;  // of the file, that were read
  bool ok() const { return findings.empty(); }
};

// An Error means that it could not be read (audit.verify); whatever is wrong inside is a finding.
Result<LogVerdict> VerifyLog(const std::string& directory, const VerifyOptions& options = {});

// The records behind the first `bytes` of the file, which the caller has read before. Verifies
// nothing.
Status ReadNewRecords(const std::string& directory, uint64_t bytes,
                      const std::function<void(const LeafFacts&)>& on_record);

}  // namespace coffer::audit
