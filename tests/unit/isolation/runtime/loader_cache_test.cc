// SPDX-License-Identifier: Apache-2.0
#include "isolation/runtime/loader_cache.h"

#include <gtest/gtest.h>
#include <stdio.h>

#include <cstring>
#include <random>

#include "tests/support/temp_dir.h"

namespace coffer::isolation {
namespace {

std::string Three() {
  return BuildLoaderCache({{"liba.so.9", "/lib/liba.so.9"},
                           {"liba.so.10", "/lib/liba.so.10"},
                           {"libz.so.1", "/x/libz.so.1"}});
}

TEST(LoaderCache, FindsWhatWasBuilt) {
  const std::string bytes = Three();
  LoaderCache cache;
  cache.Use(bytes);
  EXPECT_EQ(cache.size(), 3U);
  EXPECT_EQ(cache.Find("liba.so.9"), "/lib/liba.so.9");
  EXPECT_EQ(cache.Find("liba.so.10"), "/lib/liba.so.10");
  EXPECT_EQ(cache.Find("libz.so.1"), "/x/libz.so.1");
  EXPECT_EQ(cache.Find("liba.so"), "");
  EXPECT_EQ(cache.Find(""), "");
  EXPECT_EQ(cache.Find("libzz.so.1"), "");
}

TEST(LoaderCache, FindsTheNewTableBehindAnOldOne) {
  std::string bytes("ld.so-1.7.0\0", 12);
  const uint32_t count = 3;
  bytes.append(reinterpret_cast<const char*>(&count), sizeof(count));
  bytes.append(3 * 12, 'o');
  bytes.resize((bytes.size() + 7) & ~size_t{7}, '\0');
  bytes += Three();
  LoaderCache cache;
  cache.Use(bytes);
  EXPECT_EQ(cache.Find("libz.so.1"), "/x/libz.so.1");
}

TEST(LoaderCache, AgreesWithLdconfig) {
  FILE* const listing = ::popen("/sbin/ldconfig -p 2>/dev/null", "r");
  ASSERT_NE(listing, nullptr);
  LoaderCache cache;
  cache.Open("/etc/ld.so.cache");
  char line[4096];
  int compared = 0;
  std::string before;
  while (::fgets(line, sizeof(line), listing) != nullptr) {
    const std::string text(
        line);  // "\tlibz.so.1 (libc6,AArch64) => /lib/aarch64-linux-gnu/libz.so.1\n"
    const size_t paren = text.find(" (");
    const size_t arrow = text.find(" => ");
    if (paren == std::string::npos || arrow == std::string::npos) {
      continue;
    }
    const std::string flags = text.substr(paren, arrow - paren);
    const std::string soname = text.substr(1, paren - 1);
    const bool native =
        flags.find("AArch64") != std::string::npos || flags.find("x86-64") != std::string::npos;
    if (!native || flags.find("hwcap") != std::string::npos || soname == before) {
      continue;  // of several the first counts
    }
    before = soname;
    EXPECT_EQ(cache.Find(soname), text.substr(arrow + 4, text.size() - arrow - 5)) << soname;
    ++compared;
  }
  ::pclose(listing);
  if (cache.size() == 0) {
    GTEST_SKIP() << "this host has no /etc/ld.so.cache";
  }
  EXPECT_GT(compared, 5);
}

TEST(LoaderCache, DamageIsNotThereAndNothingWorse) {
  const std::string whole = Three();
  for (size_t size = 0; size < whole.size(); ++size) {
    const std::string bytes =
        whole.substr(0, size);  // its own allocation: a read past the end is seen by asan
    LoaderCache cache;
    cache.Use(bytes);
    for (const std::string_view name : {"liba.so.9", "libz.so.1", "nothing"}) {
      const std::string_view found = cache.Find(name);
      EXPECT_TRUE(found.empty() || (found.data() >= bytes.data() &&
                                    found.data() + found.size() <= bytes.data() + size));
    }
  }
  std::mt19937 random(7);  // NOLINT(cert-msc51-cpp)
  for (int round = 0; round < 20000; ++round) {
    std::string bytes = whole;
    for (unsigned n = 1 + random() % 5; n > 0; --n) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    LoaderCache cache;
    cache.Use(bytes);
    const std::string_view found = cache.Find("liba.so.10");
    EXPECT_TRUE(found.empty() || found.front() == '/');
  }
}

TEST(LoaderCache, AHugeCountIsDamage) {
  std::string bytes = Three();
  const uint32_t count = 0xffffffff;
  std::memcpy(bytes.data() + 20, &count, sizeof(count));
  LoaderCache cache;
  cache.Use(bytes);
  EXPECT_EQ(cache.size(), 0U);
}

TEST(LoaderCache, AFileThatOthersMayWriteIsIgnored) {
  const test::TempDir dir;
  LoaderCache open_to_all;
  open_to_all.Open(dir.Write("cache", Three(), 0666));
  EXPECT_EQ(open_to_all.size(), 0U);
  LoaderCache missing;
  missing.Open(dir.path() + "/none");
  EXPECT_EQ(missing.size(), 0U);
}

}  // namespace
}  // namespace coffer::isolation
