// SPDX-License-Identifier: Apache-2.0
#include "gateway/mcp/server.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/text.h"

namespace coffer::gateway {
namespace {

constexpr const char* kModernVersion = "2026-07-28";
// The newest first: it is what a client gets that asks for one we do not know.
constexpr const char* kLegacyVersions[] = {"2025-11-25", "2025-06-18", "2025-03-26"};

constexpr const char* kVersionKey = "io.modelcontextprotocol/protocolVersion";
constexpr const char* kCapabilitiesKey = "io.modelcontextprotocol/clientCapabilities";
constexpr const char* kServerKey = "io.modelcontextprotocol/serverInfo";

// The tools do not change while the server runs, and a restarted one may have others.
constexpr int kFreshForMs = 60'000;

constexpr const char* kInstructions =
    "Every tool runs in a sandbox of its own, with limits and without network unless its "
    "description says otherwise. "
    "Tools share the files in /workspace as their descriptions say. A refused call says why and "
    "what to change.";

Json ServerInfo() {
  return {{"name", "cofferdam"}, {"title", "Cofferdam"}, {"version", COFFER_VERSION}};
}
Json Capabilities() { return {{"tools", Json::object()}}; }

McpError BadParams(std::string why) { return {McpErrorCode::kBadParams, std::move(why), {}}; }

const Json* Member(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found == object.end() ? nullptr : &*found;
}

const Json* MetaOf(const Json& params, const char* name) {
  const Json* meta = Member(params, "_meta");
  return meta != nullptr && meta->is_object() ? Member(*meta, name) : nullptr;
}

}  // namespace

void McpServer::Receive(std::string_view line) {
  std::variant<McpMessage, McpBadMessage> read = ReadMcpMessage(line);
  if (const auto* bad = std::get_if<McpBadMessage>(&read)) {
    send_(McpErrorLine(bad->id, bad->error));
    return;
  }
  const McpMessage& message = std::get<McpMessage>(read);
  if (message.method.empty()) {
    return;  // an answer; we ask clients nothing
  }
  if (message.id.empty()) {
    HandleNotification(message);
  } else if (Waits(message.id)) {
    send_(McpErrorLine(
        message.id, {McpErrorCode::kBadMessage, "a request with this id has no answer yet", {}}));
  } else {
    HandleRequest(message);
  }
}

std::optional<McpError> McpServer::FindEra(const McpMessage& message, Era* era) const {
  const Json* const version = MetaOf(*message.params, kVersionKey);
  if (version != nullptr) {
    *era = Era::kModern;
    if (!version->is_string()) {
      return BadParams(std::string("_meta: ") + kVersionKey + " must be a string");
    }
    if (*version != kModernVersion) {
      Json supported = Json::array({kModernVersion});
      for (const char* legacy : kLegacyVersions) {
        supported.push_back(legacy);
      }
      return McpError{McpErrorCode::kBadVersion, "Unsupported protocol version",
                      PrintJson({{"supported", supported}, {"requested", *version}})};
    }
    const Json* const capabilities = MetaOf(*message.params, kCapabilitiesKey);
    if (capabilities == nullptr || !capabilities->is_object()) {
      return BadParams(std::string("_meta: ") + kCapabilitiesKey + " must be an object");
    }
    return std::nullopt;
  }
  *era = Era::kLegacy;
  if (legacy_version_.empty() && message.method != "ping") {
    return BadParams(std::string("begin with initialize, or name a version in _meta: ") +
                     kVersionKey);
  }
  return std::nullopt;
}

void McpServer::HandleRequest(const McpMessage& message) {
  if (message.method == "initialize") {
    Initialize(message);
    return;
  }
  Era era = Era::kLegacy;
  if (const std::optional<McpError> wrong = FindEra(message, &era)) {
    send_(McpErrorLine(message.id, *wrong));
  } else if (message.method == "server/discover" && era == Era::kModern) {
    SendResult(message.id, era,
               {{"supportedVersions", Json::array({kModernVersion})},
                {"capabilities", Capabilities()},
                {"instructions", kInstructions},
                {"ttlMs", kFreshForMs},
                {"cacheScope", "private"}});
  } else if (message.method == "ping" && era == Era::kLegacy) {
    SendResult(message.id, era, Json::object());
  } else if (message.method == "tools/list") {
    ListTools(message, era);
  } else if (message.method == "tools/call") {
    CallTool(message, era);
  } else {
    send_(McpErrorLine(
        message.id,
        {McpErrorCode::kNoMethod, "there is no method " + Printable(message.method), {}}));
  }
}

void McpServer::HandleNotification(const McpMessage& message) {
  if (message.method != "notifications/cancelled") {
    return;  // notifications/initialized needs nothing, and what we do not know asks for no answer
  }
  const Json* const id = Member(*message.params, "requestId");
  const auto found = id == nullptr ? pending_.end() : pending_.find(PrintJson(*id));
  if (found == pending_.end() || found->second.cancelled) {
    return;
  }
  found->second.cancelled = true;
  const Json* const reason = Member(*message.params, "reason");
  host_.Cancel(found->first,
               reason != nullptr && reason->is_string() ? reason->get<std::string>() : "");
}

void McpServer::Initialize(const McpMessage& message) {
  const Json* const wanted = Member(*message.params, "protocolVersion");
  if (wanted == nullptr || !wanted->is_string()) {
    send_(McpErrorLine(message.id, BadParams("protocolVersion must be a string")));
    return;
  }
  const auto known = std::find(std::begin(kLegacyVersions), std::end(kLegacyVersions), *wanted);
  legacy_version_ = known == std::end(kLegacyVersions) ? kLegacyVersions[0] : *known;
  send_(McpResultLine(message.id, {{"protocolVersion", legacy_version_},
                                   {"capabilities", Capabilities()},
                                   {"serverInfo", ServerInfo()},
                                   {"instructions", kInstructions}}));
}

void McpServer::ListTools(const McpMessage& message, Era era) {
  if (Member(*message.params, "cursor") != nullptr) {
    send_(McpErrorLine(message.id, BadParams("there is one page of tools, and no cursor")));
    return;
  }
  Json result = {{"tools", *host_.Tools()}};
  if (era == Era::kModern) {
    result["ttlMs"] = kFreshForMs;
    result["cacheScope"] = "private";
  }
  SendResult(message.id, era, result);
}

void McpServer::CallTool(const McpMessage& message, Era era) {
  const Json* const name = Member(*message.params, "name");
  const Json* const arguments = Member(*message.params, "arguments");
  if (name == nullptr || !name->is_string()) {
    send_(McpErrorLine(message.id, BadParams("name must be a string")));
    return;
  }
  if (arguments != nullptr && !arguments->is_object()) {
    send_(McpErrorLine(message.id, BadParams("arguments must be an object")));
    return;
  }
  Pending pending;
  pending.era = era;
  if (const Json* token = MetaOf(*message.params, "progressToken");
      token != nullptr && (token->is_string() || token->is_number_integer())) {
    pending.progress_token = PrintJson(*token);
  }
  pending_[message.id] = std::move(pending);
  const Json* const trace = MetaOf(*message.params, "traceparent");
  host_.Begin({message.id, name->get<std::string>(),
               arguments == nullptr ? "{}" : PrintJson(*arguments),
               trace != nullptr && trace->is_string() ? trace->get<std::string>() : ""});
}

void McpServer::Answer(const McpId& id, const Json& result) {
  if (const auto found = pending_.extract(id); found && !found.mapped().cancelled) {
    SendResult(id, found.mapped().era, result);
  }
}

void McpServer::Answer(const McpId& id, const McpError& error) {
  if (const auto found = pending_.extract(id); found && !found.mapped().cancelled) {
    send_(McpErrorLine(id, error));
  }
}

void McpServer::Progress(const McpId& id, double progress, const std::string& message) {
  const auto found = pending_.find(id);
  if (found == pending_.end() || found->second.cancelled || found->second.progress_token.empty()) {
    return;
  }
  send_(McpNotificationLine("notifications/progress",
                            {{"progressToken", *ParseJson(found->second.progress_token)},
                             {"progress", progress},
                             {"message", message}}));
}

void McpServer::SendResult(const McpId& id, Era era, const Json& result) {
  if (era == Era::kLegacy) {
    send_(McpResultLine(id, result));
    return;
  }
  Json complete = result;
  complete["resultType"] = "complete";
  complete["_meta"] = {{kServerKey, ServerInfo()}};
  send_(McpResultLine(id, complete));
}

}  // namespace coffer::gateway
