// SPDX-License-Identifier: Apache-2.0
#include "gateway/http/parser.h"

#include <gtest/gtest.h>

namespace coffer::gateway {
namespace {

std::string CodeOf(const std::optional<Problem>& problem) {
  return problem.has_value() ? problem->code : "ok";
}

TEST(Parser, FindsTheEndOfAHeadInEveryCut) {
  const HttpLimits limits;
  const std::string head = "GET /a HTTP/1.1\r\nHost: b\r\n\r\n";
  RequestParser parser(limits);
  std::optional<Problem> problem;
  for (size_t size = 1; size < head.size(); ++size) {
    EXPECT_EQ(parser.FindHead(head.substr(0, size), &problem), 0U);
    EXPECT_FALSE(problem.has_value());
  }
  EXPECT_EQ(parser.FindHead(head + "rest", &problem), head.size());
}

TEST(Parser, GivesUpOnWhatIsTooLargeOrNoRequest) {
  HttpLimits limits;
  limits.head_bytes = 100;
  std::optional<Problem> problem;
  RequestParser parser(limits);
  EXPECT_EQ(parser.FindHead("GET /" + std::string(200, 'a'), &problem), 0U);
  EXPECT_EQ(CodeOf(problem), "http.head_too_large");
  problem.reset();
  RequestParser other(limits);
  EXPECT_EQ(other.FindHead("\x16\x03", &problem), 0U);
  EXPECT_EQ(CodeOf(problem), "http.malformed");
}

TEST(Parser, ReadsAHead) {
  const HttpLimits limits;
  RequestParser parser(limits);
  Head head;
  ASSERT_EQ(CodeOf(parser.ParseHead(
                "POST /a?b HTTP/1.1\r\nHost: c\r\nX:  y \r\nContent-Length: 4\r\n\r\n", &head)),
            "ok");
  EXPECT_EQ(head.method, Method::kPost);
  EXPECT_EQ(head.target, "/a?b");
  EXPECT_EQ(head.version, 11);
  EXPECT_TRUE(head.keep_alive);
  EXPECT_EQ(*head.Find("x"), "y");
  EXPECT_EQ(head.content_length, 4U);
  EXPECT_FALSE(parser.body_done());
  auto step = parser.ParseBody("ab", 10);
  EXPECT_EQ(step.data, "ab");
  EXPECT_FALSE(step.done);
  step = parser.ParseBody("cdNEXT", 10);
  EXPECT_EQ(step.data, "cd");
  EXPECT_EQ(step.consumed, 2U);
  EXPECT_TRUE(step.done);
}

TEST(Parser, ReadsChunksInEveryCut) {
  const HttpLimits limits;
  const std::string body = "4\r\nabcd\r\n0A\r\n0123456789\r\n0\r\n\r\nNEXT";
  for (size_t cut = 0; cut <= body.size(); ++cut) {
    RequestParser parser(limits);
    Head head;
    ASSERT_EQ(CodeOf(parser.ParseHead(
                  "PUT / HTTP/1.1\r\nHost: c\r\nTransfer-Encoding: chunked\r\n\r\n", &head)),
              "ok");
    EXPECT_TRUE(head.chunked);
    std::string input;
    std::string data;
    for (const std::string& part : {body.substr(0, cut), body.substr(cut)}) {
      input += part;
      while (!input.empty() && !parser.body_done()) {
        auto step = parser.ParseBody(input, 100);
        ASSERT_FALSE(step.problem.has_value()) << cut;
        input.erase(0, step.consumed);
        data += step.data;
        if (step.consumed == 0) {
          break;
        }
      }
    }
    EXPECT_TRUE(parser.body_done()) << cut;
    EXPECT_EQ(data, "abcd0123456789") << cut;
    EXPECT_EQ(input, "NEXT") << cut;
  }
}

TEST(Parser, BoundsABody) {
  const HttpLimits limits;
  RequestParser parser(limits);
  Head head;
  ASSERT_EQ(CodeOf(parser.ParseHead(
                "PUT / HTTP/1.1\r\nHost: c\r\nTransfer-Encoding: chunked\r\n\r\n", &head)),
            "ok");
  EXPECT_EQ(CodeOf(parser.ParseBody("5\r\nabcde\r\n", 4).problem), "body.too_large");
}

TEST(Parser, RefusesExtensionsAndTrailers) {
  const HttpLimits limits;
  for (const char* body :
       {"1;x\r\na\r\n0\r\n\r\n", "1\r\na\r\n0\r\nA: b\r\n\r\n", "1\r\na\r\n0;x=y\r\n\r\n", "g\r\n",
        "1\r\nab\r\n0\r\n\r\n", "-1\r\n", "11111111111111111\r\n"}) {
    RequestParser parser(limits);
    Head head;
    ASSERT_EQ(CodeOf(parser.ParseHead(
                  "PUT / HTTP/1.1\r\nHost: c\r\nTransfer-Encoding: chunked\r\n\r\n", &head)),
              "ok");
    std::string input = body;
    std::optional<Problem> problem;
    for (int i = 0; i < 10 && !problem.has_value() && !parser.body_done(); ++i) {
      auto step = parser.ParseBody(input, 100);
      input.erase(0, step.consumed);
      problem = step.problem;
    }
    EXPECT_EQ(CodeOf(problem), "http.chunking") << body;
  }
}

TEST(Parser, KeepsAliveByVersion) {
  const HttpLimits limits;
  const auto keeps = [&](const char* text) {
    RequestParser parser(limits);
    Head head;
    EXPECT_EQ(CodeOf(parser.ParseHead(text, &head)), "ok");
    return head.keep_alive;
  };
  EXPECT_TRUE(keeps("GET / HTTP/1.1\r\nHost: c\r\n\r\n"));
  EXPECT_FALSE(keeps("GET / HTTP/1.1\r\nHost: c\r\nConnection: close\r\n\r\n"));
  EXPECT_FALSE(keeps("GET / HTTP/1.0\r\nHost: c\r\n\r\n"));
}

TEST(Parser, CanBeUsedAgain) {
  const HttpLimits limits;
  RequestParser parser(limits);
  for (int i = 0; i < 3; ++i) {
    parser.Reset();
    Head head;
    EXPECT_FALSE(parser.head_done());
    ASSERT_EQ(CodeOf(parser.ParseHead("GET / HTTP/1.1\r\nHost: c\r\n\r\n", &head)), "ok");
    EXPECT_TRUE(parser.head_done());
    EXPECT_TRUE(parser.body_done());
    EXPECT_EQ(head.headers.size(), 1U);
  }
}

}  // namespace
}  // namespace coffer::gateway
