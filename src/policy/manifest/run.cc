// SPDX-License-Identifier: Apache-2.0
//
// What a tool takes and what it runs: [input] and [run], and that the two fit together.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "policy/manifest/rules.h"
#include "policy/manifest/sections.h"
#include "policy/manifest/template_checker.h"

namespace coffer::policy {
namespace {

constexpr size_t kMaxArgv = 256;
constexpr std::string_view kWide = "host-usr";

void ReadArgv(TableReader& reader, TemplateChecker& checker, RunSpec& run, MistakeList& mistakes) {
  const TomlEntry* entry = reader.Find("argv");
  if (entry == nullptr || entry->value.kind != TomlKind::kArray || entry->value.items.empty()) {
    reader.Add("argv", "a list of words is wanted", "write argv = [\"python3\", \"-I\", \"-\"]");
    return;
  }
  if (entry->value.items.size() > kMaxArgv) {
    reader.Add("argv", fmt::format("more than {} words", kMaxArgv), "pass data through stdin");
    return;
  }
  for (const TomlNode& item : entry->value.items) {
    WordGroup group;
    group.group = item.kind == TomlKind::kArray;
    if (!group.group) {
      if (auto word = checker.Check(item, "run.argv", TemplatePlace::kArgv)) {
        group.words.push_back(std::move(*word));
      }
    }
    for (const TomlNode& node : item.items) {
      if (auto word = checker.Check(node, "run.argv", TemplatePlace::kArgv)) {
        group.words.push_back(std::move(*word));
      }
    }
    const bool varies = std::any_of(group.words.begin(), group.words.end(),
                                    [](const Word& w) { return w.kind != WordKind::kLiteral; });
    if (group.group && !varies) {
      mistakes.Add(
          item.at, "run.argv: a group without a parameter",
          "a group is left out when its parameter is not given; write plain words instead");
    }
    run.argv.push_back(std::move(group));
  }
  const WordGroup& first = run.argv.front();
  if (first.group || (!first.words.empty() && (first.words.front().kind != WordKind::kLiteral ||
                                               first.words.front().text.empty()))) {
    mistakes.Add(entry->value.items.front().at, "run.argv: the program cannot be a parameter",
                 "write the program's name first, such as \"python3\"");
  }
  // "-n" "{lines}" without lines would leave a lonely "-n".
  for (size_t i = 1; i < run.argv.size(); ++i) {
    if (run.argv[i].group || run.argv[i - 1].group || run.argv[i].words.empty() ||
        run.argv[i - 1].words.empty()) {
      continue;
    }
    const Word& before = run.argv[i - 1].words.front();
    const Word& word = run.argv[i].words.front();
    if (word.kind == WordKind::kParameter && !checker.IsRequired(word.text) &&
        before.kind == WordKind::kLiteral && before.text.starts_with('-') && before.text != "--" &&
        before.text != "-") {
      mistakes.Add(
          word.at,
          fmt::format("run.argv: {} may be missing, and would leave \"{}\" alone", word.text,
                      Printable(before.text)),
          fmt::format("group them: [\"{}\", \"{{{}}}\"]", Printable(before.text), word.text));
    }
  }
}

bool IsVariableName(std::string_view name) {
  return !name.empty() && name.size() <= 128 && !(name[0] >= '0' && name[0] <= '9') &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return (c < 0x80 && std::isalnum(c) != 0) || c == '_';
         });
}

void ReadEnv(TableReader& reader, TemplateChecker& checker, RunSpec& run, MistakeList& mistakes) {
  const TomlNode* table = reader.Table("env");
  if (table == nullptr) {
    return;
  }
  for (const TomlEntry& entry : table->entries) {
    if (!IsVariableName(entry.key)) {
      mistakes.Add(entry.at,
                   fmt::format("run.env: \"{}\" is not a variable's name", Printable(entry.key)),
                   "letters, digits and _, not beginning with a digit");
    }
    auto word = checker.Check(entry.value, "run.env", TemplatePlace::kEnv);
    if (!word) {
      continue;
    }
    if (word->kind != WordKind::kLiteral && IsCodeVariable(entry.key)) {
      mistakes.Add(entry.value.at,
                   fmt::format("run.env: {} decides which code runs, and no parameter may set it",
                               Printable(entry.key)),
                   "write a fixed value, or another variable");
    }
    run.env.emplace_back(entry.key, std::move(*word));
  }
}

