// SPDX-License-Identifier: Apache-2.0
#include "egress/proxy_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/split.h"
#include "base/text.h"

namespace coffer::egress {
namespace {

using net::HttpBody;
using net::HttpField;
using net::HttpFields;
using net::SameText;
using policy::HostAndPort;

constexpr size_t kLongestQuery = 8192;
constexpr std::string_view kProxyItself = "127.0.0.1:3128";  // call/run/egress_listeners.h

Error Malformed(std::string message) { return Refused("http.malformed", std::move(message)); }
Error Mismatch(std::string message) {
  return Refused("egress.authority_mismatch", std::move(message),
                 "target, Host and tunnel must name the same host and port");
}

// Fields of one connection (RFC 9110 section 7.6.1), of the way to us, what we write ourselves, and
// those that make some servers answer another request than the one that was judged.
bool IsLeftOut(std::string_view name) {
  constexpr std::string_view kNames[] = {"Connection",
                                         "Keep-Alive",
                                         "TE",
                                         "Trailer",
                                         "Transfer-Encoding",
                                         "Upgrade",
                                         "Host",
                                         "Content-Length",
                                         "Expect",
                                         "Via",
                                         "Forwarded",
                                         "HTTP2-Settings",
                                         "Close",
                                         "Sec-WebSocket-Extensions",
                                         "X-HTTP-Method",
                                         "X-HTTP-Method-Override",
                                         "X-Method-Override",
                                         "X-Host",
                                         "X-HTTP-Host-Override"};
  // Servers that hand fields on as variables take "_" for "-".
  std::string dashed(name);
  std::replace(dashed.begin(), dashed.end(), '_', '-');
  const auto begins = [&](std::string_view prefix) {
    return SameText(std::string_view(dashed).substr(0, prefix.size()), prefix);
  };
  return begins("Proxy-") || begins("X-Forwarded-") || begins("X-Original-") ||
         begins("X-Rewrite-") ||
         std::any_of(std::begin(kNames), std::end(kNames),
                     [&](std::string_view other) { return SameText(dashed, other); });
}

// A field that Connection names goes no further than us. One that decides where the message ends or goes to must not
// be in that list.
Status CheckConnection(const HttpFields& fields) {
  for (const char* name :
       {"Host", "Content-Length", "Transfer-Encoding", "Authorization", "Cookie"}) {
    if (fields.HasMember("Connection", name)) {
      return Malformed(fmt::format("Connection names {}", name));
    }
  }
  return {};
}

void AppendFields(const HttpFields& fields, std::string& head) {
  for (const HttpField& field : fields.list) {
    if (!IsLeftOut(field.name) && !fields.HasMember("Connection", field.name)) {
      head += fmt::format("{}: {}\r\n", field.name, field.value);
    }
  }
}

void AppendFraming(const HttpBody& body, std::string& head) {
  if (body.kind == HttpBody::Kind::kLength) {
    head += fmt::format("Content-Length: {}\r\n", body.length);
  } else if (body.kind == HttpBody::Kind::kChunked) {
    head += "Transfer-Encoding: chunked\r\n";
  }
}

// The one Host field, with the port that it means.
Result<HostAndPort> ReadHost(const HttpFields& fields, uint16_t usual_port) {
  if (fields.Count("Host") != 1) {
    return Malformed("a request needs exactly one Host field");
  }
  TRY_ASSIGN(HostAndPort host, policy::ParseHostAndPort(*fields.Find("Host")));
  if (host.port == 0) {
    host.port = usual_port;
  }
  return host;
}

Status ReadTarget(std::string_view target, ProxyRequest& request) {
  const size_t mark = target.find('?');
  TRY_ASSIGN(request.path, policy::UrlPath::Parse(target.substr(0, mark)));
  if (mark == std::string_view::npos) {
    return {};
  }
  if (target.size() - mark > kLongestQuery) {
    return Refused("http.head_too_large", "the query is longer than 8192 bytes");
  }
  for (const char c : target.substr(mark)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte <= 0x20 || byte == 0x7f || c == '#') {
      return Malformed("a space, control character or \"#\" in the query");
    }
    if (byte >= 0x80 || c == '"' || c == '<' || c == '>' || c == '\\' || c == '^' || c == '`' ||
        c == '{' || c == '|' || c == '}') {
      request.query += fmt::format("%{:02X}", byte);
    } else {
      request.query += c;
    }
  }
  return {};
}

Status ReadConnect(const net::HttpRequestHead& head, ProxyRequest& request) {
  request.form = ProxyRequest::Form::kConnect;
  TRY_ASSIGN(request.to, policy::ParseHostAndPort(head.target));
  if (request.to.port == 0) {
    return Malformed("CONNECT needs a port");
  }
  // Python's client sends no Host with CONNECT; curl sends it with the port, others without. undici
  // before 6 names the proxy itself, which is no second reading of where the tunnel leads.
  const bool names_proxy =
      head.fields.Count("Host") == 1 && *head.fields.Find("Host") == kProxyItself;
  if (head.fields.Count("Host") > 0 && !names_proxy) {
    TRY_ASSIGN(const HostAndPort host, ReadHost(head.fields, request.to.port));
    if (host != request.to) {
      return Mismatch("CONNECT and Host name different hosts");
    }
  }
  if (head.body.kind == HttpBody::Kind::kChunked || head.body.length > 0) {
    return Malformed("CONNECT with a body");
  }
  return {};
}

Status ReadForward(const net::HttpRequestHead& head, ProxyRequest& request) {
  constexpr std::string_view kPlain = "http://";
  constexpr std::string_view kTls = "https://";
  std::string_view rest = head.target;
  request.tls = SameText(rest.substr(0, kTls.size()), kTls);
  const std::string_view scheme = request.tls ? kTls : kPlain;
  if (rest.size() <= scheme.size() || !SameText(rest.substr(0, scheme.size()), scheme)) {
    return Malformed("a proxy takes CONNECT, or a target that begins with http:// or https://");
  }
  rest.remove_prefix(scheme.size());
  const size_t end = rest.find_first_of("/?#");
  TRY_ASSIGN(request.to, policy::ParseHostAndPort(rest.substr(0, end)));
  request.form = ProxyRequest::Form::kForward;
  const uint16_t usual_port = request.tls ? 443 : 80;
  if (request.to.port == 0) {
    request.to.port = usual_port;
  }
  rest = end == std::string_view::npos ? std::string_view() : rest.substr(end);
  TRY_ASSIGN(const HostAndPort host, ReadHost(head.fields, usual_port));
  if (host != request.to) {
    return Mismatch("the target and Host name different hosts");
  }
  return ReadTarget(rest.starts_with('/') ? std::string(rest) : "/" + std::string(rest), request);
}

Status ReadRest(net::HttpRequestHead& head, ProxyRequest& request) {
  TRY(CheckConnection(head.fields));
  request.method = std::move(head.method);
  request.version = head.version;
  request.body = head.body;
  request.fields = std::move(head.fields);
  const HttpFields& fields = request.fields;
  const bool close =
      fields.HasMember("Connection", "close") || fields.HasMember("Proxy-Connection", "close");
  request.keep_alive = head.version == 11 && !close;
  if (const std::string* expect = fields.Find("Expect")) {
    if (fields.Count("Expect") > 1 || !SameText(*expect, "100-continue")) {
      return Refused("http.expect", "the only expectation is 100-continue");
    }
    request.expects_continue = head.version == 11;
  }
  request.websocket = request.method == "GET" && fields.Count("Upgrade") == 1 &&
                      SameText(*fields.Find("Upgrade"), "websocket") &&
                      fields.HasMember("Connection", "upgrade") &&
                      request.body.kind == HttpBody::Kind::kNone;
  return {};
}

bool IsPlainMethod(std::string_view method) {
  return method.size() <= 20 && std::all_of(method.begin(), method.end(), [](char c) {
           return (c >= 'A' && c <= 'Z') || c == '-';
         });
}

}  // namespace

