// SPDX-License-Identifier: Apache-2.0
//
// What runs the script FILE: its first line, or else its ending.
#include <algorithm>
#include <array>

#include "base/path_words.h"
#include "isolation/runtime/command_set.h"
#include "isolation/runtime/mounted_command.h"
#include "isolation/runtime/relocate.h"

namespace coffer::isolation {

namespace {

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

// Languages without a recipe: what a person would type.
constexpr std::array kCommandFor = {
    Extension{".rb", "ruby"},   Extension{".java", "java"},  Extension{".go", "go run"},
    Extension{".lua", "lua"},   Extension{".tcl", "tclsh"},  Extension{".php", "php"},
    Extension{".R", "Rscript"}, Extension{".awk", "awk -f"}, Extension{".jl", "julia"},
};

template <size_t kCount>
const Extension* FindExtension(const std::array<Extension, kCount>& known,
                               const std::string& file) {
  const auto found = std::find_if(known.begin(), known.end(), [&](const Extension& extension) {
    return file.size() > extension.ending.size() && file.ends_with(extension.ending);
  });
  return found == known.end() ? nullptr : &*found;
}

Error UnknownScript(const std::string& file) {
  std::string hint =
      "give it a first line such as #!/usr/bin/env python3, or one of the endings "
      ".py .js .mjs .cjs .ts .mts .cts .sh .bash .pl, or use: coffer run -- COMMAND";
  if (const Extension* const other = FindExtension(kCommandFor, file)) {
    hint = "coffer run --in " + file + " -- " + std::string(other->interpreter) + " " +
           file.substr(file.rfind('/') + 1);
  }
  return Refused("runtime.script.unknown", PathInWords(file) + ": cannot tell what runs it",
                 std::move(hint));
}

}  // namespace

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
    const Extension* const known = FindExtension(kExtensions, file);
    if (known == nullptr) {
      return script->shebang.windows ? EndsInCarriageReturn(file) : UnknownScript(file);
    }
    words = {std::string(known->interpreter)};
  }
  if (!runtimes.empty() && !ShowsWholeUsr(runtimes, options)) {
    TRY_ASSIGN(command.runtime, ResolveRuntimes(runtimes, options));
    TRY(UseSet(words, runtimes, command));
    return command;
  }
  TRY_ASSIGN(Chain chain, FollowInterpreter(builder.paths(), std::move(words), file));
  RuntimeSet beside;
  if (ShowsWholeUsr(runtimes, options) && HostUsrIsSystems()) {
    TRY_ASSIGN(beside, ResolveRuntimes(runtimes, options));
  }
  const std::optional<std::string> mounted = InsideOf(chain.path, options.mounts);
  if (mounted && chain.scripts.empty() && !beside.files.empty()) {
    // The environment of a project: run where it is, with all that lies beside it.
    command.runtimes = runtimes;
    command.runtime = std::move(beside);
    TRY(UseMounted(*mounted, chain.path, options, command));
    command.argv = std::move(chain.before);
    command.argv.front() = *mounted;
    return command;
  }
  if (chain.scripts.empty() && IsShown(builder.paths(), beside, chain.path)) {
    command.program = FindInside(beside, chain.path);
  } else {
    TRY(AddDefaultSet(builder, chain, options, command));
    TrustOwnTree(script->place, command.runtime);
    if (!chain.scripts.empty()) {
      BringScripts(builder.paths(), chain.scripts, /*typed=*/{}, command.runtime);
    }
  }
  if (!beside.files.empty()) {
    command.runtimes.insert(command.runtimes.begin(), runtimes.begin(), runtimes.end());
    command.runtime = Merge(std::move(beside), std::move(command.runtime));
  }
  command.argv = std::move(chain.before);
  NameOwnProgram(command);
  return command;
}

}  // namespace coffer::isolation
