// SPDX-License-Identifier: Apache-2.0
#include "audit/receipt_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "base/sys.h"
#include "tests/support/run.h"

namespace coffer::audit {
namespace {

using test::TempDir;

constexpr const char* kOlder = "{\n  \"schema\": \"coffer.receipt/1\",\n  \"older\": true\n}\n";
constexpr const char* kText = "{\"schema\": \"coffer.receipt/1\"}\n";

size_t EntriesIn(const TempDir& dir) {
  return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(dir.path()), {}));
}

void ExpectRefused(const std::string& path, const std::string& why) {
  const Result<ReceiptFile> opened = ReceiptFile::Open(path);
  ASSERT_FALSE(opened.ok()) << path;
  EXPECT_EQ(opened.error().kind, ErrorKind::kRefused) << path;
  EXPECT_EQ(opened.error().code, "policy.receipt") << path;
  EXPECT_EQ(opened.error().message, "cannot write the receipt " + path + ": " + why);
  EXPECT_FALSE(opened.error().hint.empty());
}

TEST(ReceiptFile, AppearsWholeOrNotAtAll) {
  const TempDir dir;
  const std::string path = dir.Write("receipt", kOlder);
  {
    Result<ReceiptFile> file = ReceiptFile::Open(path);
    ASSERT_TRUE(file.ok());
    EXPECT_EQ(*test::ReadFile(path), kOlder) << "opening changes nothing";
    EXPECT_EQ(EntriesIn(dir), 1U) << "nothing to be seen while the call runs";
    const ReceiptFile moved = std::move(file).value();
    ASSERT_TRUE(moved.Write(kText).ok());
  }
  EXPECT_EQ(*test::ReadFile(path), kText);
  EXPECT_EQ(EntriesIn(dir), 1U);
  struct stat info{};
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
}

// A mistyped name must not cost a file.
TEST(ReceiptFile, TakesThePlaceOfAReceiptAndOfNothingElse) {
  const TempDir dir;
  EXPECT_TRUE(ReceiptFile::Open(dir.Write("older", kOlder)).ok());
  EXPECT_TRUE(ReceiptFile::Open(dir.Write("short", kText)).ok());
  EXPECT_TRUE(ReceiptFile::Open(dir.Write("empty", "")).ok());
  for (const char* text :
       {"root:x:0:0:", "{}", "{\"schema\": \"other/1\"}", " ", "\"coffer.receipt/1\""}) {
    const std::string path = dir.Write("other", text);
    ExpectRefused(path, "that file holds something else");
    EXPECT_EQ(*test::ReadFile(path), text);
  }
}

TEST(ReceiptFile, AFailedRenameIsAnErrorAndLeavesNothing) {
  const TempDir dir;
  const Result<ReceiptFile> file = ReceiptFile::Open(dir / "receipt");
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(EntriesIn(dir), 0U);
  dir.MakeDir("receipt");  // in the way now
  EXPECT_FALSE(file->Write(kText).ok());
  EXPECT_EQ(EntriesIn(dir), 1U) << "only the directory";
}

TEST(ReceiptFile, WhatCannotBeWrittenFailsBeforeTheRun) {
  const TempDir dir;
  const std::string file = dir.Write("file", "");
  ExpectRefused(dir / "missing/receipt", "No such file or directory");
  ExpectRefused(file + "/receipt", "Not a directory");
  ExpectRefused(dir.path(), "it is a directory");
  ExpectRefused(dir.path() + "/", "it is a directory");
  ExpectRefused("/proc/receipt", "No such file or directory");
  EXPECT_FALSE(ReceiptFile::Open(std::string(5000, 'x')).ok());
  EXPECT_EQ(EntriesIn(dir), 1U);
}

