// SPDX-License-Identifier: Apache-2.0
#include "call/run/run_call.h"

#include <errno.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <memory>
#include <optional>

#include "base/exit_codes.h"
#include "base/hash.h"
#include "base/ids.h"
#include "base/quantity.h"
#include "base/sys.h"
#include "base/text.h"
#include "call/run/begin.h"
#include "call/run/bound_files.h"
#include "call/run/caught_signals.h"
#include "call/run/export_files.h"
#include "call/run/held_access.h"
#include "call/run/launch.h"
#include "call/run/launch_egress.h"
#include "call/run/level.h"
#include "call/run/network_hint.h"
#include "call/run/prepare.h"
#include "call/run/run_journal.h"
#include "call/run/summary.h"
#include "call/run/supervise.h"
#include "call/run/tools_server.h"
#include "isolation/name_redirect.h"
#include "isolation/runtime/relocate.h"
#include "limits/wall_guard.h"

namespace coffer::call {
namespace {

// The closed set of the receipt: what is not a surface of its own is internal.
std::string ErrorClassOf(const Error& error) {
  for (const std::string_view surface : {"policy.", "isolation.", "limit.", "egress."}) {
    if (error.code.starts_with(surface)) {
      return error.code;
    }
  }
  return error.kind == ErrorKind::kRefused || error.kind == ErrorKind::kNotFound ||
                 error.kind == ErrorKind::kNotExecutable
             ? "policy." + error.code
             : (error.kind == ErrorKind::kHost ? "isolation.host" : "internal");
}

RunOutcome Refuse(RunOutcome outcome, Error error) {
  error.code = ErrorClassOf(error);  // stderr and receipt say the same
  outcome.exit_status = ExitOf(error.kind);
  outcome.receipt.outcome = error.kind == ErrorKind::kRefused ? "denied" : "error";
  outcome.receipt.error_class = ErrorClassOf(error);
  outcome.receipt.error_message = error.message;
  outcome.error = std::move(error);
  outcome.receipt.finished_at = WallTime();
  outcome.receipt.duration = outcome.receipt.finished_at - outcome.receipt.requested_at;
  return outcome;
}

// Told to end before there was a command to tell.
RunOutcome InterruptStart(const RunRequest& request, RunOutcome outcome, int signal) {
  outcome.exit_status = kExitSignalled + signal;
  outcome.interrupted_by = signal;
  outcome.receipt.outcome = "terminated";
  DescribeNoStart(request, outcome.receipt);
  outcome.receipt.finished_at = WallTime();
  outcome.receipt.duration = outcome.receipt.finished_at - outcome.receipt.requested_at;
  return outcome;
}

Error ExecError(const Prepared& prepared, const isolation::BoundaryPlan& plan, int number) {
  const bool missing = number == ENOENT;
  const bool process = plan.level == policy::Level::kProcess;
  std::string hint =
      "only the declared runtimes are executable, and what lies in mounts unless --no-exec (in a "
      "manifest: files.exec = true); see `coffer runtimes`";
  if (number == ENOEXEC) {
    hint = "its first line names no interpreter; start it with #!/bin/sh";
  } else if (missing) {
    hint = "the program, its interpreter or the working directory is not visible inside";
  } else if (process && plan.own_uid && number == EACCES) {
    // The host's paths, and a uid that is not root's.
    hint = "it may lie below a directory that others cannot enter; copy it elsewhere";
  }
  const std::string program =
      process ? isolation::NotRelocated(prepared.call.program) : prepared.call.program;
  return {missing ? ErrorKind::kNotFound : ErrorKind::kNotExecutable, "policy.command",
          fmt::format("cannot run {}: {}", program, sys::ErrnoText(number)), std::move(hint),
          number};
}

void AddNetworkHint(const RunRequest& request, const isolation::DenialRecorder& denials,
                    RunOutcome& outcome) {
  const std::optional<std::string> host = HostOutside(request.command);
  if (request.egress.empty() && (host || LookedOutside(request, denials))) {
    outcome.notes.push_back(
        fmt::format("this call had no network; --allow {} opens one host", host.value_or("HOST")));
  }
}

void ConcludeEnd(const WatchResult& watched, RunOutcome& outcome) {
  audit::Receipt& receipt = outcome.receipt;
  if (watched.end.signal != 0) {
    receipt.exit_signal = watched.end.signal;
    outcome.exit_status = kExitSignalled + watched.end.signal;
  } else {
    receipt.exit_code = watched.end.exit_code;
    outcome.exit_status = watched.end.exit_code;
  }
  receipt.outcome = watched.end.signal != 0      ? "terminated"
                    : watched.end.exit_code == 0 ? "success"
                                                 : "error";
  if (watched.interrupted_by != 0) {
    receipt.outcome = "terminated";
    outcome.interrupted_by = watched.interrupted_by;
    outcome.exit_status = watched.end.signal != 0 || watched.end.exit_code < 0
                              ? kExitSignalled + watched.interrupted_by
                              : outcome.exit_status;
  }
  if (watched.breach) {
    receipt.outcome = "terminated";
    receipt.error_class = std::string(watched.breach->error_class());
    receipt.error_message = watched.breach->message;
    outcome.exit_status = kExitLimit;
    outcome.error = Error{ErrorKind::kRefused, receipt.error_class, watched.breach->message,
                          watched.breach->hint, 0};
  }
}

// The bytes that were passed on say nothing about those that were not.
void ConcludeCut(const RunRequest& request, const output::OutputBudget& budget,
                 RunOutcome& outcome) {
  std::string message =
      fmt::format("the output was truncated at {}: the command wrote {} bytes in all",
                  FormatSize(budget.cap), budget.produced);
  if (!request.cut_is_breach || outcome.error) {
    outcome.warnings.push_back(message + "; --output SIZE allows more");
    return;
  }
  outcome.exit_status = kExitLimit;
  outcome.receipt.outcome = "error";
  outcome.receipt.error_class = "limit.output";
  outcome.receipt.error_message = message;
  outcome.error = Error{ErrorKind::kRefused, "limit.output", std::move(message),
                        "allow more with --output SIZE, or leave out --fail-on-cut", 0};
}

// What the command left in a project. Nothing of it runs any more.
RunOutcome SettleProject(const RunRequest& request, Project& project, RunOutcome outcome) {
  outcome.notes.insert(outcome.notes.end(), project.notes().begin(), project.notes().end());
  Project::End end = project.Settle();
  size_t left = 0;
  constexpr size_t kMostPlanted = 256;
  constexpr size_t kMostWarnings = 20;
  for (const Planted& planted : end.planted) {
    const bool stays = planted.set_aside.empty();
    left += stays && !request.keep_planted ? 1 : 0;
    if (outcome.receipt.planted.size() < kMostPlanted) {
      outcome.receipt.planted.push_back(planted.path);
    }
    if (outcome.warnings.size() < kMostWarnings) {
      outcome.warnings.push_back(
          fmt::format("{} was made by the command, and {} on this host {}; {}",
                      Printable(planted.path), planted.run_by,
                      planted.program           ? "runs it, because a git configuration names it"
                      : planted.written_through ? "writes where it leads"
                                                : "runs what it says",
                      request.keep_planted ? "it was kept (--keep-planted)"
                      : stays              ? "it could not be set aside"
                                           : "it was set aside as " + Printable(planted.set_aside) +
                                    (planted.program ? " (--keep-planted leaves it)" : "")));
    }
  }
  if (end.planted.size() > kMostPlanted) {
    outcome.receipt.planted.back() =
        fmt::format("and {} more", end.planted.size() - kMostPlanted + 1);
  }
  if (end.planted.size() > kMostWarnings) {
    outcome.warnings.push_back(fmt::format("{} such names were made in all", end.planted.size()));
  }
  outcome.notes.insert(outcome.notes.end(), end.notes.begin(), end.notes.end());
  if (left > 0 && end.failed.ok()) {
    end.failed =
        HostFault("isolation.project",
                  fmt::format("{} names that run code on this host could not be set aside", left),
                  "the receipt lists them: look at them before you use the project");
  }
  return end.failed.ok() ? std::move(outcome)
                         : Refuse(std::move(outcome), std::move(end.failed.error()));
}

// Package managers link what they install to their own stores, which other projects are linked to as well.
void TellLinkedFiles(const std::vector<limits::DiskWatch>& disks, RunOutcome& outcome) {
  uint64_t files = 0;
  for (const limits::DiskWatch& disk : disks) {
    files += disk.linked_outside();
  }
  if (files == 0) {
    return;
  }
  outcome.receipt.blast_radius +=
      fmt::format("; can change {} files under other names too, which are hard links", files);
  outcome.notes.push_back(fmt::format(
      "{} files that the command could change have names outside too (hard links, as uv and pnpm "
      "make to their stores), and change there as well; install with copies: UV_LINK_MODE=copy, "
      "package-import-method=copy",
      files));
}

// From the resolved request to the end of its boundary.
RunOutcome RunPrepared(const RunRequest& request, Prepared& prepared, std::optional<Begun> begun,
                       RunOutcome outcome);

}  // namespace

RunOutcome RunCall(const RunRequest& request) {
  RunOutcome outcome;
  const bool wants_receipt = !request.receipt_path.empty() || request.record != nullptr;
  // admit
  outcome.receipt.requested_at = WallTime();
  if (wants_receipt) {
    if (request.record != nullptr) {
      outcome.receipt = request.record->asked();
    } else if (Result<std::string> id = NewId(); id.ok()) {
      outcome.receipt.identity.call_id = std::move(id).value();
    } else {
      return Refuse(std::move(outcome), std::move(id.error()));
    }
    DescribeRequest(request, outcome.receipt);
  }
  // evaluate: until there is a boundary to forward them to, signals end this process as usual
  std::optional<Begun> begun = BeginAhead(request);
  Result<Prepared> prepared = Prepare(request);
  if (!prepared.ok()) {
    begun.reset();
    return Refuse(std::move(outcome), std::move(prepared.error()));
  }
  outcome.receipt.code_hash = prepared->code_hash;
  outcome.receipt.runtimes = prepared->runtimes;
  outcome.receipt.program = prepared->call.program;
  outcome.receipt.exec = request.envelope.exec;
  outcome.receipt.overlay = request.envelope.overlay;
  if (wants_receipt) {
    DescribeBound(request, *prepared, outcome.receipt);
  }
  outcome.notes = prepared->notes;
  HeedSignals(begun);
  if (!prepared->mounts.empty()) {
    begun.reset();  // its cgroup and limits are those of a call without
  }
  outcome = RunPrepared(request, *prepared, std::move(begun), std::move(outcome));
  // settle
  if (prepared->project) [[unlikely]] {
    outcome = SettleProject(request, *prepared->project, std::move(outcome));
  }
  return outcome;
}

namespace {

RunOutcome RunPrepared(const RunRequest& request, Prepared& prepared, std::optional<Begun> begun,
                       RunOutcome outcome) {
  const bool wants_receipt = !request.receipt_path.empty() || request.record != nullptr;
  const Result<CaughtSignals> signals = begun ? std::move(begun->signals) : CatchSignals();
  if (!signals.ok()) {
    return Refuse(std::move(outcome), signals.error());
  }
  // record: where a state directory is named, nothing happens that is not on disk before
  if (request.record != nullptr) [[unlikely]] {
    if (Status recorded = request.record->Start(outcome.receipt, prepared); !recorded.ok()) {
      return Refuse(std::move(outcome), std::move(recorded.error()));
    }
  }
  // launch
  const bool probe = wants_receipt || !request.envelope.floor.empty();
  LaunchOptions options;
  options.probe = probe;
  options.ending_fd = signals->ending.get();
  Result<Launched> launched = LaunchAtLevel(request, prepared, options, begun ? &*begun : nullptr);
  if (!launched.ok()) {
    const bool refused = launched.error().kind == ErrorKind::kRefused;
    if (const int signal = refused ? 0 : TakeEndingSignal(*signals); signal != 0) {
      return InterruptStart(request, std::move(outcome), signal);
    }
    return Refuse(std::move(outcome), std::move(launched.error()));
  }
  outcome.receipt.started_at = launched->started_at;
  DescribeIsolation(request, *launched, outcome.receipt);
  TellLinkedFiles(launched->disks, outcome);
  outcome.notes.insert(outcome.notes.end(), launched->notes.begin(), launched->notes.end());
  // Said now: the caller may have to know a number before the command ends.
  for (const RunRequest::Publish& port : launched->ports.published()) {
    if (!request.quiet) {
      (void)sys::WriteAll(STDERR_FILENO,
                          fmt::format("coffer: note: 127.0.0.1:{} leads to port {} inside\n",
                                      port.host, port.inside));
    }
  }
  if (request.record != nullptr) [[unlikely]] {
    request.record->Launched();
  }
  // watch
  isolation::Boundary& boundary = *launched->boundary;
  Watch watch(request.envelope, boundary, launched->cgroup, signals->all.get(), wants_receipt);
  watch.WatchDisks(std::move(launched->disks));
  watch.MarkCuts(request.marks_cut);
  if (launched->asks_for_threads) {
    watch.CountThreads();
  }
  std::optional<HeldAccess> held;
  if (request.access != nullptr && launched->egress.running()) {
    watch.HoldAccess(&held.emplace(launched->egress, *request.access));
  }
  std::optional<Terminal> terminal;
  if (request.envelope.tty) {
    terminal.emplace(STDIN_FILENO);
    watch.AttachTerminal(boundary.TakePty(), &*terminal);
  } else {
    watch.Attach(std::move(launched->stdio));
  }
  Result<limits::WallGuard> guard =
      limits::WallGuard::Start(boundary.pidfd(), request.envelope.limits.wall + limits::kWallGrace);
  if (!guard.ok()) {
    return Refuse(std::move(outcome), std::move(guard.error()));
  }
  if (request.record != nullptr) [[unlikely]] {
    watch.Keep(request.record->reads(), !request.envelope.tty);
  }
  Result<WatchResult> watched = watch.Run(wants_receipt);
  terminal.reset();
  if (request.record != nullptr) [[unlikely]] {
    request.record->Streams(watch.in().kept(), watch.out().kept(), watch.err().kept());
  }
  if (!watched.ok()) {
    return Refuse(std::move(outcome), std::move(watched.error()));
  }
  // settle
  Status egress;
  if (!launched->not_transparent.empty()) {
    outcome.notes.push_back(
        fmt::format("only programs that use a proxy reached the network: {}; {}",
                    launched->not_transparent, isolation::kNameRedirectFix));
  }
  if (held) {
    outcome.receipt.access = held->Finish();
  }
  launched->egress.BeginEnd();
  Status emptied = launched->cgroup.Remove();  // beside the end of the egress process
  if (launched->egress.running()) {
    egress = SettleEgress(launched->egress, outcome);
  }
  // Their receipts are sealed before this one.
  Status tools;
  if (request.tools_server != nullptr) {
    tools = request.tools_server->Finish();
  }
  if (watched->end.exec_error == 0) {
    ExportFiles(request, prepared, *launched, outcome);
    TellLostFiles(request, prepared, *launched, outcome);
  }
  if (Status removed = launched->scratch.Remove(); !removed.ok()) {
    return Refuse(std::move(outcome), std::move(removed.error()));
  }
  if (!emptied.ok()) {
    return Refuse(std::move(outcome), std::move(emptied.error()));
  }
  // seal
  outcome.receipt.finished_at = WallTime();
  outcome.receipt.duration = outcome.receipt.finished_at - outcome.receipt.requested_at;
  if (wants_receipt) {
    DescribeEnd(request, boundary, watch, *watched, outcome.receipt);
  }
  if (watched->end.exec_error != 0) {
    return Refuse(std::move(outcome),
                  ExecError(prepared, *launched->plan, watched->end.exec_error));
  }
  ConcludeEnd(*watched, outcome);
  // Programs that try again and again without a network end at their wall time.
  if (outcome.receipt.outcome == "error" || outcome.receipt.error_class == "limit.wall") {
    AddNetworkHint(request, watch.denials(), outcome);
  }
  const bool bad_call =
      watched->end.signal == SIGSYS || watched->end.exit_code == kExitSignalled + SIGSYS;
  if (bad_call && watch.denials().denials().empty()) {
    outcome.notes.emplace_back(
        "a program was ended by SIGSYS for a system call of another machine: 32-bit programs do "
        "not run here");
  }
  if (watch.budget().truncated()) {
    ConcludeCut(request, watch.budget(), outcome);
  }
  if (!egress.ok() && !outcome.error) {
    return Refuse(std::move(outcome), std::move(egress.error()));
  }
  if (!tools.ok() && !outcome.error) {
    return Refuse(std::move(outcome), std::move(tools.error()));
  }
  return outcome;
}

}  // namespace

}  // namespace coffer::call
