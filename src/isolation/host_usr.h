// SPDX-License-Identifier: Apache-2.0
//
// Which parts of the host's /usr stay hidden when it is shown whole.
//
// /usr is one mount, read-only, nosuid and nodev. Packages own nearly all of it. What another user
// than root owns or can write, or not every user may read, is hidden: each such directory is
// covered by an empty one, each such file, fifo or socket by an unusable device. /usr and
// /usr/local are looked at, and one level further down in /usr/local (lib, share, src and what is
// not of the usual layout), which is where administrators hand places to other users. Deeper places
// are not looked at: there the modes of the files decide, as for every program of the caller.
// /usr/local/etc holds configuration, and is hidden unless empty.
#pragma once

#include <string>
#include <vector>

#include "isolation/system_paths.h"

namespace coffer::isolation {

// Relative to /usr: "local/etc".
struct HiddenUsr {
  std::vector<std::string> directories;
  std::vector<std::string> files;
};

// A directory that cannot be listed is hidden.
HiddenUsr FindHiddenUsr(SystemPaths& system);

// The rest as absolute paths, none of which holds a hidden part: for the process level, which cannot cover.
std::vector<std::string> ShownPartsOfUsr(const HiddenUsr& hidden);

}  // namespace coffer::isolation
