// SPDX-License-Identifier: Apache-2.0
//
// `coffer mcp install`: the entry for `coffer mcp` in the configuration files of the agents that are there.
//
// Nothing is written before it was shown, and nothing that cannot be read as plain JSON is touched:
// the entry is printed then, to be added by hand. A file that has changed since it was read is left
// alone: agents write theirs at any time. A file that is a link is changed where it leads. Only the
// home directory of the user that runs this is written: root would follow the links of others.
#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/json.h"
#include "base/print.h"
#include "base/regular_file.h"
#include "base/sys.h"
#include "call/verb_flags.h"
#include "cli/text_verb.h"
#include "cli/verbs.h"
#include "policy/manifest/manifest.h"
#include "policy/manifest/mistake.h"

namespace coffer::cli {
namespace {

using raw::Arg;
using raw::Syscall;

constexpr std::string_view kInstallUsage =
    R"(Write the entry for `coffer mcp` into the configuration of the agents that are found in your home directory.

Usage: coffer mcp install [flags]

  --print         only show what would be written
  --yes           do not ask
  --agent NAME    only this one: claude-code, claude-desktop, cursor, vscode, windsurf, gemini, codex
  --name NAME     what the server is called there (coffer)

The change of each file is shown before it is made. Restart the agent afterwards.

Exit status: 0; 1 if nothing was written; 120 refused, 125 Cofferdam failed.
)";

struct Agent {
  std::string_view name;
  std::string_view place;    // that shows that it is there, below the home directory
  std::string_view file;     // below the home directory
  std::string_view section;  // of the JSON; empty: the file is TOML
  bool typed = false;        // an entry says "type": "stdio"
};

constexpr Agent kAgents[] = {
    {"claude-code", ".claude", ".claude.json", "mcpServers", true},
    {"claude-desktop", ".config/Claude", ".config/Claude/claude_desktop_config.json", "mcpServers"},
    {"cursor", ".cursor", ".cursor/mcp.json", "mcpServers"},
    {"vscode", ".config/Code/User", ".config/Code/User/mcp.json", "servers", true},
    {"windsurf", ".codeium/windsurf", ".codeium/windsurf/mcp_config.json", "mcpServers"},
    {"gemini", ".gemini", ".gemini/settings.json", "mcpServers"},
    {"codex", ".codex", ".codex/config.toml", ""},
};

constexpr size_t kLongestSettings = size_t{32} << 20;

// By the path that stays when the program is upgraded: as it was called, if PATH leads to it.
std::string OwnPath() {
  std::array<char, PATH_MAX> self{};
  const ssize_t size = ::readlink("/proc/self/exe", self.data(), self.size() - 1);
  return size > 0 ? std::string(self.data(), static_cast<size_t>(size)) : "coffer";
}

struct Change {
  std::string file;
  std::string before;
  std::string text;   // of the whole file afterwards
  std::string shown;  // what is new in it
};

Json Entry(const Agent& agent, const std::string& program) {
  Json entry = agent.typed ? Json{{"type", "stdio"}} : Json::object();
  entry["command"] = program;
  entry["args"] = Json::array({"mcp"});
  return entry;
}

// Nothing: the entry is there already.
Result<std::optional<Change>> PlanToml(const Agent& agent, const std::string& file,
                                       const std::string& before, const std::string& name,
                                       const std::string& program) {
  const std::string head = fmt::format("[mcp_servers.{}]", name);
  const std::string block =
      fmt::format("{}\ncommand = {}\nargs = [\"mcp\"]\n", head, PrintJson(Json(program)));
  if (before.find(head) != std::string::npos) {
    return before.find(block) != std::string::npos
               ? Result<std::optional<Change>>(std::optional<Change>())
               : Refused("policy.file",
                         fmt::format("{} of {} has another {}", file, agent.name, head),
                         "remove that part, or choose another --name");
  }
  const std::string gap = before.empty() ? "" : before.ends_with('\n') ? "\n" : "\n\n";
  return std::optional(Change{file, before, before + gap + block, block});
}

Result<std::optional<Change>> PlanJson(const Agent& agent, const std::string& file,
                                       const std::string& before, const std::string& name,
                                       const std::string& program) {
  const Json entry = Entry(agent, program);
  const Json shown = {{std::string(agent.section), {{name, entry}}}};
  const bool blank = before.find_first_not_of(" \t\r\n") == std::string::npos;
  Result<Json> parsed = blank ? Result<Json>(Json::object()) : ParseJson(before);
  const auto by_hand = [&](const char* why) {
    return Refused("policy.file", fmt::format("{} of {} {}", file, agent.name, why),
                   "add this by hand: " + PrintJson(shown));
  };
  if (!parsed.ok() || !parsed->is_object()) {
    return by_hand("is not plain JSON (comments?)");
  }
  Json& servers = (*parsed)[std::string(agent.section)];
  if (!servers.is_null() && !servers.is_object()) {
    return by_hand("has something else where its servers are listed");
  }
  if (servers.is_object() && servers.contains(name)) {
    return servers.at(name) == entry ? Result<std::optional<Change>>(std::optional<Change>())
                                     : Refused("policy.file",
                                               fmt::format("{} of {} has another server called {}",
                                                           file, agent.name, name),
                                               "remove it there, or choose another --name");
  }
  servers[name] = entry;
  return std::optional(
      Change{file, before, PrintJson(*parsed, 2) + "\n", PrintJson(shown, 2) + "\n"});
}

// Empty: it is not there.
Result<std::string> ReadSettings(const std::string& file) {
  return ::access(file.c_str(), F_OK) == 0 ? sys::ReadRegular(file, kLongestSettings)
                                           : Result<std::string>("");
}

// All of it or nothing, with the file's own mode and owner.
Status Write(const Change& change) {
  TRY_ASSIGN(const std::string now, ReadSettings(change.file));
  if (now != change.before) {
    return Refused("policy.file", change.file + " has changed since it was read",
                   "the agent has written it: run `coffer mcp install` again");
  }
  std::array<char, PATH_MAX> resolved{};
  const bool there = ::realpath(change.file.c_str(), resolved.data()) != nullptr;
  const std::string file = there ? resolved.data() : change.file;
  struct stat info{};
  const bool known = ::stat(file.c_str(), &info) == 0;
  const std::string temporary = fmt::format("{}.coffer-{}", file, ::getpid());
  {
    TRY_ASSIGN(const UniqueFd writing,
               sys::Open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600));
    if (known && (::fchmod(writing.get(), info.st_mode & 07777) != 0 ||
                  (::fchown(writing.get(), info.st_uid, info.st_gid) != 0 && ::geteuid() == 0))) {
      ::unlink(temporary.c_str());
      return HostFault("host.file", "the owner of " + file + " cannot be kept");
    }
    if (Status wrote = sys::WriteAll(writing.get(), change.text); !wrote.ok()) {
      ::unlink(temporary.c_str());
      return wrote;
    }
  }
  const long renamed =
      Syscall(SYS_renameat2, AT_FDCWD, Arg(temporary.c_str()), AT_FDCWD, Arg(file.c_str()), 0);
  if (renamed < 0) {
    ::unlink(temporary.c_str());
    return sys::ErrnoError("host.file", "cannot write " + file, renamed);
  }
  return {};
}

