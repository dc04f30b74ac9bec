// SPDX-License-Identifier: Apache-2.0
//
// [egress] of the configuration: what the operator says about the network of every tool (policy/egress_config.h).
//
// Rules, names and ranges are read here once, so that a mistake is told at the start and on SIGHUP
// and not by a call. The file of `upstream_ca` is opened elsewhere: LoadUpstreamCa.
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
};

// Reads [egress] of `root`, if it is there.
void ReadEgressConfig(policy::TableReader& root, EgressFileConfig& config,
                      policy::MistakeList& mistakes);

// The same with the certificates of its file. With an operator the file must be that user's alone
// (operator_path.h), as in the daemon. kRefused if it cannot be read or holds no certificate.
Result<policy::EgressConfig> LoadEgressConfig(const EgressFileConfig& config,
                                              std::optional<uid_t> operator_uid);

}  // namespace coffer::call