bool Uses(const RunSpec& run, const std::string& parameter) {
  const auto is_it = [&](const Word& word) {
    return word.kind != WordKind::kLiteral && word.text == parameter;
  };
  return std::any_of(run.argv.begin(), run.argv.end(),
                     [&](const WordGroup& group) {
                       return std::any_of(group.words.begin(), group.words.end(), is_it);
                     }) ||
         std::any_of(run.env.begin(), run.env.end(),
                     [&](const auto& e) { return is_it(e.second); }) ||
         (run.stdin_word &&
          (is_it(*run.stdin_word) || run.stdin_word->kind == WordKind::kAllArguments));
}

// What may be done at a place inside; nothing if it is no place of this tool.
std::optional<Access> AccessAt(const Manifest& manifest, std::string_view place) {
  if (place == "/workspace") {
    return manifest.workspace == Workspace::kSessionRead ? Access::kRead : Access::kWrite;
  }
  for (const FileMount& mount : manifest.mounts) {
    if (mount.at == place) {
      return mount.mode == MountMode::kRead ? Access::kRead : Access::kWrite;
    }
  }
  return std::nullopt;
}

void ReadPaths(TableReader& reader, TemplateChecker& checker, Manifest& manifest,
               MistakeList& mistakes) {
  const TomlNode* table = reader.Table("paths");
  if (table == nullptr) {
    return;
  }
  for (const TomlEntry& entry : table->entries) {
    if (entry.value.kind != TomlKind::kTable) {
      mistakes.Add(
          entry.value.at,
          fmt::format("run.paths: a table is wanted, not {}", TomlKindName(entry.value.kind)),
          "write name = { mount = \"/workspace\", mode = \"read\" }");
      continue;
    }
    TableReader fields(entry.value, "run.paths.*", mistakes);
    PathParameter path{entry.key, fields.Required("mount", "\"/workspace\"").value_or(""),
                       Access::kRead, entry.at};
    const auto mode = fields.Choice("mode", {"read", "write"});
    path.access = mode && *mode == 1 ? Access::kWrite : Access::kRead;
    if (!checker.Knows(path.parameter)) {
      mistakes.Add(entry.at,
                   fmt::format("run.paths: there is no parameter \"{}\"", Printable(entry.key)),
                   checker.Suggest(path.parameter));
    } else if (!Uses(manifest.run, path.parameter)) {
      mistakes.Add(entry.at, fmt::format("run.paths: no template uses {}", Printable(entry.key)),
                   "use it in argv, env or stdin, or leave it out here");
    }
    const auto access = AccessAt(manifest, path.mount);
    if (!path.mount.empty() && !access) {
      fields.Add(
          "mount",
          fmt::format("{} is neither /workspace nor the `at` of a mount", Printable(path.mount)),
          "name one of them");
    } else if (access == Access::kRead && path.access == Access::kWrite) {
      fields.Add("mode", fmt::format("{} is read-only", Printable(path.mount)),
                 "write mode = \"read\", or let the tool write there");
    }
    manifest.run.paths.push_back(std::move(path));
  }
}

bool IsRuntimeName(const std::string& name) {
  const bool plain = std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return (c < 0x80 && std::isalnum(c) != 0) || c == '-' || c == '_' || c == '.';
  });
  return plain && !name.empty() && name.front() != '-' && name.size() <= 63;
}

// Further runtimes, each left out where the host does not have it.
void ReadAlso(TableReader& reader, Manifest& manifest) {
  manifest.run.also = reader.Strings("also").value_or(std::vector<std::string>());
  for (const std::string& runtime : manifest.run.also) {
    if (!IsRuntimeName(runtime)) {
      reader.Add("also", fmt::format("\"{}\" is not a runtime's name", Printable(runtime)),
                 "`coffer runtimes` lists them");
    } else if (runtime == kWide) {
      reader.Add("also", "host-usr makes every program of the host executable",
                 "name the runtimes the tool needs; or write dangerously_runtime, with a reason");
    } else if (runtime == manifest.run.runtime) {
      reader.Add("also", fmt::format("{} is the tool's runtime already", runtime), "leave it out");
    }
  }
}

