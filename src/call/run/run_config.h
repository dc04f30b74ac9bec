// SPDX-License-Identifier: Apache-2.0
//
// The caller's own configuration of `coffer run`: $XDG_CONFIG_HOME/coffer/run.toml, or ~/.config/coffer/run.toml.
//
//   toolchains = ["~/.pyenv", "/srv/node-22"]
//
// Named profiles are tables of flags (run_profile.h). A toolchain is a directory of programs that
// the caller vouches for. A first line, an ELF header or a link may name files there, which
// otherwise only the caller's own words may (isolation/opened_runtime.h). In return no toolchain,
// and not this file, can be mounted writable, by whatever call of this user. What may be named there counts for `coffer
// run` and `coffer shell` alone: declared tools have their declared runtimes. The daemon reads the file of the user and
// environment that it is started with, when it starts, and lets no call write to a toolchain of it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"

namespace coffer::call {

struct RunConfig {
  std::string directory;                // where the file is, or would be; empty without a home
  std::vector<std::string> toolchains;  // real paths of directories that exist
  std::map<std::string, std::vector<std::string>> profiles;  // the words of each (run_profile.h)
};

// Without a file: no toolchains. A file that another user can change, is not a regular file, has an
// unknown key, or names a directory that is missing or too broad is kRefused.
Result<RunConfig> ReadRunConfig();

// The words of a profile; kRefused if there is none of this name, with the nearest one.
Result<std::vector<std::string>> FindProfile(const RunConfig& config, const std::string& name);

}  // namespace coffer::call
