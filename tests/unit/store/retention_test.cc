// SPDX-License-Identifier: Apache-2.0
#include "store/retention.h"

#include "base/hash.h"
#include "store/call_list.h"
#include "store/objects.h"
#include "store/stored_bytes.h"
#include "tests/support/store_state.h"
#include "tests/unit/store/store_fixture.h"

namespace coffer::store {
namespace {

class RetentionTest : public StoreTest {
 protected:
  std::string RunKeyed(const std::string& key) {
    AdmitRequest request = Request();
    request.idempotency_key = key;
    request.request_hash = "h";
    const std::string id = Admitted(request);
    Record(id);
    Start(id);
    CallEnd end;
    end.outcome = Outcome::kSuccess;
    end.receipt = "{}";
    end.result = "r";
    Must(FinishCall(store(), a_, id, end));
    return id;
  }
  Pruned PruneAll(const Retention& retention = {}) {
    return Must(Prune(store(), AllTenants(), retention));
  }
};

TEST_F(RetentionTest, RemovesByAgeAndOnlyWhatEnded) {
  const std::string old = RunKeyed("k");
  const std::string open = Admitted(Request());
  PruneAll();
  EXPECT_EQ(Must(test::FindResult(store(), a_, old)), "r") << "nothing is old yet";

  Pass(hours(25));
  const Pruned first = PruneAll();
  EXPECT_EQ(first.idempotency_keys, 1u);
  EXPECT_EQ(first.results, 1u);
  EXPECT_EQ(first.calls, 0u);
  EXPECT_EQ(Must(test::FindResult(store(), a_, old)), std::nullopt);
  EXPECT_EQ(Must(FindReceipt(store(), a_, old)), "{}");

  Pass(hours(24 * 90));
  EXPECT_EQ(PruneAll().calls, 1u);
  EXPECT_FALSE(Must(FindCall(store(), a_, old)).has_value());
  EXPECT_EQ(Must(FindReceipt(store(), a_, old)), std::nullopt);
  EXPECT_EQ(Found(open).state, CallState::kAdmitted);
  EXPECT_EQ(PruneAll().calls, 0u);
}

// What ran is forgotten before the call is; an object as long as calls name it.
TEST_F(RetentionTest, TranscriptsAndObjectsHaveTheirTime) {
  const std::string envelope = R"({"level":"container"})";
  const auto run = [&] {
    const std::string id = Admitted(Request());
    CallDecision decision;
    decision.envelope_id = HashOf(envelope);
    decision.envelope = envelope;
    Must(RecordCall(store(), a_, id, decision));
    Start(id);
    CallEnd end;
    end.outcome = Outcome::kSuccess;
    end.receipt = "{}";
    end.transcript = "what it did";
    Must(FinishCall(store(), a_, id, end));
    return id;
  };
  const auto transcript = [&](const std::string& id) {
    return Must(ReadStored(store(), Found(id))).transcript;
  };
  const std::string id = run();
  EXPECT_EQ(transcript(id), "what it did");
  EXPECT_EQ(Must(FindObject(store(), a_, HashOf(envelope))), envelope);
  EXPECT_EQ(Must(FindObject(store(), b_, HashOf(envelope))), std::nullopt) << "another tenant";
  EXPECT_EQ(Must(FindObject(store(), AllTenants(), HashOf(envelope))), envelope);
  EXPECT_FALSE(Must(HasTranscriptsBefore(store(), a_, TranscriptsKeptSince({}, store().Now()))));

  Pass(hours(24 * 29));
  EXPECT_EQ(PruneAll().transcripts, 0U) << "not yet";
  Pass(hours(24 * 2));
  EXPECT_TRUE(Must(HasTranscriptsBefore(store(), a_, TranscriptsKeptSince({}, store().Now()))));
  const std::string young = run();
  const Pruned pruned = PruneAll();
  EXPECT_EQ(pruned.transcripts, 1U);
  EXPECT_EQ(pruned.calls, 0U);
  EXPECT_EQ(transcript(id), std::nullopt);
  EXPECT_EQ(transcript(young), "what it did");
  EXPECT_EQ(Must(FindReceipt(store(), a_, id)), "{}");

  // Its first call goes, its second is still there.
  Pass(hours(24 * 60));
  EXPECT_EQ(PruneAll().calls, 1U);
  EXPECT_EQ(Must(FindObject(store(), a_, HashOf(envelope))), envelope);
  Pass(hours(24 * 40));
  EXPECT_EQ(PruneAll().calls, 1U);
  EXPECT_EQ(Must(FindObject(store(), a_, HashOf(envelope))), std::nullopt);
  EXPECT_EQ(Must(StoredBytes(store(), a_)), 0U);
}

// Before Prune removes any: also those that a key keeps, which Prune removes first.
TEST_F(RetentionTest, KnowsWhetherResultsWillGo) {
  const auto will_go = [&](const TenantId& tenant) {
    return Must(HasResultsBefore(store(), tenant, ResultsKeptSince({}, store().Now())));
  };
  RunKeyed("k");
  Pass(hours(23));
  EXPECT_FALSE(will_go(a_));
  EXPECT_EQ(PruneAll().results, 0U);
  Pass(hours(2));
  EXPECT_TRUE(will_go(a_));
  EXPECT_FALSE(will_go(b_));
  EXPECT_EQ(PruneAll().results, 1U);
  EXPECT_FALSE(will_go(a_));
}

TEST_F(RetentionTest, AKeyIsKeptForItsDayWhateverIsAsked) {
  const std::string id = RunKeyed("k");
  Pass(hours(23));
  const Pruned pruned = PruneAll({Nanos(1), Nanos(1), Nanos(1), Nanos(1)});
  EXPECT_EQ(pruned.idempotency_keys + pruned.calls + pruned.results, 0u);
  AdmitRequest request = Request();
  request.idempotency_key = "k";
  request.request_hash = "h";
  const Admission again = Admit(request);
  EXPECT_EQ(again.verdict, AdmitVerdict::kReplay);
  EXPECT_EQ(again.result, "r");
}

TEST_F(RetentionTest, RemovesThousandsInSeveralTransactions) {
  for (int i = 0; i < 450; ++i) {
    const std::string id = Admitted(Request());
    CallEnd end;
    end.outcome = Outcome::kDenied;
    end.receipt = "{}";
    Must(RefuseCall(store(), a_, id, end));
  }
  Pass(hours(24 * 91));
  EXPECT_EQ(PruneAll().calls, 450u);
  EXPECT_TRUE(Must(ListCalls(store(), a_, {}, {})).rows.empty());
}

TEST_F(RetentionTest, RemovesSessionsAndKeysThatEnded) {
  const Session ended = Must(CreateSession(store(), a_, {.agent = "bot", .budget = {}}));
  const Session open =
      Must(CreateSession(store(), a_, {.agent = "bot", .lifetime = hours(24 * 366), .budget = {}}));
  AdmitRequest request = Request();
  request.identity.session_id = ended.id;
  Run(request);
  Must(EndSession(store(), a_, ended.id, "test"));
  const NewKey expired = Must(CreateKey(store(), a_, {Role::kAgent, "bot", hours(1)}));
  const NewKey revoked = Must(CreateKey(store(), a_, {Role::kAgent, "bot", Nanos(0)}));
  const NewKey valid = Must(CreateKey(store(), a_, {Role::kAgent, "bot", Nanos(0)}));
  Must(RevokeKey(store(), a_, revoked.key.id));
  Pass(hours(24 * 91));
  Pruned pruned = PruneAll();
  EXPECT_EQ(pruned.sessions, 1u);
  EXPECT_EQ(pruned.api_keys, 0u);
  EXPECT_TRUE(Must(FindSession(store(), a_, open.id)).has_value());
  Pass(hours(24 * 365));
  EXPECT_EQ(PruneAll().api_keys, 2u);
  EXPECT_EQ(Must(CheckKey(store(), valid.text)).state, KeyState::kValid);
  EXPECT_EQ(Must(CheckKey(store(), expired.text)).state, KeyState::kUnknown);
}

TEST_F(RetentionTest, WhatWaitsForItsCleanupStays) {
  const std::string id = Admitted(Request());
  Reopen();
  ASSERT_EQ(store().recovered().size(), 1u);
  Pass(hours(24 * 91));
  EXPECT_EQ(PruneAll().calls, 0u);
  Must(FinishCleanup(store(), a_, id));
  EXPECT_EQ(PruneAll().calls, 1u);
}

TEST_F(RetentionTest, ATenantPrunesOnlyItself) {
  const std::string id = RunKeyed("k");
  Pass(hours(24 * 91));
  EXPECT_EQ(Must(Prune(store(), b_, {})).calls, 0u);
  EXPECT_TRUE(Must(FindCall(store(), a_, id)).has_value());
  EXPECT_EQ(Must(Prune(store(), a_, {})).calls, 1u);
}

TEST_F(RetentionTest, RemovesCountersThatSayNothingAnyMore) {
  AdmitRequest request = Request();
  request.args_hash = "x";
  request.quotas.tool.calls = {{5, minutes(1)}};
  Run(request, Outcome::kError);
  EXPECT_EQ(PruneAll().counters, 0u);
  Pass(hours(49));
  EXPECT_EQ(PruneAll().counters, 2u);
}

}  // namespace
}  // namespace coffer::store
