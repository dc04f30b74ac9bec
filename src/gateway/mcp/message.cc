// SPDX-License-Identifier: Apache-2.0
#include "gateway/mcp/message.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/bounded_json.h"

namespace coffer::gateway {
namespace {

constexpr size_t kMaxIdBytes = 256;
constexpr JsonBounds kBounds = {.depth = 32, .values = 100'000, .exact_integers = true};

bool IsMessageId(const Json& id) {
  return id.is_number_integer() ||
         (id.is_string() && id.get_ref<const std::string&>().size() <= kMaxIdBytes);
}

}  // namespace

McpReading ReadMcpMessage(std::string_view line) {
  const auto bad = [](McpId id, McpErrorCode code, std::string why) {
    return McpBadMessage{std::move(id), {code, std::move(why), {}}};
  };
  if (line.size() > kMaxMcpLine) {
    return bad("", McpErrorCode::kBadMessage, "the message is longer than 4 MiB");
  }
  Result<Json> json = ParseBoundedJson(line, kBounds);
  if (!json.ok()) {
    return bad("", McpErrorCode::kNotJson, json.error().message);
  }
  if (!json->is_object()) {
    return bad("", McpErrorCode::kBadMessage,
               "a message is one JSON object; batches are not supported");
  }
  const bool has_id = json->contains("id");
  if (has_id && !IsMessageId((*json)["id"])) {
    return bad("", McpErrorCode::kBadMessage,
               "id must be an integer or a string of at most 256 bytes");
  }
  const McpId id = has_id ? PrintJson((*json)["id"]) : "";
  if (json->value("jsonrpc", Json()) != "2.0") {
    return bad(id, McpErrorCode::kBadMessage, "jsonrpc must be \"2.0\"");
  }
  if (!json->contains("method")) {
    if (json->contains("result") || json->contains("error")) {
      return McpMessage{id, "", std::make_shared<const Json>(Json::object())};
    }
    return bad(id, McpErrorCode::kBadMessage, "method is missing");
  }
  if (json->contains("result") || json->contains("error")) {
    return bad(id, McpErrorCode::kBadMessage, "a message is a request or an answer, not both");
  }
  if (!(*json)["method"].is_string() || (*json)["method"].get_ref<const std::string&>().empty()) {
    return bad(id, McpErrorCode::kBadMessage, "method must be a string");
  }
  Json params = json->contains("params") ? std::move((*json)["params"]) : Json::object();
  if (!params.is_object()) {
    return bad(id, McpErrorCode::kBadParams, "params must be an object");
  }
  return McpMessage{id, (*json)["method"].get<std::string>(),
                    std::make_shared<const Json>(std::move(params))};
}

// PrintJson escapes line breaks inside strings, so that each message is one line.
std::string McpResultLine(const McpId& id, const Json& result) {
  return R"({"jsonrpc":"2.0","id":)" + id + R"(,"result":)" + PrintJson(result) + "}\n";
}

std::string McpErrorLine(const McpId& id, const McpError& error) {
  const Json shown = {{"code", static_cast<int>(error.code)}, {"message", error.message}};
  std::string text = PrintJson(shown);
  if (!error.data_json.empty()) {
    text.pop_back();
    text += R"(,"data":)" + error.data_json + "}";
  }
  return R"({"jsonrpc":"2.0",)" + (id.empty() ? "" : R"("id":)" + id + ",") + R"("error":)" + text +
         "}\n";
}

std::string McpNotificationLine(std::string_view method, const Json& params) {
  const Json message = {{"jsonrpc", "2.0"}, {"method", method}, {"params", params}};
  return PrintJson(message) + "\n";
}

}  // namespace coffer::gateway
