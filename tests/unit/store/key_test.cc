// SPDX-License-Identifier: Apache-2.0
#include "store/key.h"

#include <fstream>
#include <iterator>
#include <set>

#include "tests/unit/store/store_fixture.h"

namespace coffer::store {
namespace {

class KeyTest : public StoreTest {
 protected:
  NewKey Make(const TenantId& tenant, const KeyRequest& request) {
    return Must(CreateKey(store(), tenant, request));
  }
  KeyState State(const std::string& text) { return Must(CheckKey(store(), text)).state; }
};

TEST_F(KeyTest, SaysWhoIsAsking) {
  const NewKey made = Make(b_, {Role::kApprover, "ann", Nanos(0)});
  EXPECT_TRUE(made.text.starts_with("coffer_"));
  EXPECT_EQ(made.text.size(), 88u);
  Reopen();
  const KeyVerdict verdict = Must(CheckKey(store(), made.text));
  ASSERT_EQ(verdict.state, KeyState::kValid);
  EXPECT_EQ(verdict.key->id, made.key.id);
  EXPECT_EQ(verdict.key->tenant, b_);
  EXPECT_EQ(verdict.key->role, Role::kApprover);
  EXPECT_EQ(verdict.key->agent, "ann");
}

TEST_F(KeyTest, AnythingElseIsUnknown) {
  const std::string text = Make(a_, {Role::kAgent, "bot", Nanos(0)}).text;
  for (size_t i = 0; i < text.size(); ++i) {
    std::string wrong = text;
    wrong[i] = wrong[i] == '0' ? '1' : '0';
    EXPECT_EQ(State(wrong), KeyState::kUnknown) << i;
  }
  for (const std::string& wrong :
       {std::string(), text + "0", text.substr(0, text.size() - 1), " " + text, text + "\n",
        std::string("coffer_"), std::string(88, '_'), std::string(88, '\0')}) {
    EXPECT_EQ(State(wrong), KeyState::kUnknown);
  }
  EXPECT_EQ(State(text), KeyState::kValid);
}

TEST_F(KeyTest, TheTextIsNotInTheStore) {
  const NewKey made = Make(a_, {Role::kAgent, "bot", Nanos(0)});
  ASSERT_EQ(State(made.text), KeyState::kValid);
  const std::string secret = made.text.substr(made.text.size() - 64);
  bool found_id = false;
  for (const char* name : {"/coffer.db", "/coffer.db-wal", "/owners"}) {
    std::ifstream file(Path() + name, std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(file)), {});
    EXPECT_EQ(bytes.find(secret), std::string::npos) << name;
    found_id = found_id || bytes.find(made.key.id) != std::string::npos;
  }
  EXPECT_TRUE(found_id) << "the control: what is stored can be found this way";
}

TEST_F(KeyTest, ExpiresAndIsRevoked) {
  const NewKey short_lived = Make(a_, {Role::kAgent, "bot", hours(1)});
  const NewKey revoked = Make(a_, {Role::kAgent, "bot", Nanos(0)});
  EXPECT_EQ(State(short_lived.text), KeyState::kValid);
  Pass(hours(1));
  EXPECT_EQ(State(short_lived.text), KeyState::kExpired);
  EXPECT_EQ(State(revoked.text), KeyState::kValid);
  Must(RevokeKey(store(), a_, revoked.key.id));
  EXPECT_EQ(State(revoked.text), KeyState::kRevoked);
  const std::optional<Nanos> first = Must(CheckKey(store(), revoked.text)).key->revoked_at;
  ASSERT_TRUE(first.has_value());
  Pass(hours(1));
  Must(RevokeKey(store(), a_, revoked.key.id));
  EXPECT_EQ(Must(CheckKey(store(), revoked.text)).key->revoked_at, first);
}

TEST_F(KeyTest, SeesAllTenantsOnlyIfGrantedAndOnlyWhoLooksAfterThem) {
  const NewKey granted = Make(a_, {Role::kAuditor, "eve", Nanos(0), true});
  const NewKey plain = Make(a_, {Role::kOperator, "ann", Nanos(0)});
  Reopen();
  EXPECT_TRUE(Must(CheckKey(store(), granted.text)).key->all_tenants);
  EXPECT_FALSE(Must(CheckKey(store(), plain.text)).key->all_tenants);
  EXPECT_TRUE(Must(FindKey(store(), AllTenants{}, granted.key.id))->all_tenants);
  EXPECT_FALSE(Must(FindKey(store(), AllTenants{}, "0000000000000000")).has_value());
  for (const Role role : {Role::kAgent, Role::kApprover}) {
    EXPECT_FALSE(CreateKey(store(), a_, {role, "bot", Nanos(0), true}).ok());
  }
}

TEST_F(KeyTest, NobodyRevokesAnothersKey) {
  const NewKey made = Make(a_, {Role::kAgent, "bot", Nanos(0)});
  EXPECT_EQ(Code(RevokeKey(store(), b_, made.key.id)), "policy.key");
  EXPECT_EQ(State(made.text), KeyState::kValid);
}

TEST_F(KeyTest, TakesTheKeysThatItMadeAlong) {
  const auto by = [&](const TenantId& tenant, const std::string& maker) {
    KeyRequest request{Role::kOperator, "op", Nanos(0)};
    request.made_by = maker;
    return Make(tenant, request);
  };
  const NewKey thief = by(a_, "uid:0");
  const NewKey child = by(a_, thief.key.id);
  const NewKey gone = by(a_, thief.key.id);
  const NewKey grandchild = by(a_, gone.key.id);
  const NewKey sister = by(a_, "uid:0");
  const NewKey theirs = by(b_, thief.key.id);
  EXPECT_EQ(Must(FindKey(store(), AllTenants{}, child.key.id))->made_by, thief.key.id);
  // The control: alone.
  Must(RevokeKey(store(), a_, gone.key.id));
  EXPECT_EQ(State(grandchild.text), KeyState::kValid);
  const std::vector<std::string> made = Must(RevokeKeyAndMade(store(), a_, thief.key.id));
  EXPECT_EQ(std::set<std::string>(made.begin(), made.end()),
            (std::set<std::string>{child.key.id, grandchild.key.id}));
  for (const NewKey* key : {&thief, &child, &gone, &grandchild}) {
    EXPECT_EQ(State(key->text), KeyState::kRevoked);
  }
  EXPECT_EQ(State(sister.text), KeyState::kValid);
  EXPECT_EQ(State(theirs.text), KeyState::kValid) << "of another tenant, which no key can make";
  EXPECT_EQ(Code(RevokeKeyAndMade(store(), b_, sister.key.id)), "policy.key");
  EXPECT_TRUE(Must(RevokeKeyAndMade(store(), a_, thief.key.id)).empty()) << "once is enough";
  // A request that was let in before makes none after.
  KeyRequest late{Role::kOperator, "op", Nanos(0)};
  late.made_by = child.key.id;
  EXPECT_EQ(Code(CreateKey(store(), a_, late)), "policy.key");
}

// What a pruned key has made is found by its own maker.
TEST_F(KeyTest, APrunedKeyHandsOnWhatItMade) {
  const NewKey first = Make(a_, {Role::kOperator, "op", Nanos(0)});
  KeyRequest request{Role::kOperator, "op", hours(1)};
  request.made_by = first.key.id;
  const NewKey between = Make(a_, request);
  request = {Role::kOperator, "op", Nanos(0)};
  request.made_by = between.key.id;
  const NewKey last = Make(a_, request);
  Pass(hours(24 * 1000));
  Must(CheckKey(store(), last.text));
  EXPECT_EQ(Must(Prune(store(), AllTenants(), {})).api_keys, 1U);
  EXPECT_EQ(Must(FindKey(store(), AllTenants{}, last.key.id))->made_by, first.key.id);
  EXPECT_EQ(Must(RevokeKeyAndMade(store(), a_, first.key.id)),
            std::vector<std::string>{last.key.id});
}

TEST_F(KeyTest, ATenantHasAThousandLivingOnes) {
  const NewKey brief = Make(a_, {Role::kAgent, "bot", hours(1)});
  std::string last;
  for (uint64_t i = 1; i < kMostLivingKeys; ++i) {
    last = Make(a_, {Role::kAgent, "bot", Nanos(0)}).key.id;
  }
  const KeyRequest request{Role::kAgent, "bot", Nanos(0)};
  EXPECT_EQ(Code(CreateKey(store(), a_, request)), kKeyLimit);
  EXPECT_EQ(Code(CreateKey(store(), b_, request)), "") << "another tenant has its own";
  Must(RevokeKey(store(), a_, last));
  EXPECT_EQ(Code(CreateKey(store(), a_, request)), "") << "a revoked one does not count";
  EXPECT_EQ(Code(CreateKey(store(), a_, request)), kKeyLimit);
  Pass(hours(1));
  EXPECT_EQ(State(brief.text), KeyState::kExpired);
  EXPECT_EQ(Code(CreateKey(store(), a_, request)), "") << "nor an expired one";
}

TEST_F(KeyTest, NotesItsUseToTheMinute) {
  const NewKey made = Make(a_, {Role::kAgent, "bot", Nanos(0)});
  EXPECT_EQ(Must(ListKeys(store(), a_, {})).rows[0].last_used_at, std::nullopt);
  ASSERT_EQ(State(made.text), KeyState::kValid);
  const Nanos first = store().Now();
  Pass(seconds(59));
  ASSERT_EQ(State(made.text), KeyState::kValid);
  EXPECT_EQ(Must(ListKeys(store(), a_, {})).rows[0].last_used_at, first);
  Pass(seconds(1));
  ASSERT_EQ(State(made.text), KeyState::kValid);
  EXPECT_EQ(Must(ListKeys(store(), a_, {})).rows[0].last_used_at, store().Now());
}

TEST_F(KeyTest, TheFirstKeyIsMadeOnce) {
  const TenantId local = TenantId::Local();
  const KeyRequest request{Role::kAgent, "local", Nanos(0)};
  const std::optional<NewKey> first = Must(CreateFirstKey(store(), local, request));
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(State(first->text), KeyState::kValid);
  EXPECT_FALSE(Must(CreateFirstKey(store(), local, request)).has_value());
  Must(RevokeKey(store(), local, first->key.id));
  Reopen();
  EXPECT_FALSE(Must(CreateFirstKey(store(), local, request)).has_value())
      << "a revoked key does not come back by restarting";
}

TEST_F(KeyTest, IsListedInPagesNewestFirst) {
  std::vector<std::string> made;
  for (int i = 0; i < 5; ++i) {
    made.insert(made.begin(), Make(a_, {Role::kAgent, "bot", Nanos(0)}).key.id);
    Pass(seconds(1));
  }
  std::vector<std::string> seen;
  PageRequest page{2, ""};
  do {
    const Page<ApiKey> some = Must(ListKeys(store(), a_, page));
    EXPECT_LE(some.rows.size(), 2u);
    for (const ApiKey& key : some.rows) {
      seen.push_back(key.id);
    }
    page.cursor = some.next;
  } while (!page.cursor.empty());
  EXPECT_EQ(seen, made);
}

TEST_F(KeyTest, RefusesNamesThatCannotBePrinted) {
  for (const std::string& name : {std::string(), std::string("a b"), std::string("a\n"),
                                  std::string(129, 'a'), std::string("\xc3\xa4")}) {
    EXPECT_EQ(Code(CreateKey(store(), a_, {Role::kAgent, name, Nanos(0)})), "policy.agent");
  }
  EXPECT_EQ(Code(CreateKey(store(), Id("nobody"), {Role::kAgent, "bot", Nanos(0)})),
            "policy.tenant");
}

TEST_F(KeyTest, RolesHaveNames) {
  std::set<std::string_view> names;
  for (const Role role : {Role::kAgent, Role::kApprover, Role::kOperator, Role::kAuditor}) {
    EXPECT_EQ(FindRole(RoleName(role)), role);
    names.insert(RoleName(role));
    EXPECT_EQ(Make(a_, {role, "bot", Nanos(0)}).key.role, role);
  }
  EXPECT_EQ(names.size(), 4u);
  EXPECT_EQ(FindRole("root"), std::nullopt);
}

}  // namespace
}  // namespace coffer::store
