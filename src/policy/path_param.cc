// SPDX-License-Identifier: Apache-2.0
#include "policy/path_param.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.h"

namespace coffer::policy {
namespace {

constexpr size_t kMaxPath = 4000;
constexpr size_t kMaxComponent = 255;

Error Bad(std::string message, std::string_view place) {
  return Refused("policy.args.path", std::move(message),
                 fmt::format("write it relative to {}, such as notes/a.txt", place));
}

Status ResolveOne(const PathParameter& path, Json& value) {
  if (!value.is_string()) {
    return Refused("policy.args.path", fmt::format("{} is not a string", path.parameter));
  }
  Result<std::string> resolved = ResolveBeneath(path.mount, value.get_ref<const std::string&>());
  if (!resolved.ok()) {
    resolved.error().message = fmt::format("{}: {}", path.parameter, resolved.error().message);
    return std::move(resolved.error());
  }
  if (path.access == Access::kWrite && *resolved == path.mount) {
    return Bad(fmt::format("{}: names the directory itself, not a file in it", path.parameter),
               path.mount);
  }
  value = std::move(*resolved);
  return {};
}

}  // namespace

Result<std::string> ResolveBeneath(std::string_view place, std::string_view value) {
  if (value.empty()) {
    return Bad("an empty path", place);
  }
  if (value.size() > kMaxPath) {
    return Bad(fmt::format("a path of more than {} bytes", kMaxPath), place);
  }
  const bool control = std::any_of(value.begin(), value.end(),
                                   [](unsigned char c) { return c < 0x20 || c == 0x7f; });
  if (control || value.find('\\') != std::string_view::npos) {
    return Bad("a path with a control character or a backslash", place);
  }
  if (value.front() == '/' || value.front() == '~') {
    return Bad(fmt::format("\"{}\" is not a relative path", Printable(value)), place);
  }
  std::string resolved(place);
  for (size_t start = 0; start <= value.size();) {
    const size_t end = std::min(value.find('/', start), value.size());
    const std::string_view part = value.substr(start, end - start);
    start = end + 1;
    if (part.empty() || part == ".") {
      continue;
    }
    if (part == "..") {
      return Bad(fmt::format("\"{}\" leaves its directory", Printable(value)), place);
    }
    if (part.size() > kMaxComponent) {
      return Bad(fmt::format("a name of more than {} bytes", kMaxComponent), place);
    }
    resolved += '/';
    resolved += part;
  }
  return resolved;
}

Status ResolvePaths(const std::vector<PathParameter>& paths, Json& args) {
  for (const PathParameter& path : paths) {
    const auto found = args.find(path.parameter);
    if (found == args.end()) {
      continue;
    }
    if (!found->is_array()) {
      TRY(ResolveOne(path, *found));
      continue;
    }
    for (Json& item : *found) {
      TRY(ResolveOne(path, item));
    }
  }
  return {};
}

}  // namespace coffer::policy
