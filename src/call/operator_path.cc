// SPDX-License-Identifier: Apache-2.0
#include "call/operator_path.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include "base/regular_file.h"
#include "base/sys.h"
#include "isolation/host_path.h"
#include "isolation/system_paths.h"

namespace coffer::call {
namespace {

Error NotOperators(const std::string& path, std::string_view why, std::string hint) {
  return Refused("policy.operator",
                 fmt::format("{} {}; only the operator may write this file and the "
                             "directories above it",
                             path, why),
                 std::move(hint));
}

// Judged by the descriptor, so the checked file is the opened one.
Status CheckOwned(int fd, const std::string& path, uid_t operator_uid) {
  struct stat info{};
  if (::fstat(fd, &info) != 0) {
    return HostFault("policy.operator", "cannot look at " + path);
  }
  if (info.st_uid != operator_uid && !isolation::IsRootOwner(info.st_uid)) {
    return NotOperators(path, fmt::format("belongs to uid {}", info.st_uid),
                        fmt::format("chown {} {}", operator_uid, path));
  }
  const bool sticky = S_ISDIR(info.st_mode) && (info.st_mode & S_ISVTX) != 0;
  // With an access control list the bits of the group are the most that any of its entries gives.
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0 && !sticky) {
    return NotOperators(path, "can be changed by other users", "chmod go-w " + path);
  }
  return {};
}

Result<UniqueFd> Step(int directory, const std::string& name, const std::string& path) {
  Result<UniqueFd> next = sys::OpenNoLinks(directory, name, O_PATH);
  if (!next.ok() && next.error().sys_errno == ELOOP) {
    return NotOperators(path, "is a symbolic link", "name the real path, or put the file there");
  }
  if (!next.ok()) {
    return sys::ErrnoError("policy.operator", "cannot open " + path, -next.error().sys_errno);
  }
  return next;
}

// From the root directory down, each part opened in the one before it.
Result<UniqueFd> Walk(const std::string& given, uid_t operator_uid) {
  TRY_ASSIGN(const std::string path, isolation::CleanPath(given));
  TRY_ASSIGN(UniqueFd at, sys::Open("/", O_PATH | O_DIRECTORY));
  TRY(CheckOwned(at.get(), "/", operator_uid));
  for (size_t from = 1; from < path.size();) {
    const size_t end = std::min(path.find('/', from), path.size());
    const std::string here = path.substr(0, end);
    TRY_ASSIGN(UniqueFd next, Step(at.get(), path.substr(from, end - from), here));
    TRY(CheckOwned(next.get(), here, operator_uid));
    at = std::move(next);
    from = end + 1;
  }
  return at;
}

}  // namespace

Result<UniqueFd> OpenOperatorFile(const std::string& path, uid_t operator_uid) {
  TRY_ASSIGN(const UniqueFd found, Walk(path, operator_uid));
  return sys::ReopenRegular(found.get(), path, O_RDONLY);
}

Result<UniqueFd> OpenOperatorDirectory(const std::string& path, uid_t operator_uid) {
  TRY_ASSIGN(const UniqueFd found, Walk(path, operator_uid));
  return sys::OpenAt(found.get(), ".", O_RDONLY | O_DIRECTORY);
}

Result<std::string> ReadOperatorFile(const std::string& path, uid_t operator_uid, size_t limit) {
  TRY_ASSIGN(const UniqueFd fd, OpenOperatorFile(path, operator_uid));
  Result<std::string> text = sys::ReadFd(fd.get(), limit);
  if (!text.ok()) {
    text.error().message = path + ": " + text.error().message;
  }
  return text;
}

}  // namespace coffer::call
