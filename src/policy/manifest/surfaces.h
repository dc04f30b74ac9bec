// SPDX-License-Identifier: Apache-2.0
//
// What a manifest asks for that this version, or this host, does not have: it is refused by name, never ignored.
#pragma once

#include <set>
#include <string_view>
#include <vector>

#include "policy/manifest/manifest.h"
#include "policy/manifest/mistake.h"

namespace coffer::policy {

enum class Surface : uint8_t {
  kNetwork,       // [[network.allow]]
  kCredentials,   // [[credentials]]
  kApproval,      // a gate where a person decides
  kStagedWrites,  // mode = "staged"
  kOutputSchema,  // [output] schema
};
std::string_view SurfaceName(Surface surface);

// One mistake for each thing that is asked for and not available, at its place in the file.
std::vector<Mistake> UnsupportedSurfaces(const Manifest& manifest,
                                         const std::set<Surface>& available);

}  // namespace coffer::policy
