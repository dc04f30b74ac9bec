// SPDX-License-Identifier: Apache-2.0
#include "call/run/settle_project.h"

#include <fmt/format.h>

#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "call/run/project.h"
#include "call/run/project_around.h"
#include "call/run/unshown_tools.h"

namespace coffer::call {

Status SettleProject(const RunRequest& request, Prepared& prepared, RunOutcome& outcome) {
  Project& project = *prepared.project;
  outcome.notes.insert(outcome.notes.end(), project.notes().begin(), project.notes().end());
  if (const std::string& above = project.repository_above();
      !above.empty() && !IsShownInPlace(above, prepared.mounts) &&
      (outcome.exit_status != 0 || NamesProgram(request.command, "git"))) {
    outcome.notes.push_back(fmt::format(
        "git finds no repository in this project: it is not the top of {0}, which is not shown; if "
        "the command needs git: --ro {0} shows it, with all its files and history; for a git that "
        "writes: --project {0} --cwd {1}",
        Printable(above), Printable(request.project)));
  }
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
                      planted.on_path           ? "finds it on your PATH before the system's own"
                      : planted.program         ? "runs it, because a git configuration names it"
                      : planted.written_through ? "writes where it leads"
                      : planted.names           ? "reads and writes files that it names"
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
  return end.failed;
}

}  // namespace coffer::call
