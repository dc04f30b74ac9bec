// SPDX-License-Identifier: Apache-2.0
#include "cli/verb_run.h"

#include <fmt/format.h>
#include <stdlib.h>

#include "base/ending_signals.h"
#include "base/exit_codes.h"
#include "base/print.h"
#include "base/regular_file.h"
#include "base/text.h"
#include "call/redact.h"
#include "call/run/run_call.h"
#include "call/run/run_config.h"
#include "call/run/run_profile.h"
#include "call/run/usual_directories.h"
#include "cli/recorded_run.h"
#include "cli/run_flags.h"
#include "cli/run_paths.h"
#include "cli/stdin_script.h"
#include "cli/unseen_file.h"

namespace coffer::cli {
namespace {

Status ReadSeccompFile(call::RunRequest& request) {
  std::string& profile = request.envelope.imported_seccomp;
  if (profile.empty()) {
    return {};
  }
  Result<std::string> text = sys::ReadRegular(profile, 4 << 20);
  if (!text.ok()) {
    text.error().kind = ErrorKind::kRefused;
    text.error().code = "policy.seccomp";
    return std::move(text.error());
  }
  profile = std::move(text).value();
  return {};
}

// The files that the flags name, before anything else of the call. A file system may answer late or never.
Status OpenFiles(call::RunRequest& request, std::optional<audit::ReceiptFile>& receipt) {
  if (request.envelope.imported_seccomp.empty() && request.receipt_path.empty()) {
    return {};
  }
  const EndingSignalsLetThrough interruptible;
  TRY(ReadSeccompFile(request));
  if (!request.receipt_path.empty()) {
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
Result<call::RunRequest> ParseWithProfile(std::span<const std::string_view> words) {
  Result<call::RunRequest> request = ParseRunFlags(words);
  if (!request.ok() || request->profile.empty()) {
    return request;
  }
  TRY_ASSIGN(const call::RunConfig config, call::ReadRunConfig());
  TRY_ASSIGN(const std::vector<std::string> profile, call::FindProfile(config, request->profile));
  std::vector<std::string_view> all(profile.begin(), profile.end());
  all.insert(all.end(), words.begin(), words.end());
  request = ParseRunFlags(all);
  if (!request.ok()) {
    request.error().message += " (with the profile of " + config.directory + "/run.toml)";
  }
  return request;
}

}  // namespace

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
    if (!outcome.error && outcome.exit_status != 0) {
      if (const std::string unseen = UnseenFileNote(request); !unseen.empty()) {
        PrintError("coffer: note: " + unseen);
      }
    }
  }
  if (request.trace) {
    PrintTrace(outcome.receipt);
  }
}

int RunVerb(std::span<const std::string_view> words, isolation::OwnWords own) {
  if (!words.empty() && (words.front() == "--help" || words.front() == "-h")) {
    PrintOut(RunHelp());
    return 0;
  }
  const char* const state = ::getenv("COFFER_STATE");
  const bool recorded = state != nullptr && *state != '\0';
  Result<call::RunRequest> request = ParseWithProfile(words);
  if (!request.ok()) {
    PrintError(request.error());
    return kExitRefused;
  }
  if (const Status resolved = ResolvePaths(*request); !resolved.ok()) {
    PrintError(resolved.error());
    return kExitRefused;
  }
  if (const Status narrowed = call::NarrowByProjectFile(*request); !narrowed.ok()) {
    PrintError(narrowed.error());
    return kExitRefused;
  }
  Result<StdinScript> script = StdinScript::Read(*request);
  if (!script.ok()) {
    PrintError(script.error());
    return kExitRefused;
  }
  request->own = own;
  request->reads_config = true;
  request->marks_cut = false;
  if (request->trace && request->receipt_path.empty()) {
    request->receipt_path = "/dev/null";
  }
  std::optional<audit::ReceiptFile> receipt;
  if (const Status opened = OpenFiles(*request, receipt); !opened.ok()) {
    PrintError(opened.error());
    return kExitRefused;
  }
  if (recorded || !request->state.empty() || !request->session.empty()) [[unlikely]] {
    if (request->state.empty()) {
      request->state = recorded ? state : call::UsualStateDir();
    }
    return RecordedRun(*request, std::move(receipt));
  }
  call::RunOutcome outcome = call::RunCall(*request);
  if (outcome.receipt.outcome == "denied" || outcome.receipt.started_at == Nanos(0)) {
    call::RedactRefusal(call::WordsOf(*request), outcome.receipt);
  }
  PrintOutcome(*request, outcome);
  if (receipt) {
    if (Status wrote = receipt->Write(audit::FormatReceipt(outcome.receipt)); !wrote.ok()) {
      PrintError(wrote.error());
      return kExitFailed;
    }
  }
  return outcome.exit_status;
}

}  // namespace coffer::cli
