// SPDX-License-Identifier: Apache-2.0
#include "policy/manifest/diff.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "tests/unit/policy/manifest/manifest_text.h"

namespace coffer::policy {
namespace {

using ::testing::IsEmpty;

TEST(ManifestDiff, SaysWhatWidenedAndWhatNarrowed) {
  using Kind = ChangeKind;
  struct Case {
    const char* what;
    Kind kind;
    std::function<void(Manifest&)> change;
  };
  const Case cases[] = {
      {"tool.version", Kind::kChanged, [](Manifest& m) { m.tool.version = "2"; }},
      {"tool.effect", Kind::kWidened, [](Manifest& m) { m.tool.effect = Effect::kReadOnly; }},
      {"tool.effect", Kind::kNarrowed, [](Manifest& m) { m.tool.effect = Effect::kPrivileged; }},
      {"input.schema", Kind::kChanged, [](Manifest& m) { m.input_schema = "{}"; }},
      {"run.runtime", Kind::kChanged, [](Manifest& m) { m.run.runtime = "sh"; }},
      {"run", Kind::kChanged, [](Manifest& m) { m.run.argv.pop_back(); }},
      {"run", Kind::kChanged, [](Manifest& m) { m.run.paths.clear(); }},
      {"isolation.level", Kind::kWidened, [](Manifest& m) { m.isolation.level = Level::kProcess; }},
      {"isolation.floor", Kind::kWidened,
       [](Manifest& m) { m.isolation.floor.Remove(Layer::kNetns); }},
      {"isolation.floor", Kind::kNarrowed,
       [](Manifest& m) { m.isolation.floor.Add(Layer::kPidns); }},
      {"isolation.syscalls", Kind::kWidened,
       [](Manifest& m) { m.isolation.syscalls = SyscallProfile::kCompat; }},
      {"limits.memory", Kind::kWidened, [](Manifest& m) { m.limits.memory *= 2; }},
      {"limits.wall", Kind::kNarrowed, [](Manifest& m) { m.limits.wall /= 2; }},
      {"limits.connections", Kind::kNarrowed, [](Manifest& m) { m.connections = 1; }},
      {"files.workspace", Kind::kWidened,
       [](Manifest& m) { m.workspace = Workspace::kSessionWrite; }},
      {"files.mount /srv/invoices", Kind::kNarrowed,
       [](Manifest& m) { m.mounts.erase(m.mounts.begin()); }},
      {"files.mount /srv/invoices", Kind::kWidened,
       [](Manifest& m) { m.mounts[0].mode = MountMode::kWrite; }},
      {"files.mount /srv/invoices", Kind::kChanged,
       [](Manifest& m) { m.mounts[0].at = "/elsewhere"; }},
      {"files.mount /srv/new", Kind::kWidened,
       [](Manifest& m) { m.mounts.push_back({"/srv/new", "/new", MountMode::kRead, false, {}}); }},
      {"network.allow POST api.example.com:443-443/v1/invoices/**", Kind::kWidened,
       [](Manifest& m) { m.network[0].methods.emplace_back("POST"); }},
      {"network.allow GET api.example.com:443-443/v1/invoices/**", Kind::kChanged,
       [](Manifest& m) { m.network[0].tls = TlsMode::kSplice; }},
      {"network.allow GET api.example.com:443-443/v1/invoices/**", Kind::kChanged,
       [](Manifest& m) { m.network[0].bytes_out = 1; }},
      {"network.allow GET api.example.com:443-443/v1/invoices/**", Kind::kNarrowed,
       [](Manifest& m) { m.network.clear(); }},
      {"credentials billing", Kind::kChanged, [](Manifest& m) { m.credentials[0].scope = "all"; }},
      {"credentials billing", Kind::kNarrowed, [](Manifest& m) { m.credentials.clear(); }},
      {"approval.when", Kind::kWidened,
       [](Manifest& m) { m.approval.when = ApprovalWhen::kNever; }},
      {"approval.when", Kind::kNarrowed,
       [](Manifest& m) { m.approval.when = ApprovalWhen::kAlways; }},
      {"approval.quorum", Kind::kWidened, [](Manifest& m) { m.approval.quorum = 1; }},
      {"approval.window", Kind::kNarrowed,
       [](Manifest& m) { m.approval.window = std::chrono::seconds(5); }},
      {"rate.calls", Kind::kChanged, [](Manifest& m) { m.rate.calls.clear(); }},
      {"rate.burst", Kind::kWidened, [](Manifest& m) { m.rate.burst = 0; }},
      {"rate.concurrency", Kind::kNarrowed, [](Manifest& m) { m.rate.concurrency = 1; }},
      {"examples, reasons or order", Kind::kChanged, [](Manifest& m) { m.allow_examples.clear(); }},
  };
  const Manifest before = MustParse(kEverything);
  EXPECT_THAT(DiffManifests(before, before), IsEmpty());
  for (const Case& c : cases) {
    Manifest after = before;
    c.change(after);
    const std::vector<ManifestChange> changes = DiffManifests(before, after);
    ASSERT_EQ(changes.size(), 1U) << c.what;
    EXPECT_EQ(changes[0].what, c.what);
    EXPECT_EQ(changes[0].kind, c.kind) << c.what;
  }
}

}  // namespace
}  // namespace coffer::policy
