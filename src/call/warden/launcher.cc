// SPDX-License-Identifier: Apache-2.0
#include "call/warden/launcher.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/exit_codes.h"
#include "base/sys.h"
#include "call/warden/grant_network.h"
#include "call/warden/protocol.h"
#include "call/warden/runner.h"
#include "call/warden/tenant_uids.h"
#include "call/warden/wire.h"

namespace coffer::call {
namespace {

// Both ends of everything that a call and its caller have in common.
struct Channels {
  RunChannels ours;
  UniqueFd in, out, err, report;  // the runner's
};

Result<Channels> MakeChannels(std::string_view stdin_text) {
  Channels channels;
  // A sealed file, not a pipe: it holds all of stdin at once, so no process has to feed it.
  TRY_ASSIGN(channels.in, SealedBytes(stdin_text));
  TRY_ASSIGN(sys::Pipe out, sys::MakePipe());
  TRY_ASSIGN(sys::Pipe err, sys::MakePipe());
  TRY_ASSIGN(SocketPair report, MakeSocketPair(SOCK_STREAM));
  channels.ours = {std::move(out.read_end), std::move(err.read_end), std::move(report.first)};
  channels.out = std::move(out.write_end);
  channels.err = std::move(err.write_end);
  channels.report = std::move(report.second);
  return channels;
}

Status Allow(const Allowed& allowed, RunRequest& request) {
  TRY(CheckRequest(allowed.rules, allowed.table, request));
  return GrantNetwork(allowed.table, request);
}

// About a call that runs. A warden that is gone has taken its calls along.
Status SendVerb(int control, WardenVerb verb, const std::string& call_id, uint64_t size) {
  WardenMessage message;
  if (call_id.size() >= sizeof(message.call_id)) {
    return Internal("internal.wire", "the id of a call is too long");
  }
  message.verb = static_cast<uint32_t>(verb);
  message.size = size;
  memcpy(message.call_id, call_id.data(), call_id.size());
  return SendMessage(control, message, {});
}

}  // namespace

LocalLauncher::~LocalLauncher() {
  for (const auto& [id, pid] : runners_) {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
}

Result<RunChannels> LocalLauncher::Launch(const std::string& call_id, const RunRequest& request,
                                          std::string_view stdin_text) {
  TRY_ASSIGN(Channels channels, MakeChannels(stdin_text));
  RunRequest run = request;
  if (const Status allowed = allowed_ == nullptr ? Status() : Allow(*allowed_, run);
      !allowed.ok()) {
    SendReport(channels.report.get(), RefusalReport(allowed.error()), Patience::kNone);
    return std::move(channels.ours);
  }
  TRY_ASSIGN(run.uids, UidsOfTenant(run.tenant));
  if (!run.tools.empty() && !make_tools_) {
    return Internal("internal", "no process serves the tools of this call");
  }
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0) {
    // The child's copies of our ends must go: an end of file is how we learn that it is done.
    channels.ours = {};
    if (!BecomeRunner(channels.in.get(), channels.out.get(), channels.err.get(), parent)) {
      ::_exit(kExitFailed);
    }
    channels.in.Reset();
    channels.out.Reset();
    channels.err.Reset();
    std::unique_ptr<ToolsServer> tools;
    const RunRequest asked = run;  // for `tools`; RunAndReport takes the other and does not return
    if (!run.tools.empty()) {
      tools = make_tools_(asked, call_id);
      run.tools_server = tools.get();
    }
    RunAndReport(std::move(run), channels.report.get());
  }
  if (pid < 0) {
    return HostFault("isolation.host", "the host cannot start another process",
                     "wait until others have ended, or raise its limits");
  }
  runners_[call_id] = pid;
  return std::move(channels.ours);
}

void LocalLauncher::Signal(const std::string& call_id, int signal) {
  if (const auto found = runners_.find(call_id); found != runners_.end()) {
    ::kill(found->second, signal);
  }
}

void LocalLauncher::Reap(const std::string& call_id) {
  if (const auto found = runners_.find(call_id); found != runners_.end()) {
    while (raw::Syscall(SYS_wait4, found->second, 0, 0, 0) == -EINTR) {
    }
    runners_.erase(found);
  }
}

void LocalLauncher::Kill(const std::string& call_id) {
  // The supervisor asks the command to end for the first, and kills it for the second.
  Signal(call_id, SIGTERM);
  Signal(call_id, SIGINT);
}

Result<RunChannels> WardenLauncher::Launch(const std::string& call_id, const RunRequest& request,
                                           std::string_view stdin_text) {
  WardenMessage message;
  if (call_id.size() >= sizeof(message.call_id)) {
    return Internal("internal.wire", "the id of a call is too long");
  }
  if (request.parent.size() >= sizeof(message.parent_id)) {
    return Internal("internal.wire", "the id of a call is too long");
  }
  if (!request.tools.empty() && request.tools_channel < 0) {
    return Internal("internal", "no process serves the tools of this call");
  }
  const std::string bytes = EncodeRun(request);
  if (bytes.size() > kMaxWireBytes) {
    return Refused("policy.arguments", "the command line and environment are too large",
                   "pass large data through stdin");
  }
  TRY_ASSIGN(const UniqueFd sealed, SealedBytes(bytes));
  TRY_ASSIGN(Channels channels, MakeChannels(stdin_text));
  message.verb = static_cast<uint32_t>(WardenVerb::kLaunch);
  message.size = bytes.size();
  memcpy(message.call_id, call_id.data(), call_id.size());
  memcpy(message.parent_id, request.parent.data(), request.parent.size());
  std::vector<int> descriptors = {sealed.get(), channels.in.get(), channels.out.get(),
                                  channels.err.get(), channels.report.get()};
  descriptors.insert(descriptors.end(), request.port_channels.begin(), request.port_channels.end());
  if (request.tools_channel >= 0) {
    descriptors.push_back(request.tools_channel);
  }
  TRY(SendMessage(control_, message, descriptors));
  return std::move(channels.ours);
}

void WardenLauncher::Kill(const std::string& call_id) {
  (void)SendVerb(control_, WardenVerb::kKill, call_id, 0);
}

void WardenLauncher::Signal(const std::string& call_id, int signal) {
  (void)SendVerb(control_, WardenVerb::kSignal, call_id, static_cast<uint64_t>(signal));
}

}  // namespace coffer::call
