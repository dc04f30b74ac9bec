// SPDX-License-Identifier: Apache-2.0
#include "store/switches.h"

#include "tests/unit/store/store_fixture.h"

namespace coffer::store {
namespace {

class SwitchesTest : public StoreTest {
 protected:
  bool Stopped(const TenantId& tenant, const SwitchSubject& subject) {
    const bool found = Must(FindSwitch(store(), tenant, subject)).has_value();
    AdmitRequest request;
    request.identity.tenant = tenant;
    request.identity.tool = subject.tool;
    request.identity.agent = subject.agent;
    request.identity.session_id = subject.session;
    const bool refused = Admit(request).verdict == AdmitVerdict::kSwitchedOff;
    EXPECT_EQ(found, refused) << "admission and the killer must agree";
    return found;
  }
  SwitchChange Change(SwitchKind kind, const std::string& name, bool on = true) {
    return {kind, name, on, "olga", "incident 7"};
  }
};

TEST_F(SwitchesTest, EachKindStopsItsOwn) {
  const SwitchSubject subject{"python", "bot", "s-1"};
  struct Case {
    SwitchKind kind;
    std::string name;
    SwitchSubject not_stopped;
  };
  const Case cases[] = {
      {SwitchKind::kTool, "python", {"bash", "bot", "s-1"}},
      {SwitchKind::kDisabledTool, "python", {"bash", "bot", "s-1"}},
      {SwitchKind::kAgent, "bot", {"python", "other", "s-1"}},
      {SwitchKind::kSession, "s-1", {"python", "bot", "s-2"}},
  };
  for (const Case& one : cases) {
    EXPECT_FALSE(Stopped(a_, subject));
    Must(SetSwitch(store(), a_, Change(one.kind, one.name)));
    EXPECT_TRUE(Stopped(a_, subject)) << SwitchKindName(one.kind);
    EXPECT_FALSE(Stopped(a_, one.not_stopped)) << SwitchKindName(one.kind);
    EXPECT_FALSE(Stopped(b_, subject)) << "another tenant's";
    Must(SetSwitch(store(), a_, Change(one.kind, one.name, false)));
    EXPECT_FALSE(Stopped(a_, subject));
  }
}

TEST_F(SwitchesTest, ATenantIsStoppedAsAWhole) {
  Must(SetSwitch(store(), a_, Change(SwitchKind::kTenant, "")));
  EXPECT_TRUE(Stopped(a_, {"any", "body", ""}));
  EXPECT_FALSE(Stopped(b_, {"any", "body", ""}));
  Must(SetSwitch(store(), AllTenants(), Change(SwitchKind::kTenant, "")));
  EXPECT_TRUE(Stopped(b_, {"any", "body", ""}));
}

TEST_F(SwitchesTest, ForAllTenants) {
  Must(SetSwitch(store(), AllTenants(), Change(SwitchKind::kDisabledTool, "python")));
  EXPECT_TRUE(Stopped(a_, {"python", "bot", ""}));
  EXPECT_TRUE(Stopped(b_, {"python", "bot", ""}));
  EXPECT_FALSE(Stopped(b_, {"bash", "bot", ""}));
  Must(SetSwitch(store(), AllTenants(), Change(SwitchKind::kTool, "python")));
  Must(SetSwitch(store(), AllTenants(), Change(SwitchKind::kTool, "python", false)));
  EXPECT_TRUE(Stopped(a_, {"python", "bot", ""})) << "still disabled";
}

TEST_F(SwitchesTest, SurviveARestartWithWhoAndWhy) {
  Must(SetSwitch(store(), a_, Change(SwitchKind::kAgent, "bot")));
  Reopen();
  const Switch found = Must(FindSwitch(store(), a_, {"python", "bot", ""})).value();
  EXPECT_EQ(found.who, "olga");
  EXPECT_EQ(found.why, "incident 7");
  EXPECT_EQ(found.at, store().Now());
  EXPECT_EQ(found.tenant, a_);
}

TEST_F(SwitchesTest, TheGenerationShowsEveryChangeAlsoOfOthers) {
  const int64_t before = Must(SwitchGeneration(store()));
  EXPECT_EQ(Must(SwitchGeneration(store())), before);
  Store other = Must(Store::Open(Path(), Options()));
  Must(SetSwitch(other, b_, Change(SwitchKind::kTool, "x")));
  EXPECT_EQ(Must(SwitchGeneration(store())), before + 1);
  Must(SetSwitch(other, b_, Change(SwitchKind::kTool, "x", false)));
  EXPECT_EQ(Must(SwitchGeneration(store())), before + 2);
}

TEST_F(SwitchesTest, ATenantSeesWhatStopsItAndNotWhy) {
  Must(SetSwitch(store(), b_, Change(SwitchKind::kTool, "secret-tool")));
  Must(SetSwitch(store(), AllTenants(), Change(SwitchKind::kTool, "python")));
  Must(SetSwitch(store(), a_, Change(SwitchKind::kAgent, "bot")));
  const std::vector<Switch> seen = Must(ListSwitches(store(), a_));
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen[0].tenant, std::nullopt);
  EXPECT_EQ(seen[0].name, "python");
  EXPECT_EQ(seen[0].why, "");
  EXPECT_EQ(seen[1].why, "incident 7");
  EXPECT_EQ(Must(ListSwitches(store(), AllTenants())).size(), 3u);
}

TEST_F(SwitchesTest, NeedAName) {
  EXPECT_EQ(Code(SetSwitch(store(), a_, Change(SwitchKind::kTool, ""))), "policy.switch");
}

}  // namespace
}  // namespace coffer::store
