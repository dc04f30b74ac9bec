// SPDX-License-Identifier: Apache-2.0
#include "gateway/http/json_body.h"

#include <gtest/gtest.h>

namespace coffer::gateway {
namespace {

const std::string kId = "01890a5d-ac96-774b-bcce-b302099a8057";

std::string CodeOfBody(std::string_view text) {
  const auto request = ParseCallBody(text, HttpLimits());
  return request.ok() ? "ok" : request.refusal().code;
}

TEST(CallBody, AllMembers) {
  const auto request = ParseCallBody(
      R"({"tool":"invoice-report","args":{"z":1,"a":[true,null,1.5,"x"]},"session_id":")" + kId +
          R"(","parent_id":")" + kId + R"(","dry_run":true})",
      HttpLimits());
  ASSERT_TRUE(request.ok());
  EXPECT_EQ(request->tool, "invoice-report");
  EXPECT_EQ(request->args_json, R"({"z":1,"a":[true,null,1.5,"x"]})");
  EXPECT_EQ(request->session_id, kId);
  EXPECT_EQ(request->parent_id, kId);
  EXPECT_TRUE(request->dry_run);
  EXPECT_TRUE(request->wait);
}

TEST(CallBody, NullIsAbsent) {
  const auto request =
      ParseCallBody(R"({"tool":"t","args":null,"session_id":null,"parent_id":null,"dry_run":null})",
                    HttpLimits());
  ASSERT_TRUE(request.ok());
  EXPECT_EQ(request->args_json, "{}");
  EXPECT_FALSE(request->session_id.has_value());
  EXPECT_FALSE(request->dry_run);
}

TEST(CallBody, NumbersArriveUnchanged) {
  const auto args = [](const char* number) {
    const auto request =
        ParseCallBody(std::string(R"({"tool":"t","args":{"n":)") + number + "}}", HttpLimits());
    return request.ok() ? request->args_json : request.refusal().code;
  };
  EXPECT_EQ(args("18446744073709551615"), R"({"n":18446744073709551615})");
  EXPECT_EQ(args("-9223372036854775808"), R"({"n":-9223372036854775808})");
  EXPECT_EQ(args("0.1"), R"({"n":0.1})");
  EXPECT_EQ(args("18446744073709551616"), "json.number");
  EXPECT_EQ(args("-9223372036854775809"), "json.number");
  EXPECT_EQ(args("1e309"), "json.number");
  EXPECT_EQ(args("-1e400"), "json.number");
  EXPECT_EQ(args("01"), "json.syntax");
  EXPECT_EQ(args("NaN"), "json.syntax");
}