bool Agrees() {
  if (::isatty(STDIN_FILENO) == 0) {
    PrintError("nothing is written without --yes, because there is no terminal to ask on");
    return false;
  }
  PrintOut("Write this? [y/N] ");
  // The whole line: its end would be the answer to the next question.
  std::string answer;
  char c = 0;
  while (::read(STDIN_FILENO, &c, 1) == 1 && c != '\n') {
    answer += c;
  }
  return answer == "y" || answer == "Y";
}

}  // namespace

int InstallVerb(std::span<const std::string_view> words) {
  constexpr call::FlagSpec kFlags[] = {
      {"--print", false}, {"--yes", false}, {"--agent", true}, {"--name", true}};
  const Result<call::VerbFlags> flags = call::VerbFlags::Parse("mcp install", words, kFlags);
  if (!flags.ok()) {
    return FailVerb(flags.error());
  }
  if (flags->help()) {
    PrintOut(kInstallUsage);
    return 0;
  }
  const char* const home = ::getenv("HOME");
  const std::string name = flags->Value("--name", "coffer");
  if (!flags->words().empty() || !flags->rest().empty() || home == nullptr || *home != '/' ||
      !policy::IsToolName(name)) {
    return FailVerb(Refused("policy.usage",
                            home == nullptr || *home != '/'
                                ? "HOME is not set"
                                : "coffer mcp install takes flags only, and a name of lower-case "
                                  "letters, digits and -",
                            "`coffer mcp install --help`"));
  }
  struct stat owner{};
  if (::stat(home, &owner) != 0 || owner.st_uid != ::geteuid()) {
    return FailVerb(
        Refused("policy.usage", "the home directory is not yours",
                "run this as the user whose agents should have the entry, without sudo"));
  }
  const std::string wanted = flags->Value("--agent");
  std::vector<std::string_view> names;
  for (const Agent& agent : kAgents) {
    names.push_back(agent.name);
  }
  if (!wanted.empty() && std::find(names.begin(), names.end(), wanted) == names.end()) {
    const std::string_view nearest = policy::NearestWord(wanted, names);
    return FailVerb(Refused("policy.usage", "no agent is called " + wanted + " here",
                            nearest.empty() ? "`coffer mcp install --help` names them"
                                            : fmt::format("did you mean {}?", nearest)));
  }
  bool found = false, wrote = false;
  int failed = 0;
  for (const Agent& agent : kAgents) {
    const std::string place = std::string(home) + "/" + std::string(agent.place);
    const std::string file = std::string(home) + "/" + std::string(agent.file);
    const bool there = ::access(place.c_str(), F_OK) == 0 || ::access(file.c_str(), F_OK) == 0;
    if ((!wanted.empty() && wanted != agent.name) || (!there && wanted.empty())) {
      continue;
    }
    found = true;
    const Result<std::string> before = ReadSettings(file);
    if (!before.ok()) {
      failed = FailVerb(before.error());
      continue;
    }
    const Result<std::optional<Change>> change =
        agent.section.empty() ? PlanToml(agent, file, *before, name, OwnPath())
                              : PlanJson(agent, file, *before, name, OwnPath());
    if (!change.ok()) {
      failed = FailVerb(change.error());
      continue;
    }
    if (!*change) {
      PrintOut(fmt::format("{}: {} has it already\n", agent.name, file));
      wrote = true;
      continue;
    }
    PrintOut(fmt::format("{}: {}, new:\n{}", agent.name, file, (*change)->shown));
    if (flags->Has("--print") || !(flags->Has("--yes") || Agrees())) {
      continue;
    }
    const Status written = Write(**change);
    if (!written.ok()) {
      failed = FailVerb(written.error());
      continue;
    }
    wrote = true;
    PrintOut(fmt::format("{}: written; restart the agent\n", agent.name));
  }
  if (!found) {
    PrintOut("no agent was found; the entry is {\"command\": \"coffer\", \"args\": [\"mcp\"]}\n");
  }
  return failed != 0 ? failed : wrote || flags->Has("--print") ? 0 : 1;
}

}  // namespace coffer::cli
