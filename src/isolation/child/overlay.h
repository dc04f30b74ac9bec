// SPDX-License-Identifier: Apache-2.0
//
// A read-only directory of the host behind an overlay of the boundary's own (ADR 47).
//
// The directory is the overlay's lower layer; the upper one is an empty tmpfs that is made
// read-only once the overlays stand. A file then has an inode of the boundary's: a lock taken
// inside is not one of the host's, a socket or fifo of the host is another one here, with nothing
// at its other end. Nothing can be written: the kernel would copy a file up first, and the upper
// layer refuses that. The mount itself is not read-only, so that a missing name is ENOENT and not
// EROFS.
//
// Contents and sizes are always the host's. Names and their rights are looked up once and remembered: what the host
// renames, replaces, creates or closes to readers during the call may not be seen.
//
// Runs in the child after clone: no heap, no locks, no formatting. 0 or -errno.
#pragma once

namespace coffer::isolation {

// Of one overlay: directories inside, on the tmpfs with the upper layers.
struct OverlayDirs {
  const char* upper;
  const char* work;
};

// Mounts an overlay on top of `tree`, which is attached in its place already. The current directory
// is `root` before and after.
long CoverWithOverlay(const OverlayDirs& dirs, int tree, int root, unsigned attributes);

// After the last one: nothing can be written through any of them.
long SealOverlays(const char* place);

}  // namespace coffer::isolation
