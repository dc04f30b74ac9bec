// SPDX-License-Identifier: Apache-2.0
#include "isolation/child/overlay.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/sys.h"
#include "isolation/child/mount_here.h"

namespace coffer::isolation {
namespace {

using raw::Arg;
using raw::Syscall;

long SetOption(long context, const char* key, const char* value) {
  return Syscall(SYS_fsconfig, context, FSCONFIG_SET_STRING, Arg(key), Arg(value), 0);
}

// A detached overlay over the current directory, or -errno.
long MountOverlay(const OverlayDirs& dirs, unsigned attributes) {
  const long context = Syscall(SYS_fsopen, Arg("overlay"), FSOPEN_CLOEXEC);
  if (context < 0) {
    return context;
  }
  // The current directory is the tree: a name would have to be escaped, and could mean something else.
  long answer = Syscall(SYS_fsconfig, context, FSCONFIG_SET_STRING, Arg("lowerdir"), Arg("."), 0);
  if (answer >= 0) {
    answer = SetOption(context, "upperdir", dirs.upper);
  }
  if (answer >= 0) {
    answer = SetOption(context, "workdir", dirs.work);
  }
  if (answer >= 0) {  // what user namespaces must use instead of trusted attributes (Linux 5.11)
    answer = Syscall(SYS_fsconfig, context, FSCONFIG_SET_FLAG, Arg("userxattr"), 0, 0);
  }
  if (answer >= 0) {
    answer = Syscall(SYS_fsconfig, context, FSCONFIG_CMD_CREATE, 0, 0, 0);
  }
  if (answer >= 0) {
    answer = Syscall(SYS_fsmount, context, FSMOUNT_CLOEXEC, attributes);
  }
  ::close(static_cast<int>(context));
  return answer;
}

}  // namespace

long CoverWithOverlay(const OverlayDirs& dirs, int tree, int root, unsigned attributes) {
  // The root of an overlay has the mode of the upper directory.
  struct stat info;
  if (fstat(tree, &info) != 0) {
    return -EIO;
  }
  long answer =
      Syscall(SYS_fchmodat, AT_FDCWD, Arg(dirs.upper), static_cast<long>(info.st_mode & 0777));
  if (answer >= 0) {
    answer = Syscall(SYS_fchdir, tree);
  }
  if (answer < 0) {
    return answer;
  }
  const long overlay = MountOverlay(dirs, attributes & ~static_cast<unsigned>(MOUNT_ATTR_RDONLY));
  answer = Syscall(SYS_fchdir, root);
  if (overlay < 0) {
    return overlay;
  }
  if (answer >= 0) {
    answer = Syscall(SYS_move_mount, overlay, Arg(""), tree, Arg(""),
                     MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
  }
  ::close(static_cast<int>(overlay));
  return answer;
}

long SealOverlays(const char* place) {
  return MountHere("tmpfs", place, MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, "");
}

}  // namespace coffer::isolation
