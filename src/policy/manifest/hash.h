// SPDX-License-Identifier: Apache-2.0
//
// The canonical form of a manifest, and the hash by which receipts name it: same meaning, same bytes.
//
// Comments, order of tables, spelling of sizes and positions do not matter; every value does, also those that are
// defaults, so that a change of a default is a change of the hash.
#pragma once

#include <string>

#include "policy/manifest/manifest.h"

namespace coffer::policy {

// One line of JSON.
std::string CanonicalForm(const Manifest& manifest);
// "sha256:...".
std::string ManifestHash(const Manifest& manifest);

}  // namespace coffer::policy
