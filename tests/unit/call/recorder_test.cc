// SPDX-License-Identifier: Apache-2.0
//
// What goes on record: every request that is no repetition, no secret, and nothing that cannot be verified afterwards.
#include "call/recorder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "audit/log/verify_log.h"
#include "audit/log/verify_store.h"
#include "audit/seal.h"
#include "base/json.h"
#include "call/ladder.h"
#include "call/replay.h"
#include "store/admission.h"
#include "store/call_list.h"
#include "store/outbox.h"
#include "store/receivers.h"
#include "store/switches.h"
#include "tests/support/run.h"
#include "tests/support/store_state.h"
#include "tests/unit/call/recorder_fixture.h"

namespace coffer::call {
namespace {

TEST_F(RecorderTest, EveryRefusalHasAReceiptThatVerifies) {
  store::SwitchChange change;
  change.kind = store::SwitchKind::kTool;
  change.name = "bash";
  change.who = change.why = "test";
  ASSERT_TRUE(store::SetSwitch(*store_, store::TenantId::Local(), change).ok());
  ToolRequest no_session = Asking("python", R"({"code":"1"})");
  no_session.identity.session_id = "01890000-0000-7000-8000-000000000001";
  ToolRequest no_parent = Asking("python", R"({"code":"1"})");
  no_parent.identity.parent_id = "01890000-0000-7000-8000-000000000002";
  size_t asked = 0;
  for (const ToolRequest& request :
       {Asking("python", "not json"), Asking("python", "[]"), Asking("no-such-tool", "{}"),
        Asking("python", R"({"code": 7})"), Asking("bash", R"({"command":"true"})"), no_session,
        no_parent}) {
    const ToolReply reply = Refused(request);
    ++asked;
    EXPECT_EQ(reply.outcome, "denied");
    ASSERT_FALSE(reply.call_id.empty()) << request.args_json;
    ASSERT_TRUE(reply.log.has_value());
    const Status sealed = audit::VerifyReceipt(reply.receipt, log_->public_key());
    EXPECT_TRUE(sealed.ok()) << sealed.error().message;
    Result<std::optional<store::Call>> row =
        store::FindCall(*store_, store::TenantId::Local(), reply.call_id);
    ASSERT_TRUE(row.ok() && row->has_value());
    EXPECT_EQ((*row)->state, store::CallState::kRefused);
    EXPECT_EQ((*row)->denials, 1U);
    EXPECT_EQ((*row)->log_index, reply.log->index);
  }
  const audit::LogVerdict verdict = Verify();
  EXPECT_TRUE(verdict.ok()) << verdict.findings.front().message;
  EXPECT_EQ(verdict.records, asked);
}

// Whatever is denied for another reason has a receipt, however many there are: rates of the same size bound those, and
// nothing is taken from the rates of calls.
TEST_F(RecorderTest, EveryDenialByPolicyHasAReceipt) {
  constexpr int kDenied = 60;
  for (int i = 0; i < kDenied; ++i) {
    EXPECT_FALSE(Refused(Asking("no-such-tool", "{}")).receipt.empty());
    EXPECT_FALSE(Refused(Asking("python", "not json")).receipt.empty());
  }
  EXPECT_EQ(Verify().records, 2U * kDenied);

  quotas_.agent.calls = {{30, std::chrono::hours(1)}};
  int denied = 0;
  for (int i = 0; i < kDenied; ++i) {
    const ToolReply reply = Refused(Asking("no-such-tool", "{}"));
    denied += reply.error_class == "policy.tool" ? 1 : 0;
    EXPECT_TRUE(reply.error_class == "policy.tool" || reply.error_class == "policy.rate");
    EXPECT_EQ(reply.retry_after_seconds.has_value(), reply.error_class == "policy.rate");
  }
  EXPECT_EQ(denied, 30);
  const std::variant<ReadyCall, ToolReply> good =
      ladder_->Climb(Asking("python", R"({"code":"1"})"));
  EXPECT_TRUE(std::holds_alternative<ReadyCall>(good)) << "a denial uses up what calls have";
}

// Parameters are checked before anything is taken from rates and budgets. The control: valid calls use the same rates up.
TEST_F(RecorderTest, WhatDoesNotFitTakesNothingFromTheRates) {
  quotas_.tenant.calls = {{3, std::chrono::hours(1)}};
  quotas_.agent.burst = 3;
  quotas_.tenant_budget.calls = 3;
  int refused = 0;
  for (int i = 0; i < 3; ++i) {
    const ToolReply reply = Refused(Asking("python", "{\"code\":" + std::to_string(i) + "}"));
    refused += reply.error_class == "policy.args.schema" ? 1 : 0;
  }
  EXPECT_EQ(refused, 3);
  EXPECT_EQ(test::TenantSpent(*store_, store::TenantId::Local()).value().calls, 0U);
  // Refusals have a rate of their own, as large.
  EXPECT_EQ(Refused(Asking("python", R"({"code":99})")).error_class, "policy.rate");
  for (int i = 0; i < 3; ++i) {
    auto climbed = ladder_->Climb(Asking("python", "{\"code\":\"" + std::to_string(i) + "\"}"));
    EXPECT_TRUE(std::holds_alternative<ReadyCall>(climbed)) << i;
  }
  EXPECT_EQ(Refused(Asking("python", R"({"code":"4"})")).refusal, ToolRefusal::kRateLimited)
      << "the control";
}

// A path that is refused is shown in the record and in the answer as arguments are: by its size.
TEST_F(RecorderTest, ARefusedPathIsNotInTheRecord) {
  for (const std::string& path :
       {std::string("/home/alice/merger-with-initech.txt"), std::string("../x")}) {
    const ToolReply reply = Refused(Asking("read-file", "{\"path\":\"" + path + "\"}"));
    EXPECT_EQ(reply.error_class, "policy.args.path");
    EXPECT_TRUE(test::Contains(reply.error_message, "<" + std::to_string(path.size()) + " bytes>"))
        << reply.error_message;
    EXPECT_FALSE(test::Contains(reply.error_message, path));
    EXPECT_FALSE(test::Contains(reply.receipt, path)) << reply.receipt;
    const auto stored = test::FindResult(*store_, store::TenantId::Local(), reply.call_id);
    ASSERT_TRUE(stored.ok() && *stored);
    EXPECT_FALSE(test::Contains(**stored, path));
  }
  for (const char* name : {"coffer.db", "coffer.db-wal", "log/records"}) {
    const std::string bytes = test::ReadFile(dir_ / ("state/" + std::string(name))).value_or("");
    EXPECT_FALSE(test::Contains(bytes, "merger-with-initech")) << name;
  }
}

// A process that is killed when a refusal is in the log and its end is not in the store yet: the record still verifies.
TEST_F(RecorderTest, AKillInTheMiddleOfARefusalIsNoFinding) {
  const auto logged = [&](const std::string& id) {
    audit::ReceiptRecord record;
    record.at = store_->Now();
    record.identity.tenant = store::TenantId::Local();
    record.identity.call_id = id;
    record.identity.agent = "tester";
    record.identity.tool = "python";
    record.outcome = "denied";
    record.error_class = "policy.retry";
    record.body = audit::MakeBody(audit::FormatReceipt({})).value().hash;
    EXPECT_TRUE(log_->Append(record).ok());
  };
  store::AdmitRequest request;
  request.identity.agent = "tester";
  request.identity.tool = "python";
  const std::string id = "01890000-0000-7000-8000-000000000003";
  ASSERT_TRUE(store::AnnounceRefusedCall(*store_, request, id).ok());
  logged(id);
  EndRecorder();
  store_.reset();  // what the kernel does with the files of a process that is killed
  Result<store::Store> opened = store::Store::Open(dir_ / "state");
  ASSERT_TRUE(opened.ok());
  store_ = std::make_unique<store::Store>(std::move(opened).value());
  ASSERT_EQ(store_->recovered().size(), 1U);
  Recorder recorder(*store_, *log_);
  ASSERT_TRUE(recorder.Settle(store_->recovered()).ok());
  const audit::LogVerdict verdict = Verify();
  EXPECT_TRUE(verdict.ok()) << verdict.findings.front().message;
  const auto row = store::FindCall(*store_, store::TenantId::Local(), id);
  ASSERT_TRUE(row.ok() && row->has_value());
  EXPECT_EQ((*row)->state, store::CallState::kRefused);
  EXPECT_EQ((*row)->outcome, store::Outcome::kDenied) << "as the log has it";
  EXPECT_EQ((*row)->error_class, "policy.retry");
  // The control: a receipt of a call that the store never knew.
  logged("01890000-0000-7000-8000-000000000004");
  const audit::LogVerdict gone = Verify();
  ASSERT_FALSE(gone.ok());
  EXPECT_EQ(gone.findings.front().code, "store.gone");
}

// The process that recovers is killed too, when its receipt is in the log and not in the store: the next one seals the
// same again.
TEST_F(RecorderTest, AKillInTheMiddleOfARecoveryIsNoFinding) {
  std::variant<ReadyCall, ToolReply> climbed = ladder_->Climb(Asking("python", R"({"code":"1"})"));
  ASSERT_TRUE(std::holds_alternative<ReadyCall>(climbed));
  const std::string id = std::get<ReadyCall>(climbed).call_id();
  store::AdmitRequest request;
  request.identity.agent = "tester";
  request.identity.tool = "python";
  const Result<store::Admission> admitted = store::AdmitCall(*store_, request);
  ASSERT_TRUE(admitted.ok());
  EndRecorder();
  for (int recovery = 0; recovery < 2; ++recovery) {
    store_.reset();
    Result<store::Store> opened = store::Store::Open(dir_ / "state");
    ASSERT_TRUE(opened.ok());
    store_ = std::make_unique<store::Store>(std::move(opened).value());
    ASSERT_EQ(store_->recovered().size(), 2U);
    Recorder recorder(*store_, *log_);
    ASSERT_TRUE(recorder.Settle(store_->recovered()).ok());
    if (recovery == 0) {
      const std::string forget =
          "DELETE FROM documents WHERE kind = 'receipt'; "
          "UPDATE calls SET cleanup = 1, log_index = NULL";
      const test::RunResult edit =
          test::RunProgram({"python3", "-c",
                            "import sqlite3,sys; c=sqlite3.connect(sys.argv[1]); "
                            "c.executescript(sys.argv[2]); c.commit()",
                            dir_ / "state/coffer.db", forget});
      ASSERT_EQ(edit.exit, 0) << edit.err;
    }
  }
  const audit::LogVerdict verdict = Verify();
  EXPECT_TRUE(verdict.ok()) << verdict.findings.front().message;
  EXPECT_EQ(verdict.records, 5U) << "a decision, and each call's receipt twice";
  ASSERT_EQ(verdict.notes.size(), 1U);
  EXPECT_TRUE(test::Contains(verdict.notes[0].message, admitted->call_id));
  const auto row = store::FindCall(*store_, store::TenantId::Local(), id);
  ASSERT_TRUE(row.ok() && row->has_value());
  EXPECT_EQ((*row)->outcome, store::Outcome::kUnknown);
}

// What a crash tore off is said in the log, and to whoever wants to hear of it; once.
TEST_F(RecorderTest, ARecoveredLogIsTold) {
  EndRecorder();
  log_.reset();
  std::ofstream(dir_ / "state/log/records", std::ios::app) << "torn";
  const std::vector<store::KnownReceiver> known = {{"all", {}}, {"alerts", {"alert.*"}}};
  ASSERT_TRUE(store::KeepReceivers(*store_, store::AllTenants{}, known).ok());
  Result<audit::Log> log = OpenLog(*store_, dir_ / "state/log");
  ASSERT_TRUE(log.ok()) << log.error().message;
  const auto due = [&](const char* receiver) {
    return store::ListDue(*store_, store::AllTenants{}, receiver, 10).value();
  };
  ASSERT_EQ(due("all").size(), 1U);
  const Json event = ParseJson(due("all").front().body).value();
  EXPECT_EQ(event.at("type"), "io.cofferdam.log.recovered");
  EXPECT_EQ(event.at("data").at("bytes"), 4);
  EXPECT_EQ(due("alerts").size(), 0U);
  EXPECT_EQ(Events("log.recovered").size(), 1U);
}

// What happens is left for its receivers before it goes into the log: neither a death in between nor a log that cannot be
// written keeps it from them.
TEST_F(RecorderTest, AnEventIsToldEvenIfItCannotBeLogged) {
  const std::vector<store::KnownReceiver> known = {{"all", {}}};
  ASSERT_TRUE(store::KeepReceivers(*store_, store::AllTenants{}, known).ok());
  ASSERT_TRUE(recorder_->UseKnownReceivers().ok());
  const auto due = [&] {
    return store::ListDue(*store_, store::AllTenants{}, "all", 10).value().size();
  };
  ASSERT_TRUE(recorder_->Event("local", "switch.on", {{"name", "python"}}).ok());
  EXPECT_EQ(due(), 1U) << "the control";
  const std::string records = dir_ / "state/log/records";
  const std::string good = *test::ReadFile(records);
  std::ofstream(records, std::ios::trunc) << good.substr(0, good.size() / 2);
  EXPECT_FALSE(recorder_->Event("local", "switch.off", {{"name", "python"}}).ok());
  EXPECT_EQ(due(), 2U);
}

// The disk is gone for so long that not even what ended meanwhile can be kept: then at least that is on record.
TEST_F(RecorderTest, ReceiptsThatAreLostAreCounted) {
  EndRecorder();
  log_.reset();
  const std::string records = dir_ / "state/log/records";
  const std::string good = *test::ReadFile(records);
  audit::LogOptions options;
  options.fsync = false;
  Result<audit::Log> log = audit::Log::Open(dir_ / "state/log", options);
  ASSERT_TRUE(log.ok());
  constexpr uint64_t kMostKept = 20;
  Recorder recorder(*store_, *log, kMostKept);
  ASSERT_EQ(::truncate(records.c_str(), 10), 0);
  constexpr uint64_t kEnded = kMostKept + 3;
  for (uint64_t i = 0; i < kEnded; ++i) {
    audit::Receipt receipt;
    receipt.identity.call_id = "none-" + std::to_string(i);
    receipt.outcome = "success";
    ToolReply reply;
    EXPECT_FALSE(recorder.End(Ending::kFinished, receipt, reply).ok());
  }
  EXPECT_EQ(recorder.lost(), 3U);
  EXPECT_EQ(recorder.pending(), kEnded - 3);
  EXPECT_FALSE(recorder.WritePending().ok()) << "the control";
  std::ofstream(records, std::ios::trunc) << good;
  const Status written = recorder.WritePending();
  EXPECT_TRUE(written.ok()) << written.error().message;
  EXPECT_EQ(recorder.pending(), 0U);
  ASSERT_TRUE(recorder.WritePending().ok());
  ASSERT_EQ(Events("receipts.lost").size(), 1U);
  EXPECT_EQ(Events("receipts.lost").front().at("detail").at("count"), 3);
}

TEST_F(RecorderTest, WhatRanHasItsDecisionBeforeIt) {
  std::variant<ReadyCall, ToolReply> climbed = ladder_->Climb(Asking("python", R"({"code":"1"})"));
  ASSERT_TRUE(std::holds_alternative<ReadyCall>(climbed));
  const std::string decided = *test::ReadFile(dir_ / "state/log/records");
  EXPECT_TRUE(test::Contains(decided, "\"kind\":\"decision\"")) << "before anything could run";
  const ToolReply reply = Descend(std::get<ReadyCall>(climbed));
  EXPECT_EQ(reply.outcome, "success") << reply.error_message;
  EXPECT_TRUE(audit::VerifyReceipt(reply.receipt, log_->public_key()).ok());
  const audit::LogVerdict verdict = Verify();
  EXPECT_TRUE(verdict.ok()) << verdict.findings.front().message;
  EXPECT_EQ(verdict.records, 2U);
}

// Everything the state directory holds is searched for the secret; the control is a word that must be there.
TEST_F(RecorderTest, ASecretIsNowhere) {
  const std::string secret = "hunter2hunter2hunter2";
  const std::string control = "plainword";
  (void)Refused(
      Asking("python", R"({"password":")" + secret + R"(","n":{"api_key":")" + secret + R"("}})"));
  (void)Refused(Asking("token=" + secret, "{}"));
  (void)Refused(Asking(
      "read-file", R"j({"path":"../password=)j" + secret + R"j("})j"));  // quoted in the refusal
  (void)Refused(Asking(control, "{}"));
  bool control_seen = false;
  for (const char* name : {"coffer.db", "coffer.db-wal", "log/records"}) {
    const std::string bytes = test::ReadFile(dir_ / ("state/" + std::string(name))).value_or("");
    EXPECT_FALSE(test::Contains(bytes, secret)) << name;
    control_seen = control_seen || test::Contains(bytes, control);
  }
  EXPECT_TRUE(control_seen);
}

// A call that ends after the log was read, and before the store is: that is no finding.
TEST_F(RecorderTest, ACallThatEndsWhileOneVerifiesIsNoFinding) {
  (void)Refused(Asking("no-such-tool", "{}"));
  audit::StoreCheck check(*store_, dir_ / "state/log");
  audit::VerifyOptions options;
  options.on_record = [&](const audit::LeafFacts& facts) {
    check.Note(facts);
    return std::optional<audit::LogFinding>();
  };
  Result<audit::LogVerdict> verdict = audit::VerifyLog(dir_ / "state/log", options);
  ASSERT_TRUE(verdict.ok());
  (void)Refused(Asking("another-tool", "{}"));
  ASSERT_TRUE(check.Finish(*verdict).ok());
  EXPECT_TRUE(verdict->ok()) << verdict->findings.front().message;
  EXPECT_TRUE(Verify().ok());
}

// Guessing the arguments does not confirm the guess: no hash in the record is one of the plain arguments.
TEST_F(RecorderTest, ASecretCannotBeGuessedFromAHash) {
  const std::string args = R"({"password":"1234"})";
  const ToolReply one = Refused(Asking("python", args));
  const ToolReply two = Refused(Asking("python", R"({"password":"9876"})"));
  const Result<audit::Receipt> first = audit::ParseReceipt(one.receipt);
  const Result<audit::Receipt> second = audit::ParseReceipt(two.receipt);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(first->args_hash, second->args_hash) << "the secret is not in what is hashed";
  EXPECT_EQ(recorder_->Fingerprint(args), recorder_->Fingerprint(args));
  EXPECT_NE(recorder_->Fingerprint(args), recorder_->Fingerprint(args + " "));
}

// The store's receipt is edited behind our back.
TEST_F(RecorderTest, AnEditedReceiptInTheStoreIsFound) {
  const ToolReply reply = Refused(Asking("no-such-tool", "{}"));
  ASSERT_TRUE(Verify().ok());
  store_.reset();
  const std::string changed =
      "UPDATE documents SET body = replace(body, 'no-such-tool', 'another-tool')";
  const test::RunResult edit =
      test::RunProgram({"python3", "-c",
                        "import sqlite3,sys; c=sqlite3.connect(sys.argv[1]); "
                        "c.execute(sys.argv[2]); c.commit()",
                        dir_ / "state/coffer.db", changed});
  ASSERT_EQ(edit.exit, 0) << edit.err;
  Result<store::Store> opened = store::Store::Open(dir_ / "state");
  ASSERT_TRUE(opened.ok());
  store_ = std::make_unique<store::Store>(std::move(opened).value());
  const audit::LogVerdict verdict = Verify();
  ASSERT_EQ(verdict.findings.size(), 1U);
  EXPECT_EQ(verdict.findings[0].code, "store.receipt");
  EXPECT_TRUE(test::Contains(verdict.findings[0].message, reply.call_id));
}

// Between the look for a key and the look at its call the result can be removed to make room.
TEST_F(RecorderTest, ARetryOfWhatIsBeingRemovedIsToldSo) {
  ToolRequest request = Asking("python", R"({"code":"1"})");
  request.idempotency_key = "once";
  std::variant<ReadyCall, ToolReply> climbed = ladder_->Climb(request);
  ASSERT_TRUE(std::holds_alternative<ReadyCall>(climbed));
  const ToolReply ran = Descend(std::get<ReadyCall>(climbed));
  const auto row = store::FindCall(*store_, store::TenantId::Local(), ran.call_id);
  ASSERT_TRUE(row.ok() && *row);
  const Result<audit::SealedCall> sealed = recorder_->ReadSealed(**row);
  ASSERT_TRUE(sealed.ok() && sealed->result);
  store::Admission led;
  led.verdict = store::AdmitVerdict::kReplay;
  led.call_id = ran.call_id;
  led.state = store::CallState::kFinished;
  led.result = *sealed->result;
  const std::string args_hash = sealed->call.args_hash;
  EXPECT_EQ(Replay(*recorder_, request, args_hash, led).error_class, "")
      << "the control: it is there";
  EXPECT_EQ(Replay(*recorder_, request, "sha256:0", led).error_class, kRecordBroken)
      << "the key leads to a call with other arguments";
  store::Admission altered = led;
  altered.result += " ";
  EXPECT_EQ(Replay(*recorder_, request, args_hash, altered).outcome, "unknown") << "the control";
  ASSERT_TRUE(recorder_->PruneToSize(store::TenantId::Local(), 1).ok());
  const ToolReply removed = Replay(*recorder_, request, args_hash, led);
  EXPECT_EQ(removed.outcome, "success");
  EXPECT_EQ(removed.error_class, "policy.storage") << removed.error_message;
}

TEST_F(RecorderTest, PrunedBodiesAreCoveredAndOthersAreMissed) {
  (void)Refused(Asking("no-such-tool", "{}"));
  store::Retention retention;
  ASSERT_TRUE(recorder_->Prune(store::TenantId::Local(), retention).ok());
  EXPECT_EQ(Verify().records, 1U) << "nothing is old enough, so nothing is said";
  store_.reset();
  const test::RunResult edit =
      test::RunProgram({"python3", "-c",
                        "import sqlite3,sys; c=sqlite3.connect(sys.argv[1]); "
                        "c.execute('DELETE FROM documents'); "
                        "c.execute('DELETE FROM calls'); c.commit()",
                        dir_ / "state/coffer.db"});
  ASSERT_EQ(edit.exit, 0) << edit.err;
  Result<store::Store> opened = store::Store::Open(dir_ / "state");
  ASSERT_TRUE(opened.ok());
  store_ = std::make_unique<store::Store>(std::move(opened).value());
  const audit::LogVerdict verdict = Verify();
  ASSERT_EQ(verdict.findings.size(), 1U);
  EXPECT_EQ(verdict.findings[0].code, "store.gone");
}

}  // namespace
}  // namespace coffer::call
