// SPDX-License-Identifier: Apache-2.0
//
// From what a person typed to what execve gets. A script leads to its interpreter, the interpreter to its runtime.
#include <algorithm>

#include "base/path_words.h"
#include "isolation/runtime/command_set.h"
#include "isolation/runtime/mounted_command.h"
#include "isolation/runtime/relocate.h"

namespace coffer::isolation {

namespace {

// Whether a script of /usr finds the same interpreter inside: not if env looks for it on the caller's PATH.
bool AsksPath(const Program& program) {
  return program.is_script && BaseName(program.shebang.interpreter) == "env";
}

void Append(std::vector<std::string>& argv, const std::vector<std::string>& more, size_t from) {
  argv.insert(argv.end(), more.begin() + static_cast<std::ptrdiff_t>(std::min(from, more.size())),
              more.end());
}

// A CMD that is a script of the caller's own or of the host.
Result<Command> ResolveScriptCommand(SetBuilder& builder, const Program& script,
                                     const std::string& path, const std::vector<std::string>& argv,
                                     const std::vector<std::string>& runtimes,
                                     const ResolveOptions& options) {
  if (script.shebang.windows) {
    return EndsInCarriageReturn(path);
  }
  if (script.shebang.interpreter.empty()) {
    return Error{ErrorKind::kNotExecutable, "runtime.command.format",
                 PathInWords(path) +
                     " is neither a program nor a script: its first line names no interpreter",
                 "start it with #!/bin/sh, or run it by an interpreter: coffer run -- sh " + path,
                 0};
  }
  Command command;
  std::vector<std::string> scripts = {path};
  TRY_ASSIGN(std::vector<std::string> words, InterpreterOf(script.shebang, path));
  if (!runtimes.empty()) {
    TRY_ASSIGN(command.runtime, ResolveRuntimes(runtimes, options));
    TRY(UseSet(words, runtimes, command));
  } else {
    TRY_ASSIGN(Chain chain, FollowInterpreter(builder.paths(), std::move(words), path));
    TRY(AddDefaultSet(builder, chain, options, command));
    command.argv = std::move(chain.before);
    NameOwnProgram(command);
    scripts.insert(scripts.begin(), chain.scripts.begin(), chain.scripts.end());
  }
  TrustOwnTree(script.place, command.runtime);
  BringScripts(builder.paths(), scripts, path, command.runtime);
  command.argv.push_back(Relocated(script.place.Inside()));
  Append(command.argv, argv, 1);
  return command;
}

Result<std::string> FindCommand(const std::string& name) {
  if (name.find('/') != std::string::npos) {
    return Absolute(name);
  }
  Result<std::string> found = FindProgram(name);
  return !found.ok() && name == "python" ? FindProgram("python3") : std::move(found);
}

// A command of /usr, or one of the caller's own with what it needs beyond /usr.
Result<Command> ResolveBesideUsr(const std::vector<std::string>& argv, Command command,
                                 const ResolveOptions& options) {
  const std::string& name = argv.front();
  TRY_ASSIGN(const std::string path, FindCommand(name));
  if (const auto inside = InsideOf(path, options.mounts)) {
    TRY(UseMounted(*inside, path, options, command));
    command.argv = argv;
    return command;
  }
  RealPaths paths;
  TRY_ASSIGN(const Program program, OpenProgram(paths, path, NeedX::kYes, name));
  if (std::string shown = program.place.via_link() ? "" : FindInside(command.runtime, path);
      !shown.empty() && !AsksPath(program)) {
    command.program = std::move(shown);
    command.argv = argv;
    return command;
  }
  ResolveOptions alone = options;
  alone.own_programs = false;
  std::vector<std::string> words = argv;
  words.front() = path;
  TRY_ASSIGN(Command own, ResolveCommand(words, {}, alone));
  own.runtimes.insert(own.runtimes.begin(), command.runtimes.begin(), command.runtimes.end());
  own.runtime = Merge(std::move(command.runtime), std::move(own.runtime));
  if (own.argv.front() == path) {
    own.argv.front() = own.program;  // a virtual environment's Python looks for its parts by it
  }
  return own;
}

}  // namespace

Result<Command> ResolveCommand(const std::vector<std::string>& argv,
                               const std::vector<std::string>& runtimes,
                               const ResolveOptions& options) {
  if (argv.empty() || argv.front().empty()) {
    return Refused("runtime.command.empty", "no command was given",
                   "coffer run -- COMMAND ARGUMENT...");
  }
  const std::string& name = argv.front();
  const bool is_path = name.find('/') != std::string::npos;
  if (ShowsWholeUsr(runtimes, options) && !HostUsrIsSystems()) {
    ResolveOptions alone = options;
    alone.own_programs = false;
    return ResolveCommand(argv, {}, alone);
  }
  if (!runtimes.empty()) {
    Command command;
    command.runtimes = runtimes;
    TRY_ASSIGN(command.runtime, ResolveRuntimes(runtimes, options));
    if (is_path) {
      TRY_ASSIGN(const std::string inside, Absolute(name));
      if (const auto host = HostOf(Normalize(inside), options.mounts)) {
        TRY(UseMounted(Normalize(inside), *host, options, command));
        command.argv = argv;
        return command;
      }
    }
    if (ShowsWholeUsr(runtimes, options)) {
      return ResolveBesideUsr(argv, std::move(command), options);
    }
    Status used = UseSet(argv, runtimes, command);
    if (used.ok()) {
      return command;
    }
    if (!is_path || options.runtimes_only) {
      return std::move(used.error());
    }
  }
  Result<std::string> found = is_path ? Absolute(name) : FindProgram(name);
  if (!found.ok()) {
    return std::move(found.error());
  }
  const std::string path = std::move(found).value();
  SetBuilder builder;
  TRY_ASSIGN(Program program, OpenProgram(builder.paths(), path, NeedX::kYes, name));
  program.named_by_caller = true;
  if (program.is_script) {
    return ResolveScriptCommand(builder, program, path, argv, runtimes, options);
  }
  if (!runtimes.empty()) {
    return NotInRuntimes(name, runtimes);
  }
  Command command;
  TRY(AddDefaultSet(builder, Chain{std::move(program), path, NamedBy::kCaller, {}, {}}, options,
                    command));
  command.argv = argv;
  if (is_path && (!name.starts_with('/') || Relocated(name) != name)) {
    command.argv.front() = command.program;  // programs look for their parts by this name
  }
  return command;
}

}  // namespace coffer::isolation
