// SPDX-License-Identifier: Apache-2.0
//
// Mounts, old and new API, and the calls that lead around them. The control runs in a mount namespace of its own.
#include <fcntl.h>
#include <linux/mount.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "probe.h"

namespace probe {
namespace {

constexpr unsigned long kMsRemount = 32, kMsBind = 4096, kMsRec = 16384;

// `mount-all DIR`: DIR is a writable directory to mount on.
int MountAll(int argc, char** argv) {
  const char* dir = argc > 1 ? argv[1] : "/tmp";
  const auto attempt = [](const char* label, auto&& action) {
    const pid_t child = fork();
    if (child == 0) {
      ReachVerdict(label, action());
      _exit(0);
    }
    waitpid(child, nullptr, 0);
  };
  for (const char* type :
       {"tmpfs", "proc", "sysfs", "cgroup", "cgroup2", "mqueue", "devpts", "overlay"}) {
    char label[32];
    snprintf(label, sizeof label, "mount-%s", type);
    attempt(label, [&] {
      return Call(SYS_mount, "none", dir, type, 0UL,
                  strcmp(type, "cgroup") == 0 ? "pids" : nullptr);
    });
  }
  attempt("mount-bind",
          [&] { return Call(SYS_mount, "/", dir, nullptr, kMsBind | kMsRec, nullptr); });
  attempt("mount-remount-rw",
          [&] { return Call(SYS_mount, nullptr, "/", nullptr, kMsRemount | kMsBind, nullptr); });
  attempt("umount2", [&] { return Call(SYS_umount2, "/proc", 2 /* MNT_DETACH */); });
  attempt("fsopen", [&] { return Call(SYS_fsopen, "tmpfs", 0); });
  attempt("fsconfig", [&] {
    return Call(SYS_fsconfig, Call(SYS_fsopen, "tmpfs", 0), FSCONFIG_CMD_CREATE, 0L, 0L, 0);
  });
  attempt("fsmount", [&] {
    const long fs = Call(SYS_fsopen, "tmpfs", 0);
    Call(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, 0L, 0L, 0);
    return Call(SYS_fsmount, fs, 0, 0);
  });
  attempt("fspick", [&] { return Call(SYS_fspick, AT_FDCWD, "/", 0); });
  attempt("open_tree",
          [&] { return Call(SYS_open_tree, AT_FDCWD, "/", OPEN_TREE_CLONE | AT_RECURSIVE); });
  attempt("move_mount", [&] {
    const long tree = Call(SYS_open_tree, AT_FDCWD, "/", OPEN_TREE_CLONE | AT_RECURSIVE);
    return Call(SYS_move_mount, tree, "", AT_FDCWD, dir, MOVE_MOUNT_F_EMPTY_PATH);
  });
  attempt("mount_setattr", [&] {
    struct mount_attr attr = {};
    attr.attr_set = MOUNT_ATTR_NOSUID;
    return Call(SYS_mount_setattr, AT_FDCWD, "/", 0, &attr, sizeof attr);
  });
  attempt("pivot_root", [&] { return Call(SYS_pivot_root, "/", "/"); });
  return 0;
}

// `handles DIR`: leave a mount through file handles (the "shocker" of CAP_DAC_READ_SEARCH).
int Handles(int argc, char** argv) {
  const char* dir = argc > 1 ? argv[1] : "/";
  struct {
    struct file_handle head;
    unsigned char bytes[128];
  } handle = {};
  handle.head.handle_bytes = sizeof handle.bytes;
  int mount_id = 0;
  const int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  ReachVerdict("name_to_handle_at",
               Call(SYS_name_to_handle_at, fd, "", &handle, &mount_id, AT_EMPTY_PATH));
  ReachVerdict("open_by_handle_at", Call(SYS_open_by_handle_at, fd, &handle, O_RDONLY));
  return 0;
}

// `fanotify`: the modern and the unprivileged form.
int Fanotify(int, char**) {
  ReachVerdict("class-content", Call(SYS_fanotify_init, 4, O_RDONLY));
  ReachVerdict("report-fid", Call(SYS_fanotify_init, 0x200, O_RDONLY));
  return 0;
}

constexpr Verb kVerbs[] = {
    {"mount-all", MountAll, "[DIR]"},
    {"handles", Handles, "[DIR]"},
    {"fanotify", Fanotify, ""},
};

}  // namespace

std::span<const Verb> MountVerbs() { return kVerbs; }

}  // namespace probe
