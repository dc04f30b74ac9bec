// SPDX-License-Identifier: Apache-2.0
//
// The disk fails under the audit log: whatever happens, what was acknowledged is there afterwards, the log verifies, and
// the same Log appends again once the disk is well.
//
// This executable has the seam of base/sys with a Next of its own (below), so every system call of the log can be made to
// fail, once or until it is healed, for N = 1, 2, 3 until nothing fails any more. Short writes are the kernel's own, by a
// limit on the size of files and by a file system that is full. The control loses a record and must be told so.
#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <set>

#include "audit/log/log.h"
#include "audit/log/verify_log.h"
#include "tests/support/run.h"

namespace {

// What the seam does. One thread only.
struct Plan {
  std::set<long> numbers;  // of system calls; empty: any
  long fail_from = 0;      // the first that fails, from 1; 0: none
  long how_many = 1;
  int with_errno = EIO;
  long seen = 0;
  long failed = 0;
} g_plan;  // the seam is a free function

}  // namespace

namespace coffer::fault {

int Next(long number);
int Next(long number) {
  if (g_plan.fail_from == 0 || (!g_plan.numbers.empty() && g_plan.numbers.count(number) == 0)) {
    return 0;
  }
  ++g_plan.seen;
  if (g_plan.seen < g_plan.fail_from || g_plan.seen >= g_plan.fail_from + g_plan.how_many) {
    return 0;
  }
  ++g_plan.failed;
  return g_plan.with_errno;
}

}  // namespace coffer::fault

namespace coffer::audit {
namespace {

using test::Strings;

EventRecord Event(int number, size_t bytes = 20) {
  EventRecord event;
  event.name = "test";
  event.detail = {{"n", number}, {"text", std::string(bytes, 'x')}};
  return event;
}

// What was acknowledged, and whether a log still has it.
class Acknowledged {
 public:
  void Note(const Appended& at) { lines_[at.position.index] = at.leaf; }
  size_t size() const { return lines_.size(); }

  // Empty if all is well.
  Strings Check(const std::string& directory) const {
    Strings wrong;
    const Result<LogVerdict> verdict = VerifyLog(directory);
    if (!verdict.ok()) {
      return {verdict.error().message};
    }
    for (const LogFinding& finding : verdict->findings) {
      wrong.push_back(finding.code + ": " + finding.message);
    }
    std::vector<std::string> leaves;
    for (const std::string& line : test::Lines(*test::ReadFile(directory + "/records"))) {
      if (line.starts_with('{')) {
        leaves.push_back(line);
      }
    }
    for (const auto& [index, line] : lines_) {
      if (index >= leaves.size() || leaves[index] != line) {
        wrong.push_back("record " + std::to_string(index) + " is lost");
      }
    }
    return wrong;
  }

 private:
  std::map<uint64_t, std::string> lines_;
};

std::string First(const Strings& wrong) { return wrong.empty() ? "" : wrong.front(); }

class LogFaultTest : public ::testing::Test {
 protected:
  void TearDown() override { g_plan = {}; }
  std::string Path() const { return dir_ / "log"; }

  // Opens, appends, with whatever the plan does; then heals and goes on. False once the plan had nothing to fail.
  bool OneRun(const Plan& plan) {
    std::filesystem::remove_all(Path());
    Acknowledged acknowledged;
    {
      // Something is there before.
      Result<Log> log = Log::Open(Path());
      EXPECT_TRUE(log.ok());
      for (int i = 0; i < 3; ++i) {
        acknowledged.Note(*log->Append(Event(i)));
      }
    }
    g_plan = plan;
    Result<Log> log = Log::Open(Path());
    bool failed = !log.ok();
    if (!log.ok()) {
      EXPECT_EQ(log.error().kind, ErrorKind::kHost);
      g_plan = {};
      log = Log::Open(Path());
    }
    EXPECT_TRUE(log.ok()) << log.error().message;
    if (!log.ok()) {
      return false;
    }
    for (int i = 0; i < 4; ++i) {
      const Result<Appended> at = log->Append(Event(10 + i));
      if (at.ok()) {
        acknowledged.Note(*at);
      } else {
        failed = true;
        EXPECT_TRUE(at.error().code.starts_with("audit.log") || at.error().code.starts_with("sys."))
            << at.error().code;
        EXPECT_EQ(at.error().kind, ErrorKind::kHost);
      }
    }
    const bool hit = g_plan.failed > 0 || failed;
    g_plan = {};  // the disk is well again
    for (int i = 0; i < 2; ++i) {
      const Result<Appended> at = log->Append(Event(20 + i));
      EXPECT_TRUE(at.ok()) << at.error().code << " " << at.error().message;
      if (at.ok()) {
        acknowledged.Note(*at);
      }
    }
    EXPECT_EQ(First(acknowledged.Check(Path())), "");
    Result<Log> again = Log::Open(Path());
    EXPECT_TRUE(again.ok()) << again.error().message;
    if (again.ok()) {
      acknowledged.Note(*again->Append(Event(30)));
    }
    EXPECT_EQ(First(acknowledged.Check(Path())), "");
    return hit;
  }

