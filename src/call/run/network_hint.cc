// SPDX-License-Identifier: Apache-2.0
#include "call/run/network_hint.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "base/split.h"

namespace coffer::call {
namespace {

constexpr size_t kLongestHost = 253;
constexpr size_t kScriptPart = 256 << 10;  // that is looked through

bool IsHostLetter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '-';
}

struct Scheme {
  std::string_view name;
  std::string_view port;  // as --allow needs it: 443 goes without saying
};
constexpr Scheme kSchemes[] = {{"https", ""}, {"http", ":80"}, {"ssh", ":22"}, {"git", ":9418"}};

bool IsPort(std::string_view text) {
  return text.size() >= 2 && text.size() <= 6 && text[0] == ':' &&
         text.find_first_not_of("0123456789", 1) == std::string_view::npos;
}

// "example.com:8443" of "see https://user@example.com:8443/x". Nothing if it is no name of another machine.
std::optional<std::string> HostOfUrl(std::string_view word) {
  for (size_t at = word.find("://"); at != std::string_view::npos; at = word.find("://", at + 3)) {
    const auto* const scheme =
        std::find_if(std::begin(kSchemes), std::end(kSchemes),
                     [&](const Scheme& one) { return word.substr(0, at).ends_with(one.name); });
    std::string_view rest = word.substr(at + 3);
    rest = rest.substr(0, rest.find_first_of("/?# '\""));
    rest.remove_prefix(std::min(rest.rfind('@') + 1, rest.size()));
    const std::string_view host = rest.substr(0, rest.find(':'));
    const std::string_view port = rest.substr(host.size());
    const bool is_name = host.find('.') != std::string_view::npos && host.size() <= kLongestHost &&
                         std::all_of(host.begin(), host.end(), IsHostLetter);
    if (scheme != std::end(kSchemes) && is_name && !host.starts_with("127.")) {
      return std::string(host) + std::string(IsPort(port) ? port : scheme->port);
    }
  }
  return std::nullopt;
}

struct Installer {
  std::string_view program;
  std::string_view verb;
};
constexpr Installer kInstallers[] = {{"pip", "install"},   {"pip", "download"}, {"pip3", "install"},
                                     {"pip3", "download"}, {"npm", "install"},  {"npm", "i"},
                                     {"npm", "ci"}};

}  // namespace

std::optional<std::string> HostOutside(std::span<const std::string> command) {
  for (const std::string& word : command) {
    if (std::optional<std::string> host = HostOfUrl(word); host) {
      return host;
    }
  }
  const auto is_offline = [](const std::string& word) {
    return word == "--offline" || word == "--no-index";
  };
  if (command.size() < 2 || std::any_of(command.begin(), command.end(), is_offline)) {
    return std::nullopt;
  }
  const std::string_view program = std::string_view(command[0]).substr(command[0].rfind('/') + 1);
  for (const Installer& installer : kInstallers) {
    if (program == installer.program && command[1] == installer.verb) {
      return "HOST";
    }
  }
  return std::nullopt;
}

std::optional<std::string> HostInScript(std::string_view text) {
  for (std::string_view line : SplitText(text.substr(0, kScriptPart), '\n')) {
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    const bool comment = line.starts_with('#') || line.starts_with("//") || line.starts_with('*') ||
                         line.starts_with("/*");
    if (std::optional<std::string> host = comment ? std::nullopt : HostOfUrl(line); host) {
      return host;
    }
  }
  return std::nullopt;
}

}  // namespace coffer::call