void ReadRuntime(TableReader& reader, Manifest& manifest) {
  const bool danger = reader.Find("dangerously_runtime") != nullptr;
  if (danger && reader.Find("runtime") != nullptr) {
    reader.Add("dangerously_runtime", "beside runtime", "keep one of them");
  }
  const std::string_view key = danger ? "dangerously_runtime" : "runtime";
  manifest.run.runtime = reader.Required(key, "\"python3\"").value_or("");
  const std::string& runtime = manifest.run.runtime;
  if (runtime.empty()) {
    return;
  }
  if (!IsRuntimeName(runtime)) {
    reader.Add(key, fmt::format("\"{}\" is not a runtime's name", Printable(runtime)),
               "`coffer runtimes` lists them");
  } else if (!danger && runtime == kWide) {
    reader.Add(key, "host-usr makes every program of the host executable",
               "name the runtime the tool needs; or write dangerously_runtime, with a reason");
  } else if (danger && runtime != kWide) {
    reader.Add(key, fmt::format("nothing is dangerous about {}", runtime), "write runtime");
  } else if (danger) {
    GrantDanger(reader, key, runtime, manifest);
  }
  CheckReasonIsUsed(reader, danger);
  ReadAlso(reader, manifest);
}

void CheckCwd(TableReader& reader, const Manifest& manifest) {
  const std::string& cwd = manifest.run.cwd;
  const auto below = [&](std::string_view tree) {
    return !tree.empty() && (cwd == tree || (cwd.starts_with(tree) && cwd[tree.size()] == '/'));
  };
  const bool in_mount = std::any_of(manifest.mounts.begin(), manifest.mounts.end(),
                                    [&](const FileMount& mount) { return below(mount.at); });
  if (!IsCleanPath(cwd) || (!below("/workspace") && !below("/tmp") && !in_mount)) {
    reader.Add("cwd", fmt::format("\"{}\" is not a directory of this tool", Printable(cwd)),
               "write /workspace, or the `at` of a mount");
  }
}

}  // namespace

void ReadInput(const TomlNode* table, Manifest& manifest, MistakeList& mistakes) {
  static constexpr std::string_view kComposed[] = {"$ref",
                                                   "$dynamicRef",
                                                   "allOf",
                                                   "anyOf",
                                                   "oneOf",
                                                   "not",
                                                   "if",
                                                   "dependentSchemas",
                                                   "patternProperties",
                                                   "unevaluatedProperties"};
  Json schema = {{"type", "object"}};
  if (table != nullptr) {
    TableReader reader(*table, "input", mistakes);
    if (reader.Find("schema") == nullptr) {
      mistakes.Add(table->at, "input.schema is missing",
                   "write schema = { type = \"object\", properties = { ... } }");
    }
    const TomlNode* node = reader.Table("schema");
    if (node == nullptr) {
      return;
    }
    schema = ToJson(*node, mistakes);
    if (!schema.contains("type") || schema["type"] != "object") {
      reader.Add("schema", "arguments are an object, and the schema must say so",
                 "write schema = { type = \"object\", ... }");
      return;
    }
  }
  const bool composed = std::any_of(std::begin(kComposed), std::end(kComposed),
                                    [&](std::string_view key) { return schema.contains(key); });
  if (!composed && !schema.contains("additionalProperties")) {
    schema["additionalProperties"] = false;  // an undeclared parameter is refused
  }
  manifest.input_schema = PrintJson(schema);
}

void ReadRun(const TomlNode& table, Manifest& manifest, MistakeList& mistakes) {
  TableReader reader(table, "run", mistakes);
  TemplateChecker checker(manifest, mistakes);
  ReadRuntime(reader, manifest);
  ReadArgv(reader, checker, manifest.run, mistakes);
  ReadEnv(reader, checker, manifest.run, mistakes);
  if (const TomlEntry* entry = reader.Find("stdin")) {
    manifest.run.stdin_word = checker.Check(entry->value, "run.stdin", TemplatePlace::kStdin);
  }
  if (const auto cwd = reader.String("cwd")) {
    manifest.run.cwd = *cwd;
    CheckCwd(reader, manifest);
  }
  ReadPaths(reader, checker, manifest, mistakes);
}

}  // namespace coffer::policy
