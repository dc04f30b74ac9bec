// SPDX-License-Identifier: Apache-2.0
//
// RS: memory whose size only a figure of the whole host tells, where there is no memory cgroup. What other programs free at
// that moment hides it from such a look, and what they take is charged to a call that has mapped as much
// (docs/HONEST_LIMITS.md). So no other test runs beside these.
#include <gtest/gtest.h>

#include "tests/escape/resources.h"

namespace coffer::test {
namespace {

using HostMemoryEscape = ResourceEscape;

TEST_P(HostMemoryEscape, RS_04_MemoryThatOnlyTheHostsFigureShows) {
  const Strings flags = Flags({"--memory", "64MiB", "--open-files", "400"});
  // As much is mapped, and hardly a page is there.
  const RunResult untouched = RunProbe(flags, {"hide-memory", "200", "shared-drop"});
  EXPECT_EQ(untouched.exit, 0) << untouched.Describe();
  EXPECT_TRUE(Contains(untouched.out, "hide: OPEN")) << untouched.Describe();
  for (const char* how : {"map", "flight", "shared", "shared-named"}) {
    SCOPED_TRACE(how);
    EXPECT_TRUE(Contains(RunOutside({"hide-memory", "200", how}).out, "hide: OPEN"))
        << "NO-CONTROL";
    const RunResult result = RunProbe(flags, {"hide-memory", "200", how, "4"});
    const bool sampled = IsSampled(result);
    ExpectEnded(result, "limit.memory");
    if (!sampled) {  // a sample may come late, but it comes: what is hidden stays for a while
      EXPECT_FALSE(Contains(result.out, "OPEN")) << result.Describe();
    }
    EXPECT_EQ(Memory(result)["enforced"], !sampled) << result.Describe();
  }
}

INSTANTIATE_TEST_SUITE_P(Level, HostMemoryEscape, ::testing::Values("container", "process"),
                         LevelTestName);

}  // namespace
}  // namespace coffer::test
