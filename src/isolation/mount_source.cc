// SPDX-License-Identifier: Apache-2.0
#include "isolation/mount_source.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/mount.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sys.h"

namespace coffer::isolation {

using raw::Arg;
using raw::Syscall;

Result<UniqueFd> MakeIdMap(const HostPath& path, uint32_t boundary_uid) {
  // The kernel takes an id map for a mount as a user namespace (mount_setattr(2), MOUNT_ATTR_IDMAP,
  // Linux 5.12). A process has to live in it until it is opened.
  clone_args args{};
  int pidfd = -1;
  args.flags = CLONE_NEWUSER | CLONE_PIDFD;
  args.pidfd = reinterpret_cast<uint64_t>(&pidfd);
  args.exit_signal = SIGCHLD;
  const pid_t supervisor = ::getpid();
  const long pid = Syscall(SYS_clone3, Arg(&args), sizeof(args));
  if (pid == 0) {
    // Only its namespace is wanted. It must not outlive us, also if we died before it could say so.
    if (Syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || ::getppid() != supervisor) {
      ::_exit(1);
    }
    for (;;) {
      ::pause();
    }
  }
  if (pid < 0) {
    return sys::ErrnoError("isolation.idmap", "cannot make a user namespace for id-mapping", pid);
  }
  const UniqueFd child(pidfd);
  const std::string proc = fmt::format("/proc/{}/", pid);
  Status wrote = sys::WriteFile(proc + "uid_map", fmt::format("{} {} 1", path.owner, boundary_uid));
  if (wrote.ok()) {
    wrote = sys::WriteFile(proc + "gid_map", fmt::format("{} {} 1", path.group, boundary_uid));
  }
  Result<UniqueFd> space = sys::Open(proc + "ns/user", O_RDONLY);
  (void)::syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, 0, 0);
  (void)::syscall(SYS_waitid, P_PIDFD, pidfd, 0, WEXITED | __WALL, 0);
  TRY(std::move(wrote));
  return space;
}

Result<UniqueFd> CloneTree(const HostPath& path) {
  const long tree = Syscall(SYS_open_tree, path.fd.get(), Arg(""),
                            OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);
  if (tree < 0) {
    return sys::ErrnoError("isolation.mount.clone", fmt::format("cannot mount {}", path.path),
                           tree);
  }
  return UniqueFd(static_cast<int>(tree));
}

Result<UniqueFd> CloneTree(const HostPath& path, const UniqueFd& id_map, policy::Access access) {
  TRY_ASSIGN(UniqueFd owned, CloneTree(path));
  mount_attr attributes{};
  attributes.attr_set = MOUNT_ATTR_IDMAP;
  attributes.userns_fd = static_cast<uint64_t>(id_map.get());
  const long answer = Syscall(SYS_mount_setattr, owned.get(), Arg(""), AT_EMPTY_PATH,
                              Arg(&attributes), sizeof(attributes));
  // Without an id map a file can still be read as its mode allows. Only writing needs the owner's
  // uid.
  if (answer < 0 && access == policy::Access::kWrite) {
    Error error = sys::ErrnoError("isolation.mount.idmap",
                                  fmt::format("cannot id-map {}", path.path), answer);
    error.hint =
        "its file system has no id-mapped mounts on this kernel (tmpfs has them from 6.3); "
        "run coffer as the owner of the directory, or use a directory on ext4, xfs or btrfs";
    return error;
  }
  return owned;
}

}  // namespace coffer::isolation
