// SPDX-License-Identifier: Apache-2.0
#include "policy/template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace coffer::policy {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

// "[" and "]" begin and end a group.
std::vector<WordGroup> Argv(const std::vector<std::string>& words) {
  std::vector<WordGroup> argv;
  bool open = false;
  for (const std::string& text : words) {
    if (text == "[" || text == "]") {
      open = text == "[";
      if (open) {
        argv.push_back({{}, true});
      }
      continue;
    }
    Result<Word> word = ParseWord(text);
    EXPECT_TRUE(word.ok()) << text;
    if (open) {
      argv.back().words.push_back(*word);
    } else {
      argv.push_back({{*word}, false});
    }
  }
  return argv;
}

TEST(Template, AWordIsLiteralOrAParameterNeverBoth) {
  EXPECT_EQ(ParseWord("plain words $x `y`")->kind, WordKind::kLiteral);
  EXPECT_EQ(ParseWord("{name}")->kind, WordKind::kParameter);
  EXPECT_EQ(ParseWord("{name}")->text, "name");
  EXPECT_EQ(ParseWord("{a-b_1}")->text, "a-b_1");
  EXPECT_EQ(ParseWord("{names...}")->kind, WordKind::kSpread);
  EXPECT_EQ(ParseWord("{names...}")->text, "names");
  EXPECT_EQ(ParseWord("{@args}")->kind, WordKind::kAllArguments);
  EXPECT_EQ(ParseWord("{{name}}")->kind, WordKind::kLiteral);
  EXPECT_EQ(ParseWord("{{name}}")->text, "{name}");
  EXPECT_EQ(ParseWord("{{print $1}}")->text, "{print $1}");
  EXPECT_EQ(ParseWord("")->text, "");
}

TEST(Template, MixturesAndStrayBracesAreRefused) {
  for (const char* text :
       {"--file={name}", "{a}{b}", "x{name}", "{name}x", "{a} {b}", "{{a}{b}}"}) {
    const Result<Word> word = ParseWord(text);
    ASSERT_FALSE(word.ok()) << text;
    EXPECT_FALSE(word.error().hint.empty());
  }
  EXPECT_THAT(ParseWord("--file={name}").error().message, HasSubstr("inside a longer word"));
  EXPECT_THAT(ParseWord("--file={name}").error().hint, HasSubstr("\"{name}\""));
  for (const char* text : {"{", "}", "a{", "}{", "{}", "{ name }", "{1a}", "{a.b}", "{a..}",
                           "{...}", "{@env}", "{a:b}", "{%s}", "{{a}", "{a}}", "{0}"}) {
    EXPECT_FALSE(ParseWord(text).ok()) << text;
  }
}

TEST(Template, ValuesArriveWholeAndUnchanged) {
  const auto argv = Argv({"tool", "--", "{a}", "{b}", "{c}", "{d}", "{list...}", "end"});
  const Json args = {{"a", "one two; $(rm) {b} %s"},
                     {"b", -5},
                     {"c", true},
                     {"d", 1.5},
                     {"list", {"x", "-y", ""}}};
  const auto words = RenderArgv(argv, args);
  ASSERT_TRUE(words.ok()) << words.error().message;
  EXPECT_THAT(*words, ElementsAre("tool", "--", "one two; $(rm) {b} %s", "-5", "true", "1.5", "x",
                                  "-y", "", "end"));
}

TEST(Template, WhatIsNotGivenIsLeftOutWithItsGroup) {
  const auto argv =
      Argv({"grep", "[", "-m", "{max}", "]", "--", "{pattern}", "{path}", "{more...}"});
  EXPECT_THAT(*RenderArgv(argv, {{"pattern", "x"}}), ElementsAre("grep", "--", "x"));
  EXPECT_THAT(*RenderArgv(argv, {{"pattern", "x"}, {"max", 3}}),
              ElementsAre("grep", "-m", "3", "--", "x"));
  EXPECT_THAT(*RenderArgv(argv, {{"pattern", "x"}, {"more", Json::array()}}),
              ElementsAre("grep", "--", "x"));
}

