// SPDX-License-Identifier: Apache-2.0
#include "cli/tool_pins.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/run.h"

namespace coffer::cli {
namespace {

class ToolPinsTest : public ::testing::Test {
 protected:
  ToolPins Open() { return std::move(ToolPins::Open(dir_.MakeDir("state"))).value(); }
  test::TempDir dir_;
};

// A server that could make two lists with one digest would show the harmless one to the person who accepts.
TEST_F(ToolPinsTest, ADigestNamesOneListAndAPartOfItNone) {
  const ToolPins pins = Open();
  ASSERT_TRUE(pins.See("s", {{"s-a", "1"}}).ok());
  ASSERT_TRUE(pins.See("s", {{"s-a", "2"}}).ok());
  const std::string digest = DigestOf(**pins.Read("s"));
  EXPECT_GE(digest.size(), 32U) << "a collision of 64 bits takes minutes to find";
  EXPECT_FALSE(pins.Accept("s", digest.substr(0, 16)).ok());
  EXPECT_EQ(ChangesOf(**pins.Read("s")).size(), 1U);
  EXPECT_TRUE(pins.Accept("s", digest).ok()) << "the control";
  EXPECT_EQ(ChangesOf(**pins.Read("s")).size(), 0U);
}

// A list that is too long to be read again must not take the place of what was accepted: who removes the file for that
// accepts everything that the server lists next.
TEST_F(ToolPinsTest, AListThatIsTooLongLeavesWhatWasAccepted) {
  const ToolPins pins = Open();
  ASSERT_TRUE(pins.See("s", {{"s-a", "1"}}).ok());
  const Definitions large = {{"s-a", std::string(4 << 20, '\\')},
                             {"s-b", std::string(5 << 20, '"')}};
  EXPECT_FALSE(pins.See("s", large).ok());
  const Result<std::optional<ServerPins>> kept = pins.Read("s");
  ASSERT_TRUE(kept.ok() && *kept) << "it can still be read";
  EXPECT_EQ((*kept)->accepted, (Definitions{{"s-a", "1"}}));
  EXPECT_FALSE(pins.See("t", large).ok()) << "also the first time";
  EXPECT_FALSE(*pins.Read("t"));
  EXPECT_TRUE(pins.See("s", {{"s-a", std::string(4 << 20, 'x')}}).ok()) << "the control";
  EXPECT_EQ(ChangesOf(**pins.Read("s")).size(), 1U);
}

TEST_F(ToolPinsTest, AFileThatIsNotOfAServerIsNoServer) {
  const ToolPins pins = Open();
  ASSERT_TRUE(pins.See("s", {{"s-a", "1"}}).ok());
  std::ofstream(dir_ / "state/mcp/Not a name.json") << "{}";
  EXPECT_EQ(*pins.Names(), (std::vector<std::string>{"s"}));
}

}  // namespace
}  // namespace coffer::cli
