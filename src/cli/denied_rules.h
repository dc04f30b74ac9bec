// SPDX-License-Identifier: Apache-2.0
//
// Rules of a manifest that the operator's [egress] deny makes useless: they can never match.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "policy/egress_config.h"

namespace coffer::cli {

// One line for each, with its place in `file`; nothing for a manifest that does not load.
std::vector<std::string> DeniedRules(std::string_view manifest, const std::string& file,
                                     const policy::EgressConfig& egress);

}  // namespace coffer::cli