  int Sweep(Plan plan) {
    int runs = 0;
    for (plan.fail_from = 1; plan.fail_from < 500; ++plan.fail_from) {
      SCOPED_TRACE("failing call " + std::to_string(plan.fail_from) + " with errno " +
                   std::to_string(plan.with_errno));
      ++runs;
      if (!OneRun(plan) || ::testing::Test::HasFailure()) {
        break;
      }
    }
    return runs;
  }

  test::TempDir dir_;
};

TEST_F(LogFaultTest, AnyCallFailsOnce) {
  int runs = 0;
  for (const int number : {EIO, ENOSPC, EINTR}) {
    runs += Sweep({.numbers = {}, .with_errno = number});
  }
  EXPECT_GT(runs, 60);
  std::printf("%d runs\n", runs);
}

TEST_F(LogFaultTest, AnyCallFailsAndGoesOnFailing) {
  int runs = 0;
  for (const int number : {EIO, ENOSPC}) {
    runs += Sweep({.numbers = {}, .how_many = 1'000'000, .with_errno = number});
  }
  EXPECT_GT(runs, 40);
}

TEST_F(LogFaultTest, WritesSyncsAndCutsFailForAWhile) {
  const std::vector<std::set<long>> calls = {{SYS_pwrite64},
                                             {SYS_fdatasync},
                                             {SYS_pwrite64, SYS_ftruncate},
                                             {SYS_fdatasync, SYS_ftruncate}};
  for (const std::set<long>& numbers : calls) {
    for (const long how_many : {1L, 2L, 3L, 1'000'000L}) {
      EXPECT_GE(Sweep({.numbers = numbers, .how_many = how_many, .with_errno = EIO}), 4);
    }
  }
}

TEST_F(LogFaultTest, AFailedAppendIsSaidAndTheNextOneWorks) {
  Result<Log> log = Log::Open(Path());
  ASSERT_TRUE(log.ok());
  ASSERT_TRUE(log->Append(Event(0)).ok());
  for (const long number : {SYS_pwrite64, SYS_fdatasync}) {
    g_plan = {.numbers = {number}, .fail_from = 1, .with_errno = ENOSPC};
    const std::string before = *test::ReadFile(Path() + "/records");
    const Result<Appended> at = log->Append(Event(1));
    ASSERT_FALSE(at.ok());
    EXPECT_EQ(at.error().code, "audit.log");
    EXPECT_EQ(at.error().sys_errno, ENOSPC);
    EXPECT_NE(at.error().hint, "");
    EXPECT_EQ(*test::ReadFile(Path() + "/records"), before) << "nothing of it is left";
    const Result<Appended> next = log->Append(Event(2));
    ASSERT_TRUE(next.ok()) << next.error().message;
  }
  EXPECT_TRUE(VerifyLog(Path())->ok());
}

// The kernel writes as much as the limit allows, and then refuses.
TEST_F(LogFaultTest, ShortWrites) {
  ::signal(SIGXFSZ, SIG_IGN);
  Acknowledged acknowledged;
  Result<Log> log = Log::Open(Path());
  ASSERT_TRUE(log.ok());
  rlimit old{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old), 0);
  int refused = 0;
  for (int i = 0; i < 60; ++i) {
    const auto size = std::filesystem::file_size(Path() + "/records");
    rlimit limit = old;
    limit.rlim_cur = size + static_cast<rlim_t>(i * 13 % 700);
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
    const Result<Appended> at = log->Append(Event(i));
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &old), 0);
    if (at.ok()) {
      acknowledged.Note(*at);
    } else {
      ++refused;
      EXPECT_EQ(at.error().sys_errno, EFBIG);
      EXPECT_EQ(std::filesystem::file_size(Path() + "/records"), size) << "a part of it is left";
    }
    ASSERT_EQ(First(acknowledged.Check(Path())), "") << i;
  }
  EXPECT_GT(refused, 20);
  EXPECT_GT(acknowledged.size(), 10u);
}

bool WriteWhole(const char* path, const std::string& text) {
  const int fd = ::open(path, O_WRONLY | O_CLOEXEC);
  const bool wrote =
      fd >= 0 && ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  ::close(fd);
  return wrote;
}

