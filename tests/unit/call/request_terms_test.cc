// SPDX-License-Identifier: Apache-2.0
#include "call/request_terms.h"

#include <gtest/gtest.h>

namespace coffer::call {
namespace {

std::string Wrong(std::string_view asked) {
  const Result<policy::Limits> narrowed = NarrowLimits(policy::Limits{}, asked);
  return narrowed.ok() ? "" : narrowed.error().message;
}

TEST(RequestTerms, LimitsGetSmaller) {
  const Result<policy::Limits> narrowed = NarrowLimits(
      policy::Limits{}, R"({"memory": "64MiB", "wall": "5s", "processes": 4, "cpu": "500ms"})");
  ASSERT_TRUE(narrowed.ok()) << narrowed.error().message;
  policy::Limits expected;
  expected.memory = 64ULL << 20;
  expected.wall = std::chrono::seconds(5);
  expected.cpu = std::chrono::milliseconds(500);
  expected.processes = 4;
  EXPECT_EQ(*narrowed, expected);
  EXPECT_EQ(Wrong("{}"), "");
  EXPECT_EQ(Wrong(R"({"memory": "256MiB"})"), "") << "as much as the manifest";
}

TEST(RequestTerms, MoreIsRefusedWithTheBound) {
  EXPECT_EQ(Wrong(R"({"memory": "1GiB"})"), "memory: 1GiB is more than the tool's 256MiB");
  EXPECT_EQ(Wrong(R"({"wall": "31s"})"), "wall: 31s is more than the tool's 30s");
  EXPECT_EQ(Wrong(R"({"processes": 33})"), "processes: 33 is more than the tool's 32");
}

TEST(RequestTerms, EveryMistakeIsNamed) {
  const std::string said = Wrong(R"({"memory": "1GiB", "ram": 1, "wall": "soon", "io": -1})");
  for (const char* part :
       {"memory: 1GiB is more", "ram: there is no such limit; there are cpu", "wall: ", "io: "}) {
    EXPECT_NE(said.find(part), std::string::npos) << said;
  }
  EXPECT_NE(Wrong("[]"), "");
  EXPECT_NE(Wrong(R"({"memory": null})"), "");
}

}  // namespace
}  // namespace coffer::call