TEST(ReceiptFile, FifosSocketsLinksAndOtherDevicesAreRefused) {
  const TempDir dir;
  ASSERT_EQ(::mkfifo((dir / "fifo").c_str(), 0600), 0);
  ExpectRefused(dir / "fifo", "it is a fifo");
  const UniqueFd reader(::open((dir / "fifo").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  ExpectRefused(dir / "fifo", "it is a fifo");
  const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  (dir / "socket").copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ExpectRefused(dir / "socket", "it is a socket");
  ExpectRefused("/dev/zero", "it is a device");
  ExpectRefused("/dev/stdin", "it is a link");
  const std::string victim = dir.Write("victim", "precious");
  ASSERT_EQ(::symlink("victim", (dir / "link").c_str()), 0);
  ExpectRefused(dir / "link", "it is a link");
  ASSERT_EQ(::symlink("nowhere", (dir / "dangling").c_str()), 0);
  ExpectRefused(dir / "dangling", "it is a link");
  EXPECT_EQ(*test::ReadFile(victim), "precious");
}

TEST(ReceiptFile, ALinkThatAppearsMeanwhileIsReplacedNotFollowed) {
  const TempDir dir;
  const std::string victim = dir.Write("victim", "precious");
  const Result<ReceiptFile> file = ReceiptFile::Open(dir / "receipt");
  ASSERT_TRUE(file.ok());
  ASSERT_EQ(::symlink("victim", (dir / "receipt").c_str()), 0);
  EXPECT_TRUE(file->Write(kText).ok());
  EXPECT_EQ(*test::ReadFile(victim), "precious");
  EXPECT_EQ(*test::ReadFile(dir / "receipt"), kText);
}

TEST(ReceiptFile, TheDirectoryIsTheOneThatWasChecked) {
  const TempDir dir;
  dir.MakeDir("here");
  dir.MakeDir("elsewhere");
  const Result<ReceiptFile> file = ReceiptFile::Open(dir / "here/receipt");
  ASSERT_TRUE(file.ok());
  ASSERT_EQ(::rename((dir / "here").c_str(), (dir / "moved").c_str()), 0);
  ASSERT_EQ(::symlink("elsewhere", (dir / "here").c_str()), 0);
  EXPECT_TRUE(file->Write(kText).ok());
  EXPECT_EQ(*test::ReadFile(dir / "moved/receipt"), kText);
  EXPECT_FALSE(test::Exists(dir / "elsewhere/receipt"));
}

TEST(ReceiptFile, SomebodyElsesFileInAStickyDirectoryIsRefused) {
  if (!test::IsRoot()) {
    GTEST_SKIP() << "only root can be somebody else";
  }
  const TempDir dir;
  const std::string shared = dir.MakeDir("shared", 01777);
  const std::string theirs = dir.Write("shared/theirs", "theirs", 0666);
  const pid_t child = ::fork();
  if (child == 0) {
    const bool other = ::setuid(65534) == 0;
    const Result<ReceiptFile> refused = ReceiptFile::Open(theirs);
    const Result<ReceiptFile> free = ReceiptFile::Open(shared + "/free");
    ::_exit(other && !refused.ok() &&
                    refused.error().message.ends_with(": it belongs to another user") && free.ok()
                ? 0
                : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(ReceiptFile, HarmlessDevicesAreWrittenDirectly) {
  const Result<ReceiptFile> null = ReceiptFile::Open("/dev/null");
  ASSERT_TRUE(null.ok());
  EXPECT_TRUE(null->Write(kText).ok());
  struct stat info{};
  ASSERT_EQ(::stat("/dev/null", &info), 0);
  EXPECT_TRUE(S_ISCHR(info.st_mode)) << "still a device";
  const Result<ReceiptFile> full = ReceiptFile::Open("/dev/full");
  ASSERT_TRUE(full.ok());
  EXPECT_FALSE(full->Write(kText).ok());
}

TEST(ReceiptFile, DescriptorsOfTheCallerByNumber) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);  // as they survive exec
  UniqueFd read(ends[0]);
  const UniqueFd write(ends[1]);
  const std::string name = "/dev/fd/" + std::to_string(ends[1]);
  const Result<ReceiptFile> file = ReceiptFile::Open(name);
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_TRUE(file->Write(kText).ok());
  char got[100] = {};
  EXPECT_EQ(::read(read.get(), got, sizeof got - 1), static_cast<ssize_t>(strlen(kText)));
  EXPECT_STREQ(got, kText);
  ExpectRefused("/dev/fd/" + std::to_string(ends[0]), "it is open for reading only");
  ExpectRefused("/dev/fd/", "you gave no such descriptor");
  ExpectRefused("/dev/fd/-1", "you gave no such descriptor");
  ExpectRefused("/dev/fd/99999", "you gave no such descriptor");
  read.Reset();
  ExpectRefused(name, "no process reads it");
  ASSERT_EQ(::fcntl(write.get(), F_SETFD, FD_CLOEXEC), 0);
  ExpectRefused(name, "you gave no such descriptor");  // one of our own
}

}  // namespace
}  // namespace coffer::audit
