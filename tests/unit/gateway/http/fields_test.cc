// SPDX-License-Identifier: Apache-2.0
#include "gateway/http/fields.h"

#include <gtest/gtest.h>

namespace coffer::gateway {
namespace {

Head HeadWith(std::vector<Header> headers) {
  Head head;
  head.headers = std::move(headers);
  return head;
}

TEST(Fields, Bearer) {
  const auto read = [](const char* value) {
    auto token = ReadBearer(HeadWith({{"authorization", value}}));
    return token.ok() ? token.value() : token.refusal().code;
  };
  EXPECT_EQ(read("Bearer abc.DEF-1_~+/=="), "abc.DEF-1_~+/==");
  EXPECT_EQ(read("bearer x"), "x");
  EXPECT_EQ(ReadBearer(HeadWith({})).value(), "");
  for (const char* wrong : {"", "Bearer", "Bearer ", "Bearer a b", "Bearer =", "Bearer a=b",
                            "Basic abc", "Bearer \xff", "Bearer a,b", "abc"}) {
    EXPECT_EQ(read(wrong), "auth.malformed") << wrong;
  }
  EXPECT_EQ(read(("Bearer " + std::string(8193, 'a')).c_str()), "auth.malformed");
  EXPECT_FALSE(
      ReadBearer(HeadWith({{"Authorization", "Bearer a"}, {"Authorization", "Bearer a"}})).ok());
}

TEST(Fields, IdempotencyKey) {
  const auto read = [](const std::string& value) {
    auto key = ReadIdempotencyKey(HeadWith({{"Idempotency-Key", value}}));
    return key.ok() ? key.value().value_or("none") : key.refusal().code;
  };
  EXPECT_EQ(read("\"8e03978e-40d5-43dd-bc93-6894a57f9324\""),
            "8e03978e-40d5-43dd-bc93-6894a57f9324");
  EXPECT_EQ(read("8e03978e"), "8e03978e");
  EXPECT_EQ(read("\"a\\\"b\\\\c\""), "a\"b\\c");
  EXPECT_EQ(read(std::string(255, 'k')), std::string(255, 'k'));
  EXPECT_FALSE(ReadIdempotencyKey(HeadWith({})).value().has_value());
  for (const std::string& wrong :
       {std::string(), std::string("\"\""), std::string("\"a"), std::string("a\""),
        std::string("\"a\"b"), std::string("\"a\";x=1"), std::string("a, b"), std::string("a b"),
        std::string("\"a b\""), std::string("\"\\x\""), std::string("\"\\"),
        std::string("\xc3\xa9"), std::string(256, 'k'), std::string("a;b")}) {
    EXPECT_EQ(read(wrong), "idempotency.key") << wrong;
  }
}

TEST(Fields, TraceparentIsTakenOnlyIfValid) {
  const std::string good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
  EXPECT_EQ(ReadTraceparent(HeadWith({{"Traceparent", good}})), good);
  for (const std::string& wrong :
       {std::string("01") + good.substr(2), good + "0", good.substr(1), std::string(55, '0'),
        std::string("00-00000000000000000000000000000000-00f067aa0ba902b7-01"),
        std::string("00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01"),
        std::string("00-4BF92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")}) {
    EXPECT_FALSE(ReadTraceparent(HeadWith({{"traceparent", wrong}})).has_value()) << wrong;
  }
  EXPECT_FALSE(
      ReadTraceparent(HeadWith({{"traceparent", good}, {"traceparent", good}})).has_value());
}

TEST(Fields, Prefer) {
  EXPECT_TRUE(PrefersAsync(HeadWith({{"Prefer", "respond-async"}})));
  EXPECT_TRUE(PrefersAsync(HeadWith({{"prefer", "wait=5, Respond-Async"}})));
  EXPECT_FALSE(PrefersAsync(HeadWith({{"Prefer", "respond-asyncx"}})));
  EXPECT_FALSE(PrefersAsync(HeadWith({{"X-Prefer", "respond-async"}})));
}

TEST(Fields, LastEventId) {
  EXPECT_EQ(ReadLastEventId(HeadWith({})).value(), 0U);
  EXPECT_EQ(ReadLastEventId(HeadWith({{"Last-Event-ID", ""}})).value(), 0U);
  EXPECT_EQ(ReadLastEventId(HeadWith({{"Last-Event-ID", "42"}})).value(), 42U);
  for (const char* wrong : {"-1", "1.0", "x", "1234567890123456789", " 1"}) {
    EXPECT_FALSE(ReadLastEventId(HeadWith({{"Last-Event-ID", wrong}})).ok()) << wrong;
  }
}

TEST(Fields, JsonBody) {
  const auto check = [](std::vector<Header> headers) {
    const auto problem = CheckJsonBody(HeadWith(std::move(headers)));
    return problem.has_value() ? problem->code : std::string("ok");
  };
  EXPECT_EQ(check({{"Content-Type", "application/json"}}), "ok");
  EXPECT_EQ(check({{"Content-Type", "Application/JSON; charset=UTF-8"}}), "ok");
  EXPECT_EQ(check({{"Content-Type", "application/json"}, {"Content-Encoding", "identity"}}), "ok");
  EXPECT_EQ(check({}), "body.type");
  for (const char* wrong :
       {"", "text/plain", "application/jsonx", "application/json; charset=latin1",
        "application/x-www-form-urlencoded", "application/json, text/plain"}) {
    EXPECT_EQ(check({{"Content-Type", wrong}}), "body.type") << wrong;
  }
  EXPECT_EQ(check({{"Content-Type", "application/json"}, {"Content-Encoding", "br"}}),
            "body.encoding");
}

}  // namespace
}  // namespace coffer::gateway