Result<ProxyRequest> ParseProxyRequest(std::string_view raw) {
  TRY_ASSIGN(net::HttpRequestHead head, net::ParseRequestHead(raw));
  ProxyRequest request;
  if (!IsPlainMethod(head.method)) {
    return Malformed("a method is 1 to 20 capitals");
  }
  if (head.method == "CONNECT") {
    TRY(ReadConnect(head, request));
    return request;
  }
  TRY(ReadForward(head, request));
  TRY(ReadRest(head, request));
  return request;
}

Result<ProxyRequest> ParseTunnelRequest(std::string_view raw, const HostAndPort& to, bool tls) {
  TRY_ASSIGN(net::HttpRequestHead head, net::ParseRequestHead(raw));
  ProxyRequest request;
  request.form = ProxyRequest::Form::kTunnelled;
  request.to = to;
  request.tls = tls;
  if (!IsPlainMethod(head.method) || head.method == "CONNECT") {
    return Malformed("a method is 1 to 20 capitals, and CONNECT does not come through a tunnel");
  }
  if (!head.target.starts_with('/')) {
    return Malformed("the target inside a tunnel is a path");
  }
  TRY_ASSIGN(const HostAndPort host, ReadHost(head.fields, tls ? 443 : 80));
  // A client that was told about a port other than the usual one writes it; one that leaves it out means the tunnel's.
  const bool bare = head.fields.Find("Host")->find(':') == std::string::npos;
  if (host.host != to.host || (host.port != to.port && !bare)) {
    return Mismatch("Host is not the host of the tunnel");
  }
  TRY(ReadTarget(head.target, request));
  TRY(ReadRest(head, request));
  return request;
}

