// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "audit/receipt_file.h"
#include "base/exit_codes.h"
#include "base/json.h"
#include "base/patient_write.h"
#include "base/print.h"
#include "base/regular_file.h"
#include "base/sys.h"
#include "call/ladder.h"
#include "call/verb_flags.h"
#include "call/warden/collect.h"
#include "call/warden/launcher.h"
#include "cli/call_answer.h"
#include "cli/forget_old.h"
#include "cli/inside_client.h"
#include "cli/local_ladder.h"
#include "cli/local_sessions.h"
#include "cli/run_paths.h"
#include "cli/session_forwards.h"
#include "cli/state.h"
#include "cli/verbs.h"
#include "policy/reason.h"

namespace coffer::cli {
namespace {

constexpr std::string_view kCallUsage = R"(Call a declared tool, through the whole ladder.

Usage: coffer call TOOL [JSON] [flags]

JSON is the arguments, one object (default {}).

  --args JSON         the same; @FILE reads them from a file, - from stdin
  --session ID        in this session (`coffer sessions new`), whose workspace the tool then has
  --idempotency-key K the same key and request runs once, and gets the same answer again; irreversible and privileged
                      tools need one, unless their manifest says otherwise (--key K is the same)
  --traceparent TEXT  the W3C trace context it belongs to (default: $TRACEPARENT)
  --reason TEXT       what it is for, in one line: recorded and shown to people; it decides nothing
  --dry-run           decide, say the worst it could do, run nothing
  --fail-on-cut       exit 122 if output was cut; otherwise a warning on stderr says so
  --receipt FILE      write the receipt there (- is stderr)
  --config FILE       the limits of tenants and agents (coffer.toml in the operator's directory)
  --json              the answer as one JSON document on stdout, instead of the tool's own output
  --state DIR, --tools DIR   as in `coffer tools --help`

Files that the call exported (files.exports of its manifest) are kept: `coffer audit files CALL`, `coffer audit fetch`.

In a command of `coffer run --tools` it calls the tools that the run offers, and of the flags there are --args and --json.

Exit status: the tool's own; 120 refused, 122 a limit was breached, 125 Cofferdam failed.
)";

constexpr call::FlagSpec kCallFlags[] = {
    {"--args", true},  {"--session", true}, {"--idempotency-key", true}, {"--key", true},
    {"--dry-run"},     {"--receipt", true}, {"--traceparent", true},     {"--config", true},
    {"--fail-on-cut"}, {"--reason", true}};

Result<std::string> ReadArgs(const std::string& given) {
  constexpr size_t kMax = 16 << 20;
  if (given == "-") {
    return sys::ReadFd(STDIN_FILENO, kMax);
  }
  return given.starts_with("@") ? sys::ReadRegular(given.substr(1), kMax)
                                : Result<std::string>(given);
}

// After the call its signals end us again: the answer and the receipt may have to wait for a reader.
class MaskRestored {
 public:
  MaskRestored() { ::sigprocmask(SIG_BLOCK, nullptr, &before_); }
  ~MaskRestored() { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }
  MaskRestored(const MaskRestored&) = delete;
  MaskRestored& operator=(const MaskRestored&) = delete;

 private:
  sigset_t before_;
};

int CatchSignals() {
  sigset_t caught;
  sigemptyset(&caught);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    sigaddset(&caught, signal);
  }
  ::sigprocmask(SIG_BLOCK, &caught, nullptr);
  return ::signalfd(-1, &caught, SFD_CLOEXEC | SFD_NONBLOCK);
}

struct CallWishes {
  bool quiet = false;           // what the tool prints is not passed on
  bool fail_on_cut = false;     // output that was cut is a failure
  bool in_own_session = false;  // a session of the command line
  std::string state;            // the state directory
};

// From a request to its answer. What the tool prints is passed on as it comes, unless the caller wants it quiet.
call::ToolReply RunLadder(LocalLadder& local, const call::ToolRequest& request,
                          const CallWishes& wishes) {
  call::Ladder& ladder = local.ladder();
  std::variant<call::ReadyCall, call::ToolReply> climbed = ladder.Climb(request);
  if (auto* answered = std::get_if<call::ToolReply>(&climbed)) {
    if (!wishes.quiet && answered->outcome == "success") {
      // A dry run's sentence names the host's paths for the person at the command line.
      PrintBytes(answered->operator_message.empty() ? answered->stdout_text
                                                    : answered->operator_message);
    }
    return std::move(*answered);
  }
  call::ReadyCall& ready = std::get<call::ReadyCall>(climbed);
  // The marker of a cut is for text that a model reads; what goes to a file or a pipe is the tool's own bytes.
  ready.run.marks_cut = wishes.quiet;
  ready.run.cut_is_breach = wishes.fail_on_cut;
  ready.run.session = request.identity.session_id;
  std::vector<UniqueFd> ports;
  if (wishes.in_own_session) {
    Result<std::vector<UniqueFd>> forwarded =
        ForwardSessionPorts(wishes.state, request.identity.session_id, ready.run);
    if (!forwarded.ok()) {
      PrintError("coffer: warning: " + forwarded.error().message +
                 "; this call does not reach its ports");
    } else {
      ports = std::move(*forwarded);
    }
  }
  const MaskRestored restored;
  const UniqueFd signals(CatchSignals());
  call::LocalLauncher launcher(&local.allowed(), local.tools_maker());
  std::variant<call::RunChannels, call::ToolReply> launched = ladder.Launch(ready, launcher);
  if (auto* answered = std::get_if<call::ToolReply>(&launched)) {
    return std::move(*answered);
  }
  call::CollectOptions options;
  options.signals = signals.get();
  std::optional<Error> stopped;
  options.on_signal = [&](int signal) {
    stopped = Refused("policy.cancelled", fmt::format("cancelled by {}, with signal {}",
                                                      request.identity.user, signal));
    launcher.Signal(ready.call_id(), signal);
  };
  if (!wishes.quiet) {
    // A reader may take its time. A signal ends the wait, and what is left of the output is dropped.
    options.sink = [&, read = true](call::Stream stream, std::string_view piece) mutable {
      const int fd = stream == call::Stream::kOut ? STDOUT_FILENO : STDERR_FILENO;
      const sys::WriteWait wait = {std::chrono::milliseconds(-1), signals.get()};
      if (read) {
        const Status wrote = sys::WritePatiently(fd, piece, wait);
        read = wrote.ok() || wrote.error().sys_errno != EINTR;
      }
    };
  }
  call::Collected collected =
      call::Collect(std::move(std::get<call::RunChannels>(launched)), options);
  collected.stopped = std::move(stopped);
  return ladder.Descend(ready, std::move(collected));
}

// A session of the command line stays locked while the call runs. One that is unknown, has ended or belongs to another
// agent is left to admission, which refuses it and records that.
Result<std::optional<LocalSessions::Held>> HoldSession(State& state, const std::string& id) {
  std::optional<LocalSessions::Held> none;
  if (id.empty()) {
    return none;
  }
  TRY_ASSIGN(LocalSessions sessions, LocalSessions::Open(state));
  TRY(sessions.Sweep());
  Result<LocalSessions::Held> held = sessions.Hold(id);
  if (!held.ok() && held.error().kind == ErrorKind::kRefused &&
      held.error().code != kSessionLocked) {
    return none;
  }
  if (!held.ok()) {
    return std::move(held.error());
  }
  return std::optional<LocalSessions::Held>(std::move(*held));
}

}  // namespace

