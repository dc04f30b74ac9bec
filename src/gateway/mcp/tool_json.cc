// SPDX-License-Identifier: Apache-2.0
#include "gateway/mcp/tool_json.h"

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "gateway/mcp/file_uri.h"
#include "policy/blast_radius.h"
#include "policy/make_envelope.h"

namespace coffer::gateway {
namespace {

Json Nullable(const char* type) { return {{"type", {type, "null"}}}; }

// Of every tool: what a call comes to is the same for all of them.
Json OutputSchema() {
  return {{"type", "object"},
          {"required", {"outcome", "stdout", "stderr", "truncated"}},
          {"properties",
           {{"call_id", Nullable("string")},
            {"outcome", {{"type", "string"}}},
            {"exit_code", Nullable("integer")},
            {"signal", Nullable("integer")},
            {"stdout", {{"type", "string"}}},
            {"stderr", {{"type", "string"}}},
            {"truncated", {{"type", "boolean"}}},
            {"error",
             {{"type", {"object", "null"}},
              {"properties",
               {{"class", {{"type", "string"}}},
                {"message", {{"type", "string"}}},
                {"hint", {{"type", "string"}}}}}}},
            {"denials",
             {{"type", "array"},
              {"items",
               {{"type", "object"},
                {"properties",
                 {{"surface", {{"type", "string"}}},
                  {"operation", {{"type", "string"}}},
                  {"target", {{"type", "string"}}},
                  {"reason", {{"type", "string"}}},
                  {"fix", Nullable("string")}}}}}}}}}};
}

std::string DescribeFiles(policy::Workspace workspace, const std::string& project) {
  const bool in_project = !project.empty();
  switch (workspace) {
    case policy::Workspace::kFresh:
      return "Its working directory /workspace is empty, and is removed after the call.";
    case policy::Workspace::kSessionRead:
      return in_project ? "Its working directory is the project " + project +
                              ", read-only. Paths are relative to it."
                        : "Its working directory /workspace has the files of earlier calls, "
                          "read-only.";
    case policy::Workspace::kSessionWrite:
      break;
  }
  return in_project
             ? "Its working directory is the project " + project +
                   ", and what it changes there stays. Paths are relative to it. Files that make "
                   "programs on the host run code (.git/hooks, .git/config, .vscode, ...) are "
                   "read-only, and new ones are set aside."
             : "Files that it leaves in its working directory /workspace are there for later "
               "calls.";
}

std::string Describe(const policy::Manifest& manifest, const std::string& project) {
  std::string text = manifest.tool.summary;
  if (const Result<policy::Envelope> envelope = policy::MakeEnvelope(manifest, {}, {"", project});
      envelope.ok()) {
    text += "\n\nIt runs in a sandbox and " +
            policy::Sentence(
                policy::ComputeBlastRadius(*envelope, manifest.network, {}, manifest.tool.effect));
  }
  text += "\n" + DescribeFiles(manifest.workspace, project);
  text +=
      "\nA result with isError says in error.message what went wrong and in error.hint what to do; "
      "an "
      "error class that begins with \"limit.\" means that a limit was reached, and one that begins "
      "with \"policy.\" means that the call is not allowed as it is: change it, do not repeat it.";
  return text;
}

Json ErrorJson(const call::ToolReply& reply) {
  if (reply.error_class.empty()) {
    return nullptr;
  }
  Json error = {{"class", reply.error_class}, {"message", reply.error_message}};
  if (!reply.hint.empty()) {
    error["hint"] = reply.hint;
  }
  return error;
}

using Bytes = std::shared_ptr<const std::string>;

// What stands after the output in what a person at a terminal would see: why the call failed.
// `ends_line`: so does the output.
std::string AfterOutput(const call::ToolReply& reply, bool failed, bool ends_line) {
  std::string text;
  const auto add = [&](const std::string& more) {
    if (text.empty() ? !ends_line : text.back() != '\n') {
      text += '\n';
    }
    text += more;
  };
  if (!reply.error_class.empty()) {
    add("[error] " + reply.error_class + ": " + reply.error_message +
        (reply.hint.empty() ? "" : " (" + reply.hint + ")"));
  } else if (failed && reply.exit_code) {
    add(fmt::format("[exit status {}]", *reply.exit_code));
  } else if (failed && reply.exit_signal) {
    add(fmt::format("[ended by signal {}]", *reply.exit_signal));
  }
  for (const audit::Denial& denial : reply.denials) {
    if (denial.reason == reply.error_message) {
      continue;  // said above
    }
    add(fmt::format("[denied] {} {}: {}{}", denial.operation, denial.target, denial.reason,
                    denial.fix.empty() ? "" : " (" + denial.fix + ")"));
  }
  if (reply.truncated) {
    add("[the output was cut]");
  }
  return text;
}

// What a person at a terminal would see. Each part ends between two characters, so that the string
// says what it would say in one: a part that follows output begins with a line break or a bracket.
void AddContentText(const call::ToolReply& reply, const Bytes& out, const Bytes& err, bool failed,
                    JsonPieces& text) {
  const auto ends_line = [](const std::string& bytes) {
    return bytes.empty() || bytes.back() == '\n';
  };
  text.TextInside(out);
  bool line_ended = ends_line(*out);
  if (!err->empty()) {
    text.Raw(line_ended ? R"([stderr]\n)" : R"(\n[stderr]\n)");
    text.TextInside(err);
    line_ended = ends_line(*err);
  }
  text.TextInside(std::make_shared<const std::string>(AfterOutput(reply, failed, line_ended)));
}

Json DenialsJson(const call::ToolReply& reply) {
  Json denials = Json::array();
  for (const audit::Denial& denial : reply.denials) {
    denials.push_back({{"surface", denial.surface},
                       {"operation", denial.operation},
                       {"target", denial.target},
                       {"reason", denial.reason},
                       {"fix", denial.fix.empty() ? Json(nullptr) : Json(denial.fix)}});
  }
  return denials;
}

// The members of an object without its braces.
std::string Members(const Json& object) {
  const std::string text = PrintJson(object);
  return text.substr(1, text.size() - 2);
}

}  // namespace

Json McpToolJson(const policy::Manifest& manifest, const std::string& project) {
  const policy::Effect effect = manifest.tool.effect;
  const bool reads = effect == policy::Effect::kReadOnly;
  const Result<Json> schema = ParseJson(manifest.input_schema);
  return {{"name", manifest.tool.name},
          {"title", manifest.tool.name},
          {"description", Describe(manifest, project)},
          {"inputSchema", schema.ok() ? *schema : Json{{"type", "object"}}},
          {"outputSchema", OutputSchema()},
          {"annotations",
           {{"title", manifest.tool.name},
            {"readOnlyHint", reads},
            {"destructiveHint",
             effect == policy::Effect::kIrreversible || effect == policy::Effect::kPrivileged},
            {"idempotentHint", reads},
            {"openWorldHint", !manifest.network.empty()}}}};
}

JsonPieces McpToolResult(call::ToolReply reply, std::span<const audit::ExportedFile> exported) {
  const auto number = [](const std::optional<int>& value) {
    return value ? Json(*value) : Json(nullptr);
  };
  const bool failed = reply.outcome != "success" || reply.exit_code.value_or(0) != 0;
  const auto out = std::make_shared<const std::string>(std::move(reply.stdout_text));
  const auto err = std::make_shared<const std::string>(std::move(reply.stderr_text));
  JsonPieces result;
  result.Raw(R"("content":[{"type":"text","text":")");
  AddContentText(reply, out, err, failed, result);
  result.Raw(R"("})");
  for (const audit::ExportedFile& file : exported) {
    Json link = McpFileJson({.of_call = true, .id = reply.call_id, .path = file.path}, file.size);
    link["type"] = "resource_link";
    result.Raw(",");
    result.Value(link);
  }
  result.Raw(R"(],"structuredContent":{)");
  result.Raw(Members({{"call_id", reply.call_id.empty() ? Json(nullptr) : Json(reply.call_id)},
                      {"outcome", reply.outcome},
                      {"exit_code", number(reply.exit_code)},
                      {"signal", number(reply.exit_signal)}}));
  result.Raw(R"(,"stdout":")");
  result.TextInside(out);
  result.Raw(R"(","stderr":")");
  result.TextInside(err);
  result.Raw(R"(",)");
  result.Raw(Members({{"truncated", reply.truncated},
                      {"error", ErrorJson(reply)},
                      {"denials", DenialsJson(reply)}}));
  result.Raw(failed ? R"(},"isError":true)" : R"(},"isError":false)");
  return result;
}

}  // namespace coffer::gateway
