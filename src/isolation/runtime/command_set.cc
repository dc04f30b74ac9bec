// SPDX-License-Identifier: Apache-2.0
#include "isolation/runtime/command_set.h"

#include <errno.h>

#include <algorithm>

#include "isolation/runtime/own_tree.h"
#include "isolation/runtime/relocate.h"

namespace coffer::isolation {

namespace {

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

}  // namespace

Error NotInRuntimes(const std::string& name, const std::vector<std::string>& runtimes) {
  std::string list;
  for (const std::string& runtime : runtimes) {
    list += list.empty() ? runtime : ", " + runtime;
  }
  const std::string with = FindRuntimeWith(BaseName(name));
  return {ErrorKind::kNotFound, "runtime.command.outside",
          name + ": command not found in the runtime " + list,
          with.empty() ? "no listed runtime has it: use --runtime host-usr (in a manifest: "
                         "dangerously_runtime = \"host-usr\")"
                       : "the runtime " + with + " has it: --runtime " + list + "," + with +
                             " (in a manifest: also = [\"" + with + "\"])",
          ENOENT};
}

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

bool ShowsWholeUsr(const std::vector<std::string>& runtimes, const ResolveOptions& options) {
  return options.own_programs &&
         std::find(runtimes.begin(), runtimes.end(), kHostUsr) != runtimes.end();
}

bool IsShown(RealPaths& paths, const RuntimeSet& set, const std::string& path) {
  const Result<RealPaths::Place> place = paths.Find(path);
  return place.ok() && !place->via_link() && !FindInside(set, path).empty();
}

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

void TrustOwnTree(const RealPaths::Place& script, RuntimeSet& set) {
  if (std::string tree = OwnTree(script); !tree.empty()) {
    set.own_trees.push_back(std::move(tree));
  }
}

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

void NameOwnProgram(Command& command) {
  if (!IsAtOrBelow(command.program, "/usr") && !IsAtOrBelow(command.program, "/bin")) {
    command.argv.front() = command.program;
  }
}

bool HostUsrIsSystems() {
  SystemPaths system;
  const Result<HostPath> usr = ExamineHostPath("/usr", BindReason::kRuntime, system);
  return usr.ok() && usr->path_class == PathClass::kSystem;
}

}  // namespace coffer::isolation
