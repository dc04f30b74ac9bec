// SPDX-License-Identifier: Apache-2.0
//
// A command that lies in a mount of the call is run where it is: nothing is brought in for it but
// the interpreter that its link or its first line leads to.
//
//   coffer run --ro ~/proj/.venv:/venv -- /venv/bin/python
//   coffer run --project . -- .venv/bin/pytest
//
// The path is the one inside. It is looked at on the host only to say early that it is missing or not executable; what
// execve finds inside is what counts. If a link or a first line leads out of the mount and out of the runtimes, as in a
// virtual environment that pyenv or uv made, the interpreter there is resolved like any that a file names
// (opened_runtime.h). A name that env looks for is looked for on the caller's PATH, as for scripts (interpreter.h).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "isolation/runtime/runtime.h"

namespace coffer::isolation {

// Where the host's `path` is inside, if a mount shows it.
std::optional<std::string> InsideOf(const std::string& host,
                                    const std::vector<MountedPlace>& mounts);
// Where the host has `inside`, if a mount shows it.
std::optional<std::string> HostOf(const std::string& inside,
                                  const std::vector<MountedPlace>& mounts);

// Sets `program` and `interpreter` of the command, whose set and runtimes are there already, and adds to the set.
// kNotFound, kNotExecutable.
Status UseMounted(const std::string& inside, const std::string& host, const ResolveOptions& options,
                  Command& command);

// What the caller's PATH has for `name`, judged like an interpreter that a file names.
struct NamedOnPath {
  std::string inside;  // where it is inside, with `set`; empty if it is nowhere
  RuntimeSet set;      // what it needs beyond `shown` and the mounts
};
Result<NamedOnPath> FindOnPath(const std::string& name, const ResolveOptions& options,
                               const RuntimeSet& shown);
// The same for a program by its path on the host.
Result<NamedOnPath> FindByPath(const std::string& path, const ResolveOptions& options,
                               const RuntimeSet& shown);

}  // namespace coffer::isolation
