// SPDX-License-Identifier: Apache-2.0
#include "cli/verb_run.h"

#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "base/ending_signals.h"
#include "base/exit_codes.h"
#include "base/print.h"
#include "base/regular_file.h"
#include "base/text.h"
#include "call/incidents.h"
#include "call/never_send_file.h"
#include "call/redact.h"
#include "call/run/run_call.h"
#include "call/run/run_config.h"
#include "call/run/run_profile.h"
#include "call/run/usual_directories.h"
#include "cli/misplaced_flag.h"
#include "cli/missed_neighbour.h"
#include "cli/own_loopback.h"
#include "cli/recorded_run.h"
#include "cli/run_flags.h"
#include "cli/run_paths.h"
#include "cli/stdin_script.h"
#include "cli/terminal_access.h"
#include "cli/unseen_file.h"
#include "cli/unset_variable.h"
#include "isolation/host_path.h"

namespace coffer::cli {
namespace {

// The file that a flag named, in place of its name.
Status ReadNamedFile(std::string& place, const char* code) {
  if (place.empty()) {
    return {};
  }
  const EndingSignalsLetThrough interruptible;
  Result<std::string> text = sys::ReadRegular(place, 4 << 20);
  if (!text.ok()) {
    text.error().kind = ErrorKind::kRefused;
    text.error().code = code;
    return std::move(text.error());
  }
  place = std::move(text).value();
  return {};
}

constexpr int kMostLinks = 40;  // as the kernel follows

// Every directory, link and file that opening `path` goes through. What cannot be looked at ends it: opening says why.
std::vector<std::string> WayTo(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path whole = fs::absolute(path, error);
  std::deque<fs::path> left(whole.begin(), whole.end());
  std::vector<std::string> way;
  fs::path at = "/";
  for (int links = 0; !left.empty() && links <= kMostLinks;) {
    const fs::path part = left.front();
    left.pop_front();
    if (part == "..") {
      at = at.parent_path();
    } else if (!part.empty() && part != ".") {
      at /= part;  // an absolute one begins anew
    }
    way.push_back(at.string());
    if (fs::is_symlink(at, error)) {
      const fs::path target = fs::read_symlink(at, error);
      left.insert(left.begin(), target.begin(), target.end());
      at = at.parent_path();
      ++links;
    }
  }
  return way;
}

// The values of --never-send, in place of the file's name. A command that is shown the file could read the values, and
// one that may write where the file or a link to it lies could take them out for the next call.
Status ReadNeverSend(call::RunRequest& request) {
  std::string& place = request.egress.never_send;
  if (place.empty()) {
    return {};
  }
  const EndingSignalsLetThrough interruptible;
  const std::vector<std::string> way = WayTo(place);
  std::vector<std::string> shown = request.envelope.inputs;
  shown.push_back(request.project);
  for (const policy::Mount& mount : request.envelope.mounts) {
    shown.push_back(mount.host);
  }
  for (const std::string& path : shown) {
    const bool on_the_way = std::any_of(way.begin(), way.end(), [&](const std::string& one) {
      return one == path || one.starts_with(path + "/") || path == "/";
    });
    if (!path.empty() && on_the_way) {
      return Refused("policy.egress",
                     fmt::format("--never-send: the file, or a link to it, lies in {}, which the "
                                 "command is shown",
                                 Printable(path)),
                     "keep the file in a directory that no call is shown, and name it without a "
                     "link");
    }
  }
  TRY_ASSIGN(place, call::ReadNeverSendFile(place, std::nullopt, "--never-send"));
  return {};
}

// Before anything else of the call. A file system may answer late or never.
Status OpenReceipt(const call::RunRequest& request, std::optional<audit::ReceiptFile>& receipt) {
  if (!request.receipt_path.empty()) {
    const EndingSignalsLetThrough interruptible;
    TRY_ASSIGN(audit::ReceiptFile opened, audit::ReceiptFile::Open(request.receipt_path));
    receipt.emplace(std::move(opened));
  }
  return {};
}

void PrintTrace(const audit::Receipt& receipt) {
  for (const auto& [step, micros] : receipt.steps_us) {
    PrintError(fmt::format("coffer: trace: {:>7} us  {}", micros, step));
  }
  for (const audit::Denial& denial : receipt.denials) {
    PrintError(
        fmt::format("coffer: trace: refused {}x {}", denial.count, Printable(denial.target)));
  }
}

bool IsTypeScript(std::string_view file) {
  return file.ends_with(".ts") || file.ends_with(".mts") || file.ends_with(".cts");
}

// The words of a profile come first, so that those of the command line count.
Result<call::RunRequest> ParseWithProfile(std::span<const std::string_view> usual,
                                          std::span<const std::string_view> words) {
  std::vector<std::string_view> all(usual.begin(), usual.end());
  all.insert(all.end(), words.begin(), words.end());
  Result<call::RunRequest> request = ParseRunFlags(all);
  if (!request.ok() || request->profile.empty()) {
    return request;
  }
  TRY_ASSIGN(const call::RunConfig config, call::ReadRunConfig());
  TRY_ASSIGN(const std::vector<std::string> profile, call::FindProfile(config, request->profile));
  all.insert(all.begin() + static_cast<std::ptrdiff_t>(usual.size()), profile.begin(),
             profile.end());
  request = ParseRunFlags(all);
  if (!request.ok()) {
    request.error().message += " (with the profile of " + config.directory + "/run.toml)";
  }
  return request;
}

const char* StateInEnvironment() {
  const char* const state = ::getenv("COFFER_STATE");
  return state != nullptr && *state != '\0' ? state : nullptr;
}

}  // namespace

void SayCancelled(call::RunOutcome& outcome) {
  if (outcome.interrupted_by != 0 && outcome.receipt.error_class.empty()) {
    outcome.receipt.error_class = "policy.cancelled";
    outcome.receipt.error_message =
        fmt::format("cancelled by uid:{}, with signal {}", ::getuid(), outcome.interrupted_by);
  }
}

void PrintOutcome(const call::RunRequest& request, const call::RunOutcome& outcome) {
  if (outcome.error) {
    PrintError(*outcome.error);
  }
  for (const std::string& warning : outcome.warnings) {
    PrintError("coffer: warning: " + warning);
  }
  if (!request.quiet) {
    for (const std::string& note : outcome.notes) {
      PrintError("coffer: note: " + note);
    }
    if (request.script && outcome.exit_status == 1 && IsTypeScript(request.command.front())) {
      PrintError("coffer: note: node runs TypeScript from version 22.18 on; an older one does not");
    }
    if (outcome.exit_status != 0) {
      const std::string unseen = outcome.error ? "" : UnseenFileNote(request);
      const std::string missed = outcome.error ? "" : MissedNeighbourNote(request);
      const std::string unset = outcome.error ? "" : UnsetVariableNote(request);
      const std::string loopback = outcome.error ? "" : OwnLoopbackNote(request);
      for (const std::string& note :
           {MisplacedFlagNote(request), unseen, missed, unset, loopback}) {
        if (!note.empty()) {
          PrintError("coffer: note: " + note);
        }
      }
    }
  }
  if (request.trace) {
    PrintTrace(outcome.receipt);
  }
}

Result<call::RunRequest> ReadRunWords(std::span<const std::string_view> usual,
                                      std::span<const std::string_view> words,
                                      isolation::OwnWords own) {
  TRY_ASSIGN(call::RunRequest request, ParseWithProfile(usual, words));
  TRY(ResolvePaths(request));
  TRY(call::NarrowByProjectFile(request));
  for (std::string& directory : request.tool_dirs) {
    TRY_ASSIGN(directory, isolation::CleanPath(directory));
  }
  TRY(ReadNamedFile(request.envelope.imported_seccomp, "policy.seccomp"));
  TRY(ReadNamedFile(request.egress.upstream_ca, "policy.egress"));
  TRY(ReadNeverSend(request));
  request.own = own;
  request.reads_config = true;
  request.marks_cut = false;
  return request;
}

std::string StateOf(const call::RunRequest& request) {
  const char* const state = StateInEnvironment();
  if (!request.state.empty()) {
    return request.state;
  }
  return state != nullptr ? state : call::UsualStateDir();
}

int RunVerb(std::span<const std::string_view> words, isolation::OwnWords own) {
  if (!words.empty() && (words.front() == "--help" || words.front() == "-h")) {
    PrintOut(RunHelp());
    return 0;
  }
  const bool recorded = StateInEnvironment() != nullptr;
  Result<call::RunRequest> request = ReadRunWords({}, words, own);
  if (!request.ok()) {
    PrintError(request.error());
    return kExitRefused;
  }
  if (!request->ports.empty()) {
    PrintError(Refused("policy.usage", "--port belongs to `coffer sessions start`",
                       "--publish PORT makes a port reachable from this host"));
    return kExitRefused;
  }
  Result<StdinScript> script = StdinScript::Read(*request);
  if (!script.ok()) {
    PrintError(script.error());
    return kExitRefused;
  }
  if (request->trace && request->receipt_path.empty()) {
    request->receipt_path = "/dev/null";
  }
  std::optional<TerminalAccess> terminal;
  if (request->egress.hold) {
    Result<TerminalAccess> opened = TerminalAccess::Open();
    if (!opened.ok()) {
      PrintError(opened.error());
      return kExitRefused;
    }
    request->access = &terminal.emplace(std::move(opened).value());
  }
  std::optional<audit::ReceiptFile> receipt;
  if (const Status opened = OpenReceipt(*request, receipt); !opened.ok()) {
    PrintError(opened.error());
    return kExitRefused;
  }
  // Calls of tools are children of a call that is in the record.
  if (recorded || !request->state.empty() || !request->session.empty() || !request->tools.empty())
      [[unlikely]] {
    request->state = StateOf(*request);
    return RecordedRun(*request, std::move(receipt));
  }
  call::RunOutcome outcome = call::RunCall(*request);
  outcome.receipt.incidents = call::IncidentsOf(outcome.receipt);
  if (outcome.receipt.outcome == "denied" || outcome.receipt.started_at == Nanos(0)) {
    call::RedactRefusal(call::WordsOf(*request), outcome.receipt);
  }
  PrintOutcome(*request, outcome);
  SayCancelled(outcome);
  if (receipt) {
    if (Status wrote = receipt->Write(audit::FormatReceipt(outcome.receipt)); !wrote.ok()) {
      PrintError(wrote.error());
      return kExitFailed;
    }
  }
  return outcome.exit_status;
}

}  // namespace coffer::cli
