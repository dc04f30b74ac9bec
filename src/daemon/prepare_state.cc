// SPDX-License-Identifier: Apache-2.0
#include "daemon/prepare_state.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "base/sys.h"
#include "daemon/role.h"
#include "store/state_part.h"

namespace coffer::daemon {
namespace {

using raw::Arg;
using raw::Syscall;

// The gateway has a uid of its own: every directory above its state must let strangers pass.
Status CheckReachable(const std::string& path) {
  for (size_t at = path.find('/', 1); at != std::string::npos; at = path.find('/', at + 1)) {
    const std::string parent = path.substr(0, at);
    struct stat info{};
    if (::stat(parent.c_str(), &info) == 0 && (info.st_mode & S_IXOTH) == 0 &&
        info.st_uid != kGatewayUid) {
      return Refused("daemon.state",
                     parent + " is closed to others, so the daemon's gateway cannot reach " + path,
                     "choose another --state, or: chmod o+x " + parent);
    }
  }
  return {};
}

// Makes the gateway the owner of `name` below `dir` (of `dir` itself, if it is empty), never of what a link leads to.
Status Give(int dir, const std::string& name) {
  const long given = Syscall(SYS_fchownat, dir, Arg(name.c_str()), kGatewayUid, kGatewayUid,
                             AT_SYMLINK_NOFOLLOW | (name.empty() ? AT_EMPTY_PATH : 0));
  return given < 0 ? Status(sys::ErrnoError(
                         "daemon.state", "cannot give the state directory to the gateway", given))
                   : Status();
}

}  // namespace

// The directories on the way, for us alone; the last one, and what is in it, for the gateway: `coffer key new` and the
// like may have made it as root.
Status PrepareState(const Config& config) {
  for (const char* part : {"sessions", "log", "coffer.db", "owners"}) {
    TRY(store::CheckStatePart(config.state, part));
  }
  TRY(sys::MakeDirs(config.state + "/sessions", 0700));
  if (::geteuid() != 0) {
    return {};
  }
  TRY(CheckReachable(config.state));
  TRY_ASSIGN(const UniqueFd dir, sys::OpenNoLinks(AT_FDCWD, config.state, O_RDONLY | O_DIRECTORY));
  TRY_ASSIGN(const std::vector<sys::DirEntry> entries, sys::ListDir(dir.get()));
  TRY(Give(dir.get(), ""));
  for (const sys::DirEntry& entry : entries) {
    if (entry.name.starts_with("coffer.db") || entry.name == "owners" || entry.name == "sessions") {
      TRY(Give(dir.get(), entry.name));
    }
    if (entry.name == "log") {
      TRY_ASSIGN(const UniqueFd log, sys::OpenNoLinks(dir.get(), "log", O_RDONLY | O_DIRECTORY));
      TRY_ASSIGN(const std::vector<sys::DirEntry> files, sys::ListDir(log.get()));
      TRY(Give(log.get(), ""));
      for (const sys::DirEntry& file : files) {
        TRY(Give(log.get(), file.name));
      }
    }
  }
  return {};
}

}  // namespace coffer::daemon