// In a child with a mount namespace of its own; says on the pipe what went wrong.
void FillTheDisk(const std::string& place, int out) {
  const auto say = [&](const std::string& text) {
    (void)!::write(out, text.data(), text.size());
    ::_exit(0);
  };
  const uid_t uid = ::geteuid();
  const gid_t gid = ::getegid();
  if (::unshare(uid == 0 ? CLONE_NEWNS : CLONE_NEWUSER | CLONE_NEWNS) != 0 ||
      (uid != 0 && !(WriteWhole("/proc/self/setgroups", "deny") &&
                     WriteWhole("/proc/self/gid_map", "0 " + std::to_string(gid) + " 1") &&
                     WriteWhole("/proc/self/uid_map", "0 " + std::to_string(uid) + " 1"))) ||
      ::mount("", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      ::mount("none", place.c_str(), "tmpfs", 0, "size=1m") != 0) {
    say("skip: no mount namespace or tmpfs of our own");
  }
  const std::string filler = place + "/filler";
  {
    const int fd = ::open(filler.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    const std::string bytes(256 << 10, 'f');
    (void)!::write(fd, bytes.data(), bytes.size());
    ::close(fd);
  }
  Acknowledged acknowledged;
  Result<Log> log = Log::Open(place + "/log");
  if (!log.ok()) {
    say("cannot open: " + log.error().message);
  }
  int refused = 0;
  for (int i = 0; i < 5000 && refused < 20; ++i) {
    const Result<Appended> at = log->Append(Event(i, 100 + static_cast<size_t>(i * 37 % 3000)));
    if (at.ok()) {
      acknowledged.Note(*at);
    } else if (at.error().code != "audit.log" || at.error().sys_errno != ENOSPC) {
      say("another error: " + at.error().code + " " + at.error().message);
    } else {
      ++refused;
    }
  }
  if (refused < 20) {
    say("the disk was never full");
  }
  if (const Strings wrong = acknowledged.Check(place + "/log"); !wrong.empty()) {
    say("when full: " + wrong.front());
  }
  if (!Log::Open(place + "/log").ok()) {
    say("a log on a full disk cannot be opened");
  }
  ::unlink(filler.c_str());
  for (int i = 0; i < 10; ++i) {
    const Result<Appended> at = log->Append(Event(i));
    if (!at.ok()) {
      say("it does not recover: " + at.error().message);
    }
    acknowledged.Note(*at);
  }
  if (const Strings wrong = acknowledged.Check(place + "/log"); !wrong.empty()) {
    say("after recovery: " + wrong.front());
  }
  say("ok " + std::to_string(acknowledged.size()));
}

TEST_F(LogFaultTest, AFullDisk) {
  const std::string place = dir_.MakeDir("disk");
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    FillTheDisk(place, ends[1]);
  }
  ::close(ends[1]);
  std::string said(500, '\0');
  said.resize(static_cast<size_t>(std::max<ssize_t>(0, ::read(ends[0], said.data(), said.size()))));
  ::close(ends[0]);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  if (said.starts_with("skip")) {
    GTEST_SKIP() << said << " (needs root, or user namespaces)";
  }
  EXPECT_TRUE(said.starts_with("ok ")) << said << " status " << status;
}

TEST_F(LogFaultTest, ControlALostRecordIsNoticed) {
  Acknowledged acknowledged;
  std::string before;
  {
    Result<Log> log = Log::Open(Path());
    ASSERT_TRUE(log.ok());
    acknowledged.Note(*log->Append(Event(0)));
    before = *test::ReadFile(Path() + "/records");
    acknowledged.Note(*log->Append(Event(1)));
  }
  EXPECT_EQ(First(acknowledged.Check(Path())), "");
  dir_.Write("log/records", before, 0600);
  EXPECT_NE(First(acknowledged.Check(Path())), "");
  // And the program itself does not go on as if nothing had happened.
  const Result<Log> log = Log::Open(Path());
  ASSERT_FALSE(log.ok());
  EXPECT_EQ(log.error().code, "audit.log.damaged");
}

TEST_F(LogFaultTest, ControlTheSeamIsReached) {
  g_plan = {.numbers = {SYS_fdatasync}, .fail_from = 1'000'000};
  Result<Log> log = Log::Open(Path());
  ASSERT_TRUE(log.ok());
  ASSERT_TRUE(log->Append(Event(0)).ok());
  ASSERT_TRUE(log->Append(Event(1)).ok());
  EXPECT_EQ(g_plan.seen, 2) << "one fdatasync for each batch";
}

}  // namespace
}  // namespace coffer::audit
