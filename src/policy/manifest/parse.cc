// SPDX-License-Identifier: Apache-2.0
#include "policy/manifest/parse.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/quantity.h"
#include "base/text.h"
#include "policy/envelope.h"
#include "policy/manifest/sections.h"

namespace coffer::policy {
namespace {

constexpr size_t kMaxSummary = 500;
constexpr uint64_t kMostCount = 1000000;

bool IsVersion(std::string_view text) {
  return text.size() <= 64 && std::all_of(text.begin(), text.end(), [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '.' || c == '+' || c == '-';
         });
}

bool IsOneLine(std::string_view text) {
  return std::none_of(text.begin(), text.end(),
                      [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

// JSON Pointer escapes (RFC 6901).
std::string PointerPart(std::string_view key) {
  std::string text;
  for (const char c : key) {
    text += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  }
  return text;
}

void CollectPlaces(const TomlNode& node, const std::string& pointer,
                   std::vector<std::pair<std::string, Position>>& places) {
  for (const TomlEntry& entry : node.entries) {
    const std::string below = pointer + "/" + PointerPart(entry.key);
    places.emplace_back(below, entry.at);
    CollectPlaces(entry.value, below, places);
  }
  for (size_t i = 0; i < node.items.size(); ++i) {
    const std::string below = fmt::format("{}/{}", pointer, i);
    places.emplace_back(below, node.items[i].at);
    CollectPlaces(node.items[i], below, places);
  }
}

void ReadExampleList(TableReader& reader, std::string_view key, std::vector<Example>& list,
                     MistakeList& mistakes) {
  for (const TomlNode* node : reader.Tables(key)) {
    TableReader example(*node,
                        reader.NameOf(key) == "examples.deny" ? "examples.deny" : "examples.allow",
                        mistakes);
    Example made;
    made.position = node->at;
    made.why = example.Required("why", "\"what this shows\"").value_or("");
    if (example.Find("args") == nullptr) {
      mistakes.Add(node->at, example.NameOf("args") + " is missing",
                   "write args = { name = \"value\" }");
    } else if (const TomlNode* args = example.Table("args")) {
      made.args = PrintJson(ToJson(*args, mistakes));
    }
    list.push_back(std::move(made));
  }
}

// What only the whole can tell.
void CheckTogether(Manifest& manifest, MistakeList& mistakes) {
  const bool lasting =
      manifest.tool.effect == Effect::kIrreversible || manifest.tool.effect == Effect::kPrivileged;
  if (manifest.approval.declared && manifest.approval.when == ApprovalWhen::kNever && lasting) {
    manifest.dangers.push_back(
        {"approval.when", "never",
         fmt::format("{} calls run without approval", EffectName(manifest.tool.effect)),
         manifest.approval.position});
  }
  const bool writes = std::any_of(manifest.mounts.begin(), manifest.mounts.end(),
                                  [](const FileMount& m) { return m.mode == MountMode::kWrite; });
  if (manifest.tool.effect_declared && manifest.tool.effect == Effect::kReadOnly && writes) {
    mistakes.Add(manifest.PlaceOf("/tool/effect"),
                 "tool.effect: read-only, with a mount it may write",
                 "write effect = \"reversible\" or \"irreversible\", or mode = \"read\"");
  }
}

void ReadSections(const TomlNode& root, Manifest& manifest, MistakeList& mistakes) {
  TableReader reader(root, "", mistakes);
  const auto need = [&](std::string_view key) -> const TomlNode* {
    if (reader.Find(key) == nullptr) {
      mistakes.Add({}, fmt::format("[{}] is missing", key),
                   fmt::format("begin it with a line [{}]", key));
      return nullptr;
    }
    return reader.Table(key);
  };
  const auto read = [&](const TomlNode* table, auto function) {
    if (table != nullptr) {
      function(*table, manifest, mistakes);
    }
  };
  read(need("tool"), ReadTool);
  read(reader.Table("files"), ReadFiles);
  ReadInput(reader.Table("input"), manifest, mistakes);
  read(need("run"), ReadRun);
  read(reader.Table("isolation"), ReadIsolation);
  read(reader.Table("limits"), ReadLimits);
  read(reader.Table("network"), ReadNetwork);
  ReadCredentials(reader.Tables("credentials"), manifest, mistakes);
  read(reader.Table("approval"), ReadApproval);
  if (const TomlNode* output = reader.Table("output")) {
    TableReader fields(*output, "output", mistakes);
    if (const TomlNode* schema = fields.Table("schema")) {
      manifest.output_schema = PrintJson(ToJson(*schema, mistakes));
    }
  }
  read(reader.Table("rate"), ReadRate);
  read(reader.Table("background"), ReadBackground);
  read(reader.Table("calls"), ReadCalls);
  read(reader.Table("examples"), ReadExamples);
  CheckTogether(manifest, mistakes);
}

}  // namespace

void ReadTool(const TomlNode& table, Manifest& manifest, MistakeList& mistakes) {
  TableReader reader(table, "tool", mistakes);
  ToolInfo& tool = manifest.tool;
  tool.name = reader.Required("name", "\"my-tool\"").value_or("");
  if (!tool.name.empty() && !IsToolName(tool.name)) {
    reader.Add("name", fmt::format("\"{}\" is not a tool's name", Printable(tool.name)),
               "use a-z, 0-9 and -, beginning with a letter, at most 63");
  }
  tool.version = reader.Required("version", "\"1.0.0\"").value_or("");
  if (!IsVersion(tool.version)) {
    reader.Add("version", fmt::format("\"{}\" is not a version", Printable(tool.version)),
               "use letters, digits, \".\", \"+\" and \"-\", such as 1.2.0");
  }
  tool.owner = reader.String("owner").value_or("");
  tool.summary = reader.String("summary").value_or("");
  if (!IsOneLine(tool.owner) || tool.owner.size() > kMaxSummary) {
    reader.Add("owner", "more than one line, or too long", "name a team or a person");
  }
  if (!IsOneLine(tool.summary) || tool.summary.size() > kMaxSummary) {
    reader.Add("summary", fmt::format("more than one line, or than {} bytes", kMaxSummary),
               "one sentence is enough");
  }
  if (const auto choice =
          reader.Choice("effect", {"read-only", "reversible", "irreversible", "privileged"})) {
    tool.effect = static_cast<Effect>(*choice);
    tool.effect_declared = true;
  }
  if (const auto choice = reader.Choice("idempotency_key", {"optional", "required"})) {
    tool.needs_key = *choice == 1;
  }
  tool.record = static_cast<RecordKind>(reader.Choice("record", {"full", "hashes"}).value_or(0));
}

void ReadIsolation(const TomlNode& table, Manifest& manifest, MistakeList& mistakes) {
  TableReader reader(table, "isolation", mistakes);
  if (const auto text = reader.String("level")) {
    static constexpr std::string_view kLater[] = {"oci", "language", "vm", "remote"};
    if (const auto level = FindLevel(*text)) {
      manifest.isolation.level = *level;
    } else if (std::find(std::begin(kLater), std::end(kLater), *text) != std::end(kLater)) {
      reader.Add("level", fmt::format("the level {} does not exist in this version", *text),
                 "use container or process");
    } else {
      reader.Add("level", fmt::format("there is no level \"{}\"", Printable(*text)),
                 "use container, process or auto");
    }
  }
  if (const auto names = reader.Strings("floor")) {
    for (size_t i = 0; i < names->size(); ++i) {
      if (const auto layer = FindLayer((*names)[i])) {
        manifest.isolation.floor.Add(*layer);
      } else {
        mistakes.Add(
            reader.Find("floor")->value.items[i].at,
            fmt::format("isolation.floor: there is no layer \"{}\"", Printable((*names)[i])),
            "`coffer doctor` lists the layers");
      }
    }
  }
  if (const auto choice = reader.Choice("syscalls", {"strict", "default", "compat"})) {
    manifest.isolation.syscalls = static_cast<SyscallProfile>(*choice);
  }
}

void ReadLimits(const TomlNode& table, Manifest& manifest, MistakeList& mistakes) {
  TableReader reader(table, "limits", mistakes);
  Limits& limits = manifest.limits;
  reader.Duration(limits.cpu, "cpu");
  reader.Duration(limits.wall, "wall");
  reader.Parsed(limits.memory, "memory", ParseSize);
  reader.Parsed(limits.disk, "disk", ParseSize);
  reader.Parsed(limits.tmp, "tmp", ParseSize);
  reader.Parsed(limits.io, "io", ParseSize);
  reader.Parsed(limits.output, "output", ParseSize);
  limits.processes = reader.Count("processes", 1, kMostCount).value_or(limits.processes);
  limits.open_files = reader.Count("open_files", 1, kMostCount).value_or(limits.open_files);
  limits.inodes =
      reader.Count("inodes", 1, kMostCount).value_or(InodesFor(limits.disk, limits.inodes));
  manifest.connections = reader.Count("connections", 0, kMostCount).value_or(0);
}

void ReadApproval(const TomlNode& table, Manifest& manifest, MistakeList& mistakes) {
  TableReader reader(table, "approval", mistakes);
  ApprovalSpec& approval = manifest.approval;
  approval.declared = true;
  approval.position = reader.PositionOf("when");
  if (reader.Find("when") == nullptr) {
    mistakes.Add(table.at, "approval.when is missing", "write when = \"irreversible\"");
  }
  if (const auto choice =
          reader.Choice("when", {"never", "flagged", "irreversible", "diff", "always"})) {
    approval.when = static_cast<ApprovalWhen>(*choice);
  }
  if (auto approvers = reader.Strings("approvers")) {
    for (const std::string& approver : *approvers) {
      const bool good = (approver.starts_with("role:") && approver.size() > 5) ||
                        (approver.starts_with("user:") && approver.size() > 5);
      if (!good || !IsOneLine(approver)) {
        reader.Add("approvers", fmt::format("\"{}\" names no approver", Printable(approver)),
                   "write role:NAME or user:NAME");
      }
    }
    approval.approvers = std::move(*approvers);
  }
  approval.quorum = reader.Count("quorum", 1, 16).value_or(1);
  reader.Duration(approval.expires, "expires");
  if (const TomlEntry* window = reader.Find("window");
      window != nullptr && window->value.kind == TomlKind::kString && window->value.text == "0s") {
    approval.window = Nanos(0);
  } else {
    reader.Duration(approval.window, "window");
  }
}

void ReadRate(const TomlNode& table, Manifest& manifest, MistakeList& mistakes) {
  TableReader reader(table, "rate", mistakes);
  if (const auto rules = reader.Strings("calls")) {
    for (size_t i = 0; i < rules->size(); ++i) {
      Result<RateRule> rule = ParseRate((*rules)[i]);
      if (rule.ok()) {
        manifest.rate.calls.push_back(*rule);
      } else {
        mistakes.Add(reader.Find("calls")->value.items[i].at, "rate.calls: " + rule.error().message,
                     rule.error().hint);
      }
    }
    if (rules->size() > 4) {
      reader.Add("calls", "more than 4 windows", "one per second, minute, hour and day is enough");
    }
  }
  manifest.rate.burst = reader.Count("burst", 1, kMostCount).value_or(0);
  manifest.rate.concurrency = reader.Count("concurrency", 1, kMostCount).value_or(0);
  if (const TomlEntry* retry = reader.Find("retry");
      retry != nullptr && retry->value.kind == TomlKind::kString && retry->value.text == "off") {
    manifest.retry = Nanos(0);
  } else {
    reader.Parsed(manifest.retry, "retry", ParseDuration);
  }
}

void ReadExamples(const TomlNode& table, Manifest& manifest, MistakeList& mistakes) {
  TableReader reader(table, "examples", mistakes);
  ReadExampleList(reader, "allow", manifest.allow_examples, mistakes);
  ReadExampleList(reader, "deny", manifest.deny_examples, mistakes);
}

ParsedManifest ParseManifest(std::string_view text, std::string_view file) {
  ParsedManifest result;
  std::variant<TomlNode, Mistake> read = ReadToml(text);
  if (auto* mistake = std::get_if<Mistake>(&read)) {
    result.mistakes.push_back(std::move(*mistake));
    return result;
  }
  const TomlNode& root = std::get<TomlNode>(read);
  Manifest manifest;
  manifest.file = std::string(file);
  CollectPlaces(root, "", manifest.places);
  std::sort(manifest.places.begin(), manifest.places.end());
  MistakeList mistakes;
  ReadSections(root, manifest, mistakes);
  result.mistakes = mistakes.Take();
  (result.mistakes.empty() ? result.manifest : result.draft) = std::move(manifest);
  return result;
}

}  // namespace coffer::policy