int CallVerb(std::span<const std::string_view> words) {
  const Result<call::VerbFlags> flags = call::VerbFlags::Parse("call", words, kCallFlags);
  if (!flags.ok()) {
    PrintError(flags.error());
    return kExitRefused;
  }
  const size_t words_given = flags->words().size();
  if (flags->help() || words_given == 0 || words_given > 2 ||
      (words_given == 2 && flags->Has("--args"))) {
    PrintOut(kCallUsage);
    return flags->help() ? 0 : kExitRefused;
  }
  Result<std::string> args = words_given == 2 ? Result<std::string>(flags->words().back())
                                              : ReadArgs(flags->Value("--args", "{}"));
  if (!args.ok()) {
    PrintError(args.error());
    return kExitRefused;
  }
  if (const std::string socket = ToolsSocket(); !socket.empty()) {
    return CallFromInside(socket, *flags, *args);
  }
  Result<std::unique_ptr<LocalLadder>> opened = LocalLadder::Open(*flags);
  if (!opened.ok()) {
    PrintError(opened.error());
    return opened.error().kind == ErrorKind::kRefused ? kExitRefused : kExitFailed;
  }
  LocalLadder& local = **opened;
  State& state = local.state();
  std::optional<audit::ReceiptFile> receipt;
  if (flags->Has("--receipt")) {
    std::string path = flags->Value("--receipt");
    const Status resolved = ResolveReceipt(path);
    Result<audit::ReceiptFile> file = resolved.ok() ? audit::ReceiptFile::Open(path)
                                                    : Result<audit::ReceiptFile>(resolved.error());
    if (!file.ok()) {
      PrintError(file.error());
      return kExitRefused;
    }
    receipt.emplace(std::move(file).value());
  }
  call::ToolRequest request;
  request.identity.agent = kCliAgent;
  request.identity.user = CallerName();
  request.identity.tool = flags->words().front();
  request.identity.session_id = flags->Value("--session");
  request.idempotency_key = flags->Value("--idempotency-key", flags->Value("--key"));
  request.dry_run = flags->Has("--dry-run");
  request.identity.reason = flags->Value("--reason");
  if (const Status reason = policy::CheckReason(request.identity.reason); !reason.ok()) {
    PrintError(reason.error());
    return kExitRefused;
  }
  const char* const inherited = ::getenv("TRACEPARENT");
  call::TakeTrace(flags->Value("--traceparent", inherited == nullptr ? "" : inherited),
                  request.identity);
  request.args_json = std::move(args).value();
  Result<std::optional<LocalSessions::Held>> session =
      HoldSession(state, request.identity.session_id);
  if (!session.ok()) {
    PrintError(session.error());
    return session.error().kind == ErrorKind::kRefused ? kExitRefused : kExitFailed;
  }
  const call::ToolReply reply = RunLadder(
      local, request,
      {flags->json(), flags->Has("--fail-on-cut"), session->has_value(), state.directory()});
  PrintReply(reply, request, state.shelf(), flags->json());
  if (receipt && !reply.receipt.empty()) {
    if (const Status wrote = receipt->Write(reply.receipt); !wrote.ok()) {
      PrintError(wrote.error());
      return kExitFailed;
    }
  }
  ForgetOld(state, request.identity.tenant,
            local.config().RulesOf(request.identity.tenant).retention);
  return ExitStatus(reply);
}

}  // namespace coffer::cli
