// SPDX-License-Identifier: Apache-2.0
//
// A prepared tree is a directory that many boundaries show, made once and mounted read-only, instead of being made again
// for every call: the nodes of /dev, the files of a made-up /etc, the places in /usr where a runtime is mounted. That saves
// each call forty system calls, and a shell more than a hundred.
//
// Its name is the hash of what it holds, so a tree never changes: it is there, complete, or it is not. The trees lie in a
// directory of root's that nobody else can write to, below /run, and are gone after a reboot. Nothing in them is a
// caller's but the names of his runtime's files. There are at most kMostTrees, so nobody fills /run with them. Where
// one cannot be had (no /run, no right to make devices), the boundary makes the same files for itself: nothing depends on
// trees but time.
//
// What they do not hide: boundaries that show the same tree can see each other's locks and watches on it, as with every
// library of the host.
#pragma once

#include <string>

#include "base/result.h"
#include "base/unique_fd.h"
#include "isolation/plan.h"

namespace coffer::isolation {

inline constexpr const char* kPreparedTrees = "/run/coffer-trees";
inline constexpr size_t kMostTrees = 256;

// The /dev of every boundary without a terminal.
TreeContent DeviceTree();

// The tree as a detached mount: read-only, nosuid, noexec, and nodev unless it holds devices. Made if it is not there.
Result<UniqueFd> OpenPreparedTree(const TreeContent& content,
                                  const std::string& place = kPreparedTrees);

}  // namespace coffer::isolation
