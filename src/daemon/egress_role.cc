// SPDX-License-Identifier: Apache-2.0
#include "daemon/egress_role.h"

#include <errno.h>
#include <netdb.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "base/exit_codes.h"
#include "base/print.h"
#include "base/sys.h"
#include "daemon/receivers.h"
#include "daemon/role.h"
#include "egress/dial.h"
#include "isolation/landlock.h"

namespace coffer::daemon {
namespace {

using isolation::LandlockRule;
using raw::Arg;
using raw::Syscall;

constexpr int kFileRights = 3;  // the newest Landlock ABI that is about files alone

// What getaddrinfo(3) reads, and the modules it may load for it.
constexpr const char* kNames[] = {"/etc/hosts",
                                  "/etc/resolv.conf",
                                  "/etc/nsswitch.conf",
                                  "/etc/gai.conf",
                                  "/etc/host.conf",
                                  "/etc/services",
                                  "/etc/protocols",
                                  "/run/systemd/resolve",
                                  "/run/resolvconf",
                                  "/etc/ld.so.cache",
                                  "/lib",
                                  "/usr/lib",
                                  "/lib64"};

void WaitForEnd(int control) {
  char word = 0;
  long got = 0;
  do {
    got = Syscall(SYS_read, control, Arg(&word), 1);
  } while (got == -EINTR || got > 0);
}

Status ServeEgress(const Config& config, int control) {
  TRY_ASSIGN(const Receivers receivers, LoadReceivers(config));
  const std::unique_ptr<net::Loop> loop = net::MakeLoop();
  TRY_ASSIGN(const std::unique_ptr<egress::Dialer> dialer,
             egress::MakeDialer(*loop, receivers.all, receivers.guard));
  addrinfo* found = nullptr;  // loads what resolving needs
  if (::getaddrinfo("localhost", nullptr, nullptr, &found) == 0) {
    ::freeaddrinfo(found);
  }
  // After the receivers' secrets were read: from here on only what resolving a name needs can be.
  TRY(EnforceNoFiles());
  TRY(EnterRole(RoleKind::kEgress));

  const std::shared_ptr<void> watch = loop->WatchReadable(control, [&] {
    Result<egress::ReceivedDelivery> received = egress::ReceiveDelivery(control);
    if (!received.ok() || received->ended) {
      loop->Stop();  // the gateway is gone, or not itself
      return;
    }
    dialer->Post(received->header, std::move(received->body),
                 [&](const egress::DeliverAnswer& answer) {
                   if (!egress::SendAnswer(control, answer).ok()) {
                     loop->Stop();
                   }
                 });
  });
  loop->Run();
  return {};
}

}  // namespace

Status EnforceNoFiles() {
  std::vector<LandlockRule> rules;
  for (const char* const path : kNames) {
    rules.push_back({path, isolation::landlock::kRead, /*required=*/false, -1});
  }
  if (const long set = Syscall(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); set < 0) {
    return sys::ErrnoError("daemon.role", "cannot set no_new_privs", set);
  }
  uint32_t failed = 0;
  const int abi = std::min(isolation::LandlockAbi(), kFileRights);
  const long entered = abi <= 0 ? 0 : isolation::EnforceLandlock(abi, rules, &failed);
  return entered < 0 ? Status(sys::ErrnoError("daemon.role", "cannot leave the files", entered))
                     : Status();
}

void RunEgress(const Config& config, int control) {
  (void)Syscall(SYS_prctl, PR_SET_NAME, Arg("coffer-egress"), 0, 0, 0);
  if (const Status served = ServeEgress(config, control); !served.ok()) {
    if (served.error().kind == ErrorKind::kRefused) {
      WaitForEnd(control);  // the gateway finds the same mistake, says so and ends
      ::_exit(0);
    }
    PrintError(served.error());
    ::_exit(kExitFailed);
  }
  ::_exit(0);
}

}  // namespace coffer::daemon
