// SPDX-License-Identifier: Apache-2.0
#include "isolation/prepared_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fs.h>
#include <linux/mount.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/maker.h"
#include "base/sys.h"

namespace coffer::isolation {
namespace {

using raw::Arg;
using raw::Syscall;

Error Failed(std::string_view what, long answer) {
  return sys::ErrnoError("isolation.tree", what, answer);
}

// Every text with its length before it: no two contents have the same form.
std::string NameOf(const TreeContent& content) {
  Sha256 hash;
  const auto add = [&](std::string_view text) {
    hash.Update(fmt::format("{}:", text.size()));
    hash.Update(text);
  };
  add(fmt::format("1 {} {} {} {}", content.dirs.size(), content.files.size(), content.links.size(),
                  content.devices.size()));
  for (const std::string& dir : content.dirs) {
    add(dir);
  }
  for (const PrivateFile& file : content.files) {
    add(file.at);
    add(file.content);
    add(fmt::format("{}", file.mode));
  }
  for (const PrivateLink& link : content.links) {
    add(link.at);
    add(link.target);
  }
  for (const DeviceNode& device : content.devices) {
    add(fmt::format("{} {} {}", device.at, device.major, device.minor));
  }
  std::string name = hash.Finish();
  return name.substr(name.find(':') + 1);
}

// The directory of all trees, if it is one that only we can have filled.
Result<UniqueFd> OpenPlace(const std::string& place) {
  Result<UniqueFd> opened = sys::Open(place, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!opened.ok() && opened.error().sys_errno == ENOENT) {
    const long made = Syscall(SYS_mkdirat, AT_FDCWD, Arg(place.c_str()), 0755);
    if (made < 0 && made != -EEXIST) {
      return Failed("cannot make " + place, made);
    }
    opened = sys::Open(place, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (opened.ok() && made == 0) {
      ::fchmod(opened->get(), 0755);  // whatever our umask is
    }
  }
  TRY_ASSIGN(UniqueFd dir, std::move(opened));
  struct stat info;
  if (::fstat(dir.get(), &info) != 0 || info.st_uid != ::geteuid() || (info.st_mode & 022) != 0) {
    return HostFault("isolation.tree", place + " can be written by somebody else",
                     "remove it; coffer makes it anew");
  }
  return dir;
}

const char* Below(const std::string& at) { return at.c_str() + 1; }

Status Fill(const TreeContent& content, int tree) {
  for (const std::string& dir : content.dirs) {
    TRY(sys::MakeDirAt(tree, Below(dir), 0755));
    if (::fchmodat(tree, Below(dir), 0755, 0) != 0) {
      return Failed("cannot open up a directory", -EPERM);
    }
  }
  for (const PrivateFile& file : content.files) {
    TRY_ASSIGN(const UniqueFd fd,
               sys::OpenAt(tree, Below(file.at), O_WRONLY | O_CREAT | O_EXCL, file.mode));
    TRY(sys::WriteAll(fd.get(), file.content));
    if (::fchmod(fd.get(), file.mode) != 0) {
      return Failed("cannot open up a file", -EPERM);
    }
    // The name promises the content, also after a crash, where /run is on a disk.
    if (const long synced = file.content.empty() ? 0 : Syscall(SYS_fsync, fd.get()); synced < 0) {
      return Failed("cannot write a file", synced);
    }
  }
  for (const PrivateLink& link : content.links) {
    const long made = Syscall(SYS_symlinkat, Arg(link.target.c_str()), tree, Arg(Below(link.at)));
    if (made < 0) {
      return Failed("cannot make a link", made);
    }
  }
  for (const DeviceNode& device : content.devices) {
    const long made = Syscall(SYS_mknodat, tree, Arg(Below(device.at)), S_IFCHR | 0666,
                              static_cast<long>(makedev(device.major, device.minor)));
    if (made < 0) {
      return Failed("cannot make a device", made);
    }
    if (::fchmodat(tree, Below(device.at), 0666, 0) != 0) {
      return Failed("cannot open up a device", -EPERM);
    }
  }
  return {};
}

// What Fill made of it, in the reverse order; what is not there is no matter.
void Clear(const TreeContent& content, int place, const std::string& name) {
  if (Result<UniqueFd> tree = sys::OpenAt(place, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
      tree.ok()) {
    for (const DeviceNode& device : content.devices) {
      ::unlinkat(tree->get(), Below(device.at), 0);
    }
    for (const PrivateLink& link : content.links) {
      ::unlinkat(tree->get(), Below(link.at), 0);
    }
    for (const PrivateFile& file : content.files) {
      ::unlinkat(tree->get(), Below(file.at), 0);
    }
    for (auto dir = content.dirs.rbegin(); dir != content.dirs.rend(); ++dir) {
      ::unlinkat(tree->get(), Below(*dir), AT_REMOVEDIR);
    }
  }
  ::unlinkat(place, name.c_str(), AT_REMOVEDIR);
}

// The draft of a process that was killed over it.
bool IsAbandoned(std::string_view entry, std::string_view name) {
  if (!entry.starts_with(name) || entry.size() <= name.size() + 1) {
    return false;
  }
  const pid_t maker = std::atoi(std::string(entry.substr(name.size() + 1)).c_str());
  return maker > 0 && !MakerLives(maker, std::nullopt);
}

// Complete under a name of its own, then in one step under its right one.
Status Make(const TreeContent& content, int place, const std::string& name) {
  TRY_ASSIGN(const std::vector<sys::DirEntry> present, sys::ListDir(place));
  if (present.size() >= kMostTrees) {
    return HostFault("isolation.tree", "there are enough prepared trees");
  }
  const std::string draft = fmt::format("{}.{}", name, ::getpid());
  for (const sys::DirEntry& entry : present) {
    if (entry.name == draft || IsAbandoned(entry.name, name)) {
      Clear(content, place, entry.name);
    }
  }
  TRY(sys::MakeDirAt(place, draft, 0755));
  Result<UniqueFd> tree = sys::OpenAt(place, draft, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  Status filled = tree.ok() ? Fill(content, tree->get()) : Status(tree.error());
  if (filled.ok() && ::fchmod(tree->get(), 0755) != 0) {
    filled = Failed("cannot open up a tree", -EPERM);
  }
  if (filled.ok()) {
    const long renamed = Syscall(SYS_renameat2, place, Arg(draft.c_str()), place, Arg(name.c_str()),
                                 RENAME_NOREPLACE);
    if (renamed == 0) {
      return {};
    }
    if (renamed != -EEXIST) {  // else somebody was faster
      filled = Failed("cannot put a tree in its place", renamed);
    }
  }
  Clear(content, place, draft);
  return filled;
}

long CloneTreeAt(int place, const std::string& name) {
  return Syscall(SYS_open_tree, place, Arg(name.c_str()),
                 OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW);
}

}  // namespace

TreeContent DeviceTree() {
  TreeContent content;
  content.devices = {{"/null", 1, 3}, {"/zero", 1, 5}, {"/full", 1, 7}, {"/urandom", 1, 9}};
  content.links = {{"/random", "urandom"},         {"/fd", "/proc/self/fd"},
                   {"/stdin", "/proc/self/fd/0"},  {"/stdout", "/proc/self/fd/1"},
                   {"/stderr", "/proc/self/fd/2"}, {"/shm", "/tmp"}};
  return content;
}

Result<UniqueFd> OpenPreparedTree(const TreeContent& content, const std::string& place) {
  TRY_ASSIGN(const UniqueFd dir, OpenPlace(place));
  const std::string name = NameOf(content);
  long tree = CloneTreeAt(dir.get(), name);
  if (tree == -ENOENT) {
    TRY(Make(content, dir.get(), name));
    tree = CloneTreeAt(dir.get(), name);
  }
  if (tree < 0) {
    return Failed("cannot mount a prepared tree", tree);
  }
  UniqueFd owned(static_cast<int>(tree));
  mount_attr attributes{};
  attributes.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC;
  (content.devices.empty() ? attributes.attr_set : attributes.attr_clr) |= MOUNT_ATTR_NODEV;
  const long set = Syscall(SYS_mount_setattr, owned.get(), Arg(""), AT_EMPTY_PATH, Arg(&attributes),
                           sizeof(attributes));
  if (set < 0) {
    return Failed("cannot make a prepared tree read-only", set);
  }
  return owned;
}

}  // namespace coffer::isolation
