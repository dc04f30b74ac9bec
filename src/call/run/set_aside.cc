// SPDX-License-Identifier: Apache-2.0
#include "call/run/set_aside.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fs.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "base/sys.h"
#include "isolation/project_scan.h"
#include "policy/protected_names.h"

namespace coffer::call {
namespace {

constexpr size_t kLongestName = 200;
constexpr size_t kLongestPiece = 2000;  // of a path; PATH_MAX is 4096, a name has at most 255

std::string NameOf(int fd) { return fmt::format("/proc/self/fd/{}", fd); }

// "packages/a/.vscode" as one name.
std::string FlatName(size_t number, const std::string& path) {
  std::string flat = fmt::format("{}+{}", number, path);
  std::replace(flat.begin(), flat.end(), '/', '+');
  // The number in front keeps names apart that are cut at the same place.
  return flat.size() <= kLongestName ? flat : flat.substr(0, kLongestName);
}

}  // namespace

OpenedToOwner::OpenedToOwner(int fd) : name_(NameOf(fd)) {
  struct stat info{};
  // Setting a mode can take the bit for the group away: one that is open stays as it is.
  if (::fstat(fd, &info) == 0 && (info.st_mode & 0700) != 0700) {
    mode_ = info.st_mode & 07777;
    (void)::chmod(name_.c_str(), *mode_ | 0700);
  }
}

OpenedToOwner::~OpenedToOwner() {
  if (mode_) {
    (void)::chmod(name_.c_str(), *mode_);
  }
}

Status SetAside::MakeDirectory() {
  uint32_t random = 0;
  raw::Syscall(SYS_getrandom, raw::Arg(&random), sizeof(random), 0);
  const std::string name = fmt::format(".coffer-planted-{:08x}", random);
  TRY(sys::MakeDirAt(root_.fd.get(), name, 0700));
  // The payload may have given the project an access list for what is made in it: it comes before the mode.
  TRY_ASSIGN(const UniqueFd made,
             sys::OpenAt(root_.fd.get(), name, O_PATH | O_DIRECTORY | O_NOFOLLOW));
  (void)::chmod(NameOf(made.get()).c_str(), 0700);
  TRY_ASSIGN(directory_, sys::OpenAt(root_.fd.get(), name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  // As root: the directory belongs to the project's owner, who has to look at the planted files.
  if (::geteuid() == 0 && ::fchown(directory_.get(), root_.owner, root_.group) != 0) {
    return HostFault("isolation.project", "cannot give the set-aside directory to its owner");
  }
  name_ = name;
  return {};
}

// By pieces that the kernel takes as one path each.
Result<UniqueFd> SetAside::OpenParent(const std::string& path) const {
  TRY_ASSIGN(UniqueFd at, sys::OpenAt(root_.fd.get(), ".", O_PATH | O_DIRECTORY));
  for (std::string_view rest = path; !rest.empty();) {
    size_t end = rest.size();
    if (end > kLongestPiece) {
      end = rest.rfind('/', kLongestPiece);
    }
    TRY_ASSIGN(at,
               sys::OpenNoLinks(at.get(), std::string(rest.substr(0, end)), O_PATH | O_DIRECTORY));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return at;
}

Result<std::string> SetAside::Move(const std::string& path) {
  if (name_.empty()) {
    TRY(MakeDirectory());
  }
  const size_t slash = path.rfind('/');
  const std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  TRY_ASSIGN(const UniqueFd parent,
             OpenParent(slash == std::string::npos ? "" : path.substr(0, slash)));
  const std::string flat = FlatName(++count_, path);
  const auto rename = [&] {
    return raw::Syscall(SYS_renameat2, parent.get(), raw::Arg(name.c_str()), directory_.get(),
                        raw::Arg(flat.c_str()), RENAME_NOREPLACE);
  };
  long moved = rename();
  if (moved == -EACCES) {
    // A directory that is closed to its owner cannot be given another parent, nor what is in it.
    const OpenedToOwner above(parent.get());
    const Result<UniqueFd> closed =
        sys::OpenNoLinks(parent.get(), name, O_PATH | O_DIRECTORY | O_NOFOLLOW);
    if (closed.ok()) {
      (void)::chmod(NameOf(closed->get()).c_str(), 0700);
    }
    moved = rename();
  }
  if (moved < 0) {
    return sys::ErrnoError("isolation.project", fmt::format("cannot set {} aside", path), moved);
  }
  TRY(Disarm(flat, path));
  return name_ + "/" + flat;
}

Status SetAside::Take(const isolation::TreeWalk::Directory& from, const std::string& name,
                      const std::string& path, std::string& flat) {
  const OpenedToOwner opened(from.fd);
  flat = FlatName(++count_, path + "/.../" + name);
  const long taken = raw::Syscall(SYS_renameat2, from.fd, raw::Arg(name.c_str()), directory_.get(),
                                  raw::Arg(flat.c_str()), RENAME_NOREPLACE);
  return taken < 0
             ? Status(sys::ErrnoError("isolation.project",
                                      fmt::format("cannot take {} out of {}", name, path), taken))
             : Status();
}

Status SetAside::Disarm(const std::string& moved, const std::string& path) {
  // Directories that are still to be looked through; one that was taken out of another may hold more.
  std::vector<std::string> left = {moved};
  while (!left.empty()) {
    const std::string flat = std::move(left.back());
    left.pop_back();
    Result<UniqueFd> opened =
        sys::OpenNoLinks(directory_.get(), flat, O_PATH | O_DIRECTORY | O_NOFOLLOW);
    if (!opened.ok()) {
      if (opened.error().sys_errno == ENOTDIR || opened.error().sys_errno == ELOOP) {
        continue;  // a file or a link
      }
      return std::move(opened.error());
    }
    isolation::HostPath directory;
    directory.fd = std::move(opened).value();
    directory.path = root_.path + "/" + name_ + "/" + flat;
    directory.directory = true;
    isolation::TreeWalk walk(
        directory, "repositories and settings",
        [&](const isolation::TreeWalk::Directory& here) -> Status {
          std::vector<std::string> names;
          std::erase_if(here.entries, [&](const sys::DirEntry& entry) {
            const bool known = policy::FindProtectedName(entry.name, here.name) != nullptr;
            if (known) {
              names.push_back(entry.name);
            }
            return known;
          });
          struct stat info{};
          if (isolation::LooksLikeGit(here) &&
              ::fstatat(here.fd, "HEAD", &info, AT_SYMLINK_NOFOLLOW) == 0 &&
              !S_ISDIR(info.st_mode)) {
            names.emplace_back("HEAD");
          }
          for (const std::string& name : names) {
            TRY(Take(here, name, path, left.emplace_back()));
          }
          return {};
        },
        isolation::TreeWalk::Closed::kOpen);
    TRY(walk.Run());
  }
  return {};
}

}  // namespace coffer::call
