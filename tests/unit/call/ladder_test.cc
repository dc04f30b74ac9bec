// SPDX-License-Identifier: Apache-2.0
#include "call/ladder.h"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include "call/host_budget.h"
#include "call/warden/collect.h"
#include "call/warden/launcher.h"
#include "policy/manifest/starter.h"
#include "store/call.h"
#include "store/session.h"
#include "store/switches.h"
#include "tests/support/run.h"

namespace coffer::call {
namespace {

class LadderTest : public ::testing::Test {
 protected:
  LadderTest() : shelf_({}) {
    Result<store::Store> opened = store::Store::Open(dir_ / "state");
    EXPECT_TRUE(opened.ok()) << opened.error().message;
    store_ = std::make_unique<store::Store>(std::move(opened).value());
    EXPECT_TRUE(shelf_.Reload().ok());
    EXPECT_TRUE(store::EnsureTenant(*store_, store::TenantId::Local()).ok());
    LadderOptions options;
    options.sessions = dir_.MakeDir("sessions");
    Result<audit::Log> log = audit::Log::Open(dir_ / "state/log");
    EXPECT_TRUE(log.ok()) << log.error().message;
    log_ = std::make_unique<audit::Log>(std::move(log).value());
    recorder_ = std::make_unique<Recorder>(*store_, *log_);
    ladder_ = std::make_unique<Ladder>(*recorder_, shelf_, options);
  }
  static ToolRequest Python(const std::string& code) {
    ToolRequest request;
    request.identity.agent = "tester";
    request.identity.tool = "python";
    request.args_json = nlohmann::json({{"code", code}}).dump();
    return request;
  }
  ToolReply Run(const ToolRequest& request) {
    std::variant<ReadyCall, ToolReply> climbed = ladder_->Climb(request);
    if (auto* reply = std::get_if<ToolReply>(&climbed)) {
      return *reply;
    }
    ReadyCall& ready = std::get<ReadyCall>(climbed);
    LocalLauncher launcher;
    std::variant<RunChannels, ToolReply> launched = ladder_->Launch(ready, launcher);
    if (auto* reply = std::get_if<ToolReply>(&launched)) {
      return *reply;
    }
    ++ran_;
    return ladder_->Descend(ready, Collect(std::move(std::get<RunChannels>(launched)), {}));
  }
  std::string NewAgent() { return "tester-" + std::to_string(++agents_); }
  store::CallState StateOf(const std::string& id) {
    Result<std::optional<store::Call>> call =
        store::FindCall(*store_, store::TenantId::Local(), id);
    return call.ok() && *call ? (*call)->state : store::CallState::kAdmitted;
  }

