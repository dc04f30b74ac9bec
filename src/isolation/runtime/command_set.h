// SPDX-License-Identifier: Apache-2.0
//
// The set that a command or a script needs: what command.cc and script.cc share.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "isolation/runtime/interpreter.h"
#include "isolation/runtime/runtime.h"
#include "isolation/runtime/set_builder.h"

namespace coffer::isolation {

// The program's own runtime, or the program alone with its libraries.
Status AddDefaultSet(SetBuilder& builder, const Chain& chain, const ResolveOptions& options,
                     Command& command);

// Names the runtime that has the command.
Error NotInRuntimes(const std::string& name, const std::vector<std::string>& runtimes);

// `words` run by a program of the set; "python" means python3 here too. NotInRuntimes if there is none.
Status UseSet(const std::vector<std::string>& words, const std::vector<std::string>& runtimes,
              Command& command);

// What the script names may lie beside it: the caller named the script.
void TrustOwnTree(const RealPaths::Place& script, RuntimeSet& set);

// `typed` is the one of `scripts` that the caller named, if any; the others were named by a first line.
void BringScripts(RealPaths& paths, const std::vector<std::string>& scripts,
                  const std::string& typed, RuntimeSet& set);

// True for host-usr, where programs of the caller's own come in beside it.
bool ShowsWholeUsr(const std::vector<std::string>& runtimes, const ResolveOptions& options);

// True if the file at `path` is shown by the set in its own place, whichever links lead there.
bool IsShown(RealPaths& paths, const RuntimeSet& set, const std::string& path);

// A program of the caller's own is called by its path inside: a virtual environment's Python looks
// for its parts by it, and the path that a first line names may have moved (relocate.h).
void NameOwnProgram(Command& command);

// All of /usr is the system's own on every ordinary host. Where it is not, a call has what its command needs.
bool HostUsrIsSystems();

}  // namespace coffer::isolation
