// SPDX-License-Identifier: Apache-2.0
#include "gateway/mcp/process_tools.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "policy/schema/schema.h"

namespace coffer::gateway {
namespace {

struct Definition {
  ProcessTool tool;
  const char* name;
  const char* description;
  const char* input;  // JSON Schema
  bool reads;
};

constexpr const char* kNoInput =
    R"({"type": "object", "properties": {}, "additionalProperties": false})";
constexpr const char* kById = R"({"type": "object", "required": ["process_id"],
  "properties": {"process_id": {"type": "string", "minLength": 1, "maxLength": 64,
    "description": "As start-process has answered."}}, "additionalProperties": false})";

constexpr Definition kDefinitions[] = {
    {ProcessTool::kStart, "start-process",
     "Start a shell command that goes on in the background after this call: a development server, "
     "a watcher, a long build. It runs in a sandbox with the programs, limits of memory and files "
     "of the tool shell, without network. The answer has its process_id and comes at once: use "
     "read-process to see whether it still runs and what it has printed. Later calls of tools "
     "reach it on 127.0.0.1 at the ports that are named here, and at no others. Up to 8 "
     "processes run at the same time, 4 of them with ports. All end when OWNER ends.",
     R"({"type": "object", "required": ["command"], "properties": {
       "command": {"type": "string", "minLength": 1, "maxLength": 65536,
         "description": "The command, as for bash -c. It must not put itself into the background."},
       "ports": {"type": "array", "maxItems": 8, "uniqueItems": true,
         "items": {"type": "integer", "minimum": 1024, "maximum": 65535},
         "description": "The TCP ports on which the command listens."}},
       "additionalProperties": false})",
     false},
    {ProcessTool::kList, "list-processes",
     "List the background processes of OWNER: those that run and those that have ended.", kNoInput,
     true},
    {ProcessTool::kRead, "read-process",
     "Say whether a background process still runs, or how it ended, and return what it has "
     "printed to stdout and stderr. Without offset the last 16 KiB; with the next_offset of an "
     "earlier answer only what came after that. An empty output means that nothing new was "
     "printed.",
     R"({"type": "object", "required": ["process_id"], "properties": {
       "process_id": {"type": "string", "minLength": 1, "maxLength": 64,
         "description": "As start-process has answered."},
       "offset": {"type": "integer", "minimum": 0, "maximum": 1000000000,
         "description": "next_offset of an earlier answer."}}, "additionalProperties": false})",
     true},
    {ProcessTool::kStop, "stop-process",
     "End a background process: it is asked to end, and killed if it has not after a few seconds. "
     "The answer comes at once; read-process says when it has ended.",
     kById, false},
};

const Definition& DefinitionOf(ProcessTool tool) { return kDefinitions[static_cast<size_t>(tool)]; }

Json StateSchema() {
  return {{"type", "object"},
          {"required", {"process_id", "state", "command", "ports"}},
          {"properties",
           {{"process_id", {{"type", "string"}}},
            {"state", {{"type", "string"}}},
            {"command", {{"type", "string"}}},
            {"ports", {{"type", "array"}, {"items", {{"type", "integer"}}}}},
            {"outcome", {{"type", "string"}}},
            {"exit_code", {{"type", {"integer", "null"}}}},
            {"signal", {{"type", {"integer", "null"}}}},
            {"error", {{"type", "string"}}}}}};
}

Json ProcessSchema() {
  return {{"type", "object"},
          {"required", {"processes"}},
          {"properties",
           {{"processes", {{"type", "array"}, {"items", StateSchema()}}},
            {"output", {{"type", "string"}}},
            {"next_offset", {{"type", "integer"}}}}}};
}

Json StateJson(const ProcessState& process) {
  const auto number = [](const std::optional<int>& value) {
    return value ? Json(*value) : Json(nullptr);
  };
  Json state = {{"process_id", process.id},
                {"state", process.running ? "running" : "ended"},
                {"command", process.command},
                {"ports", process.ports}};
  if (!process.running) {
    state["outcome"] = process.outcome;
    state["exit_code"] = number(process.exit_code);
    state["signal"] = number(process.exit_signal);
    if (!process.error_class.empty()) {
      state["error"] = process.error_class + ": " + process.error_message;
    }
  }
  return state;
}

