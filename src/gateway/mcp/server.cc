// SPDX-License-Identifier: Apache-2.0
#include "gateway/mcp/server.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/text.h"

namespace coffer::gateway {
namespace {

// The newest first: it is what a client gets that asks for one we do not know.
constexpr const char* kLegacyVersions[] = {"2025-11-25", "2025-06-18", "2025-03-26"};

constexpr const char* kCapabilitiesKey = "io.modelcontextprotocol/clientCapabilities";
constexpr const char* kServerKey = "io.modelcontextprotocol/serverInfo";

constexpr size_t kMaxProgressToken = 258;  // with its quotes

// Manifests change when an operator replaces them; files change with every call.
constexpr int kListsFreshForMs = 60'000;

constexpr const char* kInstructions =
    "Every tool runs in a sandbox of its own, with limits and without network unless its "
    "description says otherwise. "
    "Tools share the files in /workspace as their descriptions say. A refused call says why and "
    "what to change.";

Json ServerInfo() {
  return {{"name", "cofferdam"}, {"title", "Cofferdam"}, {"version", COFFER_VERSION}};
}

Json SupportedVersions() {
  Json versions = Json::array({kMcpModernVersion});
  for (const char* legacy : kLegacyVersions) {
    versions.push_back(legacy);
  }
  return versions;
}

McpError BadParams(std::string why) { return {McpErrorCode::kBadParams, std::move(why), {}}; }

const Json* Member(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found == object.end() ? nullptr : &*found;
}

// Methods whose results have caching hints in the modern era.
bool IsCacheable(std::string_view method) {
  constexpr std::string_view kCacheable[] = {
      "tools/list", "resources/list", "resources/templates/list", "resources/read", "prompts/list"};
  return std::find(std::begin(kCacheable), std::end(kCacheable), method) != std::end(kCacheable);
}

// What the modern era has in each result.
void AddModern(const McpResultForm& form, int fresh_for_ms, Json* result) {
  if (!result->contains("resultType")) {
    (*result)["resultType"] = "complete";
  }
  (*result)["_meta"][kServerKey] = ServerInfo();
  if (form.cacheable) {
    // What one caller may see, another may not.
    (*result)["cacheScope"] = "private";
    (*result)["ttlMs"] = fresh_for_ms;
  }
}

}  // namespace

bool IsMcpLegacyVersion(std::string_view version) {
  return std::find(std::begin(kLegacyVersions), std::end(kLegacyVersions), version) !=
         std::end(kLegacyVersions);
}

McpError McpVersionError(const Json& requested) {
  return {McpErrorCode::kBadVersion, "Unsupported protocol version",
          PrintJson({{"supported", SupportedVersions()}, {"requested", requested}})};
}

const Json* FindMcpMeta(const McpMessage& message, const char* name) {
  const Json* const meta = Member(*message.params, "_meta");
  return meta != nullptr && meta->is_object() ? Member(*meta, name) : nullptr;
}

std::optional<McpError> CheckMcpModern(const McpMessage& message) {
  const Json* const version = FindMcpMeta(message, kMcpVersionKey);
  if (version == nullptr || !version->is_string()) {
    return BadParams(std::string("_meta: ") + kMcpVersionKey + " must be a string");
  }
  if (*version != kMcpModernVersion) {
    return McpVersionError(*version);
  }
  const Json* const capabilities = FindMcpMeta(message, kCapabilitiesKey);
  if (capabilities == nullptr || !capabilities->is_object()) {
    return BadParams(std::string("_meta: ") + kCapabilitiesKey + " must be an object");
  }
  return std::nullopt;
}

Json McpHost::Capabilities() const { return {{"tools", Json::object()}}; }

std::string McpResultForm::Line(const Json& result) const {
  if (!modern) {
    return McpResultLine(id, result);
  }
  Json complete = result;
  const bool of_files = complete.contains("contents") || complete.contains("resources");
  AddModern(*this, of_files ? 0 : kListsFreshForMs, &complete);
  return McpResultLine(id, complete);
}

JsonPieces McpResultForm::Message(JsonPieces members) const {
  JsonPieces message;
  message.Raw(R"({"jsonrpc":"2.0","id":)" + id + R"(,"result":{)");
  message.Append(std::move(members));
  if (modern) {
    Json more = Json::object();
    AddModern(*this, 0, &more);
    message.Raw("," + PrintJson(more).substr(1) + "}");
  } else {
    message.Raw("}}");
  }
  return message;
}

McpServer::McpServer(McpHost& host, Send send) : host_(host), send_(std::move(send)) {
  host_.server_ = this;
}

McpServer::~McpServer() { host_.server_ = nullptr; }

void McpServer::Receive(const McpReading& reading) {
  if (const auto* bad = std::get_if<McpBadMessage>(&reading)) {
    SendError(bad->id, bad->error);
    return;
  }
  const McpMessage& message = std::get<McpMessage>(reading);
  if (message.method.empty()) {
    return;  // an answer; we ask clients nothing
  }
  if (message.id.empty()) {
    HandleNotification(message);
  } else if (Waits(message.id)) {
    SendError(message.id,
              {McpErrorCode::kBadMessage, "a request with this id has no answer yet", {}});
  } else {
    HandleRequest(message);
  }
}

std::optional<McpError> McpServer::CheckEra(const McpMessage& message, bool modern) const {
  if (modern) {
    return CheckMcpModern(message);
  }
  if (legacy_version_.empty() && message.method != "ping") {
    return BadParams(std::string("begin with initialize, or name a version in _meta: ") +
                     kMcpVersionKey);
  }
  return std::nullopt;
}

void McpServer::HandleRequest(const McpMessage& message) {
  const bool modern = FindMcpMeta(message, kMcpVersionKey) != nullptr;
  if (message.method == "initialize" && !modern) {
    Initialize(message);
    return;
  }
  if (const std::optional<McpError> wrong = CheckEra(message, modern)) {
    SendError(message.id, *wrong);
  } else if (message.method == "server/discover" && modern) {
    Discover(message);
  } else if (message.method == "ping" && !modern) {
    SendResult({message.id}, Json::object());
  } else if (message.method == "tools/call") {
    CallTool(message, modern);
  } else if (message.method == "tools/list") {
    if (Member(*message.params, "cursor") != nullptr) {
      SendError(message.id, BadParams("there is one page of tools, and no cursor"));
      return;
    }
    pending_[message.id] = {.modern = modern, .cacheable = true};
    host_.ListTools(message.id);
  } else {
    pending_[message.id] = {.modern = modern, .cacheable = IsCacheable(message.method)};
    if (!host_.HandleOther({message.id, message.method, message.params})) {
      Answer(
          message.id,
          McpError{McpErrorCode::kNoMethod, "there is no method " + Printable(message.method), {}});
    }
  }
}

void McpServer::HandleNotification(const McpMessage& message) {
  if (message.method != "notifications/cancelled") {
    return;  // notifications/initialized needs nothing, and what we do not know asks for no answer
  }
  const Json* const id = Member(*message.params, "requestId");
  const Json* const reason = Member(*message.params, "reason");
  if (id != nullptr) {
    Cancel(PrintJson(*id),
           reason != nullptr && reason->is_string() ? reason->get<std::string>() : "");
  }
}

void McpServer::Cancel(const McpId& id, const std::string& reason) {
  const auto found = pending_.find(id);
  if (found == pending_.end() || found->second.cancelled) {
    return;
  }
  found->second.cancelled = true;
  host_.Cancel(found->first, reason);
}

void McpServer::Initialize(const McpMessage& message) {
  const Json* const wanted = Member(*message.params, "protocolVersion");
  if (wanted == nullptr || !wanted->is_string()) {
    SendError(message.id, BadParams("protocolVersion must be a string"));
    return;
  }
  legacy_version_ = IsMcpLegacyVersion(wanted->get_ref<const std::string&>())
                        ? wanted->get<std::string>()
                        : kLegacyVersions[0];
  SendResult({message.id}, {{"protocolVersion", legacy_version_},
                            {"capabilities", host_.Capabilities()},
                            {"serverInfo", ServerInfo()},
                            {"instructions", kInstructions}});
}

void McpServer::Discover(const McpMessage& message) {
  SendResult({message.id, true, true}, {{"supportedVersions", SupportedVersions()},
                                        {"capabilities", host_.Capabilities()},
                                        {"instructions", kInstructions}});
}

void McpServer::CallTool(const McpMessage& message, bool modern) {
  const Json* const name = Member(*message.params, "name");
  const Json* const arguments = Member(*message.params, "arguments");
  if (name == nullptr || !name->is_string()) {
    SendError(message.id, BadParams("name must be a string"));
    return;
  }
  if (arguments != nullptr && !arguments->is_object()) {
    SendError(message.id, BadParams("arguments must be an object"));
    return;
  }
  Pending pending;
  pending.modern = modern;
  if (const Json* token = FindMcpMeta(message, "progressToken");
      token != nullptr && (token->is_string() || token->is_number_integer())) {
    pending.progress_token = PrintJson(*token);
    if (pending.progress_token.size() > kMaxProgressToken) {  // it is sent back every second
      SendError(message.id, BadParams("progressToken must have at most 256 bytes"));
      return;
    }
  }
  pending_[message.id] = std::move(pending);
  const Json* const trace = FindMcpMeta(message, "traceparent");
  host_.Begin({message.id, name->get<std::string>(),
               arguments == nullptr ? "{}" : PrintJson(*arguments),
               trace != nullptr && trace->is_string() ? trace->get<std::string>() : ""});
}

McpResultForm McpServer::FormOf(const McpId& id) const {
  const auto found = pending_.find(id);
  return found == pending_.end() ? McpResultForm{id}
                                 : McpResultForm{id, found->second.modern, found->second.cacheable};
}

void McpServer::Answer(const McpId& id, const Json& result) {
  AnswerLine(id, FormOf(id).Line(result));
}

void McpServer::Answer(const McpId& id, JsonPieces members) {
  AnswerLine(id, FormOf(id).Message(std::move(members)).Rest() + "\n");
}

void McpServer::AnswerLine(const McpId& id, std::string line) {
  SendAnswer(id, {.line = std::move(line)});
}

void McpServer::AnswerText(const McpId& id, JsonPieces text) {
  SendAnswer(id, {.line = {}, .text = std::make_shared<JsonPieces>(std::move(text))});
}

void McpServer::SendAnswer(const McpId& id, McpOutgoing out) {
  if (const auto found = pending_.extract(id); found && !found.mapped().cancelled) {
    send_(std::move(out));
  }
}

void McpServer::Answer(const McpId& id, McpError error) {
  if (const auto found = pending_.extract(id); found && !found.mapped().cancelled) {
    if (error.code == McpErrorCode::kNoResource && found.mapped().modern) {
      error.code = McpErrorCode::kBadParams;
    }
    SendError(id, error);
  }
}

void McpServer::Progress(const McpId& id, double progress, const std::string& message) {
  const auto found = pending_.find(id);
  if (found == pending_.end() || found->second.cancelled || found->second.progress_token.empty()) {
    return;
  }
  send_({McpNotificationLine("notifications/progress",
                             {{"progressToken", *ParseJson(found->second.progress_token)},
                              {"progress", progress},
                              {"message", message}}),
         nullptr, false, std::nullopt});
}

void McpServer::SendResult(const McpResultForm& form, const Json& result) {
  send_({form.Line(result), nullptr, true, std::nullopt});
}

void McpServer::SendError(const McpId& id, const McpError& error) {
  send_({McpErrorLine(id, error), nullptr, true, error.code});
}

}  // namespace coffer::gateway
