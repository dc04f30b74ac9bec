// SPDX-License-Identifier: Apache-2.0
#include "policy/scrub.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

namespace coffer::policy {
namespace {

constexpr std::string_view kSecretWords[] = {
    "password",         "passwd",     "passphrase", "secret",       "token",         "apikey",
    "accesskey",        "privatekey", "signingkey", "credential",   "authorization", "cookie",
    "connectionstring", "clientkey",  "masterkey",  "encryptionkey"};

// A token that starts like this, goes on with at least `least` characters of its alphabet, and ends where they do.
struct Shape {
  std::string_view prefix;
  size_t least;
  std::string_view kind;
};
constexpr Shape kShapes[] = {
    {"AKIA", 16, "cloud access key"}, {"ASIA", 16, "cloud access key"},
    {"AIza", 30, "cloud api key"},    {"ya29.", 20, "oauth token"},
    {"ghp_", 20, "forge token"},      {"gho_", 20, "forge token"},
    {"ghu_", 20, "forge token"},      {"ghs_", 20, "forge token"},
    {"ghr_", 20, "forge token"},      {"github_pat_", 20, "forge token"},
    {"glpat-", 16, "forge token"},    {"sk-", 20, "api key"},
    {"sk_live_", 12, "payment key"},  {"sk_test_", 12, "payment key"},
    {"rk_live_", 12, "payment key"},  {"whsec_", 16, "webhook secret"},
    {"xoxb-", 10, "chat token"},      {"xoxp-", 10, "chat token"},
    {"xoxa-", 10, "chat token"},      {"xapp-", 10, "chat token"},
    {"npm_", 30, "registry token"},   {"pypi-", 30, "registry token"},
    {"hvs.", 20, "vault token"},      {"SG.", 30, "mail key"},
    {"dop_v1_", 30, "cloud token"},   {"coffer_", 20, "coffer key"},
};

bool IsWordByte(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool IsTokenByte(char c) {
  return IsWordByte(c) || c == '_' || c == '-' || c == '.' || c == '+' || c == '/' || c == '=' ||
         c == '~';
}

// No token is longer than this; what follows is looked at anew. Keeps the whole search linear.
constexpr size_t kLongestToken = 4096;

size_t TokenEnd(std::string_view text, size_t at) {
  const size_t most = std::min(text.size(), at + kLongestToken);
  while (at < most && IsTokenByte(text[at])) {
    ++at;
  }
  return at;
}

bool SameLetters(std::string_view a, std::string_view b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) {
           return (x >= 'A' && x <= 'Z' ? x + 32 : x) == y;
         });
}

// A secret that begins at `at`: where the part to keep ends, where the secret ends, and what it is.
struct Found {
  size_t keep;
  size_t end;
  std::string_view kind;
};

std::optional<Found> PrivateKey(std::string_view text, size_t at) {
  constexpr std::string_view kBegin = "-----BEGIN ";
  if (!text.substr(at).starts_with(kBegin)) {
    return std::nullopt;
  }
  const size_t label_end = text.find("-----", at + kBegin.size());
  if (label_end == std::string_view::npos ||
      text.substr(at, label_end - at).find("PRIVATE KEY") == std::string_view::npos) {
    return std::nullopt;
  }
  const size_t end = text.find("-----END ", label_end);
  const size_t close = end == std::string_view::npos ? end : text.find("-----", end + 9);
  // A key that is cut off is still a key.
  return Found{at, close == std::string_view::npos ? text.size() : close + 5, "private key"};
}

std::optional<Found> WebToken(std::string_view text, size_t at) {
  if (!text.substr(at).starts_with("eyJ")) {
    return std::nullopt;
  }
  size_t dot = at;
  while (dot < text.size() && dot - at <= 1024 && IsTokenByte(text[dot]) && text[dot] != '.') {
    ++dot;
  }
  if (!text.substr(std::min(dot, text.size())).starts_with(".eyJ")) {
    return std::nullopt;
  }
  return Found{at, TokenEnd(text, dot), "web token"};
}

// "Bearer X", "Basic X": the word stays.
std::optional<Found> Authorization(std::string_view text, size_t at) {
  for (const std::string_view scheme : {std::string_view("bearer"), std::string_view("basic")}) {
    if (!SameLetters(text.substr(at, scheme.size()), scheme) || at + scheme.size() >= text.size() ||
        text[at + scheme.size()] != ' ') {
      continue;
    }
    const size_t start = at + scheme.size() + 1;
    const size_t end = TokenEnd(text, start);
    if (end - start >= 16) {
      return Found{start, end, "credential"};
    }
  }
  return std::nullopt;
}

// "://user:password@host": the user stays.
std::optional<Found> UrlPassword(std::string_view text, size_t at) {
  if (!text.substr(at).starts_with("://")) {
    return std::nullopt;
  }
  const size_t start = at + 3;
  const size_t end = text.find_first_of("/ \t\n\"'<>", start);
  const std::string_view authority =
      text.substr(start, end == std::string_view::npos ? end : end - start);
  const size_t sign = authority.rfind('@');
  const size_t colon = authority.find(':');
  if (sign == std::string_view::npos || colon == std::string_view::npos || colon > sign) {
    return std::nullopt;
  }
  return Found{start + colon + 1, start + sign, "password"};
}

size_t ValueEnd(std::string_view text, size_t at) {
  constexpr std::string_view kEnds = "\"',&;)";
  while (at < text.size() && static_cast<unsigned char>(text[at]) > ' ' &&
         kEnds.find(text[at]) == std::string_view::npos) {
    ++at;
  }
  return at;
}

// "password=X", "api_key: X", "--token X": the name stays.
std::optional<Found> NamedValue(std::string_view text, size_t at) {
  size_t name_end = at;
  while (name_end < text.size() && name_end - at <= 64 &&
         (IsWordByte(text[name_end]) || text[name_end] == '_' || text[name_end] == '-')) {
    ++name_end;
  }
  if (name_end == at || name_end - at > 64 || !IsSecretName(text.substr(at, name_end - at))) {
    return std::nullopt;
  }
  size_t value = name_end;
  while (value < text.size() && (text[value] == '"' || text[value] == '\'')) {
    ++value;
  }
  const bool flag = text.substr(at).starts_with("--") && value < text.size() && text[value] == ' ';
  if (value >= text.size() || (text[value] != '=' && text[value] != ':' && !flag)) {
    return std::nullopt;
  }
  ++value;
  while (value < text.size() && (text[value] == ' ' || text[value] == '"' || text[value] == '\'')) {
    ++value;
  }
  size_t end = ValueEnd(text, value);
  // "Authorization: Bearer X": the scheme is not the secret.
  for (const std::string_view scheme : {"bearer", "basic", "token", "digest"}) {
    if (SameLetters(text.substr(value, end - value), scheme) && end < text.size() &&
        text[end] == ' ') {
      value = end + 1;
      end = ValueEnd(text, value);
      break;
    }
  }
  if (end == value || text.substr(value).starts_with("<redacted")) {
    return std::nullopt;
  }
  return Found{value, end, "value"};
}

std::optional<Found> KnownShape(std::string_view text, size_t at) {
  for (const Shape& shape : kShapes) {
    if (!text.substr(at).starts_with(shape.prefix)) {
      continue;
    }
    const size_t end = TokenEnd(text, at);
    if (end - at >= shape.prefix.size() + shape.least) {
      return Found{at, end, shape.kind};
    }
  }
  return std::nullopt;
}

std::optional<Found> FindAt(std::string_view text, size_t at) {
  // Each of them begins with one of these.
  if (!IsWordByte(text[at]) && text[at] != '_' && text[at] != '-' && text[at] != ':') {
    return std::nullopt;
  }
  if (std::optional<Found> found = UrlPassword(text, at)) {
    return found;
  }
  // The others begin a word.
  if (at > 0 && (IsWordByte(text[at - 1]) || text[at - 1] == '_')) {
    return std::nullopt;
  }
  for (auto* look : {PrivateKey, WebToken, Authorization, KnownShape, NamedValue}) {
    if (std::optional<Found> found = look(text, at)) {
      return found;
    }
  }
  return std::nullopt;
}

Json ScrubBelow(const Json& value, int depth) {
  if (depth > kMaxJsonDepth) {
    return "<too deep>";
  }
  if (value.is_string()) {
    return ScrubText(value.get_ref<const std::string&>());
  }
  if (value.is_array()) {
    Json array = Json::array();
    for (const Json& item : value) {
      array.push_back(ScrubBelow(item, depth + 1));
    }
    return array;
  }
  if (value.is_object()) {
    Json object = Json::object();
    for (const auto& [name, item] : value.items()) {
      object[ScrubText(name)] = IsSecretName(name) && !item.is_null() && !item.is_boolean()
                                    ? Json("<redacted: value>")
                                    : ScrubBelow(item, depth + 1);
    }
    return object;
  }
  return value;
}

}  // namespace

