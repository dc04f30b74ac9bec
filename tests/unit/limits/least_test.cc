// SPDX-License-Identifier: Apache-2.0
#include "limits/least.h"

#include <gtest/gtest.h>

namespace coffer::limits {
namespace {

TEST(CheckLeast, NamesTheSmallestValueThatWorks) {
  policy::Limits caps;
  EXPECT_TRUE(CheckLeast(caps, 0).ok()) << "the usual caps";
  caps.memory = LeastMemory(0) - 1;
  const Status memory = CheckLeast(caps, 0);
  ASSERT_FALSE(memory.ok());
  EXPECT_EQ(memory.error().kind, ErrorKind::kRefused);
  EXPECT_EQ(memory.error().code, "policy.limit");
  EXPECT_NE(memory.error().hint.find("--memory 1MiB"), std::string::npos) << memory.error().hint;
  caps.memory = LeastMemory(0);
  EXPECT_TRUE(CheckLeast(caps, 0).ok());
  caps.open_files = 3;
  EXPECT_NE(CheckLeast(caps, 0).error().hint.find("--open-files 4"), std::string::npos);
  caps.open_files = 4;
  EXPECT_TRUE(CheckLeast(caps, 0).ok());
}

TEST(CheckLeast, LargeArgumentsNeedMore) {
  policy::Limits caps;
  caps.memory = 1 << 20;
  EXPECT_TRUE(CheckLeast(caps, 1000).ok());
  EXPECT_FALSE(CheckLeast(caps, 1 << 20).ok());
  caps.memory = 3 << 20;
  EXPECT_TRUE(CheckLeast(caps, 1 << 20).ok());
}

// A number without a unit is bytes. Who writes --memory 512 means MiB.
TEST(CheckLeast, TheHintForANumberWithoutAUnitIsInMebibytes) {
  policy::Limits caps;
  caps.memory = 512;
  Status checked = CheckLeast(caps, 0);
  ASSERT_FALSE(checked.ok());
  EXPECT_EQ(checked.error().hint, "write --memory 512MiB");
  caps.memory = 100000;
  checked = CheckLeast(caps, 0);
  ASSERT_FALSE(checked.ok());
  EXPECT_TRUE(checked.error().hint.ends_with("MiB")) << checked.error().hint;
  EXPECT_EQ(checked.error().hint.find("100000"), std::string::npos) << checked.error().hint;
}

}  // namespace
}  // namespace coffer::limits
