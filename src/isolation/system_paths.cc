// SPDX-License-Identifier: Apache-2.0
#include "isolation/system_paths.h"

#include <fcntl.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "base/split.h"
#include "base/sys.h"
#include "isolation/package_etc.h"

namespace coffer::isolation {
namespace {

// Where packages put programs and what they need. /usr itself, for the runtime that shows it whole, is judged apart.
// Not here: /opt, /usr/src and /usr/local/etc, which hold projects and configuration as well, and /etc but for these.
constexpr std::string_view kSystemDirectories[] = {
    "/usr/bin",
    "/usr/sbin",
    "/usr/lib",
    "/usr/lib32",
    "/usr/lib64",
    "/usr/libx32",
    "/usr/libexec",
    "/usr/share",
    "/usr/include",
    "/usr/games",
    "/usr/local/bin",
    "/usr/local/sbin",
    "/usr/local/lib",
    "/usr/local/lib64",
    "/usr/local/libexec",
    "/usr/local/share",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/etc/alternatives",
    "/etc/ssl/certs",
    "/etc/pki/ca-trust",
};

// Where writing changes the host. Not /opt, /srv, /home and the like: users work there.
constexpr std::string_view kChangesHost[] = {
    "/bin",    "/boot", "/dev", "/etc",  "/lib", "/lib32", "/lib64",
    "/libx32", "/proc", "/run", "/sbin", "/sys", "/usr",
};
constexpr std::string_view kVar[] = {"/var"};
constexpr std::string_view kForUsers[] = {"/usr/src", "/usr/local/src", "/var/tmp"};

constexpr uid_t kOverflowUid = 65534;
constexpr uid_t kFirstUser = 1000;  // below are accounts of the system (login.defs)

bool IsInSystemDirectory(std::string_view path) {
  return std::any_of(std::begin(kSystemDirectories), std::end(kSystemDirectories),
                     [&](std::string_view system) { return IsAtOrBelow(path, system); });
}

constexpr gid_t kFirstUserGroup = 100;

// True if /etc/group lists no member of this group of the system, and /etc/passwd no user whose
// group it is. Debian gives directories below /usr/local to such a group, staff.
bool IsEmptyGroup(gid_t group) {
  const Result<std::string> groups = sys::ReadFile("/etc/group");
  const Result<std::string> users = sys::ReadFile("/etc/passwd");
  if (group == 0 || group >= kFirstUserGroup || !groups.ok() || !users.ok()) {
    return false;
  }
  const std::string id = std::to_string(group);
  bool listed = false;
  for (const auto& [text, field] :
       {std::pair(&*groups, size_t{2}), std::pair(&*users, size_t{3})}) {
    for (const std::string_view line : SplitText(*text, '\n')) {
      const std::vector<std::string_view> fields = SplitText(line, ':');
      if (fields.size() <= field || fields[field] != id) {
        continue;
      }
      if (text == &*users || fields.size() != 4 || !fields[3].empty()) {
        return false;
      }
      listed = true;
    }
  }
  return listed;
}

// Where there is an access control list, the bits of the group are those of every user whom it names.
bool HasAccessList(const std::string& path) {
  return ::lgetxattr(path.c_str(), "system.posix_acl_access", nullptr, 0) > 0;
}

bool OnlyRootWrites(const std::string& path, const struct stat& info) {
  return IsRootOwner(info.st_uid) && (info.st_mode & S_IWOTH) == 0 &&
         ((info.st_mode & S_IWGRP) == 0 || (IsEmptyGroup(info.st_gid) && !HasAccessList(path)));
}

bool IsSystemAccount(uid_t owner) { return owner < kFirstUser || IsRootOwner(owner); }

bool IsSame(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

bool IsOneOf(std::span<const std::string_view> names, const struct stat& info) {
  return std::any_of(names.begin(), names.end(), [&](std::string_view name) {
    struct stat other{};
    return ::stat(std::string(name).c_str(), &other) == 0 && IsSame(info, other);
  });
}

std::string_view Parent(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == 0 || slash == std::string_view::npos ? "/" : path.substr(0, slash);
}

}  // namespace

// In a user namespace without the host's root its files belong to the overflow uid; so
// do those of every other user who is not mapped, but none of them owns what lies in the system's directories.
bool IsRootOwner(uid_t owner) {
  if (owner == 0) {
    return true;
  }
  static const bool root_is_unmapped = [] {
    const Result<std::string> map = sys::ReadFile("/proc/self/uid_map");
    return map.ok() && map->find("4294967295") == std::string::npos && ::geteuid() != kOverflowUid;
  }();
  return owner == kOverflowUid && root_is_unmapped;
}

bool IsAtOrBelow(std::string_view path, std::string_view directory) {
  return directory == "/" || path == directory ||
         (path.size() > directory.size() && path.starts_with(directory) &&
          path[directory.size()] == '/');
}

bool IsSystemDirectory(std::string_view path, uid_t owner) {
  const auto lies_in = [&](std::string_view directory) { return IsAtOrBelow(path, directory); };
  if (std::any_of(std::begin(kForUsers), std::end(kForUsers),
                  [&](std::string_view users) { return path != users && lies_in(users); })) {
    return false;
  }
  return std::any_of(std::begin(kChangesHost), std::end(kChangesHost), lies_in) ||
         (lies_in("/var") && IsSystemAccount(owner));
}

bool IsSystemDirectory(int directory, uid_t owner) {
  constexpr int kDeepest = 4096;
  Result<UniqueFd> at = sys::OpenAt(directory, ".", O_PATH | O_DIRECTORY);
  struct stat below{};
  for (int depth = 0; depth < kDeepest && at.ok(); ++depth) {
    struct stat here{};
    if (::fstat(at->get(), &here) != 0) {
      break;
    }
    if (depth > 0 && IsSame(below, here)) {
      return false;  // the root directory is its own parent
    }
    if (depth > 0 && IsOneOf(kForUsers, here)) {
      return false;
    }
    if (IsOneOf(kChangesHost, here)) {
      return true;
    }
    if (IsOneOf(kVar, here)) {
      return IsSystemAccount(owner);
    }
    below = here;
    at = sys::OpenAt(at->get(), "..", O_PATH | O_DIRECTORY);
  }
  return true;
}

bool SystemPaths::OnlyRootChanges(const std::string& directory) {
  if (const auto known = known_.find(directory); known != known_.end()) {
    return known->second;
  }
  struct stat info{};
  const bool only_root = (directory == "/" || OnlyRootChanges(std::string(Parent(directory)))) &&
                         ::lstat(directory.c_str(), &info) == 0 && S_ISDIR(info.st_mode) &&
                         (info.st_mode & S_IXOTH) != 0 && OnlyRootWrites(directory, info);
  known_.emplace(directory, only_root);
  return only_root;
}

bool SystemPaths::IsSystemLink(const std::string& directory, const std::string& name) {
  struct stat info{};
  const std::string path = (directory == "/" ? "" : directory) + "/" + name;
  return (directory == "/" || directory == "/usr" || directory == "/usr/local" ||
          IsInSystemDirectory(directory)) &&
         OnlyRootChanges(directory) && ::lstat(path.c_str(), &info) == 0 &&
         IsRootOwner(info.st_uid);
}

bool SystemPaths::IsPublic(const std::string& path, const struct stat& info) {
  const mode_t public_bits = S_ISDIR(info.st_mode) ? S_IROTH | S_IXOTH : S_IROTH;
  return (info.st_mode & public_bits) == public_bits && OnlyRootWrites(path, info);
}

bool SystemPaths::IsSystem(const std::string& path, const struct stat& info) {
  return (IsInSystemDirectory(path) || path == "/usr" || IsPackageEtc(path)) &&
         IsPublic(path, info) && OnlyRootChanges(std::string(Parent(path)));
}

}  // namespace coffer::isolation