  test::TempDir dir_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<audit::Log> log_;
  std::unique_ptr<Recorder> recorder_;
  ToolShelf shelf_;
  std::unique_ptr<Ladder> ladder_;
  int ran_ = 0;
  int agents_ = 0;
};

TEST_F(LadderTest, ACallRunsAndIsOnRecord) {
  const ToolReply reply = Run(Python("print(2 + 2)"));
  EXPECT_EQ(reply.outcome, "success") << reply.error_message;
  EXPECT_EQ(reply.stdout_text, "4\n");
  EXPECT_EQ(StateOf(reply.call_id), store::CallState::kFinished);
  const Result<audit::Receipt> receipt = audit::ParseReceipt(reply.receipt);
  ASSERT_TRUE(receipt.ok());
  EXPECT_EQ(receipt->identity.call_id, reply.call_id);
  EXPECT_EQ(receipt->identity.tenant.name(), "local");
  EXPECT_EQ(receipt->identity.agent, "tester");
  EXPECT_EQ(receipt->identity.tool, "python");
  EXPECT_TRUE(receipt->manifest_hash.starts_with("sha256:"));
  EXPECT_EQ(receipt->args_redacted, (std::vector<std::string>{"code=<12 bytes>"}));
  EXPECT_FALSE(receipt->layers.empty()) << "the boundary's own part";
}

TEST_F(LadderTest, WhatDoesNotFitIsRefusedOnRecordAndNothingRuns) {
  ToolRequest request = Python("x");
  request.args_json = "{\"code\": 7}";
  const ToolReply reply = Run(request);
  EXPECT_EQ(reply.refusal, ToolRefusal::kUnprocessable);
  EXPECT_EQ(reply.outcome, "denied");
  EXPECT_FALSE(reply.denials.empty());
  EXPECT_EQ(StateOf(reply.call_id), store::CallState::kRefused);
  EXPECT_EQ(ran_, 0);
  for (const char* args : {"", "[]", "7", "{", "{\"a\":1,\"a\":2}"}) {
    request.args_json = args;
    EXPECT_EQ(Run(request).refusal, ToolRefusal::kInvalid) << args;
  }
  request = Python("x");
  request.identity.tool = "no-such-tool";
  EXPECT_EQ(Run(request).refusal, ToolRefusal::kNotFound);
  EXPECT_NE(Run(request).error_message.find(request.identity.tool), std::string::npos);
}

TEST_F(LadderTest, TheSameKeyRunsOnce) {
  ToolRequest request = Python("import os; print(os.urandom(8).hex())");
  request.idempotency_key = "k";
  const ToolReply first = Run(request);
  const ToolReply again = Run(request);
  EXPECT_EQ(first.outcome, "success");
  EXPECT_TRUE(again.replayed);
  EXPECT_EQ(again.stdout_text, first.stdout_text);
  EXPECT_EQ(ran_, 1);
  request.args_json = "{\"code\": \"print(1)\"}";
  EXPECT_EQ(Run(request).refusal, ToolRefusal::kKeyConflict);
  EXPECT_EQ(ran_, 1);
}

constexpr const char* kCannotBeTakenBack = R"(
[tool]
name = "send"
version = "1.0.0"
effect = "EFFECT"
KEY
[run]
runtime = "bash"
argv = ["bash", "-c", "true"]
[approval]
when = "never"
)";

// What cannot be taken back is refused without a key, unless its manifest says otherwise; a dry run needs none.
TEST_F(LadderTest, WhatCannotBeTakenBackNeedsAKey) {
  const std::string tools = dir_.MakeDir("tools");
  const auto refusal_of = [&](std::string effect, const std::string& line, const std::string& key,
                              bool dry_run) {
    std::string text = kCannotBeTakenBack;
    text.replace(text.find("EFFECT"), 6, effect);
    text.replace(text.find("KEY"), 3, line);
    dir_.Write("tools/send.toml", text);
    ToolShelf shelf({tools});
    EXPECT_TRUE(shelf.Reload().ok());
    EXPECT_NE(shelf.Find("send"), nullptr) << text;
    LadderOptions options;
    Ladder ladder(*recorder_, shelf, options);
    ToolRequest request;
    request.identity.agent = NewAgent();  // what has just failed may not be tried again at once
    request.identity.tool = "send";
    request.idempotency_key = key;
    request.dry_run = dry_run;
    std::variant<ReadyCall, ToolReply> climbed = ladder.Climb(request);
    auto* const reply = std::get_if<ToolReply>(&climbed);
    if (reply == nullptr) {
      (void)ladder.DescendUnlaunched(std::get<ReadyCall>(climbed), Internal("internal", "test"));
      return std::string();
    }
    if (!reply->error_class.empty()) {
      EXPECT_EQ(reply->refusal, ToolRefusal::kInvalid);
      EXPECT_TRUE(test::Contains(reply->hint, "--idempotency-key")) << reply->hint;
      EXPECT_FALSE(reply->receipt.empty());
    }
    return reply->error_class;
  };
  const std::string optional = "idempotency_key = \"optional\"";
  const std::string required = "idempotency_key = \"required\"";
  EXPECT_EQ(refusal_of("irreversible", "", "", false), "policy.idempotency");
  EXPECT_EQ(refusal_of("privileged", "", "", false), "policy.idempotency");
  EXPECT_EQ(refusal_of("irreversible", "", "k1", false), "") << "the control";
  EXPECT_EQ(refusal_of("privileged", "", "k2", false), "") << "the control";
  EXPECT_EQ(refusal_of("irreversible", "", "", true), "") << "a dry run";
  EXPECT_EQ(refusal_of("irreversible", optional, "", false), "");
  EXPECT_EQ(refusal_of("reversible", required, "", false), "policy.idempotency");
}

TEST(ToolRequest, ARequestIdIsAKeyWithinItsSession) {
  const auto key_of = [](const char* session, const char* id, const char* key) {
    ToolRequest request;
    request.identity.session_id = session;
    request.idempotency_key = key;
    UseRequestId(id, request);
    return request.idempotency_key;
  };
  EXPECT_EQ(key_of("", "7", ""), "") << "an id alone says nothing";
  EXPECT_EQ(key_of("s", "", ""), "");
  EXPECT_EQ(key_of("s", "7", "mine"), "mine");
  EXPECT_EQ(key_of("s", "7", ""), key_of("s", "7", ""));
  EXPECT_NE(key_of("s", "7", ""), key_of("s", "8", ""));
  EXPECT_NE(key_of("s", "7", ""), key_of("t", "7", ""));
  EXPECT_LE(key_of("s", "7", "").size(), 255U);
}

// A retry is answered with what was sealed, and with nothing else.
TEST_F(LadderTest, ARetryIsNotAnsweredWithWhatSomebodyWrote) {
  ToolRequest request = Python("print('right')");
  request.idempotency_key = "k";
  ASSERT_EQ(Run(request).stdout_text, "right\n");
  const ToolReply again = Run(request);
  EXPECT_EQ(again.stdout_text, "right\n") << "the control";
  EXPECT_TRUE(again.replayed);
  ASSERT_TRUE(again.log.has_value());
  EXPECT_EQ(again.log->index, 1U);
  sqlite3* db = nullptr;
  ASSERT_EQ(::sqlite3_open((dir_ / "state/coffer.db").c_str(), &db), SQLITE_OK);
  ASSERT_EQ(::sqlite3_exec(db, "UPDATE results SET body = replace(body, 'right', 'wrong')", nullptr,
                           nullptr, nullptr),
            SQLITE_OK);
  ::sqlite3_close(db);
  const ToolReply edited = Run(request);
  EXPECT_EQ(edited.error_class, kRecordBroken);
  EXPECT_EQ(edited.stdout_text, "");
  EXPECT_EQ(ran_, 1) << "and it is not run again";
}

// The row of a key is led to another call of the same agent and tool.
TEST_F(LadderTest, ARetryIsNotAnsweredWithAnotherCallsResult) {
  ToolRequest request = Python("print('right')");
  request.idempotency_key = "k";
  ASSERT_EQ(Run(request).stdout_text, "right\n");
  ToolRequest other = Python("print('other')");
  other.idempotency_key = "l";
  ASSERT_EQ(Run(other).stdout_text, "other\n");
  EXPECT_EQ(Run(request).stdout_text, "right\n") << "the control";
  sqlite3* db = nullptr;
  ASSERT_EQ(::sqlite3_open((dir_ / "state/coffer.db").c_str(), &db), SQLITE_OK);
  ASSERT_EQ(::sqlite3_exec(db,
                           "UPDATE idempotency SET call_id = (SELECT call_id FROM idempotency "
                           "WHERE key = 'l') WHERE key = 'k'",
                           nullptr, nullptr, nullptr),
            SQLITE_OK);
  ::sqlite3_close(db);
  const ToolReply edited = Run(request);
  EXPECT_EQ(edited.error_class, kRecordBroken);
  EXPECT_EQ(edited.stdout_text, "");
  EXPECT_EQ(Run(other).stdout_text, "other\n") << "the call itself is as it was";
  EXPECT_EQ(ran_, 2) << "and nothing is run again";
}

TEST_F(LadderTest, ADryRunSaysTheWorstAndRunsNothing) {
  ToolRequest request = Python("print(1)");
  request.dry_run = true;
  const ToolReply reply = Run(request);
  EXPECT_EQ(reply.outcome, "success");
  EXPECT_TRUE(test::Contains(reply.stdout_text, "cannot reach the network")) << reply.stdout_text;
  EXPECT_EQ(ran_, 0);
}

TEST_F(LadderTest, ASwitchStopsBeforeAnythingIsAdmitted) {
  store::SwitchChange change;
  change.kind = store::SwitchKind::kTool;
  change.name = "python";
  change.who = "test";
  change.why = "incident";
  ASSERT_TRUE(store::SetSwitch(*store_, store::TenantId::Local(), change).ok());
  EXPECT_EQ(Run(Python("print(1)")).refusal, ToolRefusal::kDenied);
  change.on = false;
  ASSERT_TRUE(store::SetSwitch(*store_, store::TenantId::Local(), change).ok());
  EXPECT_EQ(Run(Python("print(1)")).outcome, "success");
}

TEST_F(LadderTest, ASessionsFilesSurviveBetweenItsCallsAndNowhereElse) {
  store::SessionRequest asked;
  asked.agent = "tester";
  const Result<store::Session> session =
      store::CreateSession(*store_, store::TenantId::Local(), asked);
  ASSERT_TRUE(session.ok()) << session.error().message;
  dir_.MakeDir("sessions/" + session->workspace, 0700);
  ToolRequest request = Python("open('kept', 'w').write('hello')");
  request.identity.session_id = session->id;
  const ToolReply wrote = Run(request);
  ASSERT_EQ(wrote.outcome, "success") << wrote.error_message << wrote.stderr_text;
  request.args_json = nlohmann::json({{"code", "print(open('kept').read())"}}).dump();
  EXPECT_EQ(Run(request).stdout_text, "hello\n");
  request.identity.session_id.clear();
  EXPECT_EQ(Run(request).outcome, "error") << "another workspace";
  request.identity.session_id = "no-such-session";
  EXPECT_EQ(Run(request).refusal, ToolRefusal::kNotFound);
}

TEST_F(LadderTest, ACallWhoseEndNobodySawIsUnknownAndNeverRunsAgain) {
  ToolRequest request = Python("print(1)");
  request.idempotency_key = "lost";
  std::variant<ReadyCall, ToolReply> climbed = ladder_->Climb(request);
  ASSERT_TRUE(std::holds_alternative<ReadyCall>(climbed));
  const ToolReply lost = ladder_->Descend(std::get<ReadyCall>(climbed), Collected{});
  EXPECT_EQ(lost.outcome, "unknown");
  EXPECT_EQ(StateOf(lost.call_id), store::CallState::kUnknown);
  const ToolReply again = Run(request);
  EXPECT_EQ(again.outcome, "unknown");
  EXPECT_EQ(ran_, 0);
}

// The relay of a call with [calls] is not in its boundary, so it has a part of the host's memory of its own.
TEST_F(LadderTest, ARelayCountsInTheHostsMemory) {
  policy::Tool calling = *shelf_.Find("python");
  calling.manifest.calls.tools = {"shell"};
  const uint64_t own = calling.manifest.limits.memory;
  ToolShelf shelf({});
  shelf.Replace({std::make_shared<const policy::Tool>(calling)});
  HostBudget budget;
  LadderOptions options;
  options.offers_tools = true;
  options.budget = &budget;
  Ladder ladder(*recorder_, shelf, options);
  const auto runs = [&](uint64_t memory) {
    budget.SetLimits({10, memory, 100});
    std::variant<ReadyCall, ToolReply> climbed = ladder.Climb(Python("1"));
    if (auto* ready = std::get_if<ReadyCall>(&climbed)) {
      (void)ladder.DescendUnlaunched(*ready, Internal("internal", "the test ends it"));
      return std::string("runs");
    }
    return std::get<ToolReply>(climbed).error_class;
  };
  EXPECT_EQ(runs(own + kRelayMemory - 1), "policy.host");
  EXPECT_EQ(runs(own + kRelayMemory), "runs") << "the control";
  calling.manifest.calls.tools = {};
  shelf.Replace({std::make_shared<const policy::Tool>(calling)});
  EXPECT_EQ(runs(own), "runs") << "the control: without a relay";
  EXPECT_EQ(runs(own - 1), "policy.host");
}

TEST_F(LadderTest, AChildNeedsAParentThatRuns) {
  ToolRequest request = Python("print(1)");
  request.identity.parent_id = "01a1ddc8-4478-7351-9cde-749dbb6a2d9e";
  EXPECT_EQ(Run(request).refusal, ToolRefusal::kNotFound);
  EXPECT_EQ(ran_, 0);
}

TEST(ToolReply, IsKeptWhole) {
  ToolReply reply;
  reply.call_id = "id";
  reply.outcome = "error";
  reply.error_class = "limit.wall";
  reply.stdout_text = "a\n";
  reply.exit_code = 3;
  reply.denials.push_back({"policy", "call", "t", "r", "why", "fix", 2});
  const Result<ToolReply> back = ParseReply(FormatReply(reply));
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(FormatReply(*back), FormatReply(reply));
  EXPECT_FALSE(ParseReply("{}").ok());
  EXPECT_FALSE(ParseReply("").ok());
}

}  // namespace
}  // namespace coffer::call
