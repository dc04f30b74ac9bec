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

namespace coffer::call {
namespace {

constexpr size_t kLongestName = 200;
constexpr size_t kLongestPiece = 2000;  // of a path; PATH_MAX is 4096, a name has at most 255

std::string NameOf(int fd) { return fmt::format("/proc/self/fd/{}", fd); }

// A directory that its owner may change for a moment.
class OpenedToOwner {
 public:
  explicit OpenedToOwner(int fd) : name_(NameOf(fd)) {
    struct stat info{};
    if (::fstat(fd, &info) == 0) {
      mode_ = info.st_mode & 07777;
      (void)::chmod(name_.c_str(), mode_ | 0700);
    }
  }
  ~OpenedToOwner() { (void)::chmod(name_.c_str(), mode_); }
  OpenedToOwner(const OpenedToOwner&) = delete;
  OpenedToOwner& operator=(const OpenedToOwner&) = delete;

 private:
  std::string name_;
  mode_t mode_ = 0700;
};

// "packages/a/.vscode" as one name.
std::string FlatName(size_t number, const std::string& path) {
  std::string flat = fmt::format("{}+{}", number, path);
  std::replace(flat.begin(), flat.end(), '/', '+');
  return flat.size() <= kLongestName ? flat : flat.substr(0, kLongestName);
}

}  // namespace

Status SetAside::MakeDirectory() {
  uint32_t random = 0;
  raw::Syscall(SYS_getrandom, raw::Arg(&random), sizeof(random), 0);
  const std::string name = fmt::format(".coffer-planted-{:08x}", random);
  TRY(sys::MakeDirAt(root_.fd.get(), name, 0700));
  TRY_ASSIGN(directory_, sys::OpenAt(root_.fd.get(), name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  // As root: what was planted belongs to the project's owner, who is to look at it.
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
  return name_ + "/" + flat;
}

}  // namespace coffer::call