bool IsSecretName(std::string_view name) {
  std::string plain;
  for (const char c : name) {
    if (IsWordByte(c)) {
      plain.push_back(static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c));
    }
  }
  // "max_tokens" counts them, "token_count" too; they are no secrets.
  if (plain.find("tokens") != std::string::npos || plain.find("tokencount") != std::string::npos) {
    return false;
  }
  return std::any_of(std::begin(kSecretWords), std::end(kSecretWords),
                     [&](std::string_view word) { return plain.find(word) != std::string::npos; });
}

std::string ScrubText(std::string_view text) {
  std::string scrubbed;
  size_t copied = 0;
  for (size_t at = 0; at < text.size();) {
    const std::optional<Found> found = FindAt(text, at);
    if (!found) {
      ++at;
      continue;
    }
    scrubbed.append(text.substr(copied, found->keep - copied));
    scrubbed.append("<redacted: ").append(found->kind).append(">");
    copied = at = found->end;
  }
  scrubbed.append(text.substr(copied));
  return scrubbed;
}

std::vector<std::string> ScrubWords(std::span<const std::string> words) {
  std::vector<std::string> scrubbed;
  bool named = false;
  for (const std::string& word : words) {
    const bool flag = word.starts_with("-");
    scrubbed.push_back(named && !flag ? "<redacted: value>" : ScrubText(word));
    named = flag && word.find_first_of("= ") == std::string::npos && IsSecretName(word);
  }
  return scrubbed;
}

Json ScrubJson(const Json& value) { return ScrubBelow(value, 0); }

}  // namespace coffer::policy
