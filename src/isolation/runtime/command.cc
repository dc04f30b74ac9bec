// SPDX-License-Identifier: Apache-2.0
//
// From what a person typed to what execve gets. A script leads to its interpreter, the interpreter to its runtime.
#include <errno.h>

#include <algorithm>
#include <array>

#include "isolation/runtime/cached_recipe.h"
#include "isolation/runtime/own_tree.h"
#include "isolation/runtime/program.h"
#include "isolation/runtime/relocate.h"
#include "isolation/runtime/runtime.h"
#include "isolation/runtime/set_builder.h"

namespace coffer::isolation {

namespace {

constexpr int kMaxScripts =
    4;  // a script whose interpreter is a script ...; the kernel stops at 4 as well

std::vector<std::string> SplitWords(std::string_view text) {
  std::vector<std::string> words;
  while (!text.empty()) {
    const size_t end = text.find_first_of(" \t");
    if (end != 0) {
      words.emplace_back(text.substr(0, end));
    }
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return words;
}

// What a shebang runs, as words: {"/bin/sh", "-e"}; "env" is taken out of the way: {"python3", "-u"}.
Result<std::vector<std::string>> InterpreterOf(const Shebang& shebang, const std::string& script) {
  if (BaseName(shebang.interpreter) != "env") {
    std::vector<std::string> words = {shebang.interpreter};
    if (!shebang.argument.empty()) {
      words.push_back(shebang.argument);
    }
    return words;
  }
  std::string_view argument = shebang.argument;
  const bool split = argument.starts_with("-S");
  if (split) {
    argument.remove_prefix(2);
  }
  std::vector<std::string> words =
      split ? SplitWords(argument) : std::vector<std::string>{std::string(argument)};
  if (words.empty() || words.front().empty() || words.front().starts_with('-') ||
      words.front().find('=') != std::string::npos) {
    return Error{ErrorKind::kNotExecutable, "runtime.script.env",
                 script + ": the first line asks env for more than running an interpreter",
                 "write #!/usr/bin/env python3, or name the interpreter on the command line", 0};
  }
  return words;
}

// The interpreter's path on the host. "python" means python3 where there is no python. A name without a slash is looked
// up on the caller's PATH too, and what is found there counts as named by the caller.
Result<std::string> FindInterpreter(const std::string& name, const std::string& script) {
  Result<std::string> path =
      name.find('/') == std::string::npos ? FindProgram(name) : Result<std::string>(name);
  if (!path.ok() && name == "python") {
    path = FindProgram("python3");
  }
  if (path.ok() && !path->starts_with('/')) {
    return Error{ErrorKind::kNotExecutable,
                 "runtime.script.relative",
                 script + ": its interpreter " + name + " is not an absolute path",
                 {},
                 0};
  }
  if (!path.ok()) {
    path.error().message = script + ": its interpreter " + name + " was not found";
  }
  return path;
}

// What is run in the end, before its set is known.
struct Chain {
  Program program;   // the ELF program
  std::string path;  // as it was found on the host
  NamedBy named_by = NamedBy::kFile;
  std::vector<std::string> before;  // argv of the program up to the first script: {"/bin/sh", "-e"}
  std::vector<std::string>
      scripts;  // host paths of scripts that must be brought in, in the order of argv
};

// Follows shebangs from the interpreter words to an ELF program.
Result<Chain> FollowInterpreter(RealPaths& paths, std::vector<std::string> words,
                                const std::string& script) {
  Chain chain;
  for (int depth = 0; depth < kMaxScripts; ++depth) {
    chain.named_by =
        words.front().find('/') == std::string::npos ? NamedBy::kCaller : NamedBy::kFile;
    TRY_ASSIGN(chain.path, FindInterpreter(words.front(), script));
    Result<Program> program = OpenProgram(paths, chain.path);
    if (!program.ok()) {
      program.error().message =
          script + ": its interpreter cannot be used: " + program.error().message;
      return std::move(program.error());
    }
    chain.program = std::move(program).value();
    chain.program.named_by_caller = chain.named_by == NamedBy::kCaller;
    if (!chain.program.is_script) {
      chain.before = std::move(words);
      return chain;
    }
    if (chain.program.shebang.interpreter.empty()) {
      break;
    }
    TRY_ASSIGN(std::vector<std::string> outer, InterpreterOf(chain.program.shebang, chain.path));
    words.front() = Relocated(chain.path);
    chain.scripts.insert(chain.scripts.begin(), chain.path);
    words.insert(words.begin(), outer.begin(), outer.end());
  }
  return Error{ErrorKind::kNotExecutable,
               "runtime.script.chain",
               script + ": its interpreter is a script that leads to no program",
               {},
               0};
}

// The program's own runtime, or the program alone with its libraries.
Status AddDefaultSet(SetBuilder& builder, const Chain& chain, const ResolveOptions& options,
                     Command& command) {
  const Recipe* const recipe = FindRecipeFor(chain.program.place);
  if (recipe != nullptr) {
    Result<RuntimeSet> set = ResolveRecipe(*recipe, chain.path, chain.named_by, options);
    if (!set.ok()) {
      return std::move(set.error());
    }
    command.runtime = std::move(set).value();
    command.runtimes = {std::string(recipe->name)};
  } else {
    TRY(builder.AddProgram(chain.program));
    TRY(builder.CheckBudget());
    command.runtime = builder.Finish();
  }
  command.runtime = Relocated(std::move(command.runtime));
  command.program = Relocated(chain.program.place.Inside());
  return {};
}

Error NotInRuntimes(const std::string& name, const std::vector<std::string>& runtimes) {
  std::string list;
  for (const std::string& runtime : runtimes) {
    list += list.empty() ? runtime : ", " + runtime;
  }
  return {ErrorKind::kNotFound, "runtime.command.outside",
          name + ": command not found in the runtime " + list,
          "leave out --runtime to bring in what the command needs, or name a runtime that has it",
          ENOENT};
}

// Where `name` is inside a set, by the same rules as on the host.
std::string FindInSet(const RuntimeSet& set, const std::string& name) {
  if (name.find('/') != std::string::npos) {
    const Result<std::string> path = Absolute(name);
    return path.ok() && !FindInside(set, *path).empty() ? FindInside(set, *path) : std::string();
  }
  for (const std::string& directory : SearchPath()) {
    if (std::string found = FindInside(set, directory + "/" + name); !found.empty()) {
      return directory + "/" + name;
    }
  }
  return {};
}

// `words` run by a program of the set; "python" means python3 here too.
Status UseSet(const std::vector<std::string>& words, const std::vector<std::string>& runtimes,
              Command& command) {
  command.program = FindInSet(command.runtime, words.front());
  if (command.program.empty() && words.front() == "python") {
    command.program = FindInSet(command.runtime, "python3");
  }
  if (command.program.empty()) {
    return NotInRuntimes(words.front(), runtimes);
  }
  command.argv = words;
  command.runtimes = runtimes;
  return {};
}

// What the script names may lie beside it: the caller named the script.
void TrustOwnTree(const RealPaths::Place& script, RuntimeSet& set) {
  if (std::string tree = OwnTree(script); !tree.empty()) {
    set.own_trees.push_back(std::move(tree));
  }
}

// `typed` is the one of `scripts` that the caller named, if any; the others were named by a first line.
void BringScripts(RealPaths& paths, const std::vector<std::string>& scripts,
                  const std::string& typed, RuntimeSet& set) {
  RuntimeSet extra;
  for (const std::string& script : scripts) {
    if (const Result<RealPaths::Place> place = paths.Find(script); place.ok()) {
      extra.files.push_back({place->real, place->real, true, false, BindReason::kScript,
                             script == typed && !place->via_link(), place->via_link()});
      if (place->is_link()) {
        extra.links.emplace_back(place->Inside(), RelativeTarget(place->Inside(), place->real));
      }
    }
  }
  for (const auto& [name, target] : paths.followed()) {
    extra.links.emplace_back(name, RelativeTarget(name, target));
  }
  set = Relocated(Merge(std::move(set), std::move(extra)));
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
  if (script.shebang.interpreter.empty()) {
    return Error{ErrorKind::kNotExecutable, "runtime.command.format",
                 path + " is neither a program nor a script: its first line names no interpreter",
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
    scripts.insert(scripts.begin(), chain.scripts.begin(), chain.scripts.end());
  }
  TrustOwnTree(script.place, command.runtime);
  BringScripts(builder.paths(), scripts, path, command.runtime);
  command.argv.push_back(Relocated(script.place.Inside()));
  Append(command.argv, argv, 1);
  return command;
}

struct Extension {
  std::string_view ending;
  std::string_view interpreter;
};
constexpr std::array kExtensions = {
    Extension{".py", "python3"}, Extension{".js", "node"}, Extension{".mjs", "node"},
    Extension{".cjs", "node"},   Extension{".sh", "sh"},   Extension{".bash", "bash"},
    Extension{".pl", "perl"},    Extension{".ts", "node"}, Extension{".mts", "node"},
    Extension{".cts", "node"},
};

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
  if (!runtimes.empty()) {
    Command command;
    TRY_ASSIGN(command.runtime, ResolveRuntimes(runtimes, options));
    Status used = UseSet(argv, runtimes, command);
    if (used.ok()) {
      return command;
    }
    if (!is_path) {
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

Result<Command> ResolveScript(const std::string& file, const std::vector<std::string>& runtimes,
                              const ResolveOptions& options) {
  TRY_ASSIGN(const std::string path, Absolute(file));
  SetBuilder builder;
  Result<Program> script = OpenProgram(builder.paths(), path, NeedX::kNo, file);
  if (!script.ok()) {
    return std::move(script.error());
  }
  Command command;
  if (!script->is_script) {
    if (!runtimes.empty()) {
      TRY_ASSIGN(command.runtime, ResolveRuntimes(runtimes, options));
      command.runtimes = runtimes;
    }
    // The copy that is executed lies elsewhere: what it needs by $ORIGIN beside itself does not come with it.
    script->named_by_caller = true;
    TRY(builder.AddProgram(*script));
    TRY(builder.CheckBudget());
    RuntimeSet own = builder.Finish();
    std::erase_if(own.files,
                  [&](const RuntimeFile& entry) { return entry.inside == script->place.real; });
    command.runtime = Relocated(Merge(std::move(command.runtime), std::move(own)));
    return command;
  }
  std::vector<std::string> words;
  if (!script->shebang.interpreter.empty()) {
    TRY_ASSIGN(words, InterpreterOf(script->shebang, file));
  } else {
    const auto known =
        std::find_if(kExtensions.begin(), kExtensions.end(), [&](const Extension& extension) {
          return file.size() > extension.ending.size() && file.ends_with(extension.ending);
        });
    if (known == kExtensions.end()) {
      return Refused(
          "runtime.script.unknown", file + ": cannot tell what runs it",
          "give it a first line such as #!/usr/bin/env python3, or one of the endings "
          ".py .js .mjs .cjs .ts .mts .cts .sh .bash .pl, or use: coffer run -- COMMAND");
    }
    words = {std::string(known->interpreter)};
  }
  if (!runtimes.empty()) {
    TRY_ASSIGN(command.runtime, ResolveRuntimes(runtimes, options));
    TRY(UseSet(words, runtimes, command));
    return command;
  }
  TRY_ASSIGN(Chain chain, FollowInterpreter(builder.paths(), std::move(words), file));
  TRY(AddDefaultSet(builder, chain, options, command));
  TrustOwnTree(script->place, command.runtime);
  command.argv = std::move(chain.before);
  if (!chain.scripts.empty()) {
    BringScripts(builder.paths(), chain.scripts, /*typed=*/{}, command.runtime);
  }
  return command;
}

}  // namespace coffer::isolation
