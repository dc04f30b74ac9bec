// SPDX-License-Identifier: Apache-2.0
#include "store/admission.h"

#include "tests/support/store_state.h"
#include "tests/unit/store/store_fixture.h"

namespace coffer::store {
namespace {

class AdmissionTest : public StoreTest {
 protected:
  AdmitRequest Keyed(const std::string& key, const std::string& hash = "sha256:1") {
    AdmitRequest request = Request();
    request.idempotency_key = key;
    request.request_hash = hash;
    return request;
  }
  std::string Verdict(const AdmitRequest& request) {
    constexpr const char* kNames[] = {"admitted",     "replay",      "in-flight",  "key-conflict",
                                      "switched-off", "paused",      "no-session", "session-ended",
                                      "no-parent",    "too-deep",    "cycle",      "retry-too-soon",
                                      "budget-spent", "rate-limited"};
    return kNames[static_cast<size_t>(Admit(request).verdict)];
  }
  std::string NewSession(const SessionRequest& request) {
    return Must(CreateSession(store(), a_, request)).id;
  }
  AdmitRequest In(const std::string& session) {
    AdmitRequest request = Request();
    request.identity.session_id = session;
    return request;
  }
  AdmitRequest Child(const std::string& parent, const std::string& tool) {
    AdmitRequest request = Request(tool);
    request.identity.parent_id = parent;
    return request;
  }
  std::string Started(const AdmitRequest& request) {
    const std::string id = Admitted(request);
    Record(id);
    Start(id);
    return id;
  }
};

TEST_F(AdmissionTest, AKeyRunsOnceAndIsReplayedAcrossARestart) {
  const std::string id = Started(Keyed("k"));
  Admission again = Admit(Keyed("k"));
  EXPECT_EQ(again.verdict, AdmitVerdict::kInFlight);
  EXPECT_EQ(again.call_id, id);
  EXPECT_GT(again.RetryAfterSeconds(), 0);

  CallEnd end;
  end.outcome = Outcome::kError;  // also a failure is an answer
  end.result = R"({"stdout":"4\n"})";
  Must(FinishCall(store(), a_, id, end));
  Reopen();
  again = Admit(Keyed("k"));
  EXPECT_EQ(again.verdict, AdmitVerdict::kReplay);
  EXPECT_EQ(again.call_id, id);
  EXPECT_EQ(again.state, CallState::kFinished);
  EXPECT_EQ(again.result, end.result);
}

TEST_F(AdmissionTest, AKeyWithAnotherRequestIsAConflict) {
  Started(Keyed("k"));
  const Admission other = Admit(Keyed("k", "sha256:2"));
  EXPECT_EQ(other.verdict, AdmitVerdict::kKeyConflict);
  EXPECT_EQ(other.call_id, "");
  EXPECT_EQ(other.error_class, "policy.idempotency");
}

TEST_F(AdmissionTest, AKeyIsFreeAfterADay) {
  const std::string id = Run(Keyed("k"));
  Pass(hours(24) - minutes(1));
  EXPECT_EQ(Verdict(Keyed("k")), "replay");
  Pass(minutes(2));
  const std::string second = Admitted(Keyed("k"));
  EXPECT_NE(second, id);
  Pass(hours(48));
  EXPECT_EQ(Verdict(Keyed("k")), "in-flight") << "a call that has not ended keeps its key";
}

TEST_F(AdmissionTest, ARefusalKeepsOrFreesItsKey) {
  CallEnd end;
  end.outcome = Outcome::kDenied;
  end.result = "no";
  std::string id = Admitted(Keyed("kept"));
  Must(RefuseCall(store(), a_, id, end, KeyFate::kKeep));
  EXPECT_EQ(Admit(Keyed("kept")).result, "no");
  id = Admitted(Keyed("freed"));
  Must(RefuseCall(store(), a_, id, end, KeyFate::kRelease));
  EXPECT_EQ(Verdict(Keyed("freed")), "admitted");
}

TEST_F(AdmissionTest, AKeyHasABoundedLengthAndARequest) {
  EXPECT_EQ(Verdict(Keyed(std::string(255, 'k'))), "admitted");
  EXPECT_EQ(Code(AdmitCall(store(), Keyed(std::string(256, 'k')))), "policy.idempotency");
  EXPECT_EQ(Code(AdmitCall(store(), Keyed("k", ""))), "store.request");
}

TEST_F(AdmissionTest, NamesHaveABoundedLength) {
  EXPECT_EQ(Verdict(Request(std::string(256, 't'))), "admitted");
  EXPECT_EQ(Code(AdmitCall(store(), Request(std::string(257, 't')))), "policy.request");
}

TEST_F(AdmissionTest, ATenantThatDoesNotExistHasNoCalls) {
  AdmitRequest request = Request();
  request.identity.tenant = Id("nobody");
  EXPECT_EQ(Code(AdmitCall(store(), request)), "policy.tenant");
}

TEST_F(AdmissionTest, ASessionBelongsToItsAgentAndEnds) {
  const std::string session = NewSession({.agent = "bot", .lifetime = minutes(10), .budget = {}});
  EXPECT_EQ(Verdict(In(session)), "admitted");
  AdmitRequest stranger = In(session);
  stranger.identity.agent = "other";
  EXPECT_EQ(Verdict(stranger), "no-session");
  EXPECT_EQ(Verdict(In("made-up")), "no-session");
  AdmitRequest foreign = In(session);
  foreign.identity.tenant = b_;
  EXPECT_EQ(Verdict(foreign), "no-session");
  Pass(minutes(10));
  EXPECT_EQ(Verdict(In(session)), "session-ended") << "whether or not a timer has ended it";
  const std::string second = NewSession({.agent = "bot", .lifetime = minutes(10), .budget = {}});
  Must(EndSession(store(), a_, second, "test"));
  EXPECT_EQ(Verdict(In(second)), "session-ended");
}

TEST_F(AdmissionTest, ASessionsActionsAreCounted) {
  const std::string session =
      NewSession({.agent = "bot", .lifetime = hours(1), .budget = {.calls = 2}});
  Run(In(session));
  Run(In(session));
  const Admission third = Admit(In(session));
  EXPECT_EQ(third.verdict, AdmitVerdict::kBudgetSpent);
  EXPECT_EQ(third.RetryAfterSeconds(), 0) << "waiting does not help";
  EXPECT_EQ(Must(FindSession(store(), a_, session))->spent.calls, 2u);
}

TEST_F(AdmissionTest, AParentMustRunInTheSameTenantAndSession) {
  const std::string parent = Admitted(Request("outer"));
  EXPECT_EQ(Verdict(Child(parent, "inner")), "no-parent") << "not started yet";
  Record(parent);
  Start(parent);
  AdmitRequest foreign = Child(parent, "inner");
  foreign.identity.tenant = b_;
  EXPECT_EQ(Verdict(foreign), "no-parent");
  AdmitRequest of_another = Child(parent, "inner");
  of_another.identity.agent = "another";
  EXPECT_EQ(Verdict(of_another), "no-parent") << "another agent's call";
  AdmitRequest elsewhere = Child(parent, "inner");
  elsewhere.identity.session_id = NewSession({.agent = "bot", .lifetime = hours(1), .budget = {}});
  EXPECT_EQ(Verdict(elsewhere), "no-parent");
  EXPECT_EQ(Admit(Child(parent, "inner")).depth, 1u);
  Finish(parent);
  EXPECT_EQ(Verdict(Child(parent, "inner")), "no-parent") << "has ended";
}

TEST_F(AdmissionTest, ChainsAreBoundedAndHaveNoCycles) {
  std::string last = Started(Request("t0"));
  for (int depth = 1; depth <= 3; ++depth) {
    const Admission next = Admit(Child(last, "t" + std::to_string(depth)));
    ASSERT_EQ(next.verdict, AdmitVerdict::kAdmitted);
    EXPECT_EQ(next.depth, static_cast<uint32_t>(depth));
    if (depth < 3) {
      EXPECT_EQ(Verdict(Child(last, "t0")), "cycle");
      EXPECT_EQ(Verdict(Child(last, "t" + std::to_string(depth - 1))), "cycle") << "itself";
    }
    Record(next.call_id);
    Start(next.call_id);
    last = next.call_id;
  }
  EXPECT_EQ(Verdict(Child(last, "t4")), "too-deep");
  AdmitRequest deeper = Child(last, "t4");
  deeper.max_depth = 4;
  EXPECT_EQ(Verdict(deeper), "admitted");
  std::vector<std::string> tools;
  for (std::string id = last; !id.empty();) {
    const Call call = Found(id);
    tools.push_back(call.identity.tool);
    id = call.identity.parent_id;
  }
  EXPECT_EQ(tools, (std::vector<std::string>{"t3", "t2", "t1", "t0"}));
}

TEST_F(AdmissionTest, ARefusalWritesNothing) {
  const std::string session =
      NewSession({.agent = "bot", .lifetime = hours(1), .budget = {.calls = 1}});
  AdmitRequest request = In(session);
  request.idempotency_key = "k";
  request.request_hash = "h";
  Run(In(session));
  ASSERT_EQ(Verdict(request), "budget-spent");
  EXPECT_EQ(Must(ListCalls(store(), a_, {}, {})).rows.size(), 1u);
  EXPECT_EQ(Must(test::TenantSpent(store(), a_)).calls, 1u);
  request.identity.session_id.clear();
  EXPECT_EQ(Verdict(request), "admitted") << "the key was not claimed by the refusal";
}

}  // namespace
}  // namespace coffer::store
