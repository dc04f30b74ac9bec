// SPDX-License-Identifier: Apache-2.0
#include "egress/proxy_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace coffer::egress {
namespace {

using namespace std::string_literals;
using testing::HasSubstr;
using testing::Not;

std::string Code(const std::string& raw) {
  const auto request = ParseProxyRequest(raw);
  return request.ok() ? "ok" : request.error().code;
}

policy::HostAndPort Tunnel() { return policy::ParseHostAndPort("api.test:8443").value(); }

std::string TunnelCode(const std::string& raw) {
  const auto request = ParseTunnelRequest(raw, Tunnel(), true);
  return request.ok() ? "ok" : request.error().code;
}

TEST(ProxyRequest, ConnectAsClientsSendIt) {
  for (const std::string& raw :
       {"CONNECT api.test:443 HTTP/1.0\r\n\r\n"s,  // Python
        "CONNECT api.test:443 HTTP/1.1\r\nHost: api.test:443\r\nUser-Agent: curl/8\r\n"
        "Proxy-Connection: Keep-Alive\r\n\r\n"s,
        "CONNECT API.test:443 HTTP/1.1\r\nhost: api.test\r\n\r\n"s,
        "CONNECT api.test:443 HTTP/1.1\r\nhost: 127.0.0.1:3128\r\n\r\n"s,  // undici
        "CONNECT api.test:443 HTTP/1.1\r\nHost: api.test:443\r\nContent-Length: 0\r\n\r\n"s}) {
    const auto request = ParseProxyRequest(raw);
    ASSERT_TRUE(request.ok()) << raw << request.error().message;
    EXPECT_EQ(request->form, ProxyRequest::Form::kConnect);
    EXPECT_EQ(request->to.text(), "api.test:443");
  }
  EXPECT_EQ(ParseProxyRequest("CONNECT [2001:db8::1]:443 HTTP/1.1\r\n\r\n")->to.text(),
            "[2001:db8::1]:443");
}

TEST(ProxyRequest, ConnectThatIsRefused) {
  for (const std::string& target : {"api.test"s,
                                    ":443"s,
                                    "api.test:"s,
                                    "api.test:0"s,
                                    "api.test:99999"s,
                                    "http://api.test/"s,
                                    "/"s,
                                    "*"s,
                                    "user@api.test:443"s,
                                    "evil.test:443@api.test:443"s,
                                    "[api.test]:443"s,
                                    "api.test.:443"s,
                                    "127.1:443"s,
                                    "0x7f000001:443"s,
                                    "2130706433:443"s,
                                    "[::ffff:a9fe:a9fe]:80"s,
                                    "[fe80::1%25eth0]:443"s,
                                    "api.test%2eevil:443"s,
                                    "evil.test\0.api.test:443"s,
                                    "api.test:443/x"s,
                                    "api.test\\evil:443"s,
                                    "api.test:443#"s,
                                    "api.test:443?"s,
                                    "api.test,evil.test:443"s}) {
    EXPECT_NE(Code("CONNECT " + target + " HTTP/1.1\r\nHost: api.test:443\r\n\r\n"), "ok")
        << target;
    EXPECT_NE(Code("CONNECT " + target + " HTTP/1.0\r\n\r\n"), "ok") << target;
  }
  EXPECT_EQ(Code("CONNECT api.test:443 HTTP/1.1\r\nHost: evil.test:443\r\n\r\n"),
            "egress.authority_mismatch");
  EXPECT_EQ(Code("CONNECT api.test:443 HTTP/1.1\r\nHost: 127.0.0.1:3129\r\n\r\n"),
            "egress.authority_mismatch");
  EXPECT_EQ(Code("GET http://api.test/ HTTP/1.1\r\nHost: 127.0.0.1:3128\r\n\r\n"),
            "egress.authority_mismatch");
  EXPECT_NE(Code("CONNECT api.test:443 HTTP/1.1\r\nHost: api.test:443\r\n"
                 "Host: 127.0.0.1:3128\r\n\r\n"),
            "ok");
  EXPECT_EQ(Code("CONNECT api.test:443 HTTP/1.1\r\nHost: api.test:80\r\n\r\n"),
            "egress.authority_mismatch");
  EXPECT_EQ(Code("CONNECT api.test:443 HTTP/1.1\r\nHost: api.test\r\nHost: api.test\r\n\r\n"),
            "http.malformed");
  EXPECT_EQ(Code("CONNECT api.test:443 HTTP/1.1\r\nContent-Length: 5\r\n\r\n"), "http.malformed");
}

TEST(ProxyRequest, ForwardedRequests) {
  const auto request = ParseProxyRequest(
      "POST HTTP://API.test:8080/a/../b%2e?q=<x> HTTP/1.1\r\nHost: api.test:8080\r\n"
      "Content-Length: 5\r\nX: y\r\nConnection: close, X-Own\r\nX-Own: 1\r\nTE: trailers\r\n"
      "Proxy-Authorization: Basic c2VjcmV0\r\nX-Forwarded-For: 1.2.3.4\r\nVia: 1.1 x\r\n"
      "Upgrade: h2c\r\nHTTP2-Settings: x\r\nForwarded: for=x\r\n\r\n");
  ASSERT_TRUE(request.ok()) << request.error().message;
  EXPECT_EQ(request->form, ProxyRequest::Form::kForward);
  EXPECT_EQ(request->to.text(), "api.test:8080");
  EXPECT_FALSE(request->tls);
  EXPECT_FALSE(request->keep_alive);
  EXPECT_FALSE(request->websocket);
  EXPECT_EQ(
      request->UpstreamHead(),
      "POST /b.?q=%3Cx%3E HTTP/1.1\r\nHost: api.test:8080\r\nX: y\r\nContent-Length: 5\r\n\r\n");
  const auto bare = ParseProxyRequest("GET http://api.test HTTP/1.1\r\nHost: api.test\r\n\r\n");
  ASSERT_TRUE(bare.ok());
  EXPECT_EQ(bare->to.port, 80);
  EXPECT_EQ(bare->UpstreamHead(), "GET / HTTP/1.1\r\nHost: api.test\r\n\r\n");
  EXPECT_EQ(ParseProxyRequest("GET http://api.test?x HTTP/1.1\r\nHost: api.test\r\n\r\n")->query,
            "?x");
}

// After a body that a server may leave unread the connection to it ends: what it left would be its next request.
TEST(ProxyRequest, ABodyThatMayStayUnreadEndsTheConnection) {
  const auto ends = [](const std::string& line, const std::string& framing) {
    const auto request =
        ParseTunnelRequest(line + " HTTP/1.1\r\nHost: api.test\r\n" + framing + "\r\n", Tunnel(),
                           /*tls=*/true);
    EXPECT_TRUE(request.ok()) << line;
    const std::string head = request->UpstreamHead();
    EXPECT_EQ(head.ends_with("\r\nConnection: close\r\n\r\n"), request->body_may_stay_unread());
    return request->body_may_stay_unread();
  };
  for (const std::string method : {"GET", "HEAD", "DELETE", "OPTIONS", "REPORT"}) {
    EXPECT_TRUE(ends(method + " /v1", "Content-Length: 5\r\n")) << method;
    EXPECT_TRUE(ends(method + " /v1", "Transfer-Encoding: chunked\r\n")) << method;
    EXPECT_FALSE(ends(method + " /v1", "Content-Length: 0\r\n")) << method;
    EXPECT_FALSE(ends(method + " /v1", "")) << method;
  }
  for (const std::string method : {"POST", "PUT", "PATCH"}) {
    EXPECT_FALSE(ends(method + " /v1", "Content-Length: 5\r\n")) << method;
  }
}

// Fields by which frameworks let a client replace method, path or host after a filter has looked.
TEST(ProxyRequest, NothingReplacesWhatWasJudged) {
  const auto request = ParseTunnelRequest(
      "GET /v1 HTTP/1.1\r\nHost: api.test\r\nX-HTTP-Method-Override: DELETE\r\nx-http-method: "
      "PUT\r\n"
      "X-Original-URI: /admin\r\nX-Original-Method: PUT\r\nX-Rewrite-Uri: "
      "/admin\r\nX_Original_URL: /admin\r\nX-Method-Override: PUT\r\nX-Original-URL: "
      "/admin\r\nX-Rewrite-Url: /admin\r\nX-Host: "
      "evil.test\r\n"
      "X-Forwarded-Host: evil.test\r\nX-Forwarded-Prefix: /admin\r\nX-Original-Host: "
      "evil.test\r\n\r\n",
      Tunnel(), true);
  ASSERT_TRUE(request.ok());
  EXPECT_EQ(request->UpstreamHead(), "GET /v1 HTTP/1.1\r\nHost: api.test:8443\r\n\r\n");
}

TEST(ProxyRequest, OneAuthority) {
  for (const std::string& head : {"GET http://api.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n"s,
                                  "GET http://api.test/ HTTP/1.1\r\nHost: api.test:8080\r\n\r\n"s,
                                  "GET http://api.test:81/ HTTP/1.1\r\nHost: api.test\r\n\r\n"s}) {
    EXPECT_EQ(Code(head), "egress.authority_mismatch") << head;
  }
  for (const std::string& head :
       {"GET http://api.test/ HTTP/1.1\r\n\r\n"s, "GET http://api.test/ HTTP/1.0\r\n\r\n"s,
        "GET http://api.test/ HTTP/1.1\r\nHost: api.test\r\nhost: evil.test\r\n\r\n"s,
        "GET / HTTP/1.1\r\nHost: api.test\r\n\r\n"s,
        "OPTIONS * HTTP/1.1\r\nHost: api.test\r\n\r\n"s,
        "GET file:///etc/passwd HTTP/1.1\r\nHost: api.test\r\n\r\n"s,
        "GET ftp://api.test/ HTTP/1.1\r\nHost: api.test\r\n\r\n"s,
        "GET http:///x HTTP/1.1\r\nHost: api.test\r\n\r\n"s}) {
    EXPECT_NE(Code(head), "ok") << head;
  }
  EXPECT_NE(Code("GET http://api.test@evil.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n"), "ok");
  EXPECT_NE(Code("GET http://api.test#@evil.test/ HTTP/1.1\r\nHost: api.test\r\n\r\n"), "ok");
  EXPECT_NE(Code("GET http://api.test\\@evil.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n"), "ok");
}

// A client without TLS of its own leaves TLS to the proxy.
TEST(ProxyRequest, ForwardedHttpsHasTlsUpstream) {
  const Result<ProxyRequest> usual =
      ParseProxyRequest("POST https://api.test/mcp HTTP/1.1\r\nHost: api.test\r\n\r\n");
  ASSERT_TRUE(usual.ok());
  EXPECT_TRUE(usual->tls);
  EXPECT_TRUE(usual->request().tls);
  EXPECT_EQ(usual->to.port, 443);
  EXPECT_EQ(usual->form, ProxyRequest::Form::kForward);
  EXPECT_TRUE(usual->UpstreamHead().starts_with("POST /mcp HTTP/1.1\r\nHost: api.test\r\n"));
  const Result<ProxyRequest> other =
      ParseProxyRequest("GET HTTPS://api.test:8443/ HTTP/1.1\r\nHost: api.test:8443\r\n\r\n");
  ASSERT_TRUE(other.ok());
  EXPECT_TRUE(other->tls);
  EXPECT_EQ(other->to.port, 8443);
  const Result<ProxyRequest> plain =
      ParseProxyRequest("GET http://api.test/ HTTP/1.1\r\nHost: api.test\r\n\r\n");
  ASSERT_TRUE(plain.ok());
  EXPECT_FALSE(plain->tls);
  EXPECT_EQ(Code("GET https://api.test/ HTTP/1.1\r\nHost: api.test:80\r\n\r\n"),
            "egress.authority_mismatch");
  EXPECT_NE(Code("GET https:///x HTTP/1.1\r\nHost: api.test\r\n\r\n"), "ok");
}

// Two readers of one of these could see a second request in it.
TEST(ProxyRequest, SmugglingShapes) {
  const std::string kFields[] = {
      "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
      "Content-Length: 5\r\nContent-Length: 5\r\n",
      "Content-Length: 5\r\nContent-Length: 6\r\n",
      "Content-Length: 5, 5\r\n",
      "Content-Length: +5\r\n",
      "Content-Length: -1\r\n",
      "Content-Length: 0x5\r\n",
      "Content-Length: 5 5\r\n",
      "Content-Length:\r\n",
      "Content-Length: 99999999999999999999\r\n",
      "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
      "Transfer-Encoding: chunked, identity\r\n",
      "Transfer-Encoding: identity\r\n",
      "Transfer-Encoding: xchunked\r\n",
      "Transfer-Encoding: \x0b"
      "chunked\r\n",
      "Transfer-Encoding: \"chunked\"\r\n",
      "Transfer-Encoding : chunked\r\n",
      "Transfer-Encoding\r\n: chunked\r\n",
      "Transfer_Encoding: chunked\r\n",
      "Content-Length: 5\r\nContent_length: 6\r\n",
      " Transfer-Encoding: chunked\r\n",
      "X: y\r\n folded\r\n",
      "X: y\r\n\tfolded\r\n",
      "X: y\nTransfer-Encoding: chunked\r\n",
      "X: y\rTransfer-Encoding: chunked\r\n",
      "X: y\r\r\nZ: w\r\n",
      "X: \0\r\n"s,
      "X\0: y\r\n"s,
      ": y\r\n",
      "novalue\r\n",
      "X y: z\r\n",
      "X(y): z\r\n",
      "X\xc3\xa4: z\r\n",
      "Connection: content-length\r\nContent-Length: 5\r\n",
      "Connection: host\r\n",
      "Expect: 200-maybe\r\n",
      "Expect: 100-continue\r\nExpect: 100-continue\r\n",
  };
  for (const std::string& field : kFields) {
    const std::string rest = "Host: api.test:8443\r\n" + field + "\r\n";
    EXPECT_NE(TunnelCode("POST /v1 HTTP/1.1\r\n" + rest), "ok") << field;
    EXPECT_NE(Code("POST http://api.test:8443/v1 HTTP/1.1\r\n" + rest), "ok") << field;
  }
  EXPECT_NE(TunnelCode("POST /v1 HTTP/1.0\r\nHost: api.test\r\nTransfer-Encoding: chunked\r\n\r\n"),
            "ok");
  for (const std::string& line :
       {"GET /v1"s, "GET  /v1 HTTP/1.1"s, "GET /v1  HTTP/1.1"s, "GET /v1 HTTP/1.1 "s,
        " GET /v1 HTTP/1.1"s, "GET /v1 HTTP/2.0"s, "GET /v1 HTTP/0.9"s, "GET /v1 http/1.1"s,
        "GET /v1\tHTTP/1.1"s, "GET /v1 x HTTP/1.1"s, "get /v1 HTTP/1.1"s, "G ET /v1 HTTP/1.1"s,
        "PRI * HTTP/2.0"s, "GET\0/v1 HTTP/1.1"s, "\r\nGET /v1 HTTP/1.1"s, ""s}) {
    EXPECT_NE(TunnelCode(line + "\r\nHost: api.test\r\n\r\n"), "ok") << line;
  }
  // Two heads are not one.
  EXPECT_NE(TunnelCode("GET /v1 HTTP/1.1\r\nHost: api.test\r\n\r\nGET /x HTTP/1.1\r\n\r\n"), "ok");
  std::string many = "GET /v1 HTTP/1.1\r\nHost: api.test\r\n";
  for (int i = 0; i < 128; ++i) {
    many += "X: y\r\n";
  }
  EXPECT_EQ(TunnelCode(many + "\r\n"), "http.too_many_fields");
  // The control: the same requests without the trick pass.
  EXPECT_EQ(TunnelCode("POST /v1 HTTP/1.1\r\nHost: api.test:8443\r\nContent-Length: 5\r\n\r\n"),
            "ok");
  EXPECT_EQ(TunnelCode("POST /v1 HTTP/1.1\r\nHost: api.test\r\nTransfer-Encoding: Chunked\r\n"
                       "Expect: 100-continue\r\n\r\n"),
            "ok");
}

TEST(ProxyRequest, InsideATunnel) {
  for (const std::string& head : {"GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n"s,
                                  "GET / HTTP/1.1\r\nHost: evil.test:8443\r\n\r\n"s,
                                  "GET / HTTP/1.1\r\nHost: api.test:443\r\n\r\n"s,
                                  "GET / HTTP/1.1\r\nHost: a.api.test:8443\r\n\r\n"s}) {
    EXPECT_EQ(TunnelCode(head), "egress.authority_mismatch") << head;
    EXPECT_EQ(RefusalStatus(ParseTunnelRequest(head, Tunnel(), true).error()), 403);
  }
  for (const std::string& head :
       {"GET / HTTP/1.1\r\n\r\n"s, "CONNECT evil.test:443 HTTP/1.1\r\nHost: api.test\r\n\r\n"s,
        "GET http://evil.test/ HTTP/1.1\r\nHost: api.test\r\n\r\n"s,
        "GET https://api.test:8443/ HTTP/1.1\r\nHost: api.test:8443\r\n\r\n"s,
        "GET / HTTP/1.1\r\nHost: api.test\r\nHost: evil.test\r\n\r\n"s,
        "GET / HTTP/1.1\r\nHost:\r\n\r\n"s,
        "GET / HTTP/1.1\r\nHost: api.test, evil.test\r\n\r\n"s}) {
    EXPECT_NE(TunnelCode(head), "ok") << head;
  }
  const auto socket = ParseTunnelRequest(
      "GET /chat HTTP/1.1\r\nHost: api.test:8443\r\nUpgrade: WebSocket\r\n"
      "Connection: keep-alive, Upgrade\r\nSec-WebSocket-Key: k\r\nSec-WebSocket-Version: 13\r\n"
      "Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n",
      Tunnel(), true);
  ASSERT_TRUE(socket.ok());
  EXPECT_TRUE(socket->websocket);
  EXPECT_THAT(socket->UpstreamHead(), HasSubstr("Upgrade: websocket\r\n"));
  EXPECT_THAT(socket->UpstreamHead(), HasSubstr("Sec-WebSocket-Key: k\r\n"));
  EXPECT_THAT(socket->UpstreamHead(), Not(HasSubstr("permessage")));
}

TEST(ProxyRequest, WhatGoesBackInside) {
  const auto head = net::ParseResponseHead(
      "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\nX: y\r\nKeep-Alive: 5\r\n\r\n",
      "GET");
  ASSERT_TRUE(head.ok());
  EXPECT_EQ(head->body.length, 5U);
  EXPECT_EQ(DownstreamHead(*head, head->body, true),
            "HTTP/1.1 200 OK\r\nX: y\r\nContent-Length: 5\r\n\r\n");
  const auto to_head =
      net::ParseResponseHead("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "HEAD");
  ASSERT_TRUE(to_head.ok());
  EXPECT_EQ(to_head->body.kind, net::HttpBody::Kind::kNone);
  EXPECT_EQ(DownstreamHead(*to_head, to_head->body, false),
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\n");
}

}  // namespace
}  // namespace coffer::egress
