// SPDX-License-Identifier: Apache-2.0
#include "cli/wrapped_reads.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "base/text.h"
#include "gateway/mcp/foreign_offers.h"

namespace coffer::cli {
namespace {

using gateway::McpError;
using gateway::McpErrorCode;

McpError BadParams(std::string why) { return {McpErrorCode::kBadParams, std::move(why), {}}; }

McpError NotOffered(const WrappedServer& server, const char* what) {
  return {
      McpErrorCode::kNoMethod, fmt::format("the server {} offers no {}", server.name(), what), {}};
}

const std::string* TextMember(const Json& params, const char* name) {
  const auto found = params.find(name);
  return found != params.end() && found->is_string() ? &found->get_ref<const std::string&>()
                                                     : nullptr;
}

std::variant<WrappedRead, McpError> MakePrompt(const WrappedServer& server, const Json& params) {
  const std::string* const name = TextMember(params, "name");
  const Json arguments = params.value("arguments", Json::object());
  if (name == nullptr || !arguments.is_object()) {
    return BadParams("name must be a string, and arguments an object");
  }
  const gateway::ForeignPrompt* const prompt = server.FindPrompt(*name);
  if (prompt == nullptr) {
    return BadParams(
        server.blocked(PromptPin(*name))
            ? fmt::format(
                  "the prompt {} is blocked: its definition has changed. A person must look "
                  "at it: `coffer mcp review {}`",
                  Printable(*name), server.name())
            : fmt::format("there is no prompt {}; prompts/list names those there are",
                          Printable(*name)));
  }
  return WrappedRead{prompt->tool->manifest.tool.name, PrintJson(arguments),
                     PrintJson({{"name", prompt->name}, {"arguments", arguments}})};
}

std::variant<WrappedRead, McpError> MakeResource(const WrappedServer& server,
                                                 const std::string& method, const Json& params) {
  Json asked = Json::object();
  if (method == "resources/list") {
    if (params.contains("cursor")) {
      asked["cursor"] = params.at("cursor");
    }
    return WrappedRead{server.name() + "-resources-list", PrintJson(asked), PrintJson(asked)};
  }
  const std::string* const uri = TextMember(params, "uri");
  if (uri == nullptr) {
    return BadParams("uri must be a string");
  }
  const std::optional<std::string> own = gateway::FindForeignUri(server.name(), *uri);
  if (!own) {
    return McpError{McpErrorCode::kNoResource,
                    fmt::format("there is no such resource: those of this server begin with {}+",
                                server.name()),
                    PrintJson({{"uri", Printable(*uri)}})};
  }
  asked["uri"] = *own;
  return WrappedRead{server.name() + "-resources-read", PrintJson(asked), PrintJson(asked)};
}

}  // namespace

bool IsWrappedRead(std::string_view method) {
  return method == "prompts/get" || method == "resources/list" || method == "resources/read";
}

std::variant<WrappedRead, McpError> MakeWrappedRead(const WrappedServer& server,
                                                    const std::string& method, const Json& params) {
  if (method == "prompts/get") {
    return server.has_prompts() ? MakePrompt(server, params) : NotOffered(server, "prompts");
  }
  return server.has_resources() ? MakeResource(server, method, params)
                                : NotOffered(server, "resources");
}

Result<Json> CheckWrappedRead(const std::string& method, const Json& result,
                              const std::string& prefix, uint64_t most) {
  TRY_ASSIGN(Json checked, method == "prompts/get" ? gateway::CheckForeignPrompt(result, prefix)
                           : method == "resources/list"
                               ? gateway::CheckForeignPage(result, prefix)
                               : gateway::CheckForeignContents(result, prefix));
  if (PrintJson(checked).size() > most) {
    return Refused("limit.output", fmt::format("the server's answer is longer than {} bytes", most),
                   "ask for less");
  }
  return checked;
}

McpError WrappedReadError(const call::ToolReply& reply) {
  const bool arguments = reply.refusal == call::ToolRefusal::kUnprocessable ||
                         reply.refusal == call::ToolRefusal::kInvalid;
  return {arguments                               ? McpErrorCode::kBadParams
          : reply.error_class == kNoResourceClass ? McpErrorCode::kNoResource
                                                  : McpErrorCode::kInternal,
          reply.error_message + (reply.hint.empty() ? "" : " (" + reply.hint + ")"),
          PrintJson({{"code", reply.error_class}})};
}

McpError NotPassedOn(const WrappedServer& server, const std::string& method) {
  if (method.starts_with("prompts/") && !server.has_prompts()) {
    return NotOffered(server, "prompts");
  }
  if (method.starts_with("resources/") && !server.has_resources()) {
    return NotOffered(server, "resources");
  }
  return {McpErrorCode::kNoMethod,
          fmt::format("{} is not passed on: of a wrapped server tools, prompts and resources are "
                      "served",
                      Printable(method)),
          {}};
}

}  // namespace coffer::cli
