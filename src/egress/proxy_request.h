// SPDX-License-Identifier: Apache-2.0
//
// One HTTP request of a program inside a boundary, and what is sent upstream for it.
//
// Three forms: CONNECT opens a tunnel; an absolute target ("GET http://host/", "GET https://host/")
// is forwarded, with TLS of ours if it says https; a plain path comes through a tunnel that is
// looked into, and belongs to that tunnel's host. The authority is parsed once: target, Host and
// tunnel must agree, and from then on only the parsed value exists. The head that goes upstream is
// written anew from values, never copied: fields that speak to this proxy or about the way here are
// left out, and the body is framed by us.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "net/http_head.h"
#include "policy/egress_rule.h"
#include "policy/host_name.h"
#include "policy/url_path.h"

namespace coffer::egress {

struct ProxyRequest {
  enum class Form : uint8_t { kConnect, kForward, kTunnelled };
  Form form = Form::kConnect;
  policy::HostAndPort to;  // always with a port
  bool tls = false;  // of the upstream connection: kForward as its scheme, kTunnelled as its tunnel
  // Not of kConnect:
  std::string method;
  policy::UrlPath path;
  std::string query;  // with its "?"; may be empty
  net::HttpFields fields;
  net::HttpBody body;
  int version = 11;
  bool keep_alive = true;         // what the client wants of its own connection
  bool expects_continue = false;  // we answer it ourselves, before the body is read
  bool websocket = false;         // an upgrade is asked for

  policy::EgressConnect connect() const { return {to.host, to.port}; }
  policy::EgressRequest request() const { return {to.host, to.port, tls, method, path}; }
  // The body has no meaning that all servers know (RFC 9110 section 9.3): GET, DELETE and all but POST, PUT and PATCH.
  // A server that leaves it unread would take it for its next request, and that one would not be judged.
  bool body_may_stay_unread() const;
  // The head as it goes upstream, in HTTP/1.1, up to and with the empty line. A chunked body is chunked anew. The
  // upstream connection ends after it (Connection: close) if its body may stay unread.
  std::string UpstreamHead() const;
};

// `raw` is one head (net::FindHeadEnd). Errors carry the status to answer with: RefusalStatus.
Result<ProxyRequest> ParseProxyRequest(std::string_view raw);
// The same inside a tunnel that was opened to `to`, with or without TLS in it.
Result<ProxyRequest> ParseTunnelRequest(std::string_view raw, const policy::HostAndPort& to,
                                        bool tls);

// 400, 403, 417, 431, 501 or 505, by the error's code.
int RefusalStatus(const Error& error);

// What goes back inside: the upstream's head without the fields of its own connection. `body` says how we frame it;
// the client's connection ends after it unless `keep_alive`.
std::string DownstreamHead(const net::HttpResponseHead& head, const net::HttpBody& body,
                           bool keep_alive);

}  // namespace coffer::egress
