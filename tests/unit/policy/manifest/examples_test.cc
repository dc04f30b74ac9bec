// SPDX-License-Identifier: Apache-2.0
#include "policy/manifest/examples.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/unit/policy/manifest/manifest_text.h"

namespace coffer::policy {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(Examples, AllowMustPassAndDenyMustNot) {
  const Manifest manifest =
      MustParse(SmallestText() +
                "[[examples.allow]]\nargs = { n = 1 }\nwhy = \"small\"\n[[examples.allow]]\nargs = "
                "{ n = 5 }\nwhy = \"big\"\n"
                "[[examples.deny]]\nargs = { n = 9 }\nwhy = \"huge\"\n[[examples.deny]]\nargs = { "
                "n = 2 }\nwhy = \"odd\"\n");
  const auto below = [](int limit) {
    return [limit](const Json& args) -> Status {
      if (args["n"] >= limit) {
        return Refused("policy.args", "n is too large");
      }
      return {};
    };
  };
  const std::vector<Mistake> mistakes = CheckExamples(manifest, below(3));
  ASSERT_THAT(mistakes, SizeIs(2));
  EXPECT_EQ(mistakes[0].at, (Position{10, 1}));
  EXPECT_THAT(mistakes[0].message, HasSubstr("\"big\" is refused: n is too large"));
  EXPECT_EQ(mistakes[1].at, (Position{16, 1}));
  EXPECT_THAT(mistakes[1].message, HasSubstr("\"odd\" is accepted"));
  EXPECT_THAT(CheckExamples(MustParse(kSmallest), below(0)), IsEmpty());
}

}  // namespace
}  // namespace coffer::policy
