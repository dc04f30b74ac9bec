// SPDX-License-Identifier: Apache-2.0
#include "gateway/http/head_checks.h"

#include <algorithm>

#include "base/text.h"
#include "net/http_head.h"

namespace coffer::gateway {
namespace {

using net::IsToken;
using net::SameText;

Problem Malformed(std::string detail) {
  return FatalProblem(400, "http.malformed", std::move(detail));
}

// "name:port", "[::1]:port" or either without a port. Nothing if it is not one of these.
struct Authority {
  std::string host;  // lower case, without brackets
  std::string port;  // "" if there is none
};

std::optional<Authority> SplitAuthority(std::string_view text) {
  Authority authority;
  std::string_view port;
  if (!text.empty() && text.front() == '[') {
    const size_t close = text.find(']');
    if (close == std::string_view::npos) {
      return std::nullopt;
    }
    authority.host = text.substr(1, close - 1);
    port = text.substr(close + 1);
    if (authority.host.find_first_not_of("0123456789abcdefABCDEF:.") != std::string::npos) {
      return std::nullopt;
    }
  } else {
    const size_t colon = text.find(':');
    authority.host = text.substr(0, colon);
    port = colon == std::string_view::npos ? std::string_view{} : text.substr(colon);
    const auto plain = [](char c) {
      return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
             c == '-' || c == '.' || c == '_';
    };
    if (!std::all_of(authority.host.begin(), authority.host.end(), plain)) {
      return std::nullopt;
    }
  }
  if (authority.host.empty() || authority.host.size() > 253) {
    return std::nullopt;
  }
  if (!port.empty()) {
    if (port.front() != ':' || port.size() > 6 ||
        port.substr(1).find_first_not_of("0123456789") != std::string_view::npos) {
      return std::nullopt;
    }
    authority.port = port.substr(1);
  }
  std::transform(authority.host.begin(), authority.host.end(), authority.host.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return authority;
}

bool KnownHost(const Authority& authority, const Channel& channel, const SiteNames& names) {
  // A web page cannot reach a unix socket, and there is no name for one.
  return channel.unix_socket || authority.host == "localhost" ||
         authority.host == channel.local_address ||
         std::any_of(names.hosts.begin(), names.hosts.end(),
                     [&](const std::string& name) { return SameText(name, authority.host); });
}

std::optional<Problem> CheckOrigin(const Head& head, const Channel& channel, const SiteNames& names,
                                   std::string_view host) {
  const auto refused = [](std::string_view what) {
    return MakeProblem(403, "http.origin",
                       "requests from another site are refused: " + Printable(what),
                       "if this page may use the API, name its origin in the configuration");
  };
  if (const std::string* origin = head.Find("Origin"); origin != nullptr) {
    const std::string own = (channel.tls ? "https://" : "http://") + std::string(host);
    const bool known = SameText(*origin, own) ||
                       std::any_of(names.origins.begin(), names.origins.end(),
                                   [&](const std::string& o) { return SameText(o, *origin); });
    if (head.Count("Origin") != 1 || !known) {
      return refused("Origin " + *origin);
    }
    return std::nullopt;
  }
  // A browser that sends no Origin with a request from another site still says so; following a link is no request of
  // the page.
  const std::string* site = head.Find("Sec-Fetch-Site");
  const std::string* mode = head.Find("Sec-Fetch-Mode");
  if (site != nullptr && SameText(*site, "cross-site") &&
      (mode == nullptr || !SameText(*mode, "navigate"))) {
    return refused("Sec-Fetch-Site cross-site");
  }
  return std::nullopt;
}

}  // namespace

std::optional<Problem> CheckRawHead(std::string_view raw, const HttpLimits& limits) {
  size_t lines = 0;
  while (true) {
    const size_t end = raw.find("\r\n");
    if (end == std::string_view::npos) {
      return Malformed("the head of the request does not end");
    }
    const std::string_view line = raw.substr(0, end);
    raw.remove_prefix(end + 2);
    const auto bad = [](char c) {
      const auto byte = static_cast<unsigned char>(c);
      return (byte < 0x20 && c != '\t') || byte == 0x7f;
    };
    if (std::any_of(line.begin(), line.end(), bad)) {
      return Malformed("a control character in the head of the request");
    }
    if (line.empty()) {
      return lines == 0 ? std::optional(Malformed("an empty line where a request should begin"))
                        : std::nullopt;
    }
    if (lines++ == 0) {
      if (line.size() > limits.target_bytes + 32) {
        return FatalProblem(414, "http.target_too_long",
                            "the request target is longer than the limit");
      }
      continue;
    }
    if (lines > limits.headers + 1) {
      return FatalProblem(431, "http.too_many_headers", "more header fields than the limit");
    }
    if (line.front() == ' ' || line.front() == '\t') {
      return Malformed("a folded header field");
    }
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos || !IsToken(line.substr(0, colon))) {
      return Malformed("a header field without a proper name");
    }
  }
}

std::optional<Problem> CheckFraming(const Head& head) {
  const size_t lengths = head.Count("Content-Length");
  const size_t codings = head.Count("Transfer-Encoding");
  if (lengths > 1 || codings > 1 || (lengths == 1 && codings == 1)) {
    return FatalProblem(400, "http.framing", "the length of the body is given more than once",
                        "send one Content-Length, or Transfer-Encoding: chunked");
  }
  if (lengths == 1) {
    const std::string& value = *head.Find("Content-Length");
    if (value.empty() || value.size() > 18 ||
        value.find_first_not_of("0123456789") != std::string::npos) {
      return FatalProblem(400, "http.framing", "Content-Length is not a number of bytes");
    }
  }
  if (codings == 1 &&
      (head.version < 11 || !SameText(*head.Find("Transfer-Encoding"), "chunked"))) {
    return FatalProblem(501, "http.transfer_coding",
                        "the only transfer coding is chunked, in HTTP/1.1");
  }
  if (const std::string* expect = head.Find("Expect");
      expect != nullptr && !SameText(*expect, "100-continue")) {
    return FatalProblem(417, "http.expect", "the only expectation is 100-continue");
  }
  return std::nullopt;
}

std::optional<Problem> CheckSite(const Head& head, const Channel& channel, const SiteNames& names) {
  const std::string* host = head.Find("Host");
  if (host == nullptr || head.Count("Host") != 1) {
    return FatalProblem(400, "http.host_missing", "a request needs exactly one Host field");
  }
  const std::optional<Authority> authority = SplitAuthority(*host);
  if (!authority.has_value()) {
    return FatalProblem(400, "http.malformed",
                        "Host is not a name or address with an optional port");
  }
  if (!KnownHost(*authority, channel, names)) {
    return MakeProblem(
        421, "http.host", "this server does not answer to the name " + Printable(*host),
        "use localhost or the address it listens on, or add the name to the configuration");
  }
  return CheckOrigin(head, channel, names, *host);
}

std::optional<Target> SplitTarget(Head* head) {
  std::string_view rest = head->target;
  if (rest.empty() || rest.find('#') != std::string_view::npos) {
    return std::nullopt;
  }
  if (rest.front() != '/') {
    const size_t scheme = rest.starts_with("http://") ? 7 : rest.starts_with("https://") ? 8 : 0;
    if (scheme == 0) {
      return std::nullopt;
    }
    rest.remove_prefix(scheme);
    const size_t end = rest.find_first_of("/?");
    const std::string authority(rest.substr(0, end));
    rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end);
    for (Header& header : head->headers) {
      if (SameText(header.name, "Host")) {
        header.value = authority;
      }
    }
  }
  const size_t mark = rest.find('?');
  Target target{std::string(rest.substr(0, mark)), {}};
  if (mark != std::string_view::npos) {
    target.query = rest.substr(mark + 1);
  }
  if (target.path.empty()) {
    target.path = "/";
  }
  return target;
}

}  // namespace coffer::gateway
