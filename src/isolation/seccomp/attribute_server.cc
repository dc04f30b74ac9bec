// SPDX-License-Identifier: Apache-2.0
#include "isolation/seccomp/attribute_server.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>
#include <utime.h>

#include <algorithm>
#include <charconv>

#include "base/sys.h"
#include "isolation/landlock.h"
#include "isolation/seccomp/evaluator.h"
#include "isolation/seccomp/syscall_table.h"
#include "isolation/seccomp/waiting_thread.h"

namespace coffer::isolation {
namespace {

using raw::Arg;
using raw::Syscall;

constexpr size_t kMaxPath = 4096;            // PATH_MAX, with the zero at the end
constexpr size_t kMaxName = 256;             // XATTR_NAME_MAX and the zero
constexpr uint64_t kMaxValue = 64UL * 1024;  // XATTR_SIZE_MAX
constexpr uint32_t kKeep = 0xffffffff;       // an id of -1 stays as it is

enum class Kind : uint8_t { kMode, kOwner, kTimes, kSetXattr, kRemoveXattr };
// How times are written: struct timespec[2], timeval[2] or utimbuf.
enum class Clock : uint8_t { kNone, kTimespec, kTimeval, kUtimbuf };

}  // namespace

// Where each call has its arguments; -1: it has none. Without `dir` a path is relative to the working directory, and
// without `path` the call is about the descriptor `dir`.
struct AttributeServer::Signature {
  std::string_view syscall;
  Kind kind;
  int8_t dir;
  int8_t path;
  int8_t value;  // the first of the arguments that say what to change
  int8_t flags;  // AT_*
  bool nofollow = false;
  Clock clock = Clock::kNone;
};

const AttributeServer::Signature* AttributeServer::FindSignature(std::string_view syscall) {
  static constexpr Signature kSignatures[] = {
      {"chmod", Kind::kMode, -1, 0, 1, -1},
      {"fchmod", Kind::kMode, 0, -1, 1, -1},
      {"fchmodat", Kind::kMode, 0, 1, 2, -1},
      {"fchmodat2", Kind::kMode, 0, 1, 2, 3},
      {"chown", Kind::kOwner, -1, 0, 1, -1},
      {"lchown", Kind::kOwner, -1, 0, 1, -1, true},
      {"fchown", Kind::kOwner, 0, -1, 1, -1},
      {"fchownat", Kind::kOwner, 0, 1, 2, 4},
      {"utime", Kind::kTimes, -1, 0, 1, -1, false, Clock::kUtimbuf},
      {"utimes", Kind::kTimes, -1, 0, 1, -1, false, Clock::kTimeval},
      {"futimesat", Kind::kTimes, 0, 1, 2, -1, false, Clock::kTimeval},
      {"utimensat", Kind::kTimes, 0, 1, 2, 3, false, Clock::kTimespec},
      {"setxattr", Kind::kSetXattr, -1, 0, 1, -1},
      {"lsetxattr", Kind::kSetXattr, -1, 0, 1, -1, true},
      {"fsetxattr", Kind::kSetXattr, 0, -1, 1, -1},
      {"removexattr", Kind::kRemoveXattr, -1, 0, 1, -1},
      {"lremovexattr", Kind::kRemoveXattr, -1, 0, 1, -1, true},
      {"fremovexattr", Kind::kRemoveXattr, 0, -1, 1, -1},
  };
  const auto* found = std::find_if(std::begin(kSignatures), std::end(kSignatures),
                                   [&](const Signature& s) { return s.syscall == syscall; });
  return found == std::end(kSignatures) ? nullptr : found;
}

namespace {

// Without empty components and ".", which are the same to the kernel and not to a comparison of names.
std::string Squeezed(std::string_view path) {
  std::string plain;
  for (size_t at = 0; at < path.size();) {
    const size_t end = std::min(path.find('/', at), path.size());
    const std::string_view part = path.substr(at, end - at);
    if (!part.empty() && part != ".") {
      plain += '/';
      plain += part;
    }
    at = end + 1;
  }
  return plain;
}

std::string OwnName(int fd) { return "/proc/self/fd/" + std::to_string(fd); }

}  // namespace

// What the call is about: a path, or a descriptor of the caller.
struct AttributeServer::Target {
  std::string path;     // absolute, "" for a descriptor
  std::string by_proc;  // the descriptor's name in /proc
  bool follow = true;
};

struct AttributeServer::Change {
  Kind kind = Kind::kMode;
  mode_t mode = 0;
  uint32_t uid = kKeep;
  uint32_t gid = kKeep;
  bool now = true;
  timespec times[2] = {};
  std::string name;
  std::string value;
  int flags = 0;
};

AttributeServer::AttributeServer(const BoundaryPlan& plan, uint32_t uid)
    : allowed_(plan.served), uid_(uid) {
  for (const LandlockRule& rule : plan.landlock) {
    if ((rule.rights & landlock::kChange) != landlock::kChange) {
      continue;
    }
    const long fd = rule.fd >= 0
                        ? Syscall(SYS_fcntl, rule.fd, F_DUPFD_CLOEXEC, 3)
                        : Syscall(SYS_openat, AT_FDCWD, Arg(rule.path.c_str()), O_PATH | O_CLOEXEC);
    if (fd < 0) {
      continue;  // a tree less: what lies in it is refused
    }
    Tree tree{UniqueFd(static_cast<int>(fd)), {Squeezed(rule.path)}};
    if (Result<std::string> plain = sys::ReadLinkAt(AT_FDCWD, OwnName(tree.fd.get())); plain.ok()) {
      tree.names.push_back(std::move(plain).value());
    }
    trees_.push_back(std::move(tree));
  }
}

std::optional<UniqueFd> AttributeServer::OpenBelow(const std::string& path, bool follow,
                                                   long* error) const {
  for (const Tree& tree : trees_) {
    for (const std::string& name : tree.names) {
      if (path == name) {
        const long same = Syscall(SYS_fcntl, tree.fd.get(), F_DUPFD_CLOEXEC, 3);
        *error = same;
        return same < 0 ? std::nullopt : std::optional(UniqueFd(static_cast<int>(same)));
      }
      if (!path.starts_with(name + "/")) {
        continue;
      }
      const long fd = sys::OpenAt2(tree.fd.get(), path.substr(name.size() + 1),
                                   O_PATH | (follow ? 0 : O_NOFOLLOW),
                                   RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV);
      if (fd >= 0) {
        return UniqueFd(static_cast<int>(fd));
      }
      *error = fd;
    }
  }
  return std::nullopt;
}

std::optional<long> AttributeServer::Open(const Target& target, UniqueFd* file) const {
  long error = -EXDEV;
  if (!target.path.empty()) {
    std::optional<UniqueFd> opened = OpenBelow(Squeezed(target.path), target.follow, &error);
    if (opened) {
      *file = std::move(*opened);
      return 0;
    }
    // EXDEV: it leads out of the tree, or into none.
    return error == -EXDEV ? std::nullopt : std::optional<long>(error);
  }
  const long held = Syscall(SYS_openat, AT_FDCWD, Arg(target.by_proc.c_str()), O_PATH | O_CLOEXEC);
  if (held < 0) {
    return held == -ENOENT ? -EBADF : std::optional<long>();
  }
  *file = OpenSame(UniqueFd(static_cast<int>(held)));
  return file->valid() ? std::optional<long>(0) : std::nullopt;
}

// The file of that name in a granted tree, if it is the same file.
UniqueFd AttributeServer::OpenSame(const UniqueFd& theirs) const {
  const Result<std::string> name = sys::ReadLinkAt(AT_FDCWD, OwnName(theirs.get()));
  if (!name.ok() || !name->starts_with('/')) {
    return {};
  }
  long error = 0;
  std::optional<UniqueFd> ours = OpenBelow(*name, false, &error);
  struct stat a;
  struct stat b;
  if (!ours || ::fstat(theirs.get(), &a) != 0 || ::fstat(ours->get(), &b) != 0 ||
      a.st_dev != b.st_dev || a.st_ino != b.st_ino) {
    return {};
  }
  return std::move(*ours);
}

std::optional<long> AttributeServer::Make(const Change& change, int file) const {
  struct stat info;
  if (file < 0 || ::fstat(file, &info) != 0) {
    return std::nullopt;
  }
  const bool link = S_ISLNK(info.st_mode);
  if (info.st_uid != uid_) {
    return -EPERM;  // as the kernel answers a process that is not the owner's
  }
  const std::string name = OwnName(file);
  switch (change.kind) {
    case Kind::kMode:
      return link ? -EOPNOTSUPP
                  : Syscall(SYS_fchmodat, AT_FDCWD, Arg(name.c_str()), change.mode & 07777);
    case Kind::kOwner:
      if ((change.uid != kKeep && change.uid != info.st_uid) ||
          (change.gid != kKeep && change.gid != info.st_gid)) {
        return -EPERM;
      }
      return Syscall(SYS_fchownat, file, Arg(""), static_cast<int>(change.uid),
                     static_cast<int>(change.gid), AT_EMPTY_PATH);
    case Kind::kTimes:
      return Syscall(SYS_utimensat, file, Arg(""), change.now ? 0 : Arg(change.times),
                     AT_EMPTY_PATH);
    case Kind::kSetXattr:
    case Kind::kRemoveXattr:
      if (change.name.starts_with("system.")) {
        return -EOPNOTSUPP;  // access control lists: programs then set a mode
      }
      if (link || !change.name.starts_with("user.")) {
        return -EPERM;
      }
      return change.kind == Kind::kRemoveXattr
                 ? Syscall(SYS_removexattr, Arg(name.c_str()), Arg(change.name.c_str()))
                 : Syscall(SYS_setxattr, Arg(name.c_str()), Arg(change.name.c_str()),
                           Arg(change.value.data()), static_cast<long>(change.value.size()),
                           change.flags);
  }
  return std::nullopt;
}

namespace {

bool ReadTimes(WaitingThread& caller, Clock clock, uint64_t address, timespec* times) {
  timespec exact[2];
  timeval small[2];
  utimbuf whole;
  switch (clock) {
    case Clock::kTimespec:
      if (!caller.ReadObject(address, &exact)) {
        return false;
      }
      std::copy(std::begin(exact), std::end(exact), times);
      return true;
    case Clock::kTimeval:
      if (!caller.ReadObject(address, &small)) {
        return false;
      }
      for (int i = 0; i < 2; ++i) {
        // -1, which the kernel refuses: a product must not become one of the special values.
        const bool sound = small[i].tv_usec >= 0 && small[i].tv_usec < 1000000;
        times[i] = {small[i].tv_sec, sound ? small[i].tv_usec * 1000 : -1};
      }
      return true;
    case Clock::kUtimbuf:
      if (!caller.ReadObject(address, &whole)) {
        return false;
      }
      times[0] = {whole.actime, 0};
      times[1] = {whole.modtime, 0};
      return true;
    case Clock::kNone:
      break;
  }
  return false;
}

// The number in "/proc/self/fd/7", which is how libc changes the mode of what may be a link.
std::optional<int> OwnDescriptor(std::string_view path) {
  constexpr std::string_view kPrefix = "/proc/self/fd/";
  int number = -1;
  const char* const end = path.data() + path.size();
  if (!path.starts_with(kPrefix)) {
    return std::nullopt;
  }
  const auto [after, problem] = std::from_chars(path.data() + kPrefix.size(), end, number);
  return problem == std::errc() && after == end && number >= 0 ? std::optional<int>(number)
                                                               : std::nullopt;
}

uint64_t Argument(const seccomp_data& data, int at) { return at < 0 ? 0 : data.args[at]; }

}  // namespace

// Which file. utimensat and futimesat take a null path for the descriptor itself.
std::optional<long> AttributeServer::ReadTarget(const Signature& call, const seccomp_data& data,
                                                WaitingThread& caller, Target* target) {
  const auto flags = static_cast<int>(Argument(data, call.flags));
  if ((flags & ~(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH)) != 0) {
    return -EINVAL;
  }
  target->follow = !call.nofollow && (flags & AT_SYMLINK_NOFOLLOW) == 0;
  const int dir = call.dir < 0 ? AT_FDCWD : static_cast<int>(Argument(data, call.dir));
  target->by_proc = caller.Descriptor(dir);
  const uint64_t address = Argument(data, call.path);
  if (address == 0) {
    // Of calls with a path, only those about times take none and mean the descriptor.
    if (call.path >= 0 && call.kind != Kind::kTimes) {
      return -EFAULT;
    }
    return dir < 0 ? -EBADF : 0;
  }
  const std::optional<std::string> path = caller.ReadText(address, kMaxPath);
  if (!path) {
    return std::nullopt;
  }
  if (path->empty()) {
    return (flags & AT_EMPTY_PATH) != 0 ? 0 : -ENOENT;
  }
  if (const std::optional<int> own = OwnDescriptor(*path)) {
    target->by_proc = caller.Descriptor(*own);
    return 0;
  }
  if (path->starts_with('/')) {
    target->path = *path;
    return 0;
  }
  const Result<std::string> base = sys::ReadLinkAt(AT_FDCWD, target->by_proc);
  if (!base.ok() || !base->starts_with('/')) {
    return std::nullopt;
  }
  target->path = *base + "/" + *path;
  return 0;
}

// What to change about it.
std::optional<long> AttributeServer::ReadChange(const Signature& call, const seccomp_data& data,
                                                WaitingThread& caller, Change* change) {
  const uint64_t first = Argument(data, call.value);
  change->kind = call.kind;
  switch (call.kind) {
    case Kind::kMode:
      change->mode = static_cast<mode_t>(first);
      return 0;
    case Kind::kOwner:
      change->uid = static_cast<uint32_t>(first);
      change->gid = static_cast<uint32_t>(Argument(data, call.value + 1));
      return 0;
    case Kind::kTimes:
      change->now = first == 0;
      return change->now || ReadTimes(caller, call.clock, first, change->times)
                 ? std::optional<long>(0)
                 : std::nullopt;
    case Kind::kSetXattr:
    case Kind::kRemoveXattr:
      break;
  }
  std::optional<std::string> name = caller.ReadText(first, kMaxName);
  if (!name) {
    return std::nullopt;
  }
  change->name = std::move(*name);
  if (call.kind == Kind::kRemoveXattr) {
    return 0;
  }
  change->flags = static_cast<int>(Argument(data, call.value + 3));
  const uint64_t size = Argument(data, call.value + 2);
  if (size > kMaxValue) {
    return -E2BIG;
  }
  if (size > 0) {
    std::optional<std::string> value = caller.Read(Argument(data, call.value + 1), size);
    if (!value || value->size() != size) {
      return std::nullopt;
    }
    change->value = std::move(*value);
  }
  return 0;
}

std::optional<long> AttributeServer::Answer(int notify_fd, const seccomp_notif& request) const {
  const Signature* const call = FindSignature(SyscallName(request.data.nr));
  if (call == nullptr || trees_.empty()) {
    return std::nullopt;
  }
  const Result<uint32_t> verdict = Evaluate(allowed_, request.data);
  if (!verdict.ok() || *verdict != SECCOMP_RET_ALLOW) {
    return std::nullopt;  // the profile itself refuses it
  }
  WaitingThread caller(notify_fd, request);
  Target target;
  Change change;
  UniqueFd file;
  std::optional<long> answer = ReadTarget(*call, request.data, caller, &target);
  if (answer == 0) {
    answer = ReadChange(*call, request.data, caller, &change);
  }
  if (answer == 0) {
    answer = Open(target, &file);
  }
  if (!caller.StillWaits()) {
    return std::nullopt;
  }
  return answer == 0 ? Make(change, file.get()) : answer;
}

bool AttributeServer::MayChange(int file) const {
  const UniqueFd held(static_cast<int>(Syscall(SYS_fcntl, file, F_DUPFD_CLOEXEC, 3)));
  return held.valid() && OpenSame(held).valid();
}

}  // namespace coffer::isolation
