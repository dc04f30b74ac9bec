// SPDX-License-Identifier: Apache-2.0
#include "daemon/egress_call.h"

#include <fcntl.h>
#include <netdb.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/exit_codes.h"
#include "base/passed_fds.h"
#include "base/sys.h"
#include "call/run/egress_messages.h"
#include "daemon/egress_role.h"
#include "daemon/role.h"
#include "watch/incident.h"

namespace coffer::daemon {
namespace {

using call::EgressLogHead;
using policy::IpAddress;
using raw::Arg;
using raw::Syscall;

// Sockets for both sides of every connection and a few more; a log of bounded size; no memory image anywhere.
Status BoundProcess() {
  const rlimit files{256, 256};
  const rlimit size{call::kMostLogBytes, call::kMostLogBytes};
  const rlimit none{0, 0};
  if (::setrlimit(RLIMIT_NOFILE, &files) != 0 || ::setrlimit(RLIMIT_FSIZE, &size) != 0 ||
      ::setrlimit(RLIMIT_CORE, &none) != 0) {
    return Internal("egress.limits", "cannot bound the egress process");
  }
  ::signal(SIGXFSZ, SIG_IGN);
  ::signal(SIGPIPE, SIG_IGN);
  return {};
}

// The listeners, or nothing if the supervisor has closed its end.
std::optional<egress::Listeners> ReceiveListeners(int from) {
  PassedFds received = ReceivePassedFds(from, MSG_DONTWAIT);
  std::vector<UniqueFd>& fds = received.fds;
  if (received.got != 1 || received.word != 'L' ||
      (fds.size() != 1 && fds.size() != 3 && fds.size() != 4)) {
    return std::nullopt;
  }
  egress::Listeners listeners;
  listeners.proxy = std::move(fds[0]);
  if (fds.size() >= 3) {
    listeners.resolver = std::move(fds[1]);
    listeners.redirect = std::move(fds[2]);
  }
  if (fds.size() == 4) {
    listeners.redirect6 = std::move(fds[3]);
  }
  return listeners;
}

// The process of one call, from its start to its end.
Status ServeOne(ServedCall& served, net::Loop& loop) {
  egress::UpstreamTrust trust;  // read if a rule judges requests
  egress::CaStock authorities;
  egress::WatchedStock watched;
  TRY(served.Open(call::kEgressGrants, trust, authorities, watched));
  ::close(call::kEgressGrants);
  LoadResolver();
  TRY(BoundProcess());
  TRY(EnforceNoFiles());
  TRY(EnterRole(RoleKind::kCallEgress));
  TRY(served.Serve([&] { loop.Stop(); }));
  loop.Run();
  return {};
}

}  // namespace

// Appends to the memory file that the supervisor reads. What does not fit is summed up at its
// beginning. Refusals cost a program nothing: they get half of the room, so that they cannot crowd
// out what it did reach. Incidents among them have an eighth more, which no other refusal takes.
class ServedCall::LogWriter {
 public:
  explicit LogWriter(UniqueFd file) : file_(std::move(file)) {}

  void Add(const egress::Traffic& traffic) {
    const std::string entry = call::EncodeEntry(traffic);
    const size_t refused = refused_ + (traffic.allowed ? 0 : entry.size());
    const bool incident =
        !traffic.allowed &&
        (traffic.held_value || watch::FindDestination(traffic.host, traffic.leads_to).has_value());
    const size_t room = call::kMostLogBytes / 2 + (incident ? call::kMostLogBytes / 8 : 0);
    if (refused <= room && end_ + entry.size() <= call::kMostLogBytes && Put(entry, end_)) {
      end_ += entry.size();
      refused_ = refused;
      return;
    }
    ++head_.omitted;
    head_.bytes_out += traffic.bytes_out;
    head_.bytes_in += traffic.bytes_in;
    (void)Put({reinterpret_cast<const char*>(&head_), sizeof(head_)}, 0);
  }

 private:
  bool Put(std::string_view data, size_t at) const {
    const long put = Syscall(SYS_pwrite64, file_.get(), Arg(data.data()), data.size(), at);
    return put == static_cast<long>(data.size());
  }

