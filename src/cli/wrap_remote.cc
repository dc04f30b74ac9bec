// SPDX-License-Identifier: Apache-2.0
#include "cli/wrap_remote.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "base/regular_file.h"
#include "base/split.h"
#include "base/sys.h"
#include "base/text.h"
#include "cli/remote_bridge.h"
#include "net/http_head.h"
#include "policy/host_name.h"
#include "policy/url_path.h"

namespace coffer::cli {
namespace {

constexpr size_t kMaxHeaderFile = size_t{16} << 10;
constexpr size_t kMostHeaders = 16;
constexpr size_t kLongestValue = 4096;

Error BadUrl(std::string_view why) {
  return Refused("policy.usage", fmt::format("--url {}", why),
                 "write --url https://mcp.example.com/mcp");
}

// The only rule that the bridge has: the three methods of Streamable HTTP, at that place.
struct Place {
  std::string url, host, rule, name;
  bool tls = false;
};

Result<Place> ReadUrl(std::string_view url) {
  Place place;
  place.tls = url.starts_with("https://");
  if (!place.tls && !url.starts_with("http://")) {
    return BadUrl("begins with https:// or http://");
  }
  const std::string_view scheme = place.tls ? "https://" : "http://";
  std::string_view rest = url.substr(scheme.size());
  const size_t slash = rest.find_first_of("/?#");
  TRY_ASSIGN(const policy::HostAndPort to, policy::ParseHostAndPort(rest.substr(0, slash)));
  rest = slash == std::string_view::npos ? "/" : rest.substr(slash);
  const size_t mark = rest.find('?');
  TRY_ASSIGN(const policy::UrlPath path,
             policy::UrlPath::Parse(rest.starts_with('/') ? rest.substr(0, mark) : "/"));
  const std::string_view query = mark == std::string_view::npos ? "" : rest.substr(mark);
  const bool plain = std::all_of(query.begin(), query.end(),
                                 [](char c) { return c > 0x20 && c < 0x7f && c != '#'; });
  if (!plain || path.text().find('*') != std::string::npos) {
    return BadUrl("has a character that no such place has: *, #, a space or one beyond ASCII");
  }
  place.host = to.text();
  place.url = fmt::format("{}{}{}{}", scheme, place.host, path.text(), query);
  place.rule = fmt::format("GET,POST,DELETE {}{}{}", scheme, place.host, path.text());
  for (const char c : to.host.text().substr(0, 24)) {
    place.name += (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ? c : '-';
  }
  while (place.name.ends_with('-')) {
    place.name.pop_back();
  }
  return place;
}

// Fields that are the bridge's own, or decide where a message ends or goes.
bool IsOwnField(std::string_view name) {
  constexpr std::string_view kOwn[] = {"Host",
                                       "Content-Length",
                                       "Content-Type",
                                       "Transfer-Encoding",
                                       "Connection",
                                       "User-Agent",
                                       "Accept",
                                       "Expect",
                                       "Upgrade",
                                       "Last-Event-ID",
                                       "TE",
                                       "Trailer",
                                       "Keep-Alive",
                                       "Accept-Encoding",
                                       "Mcp-Session-Id",
                                       "Origin",
                                       "MCP-Protocol-Version"};
  return net::SameText(name.substr(0, 6), "Proxy-") ||
         std::any_of(std::begin(kOwn), std::end(kOwn),
                     [&](std::string_view one) { return net::SameText(one, name); });
}

Status AddHeader(std::string_view name, std::string_view value, std::string_view source,
                 RemoteHeaders& headers) {
  const bool visible =
      std::all_of(value.begin(), value.end(), [](char c) { return c >= 0x20 && c < 0x7f; });
  if (!net::IsToken(name) || value.empty() || value.size() > kLongestValue || !visible ||
      headers.size() >= kMostHeaders) {
    // Not what it says: that may be the credential.
    return Refused("policy.usage", fmt::format("{} has a line that is not a header", source),
                   "write lines such as: Authorization: Bearer TOKEN");
  }
  if (IsOwnField(name)) {
    return Refused("policy.usage", fmt::format("{} sets {}, which is Cofferdam's", source, name),
                   "leave the line out");
  }
  headers.emplace_back(name, value);
  return {};
}

// A file that others can read is no place for a credential.
Status ReadHeaderFile(const std::string& path, RemoteHeaders& headers) {
  TRY_ASSIGN(const UniqueFd file, sys::OpenRegular(path, O_RDONLY | O_CLOEXEC));
  struct stat info{};
  if (::fstat(file.get(), &info) != 0 || (info.st_mode & 077) != 0) {
    return Refused("policy.usage", fmt::format("others can read {}", Printable(path)),
                   fmt::format("chmod 600 {}", Printable(path)));
  }
  TRY_ASSIGN(const std::string text, sys::ReadRegular(path, kMaxHeaderFile));
  for (std::string_view line : SplitText(text, '\n')) {
    while (line.ends_with('\r') || line.ends_with(' ')) {
      line.remove_suffix(1);
    }
    if (line.empty() || line.starts_with('#')) {
      continue;
    }
    const size_t colon = line.find(':');
    std::string_view value = colon == std::string_view::npos ? "" : line.substr(colon + 1);
    value.remove_prefix(std::min(value.find_first_not_of(' '), value.size()));
    TRY(AddHeader(line.substr(0, colon), value, "--header-file", headers));
  }
  return {};
}

Result<RemoteHeaders> ReadHeaders(const call::VerbFlags& flags) {
  RemoteHeaders headers;
  if (flags.Has("--header-file")) {
    TRY(ReadHeaderFile(flags.Value("--header-file"), headers));
  }
  if (flags.Has("--token-env")) {
    const std::string variable = flags.Value("--token-env");
    const char* const token = ::getenv(variable.c_str());
    if (token == nullptr || *token == '\0') {
      return Refused("policy.usage",
                     fmt::format("--token-env: there is no {}", Printable(variable)),
                     "name a variable that has the token");
    }
    TRY(AddHeader("Authorization", "Bearer " + std::string(token), "--token-env", headers));
  }
  return headers;
}

// Of the flags of `coffer run` those that say how a host is reached.
Result<std::vector<std::string>> ReachFlags(const std::vector<std::string_view>& given) {
  constexpr std::string_view kReach[] = {"--resolve", "--upstream-ca", "--upstream-proxy",
                                         "--dangerously-allow-address"};
  std::vector<std::string> flags;
  for (size_t i = 0; i < given.size(); ++i) {
    const std::string_view flag = given[i].substr(0, given[i].find('='));
    if (std::find(std::begin(kReach), std::end(kReach), flag) == std::end(kReach)) {
      return Refused("policy.usage", fmt::format("{} cannot be used with --url", Printable(flag)),
                     flag == "--allow" ? "the URL says what is reached, and nothing else is"
                                       : "a server at a URL has no files and no limits here");
    }
    flags.emplace_back(given[i]);
    if (flag == given[i] && i + 1 < given.size()) {
      flags.emplace_back(given[++i]);
    }
  }
  return flags;
}

}  // namespace

Result<RemoteServer> ReadRemoteServer(const call::VerbFlags& flags,
                                      const std::vector<std::string_view>& run_flags) {
  TRY_ASSIGN(Place place, ReadUrl(flags.Value("--url")));
  RemoteServer server;
  TRY_ASSIGN(server.place.headers, ReadHeaders(flags));
  if (!place.tls && !server.place.headers.empty()) {
    return Refused("policy.usage", "a credential goes over TLS only", "write --url https://...");
  }
  if (flags.Has("--manifest")) {
    return Refused("policy.usage", "--manifest cannot be used with --url",
                   "a server at a URL has no files and no limits here");
  }
  TRY_ASSIGN(server.flags, ReachFlags(run_flags));
  server.flags.insert(server.flags.end(), {"--allow", place.rule});
  TRY_ASSIGN(const std::string self, sys::ReadLinkAt(AT_FDCWD, "/proc/self/exe"));
  server.command = {self, kBridgeVerb};
  server.place.url = std::move(place.url);
  server.place.host = std::move(place.host);
  server.name = std::move(place.name);
  return server;
}

}  // namespace coffer::cli
