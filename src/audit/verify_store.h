// SPDX-License-Identifier: Apache-2.0
//
// The store against the log: every stored receipt is the one that the log names, and every call that ended is in the log.
//
// The log can be verified with nothing but its files (verify_log.h); this is what can be said beyond that where the
// store is there too. Bodies that retention removed are missed only as far as an event `pruned` of the log covers them.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "audit/verify_log.h"
#include "store/store.h"

namespace coffer::audit {

class StoreCheck {
 public:
  // Make it before the log is read: what ends while it is read is left to the next verification.
  explicit StoreCheck(store::Store& store) : store_(store), began_(store.Now()) {}

  // For VerifyOptions::on_record.
  void Note(const LeafFacts& facts);
  // After the log was read. An Error: the store could not be read.
  Status Finish(std::vector<LogFinding>& findings);

  uint64_t bodies() const { return bodies_; }  // receipts whose hash was compared

 private:
  struct Logged {
    std::array<char, 71> body{};  // "sha256:..."; zeros: it was none
    uint64_t seq = 0;
    int64_t at = 0;
    std::string_view words() const { return {body.data(), body.size()}; }
  };
  // Stored receipts whose hashes are to be compared, by as many threads as want to.
  struct Work;
  void Match(Work& work);
  Status CheckCalls(std::vector<LogFinding>& findings);

  // False after a while: the log is written first, and the store a moment later.
  Result<bool> AppearsLater(const std::string& tenant, const std::string& call);

  store::Store& store_;
  const Nanos began_;
  // By tenant and call (KeyOf); the newest receipt of each.
  std::unordered_map<std::string, Logged> receipts_;
  std::map<std::string, int64_t> pruned_before_;  // by tenant, "" for all
  int64_t first_at_ = 0;
  uint64_t bodies_ = 0;
};

}  // namespace coffer::audit
