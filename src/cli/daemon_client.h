// SPDX-License-Identifier: Apache-2.0
//
// One request to the daemon that runs on this host, over its UNIX socket: there the user who started it, and root, are
// operators without a key.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace coffer::cli {

// The body of an answer that says it worked. kRefused with the daemon's own words otherwise, kHost
// if no daemon is there.
Result<std::string> AskDaemon(const std::string& socket, std::string_view method,
                              std::string_view path, std::string_view json_body);

}  // namespace coffer::cli
