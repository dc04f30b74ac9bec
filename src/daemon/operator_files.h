// SPDX-License-Identifier: Apache-2.0
//
// The files an operator named at the start, and their way to the gateway when they change: the monitor opens them,
// because a key may be readable to root alone, and the gateway, which has no privilege, reads and parses them.
//
// The monitor never looks inside. What lies below the state directory is opened by the gateway itself: it may write there,
// and a link of its making must not borrow the monitor's rights.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"
#include "daemon/config.h"

namespace coffer::daemon {

// The text of each; nothing where the operator named none, or where the default file does not exist.
struct OperatorFiles {
  std::optional<std::string> config;
  std::optional<std::string> tls_certificate;
  std::optional<std::string> tls_key;
  std::optional<std::string> jwks;
};

// At the start, with the rights of the caller.
Result<OperatorFiles> ReadOperatorFiles(const Config& config);

// Monitor: opens them again and sends what it opened. Never blocks; a gateway that does not listen misses it.
void SendOperatorFiles(const Config& config, int to_gateway);
// Gateway: one such message. An error names the file that cannot be read; kMonitorGone: none will come any more.
inline constexpr std::string_view kMonitorGone = "daemon.monitor";
Result<OperatorFiles> ReceiveOperatorFiles(const Config& config, int from_monitor);

// A configuration that names receivers and files with secrets must be the operator's own: it, and a link that leads to
// it, of the user who starts the daemon or of root, and not writable for others. As root the state directory belongs to the gateway, which
// could otherwise put a file of its own there.
Status CheckOperatorsOwn(const std::string& path);

}  // namespace coffer::daemon
