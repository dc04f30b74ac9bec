// SPDX-License-Identifier: Apache-2.0
#include "gateway/mcp/foreign_tools.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "base/hash.h"
#include "base/text.h"
#include "gateway/mcp/stranger_text.h"
#include "policy/blast_radius.h"
#include "policy/make_envelope.h"
#include "policy/manifest/hash.h"

namespace coffer::gateway {
namespace {

constexpr size_t kMostToolDescription = 4000;
constexpr size_t kMostNote = 1000;  // of a description within a schema

bool IsNote(std::string_view key) {
  return key == "description" || key == "title" || key == "$comment";
}

// The schema with notes that can be seen and without the dialect's name. A rule that hides
// something is an error: it cannot be changed without changing what it allows. `rule` is false
// where the keys are names of properties, not of rules.
Result<Json> CleanSchema(const Json& value, bool rule) {
  if (value.is_string() && !IsVisibleText(value.get_ref<const std::string&>())) {
    return Refused("policy.schema", "its schema has text that cannot be seen");
  }
  if (!value.is_structured()) {
    return value;
  }
  Json made = value.is_array() ? Json::array() : Json::object();
  for (const auto& [key, inner] : value.items()) {
    if (value.is_array()) {
      TRY_ASSIGN(Json item, CleanSchema(inner, rule));
      made.push_back(std::move(item));
      continue;
    }
    if (!IsVisibleText(key)) {
      return Refused("policy.schema", "its schema has a name that cannot be seen");
    }
    if (rule && key == "$schema") {
      continue;  // zod and others say draft 7 for what means the same in 2020-12; a rule that differs does not compile
    }
    if (rule && IsNote(key) && inner.is_string()) {
      made[key] = VisibleText(inner.get_ref<const std::string&>(), kMostNote);
      continue;
    }
    const bool names = rule && (key == "properties" || key == "patternProperties" ||
                                key == "$defs" || key == "dependentSchemas");
    TRY_ASSIGN(Json item, CleanSchema(inner, !names));
    made[key] = std::move(item);
  }
  return made;
}

struct Reader {
  const policy::Manifest& server;
  std::string boundary;  // a sentence

  Result<ForeignTool> Read(const Json& given, const std::string& exported) const {
    ForeignTool made;
    made.name = given.at("name").get<std::string>();
    made.definition = SortedJson(given);
    if (!IsForeignName(made.name) || !policy::IsToolName(exported)) {
      return Refused("policy.name",
                     "its name is too long, or has more than letters, digits and _-./");
    }
    const auto schema = given.find("inputSchema");
    if (schema == given.end() || !schema->is_object()) {
      return Refused("policy.schema", "it has no inputSchema");
    }
    TRY_ASSIGN(const Json input, CleanSchema(*schema, true));
    TRY_ASSIGN(policy::Schema compiled, policy::Schema::Compile(input));

    policy::Manifest manifest = server;
    manifest.tool.name = exported;
    manifest.tool.summary = Describe(given);
    manifest.input_schema = PrintJson(input);
    manifest.run.argv = {{{{policy::WordKind::kLiteral, "mcp", {}}}},
                         {{{policy::WordKind::kLiteral, made.name, {}}}}};
    manifest.run.stdin_word = policy::Word{policy::WordKind::kAllArguments, "", {}};
    Json shown = {{"name", exported},
                  {"title", exported},
                  {"description", manifest.tool.summary},
                  {"inputSchema", input}};
    AddOutput(given, made, shown);
    shown["annotations"] = {{"title", exported},
                            {"readOnlyHint", false},
                            {"destructiveHint", true},
                            {"idempotentHint", false},
                            {"openWorldHint", !server.network.empty()}};
    made.shown = std::make_shared<const Json>(std::move(shown));
    std::string form = policy::CanonicalForm(manifest);
    std::string hash = HashOf(form);
    made.tool = std::make_shared<const policy::Tool>(policy::Tool{
        std::move(manifest), std::move(compiled), std::nullopt, std::move(form), std::move(hash)});
    return made;
  }

