// SPDX-License-Identifier: Apache-2.0
#include "cli/process_runner.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <new>
#include <nlohmann/json.hpp>

#include "base/exit_codes.h"
#include "base/json.h"
#include "base/sys.h"
#include "cli/recorded_run.h"
#include "store/state_part.h"

namespace coffer::cli {
namespace {

using raw::Arg;
using raw::Syscall;

constexpr size_t kMaxReport = 16384;
constexpr size_t kMaxMessage = 4096;

std::string WhyStopped(StopReason reason) {
  switch (reason) {
    case StopReason::kAsked:
      return fmt::format("stopped by uid:{}", ::getuid());
    case StopReason::kSessionEnded:
      return "stopped because its session has ended";
    default:
      return "stopped because its keeper was told to end";
  }
}

class Reporter : public RunObserver {
 public:
  Reporter(const call::RunRequest& request, int socket, const SharedStop& stop)
      : request_(request), socket_(socket), stop_(stop) {}

  Status Admitted(const std::string& call_id) override {
    TRY_ASSIGN(const ProcessPlaces places, ProcessPlaces::Open(request_.state));
    TRY_ASSIGN(const UniqueFd dir, places.MakeProcess(request_.session, call_id));
    TRY_ASSIGN(log_, store::OpenStatePart(dir.get(), "log", O_WRONLY | O_APPEND));
    return Send({{"step", static_cast<int>(RunnerStep::kAdmitted)}, {"id", call_id}});
  }

  void Launched() override {
    for (const int fd : {STDOUT_FILENO, STDERR_FILENO}) {
      if (Syscall(SYS_dup3, log_.get(), fd, 0) < 0) {
        ::_exit(kExitFailed);
      }
    }
    log_.Reset();
    (void)Send({{"step", static_cast<int>(RunnerStep::kLaunched)}});
  }

  void Ended(call::RunOutcome& outcome) override {
    audit::Receipt& receipt = outcome.receipt;
    if (outcome.interrupted_by != 0 && receipt.error_class.empty() &&
        stop_.reason() != StopReason::kNone) {
      receipt.error_class = "policy.cancelled";
      receipt.error_message = WhyStopped(stop_.reason());
    }
    const auto number = [](const std::optional<int>& value) {
      return value ? Json(*value) : Json(nullptr);
    };
    (void)Send({{"step", static_cast<int>(RunnerStep::kEnded)},
                {"outcome", receipt.outcome},
                {"exit_code", number(receipt.exit_code)},
                {"exit_signal", number(receipt.exit_signal)},
                {"error_class", receipt.error_class},
                {"error_message", receipt.error_message.substr(0, kMaxMessage)}});
  }

 private:
  Status Send(const Json& report) const {
    const std::string text = PrintJson(report);
    const long sent = Syscall(SYS_sendto, socket_, Arg(text.data()), static_cast<long>(text.size()),
                              MSG_NOSIGNAL, 0, 0);
    return sent < 0 ? Status(sys::ErrnoError("internal", "cannot tell the keeper", sent))
                    : Status();
  }

  const call::RunRequest& request_;
  const int socket_;
  const SharedStop& stop_;
  UniqueFd log_;
};

}  // namespace

Result<SharedStop> SharedStop::Make() {
  void* const memory = ::mmap(nullptr, sizeof(std::atomic<int32_t>), PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    return HostFault("isolation.host", "the host has no memory left");
  }
  SharedStop stop;
  stop.place_ = new (memory) std::atomic<int32_t>(0);
  return stop;
}

std::optional<RunnerReport> ReadReport(int socket) {
  std::string text(kMaxReport, '\0');
  const long got = Syscall(SYS_recvfrom, socket, Arg(text.data()), static_cast<long>(text.size()),
                           MSG_DONTWAIT, 0, 0);
  if (got <= 0) {
    return std::nullopt;
  }
  text.resize(static_cast<size_t>(got));
  const Result<Json> json = ParseJson(text);
  if (!json.ok()) {
    return std::nullopt;
  }
  const auto string = [&](const char* name) { return json->value(name, std::string()); };
  const auto number = [&](const char* name) {
    const auto found = json->find(name);
    return found != json->end() && found->is_number() ? std::optional(found->get<int>())
                                                      : std::nullopt;
  };
  RunnerReport report;
  report.step = static_cast<RunnerStep>(number("step").value_or(0));
  report.process.id = string("id");
  report.process.outcome = string("outcome");
  report.process.exit_code = number("exit_code");
  report.process.exit_signal = number("exit_signal");
  report.process.error_class = string("error_class");
  report.process.error_message = string("error_message");
  return report;
}

int RunInBackground(const call::RunRequest& request, UniqueFd reports, UniqueFd channel,
                    const SharedStop& stop) {
  call::RunRequest run = request;
  if (channel) {
    run.port_channels.insert(run.port_channels.begin(), channel.Release());
  }
  Reporter reporter(run, reports.get(), stop);
  return RecordedRun(run, std::nullopt, &reporter);
}

}  // namespace coffer::cli
