// SPDX-License-Identifier: Apache-2.0
//
// Processes that append to one audit log are killed at random moments, hundreds of times, and batches are torn as a loss of
// power tears them: what was acknowledged is there when the log is opened again, and the log verifies.
//
// A writer says on a pipe which record it was told to be on disk. SIGKILL does not lose what the kernel has, so torn
// batches are made by hand: the file as it was before a batch, and any part or garbling of that batch behind it.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <mutex>
#include <random>
#include <thread>

#include "audit/log/log.h"
#include "audit/log/merkle.h"
#include "audit/log/verify_log.h"
#include "tests/support/run.h"

namespace coffer::audit {
namespace {

using test::Strings;

constexpr int kKills = 200;

struct Message {
  uint64_t index = 0;
  Hash leaf{};
};

EventRecord Event(int64_t number) {
  EventRecord event;
  event.name = "test";
  event.detail = {{"n", number}, {"text", std::string(static_cast<size_t>(number % 400), 'x')}};
  return event;
}

// Never returns: appends from several threads and says so.
[[noreturn]] void Write(const std::string& path, int out, int threads, bool fsync) {
  LogOptions options;
  options.fsync = fsync;
  Result<Log> log = Log::Open(path, options);
  if (!log.ok()) {
    std::fprintf(stderr, "writer: %s\n", log.error().message.c_str());
    ::_exit(2);
  }
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t) {
    all.emplace_back([&, t] {
      for (int i = 0; i < 400; ++i) {
        const Result<Appended> at = log->Append(Event(t * 1000 + i));
        if (!at.ok()) {
          std::fprintf(stderr, "writer: %s\n", at.error().message.c_str());
          ::_exit(4);
        }
        const Message message{at->position.index, LeafHash(at->leaf)};
        if (::write(out, &message, sizeof(message)) != sizeof(message)) {
          ::_exit(3);
        }
      }
    });
  }
  for (std::thread& thread : all) {
    thread.join();
  }
  ::_exit(0);
}

class LogKillTest : public ::testing::Test {
 protected:
  std::string Path() const { return dir_ / "log"; }

  struct Writer {
    pid_t pid = -1;
    int in = -1;
  };
  Writer Start(int threads, bool fsync) {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    EXPECT_GT(::fcntl(ends[1], F_SETPIPE_SZ, 1 << 18), 0);  // all it may say fits
    const pid_t child = ::fork();
    if (child == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::close(ends[0]);
      Write(Path(), ends[1], threads, fsync);
    }
    ::close(ends[1]);
    return {child, ends[0]};
  }

  bool Listen(const Writer& writer) {
    Message message;
    if (::read(writer.in, &message, sizeof(message)) != sizeof(message)) {
      return false;
    }
    const bool fresh = acknowledged_.emplace(message.index, message.leaf).second;
    EXPECT_TRUE(fresh) << "record " << message.index << " was given to two";
    return true;
  }

  // Kills it (0: waits for its end) and hears the rest.
  void End(const Writer& writer, int with) {
    if (with != 0) {
      ::kill(writer.pid, with);
    }
    while (Listen(writer)) {
    }
    int status = 0;
    EXPECT_EQ(::waitpid(writer.pid, &status, 0), writer.pid);
    EXPECT_TRUE(WIFSIGNALED(status) || WEXITSTATUS(status) == 0)
        << "the writer failed: " << WEXITSTATUS(status);
    killed_ += WIFSIGNALED(status) ? 1 : 0;
    ::close(writer.in);
  }

  // What is wrong with the log; empty if nothing is.
  std::string Check() const {
    const Result<LogVerdict> verdict = VerifyLog(Path());
    if (!verdict.ok()) {
      return verdict.error().message;
    }
    if (!verdict->ok()) {
      return verdict->findings.front().code + ": " + verdict->findings.front().message;
    }
    std::vector<Hash> leaves;
    for (const std::string& line : test::Lines(*test::ReadFile(Path() + "/records"))) {
      if (line.starts_with('{')) {
        leaves.push_back(LeafHash(line));
      }
    }
    for (const auto& [index, leaf] : acknowledged_) {
      if (index >= leaves.size() || leaves[index] != leaf) {
        return "record " + std::to_string(index) + " is lost";
      }
    }
    return "";
  }

