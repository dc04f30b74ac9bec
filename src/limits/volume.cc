// SPDX-License-Identifier: Apache-2.0
#include "limits/volume.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/loop.h>
#include <linux/mount.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <vector>

#include "base/sys.h"
#include "base/unique_fd.h"

namespace coffer::limits {
namespace {

using raw::Arg;
using raw::Syscall;

constexpr const char* kMakers[] = {"/usr/sbin/mke2fs", "/sbin/mke2fs"};
constexpr uint64_t kInodeBytes = 256;
constexpr uint64_t kTables = 9ULL << 19;  // a journal of 4 MiB, bitmaps and descriptors
constexpr uint64_t kHeldBack = 50;        // ext4 keeps one part of it for itself
constexpr unsigned kLoopMajor = 7;
constexpr int kTries = 16;  // another process may take the device that was free

Error Unavailable(const std::string& why, long negative_errno) {
  Error error = sys::ErrnoError(kNoVolumes, why, negative_errno);
  error.hint = "sessions are watched instead; for a wall: modprobe loop, and install e2fsprogs";
  return error;
}

std::string PathOf(int fd) { return fmt::format("/proc/self/fd/{}", fd); }

// ext4, with a small journal so that a crash of the host leaves it whole.
Status Format(int image, const VolumeRequest& request) {
  const char* maker = nullptr;
  for (const char* path : kMakers) {
    if (::access(path, X_OK) == 0) {
      maker = path;
      break;
    }
  }
  if (maker == nullptr) {
    return Unavailable("mke2fs is not installed", -ENOENT);
  }
  std::vector<std::string> words = {
      "mke2fs",
      "-q",
      "-F",
      "-t",
      "ext4",
      "-b",
      "4096",
      "-m",
      "0",
      "-J",
      "size=4",
      "-I",
      std::to_string(kInodeBytes),
      "-N",
      std::to_string(VolumeFiles(request.bytes)),
      "-O",
      "^resize_inode",
      "-E",
      fmt::format("root_owner={}:{},nodiscard,lazy_itable_init=1,lazy_journal_init=1",
                  request.owner, request.owner),
      PathOf(3)};
  std::vector<char*> argv;
  for (std::string& word : words) {
    argv.push_back(word.data());
  }
  argv.push_back(nullptr);
  const pid_t pid = ::fork();
  if (pid == 0) {
    std::array<char*, 1> environment = {nullptr};
    const int nowhere = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; fd < 3; ++fd) {
      (void)::dup2(nowhere, fd);
    }
    // dup2 onto itself would keep close-on-exec.
    if (image == 3 ? ::fcntl(3, F_SETFD, 0) < 0 : ::dup2(image, 3) < 0) {
      ::_exit(1);
    }
    (void)Syscall(SYS_close_range, 4, ~0U, 0);
    ::execve(maker, argv.data(), environment.data());
    ::_exit(1);
  }
  int status = 0;
  if (pid < 0 || ::waitpid(pid, &status, 0) != pid || !WIFEXITED(status) ||
      WEXITSTATUS(status) != 0) {
    return HostFault("limits.volume", "mke2fs could not make a file system",
                     "look whether the disk of the state directory is full");
  }
  return {};
}

// The node of a loop device, also where /dev has none for it: a node of our own that is gone at once.
Result<UniqueFd> OpenLoop(int images, long number) {
  const std::string path = fmt::format("/dev/loop{}", number);
  const long opened = Syscall(SYS_openat, AT_FDCWD, Arg(path.c_str()), O_RDWR | O_CLOEXEC, 0);
  if (opened >= 0) {
    return UniqueFd(static_cast<int>(opened));
  }
  const std::string own = fmt::format(".loop{}-{}", number, ::getpid());
  (void)::unlinkat(images, own.c_str(), 0);
  const long node = Syscall(SYS_mknodat, images, Arg(own.c_str()), S_IFBLK | 0600,
                            static_cast<long>(makedev(kLoopMajor, static_cast<unsigned>(number))));
  if (node < 0) {
    return Unavailable("there is no node for a loop device", node);
  }
  const long made = Syscall(SYS_openat, images, Arg(own.c_str()), O_RDWR | O_CLOEXEC, 0);
  (void)::unlinkat(images, own.c_str(), 0);
  if (made < 0) {
    return Unavailable("a loop device cannot be opened", made);
  }
  return UniqueFd(static_cast<int>(made));
}

Result<UniqueFd> AttachLoop(int images, int image) {
  const long control =
      Syscall(SYS_openat, AT_FDCWD, Arg("/dev/loop-control"), O_RDWR | O_CLOEXEC, 0);
  if (control < 0) {
    return Unavailable("this host has no loop devices", control);
  }
  const UniqueFd chooser(static_cast<int>(control));
  long answer = -EBUSY;
  for (int i = 0; i < kTries && answer == -EBUSY; ++i) {
    const long number = Syscall(SYS_ioctl, chooser.get(), LOOP_CTL_GET_FREE, 0);
    if (number < 0) {
      return Unavailable("no loop device is free", number);
    }
    TRY_ASSIGN(UniqueFd device, OpenLoop(images, number));
    loop_config config{};
    config.fd = static_cast<uint32_t>(image);
    // The kernel gives the device back with its last user, which is the mount (loop(4)).
    config.info.lo_flags = LO_FLAGS_AUTOCLEAR;
    answer = Syscall(SYS_ioctl, device.get(), LOOP_CONFIGURE, Arg(&config));
    if (answer == 0) {
      return device;
    }
  }
  return Unavailable("a loop device does not take the image", answer);
}

// For as long as the descriptor, or the loop device that took it, is there.
Status LockImage(int image, Nanos patience) {
  const Nanos until = BootTime() + patience;
  for (;;) {
    const long locked = Syscall(SYS_flock, image, LOCK_EX | LOCK_NB);
    if (locked != -EWOULDBLOCK && locked != -EINTR) {
      return locked < 0 ? Status(sys::ErrnoError("limits.volume", "cannot lock an image", locked))
                        : Status();
    }
    if (BootTime() >= until) {
      return HostFault(kVolumeBusy, "the file system of the session is mounted elsewhere",
                       "end the other daemon of this state directory, or its calls");
    }
    const timespec between{0, 20'000'000};
    ::nanosleep(&between, nullptr);
  }
}

struct MountStep {
  const char* key;
  const char* value;  // null: a flag
};

// A mount of the device that is nowhere yet.
Result<UniqueFd> MakeMount(int device) {
  const std::string source = PathOf(device);
  const long context = Syscall(SYS_fsopen, Arg("ext4"), FSOPEN_CLOEXEC);
  if (context < 0) {
    return Unavailable("this kernel has no ext4", context);
  }
  const UniqueFd options(static_cast<int>(context));
  for (const MountStep& step :
       {MountStep{"source", source.c_str()}, MountStep{"discard", nullptr},
        MountStep{"noinit_itable", nullptr}, MountStep{"errors", "remount-ro"}}) {
    const long set =
        Syscall(SYS_fsconfig, options.get(), step.value ? FSCONFIG_SET_STRING : FSCONFIG_SET_FLAG,
                Arg(step.key), Arg(step.value), 0);
    if (set < 0) {
      return Unavailable(fmt::format("ext4 does not take the option {}", step.key), set);
    }
  }
  const long made = Syscall(SYS_fsconfig, options.get(), FSCONFIG_CMD_CREATE, 0, 0, 0);
  const long mount = made < 0 ? made
                              : Syscall(SYS_fsmount, options.get(), FSMOUNT_CLOEXEC,
                                        MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOATIME);
  if (mount < 0) {
    return Unavailable("a volume cannot be mounted", mount);
  }
  return UniqueFd(static_cast<int>(mount));
}

Status AttachAndMount(int images, int image, int mount_point) {
  TRY_ASSIGN(const UniqueFd device, AttachLoop(images, image));
  TRY_ASSIGN(const UniqueFd mount, MakeMount(device.get()));
  // mke2fs makes it; a workspace begins empty. Later there is none, or one that a payload made: not empty ones stay.
  (void)Syscall(SYS_unlinkat, mount.get(), Arg("lost+found"), AT_REMOVEDIR);
  const long moved = Syscall(SYS_move_mount, mount.get(), Arg(""), mount_point, Arg(""),
                             MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
  return moved < 0 ? Status(Unavailable("a volume cannot be put in its place", moved)) : Status();
}

// Sparse, and not ready until it is complete: a name of its own until then.
Status MakeImage(const VolumeRequest& request) {
  const std::string making = request.name + ".new";
  (void)::unlinkat(request.images, making.c_str(), 0);
  TRY_ASSIGN(const UniqueFd image,
             sys::OpenAt(request.images, making, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600));
  const uint64_t size = request.bytes + request.bytes / kHeldBack +
                        VolumeFiles(request.bytes) * kInodeBytes + kTables;
  const long sized = Syscall(SYS_ftruncate, image.get(), static_cast<long>(size));
  Status made = sized < 0 ? Status(sys::ErrnoError("limits.volume", "cannot size an image", sized))
                          : Format(image.get(), request);
  const long named = !made.ok() ? 0
                                : Syscall(SYS_renameat2, request.images, Arg(making.c_str()),
                                          request.images, Arg(request.name.c_str()), 0);
  if (named < 0) {
    made = sys::ErrnoError("limits.volume", "cannot name an image", named);
  }
  if (!made.ok()) {
    (void)::unlinkat(request.images, making.c_str(), 0);
  }
  return made;
}

}  // namespace

bool IsMounted(int mounts, const std::string& name) {
  struct stat above{};
  struct stat here{};
  return ::fstat(mounts, &above) == 0 &&
         ::fstatat(mounts, name.c_str(), &here, AT_SYMLINK_NOFOLLOW) == 0 &&
         S_ISDIR(here.st_mode) && here.st_dev != above.st_dev;
}

Status OpenVolume(const VolumeRequest& request) {
  TRY_ASSIGN(const UniqueFd mount_point,
             sys::OpenAt(request.mounts, request.name, O_PATH | O_DIRECTORY | O_NOFOLLOW));
  if (IsMounted(request.mounts, request.name)) {
    return {};
  }
  Result<UniqueFd> image = sys::OpenAt(request.images, request.name, O_RDWR | O_NOFOLLOW);
  const bool fresh = !image.ok() && image.error().sys_errno == ENOENT;
  if (fresh) {
    TRY(MakeImage(request));
    image = sys::OpenAt(request.images, request.name, O_RDWR | O_NOFOLLOW);
  }
  TRY_ASSIGN(const UniqueFd opened, std::move(image));
  TRY(LockImage(opened.get(), request.patience));
  Status mounted = AttachAndMount(request.images, opened.get(), mount_point.get());
  if (!mounted.ok() && fresh) {
    (void)::unlinkat(request.images, request.name.c_str(), 0);
  }
  return mounted;
}

Status CloseVolume(int images, int mounts, const std::string& name) {
  // More than once if several were stacked; each time the topmost.
  while (IsMounted(mounts, name)) {
    TRY_ASSIGN(const UniqueFd top, sys::OpenAt(mounts, name, O_PATH | O_DIRECTORY | O_NOFOLLOW));
    const std::string path = PathOf(top.get());
    if (const long gone = Syscall(SYS_umount2, Arg(path.c_str()), MNT_DETACH); gone < 0) {
      return sys::ErrnoError("limits.volume", "cannot unmount a volume", gone);
    }
  }
  const long removed = Syscall(SYS_unlinkat, images, Arg(name.c_str()), 0);
  if (removed < 0 && removed != -ENOENT) {
    return sys::ErrnoError("limits.volume", "cannot remove an image", removed);
  }
  return {};
}

}  // namespace coffer::limits
