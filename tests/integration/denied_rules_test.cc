// SPDX-License-Identifier: Apache-2.0
//
// `coffer tools check` tells which rules of a manifest the operator's configuration denies as a whole.
#include <gtest/gtest.h>

#include "tests/support/run.h"
#include "tests/support/temp_dir.h"

namespace coffer::test {
namespace {

constexpr const char* kTool = R"([tool]
name = "fetch"
version = "1.0.0"
owner = "me"
summary = "Fetches."
effect = "reversible"
[run]
runtime = "python3"
argv = ["python3", "-"]
[isolation]
level = "container"
[limits]
memory = "64MiB"
[[network.allow]]
host = "api.example.com"
tls = "splice"
[[network.allow]]
host = "files.example.com"
tls = "splice"
ports = [443, 8443]
)";

class DeniedRules : public ::testing::Test {
 protected:
  RunResult Check(const std::string& deny, const Strings& flags = {}) {
    dir_.Write("fetch.toml", kTool);
    dir_.Write("coffer.toml", "[egress]\ndeny = [" + deny + "]\n");
    Strings words = {CofferPath(), "tools", "check", "--config", dir_ / "coffer.toml"};
    words.insert(words.end(), flags.begin(), flags.end());
    words.push_back(dir_ / "fetch.toml");
    return RunProgram(words);
  }
  TempDir dir_;
};

TEST_F(DeniedRules, ARuleThatNeverMatchesIsTold) {
  const RunResult none = Check("\"elsewhere.example.org\"");
  EXPECT_EQ(none.exit, 0) << none.Describe();
  EXPECT_FALSE(Contains(none.out, "never matches")) << "NO-CONTROL\n" << none.out;

  const RunResult one = Check("\"api.example.com\"");
  EXPECT_EQ(one.exit, 0) << "the manifest itself is right: " << one.Describe();
  EXPECT_TRUE(Contains(one.out,
                       "fetch.toml:14: network.allow of api.example.com never matches: "
                       "[egress] deny of the configuration has api.example.com"))
      << one.out;
  EXPECT_FALSE(Contains(one.out, "files.example.com")) << one.out;

  const RunResult both = Check("\"**.example.com\"");
  EXPECT_TRUE(Contains(both.out, "api.example.com never matches")) << both.out;
  EXPECT_TRUE(Contains(both.out, "files.example.com never matches")) << both.out;

  const RunResult part = Check("\"files.example.com:8443\"");
  EXPECT_FALSE(Contains(part.out, "never matches")) << "one of its ports is open\n" << part.out;

  const Json told = Json::parse(Check("\"api.example.com\"", {"--json"}).out, nullptr, false);
  ASSERT_FALSE(told.is_discarded());
  EXPECT_TRUE(Contains(told.dump(), "never matches")) << told.dump();
}

}  // namespace
}  // namespace coffer::test
