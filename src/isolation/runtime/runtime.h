// SPDX-License-Identifier: Apache-2.0
//
// Runtimes: named sets of host paths that become visible, read-only, inside a boundary. Nothing else of the host is.
//
// Three questions are answered here: what is the runtime "python3" on this host (ResolveRuntimes), what does
// `coffer run -- CMD` need (ResolveCommand), what runs the script FILE (ResolveScript). A command is looked up on the
// caller's PATH, through the shims of version managers (shim.h), then on a fixed path; a named runtime is the system's
// own. LD_LIBRARY_PATH is ignored.
// A program that is setuid or setgid, is for another machine, or needs a library that is not there is an error, and the
// message names it. What a program loads by name at run time (dlopen, a helper program, a data file) is known only for
// the named runtimes; anything else needs `--runtime host-usr` or `--ro`.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "isolation/runtime/runtime_set.h"

namespace coffer::isolation {

// A mount of the call: what it shows of the host, and where. By name; the mount itself is opened and judged elsewhere.
struct MountedPlace {
  std::string host;
  std::string at;
};

struct ResolveOptions {
  std::string cache_dir;  // empty: DefaultCacheDir()
  bool use_cache = true;
  bool runtimes_only = false;  // a path that none of the named runtimes has is no command either
  // `coffer run`: beside host-usr a command, script or interpreter of the caller's own comes in as well.
  bool own_programs = false;
  std::vector<std::string> optional_runtimes;  // beside the named ones, where the host has them
  std::vector<MountedPlace> mounts;            // a command that lies in one is run where it is
};

// /var/cache/coffer for root, else $XDG_CACHE_HOME/coffer or ~/.cache/coffer; empty if there is neither.
std::string DefaultCacheDir();

// The names that ResolveRuntimes knows: base, python3, git, ..., host-usr.
const std::vector<std::string_view>& RuntimeNames();

// All of /usr instead of listed files.
inline constexpr const char* kHostUsr = "host-usr";

// All of them together. An unknown name is kRefused; one that the host lacks is kHost, with the package as hint.
Result<RuntimeSet> ResolveRuntimes(const std::vector<std::string>& names,
                                   const ResolveOptions& options = {});

// What execve gets, and what must be visible for it.
struct Command {
  std::string
      program;  // absolute path inside; empty if FILE is itself the program (see ResolveScript)
  std::vector<std::string> argv;  // argv[0] included
  std::vector<std::string>
      runtimes;  // names for the receipt; empty: one program with its libraries
  RuntimeSet runtime;
  std::string interpreter;  // inside: what env has to find for a script in a mount; mostly empty
};

// For `coffer run -- CMD ARG...`. `argv` is what the caller typed; it must not be empty. `runtimes`
// empty: what CMD needs. Otherwise exactly those, and CMD (for a script: its interpreter) must be
// in them, or in a mount, or may be the caller's own (ResolveOptions::own_programs, with host-usr).
// A script is run as the kernel would run it: interpreter, its one argument, the script at its own
// path inside; only what lies in a place that a boundary makes itself (/tmp, /workspace, ...) moves
// to /run/command (see relocate.h). kNotFound (exit 127): no such command. kNotExecutable (126): a
// directory, no x bit, wrong architecture, setuid.
Result<Command> ResolveCommand(const std::vector<std::string>& argv,
                               const std::vector<std::string>& runtimes = {},
                               const ResolveOptions& options = {});

// For `coffer run FILE ARG...`. Interpreter by shebang, else by extension (.py .js .mjs .cjs .sh .bash .pl).
// `argv` of the answer is what goes before the script: {"python3", "-I"}; the caller appends the script's path inside
// and ARG... If FILE is an ELF program, `program` and `argv` are empty: its copy is executed as it is.
// FILE itself is not in the set. It need not have the x bit. kNotFound, kNotExecutable, kRefused (unsupported).
Result<Command> ResolveScript(const std::string& file,
                              const std::vector<std::string>& runtimes = {},
                              const ResolveOptions& options = {});

// Descriptions of terminals, if the set lacks them: for a call with a terminal.
void AddTerminfo(RuntimeSet& set);

// A loader cache ("glibc-ld.so.cache1.1") that lists exactly the libraries of the set, for /etc/ld.so.cache inside.
// Needed only where a library lies outside the loader's default directories; saves the loader a search elsewhere.
std::string MakeLoaderCache(const RuntimeSet& set);

}  // namespace coffer::isolation
