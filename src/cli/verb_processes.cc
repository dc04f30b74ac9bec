// SPDX-License-Identifier: Apache-2.0
#include "cli/verb_processes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/exit_codes.h"
#include "base/print.h"
#include "base/regular_file.h"
#include "base/sys.h"
#include "base/text.h"
#include "cli/local_sessions.h"
#include "cli/process_control.h"
#include "cli/process_places.h"
#include "cli/process_start.h"
#include "cli/verb_run.h"
#include "isolation/host_path.h"
#include "policy/manifest/mistake.h"

namespace coffer::cli {
namespace {

// A server runs for hours. Its session bounds it: no session lives longer than --wall here.
constexpr std::string_view kUsualLimits[] = {"--wall=30d", "--cpu=30m", "--io=16GiB"};
constexpr std::chrono::milliseconds kFollowEvery{200};
constexpr std::chrono::seconds kLongestStop{30};

struct NamedSignal {
  std::string_view name;
  int number;
};
constexpr NamedSignal kSignals[] = {{"TERM", SIGTERM}, {"INT", SIGINT},   {"QUIT", SIGQUIT},
                                    {"HUP", SIGHUP},   {"USR1", SIGUSR1}, {"USR2", SIGUSR2}};

Error UnknownSignal(std::string_view word) {
  std::vector<std::string_view> names;
  for (const NamedSignal& one : kSignals) {
    names.push_back(one.name);
  }
  const std::string_view nearest = policy::NearestWord(word, names);
  return Refused("policy.value", fmt::format("\"{}\" is not a signal to send", Printable(word)),
                 nearest.empty() ? fmt::format("one of {}; `coffer sessions stop` ends it",
                                               fmt::join(names, ", "))
                                 : fmt::format("did you mean {}?", nearest));
}

Status CheckStart(const call::RunRequest& request) {
  const char* wrong = request.envelope.tty            ? "--tty: it has no terminal"
                      : !request.session.empty()      ? "--session: the session is the first word"
                      : !request.receipt_path.empty() ? "--receipt: the record has the receipt"
                      : request.trace                 ? "--trace: the record has the receipt"
                      : request.command.front() == "-" && request.script
                          ? "-: the script must be a file"
                      : !request.egress.empty() ? "--allow: it has no network yet"
                      : !request.tools.empty()  ? "--tools: only `coffer run` offers them"
                      : !request.publish.empty() && !request.ports.empty()
                          ? "--publish together with --port: choose one"
                          : nullptr;
  if (wrong == nullptr) {
    return {};
  }
  return Refused("policy.usage", fmt::format("a background process cannot have {}", wrong),
                 "`coffer sessions --help` says what it can; `coffer audit show PROCESS` shows its "
                 "receipt when it has ended");
}

// Before anything is started: the session is there, open and ours.
Status CheckSession(const std::string& directory, const std::string& session) {
  TRY_ASSIGN(State state, State::OpenRecord(directory));
  TRY_ASSIGN(LocalSessions sessions, LocalSessions::Open(state));
  TRY(sessions.Sweep());
  TRY_ASSIGN(const LocalSessions::Held held, sessions.Hold(session));
  return {};
}

// --json is not one of the flags of `coffer run`: it stands behind the session, or before the "--".
// What comes after the program's name is the program's.
bool TakeJson(std::vector<std::string_view>& words) {
  const auto separator = std::find(words.begin(), words.end(), "--");
  const auto end =
      separator != words.end() ? separator : words.begin() + std::min<long>(2, std::ssize(words));
  const auto json = std::find(words.begin(), end, "--json");
  if (json == end) {
    return false;
  }
  words.erase(json);
  return true;
}

struct StartedIn {
  Started started;
  std::string state;
  std::string session;
};

Result<StartedIn> Start(std::span<const std::string_view> words, isolation::OwnWords own) {
  if (words.size() < 2 || words.front().starts_with("-")) {
    return Refused("policy.usage", "coffer sessions start needs a session and a command",
                   "write: coffer sessions start ID --port 8000 -- CMD ARG...");
  }
  TRY_ASSIGN(call::RunRequest request, ReadRunWords(kUsualLimits, words.subspan(1), own));
  TRY(CheckStart(request));
  request.session = std::string(words.front());
  request.background = true;
  TRY_ASSIGN(request.state, isolation::CleanPath(StateOf(request)));
  TRY(CheckSession(request.state, request.session));
  TRY_ASSIGN(Started started, StartProcess(request));
  return StartedIn{std::move(started), request.state, request.session};
}

// As `processes` lists it.
Result<std::string> DescribeStarted(const StartedIn& in) {
  TRY_ASSIGN(const ProcessPlaces places, ProcessPlaces::Open(in.state));
  TRY_ASSIGN(const std::vector<ProcessInfo> processes, places.List(in.session));
  for (const ProcessInfo& process : processes) {
    if (process.id == in.started.id) {
      return PrintJson(ProcessJson(process), 2) + "\n";
    }
  }
  return HostFault("isolation.process", "the process ended with its session");
}

// What a payload printed must not act on the terminal of a person who reads it.
void PrintLog(std::string_view text) {
  if (::isatty(STDOUT_FILENO) != 1) {
    PrintOut(text);
    return;
  }
  while (!text.empty()) {
    const size_t end = text.find('\n');
    PrintOut(Escaped(text.substr(0, end)) + (end == std::string_view::npos ? "" : "\n"));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
}

// From `offset` on.
Result<std::string> ReadLogFrom(int log, uint64_t offset) {
  std::string text;
  std::string piece(65536, '\0');
  while (true) {
    const long got =
        raw::Syscall(SYS_pread64, log, raw::Arg(piece.data()), static_cast<long>(piece.size()),
                     static_cast<long>(offset + text.size()));
    if (got < 0) {
      return sys::ErrnoError("store.processes", "cannot read the log of a process", got);
    }
    if (got == 0) {
      return text;
    }
    text.append(piece, 0, static_cast<size_t>(got));
  }
}

struct Reached {
  UniqueFd dir;
  std::optional<UniqueFd> keeper;
};

// The session is the command line's own and open; the process is one of its.
Result<Reached> Reach(State& state, const std::string& session, const std::string& process) {
  TRY_ASSIGN(LocalSessions sessions, LocalSessions::Open(state));
  TRY_ASSIGN(const LocalSessions::Held held, sessions.Hold(session));
  TRY_ASSIGN(const ProcessPlaces places, ProcessPlaces::Open(state.directory()));
  Reached reached;
  TRY_ASSIGN(reached.dir, places.OpenProcess(session, process));
  TRY_ASSIGN(reached.keeper, FindKeeper(reached.dir.get()));
  return reached;
}

Error HasEnded(const std::string& process) {
  return Refused("policy.process", fmt::format("process {} has ended", process),
                 "`coffer sessions processes ID` says how");
}

}  // namespace

int StartVerb(std::span<const std::string_view> words, isolation::OwnWords own) {
  std::vector<std::string_view> rest(words.begin(), words.end());
  const bool json = TakeJson(rest);
  const Result<StartedIn> in = Start(rest, own);
  if (!in.ok()) {
    PrintError(in.error());
    return ExitOf(in.error().kind);
  }
  if (!in->started.id.empty()) {
    const Result<std::string> text =
        json ? DescribeStarted(*in) : Result<std::string>(in->started.id + "\n");
    if (!text.ok()) {
      PrintError(text.error());
      return ExitOf(text.error().kind);
    }
    PrintOut(*text);
  }
  return in->started.exit_status;
}

Result<std::string> ListProcesses(const call::VerbFlags& flags, State& state,
                                  const std::string& session) {
  TRY_ASSIGN(LocalSessions sessions, LocalSessions::Open(state));
  TRY_ASSIGN(const LocalSessions::Held held, sessions.Hold(session));
  TRY_ASSIGN(const ProcessPlaces places, ProcessPlaces::Open(state.directory()));
  TRY_ASSIGN(const std::vector<ProcessInfo> processes, places.List(session));
  Json list = Json::array();
  std::string text = fmt::format("{:<36}  {:<24}  {:<12}  {:<11}  {}\n", "ID", "STARTED", "STATE",
                                 "PORTS", "COMMAND");
  for (const ProcessInfo& process : processes) {
    list.push_back(ProcessJson(process));
    const std::string state_text = process.running     ? "running"
                                   : process.exit_code ? fmt::format("exit {}", *process.exit_code)
                                                       : process.outcome;
    text += fmt::format(
        "{:<36}  {:<24}  {:<12}  {:<11}  {}\n", process.id, FormatTime(process.started_at),
        state_text, process.ports.empty() ? "-" : fmt::format("{}", fmt::join(process.ports, ",")),
        Printable(fmt::format("{}", fmt::join(process.command, " "))));
    if (!process.error_message.empty()) {
      text += fmt::format("  {}: {}\n", process.error_class, Printable(process.error_message));
    }
  }
  return flags.json() ? PrintJson(Json{{"processes", std::move(list)}}, 2) + "\n" : text;
}

Result<std::string> ReadProcessLog(const call::VerbFlags& flags, State& state,
                                   const std::string& session, const std::string& process) {
  TRY_ASSIGN(const Reached reached, Reach(state, session, process));
  TRY_ASSIGN(const UniqueFd log,
             sys::OpenRegularAt(reached.dir.get(), "log", O_RDONLY | O_NOFOLLOW));
  if (flags.json()) {
    TRY_ASSIGN(const std::string text, ReadLogFrom(log.get(), 0));
    return PrintJson(Json{{"offset", 0},
                          {"next", text.size()},
                          {"text", text},
                          {"ended", !reached.keeper.has_value()}},
                     2) +
           "\n";
  }
  uint64_t offset = 0;
  bool over = !flags.Has("--follow") || !reached.keeper;
  while (true) {
    TRY_ASSIGN(const std::string text, ReadLogFrom(log.get(), offset));
    offset += text.size();
    PrintLog(text);
    if (over) {
      return std::string();
    }
    over = AwaitEnd(reached.keeper->get(), kFollowEvery);
  }
}

Result<std::string> SignalProcess(State& state, const std::string& session,
                                  const std::string& process, const std::string& signal) {
  std::string_view name = signal;
  if (name.starts_with("SIG")) {
    name.remove_prefix(3);
  }
  for (const NamedSignal& known : kSignals) {
    if (known.name == name) {
      TRY_ASSIGN(const Reached reached, Reach(state, session, process));
      if (!reached.keeper) {
        return HasEnded(process);
      }
      TRY(AskKeeper(reached.keeper->get(), {KeeperVerb::kSignal, known.number}));
      return fmt::format("{} got {}\n", process, name);
    }
  }
  return UnknownSignal(signal);
}

Result<std::string> StopProcess(State& state, const std::string& session,
                                const std::string& process) {
  TRY_ASSIGN(const Reached reached, Reach(state, session, process));
  if (!reached.keeper) {
    return HasEnded(process);
  }
  TRY(AskKeeper(reached.keeper->get(),
                {KeeperVerb::kStop, static_cast<int32_t>(StopReason::kAsked)}));
  if (!AwaitEnd(reached.keeper->get(), kLongestStop)) {
    return HostFault("isolation.process", fmt::format("process {} does not end", process),
                     "its keeper may have been stopped: `ps` shows it as coffer sessions start");
  }
  return fmt::format("{} has ended\n", process);
}

}  // namespace coffer::cli
