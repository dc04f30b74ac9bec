// SPDX-License-Identifier: Apache-2.0
#include "store/recovery.h"

#include <map>

#include "tests/unit/store/store_fixture.h"

namespace coffer::store {
namespace {

class RecoveryTest : public StoreTest {
 protected:
  AdmitRequest Keyed(const std::string& key) {
    AdmitRequest request = Request();
    request.idempotency_key = key;
    request.request_hash = "h";
    return request;
  }
  std::map<std::string, RecoveredCall> Recovered() {
    std::map<std::string, RecoveredCall> by_id;
    for (const RecoveredCall& one : store().recovered()) {
      by_id.emplace(one.call.identity.call_id, one);
    }
    return by_id;
  }
};

TEST_F(RecoveryTest, WhatHadNotStartedIsRefusedAndWhatHadIsUnknown) {
  const std::string admitted = Admitted(Keyed("admitted"));
  const std::string gated = Admitted(Keyed("gated"));
  Must(GateCall(store(), a_, gated, {}));
  const std::string recorded = Admitted(Keyed("recorded"));
  Record(recorded);
  const std::string started = Admitted(Keyed("started"));
  Record(started);
  Start(started);
  const std::string finished = Run(Keyed("finished"));
  Reopen();

  const auto recovered = Recovered();
  EXPECT_EQ(recovered.size(), 4u);
  const std::pair<std::string, CallState> not_started[] = {{admitted, CallState::kAdmitted},
                                                           {gated, CallState::kGated},
                                                           {recorded, CallState::kRecorded}};
  for (const auto& [id, left_in] : not_started) {
    EXPECT_EQ(recovered.at(id).left_in, left_in);
    const Call call = Found(id);
    EXPECT_EQ(call.state, CallState::kRefused);
    EXPECT_EQ(call.outcome, Outcome::kError);
    EXPECT_EQ(call.error_class, "internal");
    EXPECT_NE(call.error_message.find("nothing ran"), std::string::npos);
  }
  EXPECT_EQ(recovered.at(started).left_in, CallState::kStarted);
  EXPECT_EQ(recovered.at(started).call.supervisor, (Supervisor{42, 7, "boot"}));
  EXPECT_EQ(Found(started).state, CallState::kUnknown);
  EXPECT_EQ(Found(started).outcome, Outcome::kUnknown);
  EXPECT_EQ(Found(finished).state, CallState::kFinished);

  EXPECT_EQ(Admit(Keyed("admitted")).verdict, AdmitVerdict::kAdmitted) << "nothing had run";
  EXPECT_EQ(Admit(Keyed("recorded")).verdict, AdmitVerdict::kAdmitted);
  const Admission again = Admit(Keyed("started"));
  EXPECT_EQ(again.verdict, AdmitVerdict::kReplay) << "never run again";
  EXPECT_EQ(again.state, CallState::kUnknown);
  EXPECT_EQ(Admit(Keyed("finished")).state, CallState::kFinished);
}

TEST_F(RecoveryTest, ALivingProcessKeepsItsCalls) {
  const std::string id = Admitted(Request());
  Record(id);
  Start(id);
  Store other = Must(Store::Open(Path(), Options()));
  EXPECT_TRUE(other.recovered().empty());
  EXPECT_EQ(Found(id).state, CallState::kStarted);
  Finish(id);
}

TEST_F(RecoveryTest, IsHandedOutUntilItWasCleanedUp) {
  const std::string id = Admitted(Request());
  Record(id);
  Start(id);
  Reopen();
  ASSERT_EQ(store().recovered().size(), 1u);
  {
    Store other = Must(Store::Open(Path(), Options()));
    EXPECT_TRUE(other.recovered().empty()) << "whoever recovered it is still at it";
  }
  Reopen();  // died before it had cleaned up
  ASSERT_EQ(store().recovered().size(), 1u);
  EXPECT_EQ(store().recovered()[0].left_in, CallState::kStarted);
  EXPECT_EQ(store().recovered()[0].call.state, CallState::kUnknown);
  Must(FinishCleanup(store(), a_, id));
  Reopen();
  EXPECT_TRUE(store().recovered().empty());
}

TEST_F(RecoveryTest, ADaemonNoticesWhatDiedBesideIt) {
  const std::string own = Admitted(Request());
  std::string id;
  {
    Store other = Must(Store::Open(Path(), Options()));
    id = Must(AdmitCall(other, Keyed("k"))).call_id;
    EXPECT_TRUE(Must(RecoverAgain(store(), AllTenants())).empty());
    EXPECT_EQ(Admit(Keyed("k")).verdict, AdmitVerdict::kInFlight);
  }
  const std::vector<RecoveredCall> recovered = Must(RecoverAgain(store(), AllTenants()));
  ASSERT_EQ(recovered.size(), 1u);
  EXPECT_EQ(recovered[0].call.identity.call_id, id);
  EXPECT_EQ(Admit(Keyed("k")).verdict, AdmitVerdict::kAdmitted);
  EXPECT_EQ(Found(own).state, CallState::kAdmitted);
  EXPECT_TRUE(Must(RecoverAgain(store(), AllTenants())).empty()) << "handed out once";
}

TEST_F(RecoveryTest, FreesWhatCountsAsRunning) {
  AdmitRequest request = Request();
  request.quotas.tool.concurrency = 1;
  Admitted(request);
  EXPECT_EQ(Admit(request).verdict, AdmitVerdict::kRateLimited);
  Reopen();
  EXPECT_EQ(Admit(request).verdict, AdmitVerdict::kAdmitted);
}

TEST_F(RecoveryTest, ARecoveredCallGetsItsReceipt) {
  const std::string id = Admitted(Request());
  Reopen();
  Must(AddReceipt(store(), a_, id, "{}"));
  EXPECT_EQ(Must(FindReceipt(store(), a_, id)), "{}");
}

}  // namespace
}  // namespace coffer::store
