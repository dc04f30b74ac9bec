// SPDX-License-Identifier: Apache-2.0
#include "gateway/http/fields.h"

#include <strings.h>

#include <algorithm>

#include "base/ascii.h"
#include "base/hex.h"

namespace coffer::gateway {
namespace {

constexpr size_t kMaxToken = 8192;
constexpr size_t kMaxKey = 255;

bool StartsWithWord(std::string_view text, std::string_view word) {
  return text.size() >= word.size() && ::strncasecmp(text.data(), word.data(), word.size()) == 0;
}

std::string_view Trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) {
    text.remove_prefix(1);
  }
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) {
    text.remove_suffix(1);
  }
  return text;
}

Refusal BadToken(std::string message) {
  return {.kind = RefusalKind::kUnauthenticated,
          .code = "auth.malformed",
          .message = std::move(message),
          .hint = "send Authorization: Bearer KEY"};
}

Refusal BadKey(std::string message) {
  return {.kind = RefusalKind::kInvalid,
          .code = "idempotency.key",
          .message = std::move(message),
          .hint = "send 1 to 255 visible ASCII characters, best a UUID in double quotes"};
}

// sf-string of RFC 8941: visible ASCII and spaces in quotes, backslash before a quote or a backslash.
std::optional<std::string> Unquote(std::string_view text) {
  std::string plain;
  for (size_t i = 1; i < text.size(); ++i) {
    char c = text[i];
    if (c == '"') {
      return i + 1 == text.size() ? std::optional(plain) : std::nullopt;
    }
    if (c == '\\') {
      ++i;
      if (i == text.size() || (text[i] != '"' && text[i] != '\\')) {
        return std::nullopt;
      }
      c = text[i];
    }
    plain += c;
  }
  return std::nullopt;
}

}  // namespace

Answer<std::string> ReadBearer(const Head& head) {
  const size_t count = head.Count("Authorization");
  if (count == 0) {
    return std::string();
  }
  if (count > 1) {
    return BadToken("more than one Authorization field");
  }
  std::string_view value = *head.Find("Authorization");
  constexpr std::string_view kScheme = "Bearer ";
  if (!StartsWithWord(value, kScheme)) {
    return BadToken("the only way to authenticate is a bearer token");
  }
  value = Trim(value.substr(kScheme.size()));
  const std::string_view body = value.substr(0, value.find('='));
  const auto token_char = [](char c) {
    return IsAlphanumeric(c) || std::string_view("-._~+/").find(c) != std::string_view::npos;
  };
  if (body.empty() || value.size() > kMaxToken ||
      !std::all_of(body.begin(), body.end(), token_char) ||
      value.substr(body.size()).find_first_not_of('=') != std::string_view::npos) {
    return BadToken("the bearer token is malformed");
  }
  return std::string(value);
}

Answer<std::optional<std::string>> ReadIdempotencyKey(const Head& head) {
  const size_t count = head.Count("Idempotency-Key");
  if (count == 0) {
    return std::optional<std::string>();
  }
  if (count > 1) {
    return BadKey("more than one Idempotency-Key");
  }
  const std::string_view value = Trim(*head.Find("Idempotency-Key"));
  std::string key(value);
  if (!value.empty() && value.front() == '"') {
    std::optional<std::string> plain = Unquote(value);
    if (!plain.has_value()) {
      return BadKey("Idempotency-Key is a broken quoted string");
    }
    key = std::move(*plain);
  } else if (value.find_first_of("\",;\\") != std::string_view::npos) {
    return BadKey(
        "Idempotency-Key without quotes may not hold quotes, commas, semicolons or backslashes");
  }
  const bool visible =
      std::all_of(key.begin(), key.end(), [](char c) { return c > 0x20 && c < 0x7f; });
  if (key.empty() || key.size() > kMaxKey || !visible) {
    return BadKey("Idempotency-Key is empty, too long, or holds more than visible ASCII");
  }
  return std::optional(std::move(key));
}

std::optional<std::string> ReadTraceparent(const Head& head) {
  const std::string* value = head.Find("traceparent");
  if (value == nullptr || head.Count("traceparent") != 1 || value->size() != 55 ||
      !value->starts_with("00-") || (*value)[35] != '-' || (*value)[52] != '-') {
    return std::nullopt;
  }
  const std::string trace = value->substr(3, 32);
  const std::string span = value->substr(36, 16);
  const std::string all = trace + span + value->substr(53);
  if (!IsHex(all) || trace.find_first_not_of('0') == std::string::npos ||
      span.find_first_not_of('0') == std::string::npos) {
    return std::nullopt;
  }
  return *value;
}

bool PrefersAsync(const Head& head) {
  for (const Header& header : head.headers) {
    if (header.name.size() != 6 || !StartsWithWord(header.name, "Prefer")) {
      continue;
    }
    std::string_view rest = header.value;
    while (!rest.empty()) {
      const size_t comma = rest.find(',');
      const std::string_view one = Trim(rest.substr(0, comma));
      if (one.size() == 13 && StartsWithWord(one, "respond-async")) {
        return true;
      }
      rest = comma == std::string_view::npos ? std::string_view{} : rest.substr(comma + 1);
    }
  }
  return false;
}

std::optional<uint64_t> ReadNumber(std::string_view text) {
  if (text.empty() || text.size() > 18 ||
      text.find_first_not_of("0123456789") != std::string_view::npos) {
    return std::nullopt;
  }
  uint64_t number = 0;
  for (const char c : text) {
    number = number * 10 + static_cast<uint64_t>(c - '0');
  }
  return number;
}

Answer<uint64_t> ReadLastEventId(const Head& head) {
  const std::string* value = head.Find("Last-Event-ID");
  if (value == nullptr || value->empty()) {
    return uint64_t{0};
  }
  const std::optional<uint64_t> number =
      head.Count("Last-Event-ID") == 1 ? ReadNumber(*value) : std::nullopt;
  if (!number.has_value()) {
    return Refusal{.kind = RefusalKind::kInvalid,
                   .code = "events.last_id",
                   .message = "Last-Event-ID is not the id of an event of this stream"};
  }
  return *number;
}

std::optional<Problem> CheckJsonBody(const Head& head) {
  const std::string* type = head.Find("Content-Type");
  const auto refused = [](std::string detail) {
    return MakeProblem(415, "body.type", std::move(detail), "send Content-Type: application/json");
  };
  if (type == nullptr || head.Count("Content-Type") != 1) {
    return refused("the body needs one Content-Type");
  }
  const std::string_view essence = Trim(std::string_view(*type).substr(0, type->find(';')));
  constexpr std::string_view kJson = "application/json";
  if (essence.size() != kJson.size() || !StartsWithWord(essence, kJson)) {
    return refused("the body must be JSON");
  }
  if (const size_t mark = type->find(';'); mark != std::string::npos) {
    const std::string_view parameter = Trim(std::string_view(*type).substr(mark + 1));
    const bool utf8 = (parameter.size() == 13 && StartsWithWord(parameter, "charset=utf-8")) ||
                      (parameter.size() == 15 && StartsWithWord(parameter, "charset=\"utf-8\""));
    if (!utf8) {
      return refused("JSON is UTF-8, and has no other parameter");
    }
  }
  const std::string* coding = head.Find("Content-Encoding");
  if (coding != nullptr && !(coding->size() == 8 && StartsWithWord(*coding, "identity"))) {
    return MakeProblem(415, "body.encoding", "compressed bodies are not read");
  }
  return std::nullopt;
}

}  // namespace coffer::gateway
