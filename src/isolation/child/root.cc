// SPDX-License-Identifier: Apache-2.0
#include "isolation/child/root.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/sys.h"
#include "isolation/child/mount_here.h"
#include "isolation/child/overlay.h"

namespace coffer::isolation {
namespace {

using raw::Arg;
using raw::Syscall;

// Decimal without the C library.
const char* Decimal(uint64_t value, char (&buffer)[24]) {
  char* at = buffer + sizeof(buffer) - 1;
  *at = '\0';
  do {
    *--at = static_cast<char>('0' + value % 10);
    value /= 10;
  } while (value != 0);
  return at;
}

const char* Octal(unsigned value, char (&buffer)[24]) {
  char* at = buffer + sizeof(buffer) - 1;
  *at = '\0';
  do {
    *--at = static_cast<char>('0' + (value & 7));
    value >>= 3;
  } while (value != 0);
  return at;
}

struct Option {
  const char* key;
  const char* value;
};

// A new file system instance as a detached mount, or -errno.
long MountNew(const char* type, std::initializer_list<Option> options, unsigned attributes) {
  // fsopen, fsconfig and fsmount (Linux 5.2) make a mount that is attached nowhere.
  const long context = Syscall(SYS_fsopen, Arg(type), FSOPEN_CLOEXEC);
  if (context < 0) {
    return context;
  }
  long answer = 0;
  for (const Option& option : options) {
    answer =
        Syscall(SYS_fsconfig, context, FSCONFIG_SET_STRING, Arg(option.key), Arg(option.value), 0);
    if (answer < 0) {
      break;
    }
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

// Paths of a plan are absolute inside; below the new root they are relative.
const char* Relative(const char* path) {
  while (*path == '/') {
    ++path;
  }
  return path;
}

const char* Relative(const PlanBlock& plan, PackedText path) { return Relative(At(plan, path)); }

long MoveTo(int tree, int root, const char* at) {
  const char* const below = Relative(at);
  return Syscall(SYS_move_mount, tree, Arg(""), root, Arg(*below == '\0' ? "." : below),
                 MOVE_MOUNT_F_EMPTY_PATH);
}

unsigned Attributes(const PackedBind& bind) {
  unsigned flags = MOUNT_ATTR_NOSUID;
  if (bind.writable == 0) {
    flags |= MOUNT_ATTR_RDONLY;
  }
  if (bind.executable == 0) {
    flags |= MOUNT_ATTR_NOEXEC;
  }
  if (bind.usable_device == 0) {
    flags |= MOUNT_ATTR_NODEV;
  }
  return flags;
}

// True if `info` is of the kind that `bind` covers. A link lies over itself, and a cover over a fifo.
bool IsKindCovered(const PackedBind& bind, const struct stat& info) {
  return bind.covers != 0      ? S_ISFIFO(info.st_mode)
         : bind.link != 0      ? S_ISLNK(info.st_mode)
         : bind.directory != 0 ? S_ISDIR(info.st_mode)
                               : S_ISREG(info.st_mode);
}

// Moves a mount over the inode that the supervisor noted as its place in another mount. -ESTALE if the name `at` leads
// elsewhere by now. Nothing is done for a fifo that is covered already: two mounts of one tree may hold it.
long MoveOverPlace(const PlanBlock& plan, const PackedBind& bind, int tree, int root) {
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC | O_NOFOLLOW;
  how.resolve = RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH;
  const long place =
      Syscall(SYS_openat2, root, Arg(Relative(plan, bind.at)), Arg(&how), sizeof(how));
  struct stat info;
  if (place < 0 || fstat(static_cast<int>(place), &info) != 0) {
    return -ESTALE;
  }
  long answer = -ESTALE;
  if (bind.covers != 0 && S_ISCHR(info.st_mode) && info.st_rdev == bind.device) {
    answer = 0;
  } else if (IsKindCovered(bind, info) && info.st_dev == bind.place_dev &&
             info.st_ino == bind.place_ino) {
    // Onto the descriptor: the name may lead elsewhere again.
    answer = Syscall(SYS_move_mount, tree, Arg(""), place, Arg(""),
                     MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
  }
  ::close(static_cast<int>(place));
  return answer == -ENOENT ? -ESTALE : answer;  // it was removed
}

// Adds to the attributes of a mount, or with AT_RECURSIVE of all below it too. `propagation`: 0 leaves it.
long SetAttributes(int at, const char* path, unsigned flags, unsigned attributes,
                   unsigned long propagation = 0) {
  mount_attr wanted{};
  wanted.attr_set = attributes;
  wanted.propagation = propagation;
  return Syscall(SYS_mount_setattr, at, Arg(path), flags, Arg(&wanted), sizeof(wanted));
}

// True if `info` is what the supervisor examined.
bool IsExpected(const PackedBind& bind, const struct stat& info) {
  if (bind.device != 0) {
    return S_ISCHR(info.st_mode) && info.st_rdev == bind.device;
  }
  return (bind.link != 0        ? S_ISLNK(info.st_mode)
          : bind.directory != 0 ? S_ISDIR(info.st_mode)
                                : S_ISREG(info.st_mode)) &&
         info.st_dev == bind.expected_dev && info.st_ino == bind.expected_ino;
}

long OpenSource(const PlanBlock& plan, const PackedBind& bind) {
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC;
  if (bind.link != 0) {
    how.flags |= O_NOFOLLOW;  // the link itself (openat2(2), RESOLVE_NO_SYMLINKS)
  }
  how.resolve = RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS;
  const long opened =
      Syscall(SYS_openat2, AT_FDCWD, Arg(At(plan, bind.host)), Arg(&how), sizeof(how));
  if (opened < 0) {
    return opened;
  }
  struct stat info;
  long tree = -ESTALE;  // something else has taken its name
  if (fstat(static_cast<int>(opened), &info) == 0 && IsExpected(bind, info)) {
    // Not recursive: a mount below the named path stays outside.
    tree = Syscall(SYS_open_tree, opened, Arg(""),
                   OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);
  }
  ::close(static_cast<int>(opened));
  return tree;
}

// Appends to `at`, which has room; the new end.
char* Append(char* at, const char* text) {
  while (*text != '\0') {
    *at++ = *text++;
  }
  *at = '\0';
  return at;
}

// Mounts a sized tmpfs at its place; its descriptor, or -errno.
long MountPlace(const PlanBlock& plan, const PackedTmpfs& place, int root) {
  char number[24];
  // The longest text is 74 bytes: two numbers of 20 digits, a mode of 11, and their names.
  char options[96];
  char* end = Append(options, "size=");
  end = Append(end, Decimal(place.bytes, number));
  end = Append(end, ",nr_inodes=");
  end = Append(end, Decimal(place.inodes, number));
  end = Append(end, ",mode=");
  Append(end, Octal(place.mode, number));
  const unsigned long flags = MS_NOSUID | MS_NODEV | (place.executable != 0 ? 0 : MS_NOEXEC);
  const long answer = MountHere("tmpfs", At(plan, place.at), flags, options);
  if (answer < 0) {
    return answer;
  }
  return Syscall(SYS_openat, root, Arg(Relative(plan, place.at)),
                 O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

long WriteAndClose(const PlanBlock& plan, const PackedFile& file, int fd) {
  const char* data = At(plan, file.content);
  size_t left = file.size;
  long answer = 0;
  while (left > 0) {
    const long wrote = Syscall(SYS_write, fd, Arg(data), static_cast<long>(left));
    if (wrote <= 0) {
      answer = wrote < 0 ? wrote : -EIO;
      break;
    }
    data += wrote;
    left -= static_cast<size_t>(wrote);
  }
  ::close(fd);
  return answer;
}

long WritePrivateFile(const PlanBlock& plan, const PackedFile& file, int root) {
  const char* const at = Relative(plan, file.at);
  if (file.size == 0) {
    // An empty file in one system call, without a descriptor.
    return Syscall(SYS_mknodat, root, Arg(at), S_IFREG | file.mode, 0);
  }
  const long fd = Syscall(SYS_openat, root, Arg(at),
                          O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, file.mode);
  if (fd < 0) {
    return fd;
  }
  return WriteAndClose(plan, file, static_cast<int>(fd));
}

}  // namespace

long MountRoot() {
  // Nothing inside can write to it, so its size only bounds what the plan brings in.
  const long root =
      MountNew("tmpfs", {{"size", "4294967296"}, {"nr_inodes", "65536"}, {"mode", "755"}},
               MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
  if (root < 0) {
    return root;
  }
  long answer = Syscall(SYS_move_mount, root, Arg(""), AT_FDCWD, Arg("/"), MOVE_MOUNT_F_EMPTY_PATH);
  if (answer >= 0) {
    // PivotInto takes the current directory as the new root.
    answer = Syscall(SYS_fchdir, root);
  }
  return answer < 0 ? answer : root;
}

long Populate(const PlanBlock& plan, int root, int32_t (*kept)[4], uint32_t* item) {
  const PackedRoot& part = plan.root;
  const std::span<const PackedTmpfs> places = At(plan, part.tmpfs);
  *item = 0;
  for (const PackedText dir : At(plan, part.dirs)) {
    const long answer = Syscall(SYS_mkdirat, root, Arg(Relative(plan, dir)), 0755);
    if (answer < 0 && answer != -EEXIST) {
      return answer;
    }
    // A place of its own is mounted as soon as its directory exists: what the plan puts below comes later.
    for (size_t i = 0; i < places.size(); ++i) {
      if (strcmp(At(plan, places[i].at), At(plan, dir)) != 0) {
        continue;
      }
      const long mount = MountPlace(plan, places[i], root);
      if (mount < 0) {
        return mount;
      }
      if (kept != nullptr && i < 4) {
        (*kept)[i] = static_cast<int32_t>(mount);
      } else {
        ::close(static_cast<int>(mount));
      }
    }
    ++*item;
  }
  for (const PackedFile& file : At(plan, part.files)) {
    if (const long answer = WritePrivateFile(plan, file, root); answer < 0) {
      return answer;
    }
    ++*item;
  }
  for (const PackedLink& link : At(plan, part.links)) {
    const long answer =
        Syscall(SYS_symlinkat, Arg(At(plan, link.target)), root, Arg(Relative(plan, link.at)));
    if (answer < 0) {
      return answer;
    }
    ++*item;
  }
  return 0;
}

long OpenSources(const PlanBlock& plan, const int32_t* given, int32_t (&trees)[kMaxTrees],
                 uint32_t* item) {
  const std::span<const PackedBind> binds = At(plan, plan.root.binds);
  for (size_t i = 0; i < binds.size(); ++i) {
    *item = static_cast<uint32_t>(i);
    const PackedBind& bind = binds[i];
    const long tree = bind.supervised != 0 ? given[i] : OpenSource(plan, bind);
    if (tree < 0) {
      return tree;
    }
    trees[i] = static_cast<int32_t>(tree);
  }
  return 0;
}

long AttachBinds(const PlanBlock& plan, const int32_t (&trees)[kMaxTrees], int root,
                 uint32_t* item) {
  const PackedRoot& part = plan.root;
  const std::span<const PackedBind> binds = At(plan, part.binds);
  for (size_t i = 0; i < binds.size(); ++i) {
    *item = static_cast<uint32_t>(i);
    const PackedBind& bind = binds[i];
    if (bind.directory == 0 && bind.covers == 0 && bind.place_ino == 0) {
      // A place to mount on: an empty file, never seen again.
      const long made = Syscall(SYS_mknodat, root, Arg(Relative(plan, bind.at)), S_IFREG | 0444, 0);
      if (made < 0 && made != -EEXIST) {
        return made;
      }
    }
    // Before it is attached: a detached mount can be seen from no path, so it never shows with more
    // rights than it ends up with. A clone of a shared mount is its peer: what is mounted on it, a
    // cover or a part of /usr that is hidden, would appear in the host's tree too. So it becomes private.
    long answer = SetAttributes(trees[i], "", AT_EMPTY_PATH, Attributes(bind),
                                bind.directory != 0 ? MS_PRIVATE : 0);
    if (answer >= 0) {
      answer = bind.place_ino != 0 ? MoveOverPlace(plan, bind, trees[i], root)
                                   : MoveTo(trees[i], root, At(plan, bind.at));
    }
    if (const OverlayDirs dirs{At(plan, bind.overlay_upper), At(plan, bind.overlay_work)};
        answer >= 0 && *dirs.upper != '\0') {
      answer = CoverWithOverlay(dirs, trees[i], root, Attributes(bind));
    }
    if (bind.supervised == 0) {
      ::close(trees[i]);
    }
    if (answer == -ENOENT && bind.covers != 0) {
      continue;  // root has removed it meanwhile: there is nothing to cover
    }
    if (answer < 0) {
      return answer;
    }
  }
  for (const PackedText hidden : At(plan, part.hidden)) {
    const long answer =
        MountHere("tmpfs", At(plan, hidden), MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC,
                  "size=4096,nr_inodes=2,mode=555");
    if (answer < 0 && answer != -ENOENT) {  // it may have gone meanwhile
      return answer;
    }
  }
  for (const PackedCover& cover : At(plan, part.covers)) {
    const long answer = Cover(root, At(plan, cover.from), At(plan, cover.at));
    if (answer < 0 && answer != -ENOENT) {  // the host has no such file
      return answer;
    }
  }
  *item = static_cast<uint32_t>(binds.size());
  const char* const overlays = At(plan, part.overlays);
  return *overlays == '\0' ? 0 : SealOverlays(overlays);
}

long Cover(int root, const char* from, const char* at) {
  const long tree = Syscall(SYS_open_tree, root, Arg(Relative(from)),
                            OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW);
  if (tree < 0) {
    return tree;
  }
  long answer = SetAttributes(static_cast<int>(tree), "", AT_EMPTY_PATH, MOUNT_ATTR_RDONLY);
  if (answer >= 0) {
    answer = MoveTo(static_cast<int>(tree), root, at);
  }
  ::close(static_cast<int>(tree));
  return answer;
}

long AppendToFiles(const PlanBlock& ends, int root, uint32_t* item) {
  *item = 0;
  for (const PackedFile& file : At(ends, ends.root.files)) {
    const long fd = Syscall(SYS_openat, root, Arg(Relative(ends, file.at)),
                            O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0);
    const long answer = fd < 0 ? fd : WriteAndClose(ends, file, static_cast<int>(fd));
    if (answer < 0) {
      return answer;
    }
    ++*item;
  }
  return 0;
}

long SealRoot(int root) { return SetAttributes(root, "", AT_EMPTY_PATH, MOUNT_ATTR_RDONLY); }

long PivotInto(int root) {
  // pivot_root(".", ".") stacks the old root on top of the new one, where it is detached from later.
  const long answer = Syscall(SYS_pivot_root, Arg("."), Arg("."));
  if (answer < 0) {
    return answer;
  }
  return Syscall(SYS_fchdir, root);
}

long DetachOldRoot() { return Syscall(SYS_umount2, Arg("/"), MNT_DETACH); }

}  // namespace coffer::isolation
