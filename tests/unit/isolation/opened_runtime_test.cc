// SPDX-License-Identifier: Apache-2.0
#include "isolation/opened_runtime.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "tests/support/run.h"

namespace coffer::isolation {
namespace {

class OpenRuntimeTest : public ::testing::Test {
 protected:
  RuntimeFile Entry(const std::string& path, BindReason why = BindReason::kRuntime) {
    RuntimeFile file{path, path, false, std::filesystem::is_directory(path), why};
    return file;
  }
  // The error's code, or "" if it is shown.
  std::string CodeFor(RuntimeFile file) {
    RuntimeSet set;
    set.files = {std::move(file)};
    set.own_trees = own_trees_;
    const Result<OpenedRuntime> opened = OpenRuntime(std::move(set), grounds_);
    return opened.ok() ? "" : opened.error().code;
  }

  const test::TempDir dir_;
  const std::string project_ = dir_.MakeDir("proj");
  const std::string elsewhere_ = dir_.MakeDir("elsewhere");
  const std::string inside_ = dir_.Write("proj/inside",
                                         "\x7f"
                                         "ELF and more");
  const std::string outside_ = dir_.Write("elsewhere/outside",
                                          "\x7f"
                                          "ELF and more");
  std::vector<std::string> own_trees_ = {project_};
  RuntimeGrounds grounds_;
};

TEST_F(OpenRuntimeTest, AnythingMayNameTheSystemsOwn) {
  EXPECT_EQ(CodeFor(Entry("/usr/bin/env")), "");
  EXPECT_EQ(CodeFor(Entry("/usr/share")), "");
}

TEST_F(OpenRuntimeTest, AFileNamesOnlyItsOwnTreeAndToolchains) {
  EXPECT_EQ(CodeFor(Entry(inside_)), "");
  EXPECT_EQ(CodeFor(Entry(outside_)), "policy.runtime.foreign");
  EXPECT_EQ(CodeFor(Entry(elsewhere_)), "policy.runtime.foreign");
  EXPECT_EQ(CodeFor(Entry("/etc/passwd")), "policy.runtime.foreign");
  RuntimeFile typed = Entry(outside_, BindReason::kProgram);
  typed.named_by_caller = true;
  EXPECT_EQ(CodeFor(typed), "");
  grounds_.toolchains = {elsewhere_};
  EXPECT_EQ(CodeFor(Entry(outside_)), "");
  // A name that only begins like a tree.
  own_trees_ = {dir_ / "pro"};
  EXPECT_EQ(CodeFor(Entry(inside_)), "policy.runtime.foreign");
}

TEST_F(OpenRuntimeTest, AFileNamesNoWholeOwnTree) {
  const std::string part = dir_.MakeDir("proj/lib");
  EXPECT_EQ(CodeFor(Entry(part)), "");
  EXPECT_EQ(CodeFor(Entry(project_)), "policy.runtime.whole");
  own_trees_.push_back(dir_.path());  // the tree of another program around it
  EXPECT_EQ(CodeFor(Entry(project_)), "");
  own_trees_.pop_back();
  grounds_.toolchains = {project_};
  EXPECT_EQ(CodeFor(Entry(project_)), "");
}

TEST_F(OpenRuntimeTest, LinksFifosAndDevicesAreNeverShown) {
  std::filesystem::create_symlink(inside_, dir_ / "proj/link");
  ASSERT_EQ(::mkfifo((dir_ / "proj/fifo").c_str(), 0600), 0);
  EXPECT_EQ(CodeFor({dir_ / "proj/link", "/x", false, false}), "policy.path.link");
  EXPECT_EQ(CodeFor({dir_ / "proj/fifo", "/x", false, false}), "policy.path.kind");
  EXPECT_EQ(CodeFor({"/dev/null", "/x", false, false}), "policy.path.kind");
  EXPECT_EQ(CodeFor({"/proc/self/status", "/x", false, false}), "policy.path.link");
  EXPECT_EQ(CodeFor({inside_, "/x", false, /*directory=*/true}), "policy.path.kind");
  EXPECT_EQ(CodeFor({project_, "/x", false, /*directory=*/false}), "policy.path.kind");
}

TEST_F(OpenRuntimeTest, ALoaderOrLibraryOfTheCallersIsAnElfFile) {
  const std::string secret = dir_.Write("proj/.env", "KEY=1");
  for (const BindReason why : {BindReason::kLoader, BindReason::kLibrary}) {
    EXPECT_EQ(CodeFor(Entry(secret, why)), "policy.runtime.library");
    EXPECT_EQ(CodeFor(Entry(inside_, why)), "");
  }
}

TEST_F(OpenRuntimeTest, WhatIsTooBroadOrProtectedIsNotShown) {
  RuntimeFile tmp = Entry("/tmp");
  tmp.named_by_caller = true;
  EXPECT_EQ(CodeFor(tmp), "policy.path.broad");
  grounds_.protected_paths = {project_};
  EXPECT_EQ(CodeFor(Entry(inside_)), "policy.path.state");
}

TEST_F(OpenRuntimeTest, OptionalEntriesAreLeftOut) {
  RuntimeSet set;
  set.files = {Entry("/usr/bin/env"), Entry(outside_)};
  set.files[1].optional = true;
  const Result<OpenedRuntime> opened = OpenRuntime(std::move(set), grounds_);
  ASSERT_TRUE(opened.ok());
  ASSERT_EQ(opened->set.files.size(), 1U);
  EXPECT_EQ(opened->paths.size(), 1U);
  EXPECT_EQ(opened->paths[0].path, "/usr/bin/env");
}

TEST_F(OpenRuntimeTest, AnAnswerOfTheCacheCountsForTheSystemAlone) {
  RuntimeFile remembered = Entry(inside_);
  remembered.remembered = true;
  EXPECT_EQ(CodeFor(remembered), kStaleRuntime);
  remembered = {"/usr/no-such-file", "/usr/no-such-file", false, false};
  remembered.remembered = true;
  EXPECT_EQ(CodeFor(remembered), kStaleRuntime);
  remembered = Entry("/usr/bin/env");
  remembered.remembered = true;
  EXPECT_EQ(CodeFor(remembered), "");
  RuntimeSet set;
  set.files = {Entry("/usr/bin/env")};
  EXPECT_TRUE(IsAllSystem(set));
  set.files.push_back(Entry(inside_));
  EXPECT_FALSE(IsAllSystem(set));
}

TEST_F(OpenRuntimeTest, SaysWhatWasFound) {
  const std::string part = dir_.MakeDir("proj/lib");
  ASSERT_EQ(::mkfifo((dir_ / "proj/lib/fifo").c_str(), 0600), 0);
  RuntimeSet set;
  set.files = {Entry("/usr/bin/env"), Entry(part)};
  set.own_trees = own_trees_;
  const Result<OpenedRuntime> opened = OpenRuntime(std::move(set), grounds_);
  ASSERT_TRUE(opened.ok());
  EXPECT_EQ(opened->paths[0].path_class, PathClass::kSystem);
  EXPECT_EQ(opened->paths[1].path_class, PathClass::kCaller);
  EXPECT_TRUE(opened->ShowsCallerDirectory());
  ASSERT_EQ(opened->fifos[1].size(), 1U);
  EXPECT_EQ(opened->fifos[1].front().path, "fifo");
  EXPECT_NE(opened->fifos[1].front().ino, 0U);
}

}  // namespace
}  // namespace coffer::isolation
