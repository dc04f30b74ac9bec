// SPDX-License-Identifier: Apache-2.0
//
// A fifo in a mounted tree, and a neighbour who may write to the tree and moves the directory around it: while the supervisor
// looks for fifos, or between that and the mount of the cover. The supervisor is held at its system calls, so that each move
// comes at the moment that would hide the fifo. The control is the fifo that can be opened outside, and without the move
// the call that runs and finds it covered.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <thread>

#include "base/unique_fd.h"
#include "tests/escape/brought_in.h"
#include "tests/support/tracer.h"
#include "tests/support/verdicts.h"

namespace coffer::test {
namespace {

constexpr int kAlways = std::numeric_limits<int>::max();

class MovedFifos : public BroughtIn {
 protected:
  MovedFifos() {
    for (const char* name : {"a", "b", "b/x", "other"}) {
      fs::create_directories(data_ / name);
    }
    dir_.Write("proj/data/other/fifo", "");
    dir_.MakeDir("tmp");
    EXPECT_EQ(::mkfifo((data_ / "b/x/fifo").c_str(), 0666), 0);
    EXPECT_EQ(::chmod((data_ / "b/x/fifo").c_str(), 0666), 0);
    reader_.Reset(::open((data_ / "b/x/fifo").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    EXPECT_TRUE(Contains(RunOutside({"open-write", data_ / "b/x/fifo"}).out, "OPEN"))
        << "NO-CONTROL";
  }

  // At the process level root mounts nothing, and a user no tree in which a fifo is found.
  bool TreesAreRefused() {
    if (container()) {
      return false;
    }
    const RunResult result = Run({"true"}, {"--ro", data_});
    EXPECT_EQ(result.exit, 120) << result.Describe();
    EXPECT_TRUE(IsRoot() || Contains(result.err, "holds a fifo")) << result.Describe();
    return IsRoot();
  }

  // Tries the fifo by all its names. `at_call` is asked at every system call of the supervisor until it has examined all.
  std::string Try(const char* flag, const std::function<void(const TracedProcess&)>& at_call,
                  const std::function<void()>& examined) {
    Strings argv = {"/usr/bin/env",
                    "-i",
                    "HOME=" + home_.string(),
                    "PATH=/usr/bin:/bin",
                    "TMPDIR=" + (dir_ / "tmp"),
                    CofferPath(),
                    "run",
                    "--level",
                    level(),
                    flag,
                    data_,
                    "--",
                    ProbePath(),
                    "open-write"};
    for (const char* name : {"a/x/fifo", "b/x/fifo", "b/l/fifo", "b/y/fifo", "other/fifo"}) {
      argv.push_back(data_ / name);
    }
    const Traced traced = RunTraced(
        argv, dir_ / "out", dir_ / "err",
        [&](const TracedProcess& caller, const std::map<pid_t, TracedProcess>&) -> pid_t {
          if (HasExamined(caller)) {
            examined();
            return kLetGo;
          }
          if (caller.depth == 0) {
            at_call(caller);
          }
          return 0;
        },
        Seconds(300));
    EXPECT_TRUE(traced.started) << traced.why;
    EXPECT_FALSE(traced.timed_out);
    exit_ = traced.exit;
    err_ = ReadFile(dir_ / "err").value_or("");
    return ReadFile(dir_ / "out").value_or("");
  }
  std::string TryHeld(const char* flag, const std::function<void()>& examined) {
    return Try(flag, [](const TracedProcess&) {}, examined);
  }
  // `listing` is told which directory the supervisor is about to list, or is about to have listed to the end.
  using Listing = std::function<void(const fs::path& directory, bool at_its_end)>;
  std::string TryWhileLooking(const char* flag, const Listing& listing) {
    return Try(
        flag,
        [&](const TracedProcess& caller) {
          if (caller.number != SYS_getdents64) {
            return;
          }
          const std::string own = "/proc/" + std::to_string(caller.pid);
          const std::string fd = std::to_string(caller.words[0]);
          std::error_code gone;
          const fs::path directory = fs::read_symlink(own + "/fd/" + fd, gone);
          const std::string at = ReadFile(own + "/fdinfo/" + fd).value_or("");
          listing(directory, !at.starts_with("pos:\t0\n"));
        },
        [] {});
  }
  // After `most` moves during the looks.
  void ExpectHeldBack(const std::string& out, int most) {
    if (most == kAlways) {
      ExpectNotBegun(out, "policy.path.unchecked");
    } else {
      ExpectCovered(out);
    }
  }

  // What is not moved is covered, and the call runs.
  void ExpectCovered(const std::string& out) {
    EXPECT_FALSE(Contains(Without(out, "other/fifo"), "OPEN")) << "OPEN: " << out << err_;
    if (container()) {
      EXPECT_TRUE(Contains(out, "REFUSED")) << "NO-CONTROL: it did not run: " << out << err_;
      EXPECT_EQ(exit_, 0) << err_;
    } else {
      EXPECT_EQ(exit_, 120) << err_;
    }
  }
  void ExpectNotBegun(const std::string& out, const std::string& says) {
    EXPECT_FALSE(Contains(out, "OPEN")) << "OPEN: " << out << err_;
    EXPECT_EQ(exit_, 120) << out << err_;
    EXPECT_TRUE(Contains(err_, says)) << err_;
  }
  // The lines of `out` that do not name `word`.
  static std::string Without(const std::string& out, const std::string& word) {
    std::string kept;
    for (const std::string& line : Lines(out)) {
      kept += Contains(line, word) ? "" : line + "\n";
    }
    return kept;
  }

  const fs::path data_ = project_ / "data";
  UniqueFd reader_;
  int exit_ = -1;
  std::string err_;
};

// Found, and gone from its place before the cover is mounted there: moved away, or exchanged with a directory that holds a
// file of the same name.
TEST_P(MovedFifos, AfterTheLook) {
  if (TreesAreRefused() || !container()) {
    return;
  }
  for (const char* flag : {"--ro", "--rw"}) {
    SCOPED_TRACE(flag);
    ExpectCovered(TryHeld(flag, [] {}));
    const fs::path place = data_ / "b/x";
    ExpectNotBegun(TryHeld(flag, [&] { fs::rename(place, data_ / "b/y"); }), "try again");
    EXPECT_TRUE(Contains(RunOutside({"open-write", data_ / "b/y/fifo"}).out, "OPEN"))
        << "NO-CONTROL: it was not moved";
    fs::rename(data_ / "b/y", place);
    const auto exchange = [&] {
      return ::renameat2(AT_FDCWD, place.c_str(), AT_FDCWD, (data_ / "other").c_str(),
                         RENAME_EXCHANGE);
    };
    ExpectNotBegun(TryHeld(flag, [&] { EXPECT_EQ(exchange(), 0); }), "try again");
    EXPECT_EQ(exchange(), 0);
  }
}

// In the other one of two directories whenever one of them is listed.
TEST_P(MovedFifos, ToWhereNothingIsListed) {
  if (TreesAreRefused()) {
    return;
  }
  for (const int most : {0, 2, kAlways}) {
    SCOPED_TRACE(most);
    int moves = 0;
    const std::string out = TryWhileLooking("--ro", [&](const fs::path& listed, bool at_its_end) {
      const bool a = listed == data_ / "a";
      const fs::path here = data_ / (a ? "a/x" : "b/x");
      if ((a || listed == data_ / "b") && !at_its_end && moves < most && fs::exists(here)) {
        fs::rename(here, data_ / (a ? "b/x" : "a/x"));
        ++moves;
      }
    });
    EXPECT_EQ(moves > 0, most > 0) << "NO-CONTROL";
    ExpectHeldBack(out, most);
  }
}

// A directory when it is listed, and a link when it is opened.
TEST_P(MovedFifos, BehindALinkWhenItIsOpened) {
  if (TreesAreRefused()) {
    return;
  }
  fs::create_symlink("nowhere", data_ / "b/l");
  const auto exchange = [&] {
    return ::renameat2(AT_FDCWD, (data_ / "b/x").c_str(), AT_FDCWD, (data_ / "b/l").c_str(),
                       RENAME_EXCHANGE);
  };
  for (const int most : {0, 1, kAlways}) {
    SCOPED_TRACE(most);
    int moves = 0;
    const std::string out = TryWhileLooking("--ro", [&](const fs::path& listed, bool at_its_end) {
      const bool is_link = fs::is_symlink(data_ / "b/x");
      if (listed == data_ / "b" && is_link != at_its_end && moves < most) {
        EXPECT_EQ(exchange(), 0);
        ++moves;
      }
    });
    EXPECT_EQ(moves > 0, most > 0) << "NO-CONTROL";
    ExpectHeldBack(out, most);
  }
}

// The same without a hold: a neighbour who exchanges the directory for a link as fast as it can. COFFER_RACE_TRIES sets the
// number of calls; `make nightly` makes 2,000.
TEST_P(MovedFifos, ANeighbourWhoExchangesAllTheTimeGetsNothing) {
  if (TreesAreRefused()) {
    return;
  }
  const char* const given = ::getenv("COFFER_RACE_TRIES");
  const int tries = given == nullptr ? 10 : ::atoi(given);
  ASSERT_GT(tries, 0);
  const fs::path place = data_ / "b/x";
  const fs::path link = data_ / "b/l";
  fs::create_symlink("nowhere", link);
  std::atomic<bool> done{false};
  std::atomic<long> moves{0};
  std::thread neighbour([&] {
    while (!done) {
      moves += ::renameat2(AT_FDCWD, place.c_str(), AT_FDCWD, link.c_str(), RENAME_EXCHANGE) == 0;
    }
  });
  EXPECT_TRUE(WaitUntil([&] { return moves > 2; })) << "NO-CONTROL: it does not move";
  Strings command = {ProbePath(), "open-write"};
  for (int i = 0; i < 20; ++i) {
    command.insert(command.end(), {place / "fifo", link / "fifo"});
  }
  const long before = moves;
  for (int i = 0; i < tries; ++i) {
    const RunResult result = Run(command, {"--ro", data_});
    EXPECT_FALSE(Contains(result.out, "OPEN")) << result.Describe();
    EXPECT_EQ(result.exit, Contains(result.out, "REFUSED") ? 0 : 120) << result.Describe();
  }
  EXPECT_GT(moves - before, tries) << "NO-CONTROL: it did not move while the calls ran";
  done = true;
  neighbour.join();
}

INSTANTIATE_TEST_SUITE_P(Level, MovedFifos, ::testing::Values("container", "process"),
                         LevelTestName);

}  // namespace
}  // namespace coffer::test
