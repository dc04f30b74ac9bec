// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "audit/receipt.h"
#include "base/exit_codes.h"
#include "base/json.h"
#include "base/print.h"
#include "base/regular_file.h"
#include "base/sys.h"
#include "base/text.h"
#include "call/config_file.h"
#include "call/tool_shelf.h"
#include "call/verb_flags.h"
#include "cli/denied_rules.h"
#include "cli/state.h"
#include "cli/text_verb.h"
#include "cli/verbs.h"
#include "policy/blast_radius.h"
#include "policy/make_envelope.h"
#include "policy/manifest/starter.h"
#include "store/switches.h"

namespace coffer::cli {
namespace {

using call::ShelfEntry;
using call::ToolState;

constexpr int kMistakes = 1;

constexpr std::string_view kToolsUsage =
    R"(The tools that agents may call, each declared by a manifest.

Usage:
  coffer tools list [--json]            every tool, and what is wrong with those that do not load
  coffer tools show NAME [--json]       one tool: what it takes, what it may touch, the worst it can do
  coffer tools check FILE... [--json]   every mistake of these manifests at once; exit 1 if there is one
  coffer tools new NAME                 write NAME.toml, a commented manifest to start from
  coffer tools disable NAME --reason WHY   refuse its calls from now on, and kill those that run
  coffer tools enable NAME              undo that

