// SPDX-License-Identifier: Apache-2.0
#include "call/workspace_room.h"

#include <fcntl.h>

#include <algorithm>

#include "base/sys.h"
#include "limits/tree_scan.h"
#include "limits/volume.h"

namespace coffer::call {
namespace {

// What a full session still gets, so that a call can run in it and remove something.
constexpr uint64_t kLeastBytes = 64ULL << 10;
constexpr uint64_t kLeastFiles = 16;
constexpr Nanos kScanTime = std::chrono::seconds(2);

uint64_t Left(uint64_t most, uint64_t used, uint64_t least) {
  return used >= most ? least : std::max(most - used, least);
}

}  // namespace

Status NarrowToWorkspace(const std::string& path, const store::Session& session,
                         policy::Limits& limits) {
  if (session.bytes == 0) {
    return {};
  }
  if (session.enforced) {
    const size_t slash = path.rfind('/');
    TRY_ASSIGN(const UniqueFd above,
               sys::OpenNoLinks(AT_FDCWD, path.substr(0, slash), O_RDONLY | O_DIRECTORY));
    if (!limits::IsMounted(above.get(), path.substr(slash + 1))) {
      return HostFault("store.workspace", "the files of the session are not mounted here",
                       "call it through the daemon, which mounts them");
    }
    return {};
  }
  TRY_ASSIGN(const UniqueFd dir, sys::OpenNoLinks(AT_FDCWD, path, O_RDONLY | O_DIRECTORY));
  TRY_ASSIGN(limits::DiskUse use, limits::ScanDisk(dir.get(), kScanTime));
  if (!use.complete()) {
    use = {UINT64_MAX, UINT64_MAX, use.end};  // what cannot be counted is too much
  }
  limits.disk = std::min(limits.disk, Left(session.bytes, use.bytes, kLeastBytes));
  // RLIMIT_FSIZE is the larger of the two, and the only wall here: the watch looks later.
  limits.tmp = std::min(limits.tmp, limits.disk);
  limits.inodes =
      std::min(limits.inodes, Left(limits::VolumeFiles(session.bytes), use.inodes, kLeastFiles));
  return {};
}

}  // namespace coffer::call
