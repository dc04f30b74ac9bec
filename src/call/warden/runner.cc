// SPDX-License-Identifier: Apache-2.0
#include "call/warden/runner.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "audit/receipt.h"
#include "base/sys.h"
#include "call/run/run_call.h"

namespace coffer::call {

using raw::Syscall;

bool BecomeRunner(int in, int out, int err, int parent) {
  if (Syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || ::getppid() != parent) {
    return false;
  }
  // Signals of a terminal are for whoever asked; they are passed on.
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
  const RunOutcome outcome = RunCall(request);
  SendReport(report, {outcome.exit_status, outcome.error, audit::FormatReceipt(outcome.receipt)});
  ::_exit(0);
}

RunReport RefusalReport(const Error& error) {
  audit::Receipt receipt;
  receipt.outcome = error.kind == ErrorKind::kRefused ? "denied" : "error";
  receipt.error_class = error.code;
  receipt.error_message = error.message;
  receipt.requested_at = receipt.finished_at = WallTime();
  return {error.kind == ErrorKind::kRefused ? 120 : 125, error, audit::FormatReceipt(receipt)};
}

void SendReport(int socket, const RunReport& report) {
  (void)sys::WriteAll(socket, EncodeReport(report));  // whoever does not listen any more is gone
}

}  // namespace coffer::call