  --tools DIR   a directory of manifests (several; default: /etc/coffer/tools as root, else ~/.config/coffer/tools). They
                replace shipped tools of the same name.
  --config FILE the daemon's configuration: `check` says which network rules its [egress] deny list covers
  --state DIR   the state directory (default: COFFER_STATE, /var/lib/coffer, or ~/.local/state/coffer)

`coffer help manifest` describes every key of a manifest.
)";

void PrintRed(std::string_view text) {
  const bool coloured = ::isatty(STDOUT_FILENO) == 1;
  PrintBytes(coloured ? "\033[31m" : "");
  PrintOut(text);
  PrintBytes(coloured ? "\033[0m" : "");
}

std::string_view StateName(ToolState state) {
  switch (state) {
    case ToolState::kReady:
      return "ready";
    case ToolState::kStale:
      return "stale";
    case ToolState::kBroken:
      break;
  }
  return "broken";
}

Json MistakesJson(const std::vector<policy::Mistake>& mistakes) {
  Json list = Json::array();
  for (const policy::Mistake& mistake : mistakes) {
    list.push_back({{"line", mistake.at.line},
                    {"column", mistake.at.column},
                    {"message", mistake.message},
                    {"hint", mistake.hint.empty() ? Json(nullptr) : Json(mistake.hint)}});
  }
  return list;
}

Json DangersJson(const policy::Manifest& manifest) {
  Json list = Json::array();
  for (const policy::Danger& danger : manifest.dangers) {
    list.push_back({{"key", danger.key},
                    {"value", danger.value},
                    {"reason", danger.reason},
                    {"line", danger.position.line}});
  }
  return list;
}

Json EntryJson(const ShelfEntry& entry) {
  Json json = {{"name", entry.name},
               {"state", StateName(entry.state)},
               {"file", entry.file},
               {"shipped", entry.shipped}};
  if (entry.tool != nullptr) {
    const policy::ToolInfo& info = entry.tool->manifest.tool;
    json["version"] = info.version;
    json["owner"] = info.owner;
    json["summary"] = info.summary;
    json["effect"] = policy::EffectName(info.effect);
    json["manifest_hash"] = entry.tool->hash;
    json["dangers"] = DangersJson(entry.tool->manifest);
  }
  json["mistakes"] = MistakesJson(entry.mistakes);
  return json;
}

// Why each tool is disabled on this host, by name. A list of tools makes no state directory.
std::map<std::string, std::string> Disabled(const call::VerbFlags& flags) {
  std::map<std::string, std::string> disabled;
  const Result<std::string> directory = flags.StateDir();
  const Result<bool> there =
      directory.ok() ? sys::Exists(*directory + "/coffer.db") : Result<bool>(false);
  if (!there.ok() || !*there) {
    return disabled;
  }
  Result<store::Store> store = store::Store::Open(*directory);
  const Result<std::vector<store::Switch>> switches =
      store.ok() ? store::ListSwitches(*store, store::AllTenants{})
                 : Result<std::vector<store::Switch>>(store.error());
  if (!switches.ok()) {
    PrintError("coffer: note: which tools are disabled cannot be seen: " +
               switches.error().message);
    return disabled;
  }
  for (const store::Switch& found : *switches) {
    if (found.on && !found.tenant && found.kind == store::SwitchKind::kDisabledTool) {
      disabled[found.name] = found.why;
    }
  }
  return disabled;
}

// The worst that a call can do, before any argument is known.
Result<policy::BlastRadius> WorstCase(const policy::Manifest& manifest) {
  TRY_ASSIGN(const policy::Envelope envelope,
             policy::MakeEnvelope(manifest, {}, policy::CallPlaces{}));
  std::vector<policy::LeaseGrant> leases;
  leases.reserve(manifest.credentials.size());
  for (const policy::CredentialRule& rule : manifest.credentials) {
    leases.push_back({rule.name, rule.scope, rule.hosts});
  }
  return policy::ComputeBlastRadius(envelope, manifest.network, leases, manifest.tool.effect);
}

Json SchemaJson(const policy::Manifest& manifest) {
  Result<Json> schema = ParseJson(manifest.input_schema);
  return schema.ok() ? std::move(schema).value() : Json(nullptr);
}

Result<std::unique_ptr<call::ToolShelf>> OpenShelf(const call::VerbFlags& flags) {
  TRY_ASSIGN(std::vector<std::string> dirs, flags.ToolDirs());
  auto shelf = std::make_unique<call::ToolShelf>(std::move(dirs));
  TRY(shelf->Reload());
  return shelf;
}

void PrintMistakes(const ShelfEntry& entry) {
  for (const policy::Mistake& mistake : entry.mistakes) {
    PrintError(policy::FormatMistake(entry.file, mistake));
  }
}

int ListTools(const call::VerbFlags& flags) {
  const Result<std::unique_ptr<call::ToolShelf>> shelf = OpenShelf(flags);
  if (!shelf.ok()) {
    PrintError(shelf.error());
    return kExitRefused;
  }
  const std::vector<ShelfEntry> entries = (*shelf)->List();
  const std::map<std::string, std::string> disabled = Disabled(flags);
  if (flags.json()) {
    Json list = Json::array();
    for (const ShelfEntry& entry : entries) {
      Json json = EntryJson(entry);
      if (const auto off = disabled.find(entry.name); off != disabled.end()) {
        json["state"] = "disabled";
        json["reason"] = off->second;
      }
      list.push_back(std::move(json));
    }
    PrintOut(PrintJson(Json{{"tools", std::move(list)}}, 2) + "\n");
    return 0;
  }
  size_t width = 4;
  for (const ShelfEntry& entry : entries) {
    width = std::max(width, entry.name.size());
  }
  PrintOut(fmt::format("{:<{}}  {:<9}  {:<12}  {:<8}  {}\n", "NAME", width, "VERSION", "EFFECT",
                       "STATE", "WHAT"));
  for (const ShelfEntry& entry : entries) {
    const policy::ToolInfo info =
        entry.tool == nullptr ? policy::ToolInfo{} : entry.tool->manifest.tool;
    const auto off = disabled.find(entry.name);
    const std::string state =
        fmt::format("{:<8}", off != disabled.end() ? "disabled" : StateName(entry.state));
    PrintOut(fmt::format("{:<{}}  {:<9}  {:<12}  ", entry.name, width,
                         entry.tool == nullptr ? "-" : info.version,
                         entry.tool == nullptr ? "-" : policy::EffectName(info.effect)));
    if (entry.state == ToolState::kReady && off == disabled.end()) {
      PrintOut(state);
    } else {
      PrintRed(state);
    }
    PrintOut(fmt::format("  {}\n", info.summary));
    if (off != disabled.end()) {
      PrintRed(fmt::format("{:<{}}  disabled: {}\n", "", width, Printable(off->second)));
    }
    if (entry.tool != nullptr) {
      for (const policy::Danger& danger : entry.tool->manifest.dangers) {
        PrintRed(fmt::format("{:<{}}  DANGEROUS {} = {}: {}\n", "", width, danger.key,
                             Printable(danger.value), Printable(danger.reason)));
      }
    }
  }
  for (const ShelfEntry& entry : entries) {
    PrintMistakes(entry);
  }
  return 0;
}

Error UnknownTool(const call::ToolShelf& shelf, const std::string& name) {
  const std::vector<ShelfEntry> entries = shelf.List();
  std::vector<std::string_view> names;
  for (const ShelfEntry& entry : entries) {
    names.push_back(entry.name);
  }
  const std::string_view nearest = policy::NearestWord(name, names);
  return Refused("policy.tool", fmt::format("there is no tool called {}", Printable(name)),
                 nearest.empty() ? "`coffer tools list` names them"
                                 : fmt::format("did you mean {}?", nearest));
}

int ShowTool(const call::VerbFlags& flags, const std::string& name) {
  const Result<std::unique_ptr<call::ToolShelf>> shelf = OpenShelf(flags);
  if (!shelf.ok()) {
    PrintError(shelf.error());
    return kExitRefused;
  }
  for (const ShelfEntry& entry : (*shelf)->List()) {
    if (entry.name != name) {
      continue;
    }
    if (entry.tool == nullptr) {
      PrintMistakes(entry);
      return kMistakes;
    }
    const policy::Manifest& manifest = entry.tool->manifest;
    const Result<policy::BlastRadius> worst = WorstCase(manifest);
    const std::string sentence = worst.ok() ? policy::Sentence(*worst) : worst.error().message;
    if (flags.json()) {
      Json json = EntryJson(entry);
      json["blast_radius"] = sentence;
      json["blast_radius_detail"] = worst.ok() ? policy::ToJson(*worst) : Json(nullptr);
      json["input_schema"] = SchemaJson(manifest);
      PrintOut(PrintJson(json, 2) + "\n");
      return 0;
    }
    PrintOut(fmt::format("{} {} ({}, from {})\n{}\n\nEffect:  {}\nWorst:   it {}\nHash:    {}\n",
                         manifest.tool.name, manifest.tool.version, StateName(entry.state),
                         entry.shipped ? "Cofferdam" : entry.file, manifest.tool.summary,
                         policy::EffectName(manifest.tool.effect), sentence, entry.tool->hash));
    for (const policy::Danger& danger : manifest.dangers) {
      PrintRed(fmt::format("DANGEROUS: {} = {}: {}\n", danger.key, Printable(danger.value),
                           Printable(danger.reason)));
    }
    PrintOut(fmt::format("\nArguments (JSON Schema):\n{}\n", PrintJson(SchemaJson(manifest), 2)));
    PrintMistakes(entry);
    return 0;
  }
  PrintError(UnknownTool(**shelf, name));
  return kExitRefused;
}

// What the operator's configuration says, if there is one that can be read: `coffer serve` tells what is wrong with it.
policy::EgressConfig EgressHere(const call::VerbFlags& flags) {
  const Result<std::string> file = flags.ConfigFile();
  const Result<call::FileConfig> config =
      file.ok() ? call::LoadConfigFile(*file, /*may_be_missing=*/!flags.Has("--config"))
                : Result<call::FileConfig>(file.error());
  return config.ok() ? config->egress.egress : policy::EgressConfig{};
}

int Check(const call::VerbFlags& flags, std::span<const std::string> files) {
  const policy::EgressConfig egress = EgressHere(flags);
  Json list = Json::array();
  size_t wrong = 0;
  for (const std::string& file : files) {
    std::vector<policy::Mistake> mistakes;
    std::vector<std::string> notes;
    if (const Result<std::string> text = sys::ReadRegular(file, 1 << 20); text.ok()) {
      mistakes = call::CheckToolHere(*text, file);
      notes = DeniedRules(*text, file, egress);
    } else {
      mistakes.push_back({{}, text.error().message, ""});
    }
    wrong += mistakes.empty() ? 0 : 1;
    list.push_back({{"file", file},
                    {"ok", mistakes.empty()},
                    {"mistakes", MistakesJson(mistakes)},
                    {"notes", notes}});
    if (flags.json()) {
      continue;
    }
    for (const policy::Mistake& mistake : mistakes) {
      PrintOut(policy::FormatMistake(file, mistake) + "\n");
    }
    for (const std::string& note : notes) {
      PrintOut(note + "\n");
    }
    if (mistakes.empty()) {
      PrintOut(file + ": ok\n");
    }
  }
  if (flags.json()) {
    PrintOut(PrintJson(Json{{"files", std::move(list)}}, 2) + "\n");
  }
  return wrong == 0 ? 0 : kMistakes;
}

int NewTool(const std::string& name) {
  if (!policy::IsToolName(name)) {
    PrintError(Refused("policy.tool", fmt::format("{} cannot be a tool's name", Printable(name)),
                       "lower-case letters, digits and \"-\", beginning with a letter"));
    return kExitRefused;
  }
  const std::string path = name + ".toml";
  Result<UniqueFd> file = sys::Open(path, O_WRONLY | O_CREAT | O_EXCL, 0644);
  if (!file.ok()) {
    PrintError(file.error().sys_errno == EEXIST
                   ? Refused("policy.tool", path + " is there already", "choose another name")
                   : file.error());
    return kExitRefused;
  }
  if (const Status wrote = sys::WriteAll(file->get(), policy::StarterManifest(name)); !wrote.ok()) {
    PrintError(wrote.error());
    return kExitFailed;
  }
  PrintOut(fmt::format("{} is there; next: coffer tools check {}\n", path, path));
  return 0;
}

// For every tenant of this state directory; a daemon that has it open notices within a second.
int Switch(const call::VerbFlags& flags, const std::string& name, bool off) {
  const std::string reason = flags.Value("--reason");
  if (off && reason.empty()) {
    PrintError(
        Refused("policy.usage", "disabling a tool needs a reason", "add --reason 'what happened'"));
    return kExitRefused;
  }
  if (off) {
    // Enabling takes any name: a tool that is gone may still be switched off.
    const Result<std::unique_ptr<call::ToolShelf>> shelf = OpenShelf(flags);
    if (!shelf.ok()) {
      PrintError(shelf.error());
      return kExitRefused;
    }
    const auto entries = (*shelf)->List();
    if (name != audit::kRunTool &&
        std::none_of(entries.begin(), entries.end(),
                     [&](const ShelfEntry& entry) { return entry.name == name; })) {
      PrintError(UnknownTool(**shelf, name));
      return kExitRefused;
    }
  }
  Result<State> state = State::Open(flags);
  if (!state.ok()) {
    PrintError(state.error());
    return kExitFailed;
  }
  store::SwitchChange change;
  change.kind = store::SwitchKind::kDisabledTool;
  change.name = name;
  change.on = off;
  change.who = CallerName();
  change.why = reason;
  if (const Status set = store::SetSwitch(state->store(), store::AllTenants{}, change); !set.ok()) {
    PrintError(set.error());
    return kExitRefused;
  }
  // The switch is thrown already: that it cannot be recorded must not undo it.
  if (const Status told = state->recorder().Event(
          "", off ? "switch.on" : "switch.off",
          {{"by", change.who}, {"scope", "disabled-tool"}, {"name", name}, {"reason", reason}});
      !told.ok()) {
    PrintError(told.error());
  }
  PrintOut(fmt::format("{} is {}\n", name, off ? "disabled" : "enabled"));
  return 0;
}

}  // namespace

