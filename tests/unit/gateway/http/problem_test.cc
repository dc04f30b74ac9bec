// SPDX-License-Identifier: Apache-2.0
#include "gateway/http/problem.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "gateway/http/message.h"

namespace coffer::gateway {
namespace {

using nlohmann::json;

TEST(Problem, HasTheMembersOfTheStandard) {
  const json problem =
      json::parse(FormatProblem(MakeProblem(404, "route.unknown", "nothing here")));
  EXPECT_EQ(problem["type"], "urn:coffer:problem:route.unknown");
  EXPECT_EQ(problem["title"], "Not Found");
  EXPECT_EQ(problem["status"], 404);
  EXPECT_EQ(problem["detail"], "nothing here");
  EXPECT_EQ(problem["code"], "route.unknown");
  EXPECT_EQ(problem.size(), 5U);
}

TEST(Problem, EveryKindOfRefusalHasItsStatus) {
  const std::pair<RefusalKind, int> table[] = {
      {RefusalKind::kInvalid, 400},     {RefusalKind::kUnauthenticated, 401},
      {RefusalKind::kRefused, 403},     {RefusalKind::kNotFound, 404},
      {RefusalKind::kConflict, 409},    {RefusalKind::kInFlight, 409},
      {RefusalKind::kTooLarge, 413},    {RefusalKind::kUnprocessable, 422},
      {RefusalKind::kRateLimited, 429}, {RefusalKind::kInternal, 500},
      {RefusalKind::kUnavailable, 503}};
  for (const auto& [kind, status] : table) {
    EXPECT_EQ(StatusOf(kind), status);
    EXPECT_NE(ReasonPhrase(status), "Unknown");
  }
}

TEST(Problem, RetryAfterIsRoundedUp) {
  const auto seconds = [](int millis) {
    return FromRefusal({.kind = RefusalKind::kRateLimited,
                        .code = "c",
                        .retry_after = std::chrono::milliseconds(millis)})
        .retry_after;
  };
  EXPECT_EQ(seconds(1), 1U);
  EXPECT_EQ(seconds(1000), 1U);
  EXPECT_EQ(seconds(1001), 2U);
  EXPECT_EQ(seconds(0), 1U);
  EXPECT_EQ(seconds(-5), 1U);
  // A budget that is spent does not come back: nobody is told to try again.
  EXPECT_FALSE(
      FromRefusal({.kind = RefusalKind::kRateLimited, .code = "c"}).retry_after.has_value());
  EXPECT_TRUE(FromRefusal({.kind = RefusalKind::kInFlight, .code = "c"}).retry_after.has_value());
}

TEST(Problem, CarriesDetails) {
  Refusal refusal{
      .kind = RefusalKind::kUnprocessable, .code = "args.schema", .message = "m", .hint = "h"};
  refusal.call_id = "id";
  refusal.details.push_back({"/args/code", "is missing"});
  const json problem = json::parse(FormatProblem(FromRefusal(refusal)));
  EXPECT_EQ(problem["hint"], "h");
  EXPECT_EQ(problem["call_id"], "id");
  EXPECT_EQ(problem["errors"][0]["pointer"], "/args/code");
}

TEST(Message, HeadOfAResponse) {
  Response response = JsonResponse(200, "{}");
  EXPECT_EQ(FormatResponseHead(response, true, "D"),
            "HTTP/1.1 200 OK\r\nDate: D\r\nContent-Type: application/json\r\nContent-Length: 2\r\n"
            "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n\r\n");
  EXPECT_NE(FormatResponseHead(response, false, "D").find("\r\nConnection: close\r\n\r\n"),
            std::string::npos);
  response.status = 204;
  response.body.clear();
  EXPECT_EQ(FormatResponseHead(response, true, "D").find("Content-Length"), std::string::npos);
}

TEST(Message, DateInTheOneForm) {
  EXPECT_EQ(HttpDate(std::chrono::seconds(784111777)), "Sun, 06 Nov 1994 08:49:37 GMT");
}

TEST(Message, FieldsAreFoundWithoutCase) {
  Head head;
  head.headers = {{"Content-TYPE", "a"}, {"X", "1"}, {"x", "2"}};
  EXPECT_EQ(*head.Find("content-type"), "a");
  EXPECT_EQ(head.Count("X"), 2U);
  EXPECT_EQ(head.Find("Content-Typ"), nullptr);
}

}  // namespace
}  // namespace coffer::gateway
