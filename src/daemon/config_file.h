// SPDX-License-Identifier: Apache-2.0
//
// The configuration file as the daemon calls it. It is read in call/, because `coffer call` is
// under the same limits with and without a daemon.
#pragma once

#include "call/config_file.h"

namespace coffer::daemon {

using call::AnomalyConfig;
using call::FileConfig;
using call::PeerConfig;
using call::ReadConfigText;
using call::TenantRules;

}  // namespace coffer::daemon