std::string Sentence(const ProcessState& process) {
  if (process.running) {
    return process.id + (process.ports.empty() ? " runs"
                                               : fmt::format(" runs, on 127.0.0.1 at {}",
                                                             fmt::join(process.ports, ", ")));
  }
  std::string text = process.id + " has ended";
  if (process.exit_code) {
    text += fmt::format(", with status {}", *process.exit_code);
  } else if (process.exit_signal) {
    text += fmt::format(", by signal {}", *process.exit_signal);
  }
  return process.error_class.empty()
             ? text
             : text + ": " + process.error_class + ": " + process.error_message;
}

Json ToolAnswer(std::string text, Json structured) {
  return {{"content", Json::array({{{"type", "text"}, {"text", std::move(text)}}})},
          {"structuredContent", std::move(structured)},
          {"isError", false}};
}

Json Listed(const std::vector<ProcessState>& processes) {
  Json list = Json::array();
  for (const ProcessState& process : processes) {
    list.push_back(StateJson(process));
  }
  return {{"processes", std::move(list)}};
}

}  // namespace

std::optional<ProcessTool> FindProcessTool(std::string_view name) {
  for (const Definition& one : kDefinitions) {
    if (name == one.name) {
      return one.tool;
    }
  }
  return std::nullopt;
}

std::vector<Json> ProcessToolsJson(std::string_view owner) {
  std::vector<Json> tools;
  for (const Definition& one : kDefinitions) {
    std::string description = one.description;
    if (const size_t at = description.find("OWNER"); at != std::string::npos) {
      description.replace(at, std::string_view("OWNER").size(), owner);
    }
    tools.push_back({{"name", one.name},
                     {"title", one.name},
                     {"description", std::move(description)},
                     {"inputSchema", Json::parse(one.input)},
                     {"outputSchema", ProcessSchema()},
                     {"annotations",
                      {{"title", one.name},
                       {"readOnlyHint", one.reads},
                       {"destructiveHint", false},
                       {"idempotentHint", one.reads},
                       {"openWorldHint", false}}}});
  }
  return tools;
}

coffer::Result<ProcessAsk> ReadProcessAsk(ProcessTool tool, std::string_view args_json) {
  TRY_ASSIGN(const Json args, ParseJson(args_json));
  TRY_ASSIGN(const Json document, ParseJson(DefinitionOf(tool).input));
  TRY_ASSIGN(const policy::Schema schema, policy::Schema::Compile(document));
  if (const std::vector<policy::SchemaError> errors = schema.Validate(args); !errors.empty()) {
    const std::string where = Printable(errors.front().instance);
    return Refused("policy.args.schema",
                   (where.empty() ? "the arguments" : where) + " " + errors.front().message);
  }
  ProcessAsk ask;
  ask.command = args.value("command", "");
  ask.process_id = args.value("process_id", "");
  ask.ports = args.value("ports", std::vector<uint16_t>());
  if (const auto offset = args.find("offset"); offset != args.end()) {
    ask.offset = offset->get<uint64_t>();
  }
  return ask;
}

Json ProcessResultJson(const std::vector<ProcessState>& processes, const std::string& note) {
  std::string text = note;
  for (const ProcessState& process : processes) {
    text += (text.empty() ? "" : "\n") + Sentence(process);
  }
  return ToolAnswer(std::move(text), Listed(processes));
}

JsonPieces ProcessOutput(const ProcessState& process, std::string output, uint64_t next_offset) {
  const auto held = std::make_shared<const std::string>(std::move(output));
  JsonPieces result;
  result.Raw(R"("content":[{"type":"text","text":")");
  result.TextInside(std::make_shared<const std::string>("[" + Sentence(process) + "]\n"));
  result.TextInside(held);
  result.Raw(R"("}],"structuredContent":{"processes":)");
  result.Value(Listed({process})["processes"]);
  result.Raw(R"(,"output":")");
  result.TextInside(held);
  result.Raw(R"(","next_offset":)" + std::to_string(next_offset) + R"(},"isError":false)");
  return result;
}

Json ProcessErrorJson(const Error& error) {
  const std::string text = "[error] " + error.code + ": " + error.message +
                           (error.hint.empty() ? "" : " (" + error.hint + ")");
  return {{"content", Json::array({{{"type", "text"}, {"text", text}}})}, {"isError", true}};
}

}  // namespace coffer::gateway
