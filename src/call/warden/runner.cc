// SPDX-License-Identifier: Apache-2.0
#include "call/warden/runner.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/exit_codes.h"
#include "base/sys.h"
#include "call/run/run_call.h"
#include "call/run/tools_server.h"
#include "call/warden/access_channel.h"

namespace coffer::call {

using raw::Syscall;

bool BecomeRunner(int in, int out, int err, int parent) {
  if (Syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || ::getppid() != parent) {
    return false;
  }
  // Signals of a terminal are for the caller; the caller passes them on.
  if (Syscall(SYS_setpgid, 0, 0) < 0) {
    return false;
  }
  const int given[3] = {in, out, err};
  for (int i = 0; i < 3; ++i) {
    if (Syscall(SYS_dup3, given[i], i, 0) < 0) {
      return false;
    }
  }
  return true;
}

void RunAndReport(RunRequest request, int report) {
  request.receipt_path = "-";  // it is wanted; where it goes is not ours to say
  ChannelAccess access(report);
  request.access = request.egress.hold_seconds > 0 ? &access : nullptr;
  RunOutcome outcome = RunCall(request);
  if (request.tools_server != nullptr) {
    // Of a call that failed: what it called is sealed before it all the same.
    (void)request.tools_server->Finish();
  }
  SendReport(report,
             {outcome.exit_status, outcome.error, outcome.receipt, std::move(outcome.exports)},
             Patience::kSome);
  ::_exit(0);
}

RunReport RefusalReport(const Error& error) {
  audit::Receipt receipt;
  receipt.outcome = error.kind == ErrorKind::kRefused ? "denied" : "error";
  receipt.error_class = error.code;
  receipt.error_message = error.message;
  receipt.requested_at = receipt.finished_at = WallTime();
  return {error.kind == ErrorKind::kRefused ? kExitRefused : kExitFailed, error,
          std::move(receipt)};
}

void SendReport(int socket, const RunReport& report, Patience patience) {
  constexpr timeval kPatience{30, 0};
  (void)::setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof(kPatience));
  const int flags = MSG_NOSIGNAL | (patience == Patience::kNone ? MSG_DONTWAIT : 0);
  const std::string bytes = EncodeReport(report);
  for (size_t at = 0; at < bytes.size();) {
    const long sent = Syscall(SYS_sendto, socket, raw::Arg(bytes.data() + at),
                              static_cast<long>(bytes.size() - at), flags, 0, 0);
    if (sent < 0 && sent != -EINTR) {
      return;
    }
    at += sent > 0 ? static_cast<size_t>(sent) : 0;
  }
}

}  // namespace coffer::call
