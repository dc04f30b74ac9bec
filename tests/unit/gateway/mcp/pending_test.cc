// SPDX-License-Identifier: Apache-2.0
#include "gateway/mcp/pending.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace coffer::gateway {
namespace {

const McpRequestStates::Binding kCall{"tenant\nagent", "deploy", "sha256:aa"};
constexpr Nanos kNow = std::chrono::hours(1);
constexpr Nanos kLater = std::chrono::hours(2);

TEST(McpPending, AStateIsForOneCallOfOneCallerAndOnce) {
  McpRequestStates states;
  const auto redeem = [&](const std::string& state, const McpRequestStates::Binding& binding,
                          Nanos now = kNow) { return states.Redeem(state, binding, now); };
  const std::string state = states.Make(kCall, "approval-1", kLater);
  auto other = kCall;
  other.caller = "tenant\nother";
  EXPECT_FALSE(redeem(state, other));
  other = kCall;
  other.tool = "remove";
  EXPECT_FALSE(redeem(state, other));
  other = kCall;
  other.args_hash = "sha256:ab";
  EXPECT_FALSE(redeem(state, other));
  other = {"tenant\nagentdeploy", "", "sha256:aa"};
  EXPECT_FALSE(redeem(state, other)) << "the same bytes, cut elsewhere";
  EXPECT_FALSE(redeem(state, kCall, kLater)) << "too late";
  EXPECT_EQ(redeem(state, kCall), "approval-1") << "the control: none of these has used it up";
  EXPECT_FALSE(redeem(state, kCall)) << "twice";
  EXPECT_EQ(redeem(states.Make(kCall, "approval-1", kLater), kCall), "approval-1") << "another one";
  EXPECT_FALSE(McpRequestStates().Redeem(states.Make(kCall, "a", kLater), kCall, kNow))
      << "of another process";
}

TEST(McpPending, AStateThatWasChangedIsWorthless) {
  McpRequestStates states;
  const std::string state = states.Make(kCall, "approval-1", kLater);
  for (size_t i = 0; i < state.size(); ++i) {
    std::string changed = state;
    changed[i] = changed[i] == '1' ? '2' : '1';
    EXPECT_FALSE(states.Redeem(changed, kCall, kNow)) << i;
    EXPECT_FALSE(states.Redeem(state.substr(0, i), kCall, kNow)) << i;
  }
  for (const std::string& none : {std::string(), std::string("."), std::string("..."),
                                  std::string("1.2.3.4.5"), std::string(100'000, '.')}) {
    EXPECT_FALSE(states.Redeem(none, kCall, kNow));
  }
  EXPECT_TRUE(states.Redeem(state, kCall, kNow)) << "the control";
}

TEST(McpPending, TheQuestionIsAskedAtAUrlAndNowhereElse) {
  const McpPending pending{"approval-1", "https://host/console/approvals/approval-1",
                           "2026-11-17T12:00:00Z", "deploy waits for a person."};
  const Json asked = McpInputRequiredJson(pending, "state");
  EXPECT_EQ(asked["resultType"], "input_required");
  EXPECT_EQ(asked["requestState"], "state");
  const Json& question = asked["inputRequests"]["approval"];
  EXPECT_EQ(question["method"], "elicitation/create");
  EXPECT_EQ(question["params"]["mode"], "url");
  EXPECT_EQ(question["params"]["url"], pending.url);
  EXPECT_FALSE(question["params"].contains("requestedSchema"));
  const Json refused = McpPendingErrorJson(pending);
  EXPECT_EQ(refused["isError"], true);
  EXPECT_EQ(refused["structuredContent"]["outcome"], "gated");
  EXPECT_EQ(refused["structuredContent"]["approval"]["url"], pending.url);

  EXPECT_TRUE(TakesQuestionsAtUrl({{"elicitation", {{"url", Json::object()}}}}));
  EXPECT_FALSE(TakesQuestionsAtUrl({{"elicitation", Json::object()}})) << "forms alone";
  EXPECT_FALSE(TakesQuestionsAtUrl({{"elicitation", {{"form", Json::object()}}}}));
  EXPECT_FALSE(TakesQuestionsAtUrl({{"elicitation", true}}));
  EXPECT_FALSE(TakesQuestionsAtUrl(Json::object()));
}

}  // namespace
}  // namespace coffer::gateway
