// SPDX-License-Identifier: Apache-2.0
#include "cli/process_start.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/exit_codes.h"
#include "base/sys.h"
#include "call/warden/protocol.h"
#include "cli/detached.h"
#include "cli/process_keeper.h"
#include "cli/process_places.h"
#include "cli/session_forwards.h"

namespace coffer::cli {

using raw::Arg;
using raw::Syscall;

Result<Started> StartProcess(const call::RunRequest& request) {
  TRY_ASSIGN(const ProcessPlaces places, ProcessPlaces::Open(request.state));
  TRY_ASSIGN(const UniqueFd lock, places.LockSession(request.session, ProcessPlaces::Wait::kYes));
  TRY(MakeRoomFor(places, request.session, request.ports));
  TRY_ASSIGN(call::SocketPair pair, call::MakeSocketPair(SOCK_SEQPACKET));
  const pid_t pid = ::fork();
  if (pid < 0) {
    return HostFault("isolation.host", "the host cannot start another process",
                     "wait until others have ended, or raise its limits");
  }
  if (pid == 0) {
    // A session of its own: the terminal's signals and its end are the starter's.
    const bool ready = Syscall(SYS_setsid) >= 0 && CloseAllBut({pair.second.get()});
    ::_exit(ready ? KeepProcess(request, std::move(pair.second)) : kExitFailed);
  }
  pair.second.Reset();
  StartMessage message;
  long got = -EINTR;
  while (got == -EINTR) {
    got = Syscall(SYS_recvfrom, pair.first.get(), Arg(&message), sizeof(message), 0, 0, 0);
  }
  if (got != static_cast<long>(sizeof(message))) {
    return Internal("internal", "the keeper of the process died");
  }
  message.id[sizeof(message.id) - 1] = '\0';
  return Started{message.id, message.exit_status};
}

}  // namespace coffer::cli
