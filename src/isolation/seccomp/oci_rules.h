// SPDX-License-Identifier: Apache-2.0
//
// Reads another program's seccomp JSON into rules, exactly as it says, before anything is intersected with our floor.
//
// Hostile input: every key, action, operator, name and number is checked, and sizes are bounded. For oci_import.cc.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "isolation/seccomp/oci_import.h"
#include "isolation/seccomp/profile.h"

namespace coffer::isolation {

inline constexpr size_t kMaxOciRules = 16384;

struct OciRules {
  Action fallback;
  // The stricter rules of a call come first; equally strict ones are in the order of the file.
  std::map<std::string, std::vector<Rule>, std::less<>> by_name;
};

Result<OciRules> ReadOciRules(std::string_view json, const ImportContext& context);

}  // namespace coffer::isolation
