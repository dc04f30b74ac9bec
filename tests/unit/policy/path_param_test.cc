// SPDX-License-Identifier: Apache-2.0
#include "policy/path_param.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace coffer::policy {
namespace {

TEST(PathParam, StaysBeneathItsPlace) {
  const std::pair<const char*, const char*> good[] = {
      {"a", "/data/a"},
      {"a/b.txt", "/data/a/b.txt"},
      {".", "/data"},
      {"./a", "/data/a"},
      {"a//b", "/data/a/b"},
      {"a/./b/", "/data/a/b"},
      {"-rf", "/data/-rf"},
      {"..a/b..", "/data/..a/b.."},
      {"...", "/data/..."},
      {"a b\xc3\xa9", "/data/a b\xc3\xa9"},
      {"%2e%2e/x", "/data/%2e%2e/x"},
  };
  for (const auto& [value, path] : good) {
    const Result<std::string> resolved = ResolveBeneath("/data", value);
    ASSERT_TRUE(resolved.ok()) << value;
    EXPECT_EQ(*resolved, path);
  }
}

TEST(PathParam, EverythingElseIsRefused) {
  const std::string bad[] = {"",
                             "/",
                             "/data/a",
                             "..",
                             "../a",
                             "a/..",
                             "a/../b",
                             "a/../../b",
                             "./../a",
                             "~",
                             "~root/a",
                             "a\\b",
                             "..\\a",
                             "a\nb",
                             "a\x7f",
                             "//a",
                             std::string("a\0b", 3),
                             std::string(256, 'x'),
                             std::string(4001, '/'),
                             "a/" + std::string(5000, 'b')};
  for (const std::string& value : bad) {
    const Result<std::string> resolved = ResolveBeneath("/data", value);
    ASSERT_FALSE(resolved.ok()) << value;
    EXPECT_EQ(resolved.error().code, "policy.args.path");
    EXPECT_NE(resolved.error().hint.find("/data"), std::string::npos);
  }
}

TEST(PathParam, ResolvesStringsAndListsInPlace) {
  const std::vector<PathParameter> paths = {{"file", "/workspace", Access::kRead, {}},
                                            {"files", "/data", Access::kRead, {}},
                                            {"out", "/out", Access::kWrite, {}}};
  Json args = {{"file", "a"}, {"files", {"b", "c/d"}}, {"other", "../x"}};
  ASSERT_TRUE(ResolvePaths(paths, args).ok());
  EXPECT_EQ(args.dump(),
            R"({"file":"/workspace/a","files":["/data/b","/data/c/d"],"other":"../x"})");

  for (Json bad : {Json({{"file", 1}}), Json({{"files", {"a", 2}}}), Json({{"files", {"a", "/b"}}}),
                   Json({{"out", "."}}), Json({{"out", "./"}}), Json({{"file", nullptr}})}) {
    EXPECT_FALSE(ResolvePaths(paths, bad).ok()) << bad.dump();
  }
  Json whole = {{"file", "."}};
  EXPECT_TRUE(ResolvePaths(paths, whole).ok());
}

}  // namespace
}  // namespace coffer::policy
