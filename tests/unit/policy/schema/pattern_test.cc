// SPDX-License-Identifier: Apache-2.0
#include "policy/schema/pattern.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace coffer::policy {
namespace {

constexpr uint64_t kPlenty = 1'000'000'000;

bool Found(const Pattern& pattern, std::string_view text) {
  const Pattern::Search search = pattern.Find(text, kPlenty);
  EXPECT_TRUE(search.ended);
  return search.found;
}

struct PatternCase {
  const char* pattern;
  std::vector<std::string> found;
  std::vector<std::string> missing;
};

class SchemaPattern : public testing::TestWithParam<PatternCase> {};

TEST_P(SchemaPattern, FindsWhatEcmaFinds) {
  const auto pattern = Pattern::Compile(GetParam().pattern);
  ASSERT_TRUE(pattern.ok()) << GetParam().pattern << ": " << pattern.error().message;
  for (const std::string& text : GetParam().found) {
    EXPECT_TRUE(Found(*pattern, text))
        << GetParam().pattern << " in " << testing::PrintToString(text);
  }
  for (const std::string& text : GetParam().missing) {
    EXPECT_FALSE(Found(*pattern, text))
        << GetParam().pattern << " in " << testing::PrintToString(text);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Table, SchemaPattern,
    testing::ValuesIn(std::vector<PatternCase>{
        {"", {"", "a"}, {}},
        {"b", {"abc", "b"}, {"", "a", "B"}},
        {"^a", {"ab"}, {"ba", "b\na"}},
        {"a$", {"ba"}, {"ab", "a\n", "a\nb"}},
        {"^a|b$", {"ax", "xb"}, {"xax"}},
        {".", {"x", "é", "𝄞", "\t", "\xc2\x85"}, {"", "\n", "\r", "\xe2\x80\xa8", "\xe2\x80\xa9"}},
        {"^.$", {"𝄞"}, {"ab"}},
        // ECMA's \s knows Unicode; \d and \w are ASCII.
        {"^\\s+$",
         {" \t\n\v\f\r", "\xc2\xa0", "\xef\xbb\xbf", "\xe3\x80\x80", "\xe2\x80\xa8"},
         {"", "a", "\xe2\x80\x8b", "\xc2\x85"}},
        {"^\\S$", {"a", "\xe2\x80\x8b", "𝄞"}, {" ", "\xc2\xa0"}},
        {"^\\d+$", {"0129"}, {"٣", ""}},
        {"^\\w+$", {"aZ_9"}, {"é", "-"}},
        {"^[^\\w]$", {"é", "-"}, {"a"}},
        {"^[^a]$", {"\n", "b", "𝄞"}, {"a", ""}},
        {"^[^]$", {"\n", "𝄞"}, {"", "ab"}},
        {"[]", {}, {"", "a"}},
        {"^[a\\-z]+$", {"a-z"}, {"b"}},
        {"^[a-]+$", {"a-"}, {"b"}},
        {"^[\\b]$", {"\b"}, {"b"}},
        {"^[(*.]$", {"(", "*", "."}, {"a"}},
        {"\\bfoo\\b", {"a foo b", "foo"}, {"food", "_foo"}},
        {"^\\x41\\u00e9\\u{1D11E}\\ud834\\udd1e\\cJ\\t\\/\\.$", {"Aé𝄞𝄞\n\t/."}, {"A"}},
        {"\\B", {"", "é", "ab", " "}, {"aéa", "a"}},
        {"o\\Bo", {"foot"}, {"o o"}},
        {"^\\0$", {std::string(1, '\0')}, {"0", ""}},
        {"^(?:ab){2,3}$", {"abab", "ababab"}, {"ab", "abababab"}},
        {"^a{2,}$", {"aa", "aaaa"}, {"a"}},
        {"^a{0}$", {""}, {"a"}},
        {"^a+?b*?c??$", {"a", "aabbc"}, {"", "cc"}},
        {"^(a|b(c|d))*$", {"", "abcbd"}, {"b"}},
        {"^(?:|a)+$", {"", "aa"}, {"b"}},
        {"^[\\u{1F600}-\\u{1F64F}]$", {"😀"}, {"a"}},
        {"^a{1000}$", {std::string(1000, 'a')}, {std::string(999, 'a')}},
    }));

struct PatternRefusal {
  const char* pattern;
  const char* reason;
};

class SchemaPatternRefusal : public testing::TestWithParam<PatternRefusal> {};

TEST_P(SchemaPatternRefusal, SaysWhy) {
  const auto pattern = Pattern::Compile(GetParam().pattern);
  ASSERT_FALSE(pattern.ok()) << GetParam().pattern;
  EXPECT_EQ(pattern.error().kind, ErrorKind::kRefused) << pattern.error().message;
  EXPECT_THAT(pattern.error().message, testing::HasSubstr(GetParam().reason)) << GetParam().pattern;
}

INSTANTIATE_TEST_SUITE_P(Table, SchemaPatternRefusal,
                         testing::ValuesIn(std::vector<PatternRefusal>{
                             {"(?=a)", "lookahead"},
                             {"(?!a)", "lookahead"},
                             {"(?<=a)", "lookbehind"},
                             {"(?<!a)", "lookbehind"},
                             {"(?i:a)", "modifiers"},
                             {"(?<n>a)", "named group"},
                             {"(a)\\1", "backreference"},
                             {"\\k<n>", "backreference"},
                             {"\\p{L}", "\\p is not implemented"},
                             {"[\\P{L}]", "\\p is not implemented"},
                             {"\\-", "needs none"},
                             {"\\_", "needs none"},
                             {"\\A", "needs none"},
                             {"\\z", "needs none"},
                             {"\\Q", "needs none"},
                             {"[\\B]", "needs none"},
                             {"\\00", "needs none"},
                             {"\\c1", "needs none"},
                             {"\\", "needs none"},
                             {"\\x4", "two hexadecimal"},
                             {"\\u00e", "four hexadecimal"},
                             {"\\u{110000}", "up to 10FFFF"},
                             {"\\u{}", "up to 10FFFF"},
                             {"\\ud834", "surrogate"},
                             {"\\ud834\\u0041", "surrogate"},
                             {"[a", "not closed"},
                             {"[", "not closed"},
                             {"[b-a]", "backwards"},
                             {"[\\d-z]", "from or to a class"},
                             {"(a", "not closed"},
                             {"a)", "unmatched"},
                             {"*a", "nothing to repeat"},
                             {"a**", "nothing to repeat"},
                             {"a{1}{2}", "nothing to repeat"},
                             {"^*", "cannot be repeated"},
                             {"\\b+", "cannot be repeated"},
                             {"\\B*", "cannot be repeated"},
                             {"a{2,1}", "below its smallest"},
                             {"a{,1}", "written {n}"},
                             {"a{x}", "written {n}"},
                             {"a{1", "written {n}"},
                             {"{", "nothing to repeat"},
                             {"}", "opens nowhere"},
                             {"]", "opens nowhere"},
                             {"a{1001}", "more than 1000"},
                             {"a{99999999999999999999}", "more than 1000"},
                             {"(?:a{100}){11}", "more than 1000"},
                             {"(?:[^a]{900}|b{900}|[^c]{900}|[^d]{900}|[^e]{900}|[^f]{900}|[^g]{"
                              "900}|[^h]{900}){1}[^i]{900}[^j]{900}",
                              "too large"},
                         }));

TEST(SchemaPattern, BoundsWhatItReads) {
  EXPECT_TRUE(Pattern::Compile(std::string(kMaxPatternBytes, 'a')).ok());
  EXPECT_FALSE(Pattern::Compile(std::string(kMaxPatternBytes + 1, 'a')).ok());
  EXPECT_FALSE(Pattern::Compile("\xff").ok());
  std::string nested = "a";
  for (int i = 0; i < kMaxPatternGroups; ++i) {
    nested = "(" + nested + ")";
  }
  EXPECT_TRUE(Pattern::Compile(nested).ok());
  EXPECT_FALSE(Pattern::Compile("(" + nested + ")").ok());
}

TEST(SchemaPattern, StopsWhenTheWorkIsSpent) {
  const auto pattern = Pattern::Compile("(?:a|aa|[ab]{20}){1,40}c");
  ASSERT_TRUE(pattern.ok());
  const std::string text(100'000, 'a');
  const Pattern::Search search = pattern->Find(text, 10'000);
  EXPECT_FALSE(search.ended);
  EXPECT_FALSE(search.found);
  EXPECT_LT(search.work, 10'000 + 2 * kMaxPatternStates);
}

TEST(SchemaPattern, WorkIsLinearInTheText) {
  for (const char* hostile :
       {"^(?:(?:a|a)*)*b", "(?:a?){30}a{30}b", "(?:(?:a*)*)*b", "(?:a|aa)+$b"}) {
    const auto pattern = Pattern::Compile(hostile);
    ASSERT_TRUE(pattern.ok()) << hostile;
    const uint64_t once = pattern->Find(std::string(1000, 'a'), kPlenty).work;
    const uint64_t tenfold = pattern->Find(std::string(10'000, 'a'), kPlenty).work;
    EXPECT_LT(tenfold, 11 * once) << hostile;
  }
}

TEST(SchemaPattern, AnAnchoredPatternGivesUpAtOnce) {
  const auto pattern = Pattern::Compile("^(?:b|c)");
  EXPECT_LT(pattern->Find(std::string(100'000, 'a'), kPlenty).work, 20U);
}

}  // namespace
}  // namespace coffer::policy
