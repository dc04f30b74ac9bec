// SPDX-License-Identifier: Apache-2.0
#include "call/run/placeholder.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "base/path_words.h"
#include "base/sys.h"

namespace coffer::call {
namespace {

constexpr mode_t kDirectoryMode = S_ISVTX | 0555;
constexpr mode_t kFileMode = S_ISVTX | 0444;
// About a second: calls that come and go meet each other again and again.
constexpr int kMostAttempts = 64;

bool HasOurMode(const struct stat& info, const Placeholder::Kind& kind) {
  return kind.directory ? S_ISDIR(info.st_mode) && (info.st_mode & 07777) == kDirectoryMode
                        : S_ISREG(info.st_mode) && (info.st_mode & 07777) == kFileMode &&
                              static_cast<size_t>(info.st_size) == kind.content.size();
}

int OpenFlags(const Placeholder::Kind& kind) {
  // O_NONBLOCK: a fifo may have taken the name, and would wait for a writer.
  return O_RDONLY | O_NOFOLLOW | O_NONBLOCK | (kind.directory ? O_DIRECTORY : 0);
}

// A file gets its name when it has its content and mode: git stops at a commondir that is empty.
Status MakeAt(int parent, const std::string& name, const Placeholder::Kind& kind) {
  if (kind.directory) {
    TRY(sys::MakeDirAt(parent, name, 0555));
    // An access list of the directory above may have closed it to its owner (acl(5)).
    TRY_ASSIGN(const UniqueFd made, sys::OpenAt(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW));
    if (::chmod(fmt::format("/proc/self/fd/{}", made.get()).c_str(), kDirectoryMode) != 0) {
      return HostFault("isolation.project", "cannot set the mode of a placeholder");
    }
    return {};
  }
  const std::string draft = fmt::format("{}.coffer-{}", name, ::getpid());
  TRY_ASSIGN(const UniqueFd file,
             sys::OpenAt(parent, draft, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600));
  Status wrote = sys::WriteAll(file.get(), kind.content);
  long linked = -EIO;
  if (wrote.ok() && ::fchmod(file.get(), kFileMode) == 0) {
    linked = raw::Syscall(SYS_linkat, parent, raw::Arg(draft.c_str()), parent,
                          raw::Arg(name.c_str()), 0);
  }
  (void)::unlinkat(parent, draft.c_str(), 0);
  if (linked < 0) {
    return sys::ErrnoError("isolation.project", "cannot make a placeholder", linked);
  }
  return {};
}

// Opens the placeholder of that name and holds it against its removal. No descriptor if there is
// none, or if another call is removing it.
UniqueFd JoinPlaceholder(int parent, const std::string& name, const Placeholder::Kind& kind) {
  Result<UniqueFd> opened = sys::OpenAt(parent, name, OpenFlags(kind));
  struct stat ours{};
  struct stat named{};
  const bool held = opened.ok() && ::flock(opened->get(), LOCK_SH | LOCK_NB) == 0 &&
                    ::fstat(opened->get(), &ours) == 0 && HasOurMode(ours, kind) &&
                    ::fstatat(parent, name.c_str(), &named, AT_SYMLINK_NOFOLLOW) == 0 &&
                    ours.st_ino == named.st_ino && ours.st_dev == named.st_dev;
  return held ? std::move(opened).value() : UniqueFd();
}

}  // namespace

// A payload can give anything of its own our mode. What holds nothing, or what ours hold, does no harm.
bool Placeholder::IsOne(int parent, const std::string& name, const Kind& kind) {
  struct stat info{};
  if (::fstatat(parent, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0 || !HasOurMode(info, kind)) {
    return false;
  }
  const Result<UniqueFd> opened = sys::OpenAt(parent, name, OpenFlags(kind));
  if (!opened.ok() || ::fstat(opened->get(), &info) != 0 || !HasOurMode(info, kind)) {
    return false;
  }
  if (kind.directory) {
    const Result<std::vector<sys::DirEntry>> entries = sys::ListDir(opened->get());
    return entries.ok() && entries->empty();
  }
  const Result<std::string> content = sys::ReadFd(opened->get(), kind.content.size());
  return content.ok() && *content == kind.content;
}

Result<Placeholder> Placeholder::Make(int parent, const std::string& name, const Kind& kind) {
  Placeholder made;
  for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
    const Status done = MakeAt(parent, name, kind);
    if (!done.ok() && done.error().sys_errno != EEXIST) {
      return made;
    }
    UniqueFd joined = JoinPlaceholder(parent, name, kind);
    if (joined) {
      made.parent_ = UniqueFd(::fcntl(parent, F_DUPFD_CLOEXEC, 3));
      made.name_ = name;
      made.kind_ = kind;
      made.lock_ = std::move(joined);
      return made;
    }
    // Another call may be making it, or removing its own.
    const timespec moment{0, 1'000'000L << std::min(attempt, 4)};
    (void)::nanosleep(&moment, nullptr);
  }
  return Refused("policy.project.changed",
                 fmt::format("{} appeared while the project was being opened", PathInWords(name)),
                 "try again");
}

Placeholder& Placeholder::operator=(Placeholder&& other) noexcept {
  Remove();
  parent_ = std::move(other.parent_);
  name_ = std::move(other.name_);
  kind_ = std::move(other.kind_);
  lock_ = std::move(other.lock_);
  return *this;
}

void Placeholder::Remove() {
  if (!made()) {
    return;
  }
  const UniqueFd held = std::move(lock_);
  struct stat ours{};
  struct stat named{};
  const bool alone = ::flock(held.get(), LOCK_EX | LOCK_NB) == 0;
  if (alone && ::fstat(held.get(), &ours) == 0 &&
      ::fstatat(parent_.get(), name_.c_str(), &named, AT_SYMLINK_NOFOLLOW) == 0 &&
      ours.st_ino == named.st_ino && ours.st_dev == named.st_dev && HasOurMode(named, kind_)) {
    // A directory that is not empty stays: rmdir says so.
    (void)::unlinkat(parent_.get(), name_.c_str(), kind_.directory ? AT_REMOVEDIR : 0);
  }
}

}  // namespace coffer::call