  const UniqueFd file_;
  EgressLogHead head_;
  size_t end_ = sizeof(EgressLogHead);
  size_t refused_ = 0;  // bytes of entries
};

ServedCall::ServedCall(net::Loop& loop, UniqueFd control, UniqueFd log)
    : loop_(loop),
      control_(std::move(control)),
      log_(std::make_unique<LogWriter>(std::move(log))) {}

ServedCall::~ServedCall() = default;

Status ServedCall::Open(int order, egress::UpstreamTrust& trust, egress::CaStock& authorities,
                        egress::WatchedStock& watched) {
  TRY_ASSIGN(const std::string text, sys::ReadFd(order, call::kMostGrantBytes));
  TRY_ASSIGN(const call::EgressOrder given, call::DecodeOrder(text));
  TRY_ASSIGN(grants_, policy::ParseGrants(given.grants));
  std::vector<IpAddress> own;
  for (const std::string& one : given.own) {
    const std::optional<IpAddress> address = IpAddress::Parse(one);
    if (!address) {
      return Internal("egress.grants", "an address of this host cannot be read");
    }
    own.push_back(*address);
  }
  TRY_ASSIGN(proxy_,
             egress::MakeProxy(
                 loop_, grants_, trust, given.grants.upstream_ca, authorities, watched,
                 egress::AddressGuard(grants_.addresses, std::move(own), egress::IsOwnAddressNow),
                 [this](const egress::Traffic& traffic) { log_->Add(traffic); },
                 [this](const egress::AccessNotice& notice) {
                   return Say(call::EncodeNotice(notice)).ok();
                 }));
  // Ahead of the confinement: the boundary is made with it.
  return Say("K" + proxy_->ca_certificate());
}

Status ServedCall::Serve(std::function<void()> ended) {
  TRY(Say("R"));
  ended_ = std::move(ended);
  watch_ = loop_.WatchReadable(control_.get(), [this] { Hear(); });
  return {};
}

void ServedCall::Hear() {
  std::string message(call::kMostNoticeBytes, '\0');
  const long waits =
      Syscall(SYS_recvfrom, control_.get(), Arg(message.data()), 1, MSG_DONTWAIT | MSG_PEEK, 0, 0);
  if (waits == 1 && message[0] == 'D') {
    const long got = Syscall(SYS_recvfrom, control_.get(), Arg(message.data()), message.size(),
                             MSG_DONTWAIT, 0, 0);
    message.resize(got < 0 ? 0 : static_cast<size_t>(got));
    if (const std::optional<egress::AccessDecision> decision = call::DecodeDecision(message)) {
      proxy_->Decide(*decision);
    }
    return;
  }
  if (std::optional<egress::Listeners> listeners = ReceiveListeners(control_.get())) {
    proxy_->Serve(*std::move(listeners));
    return;
  }
  watch_.reset();
  proxy_->Finish([this] {
    (void)Say("F");
    said_end_ = true;
    ended_();
  });
}

void ServedCall::Refuse(const Error& error) {
  const char* const word = error.kind == ErrorKind::kRefused ? "E" : "H";
  (void)Say(word + error.message + "\n" + error.hint);
}

bool ServedCall::over() const { return said_end_ && proxy_->idle(); }

// Never waits: a supervisor that does not read loses its answer.
Status ServedCall::Say(std::string_view message) {
  const long sent = Syscall(SYS_sendto, control_.get(), Arg(message.data()), message.size(),
                            MSG_NOSIGNAL | MSG_DONTWAIT, 0, 0);
  return sent < 0 ? Status(sys::ErrnoError("egress.control", "the supervisor is gone", sent))
                  : Status();
}

void LoadResolver() {
  addrinfo* found = nullptr;
  if (::getaddrinfo("localhost", nullptr, nullptr, &found) == 0) {
    ::freeaddrinfo(found);
  }
}

int RunEgressCall() {
  (void)Syscall(SYS_prctl, PR_SET_NAME, Arg("coffer-egress"), 0, 0, 0);
  for (int fd = call::kEgressControl; fd <= call::kEgressLog; ++fd) {
    (void)Syscall(SYS_fcntl, fd, F_SETFD, FD_CLOEXEC);
  }
  const std::unique_ptr<net::Loop> loop = net::MakeLoop();
  ServedCall served(*loop, UniqueFd(call::kEgressControl), UniqueFd(call::kEgressLog));
  if (const Status ended = ServeOne(served, *loop); !ended.ok()) {
    served.Refuse(ended.error());
    ::_exit(kExitFailed);
  }
  ::_exit(0);  // a thread may still wait for a resolver
}

}  // namespace coffer::daemon
