// SPDX-License-Identifier: Apache-2.0
#include "limits/mapping.h"

#include <gtest/gtest.h>
#include <sys/sysmacros.h>

namespace coffer::limits {
namespace {

TEST(ParseMapping, ReadsWhatTheKernelWrites) {
  const auto mapping = ParseMapping(
      "7f1234560000-7f1234570000 rw-s 00010000 08:01 4711                       /data/x (deleted)");
  ASSERT_TRUE(mapping.has_value());
  EXPECT_EQ(mapping->range, "7f1234560000-7f1234570000");
  EXPECT_EQ(mapping->file, (FileId{::makedev(8, 1), 4711}));
  EXPECT_EQ(mapping->end_offset, 0x20000U);
  EXPECT_TRUE(mapping->deleted);
  EXPECT_FALSE(mapping->anonymous);
}

TEST(ParseMapping, NamesThatPretend) {
  constexpr const char* kHead = "1000-2000 rw-s 00000000 00:01 7    ";
  const auto with = [&](const std::string& name) { return ParseMapping(kHead + name); };
  EXPECT_TRUE(with("/dev/zero (deleted)")->anonymous);
  EXPECT_FALSE(with("/memfd:x /dev/zero (deleted)")->anonymous) << "a memfd may have any name";
  EXPECT_FALSE(with("/data/dev/zero (deleted)")->anonymous);
  EXPECT_FALSE(with("/data/file")->deleted);
  EXPECT_FALSE(with("/data/ (deleted) file")->deleted);
  EXPECT_TRUE(with("/data/ (deleted) (deleted)")->deleted);
}

TEST(ParseMapping, WithoutAFileOrWithoutSense) {
  EXPECT_FALSE(ParseMapping("1000-2000 rw-p 00000000 00:00 0 [heap]")->deleted);
  EXPECT_FALSE(ParseMapping("1000-2000 rw-p 00000000 00:00 0")->deleted);
  for (const char* line : {"", "x", "1000", "1000-", "1000-2000", "1000-2000 rw", "1000-2000 rw-p ",
                           "1000-2000 rw-p 0 1", "1000-2000 rw-p 0 1:"}) {
    EXPECT_FALSE(ParseMapping(line).has_value()) << line;
  }
}

}  // namespace
}  // namespace coffer::limits
