// SPDX-License-Identifier: Apache-2.0
//
// Tenants, and the table over every function of the store: what one tenant has, another neither sees nor changes.
#include "store/tenant.h"

#include <functional>

#include "base/hash.h"
#include "store/breaker.h"
#include "store/objects.h"
#include "tests/support/store_state.h"
#include "tests/unit/store/store_fixture.h"

namespace coffer::store {
namespace {

TEST(TenantIdTest, Names) {
  for (const std::string& good :
       {std::string("a"), std::string("0"), std::string("acme-eu-1"), std::string(63, 'x')}) {
    EXPECT_EQ(Must(TenantId::Parse(good)).name(), good);
  }
  for (const std::string& bad :
       {std::string(), std::string("-a"), std::string("A"), std::string("a_b"), std::string("a/b"),
        std::string(".."), std::string("a b"), std::string("\xc3\xa4"), std::string(64, 'x'),
        std::string("a\0b", 3)}) {
    EXPECT_EQ(Code(TenantId::Parse(bad)), "policy.tenant") << bad;
  }
  EXPECT_EQ(TenantId::Local().name(), "local");
}

class TenantTest : public StoreTest {};

TEST_F(TenantTest, HaveNumbersThatAreNotReused) {
  const Tenant first = Must(EnsureTenant(store(), Id("x")));
  EXPECT_EQ(Must(EnsureTenant(store(), Id("x"))).number, first.number);
  const Tenant second = Must(EnsureTenant(store(), Id("y")));
  EXPECT_EQ(second.number, first.number + 1);
  Reopen();
  EXPECT_EQ(Must(FindTenant(store(), Id("y")))->number, second.number);
  EXPECT_FALSE(Must(FindTenant(store(), Id("z"))).has_value());
  EXPECT_EQ(Must(ListTenants(store(), AllTenants())).size(), 4u);
}

// Tenant A has one of everything. Each line below is a function called as tenant B with A's names and ids; it says what B
// must see. The control is the same line as A, which must see it or succeed. A function that takes a TenantId and is not
// here fails review: keep the list complete.
class IsolationTest : public StoreTest {
 protected:
  IsolationTest() {
    session_ = Must(CreateSession(store(), a_, {.agent = "bot", .budget = {}})).id;
    key_ = Must(CreateKey(store(), a_, {Role::kAgent, "bot", Nanos(0)})).key.id;
    AdmitRequest request = Request();
    request.identity.session_id = session_;
    request.idempotency_key = "k";
    request.request_hash = "h";
    request.args_hash = "sha256:args";
    request.quotas.tool.calls = {{1, hours(1)}};
    finished_ = Admitted(request);
    Must(RecordCall(
        store(), a_, finished_,
        {.envelope_id = HashOf(kEnvelope), .args_redacted = "{}", .envelope = kEnvelope}));
    Start(finished_);
    CallEnd end;
    end.outcome = Outcome::kError;
    end.receipt = "receipt";
    end.result = "result";
    end.transcript = "transcript";
    Must(FinishCall(store(), a_, finished_, end));
    // Once more without a key: from the third time on it waits.
    request.idempotency_key.clear();
    request.quotas = {};
    const std::string again = Admitted(request);
    Record(again);
    Start(again);
    Must(FinishCall(store(), a_, again, {.outcome = Outcome::kError}));
    Must(SetSwitch(store(), a_, {SwitchKind::kAgent, "stopped", true, "olga", "why"}));
  }
  std::string NewCall(CallState state) {
    AdmitRequest request = Request();
    request.identity.session_id = session_;
    const std::string id = Admitted(request);
    if (state >= CallState::kRecorded) {
      Record(id);
    }
    if (state >= CallState::kStarted) {
      Start(id);
    }
    return id;
  }

