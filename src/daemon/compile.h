// SPDX-License-Identifier: Apache-2.0
//
// Compiles the manifests into the warden's table (call/warden/table.h), in a process that does only that.
//
// TOML is hostile input, so the monitor, which has privilege, does not parse it, and neither does
// the warden. The gateway may have been broken into, so it has no part in it. A child of the
// monitor gives up every privilege (role.h), reads the manifests, writes the table into a memory
// file and ends; mistakes go to stderr. The monitor waits for it, seals the file and hands it on
// unread.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "base/unique_fd.h"
#include "daemon/config.h"

namespace coffer::daemon {

struct CompiledTable {
  UniqueFd file;  // a sealed memfd; empty: there is none yet
  uint64_t size = 0;
};

// What a reload reads again. kManifests keeps the ceilings of the last table: the configuration changes on SIGHUP only.
enum class CompileScope : uint8_t { kAll, kManifests };

// Takes at most some seconds. kRefused if the configuration has a mistake or a manifest directory
// is not the operator's: the child has said so on stderr, and the last table stays in force.
Result<CompiledTable> CompileTable(const Config& config, const CompiledTable& before,
                                   CompileScope scope);

}  // namespace coffer::daemon
