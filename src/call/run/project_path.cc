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

constexpr const char* kInterpreters[] = {"python3", "node"};

// The caller's directories in the project, each as the name of something in it.
std::vector<std::string> ProgramPlaces(const std::string& project) {
  std::vector<std::string> places;
  const char* const path = ::getenv("PATH");
  std::string_view rest = path == nullptr ? "" : path;
  while (!rest.empty()) {
    const size_t colon = rest.find(':');
    std::string directory(rest.substr(0, colon));
    rest.remove_prefix(colon == std::string_view::npos ? rest.size() : colon + 1);
    if (directory.starts_with('/')) {
      directory = isolation::Normalize(directory);
      if (isolation::IsAtOrBelow(directory, project)) {
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
  if (request.project.empty()) {
    return {};
  }
  std::vector<std::string> places = ProgramPlaces(request.project);
  if (std::find(command.runtimes.begin(), command.runtimes.end(), isolation::kHostUsr) ==
      command.runtimes.end()) {
    return places;  // named runtimes are all that the call has
  }
  for (const char* const name : kInterpreters) {
    Result<isolation::NamedOnPath> found = isolation::FindOnPath(name, options, command.runtime);
    if (!found.ok() || found->inside.empty()) {
      continue;
    }
    const Result<isolation::OpenedRuntime> opened = isolation::OpenRuntime(found->set, grounds);
    if (!opened.ok() && opened.error().code != isolation::kStaleRuntime) {
      continue;
    }
    command.runtime = isolation::Merge(std::move(command.runtime), std::move(found->set));
    places.push_back(found->inside);
  }
  return places;
}

}  // namespace coffer::call
