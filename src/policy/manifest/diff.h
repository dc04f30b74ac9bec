// SPDX-License-Identifier: Apache-2.0
//
// What changed between two versions of a manifest: what the tool may do more, less, or otherwise.
//
// For the person who reviews a change, and for a reload: a narrowed grant takes effect at once, also on calls that
// already run. A change that cannot be ordered (a schema, a command) is `changed`, and should be read as if it
// widened.
#pragma once

#include <string>
#include <vector>

#include "policy/manifest/manifest.h"

namespace coffer::policy {

enum class ChangeKind : uint8_t { kWidened, kNarrowed, kChanged };

struct ManifestChange {
  ChangeKind kind = ChangeKind::kChanged;
  std::string what;    // "limits.memory", "files.mount /srv/x"
  std::string before;  // empty: it was not there
  std::string after;   // empty: it is gone
  Position position;   // in the new file
};

// In the order of a manifest's sections; empty if both have the same hash, and never empty if they do not.
std::vector<ManifestChange> DiffManifests(const Manifest& before, const Manifest& after);

}  // namespace coffer::policy
