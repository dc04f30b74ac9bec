// SPDX-License-Identifier: Apache-2.0
#include "policy/narrowing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <functional>
#include <sstream>

namespace coffer::policy {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Narrowing, LimitsFloorsAndLevelsTakeTheStricter) {
  Envelope parent;
  Envelope child;
  parent.level = Level::kAuto;
  child.level = Level::kProcess;
  parent.floor = {Layer::kSeccomp};
  child.floor = {Layer::kNetns};
  parent.limits.memory = 10;
  child.limits.cpu = Nanos(5);
  parent.syscalls = SyscallProfile::kStrict;
  child.tty = true;
  child.uid = 0;
  const Envelope both = *Intersect(parent, child);
  EXPECT_EQ(both.level, Level::kAuto);
  EXPECT_EQ(both.floor, (LayerSet{Layer::kSeccomp, Layer::kNetns}));
  EXPECT_EQ(both.limits.memory, 10U);
  EXPECT_EQ(both.limits.cpu, Nanos(5));
  EXPECT_EQ(both.syscalls, SyscallProfile::kStrict);
  EXPECT_FALSE(both.tty);
  EXPECT_EQ(both.uid, 1000U);
}

TEST(Narrowing, TheNetworkIsWhatBothReach) {
  Envelope parent;
  Envelope child;
  parent.network = {"@a", "b"};
  child.network = {"b", "c"};
  parent.connections = 3;
  Envelope both = *Intersect(parent, child);
  EXPECT_THAT(both.network, ElementsAre("b"));
  EXPECT_EQ(both.connections, 3U);
  EXPECT_TRUE(Covers(parent, both) && Covers(child, both));
  EXPECT_THAT(WiderThan(parent, child), ElementsAre("reaching c", "more connections"));
  child.connections = 2;
  EXPECT_EQ(Intersect(parent, child)->connections, 2U);
  EXPECT_THAT(Intersect({}, child)->network, IsEmpty());
}

TEST(Narrowing, MountsKeepWhatBothShow) {
  Envelope parent;
  Envelope child;
  parent.mounts = {{"/srv/a", "/x", Access::kRead}, {"/srv/b/deep", "/y", Access::kWrite}};
  child.mounts = {{"/srv/a/b", "/data", Access::kWrite},
                  {"/srv/b", "/more", Access::kWrite},
                  {"/srv/ab", "/no", Access::kRead},
                  {"/srv/c", "/nope", Access::kRead}};
  EXPECT_THAT(Intersect(parent, child)->mounts,
              ElementsAre(Mount{"/srv/a/b", "/data", Access::kRead},
                          Mount{"/srv/b/deep", "/more/deep", Access::kWrite}));
  child.mounts = {{"/", "/root", Access::kRead, true}};
  EXPECT_THAT(Intersect(parent, child)->mounts,
              ElementsAre(Mount{"/srv/a", "/root/srv/a", Access::kRead},
                          Mount{"/srv/b/deep", "/root/srv/b/deep", Access::kRead}));
  EXPECT_THAT(
      Intersect(child, parent)->mounts,
      ElementsAre(Mount{"/srv/a", "/x", Access::kRead}, Mount{"/srv/b/deep", "/y", Access::kRead}));
  parent.mounts.clear();
  EXPECT_THAT(Intersect(parent, child)->mounts, IsEmpty());
}

TEST(Narrowing, TheSessionsWorkspaceIsSharedOnlyIfBothHaveIt) {
  Envelope parent;
  Envelope child;
  child.workspace = "/s";
  EXPECT_EQ(Intersect(parent, child)->workspace, "");
  parent.workspace = "/s";
  parent.workspace_access = Access::kRead;
  EXPECT_EQ(Intersect(parent, child)->workspace, "/s");
  EXPECT_EQ(Intersect(parent, child)->workspace_access, Access::kRead);
  parent.workspace = "/other";
  EXPECT_EQ(Intersect(parent, child)->workspace, "");
}

TEST(Narrowing, NothingInCommonIsARefusal) {
  Envelope parent;
  Envelope child;
  parent.runtimes = {"sh"};
  EXPECT_THAT(Intersect(parent, child)->runtimes, ElementsAre("sh"));
  child.runtimes = {"python3"};
  ASSERT_FALSE(Intersect(parent, child).ok());
  EXPECT_EQ(Intersect(parent, child).error().code, "policy.narrow");
  child.runtimes.clear();
  child.syscalls = SyscallProfile::kImported;
  child.imported_seccomp = "{}";
  EXPECT_FALSE(Intersect(parent, child).ok());  // default and imported cannot be combined
  parent.syscalls = SyscallProfile::kCompat;
  EXPECT_EQ(Intersect(parent, child)->imported_seccomp, "{}");
  EXPECT_EQ(Intersect(child, parent)->imported_seccomp, "{}");
}

