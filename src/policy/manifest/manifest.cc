// SPDX-License-Identifier: Apache-2.0
#include "policy/manifest/manifest.h"

#include <algorithm>
#include <array>

namespace coffer::policy {
namespace {

constexpr std::array<std::string_view, 4> kEffects = {"read-only", "reversible", "irreversible",
                                                      "privileged"};
constexpr std::array<std::string_view, 3> kWorkspaces = {"fresh", "session-read", "session-write"};
constexpr std::array<std::string_view, 3> kModes = {"read", "staged", "write"};
constexpr std::array<std::string_view, 5> kWhens = {"never", "flagged", "irreversible", "diff",
                                                    "always"};

bool CannotBeTakenBack(Effect effect) {
  return effect == Effect::kIrreversible || effect == Effect::kPrivileged;
}

}  // namespace

std::string_view EffectName(Effect effect) { return kEffects[static_cast<size_t>(effect)]; }

bool IsToolName(std::string_view name) {
  const auto lower = [](char c) { return c >= 'a' && c <= 'z'; };
  return !name.empty() && name.size() <= 63 && lower(name.front()) && name.back() != '-' &&
         std::all_of(name.begin(), name.end(),
                     [&](char c) { return lower(c) || (c >= '0' && c <= '9') || c == '-'; });
}

std::string_view WorkspaceName(Workspace workspace) {
  return kWorkspaces[static_cast<size_t>(workspace)];
}

std::string_view MountModeName(MountMode mode) { return kModes[static_cast<size_t>(mode)]; }

std::string_view ApprovalWhenName(ApprovalWhen when) { return kWhens[static_cast<size_t>(when)]; }

Position Manifest::PlaceOf(std::string_view pointer) const {
  while (true) {
    const auto found =
        std::lower_bound(places.begin(), places.end(), pointer,
                         [](const auto& place, std::string_view p) { return place.first < p; });
    if (found != places.end() && found->first == pointer) {
      return found->second;
    }
    const size_t slash = pointer.rfind('/');
    if (slash == std::string_view::npos) {
      return {};
    }
    pointer = pointer.substr(0, slash);
  }
}

std::vector<std::pair<std::string, Position>> Manifest::host_paths() const {
  std::vector<std::pair<std::string, Position>> paths;
  paths.reserve(mounts.size());
  for (const FileMount& mount : mounts) {
    paths.emplace_back(mount.host, mount.position);
  }
  return paths;
}

bool Manifest::AsksForApproval() const {
  switch (approval.when) {
    case ApprovalWhen::kNever:
      return false;
    case ApprovalWhen::kIrreversible:
      return CannotBeTakenBack(tool.effect);
    case ApprovalWhen::kFlagged:
    case ApprovalWhen::kDiff:
    case ApprovalWhen::kAlways:
      break;
  }
  return true;
}

bool Manifest::NeedsIdempotencyKey() const {
  return tool.needs_key.value_or(CannotBeTakenBack(tool.effect));
}

}  // namespace coffer::policy