int ToolsVerb(std::span<const std::string_view> words) {
  constexpr call::FlagSpec kFlags[] = {{"--reason", true}, {"--config", true}};
  const Result<call::VerbFlags> flags = call::VerbFlags::Parse("tools", words, kFlags);
  if (!flags.ok()) {
    PrintError(flags.error());
    return kExitRefused;
  }
  const std::vector<std::string>& given = flags->words();
  if (flags->help() || given.empty()) {
    PrintOut(kToolsUsage);
    return flags->help() ? 0 : kExitRefused;
  }
  if (given[0] == "list" && given.size() == 1) {
    return ListTools(*flags);
  }
  if (given[0] == "show" && given.size() == 2) {
    return ShowTool(*flags, given[1]);
  }
  if (given[0] == "check" && given.size() >= 2) {
    return Check(*flags, std::span(given).subspan(1));
  }
  if (given[0] == "new" && given.size() == 2) {
    return NewTool(given[1]);
  }
  if ((given[0] == "disable" || given[0] == "enable") && given.size() == 2) {
    return Switch(*flags, given[1], given[0] == "disable");
  }
  PrintError(
      UnknownAction("tools", given.front(), {"list", "show", "check", "new", "disable", "enable"}));
  return kExitRefused;
}

}  // namespace coffer::cli
