// SPDX-License-Identifier: Apache-2.0
#include "gateway/http/names.h"

#include <gtest/gtest.h>

#include <string>

#include "base/ids.h"
#include "base/utf8.h"

namespace coffer::gateway {
namespace {

TEST(Names, AnIdIsWhatNewIdMakes) {
  const auto id = NewId();
  ASSERT_TRUE(id.ok());
  EXPECT_TRUE(IsId(*id));
  for (const char* wrong :
       {"", "x", "01890a5d-ac96-774b-bcce-b302099a805", "01890A5D-ac96-774b-bcce-b302099a8057",
        "01890a5d_ac96_774b_bcce_b302099a8057", "01890a5d-ac96-774b-bcce-b302099a805/",
        "01890a5d-ac96-774b-bcce-b302099a80577", "../../../../../../../../etc/passwd00"}) {
    EXPECT_FALSE(IsId(wrong)) << wrong;
  }
}

TEST(Names, NamesNeedNoQuoting) {
  for (const char* right : {"a", "bot-7", "team.alice@example", "urn:x_1", "Z"}) {
    EXPECT_TRUE(IsName(right)) << right;
  }
  for (const char* wrong : {"", "-a", ".a", "a b", "a/b", "a'b", "a\"", "a\n", "ü", "a;b"}) {
    EXPECT_FALSE(IsName(wrong)) << wrong;
  }
  EXPECT_TRUE(IsName(std::string(128, 'a')));
  EXPECT_FALSE(IsName(std::string(129, 'a')));
}

TEST(Names, FilePathsStayBelow) {
  for (const char* right : {"a", "a/b.txt", "a b", "...", "..a", "ü/日本", "a\\b", ".hidden"}) {
    EXPECT_TRUE(IsFilePath(right)) << right;
    EXPECT_TRUE(IsNewFilePath(right)) << right;
  }
  for (const char* wrong : {"", "/", "/a", "a/", "a//b", ".", "..", "a/..", "../a", "a/./b"}) {
    EXPECT_FALSE(IsFilePath(wrong)) << wrong;
    EXPECT_FALSE(IsNewFilePath(wrong)) << wrong;
  }
  // A tool may have made these.
  for (const char* odd : {"a\nb", "a\x7f", "\xff", "\xc0\xaf", "a\xc2\x85"}) {
    EXPECT_TRUE(IsFilePath(odd)) << odd;
    EXPECT_FALSE(IsNewFilePath(odd)) << odd;
  }
  EXPECT_FALSE(IsFilePath(std::string("a\0b", 3)));
  EXPECT_TRUE(IsNewFilePath(std::string(255, 'a')));
  EXPECT_FALSE(IsFilePath(std::string(256, 'a')));
  std::string deep = "a";
  for (int i = 1; i < 32; ++i) {
    deep += "/a";
  }
  EXPECT_TRUE(IsNewFilePath(deep));
  EXPECT_FALSE(IsNewFilePath(deep + "/a"));
  EXPECT_TRUE(IsFilePath(deep + "/a"));
}

TEST(Names, EncodedPathsComeBackAsTheyWere) {
  EXPECT_EQ(PercentEncodePath("a/b.txt"), "a/b.txt");
  EXPECT_EQ(PercentEncodePath("a\nb\xff ?#%"), "a%0Ab%FF%20%3F%23%25");
  std::string all;
  for (int byte = 1; byte < 256; ++byte) {
    all += static_cast<char>(byte);
  }
  EXPECT_EQ(PercentDecode(PercentEncodePath(all)), all);
}

TEST(Names, Utf8IsTheShortestForm) {
  for (const char* right : {"", "a", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf",
                            "\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_TRUE(IsUtf8(right)) << right;
  }
  for (const char* wrong :
       {"\x80", "\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf",
        "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xc2", "\xe2\x82", "\xe2\x82\x28"}) {
    EXPECT_FALSE(IsUtf8(wrong));
  }
}

TEST(Names, PercentDecoding) {
  EXPECT_EQ(PercentDecode("a%20b%2Fc"), "a b/c");
  EXPECT_EQ(PercentDecode("+"), "+");
  EXPECT_EQ(PercentDecode("%ff"), "\xff");
  for (const char* wrong : {"%", "%1", "%zz", "a%0", "%00", "%%20"}) {
    EXPECT_FALSE(PercentDecode(wrong).has_value()) << wrong;
  }
}

TEST(Names, Cursors) {
  EXPECT_TRUE(IsCursor("Abc.1_-"));
  EXPECT_FALSE(IsCursor(""));
  EXPECT_FALSE(IsCursor("a'b"));
  EXPECT_FALSE(IsCursor(std::string(129, 'a')));
}

}  // namespace
}  // namespace coffer::gateway
