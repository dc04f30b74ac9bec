// SPDX-License-Identifier: Apache-2.0
#include "base/regular_file.h"

#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sys.h"
#include "tests/support/run.h"

namespace coffer::sys {
namespace {

using test::TempDir;

TEST(RegularFile, IsReadWhole) {
  const TempDir dir;
  const std::string text(100'000, 'x');
  const std::string path = dir.Write("file", text);
  EXPECT_EQ(*ReadRegular(path, text.size()), text);
  EXPECT_EQ(*ReadRegular(dir.Write("empty", ""), 0), "");
  ASSERT_EQ(::symlink(path.c_str(), (dir / "link").c_str()), 0);
  EXPECT_EQ(*ReadRegular(dir / "link", text.size()), text) << "the caller's own link";
}

TEST(RegularFile, EverythingElseIsRefusedByItsKind) {
  const TempDir dir;
  ASSERT_EQ(::mkfifo((dir / "fifo").c_str(), 0600), 0);
  ASSERT_EQ(::symlink("fifo", (dir / "to-fifo").c_str()), 0);
  const std::pair<std::string, std::string> kinds[] = {
      {dir / "fifo", "a fifo"},
      {dir / "to-fifo", "a fifo"},
      {dir.path(), "a directory"},
      {"/dev/zero", "a device"},
      {"/proc/self/status", "a file of the kernel"},
  };
  for (const auto& [path, kind] : kinds) {
    const Result<std::string> text = ReadRegular(path, 1 << 20);
    ASSERT_FALSE(text.ok()) << path;
    EXPECT_EQ(text.error().kind, ErrorKind::kRefused) << path;
    EXPECT_EQ(text.error().message, path + " is " + kind + ", not a regular file");
  }
  EXPECT_TRUE(ReadFile("/proc/self/status").ok()) << "the control: it can be read";
}

TEST(RegularFile, AWriterThatWaitsAtAFifoIsNotReleased) {
  const TempDir dir;
  const std::string fifo = dir / "fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  test::Background writer({"sh", "-c", "echo waits; exec 3> \"$0\"; echo released", fifo});
  ASSERT_TRUE(writer.WaitForOutput("waits\n"));
  EXPECT_FALSE(ReadRegular(fifo, 100).ok());
  EXPECT_FALSE(OpenRegular(fifo, O_RDONLY).ok());
  EXPECT_FALSE(writer.WaitForOutput("released\n", test::Seconds(0.3)));
  const UniqueFd reader(::open(fifo.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  EXPECT_TRUE(writer.WaitForOutput("released\n")) << "the control: an open releases it";
}

TEST(RegularFile, TooLargeIsRefusedUnread) {
  const TempDir dir;
  const std::string path = dir.Write("sparse", "");
  ASSERT_EQ(::truncate(path.c_str(), 1LL << 40), 0);
  const Result<std::string> text = ReadRegular(path, 1 << 20);
  ASSERT_FALSE(text.ok());
  EXPECT_EQ(text.error().message, path + " is larger than 1MiB");
  EXPECT_EQ(text.error().sys_errno, EFBIG);
}

TEST(RegularFile, OpeningForWritingAndWithoutLinks) {
  const TempDir dir;
  const std::string path = dir.Write("file", "old");
  ASSERT_EQ(::symlink("file", (dir / "link").c_str()), 0);
  const Result<UniqueFd> link = OpenRegular(dir / "link", O_RDWR | O_NOFOLLOW);
  ASSERT_FALSE(link.ok());
  EXPECT_EQ(link.error().message, (dir / "link") + " is a link, not a regular file");
  const Result<UniqueFd> file = OpenRegular(path, O_WRONLY | O_NOFOLLOW);
  ASSERT_TRUE(file.ok());
  EXPECT_TRUE(WriteAll(file->get(), "new").ok());
  EXPECT_EQ(*test::ReadFile(path), "new");
  EXPECT_NE(::fcntl(file->get(), F_GETFD) & FD_CLOEXEC, 0);
  const Result<UniqueFd> missing = OpenRegular(dir / "missing", O_RDONLY);
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().sys_errno, ENOENT);
}

}  // namespace
}  // namespace coffer::sys
