// SPDX-License-Identifier: Apache-2.0
#include "call/warden/check.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "base/text.h"
#include "isolation/host_path.h"
#include "isolation/protected_paths.h"
#include "policy/egress_line.h"
#include "policy/make_envelope.h"
#include "policy/narrowing.h"

namespace coffer::call {
namespace {

using policy::Access;
using policy::Word;
using policy::WordGroup;
using policy::WordKind;

constexpr const char* kNotAllowed =
    "the manifest may have changed since: try again, or read `coffer tools show`";

Error More(const TableEntry& entry, std::string_view part, std::string_view what) {
  return Refused(fmt::format("policy.entry.{}", part),
                 fmt::format("the manifest of {} does not allow {}", entry.tool, Printable(what)),
                 kNotAllowed);
}

// One directory right below the one of sessions.
bool IsWorkspace(const std::string& sessions, const std::string& path) {
  if (sessions.empty() || !path.starts_with(sessions + "/")) {
    return false;
  }
  const std::string_view name = std::string_view(path).substr(sessions.size() + 1);
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string_view::npos;
}

// As root a workspace is the gateway's, never root's: what the gateway moved there is not made writable for a payload.
Status CheckWorkspace(const WardenRules& rules, const TableEntry& entry,
                      const policy::Envelope& envelope) {
  if (envelope.workspace.empty()) {
    return {};
  }
  if (entry.workspace == policy::Workspace::kFresh) {
    return More(entry, "workspace", "the workspace of a session");
  }
  if (entry.workspace == policy::Workspace::kSessionRead &&
      envelope.workspace_access == Access::kWrite) {
    return More(entry, "workspace", "writing to the workspace of a session");
  }
  if (!IsWorkspace(rules.sessions, envelope.workspace)) {
    return Refused("policy.workspace", "the workspace is not a session's");
  }
  if (::geteuid() != 0) {
    return {};
  }
  TRY_ASSIGN(const isolation::HostPath opened,
             isolation::OpenHostPath(envelope.workspace, envelope.workspace_access,
                                     isolation::Breadth::kAny, isolation::BindReason::kWorkspace));
  return isolation::IsRootOwner(opened.owner)
             ? Status(Refused("policy.workspace", "the directory of this session is root's"))
             : Status();
}

// The same place, or a part of it at the part's own place inside. Calls that calls make are narrowed so.
bool IsPartOf(const policy::Mount& allowed, const policy::Mount& asked) {
  if (asked.access > allowed.access || (asked.dangerous && !allowed.dangerous) ||
      (asked.system && !allowed.system)) {
    return false;
  }
  if (asked.host == allowed.host) {
    return asked.at == allowed.at;
  }
  if (!asked.host.starts_with(allowed.host + "/")) {
    return false;
  }
  return asked.at == allowed.at + asked.host.substr(allowed.host.size());
}

Status CheckMounts(const WardenRules& rules, const TableEntry& entry,
                   const policy::Envelope& envelope) {
  std::vector<std::string> shown_to_none = rules.closed;
  if (!rules.sessions.empty()) {
    shown_to_none.push_back(rules.sessions.substr(0, rules.sessions.rfind('/')));
    shown_to_none.push_back(rules.sessions);
  }
  for (const policy::Mount& mount : envelope.mounts) {
    const bool allowed =
        std::any_of(entry.envelope.mounts.begin(), entry.envelope.mounts.end(),
                    [&](const policy::Mount& one) { return IsPartOf(one, mount); });
    if (!allowed) {
      return More(entry, "mount",
                  fmt::format("{} {} at {}", mount.access == Access::kWrite ? "writing" : "reading",
                              mount.host, mount.at));
    }
    if (mount.dangerous && !rules.allow_broad) {
      return Refused("policy.path.broad", "the daemon was started without --allow-dangerous",
                     "narrow the mount, or start the daemon with it");
    }
    // Opened here only to look; the runner opens it again in the same way, and mounts what it opened.
    TRY_ASSIGN(const isolation::HostPath opened,
               isolation::OpenHostPath(mount.host, mount.access, isolation::BreadthOf(mount)));
    if (mount.host != rules.project) {  // the caller's own word, as with `coffer run --project`
      TRY(isolation::CheckToolMayWrite(opened, mount));
    }
    std::vector<std::string> own = shown_to_none;
    if (mount.access == Access::kWrite) {
      own.insert(own.end(), rules.relied.begin(), rules.relied.end());
    }
    TRY(isolation::CheckShowsNone(opened, mount.access, own));
  }
  return {};
}

// Which rules there are was compared before, as a part of the envelope.
Status CheckNetwork(const WardenRules& rules, const policy::Envelope& envelope) {
  for (const std::string& line : envelope.network) {
    if (policy::IsDangerousLine(line) && !rules.allow_broad) {
      return Refused(
          "policy.egress.broad", "the daemon was started without --allow-dangerous",
          "name hosts and ports without a dangerously_ key, or start the daemon with it");
    }
  }
  return {};
}

// Every variable is one of the entry's, once; a fixed one is there with its value.
Status CheckVariables(const TableEntry& entry, const policy::Envelope& envelope) {
  const auto find = [](const auto& list, const std::string& name) {
    return std::find_if(list.begin(), list.end(),
                        [&](const auto& one) { return one.first == name; });
  };
  for (auto asked = envelope.env.begin(); asked != envelope.env.end(); ++asked) {
    const auto known = find(entry.env, asked->first);
    const bool fixed = known != entry.env.end() && known->second.kind == WordKind::kLiteral;
    if (known == entry.env.end() || (fixed && known->second.text != asked->second) ||
        find(envelope.env, asked->first) != asked) {
      return More(entry, "env", fmt::format("this value of the variable {}", asked->first));
    }
  }
  for (const auto& [name, word] : entry.env) {
    if (word.kind == WordKind::kLiteral && find(envelope.env, name) == envelope.env.end()) {
      return More(entry, "env", fmt::format("to leave out the variable {}", name));
    }
  }
  return {};
}

// Which positions of the command can have been reached, without and with a literal "--" before them.
struct Reached {
  explicit Reached(size_t size) : plain(size), after_separator(size) {}
  std::vector<bool> plain, after_separator;
};

bool IsArgument(const std::string& word, bool after_separator) {
  return after_separator || !word.starts_with('-');
}

void TakeLiteral(const std::string& literal, const std::vector<std::string>& words, Reached& at) {
  const size_t last = words.size();
  // From the end: each place depends on the one before it, as it was without this word.
  for (size_t i = last; i > 0; --i) {
    const bool same = words[i - 1] == literal;
    const bool separates = literal == "--";
    at.after_separator[i] = same && (at.after_separator[i - 1] || (separates && at.plain[i - 1]));
    at.plain[i] = same && !separates && at.plain[i - 1];
  }
  at.plain[0] = at.after_separator[0] = false;
}

void TakeParameter(const std::vector<std::string>& words, Reached& at) {
  for (size_t i = words.size(); i > 0; --i) {
    at.plain[i] = at.plain[i - 1] && IsArgument(words[i - 1], false);
    at.after_separator[i] = at.after_separator[i - 1] && IsArgument(words[i - 1], true);
  }
  at.plain[0] = at.after_separator[0] = false;
}

void TakeSpread(const std::vector<std::string>& words, Reached& at) {
  // Any number of words: a place that is reached here leads to the next one.
  for (size_t i = 0; i < words.size(); ++i) {
    at.plain[i + 1] = at.plain[i + 1] || (at.plain[i] && IsArgument(words[i], false));
    at.after_separator[i + 1] = at.after_separator[i + 1] || at.after_separator[i];
  }
}

// A group is there as a whole, or not at all if a parameter in it was not given.
void TakeGroup(const WordGroup& group, const std::vector<std::string>& words, Reached& at) {
  const Reached without = at;
  bool varies = false;
  for (const Word& word : group.words) {
    varies = varies || word.kind != WordKind::kLiteral;
    if (word.kind == WordKind::kLiteral) {
      TakeLiteral(word.text, words, at);
    } else if (word.kind == WordKind::kParameter) {
      TakeParameter(words, at);
    } else {
      TakeSpread(words, at);
    }
  }
  for (size_t i = 0; varies && i <= words.size(); ++i) {
    at.plain[i] = at.plain[i] || without.plain[i];
    at.after_separator[i] = at.after_separator[i] || without.after_separator[i];
  }
}

// The caller's project is where the manifest says /workspace, with the access that the manifest has there.
TableEntry InProject(const std::string& project, TableEntry entry) {
  entry.envelope.mounts.push_back(
      {project, project,
       entry.workspace == policy::Workspace::kSessionWrite ? Access::kWrite : Access::kRead});
  entry.envelope.cwd = policy::WorkspacePath(entry.envelope.cwd, {"", project});
  return entry;
}

}  // namespace

bool MatchesTemplate(const std::vector<WordGroup>& argv, const std::vector<std::string>& words) {
  // All ways to read the command are followed at once, so the time is that of words times template,
  // whatever a request holds.
  Reached at(words.size() + 1);
  at.plain[0] = true;
  for (const WordGroup& group : argv) {
    TakeGroup(group, words, at);
  }
  return at.plain.back() || at.after_separator.back();
}

Status CheckRequest(const WardenRules& rules, const WardenTable& table, const RunRequest& request) {
  const policy::Envelope& envelope = request.envelope;
  if (envelope.tty || !request.out_dir.empty() || request.script || !envelope.inputs.empty() ||
      !envelope.imported_seccomp.empty() ||
      envelope.syscalls == policy::SyscallProfile::kImported) {
    return Refused("policy.request",
                   "a declared tool has no terminal, no --out, no script, no input and no imported "
                   "profile");
  }
  const TableEntry* entry = table.Find(request.entry);
  if (entry == nullptr) {
    return Refused("policy.entry",
                   fmt::format("no manifest declares a tool {}", Printable(request.entry)),
                   kNotAllowed);
  }
  std::optional<TableEntry> in_project;
  if (!request.project.empty()) {
    if (request.project != rules.project || entry->workspace == policy::Workspace::kFresh) {
      return More(*entry, "project", "this project");
    }
    entry = &in_project.emplace(InProject(rules.project, *entry));
  }
  if (request.tenant == 0) {
    return Refused("policy.entry.tenant", "a call of a declared tool belongs to a tenant");
  }
  // The program is a fixed word of the template, so no request chooses one.
  if (!MatchesTemplate(entry->argv, request.command)) {
    return More(*entry, "command", "this command");
  }
  TRY(CheckVariables(*entry, envelope));
  TRY(CheckWorkspace(rules, *entry, envelope));
  TRY(CheckBackground(*entry, request));
  TRY(CheckCalls(*entry, request));
  policy::Envelope most = entry->envelope;
  policy::Limits ceilings = table.ceilings;
  if (request.background) {
    most.limits.wall = entry->background->wall;
    most.limits.cpu = entry->background->cpu;
    ceilings.wall = policy::kLongestBackground;
  }
  most.workspace = envelope.workspace;
  most.workspace_access = Access::kWrite;
  if (const std::vector<std::string> wider = policy::WiderThan(most, envelope); !wider.empty()) {
    return More(*entry, "envelope", fmt::format("{}", fmt::join(wider, ", ")));
  }
  for (const std::string& pattern : envelope.exports) {
    if (std::find(entry->envelope.exports.begin(), entry->envelope.exports.end(), pattern) ==
        entry->envelope.exports.end()) {
      return More(*entry, "exports", "to export " + pattern);
    }
  }
  if (envelope.runtimes.empty() || envelope.uid != entry->envelope.uid ||
      envelope.cwd != entry->envelope.cwd) {
    return More(*entry, "envelope", "this uid, working directory or choice of runtimes");
  }
  if (const std::vector<std::string_view> above = policy::LimitsAbove(ceilings, envelope.limits);
      !above.empty()) {
    return Refused("policy.ceiling",
                   fmt::format("the limits of {} are above the operator's ceilings: {}",
                               entry->tool, fmt::join(above, ", ")),
                   "lower them in the manifest, or raise [ceilings] in the daemon's configuration");
  }
  TRY(CheckNetwork(rules, envelope));
  return CheckMounts(rules, *entry, envelope);
}

}  // namespace coffer::call
