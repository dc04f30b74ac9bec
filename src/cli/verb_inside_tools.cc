// SPDX-License-Identifier: Apache-2.0
#include "cli/verb_inside_tools.h"

#include <sys/stat.h>
#include <unistd.h>

#include <charconv>

#include "base/exit_codes.h"
#include "base/print.h"
#include "call/warden/protocol.h"
#include "call/warden/wire.h"
#include "cli/inside_calls.h"
#include "cli/inside_control.h"
#include "cli/inside_server.h"
#include "cli/mcp_conversation.h"

namespace coffer::cli {
namespace {

constexpr call::FlagSpec kInsideToolsFlags[] = {{"--call", true},
                                                {"--session", true},
                                                {"--project", true},
                                                {"--calls", true},
                                                {"--config", true}};

Result<CallingRun> ReadRun(const call::VerbFlags& flags) {
  CallingRun run;
  run.call_id = flags.Value("--call");
  run.session = flags.Value("--session");
  const std::string calls = flags.Value("--calls", "0");
  const auto [end, problem] =
      std::from_chars(calls.data(), calls.data() + calls.size(), run.most_calls);
  struct stat info{};
  if (problem != std::errc() || end != calls.data() + calls.size() || run.call_id.empty() ||
      ::fstat(kInsideSecond, &info) != 0) {
    return Internal("internal", "the run that offers tools says too little of itself");
  }
  TRY_ASSIGN(const std::string bytes,
             call::ReadSealed(kInsideSecond, static_cast<uint64_t>(info.st_size)));
  TRY_ASSIGN(call::RunRequest maker, call::DecodeRun(bytes));
  run.envelope = std::move(maker.envelope);
  ::close(kInsideSecond);
  return run;
}

Result<bool> Serve(const call::VerbFlags& flags) {
  TRY_ASSIGN(CallingRun run, ReadRun(flags));
  TRY_ASSIGN(const std::unique_ptr<LocalLadder> ladder,
             LocalLadder::Open(flags, flags.Value("--project")));
  const UniqueFd signals = CatchEndingSignals();
  TRY_ASSIGN(const std::unique_ptr<InsideCalls> calls,
             InsideCalls::Open(*ladder, std::move(run), flags.rest()));
  TRY(SayInsideReady());
  TRY_ASSIGN(UniqueFd listener, ReceiveInsideListener());
  return !listener ||
         InsideServer(*calls, std::move(listener)).Serve(kInsideControl, signals.get());
}

}  // namespace

int InsideToolsVerb(std::span<const std::string_view> words) {
  const Result<call::VerbFlags> flags =
      call::VerbFlags::Parse(kInsideVerb, words, kInsideToolsFlags);
  if (!flags.ok() || !TakeInsidePlaces()) {
    PrintError(Refused("policy.usage", "coffer run --tools starts this, and nothing else does",
                       "write: coffer run --tools NAME -- CMD"));
    return kExitRefused;
  }
  const Result<bool> served = Serve(*flags);
  if (!served.ok()) {
    SayInsideFailed(served.error());
    return kExitFailed;
  }
  return *served ? 0 : kExitFailed;
}

}  // namespace coffer::cli
