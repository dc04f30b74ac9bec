// SPDX-License-Identifier: Apache-2.0
//
// A Volume is a file system of fixed size in a file, mounted on a directory: what is written there is bounded by the
// kernel, in bytes and in number of files, over all writers and all of its life.
//
// The image is a sparse ext4 file that only root can open, so its structures are written by this
// host's kernel and by mke2fs alone; a payload writes files in it, never its blocks. Freed blocks
// are given back to the host (`discard`). It is mounted without set-uid bits and without devices.
// The loop device goes away with the mount (LO_FLAGS_AUTOCLEAR), and so does the lock on the image,
// which the device's descriptor holds: no image is ever mounted twice, also not by the next daemon
// while the mounts of a killed one are still going away.
//
// Needs root, loop devices and mke2fs. Where one of them is missing Open fails with code kNoVolumes, and the caller
// watches the directory instead. It does not bound what the host's disk holds: images are sparse, and all of them
// together can be larger than the disk.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "base/clock.h"
#include "base/result.h"

namespace coffer::limits {

inline constexpr const char* kNoVolumes = "limits.volume.unavailable";
inline constexpr const char* kVolumeBusy = "limits.volume.busy";

// One file for every 4 KiB, so that a volume cannot be used up by empty files alone.
constexpr uint64_t VolumeFiles(uint64_t bytes) { return bytes / 4096; }

struct VolumeRequest {
  int images = -1;     // directory of the images, root's alone
  int mounts = -1;     // directory of the directories that volumes cover
  std::string name;    // of the image, and of the directory that it covers
  uint64_t bytes = 0;  // what files can hold; the image is larger by the file system's own tables
  uid_t owner = 0;     // of the directory that is seen
  Nanos patience = std::chrono::seconds(10);  // for an image that is still mounted elsewhere
};

// Makes the image if it is not there, and mounts it if it is not mounted. The directory must be there; a link in its
// place is refused. A new image of an attempt that failed is removed.
Status OpenVolume(const VolumeRequest& request);

// Unmounts (processes that still hold files keep them until they end) and removes the image. Not there: no error.
Status CloseVolume(int images, int mounts, const std::string& name);

// Whether `name` in `mounts` is a mount: it lies on another device than `mounts` itself.
bool IsMounted(int mounts, const std::string& name);

}  // namespace coffer::limits
