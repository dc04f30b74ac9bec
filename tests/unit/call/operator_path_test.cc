// SPDX-License-Identifier: Apache-2.0
#include "call/operator_path.h"

#include <errno.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/run.h"

namespace coffer::call {
namespace {

constexpr uid_t kGateway = 0x6fff0001;

class OperatorPath : public ::testing::Test {
 protected:
  std::string Code(const std::string& path) const {
    const Result<UniqueFd> opened = OpenOperatorFile(path, ::geteuid());
    return opened.ok() ? "" : opened.error().code;
  }
  test::TempDir dir_;
  std::string inner_ = dir_.MakeDir("inner");
  std::string file_ = dir_.Write("inner/file.toml", "text");
};

TEST_F(OperatorPath, TheOperatorsOwnFileIsOpened) {
  EXPECT_EQ(Code(file_), "");
  EXPECT_EQ(*ReadOperatorFile(file_, ::geteuid(), 100), "text");
  EXPECT_FALSE(ReadOperatorFile(file_, ::geteuid(), 3).ok()) << "larger than the limit";
  EXPECT_TRUE(OpenOperatorDirectory(inner_, ::geteuid()).ok());
  const Result<UniqueFd> none = OpenOperatorFile(dir_ / "none.toml", ::geteuid());
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().sys_errno, ENOENT);
  EXPECT_NE(Code(inner_), "") << "not a file";
}

TEST_F(OperatorPath, WhatOthersCouldChangeIsNot) {
  for (const std::string& part : {file_, inner_}) {
    struct stat before{};
    ASSERT_EQ(::stat(part.c_str(), &before), 0);
    for (const mode_t more : {S_IWGRP, S_IWOTH}) {
      ASSERT_EQ(::chmod(part.c_str(), before.st_mode | more), 0);
      EXPECT_EQ(Code(file_), "policy.operator") << part;
    }
    ASSERT_EQ(::chmod(part.c_str(), before.st_mode), 0);
    EXPECT_EQ(Code(file_), "") << "the control";
  }
  // With the sticky bit others can add names and not replace ours.
  ASSERT_EQ(::chmod(inner_.c_str(), 01777), 0);
  EXPECT_EQ(Code(file_), "");
}

TEST_F(OperatorPath, NoPartIsALink) {
  ASSERT_EQ(::symlink(file_.c_str(), (dir_ / "link.toml").c_str()), 0);
  ASSERT_EQ(::symlink(inner_.c_str(), (dir_ / "way").c_str()), 0);
  EXPECT_EQ(Code(dir_ / "link.toml"), "policy.operator");
  EXPECT_EQ(Code(dir_ / "way/file.toml"), "policy.operator");
}

TEST_F(OperatorPath, WhatAnotherUserOwnsIsNot) {
  if (!test::IsRoot()) {
    // The file is ours, and the operator is another user: the same question from the other side.
    EXPECT_FALSE(OpenOperatorFile(file_, kGateway).ok());
    return;
  }
  for (const std::string& part : {file_, inner_}) {
    ASSERT_EQ(::chown(part.c_str(), kGateway, kGateway), 0);
    EXPECT_EQ(Code(file_), "policy.operator") << part;
    ASSERT_EQ(::chown(part.c_str(), 0, 0), 0);
    EXPECT_EQ(Code(file_), "") << "the control";
  }
}

}  // namespace
}  // namespace coffer::call
