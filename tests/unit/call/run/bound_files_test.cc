// SPDX-License-Identifier: Apache-2.0
#include "call/run/bound_files.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/run.h"

namespace coffer::call {
namespace {

using isolation::BindReason;
using isolation::PathClass;
using test::Contains;

class DescribeBoundTest : public ::testing::Test {
 protected:
  void AddRuntime(const std::string& path, PathClass path_class, BindReason why,
                  bool directory = false) {
    isolation::HostPath shown;
    shown.path = path;
    shown.path_class = path_class;
    shown.reason = why;
    shown.directory = directory;
    prepared_.runtime.paths.push_back(std::move(shown));
  }
  void AddInput(const std::string& path, PathClass path_class, BindReason why) {
    prepared_.inputs.push_back({path.substr(path.rfind('/') + 1), "", path, path_class, why});
  }
  void AddMount(const std::string& path, policy::Access access) {
    isolation::OpenedMount mount;
    mount.path.path = path;
    mount.path.directory = true;
    mount.access = access;
    prepared_.mounts.push_back(std::move(mount));
  }
  void Describe() { DescribeBound(RunRequest(), prepared_, receipt_); }
  // "class why count" of the entry for `path`.
  std::string Entry(const std::string& path) const {
    const auto entry =
        std::find_if(receipt_.bound.begin(), receipt_.bound.end(),
                     [&](const audit::BoundPath& bound) { return bound.path == path; });
    return entry == receipt_.bound.end()
               ? "absent"
               : entry->path_class + " " + entry->why + " " + std::to_string(entry->count);
  }
  bool CanRead(const std::string& path) const { return Contains(receipt_.blast_radius, path); }

  Prepared prepared_;
  audit::Receipt receipt_;
};

TEST_F(DescribeBoundTest, NothingOfTheCallers) {
  AddRuntime("/usr/bin/cat", PathClass::kSystem, BindReason::kProgram);
  AddRuntime("/usr/lib/libc.so.6", PathClass::kSystem, BindReason::kLibrary);
  AddRuntime("/usr/bin/egrep", PathClass::kSystem, BindReason::kScript);
  Describe();
  EXPECT_EQ(receipt_.bound.size(), 1U);
  EXPECT_EQ(Entry("files of the system"), "system runtime 3");
  EXPECT_TRUE(receipt_.blast_radius.starts_with(
      "can change nothing on the host; can read no host file but its runtime; "))
      << receipt_.blast_radius;
}

TEST_F(DescribeBoundTest, WhatIsBroughtInByCopyCanBeRead) {
  AddMount("/home/me/proj", policy::Access::kRead);
  AddMount("/home/me/out", policy::Access::kWrite);
  AddInput("/home/me/in.txt", PathClass::kCaller, BindReason::kInput);
  AddInput("/home/me/run.py", PathClass::kCaller, BindReason::kScript);
  // The class is what was found, not what it came in by; named by the caller, it is listed all the same.
  AddInput("/usr/share/dict/words", PathClass::kSystem, BindReason::kInput);
  AddRuntime("/usr", PathClass::kSystem, BindReason::kRuntime, /*directory=*/true);
  Describe();
  EXPECT_EQ(Entry("/home/me/in.txt"), "caller input 1");
  EXPECT_EQ(Entry("/home/me/run.py"), "caller script 1");
  EXPECT_EQ(Entry("/usr/share/dict/words"), "system input 1");
  EXPECT_TRUE(receipt_.blast_radius.starts_with(
      "can change files under /home/me/out; can read /home/me/proj, /home/me/in.txt, "
      "/home/me/run.py, /usr/share/dict/words, /usr; "))
      << receipt_.blast_radius;
}

TEST_F(DescribeBoundTest, FilesOfARuntimeAreCountedOnlyBeyondTheBounds) {
  constexpr size_t kLeftOut = 7;
  for (size_t i = 0; i < kMostRuntimeFiles + kLeftOut; ++i) {
    AddRuntime("/home/me/lib/" + std::to_string(i) + ".so", PathClass::kCaller,
               BindReason::kLibrary);
  }
  // After all of them, and still there: what the caller named, directories, and the system's own.
  AddRuntime("/home/me/packages", PathClass::kCaller, BindReason::kRuntime, /*directory=*/true);
  AddRuntime("/usr/lib/libc.so.6", PathClass::kSystem, BindReason::kLibrary);
  for (size_t i = 0; i < 2 * kMostFilesNamed; ++i) {
    AddInput("/home/me/in/" + std::to_string(i) + ".txt", PathClass::kCaller, BindReason::kInput);
  }
  AddMount("/home/me/proj", policy::Access::kRead);
  Describe();
  EXPECT_EQ(receipt_.bound.size(), 1 + 2 * kMostFilesNamed + kMostRuntimeFiles + 1 + 2);
  EXPECT_EQ(Entry("/home/me/lib/" + std::to_string(kMostRuntimeFiles - 1) + ".so"),
            "caller library 1");
  EXPECT_EQ(Entry("/home/me/lib/" + std::to_string(kMostRuntimeFiles) + ".so"), "absent");
  EXPECT_EQ(Entry("further files"), "caller runtime " + std::to_string(kLeftOut));
  EXPECT_EQ(Entry("files of the system"), "system runtime 1");
  EXPECT_EQ(Entry("/home/me/packages"), "caller runtime 1");
  EXPECT_TRUE(CanRead("/home/me/proj, ") && CanRead(", /home/me/packages"));
  for (size_t i = 0; i < 2 * kMostFilesNamed; ++i) {
    EXPECT_TRUE(CanRead("/home/me/in/" + std::to_string(i) + ".txt")) << i;
  }
  EXPECT_TRUE(CanRead("/home/me/lib/" + std::to_string(kMostFilesNamed - 1) + ".so"));
  EXPECT_FALSE(CanRead("/home/me/lib/" + std::to_string(kMostFilesNamed) + ".so"));
  EXPECT_TRUE(CanRead(" and " + std::to_string(kMostRuntimeFiles + kLeftOut - kMostFilesNamed) +
                      " further files of the caller's; "))
      << receipt_.blast_radius;
}

// Where a session's files lie is not for its agent to know.
TEST_F(DescribeBoundTest, TheWorkspaceOfASessionIsCalledSo) {
  AddMount("/var/lib/coffer/sessions/abc", policy::Access::kWrite);
  prepared_.mounts.back().path.reason = BindReason::kWorkspace;
  Describe();
  EXPECT_TRUE(receipt_.blast_radius.starts_with("can change files under the session's workspace; "))
      << receipt_.blast_radius;
}

TEST_F(DescribeBoundTest, ASecondLookReplacesTheFirst) {
  AddInput("/home/me/in.txt", PathClass::kCaller, BindReason::kInput);
  Describe();
  Describe();
  EXPECT_EQ(receipt_.bound.size(), 1U);
}

}  // namespace
}  // namespace coffer::call
