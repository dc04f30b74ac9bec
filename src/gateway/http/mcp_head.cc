// SPDX-License-Identifier: Apache-2.0
#include "gateway/http/mcp_head.h"

#include <sodium/utils.h>
#include <strings.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "base/text.h"
#include "gateway/mcp/server.h"

namespace coffer::gateway {
namespace {

constexpr const char* kVersionField = "MCP-Protocol-Version";
constexpr const char* kDefaultLegacyVersion = "2025-03-26";  // it did not have the field yet

McpError Mismatch(std::string why) {
  return {McpErrorCode::kBadHeaders, "Header mismatch: " + std::move(why), {}};
}

// "=?base64?...?=" stands for text that a field cannot hold. Nothing if it is not proper base64.
std::optional<std::string> DecodeField(std::string_view value) {
  constexpr std::string_view kBegin = "=?base64?";
  constexpr std::string_view kEnd = "?=";
  if (!value.starts_with(kBegin) || !value.ends_with(kEnd) ||
      value.size() < kBegin.size() + kEnd.size()) {
    return std::string(value);
  }
  value = value.substr(kBegin.size(), value.size() - kBegin.size() - kEnd.size());
  std::string text(value.size(), '\0');
  size_t size = 0;
  if (::sodium_base642bin(reinterpret_cast<unsigned char*>(text.data()), text.size(), value.data(),
                          value.size(), nullptr, &size, nullptr,
                          sodium_base64_VARIANT_ORIGINAL) != 0) {
    return std::nullopt;
  }
  text.resize(size);
  return text;
}

// The field must be there once and hold `wanted`.
std::optional<McpError> CheckField(const Head& head, const char* name, const std::string& wanted) {
  const std::string* const value = head.Find(name);
  if (value == nullptr) {
    return Mismatch(std::string(name) + " is missing");
  }
  if (head.Count(name) != 1) {
    return Mismatch(std::string(name) + " is given more than once");
  }
  if (DecodeField(*value) != wanted) {
    return Mismatch(std::string(name) + " is " + Printable(value->substr(0, 200)) +
                    ", and the body says " + Printable(wanted.substr(0, 200)));
  }
  return std::nullopt;
}

// Whose name is in Mcp-Name; null: the method has none.
const char* NameMember(const std::string& method) {
  if (method == "tools/call" || method == "prompts/get") {
    return "name";
  }
  return method == "resources/read" ? "uri" : nullptr;
}

std::optional<McpError> CheckModern(const Head& head, const McpMessage& message) {
  if (const Json* version = FindMcpMeta(message, kMcpVersionKey);
      version != nullptr && version->is_string()) {
    if (auto wrong = CheckField(head, kVersionField, version->get<std::string>())) {
      return wrong;
    }
  }
  if (auto wrong = CheckMcpModern(message)) {
    return wrong;
  }
  if (message.id.empty()) {
    return std::nullopt;  // the specification asks nothing of a notification's head
  }
  if (auto wrong = CheckField(head, "Mcp-Method", message.method)) {
    return wrong;
  }
  const char* const member = NameMember(message.method);
  if (member == nullptr) {
    return std::nullopt;
  }
  const auto name = message.params->find(member);
  if (name == message.params->end() || !name->is_string()) {
    return head.Find("Mcp-Name") == nullptr
               ? std::nullopt  // the server says what is missing
               : std::optional(Mismatch("Mcp-Name has a value, and the body has none"));
  }
  return CheckField(head, "Mcp-Name", name->get<std::string>());
}

}  // namespace

std::variant<McpEra, McpError> FindMcpEra(const Head& head, const McpMessage& message) {
  const std::string* const field = head.Find(kVersionField);
  if (head.Count(kVersionField) > 1) {
    return Mismatch(std::string(kVersionField) + " is given more than once");
  }
  const bool named = FindMcpMeta(message, kMcpVersionKey) != nullptr;
  const bool notification = message.id.empty() || message.method.empty();
  if (named || (field != nullptr && *field == kMcpModernVersion && !notification)) {
    if (auto wrong = CheckModern(head, message)) {
      return *wrong;
    }
    return McpEra{.modern = true};
  }
  if (field != nullptr && *field == kMcpModernVersion) {
    return McpEra{.modern = true};
  }
  if (message.method == "initialize") {
    return McpEra{};  // the version is what it asks for
  }
  if (field != nullptr && !IsMcpLegacyVersion(*field)) {
    return McpVersionError(Json(Printable(field->substr(0, 200))));
  }
  return McpEra{.legacy_version = field == nullptr ? kDefaultLegacyVersion : *field};
}

bool AcceptsType(const Head& head, std::string_view type) {
  bool given = false;
  for (const Header& header : head.headers) {
    if (header.name.size() != 6 || ::strncasecmp(header.name.data(), "Accept", 6) != 0) {
      continue;
    }
    given = true;
    std::string_view rest = header.value;
    while (!rest.empty()) {
      const size_t comma = rest.find(',');
      std::string_view one = rest.substr(0, comma);
      rest = comma == std::string_view::npos ? std::string_view{} : rest.substr(comma + 1);
      one = one.substr(0, one.find(';'));
      while (!one.empty() && (one.front() == ' ' || one.front() == '\t')) {
        one.remove_prefix(1);
      }
      while (!one.empty() && (one.back() == ' ' || one.back() == '\t')) {
        one.remove_suffix(1);
      }
      const std::string_view family = type.substr(0, type.find('/') + 1);
      if (one == "*/*" ||
          (one.size() == family.size() + 1 && one.starts_with(family) && one.back() == '*') ||
          (one.size() == type.size() && ::strncasecmp(one.data(), type.data(), one.size()) == 0)) {
        return true;
      }
    }
  }
  return !given;
}

}  // namespace coffer::gateway
