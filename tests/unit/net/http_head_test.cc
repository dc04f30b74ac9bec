// SPDX-License-Identifier: Apache-2.0
#include "net/http_head.h"

#include <gtest/gtest.h>

#include <string>

namespace coffer::net {
namespace {

using namespace std::string_literals;

TEST(HttpHead, TheEndIsFoundAcrossPieces) {
  const std::string head = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
  for (size_t size = 0; size < head.size(); ++size) {
    EXPECT_EQ(FindHeadEnd(head.substr(0, size)), 0U);
    EXPECT_EQ(FindHeadEnd(head + "body", size), head.size());
  }
}

TEST(HttpHead, ResponsesAndTheirBodies) {
  using Kind = HttpBody::Kind;
  struct Case {
    const char* head;
    const char* method;
    Kind kind;
  };
  const Case kCases[] = {
      {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "GET", Kind::kLength},
      {"HTTP/1.1 200\r\nTransfer-Encoding: chunked\r\n\r\n", "GET", Kind::kChunked},
      {"HTTP/1.1 200 \r\n\r\n", "GET", Kind::kUntilClose},
      {"HTTP/1.0 404 Not Found\r\n\r\n", "POST", Kind::kUntilClose},
      {"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", "HEAD", Kind::kNone},
      {"HTTP/1.1 204 No Content\r\n\r\n", "GET", Kind::kNone},
      {"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", "GET", Kind::kNone},
      {"HTTP/1.1 100 Continue\r\n\r\n", "GET", Kind::kNone},
      {"HTTP/1.1 101 Switching Protocols\r\n\r\n", "GET", Kind::kNone},
  };
  for (const Case& c : kCases) {
    const auto head = ParseResponseHead(c.head, c.method);
    ASSERT_TRUE(head.ok()) << c.head << head.error().message;
    EXPECT_EQ(head->body.kind, c.kind) << c.head;
  }
  for (const std::string& bad :
       {"HTTP/2 200 OK\r\n\r\n"s, "HTTP/1.1  200 OK\r\n\r\n"s, "HTTP/1.1 2000 OK\r\n\r\n"s,
        "HTTP/1.1 20 OK\r\n\r\n"s, "HTTP/1.1 099 OK\r\n\r\n"s, "HTTP/1.1 600 OK\r\n\r\n"s,
        "HTTP/1.1 2x0 OK\r\n\r\n"s, "200 OK\r\n\r\n"s, "\r\n\r\n"s, ""s, "HTTP/1.1 200 OK\n\n"s,
        "HTTP/1.1 200 OK\r\nX: y\r\n z\r\n\r\n"s, "HTTP/1.1 200 OK\r\nX: \0\r\n\r\n"s,
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n"s,
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"s,
        "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"s,
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n"s}) {
    EXPECT_FALSE(ParseResponseHead(bad, "GET").ok()) << bad;
  }
}

TEST(HttpHead, MembersOfLists) {
  const auto head = ParseRequestHead(
      "GET / HTTP/1.1\r\nConnection: a,  CLOSE ,b\r\nconnection: upgrade\r\nX:\t y \t\r\n\r\n");
  ASSERT_TRUE(head.ok());
  EXPECT_TRUE(head->fields.HasMember("Connection", "close"));
  EXPECT_TRUE(head->fields.HasMember("Connection", "Upgrade"));
  EXPECT_FALSE(head->fields.HasMember("Connection", "clos"));
  EXPECT_EQ(*head->fields.Find("x"), "y");
  EXPECT_EQ(head->fields.Count("CONNECTION"), 2U);
}

// Every field is looked for among the names in Connection: 15 KB of commas beside 120 fields took a tenth of a second.
TEST(HttpHead, ConnectionNamesFewFields) {
  const auto request = [](const std::string& fields) {
    const auto head = ParseRequestHead("GET / HTTP/1.1\r\n" + fields + "\r\n");
    return head.ok() ? "" : head.error().code;
  };
  const auto response = [](const std::string& fields) {
    const auto head = ParseResponseHead("HTTP/1.1 200 OK\r\n" + fields + "\r\n", "GET");
    return head.ok() ? "" : head.error().code;
  };
  const std::string most = "connection: close" + std::string(30, ',') + "\r\nConnection: TE\r\n";
  EXPECT_EQ(request(most), "") << "the control: 32 of them";
  EXPECT_EQ(response(most), "") << "the control";
  EXPECT_EQ(request(most + "Connection: x\r\n"), "http.too_many_fields");
  EXPECT_EQ(response(most + "Connection: x\r\n"), "http.too_many_fields");
  EXPECT_EQ(request("Connection: " + std::string(14000, ',') + "\r\n"), "http.too_many_fields");
  EXPECT_EQ(request("Proxy-Connection: " + std::string(14000, ',') + "\r\n"),
            "http.too_many_fields");
  EXPECT_EQ(request("Accept: " + std::string(14000, ',') + "\r\n"), "") << "other lists";
}

}  // namespace
}  // namespace coffer::net
