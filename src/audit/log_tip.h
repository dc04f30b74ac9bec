// SPDX-License-Identifier: Apache-2.0
//
// Where a log ends: everything that is needed to append to it, and nothing else.
//
// It follows from the file alone. The cache `tree` holds one too, so that opening a long log does not read all of it; it
// is believed only if the checkpoint that stands at its place in the file has the root that follows from its frontier.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "audit/checkpoint.h"
#include "audit/merkle.h"
#include "base/result.h"

namespace coffer::audit {

struct LogTip {
  uint64_t end = 0;  // bytes of the file up to and with the last valid checkpoint
  Frontier frontier;
  std::optional<Checkpoint> last;  // only a file with nothing but its header has none
  Hash last_line{};                // LineHash of that line: the next `prev`
};

// The tip of a file with nothing but this header line.
LogTip TipOfHeader(std::string_view header);

// Follows the file from `from` as far as it is a log: complete batches whose size, root and chain are right. Signatures
// are the caller's to check: that of the last one may be torn, too, and then the log ends with the batch before it.
struct FoundTips {
  LogTip last;
  LogTip before;  // the same as `last` if nothing was found
};
Result<FoundTips> ReadForward(int records, uint64_t file_size, LogTip from);

// True if behind the tip stands a checkpoint of this key for a batch that is not the next one. A crash cannot leave that: a
// batch is begun when the one before it is on disk. (Old ones may be there, if the disk gives back what it held before.)
Result<bool> HasLaterBatch(int records, uint64_t file_size, const LogTip& tip, const PublicKey& key,
                           std::string_view origin);

// The cache. Nothing if it is not there or is not whole.
std::optional<LogTip> ReadTipCache(int directory, std::string_view origin);
std::string FormatTipCache(const LogTip& tip, std::string_view origin);

// What the cache says is in the file, too. Fills in the rest of it.
bool ConfirmTip(int records, uint64_t file_size, LogTip& tip);

}  // namespace coffer::audit
