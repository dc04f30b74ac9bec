// SPDX-License-Identifier: Apache-2.0
#include "policy/folded_name.h"

#include <gtest/gtest.h>

#include "policy/protected_names.h"

namespace coffer::policy {
namespace {

TEST(FoldedName, IsWhatADirectoryWithoutCaseCompares) {
  EXPECT_EQ(FoldedName(".GIT"), ".git");
  EXPECT_EQ(FoldedName(".v\u017fcode"), ".vscode");
  EXPECT_EQ(FoldedName(".hus\u212ay"), ".husky");
  EXPECT_EQ(FoldedName("\ufeff.g\u200cit\u00ad"), ".git");
  EXPECT_EQ(FoldedName(".g\U000e0001it"), ".git");
  EXPECT_EQ(FoldedName(".g\u00eft"), ".g\u00eft") << "a letter of its own";
}

TEST(FoldedName, WhatIsNotTextStaysAsItIs) {
  EXPECT_EQ(FoldedName("\xff.GIT\xc3"), "\xff.git\xc3");
  EXPECT_EQ(FoldedName("\xe2\x80"), "\xe2\x80");
  EXPECT_EQ(FoldedName("\xe2\x80z"), "\xe2\x80z");
  EXPECT_EQ(FoldedName(".g\xe0\x82\xadit"), ".g\xe0\x82\xadit") << "a longer form of U+00AD";
  EXPECT_EQ(FoldedName(""), "");
}

TEST(FoldedName, ProtectedNamesAreFoundByIt) {
  for (const char* name : {".g\u200cit", ".v\u017fcode", "li\u200bb.code-workspace"}) {
    EXPECT_NE(FindProtectedName(name), nullptr) << name;
  }
  EXPECT_NE(FindProtectedName("hooks", ".github\u200d"), nullptr);
  EXPECT_EQ(FindProtectedName("hooks", ".g\u00efthub"), nullptr);
  EXPECT_EQ(FindProtectedName("caf\u00e9"), nullptr);
}

}  // namespace
}  // namespace coffer::policy
