// SPDX-License-Identifier: Apache-2.0
#include "call/tool_on_host.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/quantity.h"
#include "base/text.h"
#include "isolation/runtime/runtime.h"
#include "limits/least.h"

namespace coffer::call {
namespace {

bool IsKnown(const std::string& runtime) {
  const std::vector<std::string_view>& names = isolation::RuntimeNames();
  return std::find(names.begin(), names.end(), runtime) != names.end();
}

void CheckLimits(const policy::Manifest& manifest, std::vector<policy::Mistake>& mistakes) {
  if (const uint64_t least = limits::LeastMemory(0); manifest.limits.memory < least) {
    mistakes.push_back({manifest.PlaceOf("/limits/memory"),
                        fmt::format("limits.memory: {} is too small to start a program",
                                    FormatSize(manifest.limits.memory)),
                        fmt::format("the least is memory = \"{}\"", FormatSize(least))});
  }
  if (manifest.limits.open_files < limits::kLeastOpenFiles) {
    mistakes.push_back({manifest.PlaceOf("/limits/open_files"),
                        fmt::format("limits.open_files: {} are too few to start a program",
                                    manifest.limits.open_files),
                        fmt::format("the least is open_files = {}", limits::kLeastOpenFiles)});
  }
}

// Further runtimes may be missing on the host, but not from the list of those there are.
bool CheckNames(const policy::Manifest& manifest, std::vector<policy::Mistake>& mistakes) {
  bool known = true;
  const auto check = [&](const std::string& runtime, std::string_view pointer) {
    if (!IsKnown(runtime)) {
      const Error error = isolation::ResolveRuntimes({runtime}).error();
      mistakes.push_back({manifest.PlaceOf(pointer), Printable(error.message), error.hint});
      known = false;
    }
  };
  check(manifest.run.runtime, "/run/runtime");
  for (const std::string& runtime : manifest.run.also) {
    check(runtime, "/run/also");
  }
  return known;
}

}  // namespace

std::vector<policy::Mistake> CheckToolOnHost(const policy::Manifest& manifest) {
  std::vector<policy::Mistake> mistakes;
  CheckLimits(manifest, mistakes);
  if (manifest.run.runtime.empty() || !CheckNames(manifest, mistakes)) {
    return mistakes;
  }
  if (const Result<isolation::RuntimeSet> set = isolation::ResolveRuntimes({manifest.run.runtime});
      !set.ok()) {
    mistakes.push_back(
        {manifest.PlaceOf("/run/runtime"), Printable(set.error().message), set.error().hint});
    return mistakes;
  }
  if (manifest.run.argv.empty() || manifest.run.argv.front().words.empty()) {
    return mistakes;
  }
  const policy::Word& program = manifest.run.argv.front().words.front();
  if (program.kind != policy::WordKind::kLiteral) {
    return mistakes;
  }
  isolation::ResolveOptions options;
  options.runtimes_only = true;
  options.optional_runtimes = manifest.run.also;
  for (const policy::FileMount& mount : manifest.mounts) {
    options.mounts.push_back({mount.host, mount.at});
  }
  if (const Result<isolation::Command> command =
          isolation::ResolveCommand({program.text}, {manifest.run.runtime}, options);
      !command.ok()) {
    mistakes.push_back({program.at, Printable(command.error().message), command.error().hint});
  }
  return mistakes;
}

}  // namespace coffer::call
