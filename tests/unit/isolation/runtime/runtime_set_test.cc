// SPDX-License-Identifier: Apache-2.0
#include "isolation/runtime/runtime_set.h"

#include <gtest/gtest.h>

#include "isolation/runtime/loader_cache.h"
#include "isolation/runtime/runtime.h"
#include "tests/support/temp_dir.h"

namespace coffer::isolation {
namespace {

TEST(RuntimeSet, MergeKeepsOneOfEachAndNothingInsideATree) {
  RuntimeSet first;
  first.files = {{"/usr/bin/dash", "/usr/bin/dash", true, false},
                 {"/usr/lib/libc.so.6", "/usr/lib/libc.so.6"}};
  first.links = {{"/bin", "usr/bin"}, {"/usr/bin/sh", "dash"}};
  RuntimeSet second;
  second.files = {{"/usr/lib/libc.so.6", "/usr/lib/libc.so.6"},
                  {"/usr/lib/py", "/usr/lib/py", false, true},
                  {"/usr/lib/py/x.so", "/usr/lib/py/x.so"},
                  {"/usr/lib/python", "/usr/lib/python"}};
  second.links = {{"/bin", "usr/bin"}, {"/sbin", "usr/sbin"}, {"/usr/bin/dash", "elsewhere"}};
  const RuntimeSet both = Merge(first, second);
  std::vector<std::string> names;
  for (const RuntimeFile& file : both.files) {
    names.push_back(file.inside);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"/usr/bin/dash", "/usr/lib/libc.so.6", "/usr/lib/py",
                                             "/usr/lib/python"}));
  // /sbin leads nowhere, and a file is not shadowed by a link.
  EXPECT_EQ(both.links, (std::vector<std::pair<std::string, std::string>>{
                            {"/bin", "usr/bin"}, {"/usr/bin/sh", "dash"}}));
  EXPECT_EQ(Merge(both, both), both);
}

TEST(RuntimeSet, MergeKeepsAProgramExecutable) {
  RuntimeSet first;
  first.files = {{"/x", "/x", false, false}};
  RuntimeSet second;
  second.files = {{"/x", "/x", true, false}};
  EXPECT_TRUE(Merge(first, second).files.front().executable);
}

TEST(RuntimeSet, FindsByLinks) {
  const test::TempDir dir;
  dir.Write("tree/sub/file", "");
  dir.Link("tree/out", "/etc/hostname");
  RuntimeSet set;
  set.files = {{dir.path() + "/tree", "/opt/tree", false, true},
               {"/usr/bin/dash", "/usr/bin/dash", true, false}};
  set.links = {{"/bin", "usr/bin"}, {"/usr/bin/sh", "dash"}};
  EXPECT_EQ(FindInside(set, "/bin/sh"), "/usr/bin/dash");
  EXPECT_EQ(FindInside(set, "/bin/../bin//sh"), "/usr/bin/dash");
  EXPECT_EQ(FindInside(set, "/opt/tree/sub/file"), "/opt/tree/sub/file");
  EXPECT_EQ(FindInside(set, "/opt/tree/none"), "");
  EXPECT_EQ(FindInside(set, "/opt/tree/out"), "");  // leads out of the set
  EXPECT_EQ(FindInside(set, "/bin/ls"), "");
  EXPECT_EQ(FindInside(set, "/opt/treetop"), "");
}

TEST(RuntimeSet, TheLoaderCacheListsItsLibraries) {
  const Result<RuntimeSet> set = ResolveRuntimes({"sh"}, {.use_cache = false});
  ASSERT_TRUE(set.ok()) << set.error().message;
  const std::string bytes = MakeLoaderCache(*set);
  LoaderCache cache;
  cache.Use(bytes);
  ASSERT_GT(cache.size(), 0U);
  EXPECT_EQ(FindInside(*set, std::string(cache.Find("libc.so.6"))), cache.Find("libc.so.6"));
  EXPECT_EQ(cache.Find("libcurl.so.4"), "");
}

}  // namespace
}  // namespace coffer::isolation
