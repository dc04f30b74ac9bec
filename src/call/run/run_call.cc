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
#include "call/run/begin.h"
#include "call/run/bound_files.h"
#include "call/run/caught_signals.h"
#include "call/run/export_files.h"
#include "call/run/held_access.h"
#include "call/run/launch.h"
#include "call/run/launch_egress.h"
#include "call/run/level.h"
#include "call/run/network_hint.h"
#include "call/run/outside_tries.h"
#include "call/run/prepare.h"
#include "call/run/run_journal.h"
#include "call/run/settle_project.h"
#include "call/run/summary.h"
#include "call/run/supervise.h"
#include "call/run/tools_server.h"
#include "call/run/unshown_tools.h"
#include "isolation/name_redirect.h"
#include "isolation/runtime/relocate.h"
#include "limits/wall_guard.h"

namespace coffer::call {
namespace {

void StampEnd(RunOutcome& outcome) {
  outcome.receipt.finished_at = WallTime();
  outcome.receipt.duration = outcome.receipt.finished_at - outcome.receipt.requested_at;
}

void Refuse(RunOutcome& outcome, Error error) {
  error.code = ErrorClassOf(error);  // stderr and receipt say the same
  outcome.exit_status = ExitOf(error.kind);
  outcome.receipt.outcome = error.kind == ErrorKind::kRefused ? "denied" : "error";
  outcome.receipt.error_class = ErrorClassOf(error);
  outcome.receipt.error_message = error.message;
  outcome.error = std::move(error);
  StampEnd(outcome);
}

// Told to end before there was a command to tell.
void InterruptStart(const RunRequest& request, int signal, RunOutcome& outcome) {
  outcome.exit_status = kExitSignalled + signal;
  outcome.interrupted_by = signal;
  outcome.receipt.outcome = "terminated";
  DescribeNoStart(request, outcome.receipt);
  StampEnd(outcome);
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

void AddNetworkHint(const RunRequest& request, const Prepared& prepared,
                    const OutsideTries& outside, RunOutcome& outcome) {
  std::optional<std::string> host = HostOutside(request.command);
  host = host ? host : prepared.script_reaches;
  if (request.egress.empty() && (host || !outside.denials().empty())) {
    outcome.notes.push_back(
        fmt::format("this call had no network; --allow {} opens one host", host.value_or("HOST")));
  }
}

void ConcludeEnd(const SupervisionResult& ended, RunOutcome& outcome) {
  audit::Receipt& receipt = outcome.receipt;
  if (ended.end.signal != 0) {
    receipt.exit_signal = ended.end.signal;
    outcome.exit_status = kExitSignalled + ended.end.signal;
  } else {
    receipt.exit_code = ended.end.exit_code;
    outcome.exit_status = ended.end.exit_code;
  }
  receipt.outcome = ended.end.signal != 0      ? "terminated"
                    : ended.end.exit_code == 0 ? "success"
                                               : "error";
  if (ended.interrupted_by != 0) {
    receipt.outcome = "terminated";
    outcome.interrupted_by = ended.interrupted_by;
    outcome.exit_status = ended.end.signal != 0 || ended.end.exit_code < 0
                              ? kExitSignalled + ended.interrupted_by
                              : outcome.exit_status;
  }
  if (ended.breach) {
    receipt.outcome = "terminated";
    receipt.error_class = std::string(ended.breach->error_class());
    receipt.error_message = ended.breach->message;
    outcome.exit_status = kExitLimit;
    outcome.error = Error{ErrorKind::kRefused, receipt.error_class, ended.breach->message,
                          ended.breach->hint, 0};
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

// A call of `coffer run` on its way: one method for each rung, in the words of call/ladder.h.
class RunRungs {
 public:
  explicit RunRungs(const RunRequest& request) : request_(request) {}
  RunOutcome Climb();

 private:
  Status Admit();
  Status Evaluate();
  Status Record();
  Status Launch();
  Status Watch();
  Status Settle();
  Status Seal();

  Status ClimbToSeal();
  void TellPublished() const;

  const RunRequest& request_;
  const bool wants_receipt_ = !request_.receipt_path.empty() || request_.record != nullptr;
  RunOutcome outcome_;
  int interrupted_by_ = 0;            // a signal that ended the launch
  std::optional<Prepared> prepared_;  // by evaluate
  // The boundary and what serves it, from evaluate on. All of it ends before a project is settled.
  struct InBoundary {
    std::optional<Begun> begun;            // launch takes it over
    std::optional<CaughtSignals> signals;  // from the end of evaluate
    std::optional<Launched> launched;
    std::optional<Supervision> supervision;
    std::optional<HeldAccess> held;
    std::optional<limits::WallGuard> guard;
    std::optional<SupervisionResult> ended;  // by watch
    Status egress;                           // by settle: the end of the egress process
    Status tools;                            // by settle: the end of the tools' server
  };
  std::optional<InBoundary> in_{std::in_place};
};

RunOutcome RunRungs::Climb() {
  if (Status climbed = ClimbToSeal(); interrupted_by_ != 0) {
    InterruptStart(request_, interrupted_by_, outcome_);
  } else if (!climbed.ok()) {
    Refuse(outcome_, std::move(climbed.error()));
  }
  // A project is settled last, also after an Error: nothing runs in it any more. What is new in it is another program's
  // if the command was not begun.
  const bool begun = in_->launched.has_value();
  in_.reset();
  if (begun && prepared_->project) {
    if (Status settled = SettleProject(request_, *prepared_, outcome_); !settled.ok()) {
      Refuse(outcome_, std::move(settled.error()));
    }
  }
  return std::move(outcome_);
}

// The first Error ends the call.
Status RunRungs::ClimbToSeal() {
  TRY(Admit());     // an id and a time
  TRY(Evaluate());  // paths are judged, the command becomes a program and its files
  // scan, gate: no surface yet
  TRY(Record());  // nothing happens that is not on disk before
  // lease: no surface yet
  TRY(Launch());  // the boundary, with its layers probed
  TRY(Watch());   // until it has ended
  // inspect: no surface yet
  TRY(Settle());  // what served the boundary ends; exports are taken
  return Seal();  // the receipt says how it went
}

// An id and a time, if a receipt is wanted. A declared tool was admitted by its own ladder.
Status RunRungs::Admit() {
  audit::Receipt& receipt = outcome_.receipt;
  receipt.requested_at = WallTime();
  if (!wants_receipt_) {
    return {};
  }
  if (request_.record != nullptr) {
    receipt = request_.record->asked();
  } else {
    TRY_ASSIGN(receipt.identity.call_id, NewId());
  }
  DescribeRequest(request_, receipt);
  return {};
}

// Host paths are opened and judged, and the command becomes a program with its files. Signals end this process as
// usual until the end of this rung. After it they are kept, to be forwarded.
Status RunRungs::Evaluate() {
  std::optional<Begun>& begun = in_->begun;
  begun = BeginAhead(request_);
  Result<Prepared> prepared = Prepare(request_);
  if (!prepared.ok()) {
    begun.reset();
    return std::move(prepared.error());
  }
  prepared_.emplace(std::move(prepared).value());
  audit::Receipt& receipt = outcome_.receipt;
  receipt.code_hash = prepared_->code_hash;
  receipt.runtimes = prepared_->runtimes;
  receipt.program = prepared_->call.program;
  receipt.exec = request_.envelope.exec;
  receipt.overlay = request_.envelope.overlay;
  if (wants_receipt_) {
    DescribeBound(request_, *prepared_, receipt);
  }
  outcome_.notes = prepared_->notes;
  HeedSignals(begun);
  if (!prepared_->mounts.empty()) {
    begun.reset();  // its cgroup and limits are those of a call without
  }
  if (begun) {
    in_->signals.emplace(std::move(begun->signals));
    return {};
  }
  TRY_ASSIGN(CaughtSignals signals, CatchSignals());
  in_->signals.emplace(std::move(signals));
  return {};
}

// Where a state directory is named, nothing happens that is not on disk before.
Status RunRungs::Record() {
  return request_.record == nullptr ? Status()
                                    : request_.record->Start(outcome_.receipt, *prepared_);
}

// Said at the launch: the caller may have to know a number before the command ends.
void RunRungs::TellPublished() const {
  for (const RunRequest::Publish& port : in_->launched->ports.published()) {
    if (!request_.quiet) {
      (void)sys::WriteAll(STDERR_FILENO,
                          fmt::format("coffer: note: 127.0.0.1:{} leads to port {} inside\n",
                                      port.host, port.inside));
    }
  }
}

// A boundary with the envelope applied; its layers are probed if a receipt or a floor wants it.
Status RunRungs::Launch() {
  LaunchOptions options;
  options.probe = wants_receipt_ || !request_.envelope.floor.empty();
  options.ending_fd = in_->signals->ending.get();
  Result<Launched> result =
      LaunchAtLevel(request_, *prepared_, options, in_->begun ? &*in_->begun : nullptr);
  if (!result.ok()) {
    const bool refused = result.error().kind == ErrorKind::kRefused;
    interrupted_by_ = refused ? 0 : TakeEndingSignal(*in_->signals);
    if (interrupted_by_ == 0) {
      DescribeRefusedNetwork(request_, result.error(), outcome_.receipt);
    }
    return std::move(result.error());
  }
  Launched& launched = in_->launched.emplace(std::move(result).value());
  outcome_.receipt.started_at = launched.started_at;
  DescribeIsolation(request_, launched, outcome_.receipt);
  TellLinkedFiles(launched.disks, outcome_);
  outcome_.notes.insert(outcome_.notes.end(), launched.notes.begin(), launched.notes.end());
  TellPublished();
  if (request_.record != nullptr) {
    request_.record->Launched();
  }
  return {};
}

// One loop, until the boundary has ended.
Status RunRungs::Watch() {
  Launched& launched = *in_->launched;
  const policy::Envelope& envelope = request_.envelope;
  RunJournal* const record = request_.record;
  Supervision& supervision = in_->supervision.emplace(envelope, *launched.boundary, launched.cgroup,
                                                      in_->signals->all.get(), wants_receipt_);
  supervision.WatchDisks(std::move(launched.disks));
  supervision.MarkCuts(request_.marks_cut);
  supervision.ListBeyond(IncidentGroupOf);
  if (launched.asks_for_threads) {
    supervision.CountThreads();
  }
  if (request_.access != nullptr && launched.egress.running()) {
    supervision.HoldAccess(&in_->held.emplace(launched.egress, *request_.access));
  }
  std::optional<Terminal> terminal;
  if (envelope.tty) {
    terminal.emplace(STDIN_FILENO);
    supervision.AttachTerminal(launched.boundary->TakePty(), &*terminal);
  } else {
    supervision.Attach(std::move(launched.stdio));
  }
  TRY_ASSIGN(limits::WallGuard guard,
             limits::WallGuard::Start(launched.boundary->pidfd(),
                                      envelope.limits.wall + limits::kWallGrace));
  in_->guard.emplace(std::move(guard));
  if (record != nullptr) {
    supervision.Keep(record->reads(), !envelope.tty);
  }
  Result<SupervisionResult> ended = supervision.Run(wants_receipt_);
  terminal.reset();
  if (record != nullptr) {
    record->Streams(supervision.in().kept(), supervision.out().kept(), supervision.err().kept());
  }
  TRY_ASSIGN(in_->ended, std::move(ended));
  return {};
}

// Ends everything that served the boundary, and takes the files that the call exports.
Status RunRungs::Settle() {
  Launched& launched = *in_->launched;
  if (!launched.not_transparent.empty()) {
    outcome_.notes.push_back(
        fmt::format("only programs that use a proxy reached the network: {}; {}",
                    launched.not_transparent, isolation::kNameRedirectFix));
  }
  if (in_->held) {
    outcome_.receipt.access = in_->held->Finish();
  }
  launched.egress.BeginEnd();
  const Status emptied = launched.cgroup.Remove();  // beside the end of the egress process
  if (launched.egress.running()) {
    in_->egress = SettleEgress(launched.egress, outcome_);
  }
  // Their receipts are sealed before this one.
  if (request_.tools_server != nullptr) {
    in_->tools = request_.tools_server->Finish();
  }
  if (in_->ended->end.exec_error == 0) {
    ExportFiles(request_, *prepared_, launched, outcome_);
    TellLostFiles(request_, *prepared_, launched, outcome_);
  }
  TRY(launched.scratch.Remove());
  return emptied;
}

// The receipt says how the call went. The caller of RunCall writes it.
Status RunRungs::Seal() {
  Supervision& supervision = *in_->supervision;
  const isolation::PayloadEnd& end = in_->ended->end;
  StampEnd(outcome_);
  const bool tells = wants_receipt_ || !request_.egress.empty() || end.exit_code != 0;
  const OutsideTries outside(
      request_, *in_->launched, supervision.denials(),
      tells ? OutsideTries::Counters::kRead : OutsideTries::Counters::kLeave);
  if (wants_receipt_) {
    DescribeEnd(request_, *in_->launched->boundary, supervision, *in_->ended, outside,
                outcome_.receipt);
  }
  if (end.exec_error != 0) {
    return ExecError(*prepared_, *in_->launched->plan, end.exec_error);
  }
  ConcludeEnd(*in_->ended, outcome_);
  // Programs that try again and again without a network end at their wall time.
  if (outcome_.receipt.outcome == "error" || outcome_.receipt.error_class == "limit.wall") {
    AddNetworkHint(request_, *prepared_, outside, outcome_);
  }
  if (outcome_.receipt.outcome == "error") {
    for (std::string& note : UnshownTools(request_, *prepared_)) {
      outcome_.notes.push_back(std::move(note));
    }
  }
  if (std::optional<std::string> note = outside.Note(); note) {
    outcome_.notes.push_back(std::move(*note));
  }
  const bool bad_call = end.signal == SIGSYS || end.exit_code == kExitSignalled + SIGSYS;
  if (bad_call && supervision.denials().denials().empty()) {
    outcome_.notes.emplace_back(
        "a program was ended by SIGSYS for a system call of another machine: 32-bit programs do "
        "not run here");
  }
  if (supervision.budget().truncated()) {
    ConcludeCut(request_, supervision.budget(), outcome_);
  }
  if (!in_->egress.ok() && !outcome_.error) {
    return in_->egress;
  }
  return outcome_.error ? Status() : in_->tools;
}

}  // namespace

RunOutcome RunCall(const RunRequest& request) { return RunRungs(request).Climb(); }

}  // namespace coffer::call