  test::TempDir dir_;
  std::map<uint64_t, Hash> acknowledged_;
  int killed_ = 0;
};

TEST_F(LogKillTest, NothingAcknowledgedIsLost) {
  const unsigned seed = std::random_device()();
  std::mt19937 random(seed);
  SCOPED_TRACE("seed " + std::to_string(seed));
  int rounds = 0;
  for (; killed_ < kKills; ++rounds) {
    ASSERT_LT(rounds, 4 * kKills) << "too few writers were still alive when they were killed";
    // Now and then two processes at once; every fourth is killed in its first moments.
    const bool early = rounds % 4 == 0;
    const Writer writer = Start(1 + rounds % 3, rounds % 2 == 0);
    const Writer other = rounds % 5 == 0 ? Start(2, false) : Writer{};
    const int messages = early ? 0 : static_cast<int>(random() % 60);
    for (int i = 0; i < messages && Listen(writer); ++i) {
    }
    ::usleep(static_cast<useconds_t>(random() % (early ? 4000 : 500)));  // the random moment
    End(writer, SIGKILL);
    if (other.pid > 0) {
      End(other, SIGKILL);
    }
    Result<Log> log = Log::Open(Path());
    ASSERT_TRUE(log.ok()) << log.error().message;
    const Result<Appended> at = log->Append(Event(rounds));
    ASSERT_TRUE(at.ok()) << at.error().message;
    acknowledged_[at->position.index] = LeafHash(at->leaf);
    if (rounds % 10 == 0) {
      ASSERT_EQ(Check(), "") << "round " << rounds;
    }
  }
  EXPECT_EQ(Check(), "");
  std::printf("%d writers killed in %d rounds, %zu records acknowledged\n", killed_, rounds,
              acknowledged_.size());
}

TEST_F(LogKillTest, TwoProcessesAndManyThreads) {
  ASSERT_TRUE(Log::Open(Path()).ok());
  const Writer one = Start(4, false);
  const Writer two = Start(4, false);
  End(one, 0);
  End(two, 0);
  EXPECT_EQ(acknowledged_.size(), 3200u);
  EXPECT_EQ(Check(), "");
  EXPECT_EQ(VerifyLog(Path())->records, 3200u) << "no gap, no record too many";
}

TEST_F(LogKillTest, ControlALostRecordIsNoticed) {
  const Writer writer = Start(1, false);
  End(writer, 0);
  ASSERT_EQ(Check(), "");
  std::string text = *test::ReadFile(Path() + "/records");
  for (int i = 0; i < 2; ++i) {  // the last batch: one record and its checkpoint
    text.resize(text.rfind('\n', text.size() - 2) + 1);
  }
  dir_.Write("log/records", text, 0600);
  EXPECT_EQ(Check(), "record 399 is lost");
}

// ---- Torn batches

struct Files {
  std::string records;
  std::string tree;
};

class LogTornTest : public LogKillTest {
 protected:
  // A log, and the same log with one more batch of three records.
  void Make() {
    {
      Result<Log> log = Log::Open(Path());
      ASSERT_TRUE(log.ok());
      for (int i = 0; i < 5; ++i) {
        const Result<Appended> at = log->Append(Event(i));
        ASSERT_TRUE(at.ok());
        acknowledged_[at->position.index] = LeafHash(at->leaf);
      }
    }
    before_ = {*test::ReadFile(Path() + "/records"), *test::ReadFile(Path() + "/tree")};
    {
      Result<Log> log = Log::Open(Path());
      ASSERT_TRUE(log.ok() && log->Append(Event(300)).ok());
    }
    batch_ = test::ReadFile(Path() + "/records")->substr(before_.records.size());
  }

