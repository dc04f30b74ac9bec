// SPDX-License-Identifier: Apache-2.0
//
// The ends of private files go behind what is there, and nowhere else.
#include "isolation/child/root.h"

#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>

#include <string>

#include "base/sys.h"
#include "base/unique_fd.h"
#include "isolation/child/plan_block.h"
#include "isolation/pack_plan.h"
#include "tests/support/temp_dir.h"

namespace coffer::isolation {
namespace {

class AppendToFilesTest : public ::testing::Test {
 protected:
  long Append(const std::string& at, const std::string& end) {
    RootPart part;
    part.files = {{"/etc/a", "1", 0444}, {at, end, 0444}};
    const std::string block = PackRoot(part);
    const UniqueFd root = sys::OpenAt(AT_FDCWD, dir_.path(), O_PATH | O_DIRECTORY).value();
    return AppendToFiles(*reinterpret_cast<const PlanBlock*>(block.data()), root.get(), &item_);
  }
  std::string Content(const std::string& name) {
    const Result<std::string> text = sys::ReadFile(dir_ / name, 100);
    return text.ok() ? *text : "";
  }

  test::TempDir dir_;
  uint32_t item_ = 77;
};

TEST_F(AppendToFilesTest, GoesBehindWhatIsThere) {
  dir_.Write("etc/a", "0");
  dir_.Write("etc/b", "one\n");
  EXPECT_EQ(Append("/etc/b", std::string("two\0", 4)), 0);
  EXPECT_EQ(Content("etc/a"), "01");
  EXPECT_EQ(Content("etc/b"), std::string("one\ntwo\0", 8));
  EXPECT_EQ(item_, 2u);
}

TEST_F(AppendToFilesTest, MakesNoFileAndFollowsNoLink) {
  dir_.Write("etc/a", "0");
  dir_.Write("elsewhere", "kept");
  dir_.Link("etc/link", "../elsewhere");
  dir_.MakeDir("etc/dir");
  EXPECT_EQ(Append("/etc/missing", "x"), -ENOENT);
  EXPECT_EQ(item_, 1u) << "the first one was there";
  EXPECT_EQ(Append("/etc/link", "x"), -ELOOP);
  EXPECT_EQ(Append("/etc/dir", "x"), -EISDIR);
  EXPECT_EQ(Content("elsewhere"), "kept");
  EXPECT_EQ(Content("etc/missing"), "");
}

}  // namespace
}  // namespace coffer::isolation
