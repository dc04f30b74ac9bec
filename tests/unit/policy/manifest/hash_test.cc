// SPDX-License-Identifier: Apache-2.0
#include "policy/manifest/hash.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "tests/unit/policy/manifest/manifest_text.h"

namespace coffer::policy {
namespace {

TEST(ManifestHash, SpellingDoesNotMatter) {
  const std::string a =
      "[tool]\nname = \"x\"\nversion = \"1\"\n[run]\nruntime = \"sh\"\nargv = [\"cat\"]\nenv = { A "
      "= \"1\", B = \"2\" }\n"
      "[limits]\nmemory = \"256MiB\"\n[input.schema]\ntype = \"object\"\nproperties = { a = {}, b "
      "= {} }\n";
  const std::string b =
      "# the same\n[input]\nschema = { properties = { b = {}, a = {} }, type = 'object', "
      "additionalProperties = false }\n"
      "[run.env]\nB = '2'\nA = \"1\"\n[run]\nargv = [ 'cat', ]\nruntime = "
      "'''sh'''\n[tool]\nversion = '1'\nname = 'x'\n";
  EXPECT_EQ(CanonicalForm(MustParse(a)), CanonicalForm(MustParse(b)));
  EXPECT_EQ(ManifestHash(MustParse(a)), ManifestHash(MustParse(b)));
  EXPECT_EQ(ManifestHash(MustParse(a)).size(), 71U);
}

TEST(ManifestHash, EveryValueMatters) {
  const std::function<void(Manifest&)> changes[] = {
      [](Manifest& m) { m.tool.name += "x"; },
      [](Manifest& m) { m.tool.version += "x"; },
      [](Manifest& m) { m.tool.owner += "x"; },
      [](Manifest& m) { m.tool.summary += "x"; },
      [](Manifest& m) { m.tool.effect = Effect::kPrivileged; },
      [](Manifest& m) { m.input_schema = "{}"; },
      [](Manifest& m) { m.run.runtime = "node"; },
      [](Manifest& m) { m.run.argv[1].words[0].text = "-E"; },
      [](Manifest& m) { m.run.argv[1].words[0].kind = WordKind::kParameter; },
      [](Manifest& m) { m.run.argv[2].group = false; },
      [](Manifest& m) { m.run.env[0].second.text = "x"; },
      [](Manifest& m) { m.run.stdin_word.reset(); },
      [](Manifest& m) { m.run.cwd = "/tmp"; },
      [](Manifest& m) { m.run.paths[0].access = Access::kWrite; },
      [](Manifest& m) { m.run.paths[0].mount = "/drafts"; },
      [](Manifest& m) { m.isolation.level = Level::kProcess; },
      [](Manifest& m) { m.isolation.floor.Remove(Layer::kSeccomp); },
      [](Manifest& m) { m.isolation.syscalls = SyscallProfile::kCompat; },
      [](Manifest& m) { m.limits.cpu += Nanos(1); },
      [](Manifest& m) { ++m.limits.tmp; },
      [](Manifest& m) { ++m.connections; },
      [](Manifest& m) { m.workspace = Workspace::kFresh; },
      [](Manifest& m) { m.mounts[0].host = "/srv/other"; },
      [](Manifest& m) { m.mounts[0].mode = MountMode::kWrite; },
      [](Manifest& m) { m.mounts[0].dangerous = true; },
      [](Manifest& m) { m.network[0].host = "b.example.com"; },
      [](Manifest& m) { m.network[0].ports[0].last = 444; },
      [](Manifest& m) { m.network[0].methods[0] = "POST"; },
      [](Manifest& m) { m.network[0].paths[0] = "/**"; },
      [](Manifest& m) { m.network[0].rate.reset(); },
      [](Manifest& m) { m.network[0].tls = TlsMode::kSplice; },
      [](Manifest& m) { ++m.network[0].bytes_out; },
      [](Manifest& m) { ++m.network[0].bytes_in; },
      [](Manifest& m) { ++m.network[0].connections; },
      [](Manifest& m) { ++m.network[0].time; },
      [](Manifest& m) { m.network[0].ask = true; },
      [](Manifest& m) { m.credentials[0].scope = "all"; },
      [](Manifest& m) { m.credentials[0].hosts[0] = "b.example.com"; },
      [](Manifest& m) { m.credentials[0].header = "X: {}"; },
      [](Manifest& m) { m.approval.when = ApprovalWhen::kNever; },
      [](Manifest& m) { m.approval.approvers.clear(); },
      [](Manifest& m) { m.approval.quorum = 1; },
      [](Manifest& m) { m.approval.expires += Nanos(1); },
      [](Manifest& m) { m.approval.window += Nanos(1); },
      [](Manifest& m) { m.output_schema.clear(); },
      [](Manifest& m) { m.rate.calls.clear(); },
      [](Manifest& m) { m.rate.burst = 0; },
      [](Manifest& m) { m.rate.concurrency = 0; },
      [](Manifest& m) { m.allow_examples[0].args = "{}"; },
      [](Manifest& m) { m.deny_examples[0].why = "x"; },
      [](Manifest& m) { m.dangers.push_back({"a", "b", "c", {}}); },
  };
  const Manifest original = MustParse(kEverything);
  std::set<std::string> hashes = {ManifestHash(original)};
  size_t i = 0;
  for (const auto& change : changes) {
    Manifest changed = original;
    change(changed);
    EXPECT_TRUE(hashes.insert(ManifestHash(changed)).second) << "change " << i;
    ++i;
  }
  Manifest elsewhere = original;
  elsewhere.file = "other";
  elsewhere.places.clear();
  elsewhere.mounts[0].position = {99, 99};
  EXPECT_TRUE(hashes.contains(ManifestHash(elsewhere)));
}

}  // namespace
}  // namespace coffer::policy
