// SPDX-License-Identifier: Apache-2.0
//
// Reads the file of --never-send, or of `never_send` in [egress] (policy/never_send.h).
//
// It holds secrets, and it decides what may leave: it is refused if other users may read it, if anybody but its owner may
// change it, or if it has another name, under which a call may be shown it. The owner is the user who starts the call or
// the daemon, or root.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace coffer::call {

// The text of the file, which holds values and no mistake. With an operator the way to it must be that user's alone
// (operator_path.h). kRefused with `said_by`, the flag or key that named it; never with a part of a value.
Result<std::string> ReadNeverSendFile(const std::string& path, std::optional<uid_t> operator_uid,
                                      std::string_view said_by);

}  // namespace coffer::call
