// SPDX-License-Identifier: Apache-2.0
//
// Two files that say how `coffer run` runs, with opposite rights.
//
// A profile is the caller's own, in run.toml (run_config.h):
//
//   [profile.tests]
//   project   = "."
//   memory    = "4GiB"
//   cache     = ["pip", "npm"]
//   env       = { CI = "1" }
//
// Each key is a flag without its dashes. A profile becomes words in front of those of the command line, so it can say
// whatever flags can, and the command line counts where both say something.
//
// The project's own file, .coffer.toml at its top, may come from anybody, so it can only narrow: caps that are smaller,
// and further paths that are read-only.
//
//   memory    = "1GiB"
//   read_only = ["infra", "Makefile"]
#pragma once

#include <string>
#include <vector>

#include "call/run/run_request.h"
#include "policy/manifest/toml_tree.h"

namespace coffer::call {

// The words of one profile: {"--project=.", "--memory=4GiB", ...}.
std::vector<std::string> ProfileWords(const policy::TomlNode& profile,
                                      policy::MistakeList& mistakes);

// Lowers the caps of `request` to those of the file in its project, if there is one. kRefused if it is not a file that
// can be read, or has a key that does not narrow.
Status NarrowByProjectFile(RunRequest& request);

}  // namespace coffer::call
