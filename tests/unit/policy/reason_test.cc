// SPDX-License-Identifier: Apache-2.0
#include "policy/reason.h"

#include <gtest/gtest.h>

#include <string>

namespace coffer::policy {
namespace {

TEST(Reason, IsOneLineOfText) {
  for (const std::string& good : {std::string(), std::string("run the tests again after the fix"),
                                  std::string("pr\xc3\xbc"
                                              "fe die Rechnungen \xe2\x82\xac"),
                                  std::string("\xe6\xb5\x8b\xe8\xaf\x95 \xf0\x9f\x9a\x80"),
                                  std::string(kMostReasonBytes, 'x')}) {
    EXPECT_TRUE(CheckReason(good).ok()) << good;
  }
}

// A line of a list must not be forged, a terminal not be steered, and what a person sees must be what is there.
TEST(Reason, HasNothingThatActsOnATerminalOrHides) {
  const std::string bad[] = {
      std::string(kMostReasonBytes + 1, 'x'),
      "a\nb",
      "a\rb",
      "a\tb",
      std::string("a\0b", 3),
      "\x1b[2J",
      "\x7f",
      "\xc2\x9b"
      "31m",           // CSI as one C1 character
      "\x9b",          // not UTF-8
      "\xc0\x8a",      // a newline in an overlong form
      "\xed\xa0\x80",  // a surrogate
      "a\xe2\x80\xa8"
      "b",  // line separator
      "a\xe2\x80\xae"
      "b",  // right-to-left override
      "a\xe2\x81\xa6"
      "b",  // isolate
      "a\xe2\x80\x8b"
      "b",                 // zero width space
      "\xef\xbb\xbf",      // byte order mark
      "\xf3\xa0\x81\x81",  // a tag character
  };
  for (const std::string& reason : bad) {
    const Status checked = CheckReason(reason);
    ASSERT_FALSE(checked.ok()) << reason.substr(0, 20);
    EXPECT_EQ(checked.error().code, "policy.reason");
    EXPECT_NE(checked.error().hint.find("1000"), std::string::npos);
  }
}

}  // namespace
}  // namespace coffer::policy
