// SPDX-License-Identifier: Apache-2.0
#include "isolation/runtime/resolution_cache.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <random>

#include "isolation/runtime/runtime.h"
#include "tests/support/temp_dir.h"

namespace coffer::isolation {
namespace {

RuntimeSet SomeSet() {
  RuntimeSet set;
  set.files = {{"/usr/bin/x", "/usr/bin/x", true, false},
               {"/usr/lib/liby.so.1.2", "/usr/lib/liby.so.1", false, false},
               {"/usr/lib/z", "/usr/lib/z", false, true}};
  set.links = {{"/bin", "usr/bin"}};
  return set;
}

class ResolutionCacheTest : public ::testing::Test {
 protected:
  ResolutionCacheTest()
      : watched_(dir_.Write("watched", "one")), cache_dir_(dir_.path() + "/cache/coffer") {}

  void Keep(const std::string& key = "k") {
    ResolutionCache(cache_dir_).Keep(key, {Observe(watched_)}, SomeSet());
  }
  bool Finds(const std::string& key = "k") {
    const std::optional<RuntimeSet> set = ResolutionCache(cache_dir_).Find(key);
    EXPECT_TRUE(!set || *set == SomeSet());
    return set.has_value();
  }
  std::string File() {
    for (const auto& entry : std::filesystem::directory_iterator(cache_dir_)) {
      return entry.path().string();
    }
    return {};
  }

  test::TempDir dir_;
  std::string watched_;
  std::string cache_dir_;
};

TEST_F(ResolutionCacheTest, RemembersWhileNothingChanges) {
  EXPECT_FALSE(Finds());
  Keep();
  EXPECT_TRUE(Finds());
  EXPECT_FALSE(Finds("another"));
  struct stat status{};
  ASSERT_EQ(::stat(cache_dir_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700U);
  ASSERT_EQ(::stat(File().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);
  Keep();  // replaces, and leaves no draft behind
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(cache_dir_), {}), 1);
}

TEST_F(ResolutionCacheTest, ForgetsWhenSomethingWatchedChanges) {
  Keep();
  dir_.Write("watched", "other");  // size
  EXPECT_FALSE(Finds());
  Keep();
  ASSERT_EQ(::chmod(watched_.c_str(), 04755), 0);  // mode, ctime
  EXPECT_FALSE(Finds());
  Keep();
  std::filesystem::remove(watched_);
  EXPECT_FALSE(Finds());
  Keep();  // what is watched is not there, and that is remembered too
  EXPECT_TRUE(Finds());
  dir_.Write("watched", "");
  EXPECT_FALSE(Finds());
}

TEST_F(ResolutionCacheTest, ReplacingAFileByOneLikeItIsNoticed) {
  Keep();
  dir_.Write("new", "one");
  std::filesystem::last_write_time(dir_.path() + "/new",
                                   std::filesystem::last_write_time(watched_));
  std::filesystem::rename(dir_.path() + "/new", watched_);
  EXPECT_FALSE(Finds());
}

TEST_F(ResolutionCacheTest, OnlyADirectoryOfOursAloneIsUsed) {
  Keep();
  ASSERT_EQ(::chmod(cache_dir_.c_str(), 0770), 0);
  EXPECT_FALSE(Finds());
  ASSERT_EQ(::chmod(cache_dir_.c_str(), 0705), 0);
  EXPECT_FALSE(Finds());
  ASSERT_EQ(::chmod(cache_dir_.c_str(), 0700), 0);
  EXPECT_TRUE(Finds());
  const std::string real = cache_dir_ + "-real";
  std::filesystem::rename(cache_dir_, real);
  std::filesystem::create_directory_symlink(real, cache_dir_);
  EXPECT_FALSE(Finds());
  Keep();  // does not write through the link either
  EXPECT_TRUE(std::filesystem::is_symlink(cache_dir_));
}

TEST_F(ResolutionCacheTest, OnlyAFileOfOursAloneIsUsed) {
  Keep();
  const std::string file = File();
  ASSERT_EQ(::chmod(file.c_str(), 0644), 0);
  EXPECT_FALSE(Finds());
  ASSERT_EQ(::chmod(file.c_str(), 0600), 0);
  EXPECT_TRUE(Finds());
  std::filesystem::rename(file, dir_.path() + "/elsewhere");
  std::filesystem::create_symlink(dir_.path() + "/elsewhere", file);
  EXPECT_FALSE(Finds());
  Keep();  // replaces the link itself
  EXPECT_TRUE(Finds());
  EXPECT_FALSE(std::filesystem::is_symlink(file));
}

TEST_F(ResolutionCacheTest, AnotherOwnerIsIgnored) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "only root can give a file away";
  }
  Keep();
  ASSERT_EQ(::chown(File().c_str(), 65534, 65534), 0);
  EXPECT_FALSE(Finds());
  Keep();
  EXPECT_TRUE(Finds());
  ASSERT_EQ(::chown(cache_dir_.c_str(), 65534, 65534), 0);
  EXPECT_FALSE(Finds());
}