bool ProxyRequest::body_may_stay_unread() const {
  const bool empty = body.kind == HttpBody::Kind::kNone ||
                     (body.kind == HttpBody::Kind::kLength && body.length == 0);
  return !empty && method != "POST" && method != "PUT" && method != "PATCH";
}

std::string ProxyRequest::UpstreamHead() const {
  const bool usual = to.port == (tls ? 443 : 80);
  std::string head = fmt::format("{} {}{} HTTP/1.1\r\nHost: {}\r\n", method, path.text(), query,
                                 HostAndPort{to.host, usual ? uint16_t{0} : to.port}.text());
  AppendFields(fields, head);
  AppendFraming(body, head);
  if (websocket) {
    head += "Connection: Upgrade\r\nUpgrade: websocket\r\n";
  } else if (body_may_stay_unread()) {
    head += "Connection: close\r\n";
  }
  return head + "\r\n";
}

std::string DownstreamHead(const net::HttpResponseHead& response, const HttpBody& body,
                           bool keep_alive) {
  std::string head = fmt::format("HTTP/1.1 {} {}\r\n", response.status, response.reason);
  AppendFields(response.fields, head);
  // A HEAD's answer and a 304 say how long the body would be; there is none, so that is only information.
  const std::string* const length = response.fields.Find("Content-Length");
  if (body.kind == HttpBody::Kind::kNone && length != nullptr && response.status >= 200 &&
      response.status != 204) {
    head += fmt::format("Content-Length: {}\r\n", *length);
  }
  AppendFraming(body, head);
  if (response.status == 101) {
    head += "Connection: Upgrade\r\nUpgrade: websocket\r\n";
  } else if (!keep_alive) {
    head += "Connection: close\r\n";
  }
  return head + "\r\n";
}

int RefusalStatus(const Error& error) {
  constexpr std::pair<std::string_view, int> kStatuses[] = {
      {"egress.authority_mismatch", 403}, {"http.expect", 417},
      {"http.head_too_large", 431},       {"http.too_many_fields", 431},
      {"http.transfer_coding", 501},      {"http.version", 505}};
  for (const auto& [code, status] : kStatuses) {
    if (error.code == code) {
      return status;
    }
  }
  return 400;
}

}  // namespace coffer::egress
