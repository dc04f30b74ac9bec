// SPDX-License-Identifier: Apache-2.0
#include "egress/watched_values.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "base/base64.h"
#include "base/hex.h"

namespace coffer::egress {
namespace {

using policy::NeverSendValue;

constexpr const char* kWatched = "kd/93+Lq-w_T\xc3\xbc.7z";

WatchedValues Only(const std::string& value) { return WatchedValues({{3, value}}); }

std::string UrlAlphabet(std::string text) {
  std::replace(text.begin(), text.end(), '+', '-');
  std::replace(text.begin(), text.end(), '/', '_');
  return text;
}

std::string EveryByteEscaped(const std::string& text) {
  const std::string digits = HexOf(text);
  std::string escaped;
  for (size_t i = 0; i < digits.size(); i += 2) {
    escaped += "%" + digits.substr(i, 2);
  }
  return escaped;
}

TEST(WatchedValues, PlainAnywhere) {
  const WatchedValues values = Only(kWatched);
  EXPECT_EQ(values.FindIn(kWatched), 3U);
  EXPECT_EQ(values.FindIn(std::string("before") + kWatched + "after"), 3U);
  EXPECT_EQ(values.FindIn(""), 0U);
  EXPECT_EQ(values.FindIn("before and after"), 0U);
}

TEST(WatchedValues, NearMissesPass) {
  const std::string value = kWatched;
  const WatchedValues values = Only(value);
  EXPECT_EQ(values.FindIn(value.substr(1)), 0U);
  EXPECT_EQ(values.FindIn(value.substr(0, value.size() - 1)), 0U);
  for (size_t i = 0; i < value.size(); ++i) {
    std::string other = value;
    other[i] ^= 0x40;  // the last bits of the whole may share a digit of base64 with what follows
    EXPECT_EQ(values.FindIn("x" + other + "x"), 0U) << i;
    EXPECT_EQ(values.FindIn(Base64Of(other)), 0U) << i;
    EXPECT_EQ(values.FindIn(HexOf(other)), 0U) << i;
  }
}

// A prefix that fails begins again inside itself.
TEST(WatchedValues, OverlapsAreFound) {
  const WatchedValues values({{1, "aaaaaaab"}, {2, "abababac"}, {3, "babababz"}});
  EXPECT_EQ(values.FindIn("aaaaaaaaaaaab"), 1U);
  EXPECT_EQ(values.FindIn("ababababababac"), 2U);
  EXPECT_EQ(values.FindIn("abababababz"), 3U);
  EXPECT_EQ(values.FindIn("aaaaaaaaaaaa"), 0U);
}

TEST(WatchedValues, Base64AtEachPlaceOfItsGroup) {
  for (const std::string& value :
       {std::string(kWatched), std::string("12345678"), std::string("123456789"),
        std::string("1234567890"), std::string("\xff\xfe\xfb\xef\xbe\xff\xfe\xfb\xef")}) {
    const WatchedValues values = Only(value);
    for (size_t before = 0; before < 7; ++before) {
      for (size_t after = 0; after < 4; ++after) {
        const std::string text =
            Base64Of(std::string(before, 'b') + value + std::string(after, 'a'));
        EXPECT_EQ(values.FindIn(text), 3U) << before << " " << after;
        EXPECT_EQ(values.FindIn(UrlAlphabet(text)), 3U) << before << " " << after;
      }
    }
    EXPECT_EQ(values.FindIn(Base64Of("another text of some length")), 0U);
  }
}

TEST(WatchedValues, WrappedBase64) {
  const std::string text = Base64Of(std::string(50, 'b') + kWatched + "after it");
  for (const std::string end : {"\n", "\r\n"}) {
    for (const size_t width : {4UL, 64UL, 76UL}) {
      std::string wrapped;
      for (size_t i = 0; i < text.size(); i += width) {
        wrapped += text.substr(i, width) + end;
      }
      EXPECT_EQ(Only(kWatched).FindIn(wrapped), 3U) << width;
    }
  }
}

TEST(WatchedValues, Hexadecimal) {
  const std::string hex = HexOf(kWatched);
  std::string upper = hex;
  std::transform(upper.begin(), upper.end(), upper.begin(), ::toupper);
  EXPECT_EQ(Only(kWatched).FindIn("0x" + hex), 3U);
  EXPECT_EQ(Only(kWatched).FindIn(upper), 3U);
}

TEST(WatchedValues, EscapedAsFormsDo) {
  const WatchedValues values = Only("a b/c+d=e.f-g");
  EXPECT_EQ(values.FindIn("k=a%20b%2Fc%2Bd%3De.f-g&l=1"), 3U);
  EXPECT_EQ(values.FindIn("k=a+b%2fc%2bd%3de.f-g&l=1"), 3U);
  // Digits of base64 that a form escapes.
  const std::string bytes = "\xff\xef\xbe\xfb\xef\xbf\xff\xff\xfe";
  std::string form;
  for (const char c : Base64Of(bytes)) {
    form += c == '+' ? "%2B" : c == '/' ? "%2F" : std::string(1, c);
  }
  EXPECT_NE(form.find("%2B"), std::string::npos);
  EXPECT_NE(form.find("%2F"), std::string::npos);
  EXPECT_EQ(Only(bytes).FindIn("k=" + form), 3U);
}

// What is left as it is differs: each line is what the named program makes of the value.
TEST(WatchedValues, EscapedAsProgramsDo) {
  const std::string value = "ab~c*d!e(f)g'h i/j";
  const WatchedValues values = Only(value);
  const std::pair<const char*, const char*> spellings[] = {
      {"URLSearchParams", "ab%7Ec*d%21e%28f%29g%27h+i%2Fj"},
      {"encodeURIComponent", "ab~c*d!e(f)g'h%20i%2Fj"},
      {"quote_plus", "ab~c%2Ad%21e%28f%29g%27h+i%2Fj"},
      {"quote", "ab~c%2Ad%21e%28f%29g%27h%20i/j"},
      {"URLEncoder", "ab%7Ec*d%21e%28f%29g%27h+i%2Fj"},
  };
  for (const auto& [program, spelling] : spellings) {
    EXPECT_EQ(values.FindIn(std::string("k=") + spelling + "&l=1"), 3U) << program;
    std::string other = spelling;
    other.back() = 'k';
    EXPECT_EQ(values.FindIn("k=" + other + "&l=1"), 0U) << "NO-CONTROL: " << program;
  }
}

TEST(WatchedValues, TargetsAreDecoded) {
  const WatchedValues values = Only("a b/c+d=e");
  EXPECT_EQ(values.FindInTarget("/v1/x?k=a%20b/c+d=e"), 3U);
  EXPECT_EQ(values.FindInTarget("/v1/x?k=a+b/c%2Bd=e"), 3U);
  EXPECT_EQ(values.FindInTarget("/v1/" + EveryByteEscaped("a b/c+d=e")), 3U);
  EXPECT_EQ(values.FindInTarget("/v1/" + EveryByteEscaped("a b/c+d=f")), 0U);
  EXPECT_EQ(values.FindInTarget("/v1/%"), 0U);
  EXPECT_EQ(values.FindInTarget("/v1/%4"), 0U);
  EXPECT_EQ(values.FindInTarget("/v1/%zz%4"), 0U);
  EXPECT_EQ(values.FindInTarget(""), 0U);
  EXPECT_EQ(values.FindInTarget("/?" + EveryByteEscaped(Base64Of("xa b/c+d=e"))), 3U);
}

// Everything that Pass gave back, and whether the value was found.
struct Passed {
  std::string text;
  size_t found = 0;
};
Passed Through(const WatchedValues& values, const std::vector<std::string>& pieces) {
  WatchedStream stream(values);
  Passed passed;
  for (const std::string& piece : pieces) {
    passed.text += stream.Pass(piece);
  }
  passed.text += stream.Rest();
  passed.found = stream.found();
  return passed;
}

TEST(WatchedStream, NothingOfAValueGoesOnHoweverItIsCut) {
  const WatchedValues values = Only(kWatched);
  const std::string spellings[] = {kWatched, Base64Of(kWatched), HexOf(kWatched)};
  for (const std::string& spelling : spellings) {
    for (size_t cut = 1; cut < spelling.size(); ++cut) {
      const Passed passed =
          Through(values, {"before " + spelling.substr(0, cut), spelling.substr(cut) + " after"});
      EXPECT_EQ(passed.found, 3U) << cut;
      EXPECT_TRUE(std::string("before ").starts_with(passed.text)) << cut << passed.text;
    }
    std::vector<std::string> bytes = {"before "};
    for (const char c : spelling) {
      bytes.emplace_back(1, c);
    }
    bytes.emplace_back(" after");
    EXPECT_EQ(Through(values, bytes).text, "before ");
  }
}

TEST(WatchedStream, OtherTextGoesOnWhole) {
  const WatchedValues values = Only("abcdefgh");
  for (const std::vector<std::string>& pieces :
       std::vector<std::vector<std::string>>{{},
                                             {""},
                                             {"abcdefg"},
                                             {"abcdefg", "x"},
                                             {"abcabc", "defgx", "abcdefg"},
                                             {"abcd\r\n", "efg"},
                                             {"a\n\n\n", "b"},
                                             {"\n", "\n", "\n"}}) {
    std::string whole;
    for (const std::string& piece : pieces) {
      whole += piece;
    }
    const Passed passed = Through(values, pieces);
    EXPECT_EQ(passed.text, whole);
    EXPECT_EQ(passed.found, 0U);
  }
}

// A text that is no beginning of a value is not held back, so a peer that answers to it does not wait.
TEST(WatchedStream, HoldsBackNoMoreThanABeginning) {
  const WatchedValues values = Only("abcdefgh");
  WatchedStream stream(values);
  EXPECT_EQ(stream.Pass("xyz"), "xyz");
  EXPECT_EQ(stream.Pass("xyzab"), "xyz");
  EXPECT_EQ(stream.Pass("cd\r"), "");
  EXPECT_EQ(stream.Pass("\nx"), "abcd\r\nx");
  EXPECT_EQ(stream.Pass("ab"), "");
  EXPECT_EQ(stream.Pass("\n\n\n"), "ab\n\n\n")
      << "line ends without bound would be held without bound";
}

// Against a search that knows nothing but the values: texts of few letters, so that beginnings and overlaps are many.
TEST(WatchedStream, AgreesWithANaiveSearch) {
  std::mt19937 random(20261119);  // NOLINT(cert-msc51-cpp): the same texts each time
  const auto some = [&](size_t least, size_t most) {
    return std::uniform_int_distribution<size_t>(least, most)(random);
  };
  const auto letters = [&](size_t size, size_t kinds) {
    std::string text;
    for (size_t i = 0; i < size; ++i) {
      text += static_cast<char>('w' + some(0, kinds - 1));
    }
    return text;
  };
  size_t found = 0;
  for (int round = 0; round < 3000; ++round) {
    const size_t kinds = some(1, 3);
    std::vector<NeverSendValue> listed;
    for (size_t line = 1, most = some(1, 4); line <= most; ++line) {
      listed.push_back({line, letters(some(8, 12), kinds)});
    }
    const WatchedValues values(listed);
    std::string text = letters(some(0, 200), kinds + 1);
    if (some(0, 1) == 0) {
      text.insert(some(0, text.size()), listed[some(0, listed.size() - 1)].value);
    }
    size_t first_end = std::string::npos;
    size_t first_begin = 0;
    for (const NeverSendValue& one : listed) {
      const size_t at = text.find(one.value);
      if (at != std::string::npos && at + one.value.size() < first_end) {
        first_end = at + one.value.size();
        first_begin = at;
      }
    }
    std::vector<std::string> pieces;
    for (size_t at = 0; at < text.size();) {
      const size_t size = some(1, 20);
      pieces.push_back(text.substr(at, size));
      at += size;
    }
    const Passed passed = Through(values, pieces);
    EXPECT_EQ(passed.found != 0, first_end != std::string::npos) << text;
    EXPECT_EQ(values.FindIn(text) != 0, first_end != std::string::npos) << text;
    if (passed.found == 0) {
      EXPECT_EQ(passed.text, text);
    } else {
      ++found;
      EXPECT_TRUE(text.starts_with(passed.text));
      EXPECT_LE(passed.text.size(), first_begin) << text;
    }
  }
  EXPECT_GT(found, 500U);
  EXPECT_LT(found, 2900U);
}

// The time is linear: a body of the worst bytes takes as many steps as it has bytes, twice at most. Quadratic would be
// 10^12 steps here.
TEST(WatchedStream, ManyBytesOfABeginning) {
  std::vector<NeverSendValue> listed;
  for (size_t line = 1; line <= 64; ++line) {
    listed.push_back({line, std::string(255 - line, 'a') + "b"});
  }
  const WatchedValues values(listed);
  WatchedStream stream(values);
  const std::string piece(64 << 10, 'a');
  size_t passed = 0;
  for (int i = 0; i < 16; ++i) {
    passed += stream.Pass(piece).size();
  }
  EXPECT_EQ(passed + stream.Rest().size(), 16 * piece.size());
  EXPECT_EQ(stream.found(), 0U);
}

TEST(WatchedValues, AsManyAndAsLongAsAFileMayHave) {
  std::mt19937 random(7);  // NOLINT(cert-msc51-cpp)
  std::vector<NeverSendValue> listed;
  for (size_t line = 1; line <= 64; ++line) {
    std::string value;
    for (int i = 0; i < 256; ++i) {
      value += static_cast<char>(std::uniform_int_distribution<int>(0x21, 0x7e)(random));
    }
    listed.push_back({line, value});
  }
  const WatchedValues values(listed);
  for (const NeverSendValue& one : listed) {
    EXPECT_EQ(values.FindIn("x" + one.value), one.line);
    EXPECT_EQ(values.FindIn(Base64Of("x" + one.value)), one.line);
  }
}

}  // namespace
}  // namespace coffer::egress
