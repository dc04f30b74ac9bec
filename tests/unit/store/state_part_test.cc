// SPDX-License-Identifier: Apache-2.0
//
// A link in the state directory is not followed, by the store or by the log. The control of each is the same link where
// nobody looks: what it leads to can be written.
#include "store/state_part.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "audit/log/log.h"
#include "store/store.h"
#include "tests/support/run.h"

namespace coffer::store {
namespace {

namespace fs = std::filesystem;

size_t FilesIn(const std::string& directory) {
  return static_cast<size_t>(
      std::distance(fs::directory_iterator(directory), fs::directory_iterator()));
}

void ExpectLinkError(const Error& error, const std::string& name) {
  EXPECT_EQ(error.code, "store.link") << error.message;
  EXPECT_TRUE(test::Contains(error.message, name)) << error.message;
  EXPECT_FALSE(error.hint.empty());
}

TEST(StatePart, TheLogIsNotALink) {
  const test::TempDir dir;
  dir.MakeDir("state", 0700);
  const std::string elsewhere = dir.MakeDir("elsewhere", 0700);
  fs::create_symlink(elsewhere, dir / "state/log");
  const Result<audit::Log> log = audit::Log::Open(dir / "state/log");
  ASSERT_FALSE(log.ok());
  ExpectLinkError(log.error(), "log");
  EXPECT_EQ(FilesIn(elsewhere), 0U);
  std::ofstream(dir / "state/log/key") << "the control";
  EXPECT_EQ(FilesIn(elsewhere), 1U) << "the link leads there";
}

TEST(StatePart, ALinkThatLeadsNowhereMakesNothing) {
  const test::TempDir dir;
  dir.MakeDir("state", 0700);
  fs::create_symlink(dir / "nowhere", dir / "state/log");
  EXPECT_FALSE(audit::Log::Open(dir / "state/log").ok());
  for (const char* name : {"coffer.db", "owners", "coffer.db-wal"}) {
    const test::TempDir other;
    other.MakeDir("state", 0700);
    fs::create_symlink(other / "nowhere", other / ("state/" + std::string(name)));
    const Result<Store> opened = Store::Open(other / "state");
    ASSERT_FALSE(opened.ok()) << name;
    ExpectLinkError(opened.error(), name);
    EXPECT_FALSE(test::Exists(other / "nowhere")) << name;
  }
  EXPECT_FALSE(test::Exists(dir / "nowhere"));
}

// Somebody puts the database elsewhere, where root would write it.
TEST(StatePart, TheDatabaseIsNotALink) {
  const test::TempDir dir;
  ASSERT_TRUE(Store::Open(dir / "state").ok()) << "the control";
  const std::string moved = dir / "moved.db";
  fs::rename(dir / "state/coffer.db", moved);
  fs::create_symlink(moved, dir / "state/coffer.db");
  const std::string before = *test::ReadFile(moved);
  const Result<Store> opened = Store::Open(dir / "state");
  ASSERT_FALSE(opened.ok());
  ExpectLinkError(opened.error(), "coffer.db");
  EXPECT_EQ(*test::ReadFile(moved), before);
  EXPECT_FALSE(test::Exists(moved + "-wal"));
}

// Where the state directory is, its operator says.
TEST(StatePart, TheStateDirectoryMayBeBehindALink) {
  const test::TempDir dir;
  dir.MakeDir("real", 0700);
  fs::create_symlink(dir / "real", dir / "state");
  EXPECT_TRUE(Store::Open(dir / "state").ok());
  EXPECT_TRUE(audit::Log::Open(dir / "state/log").ok());
  EXPECT_TRUE(test::Exists(dir / "real/coffer.db"));
  EXPECT_TRUE(test::Exists(dir / "real/log/records"));
}

}  // namespace
}  // namespace coffer::store
