// SPDX-License-Identifier: Apache-2.0
//
// One recipe for one program, through the cache: what runtime.cc and command.cc share.
#pragma once

#include <string>

#include "base/result.h"
#include "isolation/runtime/recipes.h"
#include "isolation/runtime/runtime.h"

namespace coffer::isolation {

enum class NamedBy : uint8_t { kCaller, kFile };

// `program_path` is absolute, as it was found: a name, not necessarily the real file. Empty for host-usr.
Result<RuntimeSet> ResolveRecipe(const Recipe& recipe, const std::string& program_path,
                                 NamedBy named_by, const ResolveOptions& options);

}  // namespace coffer::isolation
