// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <array>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/json.h"
#include "cli/verbs.h"

namespace coffer::cli {
namespace {

std::string Output(std::span<const std::string_view> args, int expected) {
  ::testing::internal::CaptureStdout();
  EXPECT_EQ(RunRuntimesVerb(args), expected);
  return ::testing::internal::GetCapturedStdout();
}

TEST(RuntimesVerb, ColumnsAreAligned) {
  std::istringstream lines(Output({}, 0));
  std::string header;
  std::getline(lines, header);
  const size_t program = header.find("PROGRAM");
  const size_t what = header.find("WHAT");
  ASSERT_NE(program, std::string::npos);
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    ASSERT_GT(line.size(), what) << line;
    EXPECT_NE(line[program], ' ') << line;
    EXPECT_EQ(line[program - 1], ' ') << line;
    EXPECT_NE(line[what], ' ') << line;
    EXPECT_EQ(line[what - 1], ' ') << line;
  }
  EXPECT_EQ(count, 14);
}

TEST(RuntimesVerb, JsonSaysWhatIsThereAndWhatWouldBringIt) {
  const std::array<std::string_view, 1> args = {"--json"};
  const Result<Json> json = ParseJson(Output(args, 0));
  ASSERT_TRUE(json.ok()) << json.error().message;
  const Json& list = json->at("runtimes");
  ASSERT_EQ(list.size(), 14U);
  for (const Json& entry : list) {
    if (entry.at("name") == "sh") {
      EXPECT_EQ(entry.at("found"), true);
      EXPECT_GT(entry.at("files").get<int>(), 20);
    }
    if (entry.at("name") == "node") {
      EXPECT_EQ(entry.at("package"), "nodejs");
    }
  }
}

TEST(RuntimesVerb, UnknownArgumentsAreRefused) {
  const std::array<std::string_view, 1> args = {"--jsno"};
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(Output(args, 120), "");
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("--jsno"), std::string::npos);
}

}  // namespace
}  // namespace coffer::cli