  static constexpr const char* kEnvelope = R"({"level":"container"})";
  std::string session_, key_, finished_;
};

TEST_F(IsolationTest, NoFunctionCrossesTenants) {
  using Sees =
      std::function<bool(const TenantId&)>;  // whether the tenant got anything or changed anything
  CallEnd end;
  end.outcome = Outcome::kError;
  const auto admits = [&](const TenantId& tenant, auto change) {
    AdmitRequest request = Request("another-tool");
    request.identity.tenant = tenant;
    change(request);
    return Admit(request);
  };
  const auto denied = [](const TenantId& tenant) {
    CallIdentity call;
    call.tenant = tenant;
    call.tool = "a-tool";
    call.agent = "z";
    call.call_id = "denied";
    return call;
  };
  const std::pair<const char*, Sees> functions[] = {
      {"FindCall",
       [&](const TenantId& t) { return Must(FindCall(store(), t, finished_)).has_value(); }},
      {"FindReceipt",
       [&](const TenantId& t) { return Must(FindReceipt(store(), t, finished_)).has_value(); }},
      {"FindResult",
       [&](const TenantId& t) {
         return Must(test::FindResult(store(), t, finished_)).has_value();
       }},
      {"FindArgs",
       [&](const TenantId& t) { return Must(FindArgs(store(), t, finished_)).has_value(); }},
      {"FindObject",
       [&](const TenantId& t) {
         return Must(FindObject(store(), t, HashOf(kEnvelope))).has_value();
       }},
      {"HasTranscriptsBefore",
       [&](const TenantId& t) {
         return Must(HasTranscriptsBefore(store(), t, store().Now() + hours(1)));
       }},
      {"ListCalls",
       [&](const TenantId& t) { return !Must(ListCalls(store(), t, {}, {})).rows.empty(); }},
      {"ListCalls by session",
       [&](const TenantId& t) {
         return !Must(ListCalls(store(), t, {.session_id = session_}, {})).rows.empty();
       }},
      {"ListCalls after a cursor",
       [&](const TenantId& t) {
         return !Must(ListCalls(store(), t, {}, {10, "~~"})).rows.empty();
       }},
      {"OpenCalls",
       [&](const TenantId& t) {
         NewCall(CallState::kAdmitted);
         return !Must(OpenCalls(store(), t)).empty();
       }},
      {"GateCall",
       [&](const TenantId& t) {
         return GateCall(store(), t, NewCall(CallState::kAdmitted), {}).ok();
       }},
      {"RecordCall",
       [&](const TenantId& t) {
         return RecordCall(store(), t, NewCall(CallState::kAdmitted), {}).ok();
       }},
      {"StartCall",
       [&](const TenantId& t) {
         return StartCall(store(), t, NewCall(CallState::kRecorded), {}).ok();
       }},
      {"RecordAndStartCall",
       [&](const TenantId& t) {
         return RecordAndStartCall(store(), t, NewCall(CallState::kAdmitted), {}, {}).ok();
       }},
      {"FinishCall",
       [&](const TenantId& t) {
         return FinishCall(store(), t, NewCall(CallState::kStarted), end).ok();
       }},
      {"LoseCall",
       [&](const TenantId& t) {
         return LoseCall(store(), t, NewCall(CallState::kStarted), end).ok();
       }},
      {"RefuseCall",
       [&](const TenantId& t) {
         return RefuseCall(store(), t, NewCall(CallState::kAdmitted), end).ok();
       }},
      {"AddReceipt",
       [&](const TenantId& t) {
         const std::string id = NewCall(CallState::kAdmitted);
         Must(RefuseCall(store(), a_, id, end));
         return AddReceipt(store(), t, id, "r").ok();
       }},
      {"AdmitCall: idempotency key",
       [&](const TenantId& t) {
         return admits(t, [](AdmitRequest& r) {
                  r.idempotency_key = "k";
                  r.request_hash = "h";
                }).verdict == AdmitVerdict::kReplay;
       }},
      {"AdmitCall: a conflict",
       [&](const TenantId& t) {
         return admits(t, [](AdmitRequest& r) {
                  r.idempotency_key = "k";
                  r.request_hash = "h2";
                }).verdict == AdmitVerdict::kKeyConflict;
       }},
      {"AdmitCall: session",
       [&](const TenantId& t) {
         return admits(t, [&](AdmitRequest& r) { r.identity.session_id = session_; }).verdict ==
                AdmitVerdict::kAdmitted;
       }},
      {"AdmitCall: parent",
       [&](const TenantId& t) {
         const std::string parent = NewCall(CallState::kStarted);
         return admits(t, [&](AdmitRequest& r) {
                  r.identity.parent_id = parent;
                  r.identity.session_id = t == a_ ? session_ : "";
                }).verdict == AdmitVerdict::kAdmitted;
       }},
      {"AdmitCall: rates",
       [&](const TenantId& t) {
         return admits(t, [&](AdmitRequest& r) {
                  r.identity.tool = "python";
                  r.quotas.tool.calls = {{1, hours(1)}};
                }).verdict == AdmitVerdict::kRateLimited;
       }},
      {"AdmitCall: concurrency",
       [&](const TenantId& t) {
         NewCall(CallState::kStarted);
         const Admission admission = admits(t, [&](AdmitRequest& r) {
           r.identity.tool = "python";
           r.quotas.tenant.concurrency = 1;
         });
         if (admission.verdict == AdmitVerdict::kAdmitted) {
           Must(RefuseCall(store(), t, admission.call_id, end));
         }
         return admission.verdict == AdmitVerdict::kRateLimited;
       }},
      {"AdmitCall: retries",
       [&](const TenantId& t) {
         return admits(t, [&](AdmitRequest& r) {
                  r.identity.tool = "python";
                  r.args_hash = "sha256:args";
                  r.quotas.retry_cooldown = hours(1);
                }).verdict == AdmitVerdict::kRetryTooSoon;
       }},
      {"NoteProgress",
       [&](const TenantId& t) {
         Must(NoteProgress(store(), t, "bot"));
         const Admission retry = admits(a_, [&](AdmitRequest& r) {
           r.identity.tool = "python";
           r.args_hash = "sha256:args";
           r.quotas.retry_cooldown = hours(1);
         });
         if (retry.verdict == AdmitVerdict::kAdmitted) {
           Must(RefuseCall(store(), a_, retry.call_id, end));
         }
         return retry.verdict == AdmitVerdict::kAdmitted;
       }},
      {"AdmitCall: budget",
       [&](const TenantId& t) {
         return admits(t, [&](AdmitRequest& r) {
                  r.identity.tool = "python";
                  r.quotas.tenant_budget.calls = Must(test::TenantSpent(store(), a_)).calls;
                }).verdict == AdmitVerdict::kBudgetSpent;
       }},
      {"AdmitCall: switch",
       [&](const TenantId& t) {
         return admits(t, [](AdmitRequest& r) { r.identity.agent = "stopped"; }).verdict ==
                AdmitVerdict::kSwitchedOff;
       }},
      {"FindSession",
       [&](const TenantId& t) { return Must(FindSession(store(), t, session_)).has_value(); }},
      {"ListSessions",
       [&](const TenantId& t) {
         return !Must(ListSessions(store(), t, SessionFilter::kAll, {})).rows.empty();
       }},
      {"ListKeys", [&](const TenantId& t) { return !Must(ListKeys(store(), t, {})).rows.empty(); }},
      {"FindSwitch",
       [&](const TenantId& t) {
         return Must(FindSwitch(store(), t, {"x", "stopped", ""})).has_value();
       }},
      {"ListSwitches", [&](const TenantId& t) { return !Must(ListSwitches(store(), t)).empty(); }},
      {"SetSwitch",
       [&](const TenantId& t) {
         Must(SetSwitch(store(), t, {SwitchKind::kTool, "a-tool", true, "x", "y"}));
         const bool stopped = Must(FindSwitch(store(), a_, {"a-tool", "z", ""})).has_value();
         Must(SetSwitch(store(), t, {SwitchKind::kTool, "a-tool", false, "x", "y"}));
         return stopped;
       }},
      {"CountDenied",
       [&](const TenantId& t) {
         Must(CountDenied(store(), denied(t), {1, hours(1), hours(1)}));
         const bool paused = Must(IsSwitchedOn(store(), a_, SwitchKind::kBreaker, "a-tool:z"));
         Must(SetSwitch(store(), t, {SwitchKind::kBreaker, "a-tool:z", false, "x", ""}));
         return paused;
       }},
      {"SetSwitch: breaker",
       [&](const TenantId& t) {
         Must(CountDenied(store(), denied(a_), {1, hours(1), hours(1)}));
         Must(SetSwitch(store(), t, {SwitchKind::kBreaker, "a-tool:z", false, "x", ""}));
         return !Must(IsSwitchedOn(store(), a_, SwitchKind::kBreaker, "a-tool:z"));
       }},
      {"FinishCleanup",
       [&](const TenantId& t) {
         NewCall(CallState::kAdmitted);
         Reopen();
         for (const RecoveredCall& one : store().recovered()) {
           Must(FinishCleanup(store(), t, one.call.identity.call_id));
         }
         Reopen();
         return store().recovered().empty();
       }},
      {"Prune",
       [&](const TenantId& t) {
         const Nanos was = ahead_;
         Pass(hours(24 * 400));
         Must(Prune(store(), t, {}));
         ahead_ = was;
         return !Must(FindCall(store(), a_, finished_)).has_value();
       }},
      {"ExtendSession",
       [&](const TenantId& t) {
         return Must(ExtendSession(store(), t, session_, hours(2), hours(48))).has_value();
       }},
      {"EndSession", [&](const TenantId& t) { return EndSession(store(), t, session_, "x").ok(); }},
      {"RevokeKey", [&](const TenantId& t) { return RevokeKey(store(), t, key_).ok(); }},
  };
  for (const auto& [name, sees] : functions) {
    EXPECT_FALSE(sees(b_)) << name << " lets tenant B at what is A's";
    // What B did under its own name must not stay for the next line.
    for (const Call& call : Must(OpenCalls(store(), b_))) {
      if (call.state == CallState::kAdmitted) {
        Must(RefuseCall(store(), b_, call.identity.call_id, end, KeyFate::kRelease));
      }
    }
    EXPECT_TRUE(sees(a_)) << name << ": the control saw nothing, so the line above shows nothing";
  }
  EXPECT_EQ(Must(test::TenantSpent(store(), Id("tenant-b"))).cpu, Nanos(0));
}

}  // namespace
}  // namespace coffer::store
