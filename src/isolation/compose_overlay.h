// SPDX-License-Identifier: Apache-2.0
//
// Which read-only directories of the host lie behind an overlay (child/overlay.h), where the
// envelope asks for that: /usr, directories of the caller's that a runtime brings, and read-only
// mounts. Single files and the system's own directories of a listed runtime do not: an overlay
// needs a directory, and only root writes to the others.
#pragma once

#include "base/result.h"
#include "isolation/compose.h"
#include "isolation/directory_list.h"

namespace coffer::isolation {

bool BehindOverlay(const policy::Envelope& envelope, const HostPath& runtime);
bool BehindOverlay(const policy::Envelope& envelope, const OpenedMount& mount);

// kRefused if a single file is to be mounted: its locks would be the host's.
Status CheckOverlays(const policy::Envelope& envelope, const std::vector<OpenedMount>& mounts);

// Gives `bind` its two directories.
void PutBehindOverlay(BindMount& bind, RootPart& root);

// Their tmpfs, once all binds are known.
void AddOverlayPlace(RootPart& root, DirectoryList& dirs);

}  // namespace coffer::isolation
