// SPDX-License-Identifier: Apache-2.0
#include "policy/manifest/surfaces.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/policy/manifest/manifest_text.h"

namespace coffer::policy {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::StartsWith;

const std::set<Surface> kAll = {Surface::kNetwork, Surface::kCredentials, Surface::kApproval,
                                Surface::kStagedWrites, Surface::kOutputSchema};

std::vector<std::string> Missing(const Manifest& manifest, const std::set<Surface>& available) {
  std::vector<std::string> lines;
  for (const Mistake& mistake : UnsupportedSurfaces(manifest, available)) {
    lines.push_back(FormatMistake("f", mistake));
  }
  return lines;
}

TEST(Surfaces, WhatIsMissingIsNamedWithItsLine) {
  const Manifest everything = MustParse(kEverything);
  EXPECT_THAT(Missing(everything, {}),
              ElementsAre(StartsWith("f:45:1: the staged mount at /drafts needs staged writes"),
                          StartsWith("f:48:1: network.allow of api.example.com needs network"),
                          StartsWith("f:54:1: the credential billing needs credentials"),
                          StartsWith("f:60:1: approval.when = \"diff\" needs approval"),
                          StartsWith("f:66:1: output.schema needs output schemas")));
  EXPECT_THAT(Missing(everything, kAll), IsEmpty());
  for (const Surface surface : kAll) {
    std::set<Surface> available = kAll;
    available.erase(surface);
    EXPECT_EQ(Missing(everything, available).size(), 1U) << SurfaceName(surface);
  }
}

TEST(Surfaces, EveryTermOfARuleForTheNetworkLoads) {
  const auto with = [](const std::string& key) {
    std::string text(kSmallest);
    text.insert(text.find("[run]"), "effect = \"reversible\"\n");
    return Missing(MustParse(text +
                             "[[network.allow]]\nhost = \"a.example.com\"\n"
                             "tls = \"splice\"\n" +
                             key),
                   {Surface::kNetwork});
  };
  EXPECT_THAT(with(""), IsEmpty()) << "the control";
  EXPECT_THAT(with("bytes_out = \"1MiB\"\nbytes_in = \"2MiB\"\nrate = \"1/s\"\n"), IsEmpty());
  EXPECT_THAT(with("ask = true\n"), IsEmpty());
}

TEST(Surfaces, AnEffectNobodyDeclaredAsksForApproval) {
  const std::string text(kSmallest);
  EXPECT_THAT(Missing(MustParse(text), {}),
              ElementsAre(StartsWith(
                  "f:1:2: an effect that is not declared, and so irreversible needs approval")));
  const auto with_effect = [&](const std::string& effect) {
    std::string changed = text;
    return changed.insert(changed.find("[run]"), "effect = \"" + effect + "\"\n");
  };
  EXPECT_THAT(Missing(MustParse(with_effect("irreversible")), {}),
              ElementsAre(StartsWith("f:4:1: an effect that is irreversible needs approval")));
  EXPECT_THAT(Missing(MustParse(with_effect("privileged")), {}),
              ElementsAre(StartsWith("f:4:1: an effect that is privileged")));
  EXPECT_THAT(Missing(MustParse(with_effect("read-only")), {}), IsEmpty());
  EXPECT_THAT(Missing(MustParse(with_effect("reversible")), {}), IsEmpty());
}

TEST(Surfaces, ADeclaredApprovalIsNeverIgnored) {
  const std::string head =
      "[tool]\nname = \"x\"\nversion = \"1\"\neffect = \"read-only\"\n[run]\nruntime = "
      "\"sh\"\nargv = [\"cat\"]\n";
  for (const char* when : {"flagged", "irreversible", "diff", "always"}) {
    EXPECT_EQ(Missing(MustParse(head + "[approval]\nwhen = \"" + when + "\"\n"), {}).size(), 1U)
        << when;
  }
  EXPECT_THAT(Missing(MustParse(head + "[approval]\nwhen = \"never\"\n"), {}), IsEmpty());
  EXPECT_EQ(Missing(MustParse(head + "[approval]\nwhen = \"never\"\nwindow = \"5m\"\n"), {}).size(),
            1U);
}

}  // namespace
}  // namespace coffer::policy
