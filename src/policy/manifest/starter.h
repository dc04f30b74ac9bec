// SPDX-License-Identifier: Apache-2.0
//
// The text that `coffer tools new NAME` writes: a manifest that loads as it is, with every other table there to be
// uncommented.
#pragma once

#include <string>
#include <string_view>

namespace coffer::policy {

// `name` must be a tool's name (IsToolName of manifest.h); the caller has checked.
std::string StarterManifest(std::string_view name);

}  // namespace coffer::policy
