// SPDX-License-Identifier: Apache-2.0
#include "store/call.h"

#include <set>

#include "tests/support/store_state.h"
#include "tests/unit/store/store_fixture.h"

namespace coffer::store {
namespace {

constexpr CallState kAll[] = {CallState::kAdmitted, CallState::kGated,    CallState::kRecorded,
                              CallState::kStarted,  CallState::kFinished, CallState::kRefused,
                              CallState::kUnknown};

class CallTest : public StoreTest {
 protected:
  // A call that has come this far.
  std::string CallIn(CallState state) {
    const std::string id = Admitted(Request());
    CallEnd end;
    switch (state) {
      case CallState::kAdmitted:
        break;
      case CallState::kGated:
        Must(GateCall(store(), a_, id, {}));
        break;
      case CallState::kRecorded:
        Record(id);
        break;
      case CallState::kStarted:
      case CallState::kFinished:
      case CallState::kUnknown:
        Record(id);
        Start(id);
        if (state == CallState::kFinished) {
          Finish(id);
        } else if (state == CallState::kUnknown) {
          Must(LoseCall(store(), a_, id, end));
        }
        break;
      case CallState::kRefused:
        end.outcome = Outcome::kDenied;
        Must(RefuseCall(store(), a_, id, end));
        break;
    }
    return id;
  }