TEST_F(ResolutionCacheTest, AFullOrForbiddenPlaceIsNoError) {
  cache_dir_ = "/proc/1/coffer";
  Keep();
  EXPECT_FALSE(Finds());
  cache_dir_ = "";
  Keep();
  EXPECT_FALSE(Finds());
}

TEST(ResolutionBytes, RoundTrip) {
  const std::vector<Witness> witnesses = {Observe("/usr"), Observe("/nowhere")};
  const std::string bytes = EncodeResolution("key", witnesses, SomeSet());
  const auto back = DecodeResolution("key", bytes);
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(back->set, SomeSet());
  EXPECT_EQ(back->witnesses, witnesses);
  EXPECT_FALSE(DecodeResolution("other", bytes).has_value());
}

TEST(ResolutionBytes, DamageIsNeverBelieved) {
  const std::string whole = EncodeResolution("key", {Observe("/usr")}, SomeSet());
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(DecodeResolution("key", whole.substr(0, size)).has_value()) << size;
  }
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string bytes = whole;
    bytes[at] = static_cast<char>(bytes[at] ^ 0x41);
    EXPECT_FALSE(DecodeResolution("key", bytes).has_value()) << at;
  }
  EXPECT_FALSE(DecodeResolution("key", whole + "x").has_value());
}

// With a correct fingerprint the reader itself has to hold.
TEST(ResolutionBytes, DamageWithAMatchingFingerprintDoesNoHarm) {
  const std::string whole = EncodeResolution("key", {Observe("/usr")}, SomeSet());
  const size_t head = whole.find('\n') + 1;
  std::mt19937 random(99);  // NOLINT(cert-msc51-cpp)
  for (int round = 0; round < 20000; ++round) {
    std::string body = whole.substr(head + 8);
    for (unsigned n = 1 + random() % 3; n > 0; --n) {
      body[random() % body.size()] = static_cast<char>(random());
    }
    uint64_t hash = 0xcbf29ce484222325ULL;
    for (const char c : body) {
      hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
    }
    const auto back = DecodeResolution(
        "key", whole.substr(0, head) + std::string(reinterpret_cast<const char*>(&hash), 8) + body);
    if (back) {
      for (const RuntimeFile& file : back->set.files) {
        EXPECT_TRUE(file.host.starts_with('/') && file.inside.starts_with('/'));
      }
    }
  }
}

TEST(ResolutionBytes, APathThatClimbsIsRefused) {
  RuntimeSet set;
  set.files = {{"/usr/../etc/shadow", "/x", false, false}};
  EXPECT_FALSE(DecodeResolution("key", EncodeResolution("key", {}, set)).has_value());
  set.files = {{"usr", "/x", false, false}};
  EXPECT_FALSE(DecodeResolution("key", EncodeResolution("key", {}, set)).has_value());
}

TEST(ResolutionCache, GivesTheSameAnswerAsResolving) {
  const test::TempDir dir;
  for (const std::string name : {"sh", "python3", "perl"}) {
    const auto fresh = ResolveRuntimes({name}, {.use_cache = false});
    const auto first = ResolveRuntimes({name}, {.cache_dir = dir.path() + "/c"});
    const auto second = ResolveRuntimes({name}, {.cache_dir = dir.path() + "/c"});
    ASSERT_EQ(fresh.ok(), first.ok());
    if (fresh.ok()) {
      EXPECT_EQ(*fresh, *first) << name;
      EXPECT_EQ(*fresh, *second) << name;
    }
  }
  EXPECT_FALSE(std::filesystem::is_empty(dir.path() + "/c"));
}

}  // namespace
}  // namespace coffer::isolation
