// SPDX-License-Identifier: Apache-2.0
#include "daemon/call_egress_role.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <list>
#include <utility>
#include <vector>

#include "base/exit_codes.h"
#include "base/passed_fds.h"
#include "base/print.h"
#include "base/sys.h"
#include "call/run/egress_messages.h"
#include "daemon/egress_call.h"
#include "daemon/egress_role.h"
#include "daemon/role.h"

namespace coffer::daemon {
namespace {

using raw::Arg;
using raw::Syscall;

constexpr size_t kCallDescriptors = 3;
constexpr std::chrono::milliseconds kSweepTime{500};
constexpr std::chrono::milliseconds kRefillTime{1};

// The environment says where names are looked for. No search list: a name that is not there must not become a query for
// another one. A resolver that does not answer has 8 s.
void SetResolver() {
  ::clearenv();
  ::setenv("LOCALDOMAIN", "", 1);
  ::setenv("RES_OPTIONS", "timeout:2 attempts:2", 1);
}

// A log of bounded size, no memory image. Descriptors: what the host allows, which the monitor has raised.
Status BoundRole() {
  const rlimit size{call::kMostLogBytes, call::kMostLogBytes};
  const rlimit none{0, 0};
  if (::setrlimit(RLIMIT_FSIZE, &size) != 0 || ::setrlimit(RLIMIT_CORE, &none) != 0) {
    return Internal("egress.limits", "cannot bound the egress role");
  }
  // A write past RLIMIT_FSIZE fails with EFBIG then, instead of ending all calls of the role.
  ::signal(SIGXFSZ, SIG_IGN);
  ::signal(SIGPIPE, SIG_IGN);
  return {};
}

class Calls {
 public:
  Calls(net::Loop& loop, int door, egress::UpstreamTrust trust)
      : loop_(loop), door_(door), trust_(std::move(trust)) {}

  void Serve() {
    watch_ = loop_.WatchReadable(door_, [this] { Take(); });
    retire_ = loop_.WatchSignal(SIGHUP, [this] { Retire(); });
    loop_.Run();
  }

 private:
  void Take() {
    PassedFds received = ReceivePassedFds(door_, MSG_DONTWAIT);
    if (received.got == -EAGAIN || received.got == -EINTR) {
      return;
    }
    if (received.got <= 0) {
      loop_.Stop();  // the daemon ends
      return;
    }
    std::vector<UniqueFd>& fds = received.fds;
    if (received.got == 1 && received.word == 'C' && fds.size() == kCallDescriptors) {
      Begin(std::move(fds[0]), fds[1].get(), std::move(fds[2]));
    }
  }

  void Begin(UniqueFd control, int order, UniqueFd log) {
    auto served = std::make_unique<ServedCall>(loop_, std::move(control), std::move(log));
    if (const Status opened = served->Open(order, trust_, authorities_, watched_); !opened.ok()) {
      served->Refuse(opened.error());
      return;
    }
    const auto place = calls_.insert(calls_.end(), std::move(served));
    if (!(*place)->Serve([this] { SweepSoon(); }).ok()) {
      calls_.erase(place);  // its supervisor is gone
    }
  }

  // Another process serves the door from now on, with what this host trusts today. The calls that are here go on.
  void Retire() {
    retired_ = true;
    watch_.reset();
    StopIfDone();
  }
  void StopIfDone() {
    if (retired_ && calls_.empty()) {
      loop_.Stop();
    }
  }

  // Not at once: a call says itself that it has ended, and is not yet out of its own function then.
  void SweepSoon() {
    sweep_ = loop_.After(std::chrono::milliseconds(0), [this] { Sweep(); });
  }
  void Sweep() {
    bool later = false;
    for (auto call = calls_.begin(); call != calls_.end();) {
      const bool over = (*call)->over();
      later = later || ((*call)->ended() && !over);
      call = over ? calls_.erase(call) : std::next(call);
    }
    if (later) {  // one waits for a resolver
      sweep_ = loop_.After(kSweepTime, [this] { Sweep(); });
    }
    StopIfDone();
    RefillSoon();
  }

  // Behind a call, when its caller reads the answer: what the next one needs. One for each turn of the loop.
  void RefillSoon() {
    if (refill_ == nullptr) {
      refill_ = loop_.After(kRefillTime, [this] {
        refill_.reset();
        if (authorities_.Refill(BootTime())) {
          RefillSoon();
        }
      });
    }
  }

  net::Loop& loop_;
  const int door_;
  egress::UpstreamTrust trust_;
  egress::CaStock authorities_;
  egress::WatchedStock watched_;
  std::list<std::unique_ptr<ServedCall>> calls_;
  std::shared_ptr<void> watch_, sweep_, retire_, refill_;
  bool retired_ = false;
};

Status ServeCalls(int door) {
  SetResolver();
  egress::UpstreamTrust trust = egress::UpstreamTrust::OfThisHost();
  LoadResolver();
  TRY(BoundRole());
  TRY(EnforceNoFiles());
  TRY(EnterRole(RoleKind::kCallEgress));
  const std::unique_ptr<net::Loop> loop = net::MakeLoop();
  Calls(*loop, door, std::move(trust)).Serve();
  return {};
}

}  // namespace

void RunCallEgress(int door) {
  (void)Syscall(SYS_prctl, PR_SET_NAME, Arg("coffer-proxy"), 0, 0, 0);
  (void)Syscall(SYS_fcntl, door, F_SETFD, FD_CLOEXEC);
  if (const Status served = ServeCalls(door); !served.ok()) {
    PrintError(served.error());
    ::_exit(kExitFailed);
  }
  ::_exit(0);  // a thread may still wait for a resolver
}

}  // namespace coffer::daemon
