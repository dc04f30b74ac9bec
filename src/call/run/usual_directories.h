// SPDX-License-Identifier: Apache-2.0
//
// Where Cofferdam keeps its state and finds the operator's files, if the command line does not say.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace coffer::call {

// COFFER_STATE, /var/lib/coffer for root, or ~/.local/state/coffer; empty if there is no home either.
std::string UsualStateDir();
// Where the operator keeps coffer.toml and tools/: COFFER_CONFIG, /etc/coffer for root, or
// ~/.config/coffer. As root never in the state directory, which belongs to the daemon's gateway.
// Empty if there is no home either.
std::string UsualConfigDir();
// Its `tools`, which need not be there.
Result<std::string> UsualToolDir();
// Those of COFFER_TOOLS.
std::vector<std::string> UsualToolDirs();

// Refuses if the operator's file `name` ("tools" or "coffer.toml") still lies in the state directory, where it has no
// effect.
Status CheckNotInState(const std::string& state, const std::string& name);

}  // namespace coffer::call
