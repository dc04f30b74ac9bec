// SPDX-License-Identifier: Apache-2.0
//
// What lies around a project, shown read-only: `--project REPO/sub --ro REPO`. Then git finds its repository, and a
// workspace's root is there (ADR 80).
//
// Only the caller's own words bring it in, and it is a mount like others: no file of the project or above it decides
// that it is shown. The project lies in it, writable, at its own place. Every directory between the two is a mount of
// itself, so nothing that is renamed on the way leads the project's mounts elsewhere.
#pragma once

#include <string>
#include <vector>

#include "isolation/compose.h"
#include "policy/envelope.h"

namespace coffer::call {

// Puts mounts that lie around a project first, then the directories between. What is neither stays in its order.
Status PutAroundProjects(const policy::Envelope& envelope,
                         std::vector<isolation::OpenedMount>& mounts);

// Whether a mount shows `path` of the host where it is there.
bool IsShownInPlace(const std::string& path, const std::vector<isolation::OpenedMount>& mounts);

}  // namespace coffer::call
