// SPDX-License-Identifier: Apache-2.0
#include "gateway/http/head_checks.h"

#include <gtest/gtest.h>

namespace coffer::gateway {
namespace {

std::string CodeOfHead(const std::optional<Problem>& problem) {
  return problem.has_value() ? problem->code : "ok";
}

Head CheckedHead(std::vector<Header> headers) {
  Head head;
  head.method = Method::kGet;
  head.target = "/";
  head.headers = std::move(headers);
  return head;
}

TEST(RawHead, TakesAnOrdinaryOne) {
  const HttpLimits limits;
  EXPECT_EQ(
      CodeOfHead(CheckRawHead("GET / HTTP/1.1\r\nHost: a\r\nX-Y: \tz \r\nEmpty:\r\n\r\n", limits)),
      "ok");
  EXPECT_EQ(CodeOfHead(CheckRawHead("GET / HTTP/1.1\r\nA: caf\xc3\xa9\r\n\r\n", limits)), "ok");
}

TEST(RawHead, RefusesWhatHasTwoReadings) {
  const HttpLimits limits;
  for (const std::string& wrong :
       {std::string("GET / HTTP/1.1\r\nA: b\r\n c\r\n\r\n"),
        std::string("GET / HTTP/1.1\r\n\tA: b\r\n\r\n"),
        std::string("GET / HTTP/1.1\r\nA : b\r\n\r\n"),
        std::string("GET / HTTP/1.1\r\nA: b\nC: d\r\n\r\n"),
        std::string("GET / HTTP/1.1\r\nA: b\rC: d\r\n\r\n"),
        std::string("GET / HTTP/1.1\r\nA: \0\r\n\r\n", 25),
        std::string("GET / HTTP/1.1\r\nA\r\n\r\n"), std::string("GET / HTTP/1.1\r\n: b\r\n\r\n"),
        std::string("GET / HTTP/1.1\r\n\xc3\xa9: b\r\n\r\n"), std::string("\r\n"),
        std::string("GET / HTTP/1.1"), std::string("GET / HTTP/1.1\r\nA(b): c\r\n\r\n"),
        std::string("GET / HTTP/1.1\r\nA: \x7f\r\n\r\n")}) {
    const auto problem = CheckRawHead(wrong, limits);
    EXPECT_EQ(CodeOfHead(problem), "http.malformed") << wrong;
    EXPECT_TRUE(problem.has_value() && problem->close);
  }
}

TEST(RawHead, CountsFields) {
  HttpLimits limits;
  limits.headers = 2;
  EXPECT_EQ(CodeOfHead(CheckRawHead("GET / HTTP/1.1\r\nA: 1\r\nB: 2\r\n\r\n", limits)), "ok");
  EXPECT_EQ(CodeOfHead(CheckRawHead("GET / HTTP/1.1\r\nA: 1\r\nB: 2\r\nC: 3\r\n\r\n", limits)),
            "http.too_many_headers");
}

TEST(Framing, OneLengthInOneForm) {
  EXPECT_EQ(CodeOfHead(CheckFraming(CheckedHead({}))), "ok");
  EXPECT_EQ(CodeOfHead(CheckFraming(CheckedHead({{"content-length", "12"}}))), "ok");
  EXPECT_EQ(CodeOfHead(CheckFraming(CheckedHead({{"Transfer-Encoding", "Chunked"}}))), "ok");
  EXPECT_EQ(
      CodeOfHead(CheckFraming(CheckedHead({{"Content-Length", "1"}, {"Content-Length", "1"}}))),
      "http.framing");
  EXPECT_EQ(CodeOfHead(CheckFraming(
                CheckedHead({{"Content-Length", "1"}, {"transfer-encoding", "chunked"}}))),
            "http.framing");
  for (const char* wrong : {"", "1,1", "+1", "-1", "0x1", "1 ", "1234567890123456789"}) {
    EXPECT_EQ(CodeOfHead(CheckFraming(CheckedHead({{"Content-Length", wrong}}))), "http.framing")
        << wrong;
  }
  for (const char* wrong : {"gzip", "chunked, chunked", "identity", "chunked;q=1", ""}) {
    EXPECT_EQ(CodeOfHead(CheckFraming(CheckedHead({{"Transfer-Encoding", wrong}}))),
              "http.transfer_coding")
        << wrong;
  }
  Head old = CheckedHead({{"Transfer-Encoding", "chunked"}});
  old.version = 10;
  EXPECT_EQ(CodeOfHead(CheckFraming(old)), "http.transfer_coding");
}

Channel Loopback() {
  Channel channel;
  channel.address = "127.0.0.1";
  channel.local_address = "127.0.0.1";
  return channel;
}

TEST(Site, HostIsOurs) {
  const SiteNames names{{"coffer.example.com"}, {}};
  for (const char* right :
       {"localhost", "LOCALHOST:8080", "127.0.0.1", "127.0.0.1:1", "coffer.example.com:443"}) {
    EXPECT_EQ(CodeOfHead(CheckSite(CheckedHead({{"Host", right}}), Loopback(), names)), "ok")
        << right;
  }
  for (const char* wrong : {"evil.example", "127.0.0.2", "localhost.evil.example",
                            "xcoffer.example.com", "[::1]", "127.0.0.1.nip.io:80"}) {
    EXPECT_EQ(CodeOfHead(CheckSite(CheckedHead({{"Host", wrong}}), Loopback(), names)), "http.host")
        << wrong;
  }
  for (const char* wrong :
       {"", ":80", "a b", "localhost:x", "localhost:123456", "[::1", "user@localhost", "[zz]"}) {
    EXPECT_EQ(CodeOfHead(CheckSite(CheckedHead({{"Host", wrong}}), Loopback(), names)),
              "http.malformed")
        << wrong;
  }
  EXPECT_EQ(CodeOfHead(CheckSite(CheckedHead({}), Loopback(), names)), "http.host_missing");
}

TEST(Site, Ipv6AndUnix) {
  Channel v6;
  v6.local_address = "::1";
  EXPECT_EQ(CodeOfHead(CheckSite(CheckedHead({{"Host", "[::1]:80"}}), v6, {})), "ok");
  Channel unix_socket;
  unix_socket.unix_socket = true;
  EXPECT_EQ(CodeOfHead(CheckSite(CheckedHead({{"Host", "coffer"}}), unix_socket, {})), "ok");
}

TEST(Site, OriginIsOursOrConfigured) {
  const SiteNames names{{}, {"https://console.example.com"}};
  const auto check = [&](const char* origin) {
    return CodeOfHead(
        CheckSite(CheckedHead({{"Host", "localhost:80"}, {"Origin", origin}}), Loopback(), names));
  };
  EXPECT_EQ(check("http://localhost:80"), "ok");
  EXPECT_EQ(check("https://console.example.com"), "ok");
  for (const char* wrong :
       {"https://localhost:80", "http://localhost", "http://localhost:81", "null", "",
        "http://evil.example", "https://console.example.com.evil.example"}) {
    EXPECT_EQ(check(wrong), "http.origin") << wrong;
  }
}

TEST(Site, FetchMetadata) {
  const auto check = [](const char* site, const char* mode) {
    return CodeOfHead(CheckSite(
        CheckedHead({{"Host", "localhost"}, {"Sec-Fetch-Site", site}, {"Sec-Fetch-Mode", mode}}),
        Loopback(), {}));
  };
  EXPECT_EQ(check("cross-site", "no-cors"), "http.origin");
  EXPECT_EQ(check("cross-site", "navigate"), "ok");
  EXPECT_EQ(check("same-origin", "cors"), "ok");
  EXPECT_EQ(check("none", "navigate"), "ok");
}

TEST(Target, Forms) {
  const auto split = [](const char* text) {
    Head head = CheckedHead({{"Host", "localhost"}});
    head.target = text;
    const auto target = SplitTarget(&head);
    return target.has_value() ? *head.Find("Host") + "|" + target->path + "|" + target->query
                              : std::string("none");
  };
  EXPECT_EQ(split("/a/b?c=d?e"), "localhost|/a/b|c=d?e");
  EXPECT_EQ(split("http://other:1/a"), "other:1|/a|");
  EXPECT_EQ(split("https://other?x"), "other|/|x");
  EXPECT_EQ(split("*"), "none");
  EXPECT_EQ(split("a/b"), "none");
  EXPECT_EQ(split("/a#b"), "none");
  EXPECT_EQ(split(""), "none");
}

}  // namespace
}  // namespace coffer::gateway
