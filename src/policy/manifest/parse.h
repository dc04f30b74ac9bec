// SPDX-License-Identifier: Apache-2.0
//
// From the text of a manifest to a Manifest, or to everything that is wrong with it.
//
// Strict: an unknown key, a wrong type, an empty list, a value out of range, a grant that is too broad or a template
// that does not fit is a mistake with its position; all mistakes are reported together. A Manifest comes out only if
// there is none, so nothing half-read is ever used. Pure and bounded: hostile text costs what toml_tree.h allows. It
// does not compile the schemas (tool.h does) and does not look at the host.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "policy/manifest/manifest.h"
#include "policy/manifest/mistake.h"

namespace coffer::policy {

struct ParsedManifest {
  std::optional<Manifest> manifest;  // only if there is no mistake
  std::optional<Manifest>
      draft;  // otherwise: what could be read, so that all mistakes are found at once
  std::vector<Mistake> mistakes;  // sorted by position
};

// `file` is only a name, for messages.
ParsedManifest ParseManifest(std::string_view text, std::string_view file);

}  // namespace coffer::policy
