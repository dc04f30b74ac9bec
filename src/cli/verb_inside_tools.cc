// SPDX-License-Identifier: Apache-2.0
#include "cli/verb_inside_tools.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <charconv>

#include "base/exit_codes.h"
#include "base/passed_fds.h"
#include "base/print.h"
#include "base/sys.h"
#include "call/warden/protocol.h"
#include "call/warden/wire.h"
#include "cli/inside_calls.h"
#include "cli/inside_server.h"
#include "cli/mcp_conversation.h"

namespace coffer::cli {
namespace {

using raw::Arg;
using raw::Syscall;

constexpr call::FlagSpec kInsideToolsFlags[] = {{"--call", true},
                                                {"--session", true},
                                                {"--project", true},
                                                {"--calls", true},
                                                {"--config", true}};

// True if this process was started as it must be. Neither descriptor goes on to what it starts.
bool TakePlaces() {
  int type = 0;
  socklen_t size = sizeof(type);
  return ::getsockopt(kInsideControl, SOL_SOCKET, SO_TYPE, &type, &size) == 0 &&
         type == SOCK_SEQPACKET && ::fcntl(kInsideControl, F_SETFD, FD_CLOEXEC) == 0 &&
         ::fcntl(kInsideEnvelope, F_SETFD, FD_CLOEXEC) == 0;
}

Result<CallingRun> ReadRun(const call::VerbFlags& flags) {
  CallingRun run;
  run.call_id = flags.Value("--call");
  run.session = flags.Value("--session");
  const std::string calls = flags.Value("--calls", "0");
  const auto [end, problem] =
      std::from_chars(calls.data(), calls.data() + calls.size(), run.most_calls);
  struct stat info{};
  if (problem != std::errc() || end != calls.data() + calls.size() || run.call_id.empty() ||
      ::fstat(kInsideEnvelope, &info) != 0) {
    return Internal("internal", "the run that offers tools says too little of itself");
  }
  TRY_ASSIGN(const std::string bytes,
             call::ReadSealed(kInsideEnvelope, static_cast<uint64_t>(info.st_size)));
  TRY_ASSIGN(call::RunRequest maker, call::DecodeRun(bytes));
  run.envelope = std::move(maker.envelope);
  ::close(kInsideEnvelope);
  return run;
}

Status AnswerRun(const std::string& message) {
  const long sent = Syscall(SYS_sendto, kInsideControl, Arg(message.data()),
                            static_cast<long>(message.size()), MSG_NOSIGNAL, 0, 0);
  return sent < 0 ? Status(sys::ErrnoError("internal", "cannot answer the run", sent)) : Status();
}

// Waits for it. No descriptor: the run has ended before its command began.
Result<UniqueFd> ReceiveListener() {
  PassedFds received = ReceivePassedFds(kInsideControl);
  while (received.got == -EINTR) {
    received = ReceivePassedFds(kInsideControl);
  }
  if (received.got < 0) {
    return sys::ErrnoError("internal", "cannot hear of the run", received.got);
  }
  if (received.got == 0) {
    return UniqueFd();
  }
  if (received.word != 'L' || received.fds.size() != 1) {
    return Internal("internal", "the run sent something else than its socket");
  }
  return std::move(received.fds.front());
}

Result<bool> Serve(const call::VerbFlags& flags) {
  TRY_ASSIGN(CallingRun run, ReadRun(flags));
  TRY_ASSIGN(const std::unique_ptr<LocalLadder> ladder,
             LocalLadder::Open(flags, flags.Value("--project")));
  const UniqueFd signals = CatchEndingSignals();
  TRY_ASSIGN(const std::unique_ptr<InsideCalls> calls,
             InsideCalls::Open(*ladder, std::move(run), flags.rest()));
  TRY(AnswerRun("R"));
  TRY_ASSIGN(UniqueFd listener, ReceiveListener());
  return !listener ||
         InsideServer(*calls, std::move(listener)).Serve(kInsideControl, signals.get());
}

}  // namespace

int InsideToolsVerb(std::span<const std::string_view> words) {
  const Result<call::VerbFlags> flags =
      call::VerbFlags::Parse(kInsideVerb, words, kInsideToolsFlags);
  if (!flags.ok() || !TakePlaces()) {
    PrintError(Refused("policy.usage", "coffer run --tools starts this, and nothing else does",
                       "write: coffer run --tools NAME -- CMD"));
    return kExitRefused;
  }
  const Result<bool> served = Serve(*flags);
  if (!served.ok()) {
    const Error& error = served.error();
    const char kind = error.kind == ErrorKind::kRefused ? 'E' : 'F';
    (void)AnswerRun(fmt::format("{}{}\n{}\n{}", kind, error.code, error.message, error.hint)
                        .substr(0, kMostInsideError));
    return kExitFailed;
  }
  return *served ? 0 : kExitFailed;
}

}  // namespace coffer::cli
