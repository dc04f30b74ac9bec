// SPDX-License-Identifier: Apache-2.0
#include "call/run/project_path.h"

#include <stdlib.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "isolation/runtime/mounted_command.h"
#include "isolation/runtime/real_path.h"

namespace coffer::call {
namespace {

constexpr const char* kInterpreters[] = {"python3", "python", "node"};
// Virtual environments where `uv run` and Makefiles look for them, whatever PATH says. Often only one of the names is
// there.
constexpr const char* kEnvironmentPythons[] = {".venv/bin/python3", ".venv/bin/python",
                                               "venv/bin/python3", "venv/bin/python"};

// Whether the call shows `directory` where it is on the host.
bool IsMounted(const RunRequest& request, const std::string& directory) {
  const auto shows = [&](const policy::Mount& mount) {
    return (mount.at.empty() || mount.at == mount.host) &&
           isolation::IsAtOrBelow(directory, mount.host);
  };
  return std::any_of(request.envelope.mounts.begin(), request.envelope.mounts.end(), shows);
}

// The caller's directories in the project and in mounts, each as the name of something in it.
std::vector<std::string> ProgramPlaces(const RunRequest& request) {
  std::vector<std::string> places;
  const char* const path = ::getenv("PATH");
  std::string_view rest = path == nullptr ? "" : path;
  while (!rest.empty()) {
    const size_t colon = rest.find(':');
    std::string directory(rest.substr(0, colon));
    rest.remove_prefix(colon == std::string_view::npos ? rest.size() : colon + 1);
    if (directory.starts_with('/')) {
      directory = isolation::Normalize(directory);
      if (IsMounted(request, directory)) {
        places.push_back(directory + "/");
      }
    }
  }
  return places;
}

}  // namespace

std::vector<std::string> AddProjectPath(const RunRequest& request,
                                        const isolation::RuntimeGrounds& grounds,
                                        const isolation::ResolveOptions& options,
                                        isolation::Command& command) {
  std::vector<std::string> places;
  if (!request.envelope.mounts.empty()) {
    places = ProgramPlaces(request);
  }
  if (request.project.empty() && places.empty()) {
    return {};
  }
  if (std::find(command.runtimes.begin(), command.runtimes.end(), isolation::kHostUsr) ==
      command.runtimes.end()) {
    return places;  // named runtimes are all that the call has
  }
  // Its inside name, if it may be shown; then the set has what it needs.
  const auto add = [&](Result<isolation::NamedOnPath> found) -> std::string {
    if (!found.ok() || found->inside.empty()) {
      return "";
    }
    const Result<isolation::OpenedRuntime> opened = isolation::OpenRuntime(found->set, grounds);
    if (!opened.ok() && opened.error().code != isolation::kStaleRuntime) {
      return "";
    }
    command.runtime = isolation::Merge(std::move(command.runtime), std::move(found->set));
    return found->inside;
  };
  for (const char* const name : kInterpreters) {
    if (std::string inside = add(isolation::FindOnPath(name, options, command.runtime));
        !inside.empty()) {
      places.push_back(std::move(inside));
    }
  }
  for (const char* const name : kEnvironmentPythons) {
    if (request.project.empty()) {
      break;
    }
    add(isolation::FindByPath(request.project + "/" + name, options, command.runtime));
  }
  return places;
}

}  // namespace coffer::call