  // Opens a log that ends in `tail`; it must be as if that had never been. False: it was seen as damage.
  void Recover(const std::string& tail, bool with_cache, const std::string& what) {
    SCOPED_TRACE(what);
    dir_.Write("log/records", before_.records + tail, 0600);
    if (with_cache) {
      dir_.Write("log/tree", before_.tree, 0600);
    } else {
      std::filesystem::remove(Path() + "/tree");
    }
    {
      Result<Log> log = Log::Open(Path(), {.fsync = false});
      ASSERT_TRUE(log.ok()) << log.error().message;
      const Result<Appended> at = log->Append(Event(7));
      ASSERT_TRUE(at.ok()) << at.error().message;
      ASSERT_EQ(at->position.index, tail.empty() ? 5u : 6u);
    }
    ASSERT_EQ(Check(), "");
    if (!tail.empty()) {
      const std::string text = *test::ReadFile(Path() + "/records");
      const std::string first = text.substr(before_.records.size(), 200);
      ASSERT_TRUE(test::Contains(first, "\"name\":\"log.recovered\"")) << first;
      ASSERT_TRUE(test::Contains(first, "\"bytes\":" + std::to_string(tail.size()) + ","));
    }
  }

  Files before_;
  std::string batch_;
};

TEST_F(LogTornTest, CutAnywhere) {
  Make();
  for (size_t length = 0; length < batch_.size(); ++length) {
    Recover(batch_.substr(0, length), length % 3 != 0, "cut at " + std::to_string(length));
    if (HasFatalFailure()) {
      return;
    }
  }
}

TEST_F(LogTornTest, GarbledAnywhere) {
  Make();
  const unsigned seed = std::random_device()();
  std::mt19937 random(seed);
  SCOPED_TRACE("seed " + std::to_string(seed));
  for (int i = 0; i < 300; ++i) {
    std::string tail = batch_;
    const size_t from = random() % tail.size();
    const size_t to = from + 1 + random() % (tail.size() - from);
    switch (i % 4) {
      case 0:  // pages that were never written
        std::fill(tail.begin() + static_cast<long>(from), tail.begin() + static_cast<long>(to),
                  '\0');
        break;
      case 1:  // whatever was on the disk
        for (size_t k = from; k < to; ++k) {
          tail[k] = static_cast<char>(random());
        }
        break;
      case 2:  // an older part of the same file
        tail.replace(from, to - from, before_.records.substr(random() % 500, to - from));
        break;
      default:  // the file is longer than what was written
        tail = tail.substr(0, from) + std::string(random() % 9000, '\0');
    }
    if (tail == batch_ || tail.empty()) {
      continue;
    }
    Recover(tail, i % 2 == 0, "garbled " + std::to_string(i));
    if (HasFatalFailure()) {
      return;
    }
  }
}

TEST_F(LogTornTest, ALaterBatchMakesItDamage) {
  // A whole, signed batch behind a broken one: no crash does that. Nothing is cut off.
  Make();
  {
    Result<Log> log = Log::Open(Path());
    ASSERT_TRUE(log.ok() && log->Append(Event(8)).ok());
  }
  std::string text = *test::ReadFile(Path() + "/records");
  text[before_.records.size() + 20] ^= 1;
  dir_.Write("log/records", text, 0600);
  for (const bool with_cache : {true, false}) {
    if (!with_cache) {
      std::filesystem::remove(Path() + "/tree");
    } else {
      dir_.Write("log/tree", before_.tree, 0600);
    }
    const Result<Log> log = Log::Open(Path());
    ASSERT_FALSE(log.ok());
    EXPECT_EQ(log.error().code, "audit.log.damaged");
    EXPECT_EQ(*test::ReadFile(Path() + "/records"), text) << "it was touched";
  }
}

}  // namespace
}  // namespace coffer::audit
