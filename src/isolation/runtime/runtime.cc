// SPDX-License-Identifier: Apache-2.0
#include "isolation/runtime/runtime.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/path_words.h"
#include "isolation/opened_runtime.h"
#include "isolation/runtime/cached_recipe.h"
#include "isolation/runtime/recipes.h"
#include "isolation/runtime/resolution_cache.h"
#include "policy/manifest/mistake.h"

namespace coffer::isolation {

namespace {

std::string KnownNames() {
  std::string names;
  for (const std::string_view name : RuntimeNames()) {
    names += names.empty() ? "" : ", ";
    names += name;
  }
  return names;
}

}  // namespace

std::string DefaultCacheDir() {
  if (::geteuid() == 0) {
    return "/var/cache/coffer";
  }
  const char* const cache = ::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && cache[0] == '/') {
    return std::string(cache) + "/coffer";
  }
  const char* const home = ::getenv("HOME");
  return home != nullptr && home[0] == '/' ? std::string(home) + "/.cache/coffer" : std::string();
}

const std::vector<std::string_view>& RuntimeNames() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> all;
    for (const Recipe& recipe : Recipes()) {
      all.push_back(recipe.name);
    }
    return all;
  }();
  return names;
}

namespace {

// The recipe for the real program; remembered where only root can change what it consists of.
Result<RuntimeSet> ResolveReal(const Recipe& recipe, const std::string& program_path,
                               NamedBy named_by, const ResolveOptions& options) {
  const bool cached = options.use_cache && !recipe.program.empty();
  const ResolutionCache cache(
      cached ? options.cache_dir.empty() ? DefaultCacheDir() : options.cache_dir : std::string());
  const std::string key = std::string(recipe.name) + " " + program_path;
  if (cached) {
    if (std::optional<RuntimeSet> set = cache.Find(key)) {
      return std::move(*set);
    }
  }
  // Observed before anything is read: a change in between makes the answer stale, not wrong.
  SetBuilder builder;
  Program program;
  if (!recipe.program.empty()) {
    builder.Watch(program_path);
    builder.Watch("/etc/ld.so.cache");
    TRY_ASSIGN(program, OpenProgram(builder.paths(), program_path));
    program.named_by_caller = named_by == NamedBy::kCaller;
    if (program.is_script) {
      return Error{ErrorKind::kHost, "runtime.wrapped",
                   PathInWords(program_path) + " is a script, not the program of the runtime " +
                       std::string(recipe.name),
                   "install the package " + std::string(recipe.package), 0};
    }
    TRY(builder.AddProgram(program));
  }
  TRY(recipe.add(builder, program));
  TRY(builder.CheckBudget());
  RuntimeSet set = builder.Finish();
  if (cached && IsAllSystem(set)) {
    cache.Keep(key, builder.witnesses(), set);
  }
  return set;
}

}  // namespace

Result<RuntimeSet> ResolveRecipe(const Recipe& recipe, const std::string& program_path,
                                 NamedBy named_by, const ResolveOptions& options) {
  if (recipe.program.empty()) {
    return ResolveReal(recipe, program_path, named_by, options);
  }
  // A name of the program that lies elsewhere has its own surroundings (a virtual environment);
  // they are never remembered.
  SetBuilder beside;
  TRY_ASSIGN(const RealPaths::Place place, beside.paths().Find(program_path));
  if (!place.is_link()) {
    return ResolveReal(recipe, program_path, named_by, options);
  }
  TRY_ASSIGN(RuntimeSet real, ResolveReal(recipe, place.real,
                                          place.via_link() ? NamedBy::kFile : named_by, options));
  if (named_by == NamedBy::kCaller) {
    beside.AddOwnTree(place);
  }
  beside.AddLink(place.Inside(), RelativeTarget(place.Inside(), place.real));
  if (recipe.add_beside != nullptr) {
    recipe.add_beside(beside, place);
  }
  TRY(beside.CheckBudget());
  RuntimeSet names = beside.Finish(SetBuilder::Links::kAll);
  return Merge(std::move(real), std::move(names));
}

namespace {

Result<RuntimeSet> ResolveOne(const std::string& name, const ResolveOptions& options) {
  const Recipe* const recipe = FindRecipe(name);
  if (recipe == nullptr) {
    const std::string_view nearest = policy::NearestWord(name, RuntimeNames());
    return Refused("runtime.unknown", "there is no runtime called " + name,
                   (nearest.empty() ? "" : "did you mean " + std::string(nearest) + "? ") +
                       "known runtimes: " + KnownNames());
  }
  std::string program;
  if (!recipe->program.empty()) {
    program = FindSystemProgram(recipe->program);
    if (program.empty()) {
      return HostFault(
          "runtime.missing",
          "this host has no " + std::string(recipe->program) + " for the runtime " + name,
          "apt install " + std::string(recipe->package));
    }
  }
  return ResolveRecipe(*recipe, program, NamedBy::kFile, options);
}

}  // namespace

Result<RuntimeSet> ResolveRuntimes(const std::vector<std::string>& names,
                                   const ResolveOptions& options) {
  RuntimeSet all;
  for (const std::string& name : names) {
    TRY_ASSIGN(RuntimeSet set, ResolveOne(name, options));
    all = names.size() == 1 ? std::move(set) : Merge(std::move(all), std::move(set));
  }
  for (const std::string& name : options.optional_runtimes) {
    Result<RuntimeSet> set = ResolveOne(name, options);
    if (set.ok()) {
      all = Merge(std::move(all), std::move(set).value());
    } else if (set.error().kind != ErrorKind::kHost) {
      return set;
    }
  }
  return all;
}

void AddTerminfo(RuntimeSet& set) {
  for (const char* const path : {"/usr/lib/terminfo", "/usr/share/terminfo"}) {
    struct stat status{};
    if (FindInside(set, path).empty() && Stat(path, status) && S_ISDIR(status.st_mode)) {
      RuntimeFile tree{path, path, false, true};
      tree.optional = true;
      RuntimeSet extra;
      extra.files.push_back(std::move(tree));
      set = Merge(std::move(set), std::move(extra));
    }
  }
}

}  // namespace coffer::isolation