  Status Go(const std::string& id, CallState to) {
    CallEnd end;
    end.outcome = Outcome::kError;
    switch (to) {
      case CallState::kGated:
        return GateCall(store(), a_, id, {});
      case CallState::kRecorded:
        return RecordCall(store(), a_, id, {});
      case CallState::kStarted:
        return StartCall(store(), a_, id, {});
      case CallState::kFinished:
        return FinishCall(store(), a_, id, end);
      case CallState::kRefused:
        return RefuseCall(store(), a_, id, end);
      case CallState::kUnknown:
        return LoseCall(store(), a_, id, end);
      case CallState::kAdmitted:
        break;
    }
    return Internal("test", "there is no way back to admitted");
  }
};

TEST_F(CallTest, EveryTransitionIsLegalOrChangesNothing) {
  const std::set<std::pair<CallState, CallState>> legal = {
      {CallState::kAdmitted, CallState::kGated},   {CallState::kAdmitted, CallState::kRecorded},
      {CallState::kAdmitted, CallState::kRefused}, {CallState::kGated, CallState::kRecorded},
      {CallState::kGated, CallState::kRefused},    {CallState::kRecorded, CallState::kStarted},
      {CallState::kRecorded, CallState::kRefused}, {CallState::kStarted, CallState::kFinished},
      {CallState::kStarted, CallState::kUnknown}};
  for (const CallState from : kAll) {
    for (const CallState to : kAll) {
      if (to == CallState::kAdmitted) {
        continue;
      }
      const std::string id = CallIn(from);
      ASSERT_EQ(Found(id).state, from);
      const Status went = Go(id, to);
      const bool may = legal.count({from, to}) != 0;
      EXPECT_EQ(went.ok(), may) << CallStateName(from) << " -> " << CallStateName(to);
      EXPECT_EQ(Found(id).state, may ? to : from);
      EXPECT_EQ(IsLegal(from, to), may);
      if (!may) {
        EXPECT_EQ(Code(went), "store.state");
      }
    }
  }
}

TEST_F(CallTest, KeepsEverythingItWasTold) {
  AdmitRequest request = Request("reader");
  request.identity.user = "ann";
  request.args_hash = "sha256:args";
  const std::string id = Admitted(request);
  CallDecision decision{"1.2.0", "sha256:manifest", "sha256:envelope", "read-only", R"({"a":1})"};
  Must(RecordCall(store(), a_, id, decision));
  const Supervisor supervisor{4711, 123456789012345, "b00t"};
  Must(StartCall(store(), a_, id, supervisor));
  CallEnd end;
  end.outcome = Outcome::kTerminated;
  end.error_class = "limit.cpu";
  end.error_message = "it took too long";
  end.exit_signal = 9;
  end.receipt = R"({"schema":"coffer.receipt/1"})";
  end.result = std::string("bytes\0with a null", 17);
  end.cpu = milliseconds(1500);
  end.bytes_out = 77;
  Must(FinishCall(store(), a_, id, end));
  Reopen();

  const Call call = Found(id);
  EXPECT_EQ(call.identity.tool, "reader");
  EXPECT_EQ(call.identity.agent, "bot");
  EXPECT_EQ(call.identity.user, "ann");
  EXPECT_EQ(call.args_hash, "sha256:args");
  EXPECT_EQ(call.tool_version, "1.2.0");
  EXPECT_EQ(call.manifest_hash, "sha256:manifest");
  EXPECT_EQ(call.envelope_id, "sha256:envelope");
  EXPECT_EQ(call.effect, "read-only");
  EXPECT_EQ(call.supervisor, supervisor);
  EXPECT_EQ(call.outcome, Outcome::kTerminated);
  EXPECT_EQ(call.error_class, "limit.cpu");
  EXPECT_EQ(call.error_message, "it took too long");
  EXPECT_EQ(call.exit_code, std::nullopt);
  EXPECT_EQ(call.exit_signal, 9);
  EXPECT_EQ(call.cpu, milliseconds(1500));
  EXPECT_EQ(call.bytes_out, 77u);
  EXPECT_LE(call.requested_at, *call.decided_at);
  EXPECT_LE(*call.decided_at, *call.started_at);
  EXPECT_LE(*call.started_at, *call.finished_at);
  EXPECT_EQ(Must(FindReceipt(store(), a_, id)), end.receipt);
  EXPECT_EQ(Must(test::FindResult(store(), a_, id)), end.result);
  EXPECT_EQ(Must(FindArgs(store(), a_, id)), decision.args_redacted);
}

TEST_F(CallTest, RecordAndStartAreOneTransaction) {
  const std::string id = Admitted(Request());
  Must(RecordAndStartCall(store(), a_, id, {.envelope_id = "e"}, {1, 2, "b"}));
  EXPECT_EQ(Found(id).state, CallState::kStarted);
  EXPECT_EQ(Found(id).envelope_id, "e");
  EXPECT_EQ(Code(RecordAndStartCall(store(), a_, id, {}, {1, 2, "b"})), "store.state");
}

TEST_F(CallTest, ARefusedCallMayKnowPartOfTheDecision) {
  const std::string id = Admitted(Request());
  CallEnd end;
  end.outcome = Outcome::kDenied;
  end.error_class = "policy.args";
  end.decision = CallDecision{.manifest_hash = "m", .args_redacted = "{}"};
  Must(RefuseCall(store(), a_, id, end));
  EXPECT_EQ(Found(id).state, CallState::kRefused);
  EXPECT_EQ(Found(id).manifest_hash, "m");
  EXPECT_EQ(Must(FindArgs(store(), a_, id)), "{}");
}

TEST_F(CallTest, OutcomesBelongToTheirStates) {
  CallEnd end;
  for (const Outcome outcome : {Outcome::kGated, Outcome::kUnknown}) {
    end.outcome = outcome;
    const std::string id = CallIn(CallState::kStarted);
    EXPECT_EQ(Code(FinishCall(store(), a_, id, end)), "store.outcome");
    EXPECT_EQ(Found(id).state, CallState::kStarted);
  }
  for (const Outcome outcome : {Outcome::kSuccess, Outcome::kTerminated, Outcome::kUnknown}) {
    end.outcome = outcome;
    EXPECT_EQ(Code(RefuseCall(store(), a_, CallIn(CallState::kRecorded), end)), "store.outcome");
  }
  const std::string lost = CallIn(CallState::kUnknown);
  EXPECT_EQ(Found(lost).outcome, Outcome::kUnknown);
}

TEST_F(CallTest, AReceiptIsAddedOnceAndOnlyToWhatEnded) {
  const std::string id = CallIn(CallState::kRefused);
  EXPECT_EQ(Must(FindReceipt(store(), a_, id)), std::nullopt);
  Must(AddReceipt(store(), a_, id, "{}"));
  EXPECT_EQ(Must(FindReceipt(store(), a_, id)), "{}");
  EXPECT_EQ(Code(AddReceipt(store(), a_, id, "{2}")), "store.receipt");
  EXPECT_EQ(Code(AddReceipt(store(), a_, CallIn(CallState::kStarted), "{}")), "store.receipt");
  EXPECT_EQ(Code(AddReceipt(store(), a_, "nobody", "{}")), "store.receipt");
}

TEST_F(CallTest, ACallBelongsToTheProcessThatAdmittedIt) {
  const std::string id = Admitted(Request());
  Store other = Must(Store::Open(Path(), Options()));
  EXPECT_EQ(Code(RecordCall(other, a_, id, {})), "store.owner");
  EXPECT_EQ(Found(id).state, CallState::kAdmitted);
  Record(id);
}

TEST_F(CallTest, AnUnknownIdIsRefused) {
  EXPECT_EQ(Code(RecordCall(store(), a_, "'; DROP TABLE calls; --", {})), "store.call");
  EXPECT_FALSE(Must(FindCall(store(), a_, "nobody")).has_value());
}

}  // namespace
}  // namespace coffer::store
