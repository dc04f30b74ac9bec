// SPDX-License-Identifier: Apache-2.0
#include "policy/manifest/surfaces.h"

#include <fmt/format.h>

#include <array>

#include "base/text.h"

namespace coffer::policy {

std::string_view SurfaceName(Surface surface) {
  static constexpr std::array<std::string_view, 5> kNames = {"network", "credentials", "approval",
                                                             "staged writes", "output schemas"};
  return kNames[static_cast<size_t>(surface)];
}

std::vector<Mistake> UnsupportedSurfaces(const Manifest& manifest,
                                         const std::set<Surface>& available) {
  MistakeList list;
  const auto add = [&](Surface surface, Position at, std::string_view what, std::string hint) {
    if (!available.contains(surface)) {
      list.Add(
          at,
          fmt::format("{} needs {}, which this version does not have", what, SurfaceName(surface)),
          std::move(hint));
    }
  };
  for (const NetworkRule& rule : manifest.network) {
    add(Surface::kNetwork, rule.position,
        fmt::format("network.allow of {}", rule.any_host       ? "any host"
                                           : rule.host.empty() ? "a host"
                                                               : Printable(rule.host)),
        "leave it out; the tool then runs without network");
  }
  for (const CredentialRule& rule : manifest.credentials) {
    add(Surface::kCredentials, rule.position,
        fmt::format("the credential {}", Printable(rule.name)), "leave it out");
  }
  for (const FileMount& mount : manifest.mounts) {
    if (mount.mode == MountMode::kStaged) {
      add(Surface::kStagedWrites, mount.position,
          fmt::format("the staged mount at {}", Printable(mount.at)),
          "use mode = \"read\", or \"write\" if every write may stand");
    }
  }
  // An author who wrote [approval] counts on a person, also where today's effect would not ask one.
  const bool declared = manifest.approval.declared;
  if (manifest.AsksForApproval() || manifest.approval.window > Nanos(0) ||
      (declared && manifest.approval.when != ApprovalWhen::kNever)) {
    const std::string what =
        declared ? fmt::format("approval.when = \"{}\"", ApprovalWhenName(manifest.approval.when))
                 : fmt::format("an effect that is {}{}",
                               manifest.tool.effect_declared ? "" : "not declared, and so ",
                               EffectName(manifest.tool.effect));
    add(Surface::kApproval,
        declared ? manifest.approval.position : manifest.PlaceOf("/tool/effect"), what,
        declared ? "write when = \"never\" if calls may run without approval"
                 : "declare effect = \"read-only\" or \"reversible\" if that is true; or "
                   "[approval] when = "
                   "\"never\" if calls may run without approval");
  }
  if (!manifest.output_schema.empty()) {
    add(Surface::kOutputSchema, manifest.PlaceOf("/output/schema"), "output.schema",
        "leave it out");
  }
  return list.Take();
}

}  // namespace coffer::policy
