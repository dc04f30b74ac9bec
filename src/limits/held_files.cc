// SPDX-License-Identifier: Apache-2.0
#include "limits/held_files.h"

#include <fcntl.h>
#include <linux/memfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <unordered_set>

#include "base/sys.h"

namespace coffer::limits {

using raw::Arg;
using raw::Syscall;

uint64_t UnnamedBytes(std::span<const pid_t> pids, uint64_t device, const std::string& proc) {
  uint64_t bytes = 0;
  std::unordered_set<uint64_t> counted;
  for (const pid_t pid : pids) {
    const Result<UniqueFd> dir =
        sys::Open(proc + "/" + std::to_string(pid) + "/fd", O_RDONLY | O_DIRECTORY);
    if (!dir.ok()) {
      continue;
    }
    const Result<std::vector<sys::DirEntry>> entries = sys::ListDir(dir->get());
    if (!entries.ok()) {
      continue;
    }
    for (const sys::DirEntry& entry : *entries) {
      struct stat info{};
      const long answer =
          Syscall(SYS_newfstatat, dir->get(), Arg(entry.name.c_str()), Arg(&info), 0);
      if (answer == 0 && info.st_dev == device && info.st_nlink == 0 && S_ISREG(info.st_mode) &&
          counted.insert(info.st_ino).second) {
        bytes += static_cast<uint64_t>(info.st_blocks) * 512;
      }
    }
  }
  return bytes;
}

uint64_t MemfdDevice() {
  const UniqueFd fd(static_cast<int>(Syscall(SYS_memfd_create, Arg("coffer-probe"), MFD_CLOEXEC)));
  struct stat info{};
  const long answer = fd ? Syscall(SYS_fstat, fd.get(), Arg(&info)) : -1;
  return answer == 0 ? info.st_dev : 0;
}

}  // namespace coffer::limits
