// SPDX-License-Identifier: Apache-2.0
#include "call/run/daemon_program.h"

#include <fcntl.h>

#include "base/sys.h"

namespace coffer::call {

Result<std::vector<std::string>> DaemonPlaces() {
  TRY_ASSIGN(const std::string self, sys::ReadLinkAt(AT_FDCWD, "/proc/self/exe"));
  const std::string here = self.substr(0, self.rfind('/'));
  return std::vector<std::string>{here + "/cofferd", here + "/../libexec/coffer/cofferd",
                                  here + "/../lib/coffer/cofferd"};
}

Result<std::vector<std::string>> OwnPrograms() {
  TRY_ASSIGN(std::vector<std::string> programs, DaemonPlaces());
  TRY_ASSIGN(std::string self, sys::ReadLinkAt(AT_FDCWD, "/proc/self/exe"));
  programs.insert(programs.begin(), std::move(self));
  return programs;
}

}  // namespace coffer::call
