// SPDX-License-Identifier: Apache-2.0
#include "tests/daemon/session_files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/unique_fd.h"

namespace coffer::test {

std::string ReadSessionFile(const Daemon& daemon, const std::string& session,
                            const std::string& name) {
  const std::string image = daemon.state() + "/volumes/session-" + session;
  const UniqueFd file(::open(image.c_str(), O_RDONLY | O_CLOEXEC));
  // While it is mounted its loop device holds a lock; a killed daemon's is gone in a moment.
  const bool down = daemon.Find(RoleOf::kGateway) == 0;
  const auto unmounted = [&] { return ::flock(file.get(), LOCK_EX | LOCK_NB) == 0; };
  if (file && (down ? WaitUntil(unmounted, Seconds(10)) : unmounted())) {
    return RunProgram({"/usr/sbin/debugfs", "-R", "cat " + name, image}).out;
  }
  return ReadFile(daemon.Workspace(session) + "/" + name).value_or("");
}

}  // namespace coffer::test
