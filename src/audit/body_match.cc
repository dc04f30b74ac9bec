// SPDX-License-Identifier: Apache-2.0
#include "audit/body_match.h"

#include <nlohmann/json.hpp>

#include "audit/merkle_sha256.h"
#include "audit/seal.h"

namespace coffer::audit {
namespace {

constexpr int kDeepest = 64;

bool IsSpace(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

// Behind the closing quote of the string that begins at `at`, or npos.
size_t StringEnd(std::string_view text, size_t at) {
  for (++at; at < text.size(); ++at) {
    if (text[at] == '"') {
      return at + 1;
    }
    at += text[at] == '\\' ? 1 : 0;
  }
  return std::string_view::npos;
}

// Where the value that begins at `at` ends: at the comma or bracket that is not its own.
size_t ValueEnd(std::string_view text, size_t at) {
  for (int depth = 0; at < text.size(); ++at) {
    switch (text[at]) {
      case '"':
        at = StringEnd(text, at);
        if (at == std::string_view::npos) {
          return at;
        }
        --at;
        break;
      case '{':
      case '[':
        ++depth;
        break;
      case '}':
      case ']':
        if (depth-- == 0) {
          return at;
        }
        break;
      case ',':
        if (depth == 0) {
          return at;
        }
        break;
      default:
        break;
    }
  }
  return std::string_view::npos;
}

}  // namespace

std::optional<std::string> CompactReceipt(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  int depth = 0;
  for (size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == '"') {
      const size_t end = StringEnd(text, at);
      if (end == std::string_view::npos) {
        return std::nullopt;
      }
      const std::string_view word = text.substr(at, end - at);
      const bool member = depth == 1 && !out.empty() && (out.back() == '{' || out.back() == ',');
      out.append(word);
      at = end;
      if (member && (word == "\"log\"" || word == "\"signature\"")) {
        if (at >= text.size() || text[at] != ':') {
          return std::nullopt;
        }
        const size_t value_end = ValueEnd(text, at + 1);
        if (value_end == std::string_view::npos ||
            !nlohmann::json::accept(text.substr(at + 1, value_end - at - 1))) {
          return std::nullopt;
        }
        out.append(":null");
        at = value_end;
      }
      continue;
    }
    if (IsSpace(c)) {
      const size_t next = text.find_first_not_of(" \n\r\t", at);
      const bool ends = next == std::string_view::npos;
      const char before = out.empty() ? '{' : out.back();
      const bool allowed = before == '{' || before == '[' || before == ',' || before == ':' ||
                           ends || text[next] == '}' || text[next] == ']';
      if (!allowed || (ends && depth != 0)) {
        return std::nullopt;
      }
      at = ends ? text.size() : next;
      continue;
    }
    if (c == '{' || c == '[') {
      if (++depth > kDeepest) {
        return std::nullopt;
      }
    } else if ((c == '}' || c == ']') && --depth < 0) {
      return std::nullopt;
    }
    out.push_back(c);
    ++at;
  }
  return out;
}

bool HasBody(std::string_view receipt, std::string_view body) {
  if (const std::optional<std::string> compact = CompactReceipt(receipt);
      compact && "sha256:" + HexOf(FastSha256({}, *compact)) == body) {
    return true;
  }
  const Result<std::string> hash = BodyHash(receipt);
  return hash.ok() && *hash == body;
}

}  // namespace coffer::audit
