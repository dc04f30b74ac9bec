// SPDX-License-Identifier: Apache-2.0
#include "call/run/program_places.h"

#include <algorithm>

#include "isolation/compose.h"
#include "isolation/runtime/program.h"

namespace coffer::call {

std::vector<isolation::MountedPlace> MountedPlaces(const policy::Envelope& envelope) {
  std::vector<isolation::MountedPlace> places;
  for (const policy::Mount& mount : envelope.mounts) {
    Result<std::string> host = isolation::CleanPath(mount.host);
    const std::string at = mount.at.empty() && host.ok() ? *host : mount.at;
    if (host.ok() && !isolation::IsBoundaryPlace(at)) {  // that mount will be refused
      places.push_back({std::move(host).value(), at});
    }
  }
  return places;
}

bool HoldsMoreThanUsr(const isolation::RuntimeSet& set) {
  return std::any_of(set.files.begin(), set.files.end(), [](const isolation::RuntimeFile& file) {
    return !isolation::IsAtOrBelow(file.host, "/usr") && !isolation::IsAtOrBelow(file.host, "/etc");
  });
}

void AddToPath(const std::string& program, const policy::Envelope& envelope,
               std::vector<std::string>& env) {
  const std::string directory = program.substr(0, program.rfind('/'));
  const std::vector<std::string>& usual = isolation::SearchPath();
  const bool given = std::any_of(envelope.env.begin(), envelope.env.end(),
                                 [](const auto& variable) { return variable.first == "PATH"; });
  if (given || directory.empty() || directory.find(':') != std::string::npos ||
      std::find(usual.begin(), usual.end(), directory) != usual.end() ||
      isolation::IsAtOrBelow(directory, "/usr")) {
    return;
  }
  for (std::string& variable : env) {
    if (variable.starts_with("PATH=") && !variable.starts_with("PATH=" + directory + ":")) {
      variable.insert(std::string_view("PATH=").size(), directory + ":");
    }
  }
}

}  // namespace coffer::call
