// SPDX-License-Identifier: Apache-2.0
//
// [egress] of the configuration: what the operator says about the network of every tool (policy/egress_config.h).
//
// Rules, names and ranges are read here once, so that a mistake is told at the start and on SIGHUP
// and not by a call. The files of `upstream_ca` and `never_send` are opened later.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "base/result.h"
#include "policy/egress_config.h"
#include "policy/manifest/table_reader.h"

namespace coffer::call {

struct EgressFileConfig {
  policy::EgressConfig egress;
  std::string upstream_ca_file;  // absolute; empty: none
  std::string never_send_file;   // likewise
};

// Reads [egress] of `root`, if it is there.
void ReadEgressConfig(policy::TableReader& root, EgressFileConfig& config,
                      policy::MistakeList& mistakes);

// The same with the certificates of its file. With an operator the file must be that user's alone
// (operator_path.h), as in the daemon. kRefused if it cannot be read or holds no certificate.
Result<policy::EgressConfig> LoadEgressConfig(const EgressFileConfig& config,
                                              std::optional<uid_t> operator_uid);

// The text of the file of values that no request may hold; "" if none is named. In the daemon the
// file is readable to the operator alone, so a role reads it before it gives up the right to.
Result<std::string> LoadNeverSend(const EgressFileConfig& config,
                                  std::optional<uid_t> operator_uid);

}  // namespace coffer::call
