// SPDX-License-Identifier: Apache-2.0
//
// Files of a project that are the caller's own settings: a repository of dot files, linked from the home directory.
//
// The shell, git and desktops read ~/.bashrc, ~/.gitconfig or ~/.config/autostart by themselves. Where those are links
// into the project, a payload that may write to the project would choose what the host runs next. The search covers
// links in the home directory whose names begin with a dot, and those in the directories of kPlaces, not deeper. A link
// to the project as a whole says nothing about its files, and is left out.
#pragma once

#include <string>
#include <vector>

#include "isolation/host_path.h"

namespace coffer::call {

// The links, absolute. What they lead to need not be there.
std::vector<std::string> LinkedSettings(const isolation::HostPath& root);

}  // namespace coffer::call
