// SPDX-License-Identifier: Apache-2.0
//
// A rule of [[network.allow]] as one line: same rule, same bytes.
//
// An envelope holds its network as such lines, so the warden compares what a request asks for with what the manifest
// allows byte by byte, and parses no rule. A line is one of
//   @NAME      the set of that name in [egress] of the configuration
//   {...}      a rule, as JSON with sorted keys
//   !{...}     a rule that a dangerously_ key of the manifest grants
// Only the egress role reads what is in the braces.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "policy/egress_rule.h"
#include "policy/manifest/manifest.h"

namespace coffer::policy {

inline bool IsSetLine(std::string_view line) { return line.starts_with('@'); }
inline bool IsDangerousLine(std::string_view line) { return line.starts_with('!'); }
// The name of a set without its @: 1 to 64 lower-case letters, digits, dashes and underscores.
bool IsSetName(std::string_view name);

std::string EgressLine(const NetworkRule& rule);
// Not a set. kInternal: another version wrote it, or no version did.
Result<EgressRule> ParseEgressLine(std::string_view line);

}  // namespace coffer::policy
