// SPDX-License-Identifier: Apache-2.0
#include "store/state_part.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/sys.h"

namespace coffer::store {
namespace {

bool IsLink(int directory, const std::string& name) {
  struct stat info{};
  const long answer = raw::Syscall(SYS_newfstatat, directory, raw::Arg(name.c_str()),
                                   raw::Arg(&info), AT_SYMLINK_NOFOLLOW);
  return answer == 0 && S_ISLNK(info.st_mode);
}

Error Link(const std::string& name) {
  return HostFault("store.link",
                   name + " in the state directory is a symbolic link, which is not followed",
                   "put the real " + name +
                       " in its place, or name the directory that holds it with --state DIR; if "
                       "you did not make the link, ask who did");
}

}  // namespace

Result<UniqueFd> OpenStatePart(int directory, const std::string& name, int flags, unsigned mode) {
  Result<UniqueFd> opened = sys::OpenAt(directory, name, flags | O_NOFOLLOW, mode);
  // ENOTDIR: with O_DIRECTORY a link is no directory before it is a link.
  if (!opened.ok() && (opened.error().sys_errno == ELOOP || opened.error().sys_errno == ENOTDIR) &&
      IsLink(directory, name)) {
    return Link(name);
  }
  return opened;
}

Status CheckStatePart(const std::string& directory, const std::string& name) {
  if (IsLink(AT_FDCWD, directory + "/" + name)) {
    return Link(name);
  }
  return {};
}

}  // namespace coffer::store