  std::string Describe(const Json& given) const {
    const auto said = given.find("description");
    std::string text = fmt::format("A tool of the MCP server {}, which runs in a sandbox and {}",
                                   server.tool.name, boundary);
    if (said != given.end() && said->is_string()) {
      text += "\nThe server describes it in these words, which Cofferdam has not checked:\n\n" +
              VisibleText(said->get_ref<const std::string&>(), kMostToolDescription);
    }
    return text;
  }

  // A result that does not fit the declared schema is an error of the server. A schema that we
  // cannot check is not passed on.
  static void AddOutput(const Json& given, ForeignTool& made, Json& shown) {
    const auto schema = given.find("outputSchema");
    if (schema == given.end() || !schema->is_object()) {
      return;
    }
    const Result<Json> output = CleanSchema(*schema, true);
    if (!output.ok()) {
      return;
    }
    if (Result<policy::Schema> compiled = policy::Schema::Compile(*output); compiled.ok()) {
      made.output = std::make_shared<const policy::Schema>(std::move(compiled).value());
      shown["outputSchema"] = *output;
    }
  }
};

}  // namespace

std::string ForeignName(const std::string& prefix, std::string_view name) {
  std::string made = prefix + "-";
  for (const char c : name) {
    const bool upper = c >= 'A' && c <= 'Z';
    const bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    made += upper ? static_cast<char>(c - 'A' + 'a') : plain ? c : '-';
  }
  while (made.ends_with('-')) {
    made.pop_back();
  }
  return made;
}

bool IsForeignName(std::string_view name) {
  return !name.empty() && name.find_first_not_of(
                              "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                              "0123456789_-./") == std::string_view::npos;
}

std::string SortedJson(const Json& value) {
  if (value.is_array()) {
    std::string text = "[";
    for (const Json& item : value) {
      text += (text.size() > 1 ? "," : "") + SortedJson(item);
    }
    return text + "]";
  }
  if (!value.is_object()) {
    return PrintJson(value);
  }
  std::map<std::string, std::string> members;
  for (const auto& [key, inner] : value.items()) {
    members[PrintJson(key)] = SortedJson(inner);
  }
  std::string text = "{";
  for (const auto& [key, inner] : members) {
    text += (text.size() > 1 ? "," : "") + key + ":" + inner;
  }
  return text + "}";
}

ForeignTools ReadForeignTools(const Json& list, const policy::Manifest& server) {
  Reader reader{server, "can do nothing that its flags do not allow."};
  if (const Result<policy::Envelope> envelope = policy::MakeEnvelope(server, {}, {});
      envelope.ok()) {
    reader.boundary = policy::Sentence(
        policy::ComputeBlastRadius(*envelope, server.network, {}, server.tool.effect));
  }
  ForeignTools read;
  for (const Json& given : list) {
    const auto name = given.is_object() ? given.find("name") : given.end();
    if (!given.is_object() || name == given.end() || !name->is_string()) {
      read.left_out.emplace_back("a tool without a name");
      continue;
    }
    const std::string said = Printable(name->get_ref<const std::string&>());
    if (read.tools.size() >= kMostForeignTools) {
      read.left_out.push_back(
          fmt::format("{} and all after it: {} tools are the most", said, kMostForeignTools));
      break;
    }
    const std::string exported = ForeignName(server.tool.name, name->get_ref<const std::string&>());
    if (read.tools.contains(exported)) {
      read.left_out.push_back(said + ": another tool has the same name here, " + exported);
      continue;
    }
    Result<ForeignTool> tool = reader.Read(given, exported);
    if (tool.ok()) {
      read.tools.emplace(exported, std::move(tool).value());
    } else {
      read.left_out.push_back(said + ": " + tool.error().message);
    }
  }
  return read;
}

}  // namespace coffer::gateway
