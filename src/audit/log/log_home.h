// SPDX-License-Identifier: Apache-2.0
//
// The directory of a log: `key`, `key.pub` and `records` appear whole or not at all, whichever process makes them.
//
// Each is written under another name, synced, and then linked into place, so a crash or a second process that does the
// same leaves one complete file. `records` is made last; where it is, the others were. A key that can be read by others
// or a directory they can write is refused.
#pragma once

#include <string>

#include "audit/log/signer.h"
#include "base/result.h"
#include "base/unique_fd.h"

namespace coffer::audit {

struct LogHome {
  UniqueFd directory;
  Signer signer;
};

Result<LogHome> OpenLogHome(const std::string& path);

// `records`, for reading and writing. Refuses one that was removed.
Result<UniqueFd> OpenRecords(int directory);

// Makes a file as the directory's owner would. Nothing happens if it is there.
Status MakeLogFile(int directory, const std::string& name, std::string_view content, unsigned mode);

}  // namespace coffer::audit