TEST(CallBody, DepthIsBounded) {
  HttpLimits limits;
  limits.json_depth = 5;
  const auto code = [&](int depth) {  // the body and args are two
    const auto request =
        ParseCallBody(R"({"tool":"t","args":{"a":)" + std::string(static_cast<size_t>(depth), '[') +
                          std::string(static_cast<size_t>(depth), ']') + "}}",
                      limits);
    return request.ok() ? "ok" : request.refusal().code;
  };
  EXPECT_EQ(code(3), "ok");
  EXPECT_EQ(code(4), "json.too_deep");
  EXPECT_EQ(code(100'000), "json.too_deep");
}

TEST(CallBody, ValuesAndBytesAreBounded) {
  HttpLimits limits;
  limits.json_values = 6;
  EXPECT_TRUE(ParseCallBody(R"({"tool":"t","args":{"a":[1,2]}})", limits).ok());
  EXPECT_EQ(ParseCallBody(R"({"tool":"t","args":{"a":[1,2,3]}})", limits).refusal().code,
            "json.too_many");
  limits.body_bytes = 20;
  EXPECT_EQ(ParseCallBody(R"({"tool":"t","args":{}})", limits).refusal().kind,
            RefusalKind::kTooLarge);
}

TEST(CallBody, ListsEverythingThatIsWrong) {
  const auto request = ParseCallBody(
      R"({"tool":1,"args":"x","session_id":"y","dry_run":0,"user":"root"})", HttpLimits());
  ASSERT_FALSE(request.ok());
  EXPECT_EQ(request.refusal().code, "body.invalid");
  std::string pointers;
  for (const RefusalDetail& detail : request.refusal().details) {
    pointers += detail.pointer + " ";
  }
  EXPECT_NE(pointers.find("/tool"), std::string::npos);
  EXPECT_NE(pointers.find("/args"), std::string::npos);
  EXPECT_NE(pointers.find("/session_id"), std::string::npos);
  EXPECT_NE(pointers.find("/dry_run"), std::string::npos);
  EXPECT_NE(pointers.find("/user"), std::string::npos);
}

TEST(CallBody, RefusesByKind) {
  EXPECT_EQ(CodeOfBody(""), "json.syntax");
  EXPECT_EQ(CodeOfBody("null"), "json.type");
  EXPECT_EQ(CodeOfBody("\"x\""), "json.type");
  EXPECT_EQ(CodeOfBody("{}"), "body.invalid");
  EXPECT_EQ(CodeOfBody("\xef\xbb\xbf{\"tool\":\"t\"}"), "json.syntax");
  EXPECT_EQ(CodeOfBody("{\"tool\":\"t\"} x"), "json.syntax");
  EXPECT_EQ(CodeOfBody(R"({"tool":"t","args":{"a":1,"a":2}})"), "json.duplicate");
  EXPECT_EQ(CodeOfBody("{\"tool\":\"t\",\"args\":{\"a\":\"\xc0\xaf\"}}"), "json.syntax");
  EXPECT_EQ(CodeOfBody(R"({"tool":"t","args":{"a":"\u0000"}})"),
            "ok");  // the schema's and the template's business
  for (const char* wrong : {"", "T", "a/b", "a b", "-a", "a-", "\\u0000"}) {
    EXPECT_EQ(CodeOfBody(std::string(R"({"tool":")") + wrong + "\"}"), "body.invalid") << wrong;
  }
}

TEST(SessionBody, MayBeEmpty) {
  EXPECT_TRUE(ParseSessionBody("", HttpLimits()).ok());
  const auto request =
      ParseSessionBody(R"({"lifetime_seconds":60,"max_calls":5,"label":"build 7"})", HttpLimits());
  ASSERT_TRUE(request.ok());
  EXPECT_EQ(request->lifetime, std::chrono::seconds(60));
  EXPECT_EQ(request->max_calls, 5U);
  EXPECT_EQ(request->label, "build 7");
  for (const char* wrong :
       {R"({"lifetime_seconds":0})", R"({"lifetime_seconds":-1})", R"({"lifetime_seconds":1.5})",
        R"({"max_calls":"5"})", R"({"label":"a\nb"})", R"({"tenant":"x"})",
        R"({"lifetime_seconds":99999999999999})"}) {
    EXPECT_FALSE(ParseSessionBody(wrong, HttpLimits()).ok()) << wrong;
  }
}

TEST(KeyBody, NeedsARole) {
  const auto request = ParseKeyBody(
      R"({"role":"approver","agent":"alice","expires_in_seconds":3600})", HttpLimits());
  ASSERT_TRUE(request.ok());
  EXPECT_EQ(request->role, Role::kApprover);
  EXPECT_EQ(request->agent, "alice");
  EXPECT_EQ(request->expires_in, std::chrono::seconds(3600));
  for (const char* wrong : {"{}", R"({"role":"root"})", R"({"role":"agent","tenant":"other"})",
                            R"({"role":"agent","agent":"a b"})", R"({"role":["agent"]})"}) {
    EXPECT_FALSE(ParseKeyBody(wrong, HttpLimits()).ok()) << wrong;
  }
}

TEST(SwitchBody, NeedsAReason) {
  EXPECT_EQ(ParseSwitchBody(R"({"reason":"it loops"})", HttpLimits()).value(), "it loops");
  EXPECT_FALSE(ParseSwitchBody("{}", HttpLimits()).ok());
  EXPECT_FALSE(ParseSwitchBody(R"({"reason":""})", HttpLimits()).ok());
}

TEST(JsonBody, ACallMayAskForNoNetworkAndForNoMore) {
  const HttpLimits limits;
  EXPECT_TRUE(ParseCallBody(R"({"tool":"t","network":[]})", limits).ok());
  EXPECT_TRUE(ParseCallBody(R"({"tool":"t","network":null})", limits).ok());
  for (const char* more : {R"(["example.com"])", R"("host")", "true", "{}"}) {
    const auto answer =
        ParseCallBody(std::string(R"({"tool":"t","network":)") + more + "}", limits);
    ASSERT_FALSE(answer.ok()) << more;
    EXPECT_EQ(answer.refusal().details.at(0).pointer, "/network");
  }
}

}  // namespace
}  // namespace coffer::gateway
