// SPDX-License-Identifier: Apache-2.0
#include "cli/process_keeper.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "base/exit_codes.h"
#include "base/sys.h"
#include "call/warden/protocol.h"
#include "cli/detached.h"
#include "cli/process_control.h"
#include "cli/process_places.h"
#include "cli/process_runner.h"
#include "cli/state.h"
#include "store/session.h"

namespace coffer::cli {
namespace {

using raw::Arg;
using raw::Syscall;

constexpr size_t kMostConnections = 32;
// How often the keeper looks whether its session is still there; it is told when one is ended by hand.
constexpr Nanos kLookAgain = std::chrono::seconds(60);
// The supervisor gives the command less than that to tidy up.
constexpr Nanos kPatience = std::chrono::seconds(15);

class Keeper {
 public:
  Keeper(const call::RunRequest& request, UniqueFd starter)
      : request_(request), starter_(std::move(starter)) {}

  // From the fork to the end of the process. Returns the keeper's exit status.
  int Run() {
    if (!Begin().ok()) {
      return kExitFailed;
    }
    while (!Reaped()) {
      Turn();
    }
    Settle();
    return 0;
  }

 private:
  Status Begin() {
    TRY_ASSIGN(call::SocketPair reports, call::MakeSocketPair(SOCK_SEQPACKET));
    TRY_ASSIGN(stop_, SharedStop::Make());
    UniqueFd theirs;
    if (!request_.ports.empty()) {
      TRY_ASSIGN(call::SocketPair pair, call::MakeSocketPair(SOCK_SEQPACKET));
      channel_ = std::move(pair.first);
      theirs = std::move(pair.second);
    }
    sigset_t caught;
    sigemptyset(&caught);
    for (const int signal : {SIGCHLD, SIGTERM, SIGINT, SIGQUIT, SIGHUP}) {
      sigaddset(&caught, signal);
    }
    sigset_t before;
    ::sigprocmask(SIG_BLOCK, &caught, &before);
    ::signal(SIGCHLD, SIG_DFL);
    const pid_t keeper = ::getpid();
    runner_ = ::fork();
    if (runner_ == 0) {
      ::sigprocmask(SIG_SETMASK, &before, nullptr);
      starter_.Reset();
      reports.first.Reset();
      channel_.Reset();
      const bool ready = CloseAllBut({reports.second.get(), theirs.get()}) &&
                         Syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) >= 0 &&
                         ::getppid() == keeper && PointAtNull({STDIN_FILENO, STDOUT_FILENO});
      ::_exit(ready ? RunInBackground(request_, std::move(reports.second), std::move(theirs), stop_)
                    : kExitFailed);
    }
    if (runner_ < 0) {
      return HostFault("isolation.host", "the host cannot start another process");
    }
    // From here on the terminal is not ours, and neither is the directory it was in.
    reports_ = std::move(reports.first);
    reports.second.Reset();
    theirs.Reset();
    signals_ = UniqueFd(::signalfd(-1, &caught, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!signals_ || !PointAtNull({STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ||
        ::chdir("/") != 0) {
      return HostFault("isolation.host", "the keeper cannot leave its terminal");
    }
    return {};
  }

  // The kernel kills the runner with us, so an error in here ends everything.
  void Turn() {
    const Nanos now = BootTime();
    if (stop_at_ != Nanos(0) && now >= stop_at_) {
      ::kill(runner_, SIGKILL);
    }
    if (launched_ && now >= look_at_) {
      look_at_ = now + kLookAgain;
      if (const Nanos left = SessionTimeLeft(); left <= Nanos(0)) {
        Stop(StopReason::kSessionEnded);
      } else {
        look_at_ = std::min(look_at_, now + left);
      }
    }
    std::vector<pollfd> waits = {{signals_.get(), POLLIN, 0},
                                 {reports_.get(), POLLIN, 0},
                                 {listener_ ? listener_.get() : -1, POLLIN, 0}};
    for (const UniqueFd& connection : connections_) {
      waits.push_back({connection.get(), POLLIN, 0});
    }
    const Nanos until = std::min(look_at_, stop_at_ == Nanos(0) ? look_at_ : stop_at_) - BootTime();
    const Nanos wait = std::clamp(until, Nanos(0), kLookAgain);
    const timespec time{static_cast<time_t>(wait.count() / 1'000'000'000),
                        static_cast<long>(wait.count() % 1'000'000'000)};
    if (Syscall(SYS_ppoll, Arg(waits.data()), static_cast<long>(waits.size()), Arg(&time), 0, 0) <=
        0) {
      return;
    }
    if (waits[0].revents != 0) {
      OnSignal();
    }
    if (waits[1].revents != 0) {
      OnReport();
    }
    for (size_t i = 0; i < connections_.size(); ++i) {
      if (waits[i + 3].revents != 0 && !Serve(connections_[i].get())) {
        connections_[i].Reset();
      }
    }
    std::erase_if(connections_, [](const UniqueFd& connection) { return !connection.valid(); });
    if (waits[2].revents != 0) {
      UniqueFd connection = AcceptVerb(listener_.get());
      if (connection && connections_.size() < kMostConnections) {
        connections_.push_back(std::move(connection));
      }
    }
  }

  bool Reaped() {
    int status = 0;
    if (::waitpid(runner_, &status, WNOHANG) != runner_) {
      return false;
    }
    exit_status_ = WIFEXITED(status) ? WEXITSTATUS(status) : kExitSignalled + WTERMSIG(status);
    while (OnReport()) {
    }
    return true;
  }

  void OnSignal() {
    signalfd_siginfo info{};
    while (Syscall(SYS_read, signals_.get(), Arg(&info), sizeof(info)) ==
           static_cast<long>(sizeof(info))) {
      // A terminal that closes is no reason to end. What ends a keeper on purpose is SIGTERM.
      if (info.ssi_signo == SIGTERM || info.ssi_signo == SIGINT || info.ssi_signo == SIGQUIT) {
        Stop(StopReason::kKeeperTold);
      }
    }
  }

  // False: nothing more comes.
  bool OnReport() {
    std::optional<RunnerReport> report = reports_ ? ReadReport(reports_.get()) : std::nullopt;
    if (!report) {
      reports_.Reset();
      return false;
    }
    switch (report->step) {
      case RunnerStep::kAdmitted:
        process_.id = report->process.id;
        break;
      case RunnerStep::kLaunched:
        if (!Publish().ok()) {
          ::kill(runner_, SIGKILL);
        }
        break;
      case RunnerStep::kEnded:
        end_ = std::move(report->process);
        break;
    }
    return true;
  }

  // The command runs: from now on it can be listed and reached, and the starter may go.
  Status Publish() {
    TRY_ASSIGN(const ProcessPlaces places, ProcessPlaces::Open(request_.state));
    TRY_ASSIGN(dir_, places.OpenProcess(request_.session, process_.id));
    TRY_ASSIGN(listener_, ListenForVerbs(dir_.get()));
    process_.command = request_.command;
    process_.ports = request_.ports;
    process_.started_at = WallTime();
    TRY(ProcessPlaces::WriteAbout(dir_.get(), process_));
    launched_ = true;
    look_at_ = BootTime();
    StartMessage message;
    memcpy(message.id, process_.id.data(), std::min(process_.id.size(), sizeof(message.id) - 1));
    message.exit_status = 0;
    if (!Tell(message)) {
      Stop(StopReason::kKeeperTold);  // the caller interrupted the start
    }
    return {};
  }

  bool Tell(const StartMessage& message) {
    const long sent =
        Syscall(SYS_sendto, starter_.get(), Arg(&message), sizeof(message), MSG_NOSIGNAL, 0, 0);
    starter_.Reset();
    return sent > 0;
  }

  // False: the connection is over.
  bool Serve(int connection) {
    const std::optional<KeeperRequest> request = ReadRequest(connection);
    if (!request) {
      return false;
    }
    switch (request->verb) {
      case KeeperVerb::kChannel:
        SendAnswer(connection, channel_.valid(), channel_.get());
        break;
      case KeeperVerb::kSignal: {
        const bool known = request->value > 0 && request->value < SIGRTMIN;
        SendAnswer(connection, known && ::kill(runner_, request->value) == 0, -1);
        break;
      }
      case KeeperVerb::kStop:
        Stop(static_cast<StopReason>(request->value));
        SendAnswer(connection, true, -1);
        break;
    }
    return true;
  }

  // The supervisor asks the command to end for the first signal, and kills it for the second.
  void Stop(StopReason reason) {
    if (stop_.reason() == StopReason::kNone) {
      stop_.Say(reason);
      stop_at_ = BootTime() + kPatience;
    }
    ::kill(runner_, SIGTERM);
    if (reason == StopReason::kSessionEnded) {
      ::kill(runner_, SIGINT);
    }
  }

  // Not positive: it has ended. A store that cannot be read is asked again. All of the state is
  // opened, because opening the store ends calls of dead processes, and the log must have their
  // ends.
  Nanos SessionTimeLeft() const {
    Result<State> state = State::OpenRecord(request_.state);
    if (!state.ok()) {
      return kLookAgain;
    }
    const Result<std::optional<store::Session>> session =
        store::FindSession(state->store(), store::TenantId::Local(), request_.session);
    if (!session.ok()) {
      return kLookAgain;
    }
    return !*session || (*session)->ended_at ? Nanos(0)
                                             : (*session)->ends_at - state->store().Now();
  }

  void Settle() {
    const Result<ProcessPlaces> places = ProcessPlaces::Open(request_.state);
    if (!launched_) {
      if (places.ok() && !process_.id.empty()) {
        (void)places->RemoveProcess(request_.session, process_.id);
      }
      StartMessage message;
      message.exit_status = exit_status_ == 0 ? kExitFailed : exit_status_;
      (void)Tell(message);
      return;
    }
    if (!end_) {
      end_.emplace();
      end_->outcome = "unknown";
      end_->error_class = "internal";
      end_->error_message = "its supervisor was killed, and took it along";
    }
    end_->ended_at = WallTime();
    (void)ProcessPlaces::WriteEnd(dir_.get(), *end_);
    (void)Syscall(SYS_unlinkat, dir_.get(), Arg("control"), 0);
  }

  const call::RunRequest& request_;
  UniqueFd starter_;
  UniqueFd reports_;  // of the runner
  UniqueFd channel_;  // to the forwarder of the process's ports
  UniqueFd signals_;
  UniqueFd dir_;       // of the process
  UniqueFd listener_;  // of the control socket
  std::vector<UniqueFd> connections_;
  SharedStop stop_;
  ProcessInfo process_;
  std::optional<ProcessInfo> end_;
  pid_t runner_ = -1;
  int exit_status_ = kExitFailed;
  bool launched_ = false;
  Nanos look_at_ = BootTime() + kLookAgain;
  Nanos stop_at_{0};
};

}  // namespace

int KeepProcess(const call::RunRequest& request, UniqueFd starter) {
  return Keeper(request, std::move(starter)).Run();
}

}  // namespace coffer::cli
