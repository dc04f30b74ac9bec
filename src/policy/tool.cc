// SPDX-License-Identifier: Apache-2.0
#include "policy/tool.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/hash.h"
#include "base/text.h"
#include "policy/manifest/examples.h"
#include "policy/manifest/hash.h"
#include "policy/manifest/parse.h"

namespace coffer::policy {
namespace {

// A schema's problems, each at its own line of the manifest.
std::optional<Schema> CompileAt(const std::string& text, std::string_view pointer,
                                const Manifest& manifest, MistakeList& mistakes) {
  Result<Json> json = ParseJson(text);
  if (!json.ok()) {
    mistakes.Add(manifest.PlaceOf(pointer), Printable(json.error().message));
    return std::nullopt;
  }
  std::vector<SchemaProblem> problems;
  Result<Schema> schema = Schema::Compile(*json, &problems);
  if (schema.ok()) {
    return std::move(schema).value();
  }
  for (SchemaProblem& problem : problems) {
    mistakes.Add(manifest.PlaceOf(std::string(pointer) + problem.at), Printable(problem.message),
                 std::move(problem.hint));
  }
  if (problems.empty()) {
    mistakes.Add(manifest.PlaceOf(pointer), Printable(schema.error().message), schema.error().hint);
  }
  return std::nullopt;
}

Status CheckSchema(const Schema& schema, const Json& args) {
  const std::vector<SchemaError> errors = schema.Validate(args);
  if (errors.empty()) {
    return {};
  }
  // All of them: an agent must be able to correct itself from one answer. Names are the caller's and may be long.
  constexpr size_t kMaxName = 100;
  constexpr size_t kMaxMessage = 4000;
  std::string message;
  size_t told = 0;
  for (const SchemaError& error : errors) {
    std::string name = Printable(error.instance);
    if (name.size() > kMaxName) {
      name = "..." + name.substr(name.size() - kMaxName);
    }
    std::string one = fmt::format("{}{} {}", told == 0 ? "" : "; ",
                                  name.empty() ? "the arguments" : name, error.message);
    if (told > 0 && message.size() + one.size() > kMaxMessage) {
      break;
    }
    message += one;
    ++told;
  }
  if (told < errors.size() || errors.size() == kMaxSchemaErrors) {
    message += fmt::format("; these are the first {}, there may be more", told);
  }
  return Refused("policy.args.schema", std::move(message));
}

}  // namespace

Result<ToolCall> PrepareToolCall(const Tool& tool, const Json& args, const CallPlaces& places) {
  TRY(CheckSchema(tool.input, args));
  return MakeToolCall(tool.manifest, args, places);
}

LoadedTool LoadTool(std::string_view text, std::string_view file,
                    const std::set<Surface>& available) {
  LoadedTool loaded;
  ParsedManifest parsed = ParseManifest(text, file);
  if (!parsed.manifest && !parsed.draft) {
    loaded.mistakes = std::move(parsed.mistakes);
    return loaded;
  }
  // One with mistakes is looked at as well, as far as that makes sense: all are told at once.
  const bool whole = parsed.manifest.has_value();
  const Manifest& manifest = whole ? *parsed.manifest : *parsed.draft;
  MistakeList mistakes;
  for (const Mistake& mistake : parsed.mistakes) {
    mistakes.Add(mistake.at, mistake.message, mistake.hint);
  }
  std::optional<Schema> input;
  if (!manifest.input_schema.empty()) {
    input = CompileAt(manifest.input_schema, "/input/schema", manifest, mistakes);
  }
  std::optional<Schema> output;
  if (!manifest.output_schema.empty()) {
    output = CompileAt(manifest.output_schema, "/output/schema", manifest, mistakes);
  }
  for (Mistake& mistake : UnsupportedSurfaces(manifest, available)) {
    if (!IsWrongAlready(parsed.mistakes, mistake.at)) {
      mistakes.Add(mistake.at, std::move(mistake.message), std::move(mistake.hint));
    }
  }
  if (input) {
    const auto check = [&](const Json& args) -> Status {
      TRY(CheckSchema(*input, args));
      if (whole) {
        TRY(RenderCall(manifest, args));
      }
      return {};
    };
    // What a draft accepts may still be refused once it is whole; what its schema refuses stays refused.
    for (Mistake& mistake :
         CheckExamples(manifest, check, whole ? ExamplesOf::kBoth : ExamplesOf::kAllow)) {
      mistakes.Add(mistake.at, std::move(mistake.message), std::move(mistake.hint));
    }
  }
  if (input && mistakes.empty()) {
    std::string form = CanonicalForm(manifest);
    std::string hash = HashOf(form);
    loaded.tool = Tool{std::move(*parsed.manifest), std::move(*input), std::move(output),
                       std::move(form), std::move(hash)};
  }
  if (!loaded.tool) {
    loaded.draft = whole ? std::move(parsed.manifest) : std::move(parsed.draft);
  }
  loaded.mistakes = mistakes.Take();
  return loaded;
}

}  // namespace coffer::policy