TEST(Narrowing, CoversSaysWhatIsWider) {
  const Envelope outer;
  Envelope inner;
  EXPECT_TRUE(Covers(outer, inner));
  inner.limits.memory *= 2;
  inner.mounts = {{"/srv/x", "/x", Access::kWrite}};
  inner.inputs = {"/srv/y"};
  inner.tty = true;
  EXPECT_THAT(WiderThan(outer, inner),
              ElementsAre("more memory", "writing of /srv/x", "reading of /srv/y", "a terminal"));
}

// Few values, so that two envelopes often have something in common.
rc::Gen<Envelope> AnyEnvelope() {
  return rc::gen::exec([] {
    Envelope e;
    e.level = *rc::gen::element(Level::kProcess, Level::kContainer, Level::kAuto);
    for (const Layer layer : {Layer::kNetns, Layer::kSeccomp, Layer::kLandlock}) {
      if (*rc::gen::arbitrary<bool>()) {
        e.floor.Add(layer);
      }
    }
    const auto cap = [] { return static_cast<uint64_t>(*rc::gen::inRange(1, 5)); };
    e.limits = {Nanos(cap()), Nanos(cap()), cap(), cap(), cap(), cap(), cap(), cap(), cap(), cap()};
    const auto paths = [] {
      return *rc::gen::element<std::string>("/", "/srv", "/srv/a", "/srv/a/b", "/srv/ab", "/opt/c");
    };
    const int mounts = *rc::gen::inRange(0, 4);
    for (int i = 0; i < mounts; ++i) {
      e.mounts.push_back({paths(), "/m" + std::to_string(i),
                          *rc::gen::element(Access::kRead, Access::kWrite),
                          *rc::gen::arbitrary<bool>()});
    }
    if (*rc::gen::arbitrary<bool>()) {
      e.inputs.push_back(paths() + "/f");
    }
    for (const char* runtime : {"sh", "python3"}) {
      if (*rc::gen::arbitrary<bool>()) {
        e.runtimes.emplace_back(runtime);
      }
    }
    e.workspace = *rc::gen::element<std::string>("", "/s/1", "/s/2");
    e.workspace_access =
        e.workspace.empty() ? Access::kWrite : *rc::gen::element(Access::kRead, Access::kWrite);
    e.uid = *rc::gen::element(0U, 1000U, 1001U);
    e.syscalls = *rc::gen::element(SyscallProfile::kStrict, SyscallProfile::kDefault,
                                   SyscallProfile::kCompat, SyscallProfile::kImported);
    if (e.syscalls == SyscallProfile::kImported) {
      e.imported_seccomp = *rc::gen::element<std::string>("{}", "{ }");
    }
    e.tty = *rc::gen::arbitrary<bool>();
    return e;
  });
}

// The same thousand cases every time.
void CheckProperty(const std::function<void()>& property) {
  rc::detail::TestParams params;
  params.seed = 20260715;
  params.maxSuccess = 1000;
  const rc::detail::TestResult result =
      rc::detail::checkTestable(property, rc::detail::TestMetadata(), params);
  rc::detail::SuccessResult success;
  if (!result.match(success)) {
    std::ostringstream text;
    rc::detail::printResultMessage(result, text);
    ADD_FAILURE() << text.str();
  }
}

TEST(NarrowingProperty, NeverWiderThanEither) {
  CheckProperty([] {
    const Envelope a = *AnyEnvelope();
    const Envelope b = *AnyEnvelope();
    const Result<Envelope> both = Intersect(a, b);
    if (both.ok()) {
      RC_ASSERT(WiderThan(a, *both) == std::vector<std::string>());
      RC_ASSERT(WiderThan(b, *both) == std::vector<std::string>());
    }
  });
}

TEST(NarrowingProperty, KeepsWhatBothAllow) {
  // Without this, an Intersect that grants nothing would pass.
  CheckProperty([] {
    const Envelope a = *AnyEnvelope();
    const Envelope b = *AnyEnvelope();
    if (Covers(a, b)) {
      const Result<Envelope> both = Intersect(a, b);
      RC_ASSERT(both.ok());
      RC_ASSERT(Covers(*both, b));
    }
    RC_ASSERT(Covers(a, a));
    RC_ASSERT(Covers(*Intersect(a, a), a));
  });
}

TEST(NarrowingProperty, AChainOnlyGetsNarrower) {
  CheckProperty([] {
    std::vector<Envelope> chain;
    Envelope effective = *AnyEnvelope();
    chain.push_back(effective);
    for (int i = 0; i < 4; ++i) {
      const Envelope next = *AnyEnvelope();
      Result<Envelope> narrowed = Intersect(effective, next);
      if (!narrowed.ok()) {
        return;
      }
      chain.push_back(next);
      effective = *narrowed;
      for (const Envelope& ancestor : chain) {
        RC_ASSERT(Covers(ancestor, effective));
      }
    }
  });
}

}  // namespace
}  // namespace coffer::policy