TEST(Template, AValueCannotBecomeAnOption) {
  const Result<std::vector<std::string>> bare = RenderArgv(Argv({"cat", "{f}"}), {{"f", "-n"}});
  ASSERT_FALSE(bare.ok());
  EXPECT_EQ(bare.error().code, "policy.args.option");
  EXPECT_FALSE(RenderArgv(Argv({"cat", "{f}"}), {{"f", "-"}}).ok());
  EXPECT_FALSE(RenderArgv(Argv({"cat", "{f}"}), {{"f", -1}}).ok());
  EXPECT_FALSE(RenderArgv(Argv({"cat", "{f...}"}), {{"f", {"a", "--x"}}}).ok());
  EXPECT_TRUE(RenderArgv(Argv({"cat", "--", "{f}"}), {{"f", "-n"}}).ok());
  // A "--" that is a value, comes later, or was left out with its group does not count.
  EXPECT_FALSE(RenderArgv(Argv({"cat", "{f}", "--"}), {{"f", "-n"}}).ok());
  EXPECT_FALSE(RenderArgv(Argv({"cat", "{a}", "{f}"}), {{"a", "--"}, {"f", "-n"}}).ok());
  EXPECT_FALSE(RenderArgv(Argv({"cat", "[", "--", "{gone}", "]", "{f}"}), {{"f", "-n"}}).ok());
  EXPECT_TRUE(
      RenderArgv(Argv({"cat", "[", "--", "{a}", "]", "{f}"}), {{"a", "-x"}, {"f", "-n"}}).ok());
}

TEST(Template, WhatIsNoWordIsRefused) {
  const auto argv = Argv({"tool", "--", "{a}"});
  EXPECT_FALSE(RenderArgv(argv, {{"a", nullptr}}).ok());
  EXPECT_FALSE(RenderArgv(argv, {{"a", {1, 2}}}).ok());
  EXPECT_FALSE(RenderArgv(argv, {{"a", {{"b", 1}}}}).ok());
  EXPECT_FALSE(RenderArgv(argv, {{"a", std::string("x\0y", 3)}}).ok());
  EXPECT_FALSE(RenderArgv(argv, {{"a", std::string(kMaxWordBytes, 'x')}}).ok());
  EXPECT_TRUE(RenderArgv(argv, {{"a", std::string(kMaxWordBytes - 1, 'x')}}).ok());
  const auto spread = Argv({"tool", "--", "{a...}"});
  EXPECT_FALSE(RenderArgv(spread, {{"a", "text"}}).ok());
  EXPECT_FALSE(RenderArgv(spread, {{"a", {1}}}).ok());
  EXPECT_FALSE(RenderArgv(spread, {{"a", {std::string("\0", 1)}}}).ok());
}

TEST(Template, EnvironmentAndStdin) {
  const std::vector<std::pair<std::string, Word>> env = {
      {"FIXED", *ParseWord("a=b")}, {"GIVEN", *ParseWord("{x}")}, {"GONE", *ParseWord("{y}")}};
  EXPECT_THAT(*RenderEnv(env, {{"x", "-v"}}),
              ElementsAre(Pair("FIXED", "a=b"), Pair("GIVEN", "-v")));
  EXPECT_FALSE(RenderEnv(env, {{"x", std::string("\0", 1)}}).ok());
  EXPECT_FALSE(RenderEnv(env, {{"x", std::string(kMaxWordBytes, 'x')}}).ok());

  EXPECT_EQ(*RenderStdin(*ParseWord("fixed\n"), Json::object()), "fixed\n");
  EXPECT_EQ(*RenderStdin(*ParseWord("{x}"), {{"x", "a\nb"}}), "a\nb");
  EXPECT_EQ(*RenderStdin(*ParseWord("{x}"), {{"x", 7}}), "7");
  EXPECT_EQ(*RenderStdin(*ParseWord("{x}"), {{"x", {{"k", {1, 2}}}}}), "{\"k\":[1,2]}\n");
  EXPECT_EQ(*RenderStdin(*ParseWord("{x}"), Json::object()), "");
  EXPECT_EQ(*RenderStdin(*ParseWord("{@args}"), {{"b", 1}, {"a", "x"}}), "{\"b\":1,\"a\":\"x\"}\n");
}

}  // namespace
}  // namespace coffer::policy
