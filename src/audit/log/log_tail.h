// SPDX-License-Identifier: Apache-2.0
//
// Where a log ends: everything that is needed to append to it, and nothing else.
//
// It follows from the file alone. The cache `tree` holds one too, so that opening a long log does not read all of it;
// it is used only if the checkpoint that stands at its place in the file has the root that follows from its frontier.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "audit/log/checkpoint.h"
#include "audit/log/merkle.h"
#include "base/result.h"

namespace coffer::audit {

struct LogTail {
  uint64_t end = 0;  // bytes of the file up to and with the last valid checkpoint
  Frontier frontier;
  std::optional<Checkpoint> last;  // only a file with nothing but its header has none
  Hash last_line{};                // LineHash of that line: the next `prev`
};

// The tip of a file with nothing but this header line.
LogTail TailOfHeader(std::string_view header);

// Follows the file from `from` as far as it is a log: complete batches whose size, root and chain are right. Signatures
// are the caller's to check: that of the last one may be torn, too, and then the log ends with the batch before it.
struct FoundTails {
  LogTail last;
  LogTail before;  // the same as `last` if nothing was found
};
Result<FoundTails> ReadForward(int records, uint64_t file_size, LogTail from);

// True if behind the tip stands a checkpoint of this key for a batch that is not the next one. A
// crash cannot leave that: a batch is begun when the one before it is on disk. (Old ones may be
// there, if the disk gives back what it held before.)
Result<bool> HasLaterBatch(int records, uint64_t file_size, const LogTail& tip,
                           const PublicKey& key, std::string_view origin);

// The cache. Nothing if it is not there or is not whole.
std::optional<LogTail> ReadTailCache(int directory, std::string_view origin);
std::string FormatTailCache(const LogTail& tip, std::string_view origin);

// What the cache says is in the file, too. Fills in the rest of it.
bool ConfirmTail(int records, uint64_t file_size, LogTail& tip);

}  // namespace coffer::audit
