// SPDX-License-Identifier: Apache-2.0
//
// The files that an operator named at the start. When they change, the monitor opens them, because a key may be
// readable to root alone, and passes them to the gateway, which has no privilege and reads and parses them.
//
// The monitor does not parse them. The configuration decides what others may do, so it must be the operator's alone
// (call/operator_path.h). A certificate or JWKS below the state directory is opened by the gateway itself: it may write
// there, and a link of its making must not borrow the monitor's rights.
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
// The configuration alone; nothing if there is none.
Result<std::optional<std::string>> ReadConfigFile(const Config& config);

// Monitor: opens them again and sends what it opened. Never blocks; a gateway that does not listen misses it.
void SendOperatorFiles(const Config& config, int to_gateway);
// Monitor: only manifests changed. Likewise.
void SendManifestsChanged(int to_gateway);
// Gateway: one such message; nothing if only manifests changed. An error names the file that cannot
// be read; kMonitorGone: none will come any more.
inline constexpr std::string_view kMonitorGone = "daemon.monitor";
Result<std::optional<OperatorFiles>> ReceiveOperatorFiles(const Config& config, int from_monitor);

}  // namespace coffer::daemon
