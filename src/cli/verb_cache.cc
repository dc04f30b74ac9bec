// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/quantity.h"
#include "base/text.h"
#include "call/run/cache_dirs.h"
#include "cli/text_verb.h"
#include "cli/verbs.h"
#include "isolation/caller_path.h"

namespace coffer::cli {
namespace {

constexpr std::string_view kCacheUsage =
    R"(What `coffer run --project DIR --cache NAME` keeps between calls: one directory for each project and name.

Usage:
  coffer cache list [--json]                         whose they are, and how large
  coffer cache clear [NAME...] [--project DIR]       those of one project (the current directory)
  coffer cache clear [NAME...] --all                 those of every project

Names: pip, npm, ccache. One that has more than 4 GiB when a call starts is emptied by itself.
)";

constexpr call::FlagSpec kCacheFlags[] = {{"--project", true}, {"--all", false}};

Result<std::string> ListCached(const call::VerbFlags& flags) {
  TRY_ASSIGN(const std::vector<call::CacheEntry> caches, call::ListCaches());
  Json list = Json::array();
  std::string text = fmt::format("{:<8}  {:>10}  {}\n", "CACHE", "SIZE", "PROJECT");
  for (const call::CacheEntry& cache : caches) {
    list.push_back({{"project", cache.project}, {"cache", cache.name}, {"bytes", cache.bytes}});
    text += fmt::format("{:<8}  {:>10}  {}\n", cache.name, FormatSize(cache.bytes),
                        Printable(cache.project));
  }
  return flags.json() ? PrintJson(Json{{"caches", std::move(list)}}, 2) + "\n" : text;
}

Result<std::string> Clear(const call::VerbFlags& flags) {
  const std::vector<std::string> names(flags.words().begin() + 1, flags.words().end());
  if (flags.Has("--all") && flags.Has("--project")) {
    return Refused("policy.usage", "--all and --project exclude each other");
  }
  std::string project;
  if (!flags.Has("--all")) {
    TRY_ASSIGN(const isolation::CallerPath path,
               isolation::ResolveCallerPath(flags.Value("--project", "."), policy::Access::kRead));
    project = path.path;
  }
  TRY_ASSIGN(const size_t cleared, call::ClearCaches(project, names));
  return flags.json() ? PrintJson(Json{{"cleared", cleared}}) + "\n"
                      : fmt::format("{} removed\n", cleared);
}

Result<std::string> ActCache(const call::VerbFlags& flags) {
  const std::string& verb = flags.words().front();
  if (verb == "list" && flags.words().size() == 1) {
    return ListCached(flags);
  }
  if (verb == "clear") {
    return Clear(flags);
  }
  return UnknownAction("cache", verb, {"list", "clear"});
}

}  // namespace

int CacheVerb(std::span<const std::string_view> words) {
  return RunTextVerb("cache", kCacheUsage, kCacheFlags, words, ActCache);
}

}  // namespace coffer::cli
