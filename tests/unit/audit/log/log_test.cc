// SPDX-License-Identifier: Apache-2.0
//
// The log as its users see it. Failing disks and killed writers are in tests/faults/log_*_test.cc.
#include "audit/log/log.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "audit/log/checkpoint.h"
#include "audit/log/merkle.h"
#include "audit/log/verify_log.h"
#include "tests/support/run.h"

namespace coffer::audit {
namespace {

EventRecord Event(int64_t number) {
  EventRecord event;
  event.name = "switch.on";
  event.detail = {{"n", number}};
  return event;
}

class LogTest : public ::testing::Test {
 protected:
  std::string Path() const { return dir_ / "log"; }
  std::string Text() const { return *test::ReadFile(Path() + "/records"); }
  Log Open() {
    Result<Log> log = Log::Open(Path());
    EXPECT_TRUE(log.ok()) << log.error().message;
    return std::move(log).value();
  }
  void Append(Log& log, int count) {
    for (int i = 0; i < count; ++i) {
      const Result<Appended> at = log.Append(Event(i));
      ASSERT_TRUE(at.ok()) << at.error().message;
    }
  }
  std::string OpenError() {
    const Result<Log> log = Log::Open(Path());
    return log.ok() ? "" : log.error().code;
  }
  void ExpectGood(uint64_t records) {
    const Result<LogVerdict> verdict = VerifyLog(Path());
    ASSERT_TRUE(verdict.ok()) << verdict.error().message;
    EXPECT_TRUE(verdict->ok()) << verdict->findings.front().message;
    EXPECT_EQ(verdict->records, records);
  }
  test::TempDir dir_;
};

TEST_F(LogTest, EveryRecordIsProvenByItsAnswer) {
  Log log = Open();
  for (uint64_t i = 0; i < 40; ++i) {
    const Result<Appended> at = log.Append(Event(static_cast<int64_t>(i)));
    ASSERT_TRUE(at.ok()) << at.error().message;
    EXPECT_EQ(at->position.index, i);
    EXPECT_EQ(at->position.size, i + 1);
    std::vector<Hash> proof;
    for (const std::string& part : at->proof) {
      proof.push_back(*HashFromHex(part));
    }
    EXPECT_TRUE(
        VerifyInclusion(i, i + 1, LeafHash(at->leaf), proof, *HashFromHex(at->position.root)));
    EXPECT_TRUE(test::Contains(Text(), "\n" + at->leaf + "\n"))
        << "it is in the file when Append returns";
  }
  ExpectGood(40);
}

TEST_F(LogTest, LeavesAreWrittenAsTheDocumentSays) {
  Log log = Open();
  DecisionRecord decision;
  decision.at = Nanos(5);
  decision.identity.tenant = *store::TenantId::Parse("acme");
  decision.identity.call_id = "c1";
  decision.identity.tool = "py\"thon\n";
  EXPECT_EQ(
      log.Append(decision)->leaf,
      R"({"agent":null,"args_hash":null,"at":5,"call":"c1","decision":"allow","effect":null,)"
      R"("envelope":null,"kind":"decision","manifest":null,"parent":null,"seq":0,"session":null,)"
      R"("shown":null,"tenant":"acme","tool":"py\"thon\n","tool_version":null,"trace":null,"user":null,"v":1})");
  ReceiptRecord receipt;
  receipt.at = Nanos(6);
  receipt.identity.tenant = *store::TenantId::Parse("acme");
  receipt.identity.call_id = "c1";
  receipt.identity.tool = "python";
  receipt.outcome = "success";
  receipt.ran = true;
  receipt.body = "sha256:00";
  EXPECT_EQ(
      log.Append(receipt)->leaf,
      R"({"at":6,"body":"sha256:00","call":"c1","class":null,"kind":"receipt","outcome":"success",)"
      R"("ran":true,"seq":1,"tenant":"acme","tool":"python","trace":null,"v":1})");
  receipt.recovered = true;
  EXPECT_TRUE(test::Contains(log.Append(receipt)->leaf, R"("ran":true,"recovered":true,"seq":2)"));
  receipt.ran = receipt.recovered = false;
  receipt.identity.agent = "a";
  receipt.identity.session_id = "s";
  receipt.identity.call_id = "c2";
  EXPECT_EQ(
      log.Append(receipt)->leaf,
      R"({"agent":"a","at":6,"body":"sha256:00","call":"c2","class":null,"kind":"receipt",)"
      R"("outcome":"success","parent":null,"ran":false,"seq":3,"session":"s","tenant":"acme",)"
      R"("tool":"python","trace":null,"user":null,"v":1})")
      << "it has no decision that says who asked";
  EventRecord event;
  event.at = Nanos(7);
  event.name = "pruned";
  event.detail = {{"z", "last"}, {"a", -3}, {"none", ""}};
  EXPECT_EQ(
      log.Append(event)->leaf,
      R"({"at":7,"detail":{"a":-3,"none":null,"z":"last"},"kind":"event","name":"pruned","seq":4,)"
      R"("tenant":null,"v":1})");
  event.detail = {{"Not a name", 1}};
  EXPECT_FALSE(log.Append(event).ok());
  ExpectGood(5);
}

TEST_F(LogTest, ARecordThatIsTooLongIsRefusedAlone) {
  Log log = Open();
  EventRecord event = Event(0);
  event.detail = {{"text", std::string(66'000, 'x')}};
  const Result<Appended> at = log.Append(event);
  ASSERT_FALSE(at.ok());
  EXPECT_EQ(at.error().code, "audit.record");
  event.detail = {{"text", std::string(65'000, 'x')}};
  EXPECT_TRUE(log.Append(event).ok());
  ExpectGood(1);
}

TEST_F(LogTest, FilesBelongToTheOwnerAlone) {
  Log log = Open();
  Append(log, 1);
  const std::vector<std::pair<std::string, mode_t>> modes = {
      {"", 0700}, {"/records", 0600}, {"/key", 0600}, {"/key.pub", 0644}, {"/tree", 0600}};
  for (const auto& [name, mode] : modes) {
    struct stat info{};
    ASSERT_EQ(::stat((Path() + name).c_str(), &info), 0) << name;
    EXPECT_EQ(info.st_mode & 07777, mode) << name;
  }
  EXPECT_EQ(*test::ReadFile(Path() + "/key.pub"), log.public_key().Text() + "\n");
}

TEST_F(LogTest, GoesOnWhereItWas) {
  std::set<std::string> origins;
  for (int round = 0; round < 4; ++round) {
    Log log = Open();
    origins.insert(log.origin() + log.key_id());
    Append(log, 3);
  }
  EXPECT_EQ(origins.size(), 1u);
  ExpectGood(12);
}

TEST_F(LogTest, ManyThreadsShareBatches) {
  {
    Log log = Open();
    std::vector<std::thread> threads;
    std::atomic<int> failed = 0;
    for (int t = 0; t < 8; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < 50; ++i) {
          failed += log.Append(Event(t * 100 + i)).ok() ? 0 : 1;
        }
      });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
    EXPECT_EQ(failed, 0);
  }
  ExpectGood(400);
}

TEST_F(LogTest, TwoLogsOfOneDirectoryTakeTurns) {
  Log one = Open();
  Log two = Open();
  for (uint64_t i = 0; i < 10; ++i) {
    EXPECT_EQ(one.Append(Event(1))->position.index, 2 * i);
    EXPECT_EQ(two.Append(Event(2))->position.index, 2 * i + 1);
  }
  EXPECT_EQ(*one.Checkpoint(), *two.Checkpoint()) << "each reads what the other wrote";
  ExpectGood(20);
}

TEST_F(LogTest, TheCheckpointIsASignedNote) {
  Log log = Open();
  Append(log, 3);
  const Result<std::string> text = log.Checkpoint();
  ASSERT_TRUE(text.ok());
  const Result<Note> note = ParseNote(*text);
  ASSERT_TRUE(note.ok()) << *text;
  EXPECT_EQ(note->checkpoint.size, 3u);
  EXPECT_EQ(note->origin, log.origin());
  EXPECT_TRUE(note->checkpoint.SignedBy(log.public_key(), log.origin()));
  EXPECT_FALSE(note->checkpoint.SignedBy(log.public_key(), "coffer.log/0000000000000000"));
}

// ---- What stands beside the log

TEST_F(LogTest, TheCacheIsNotNeeded) {
  for (const std::string rubbish :
       {"", "rubbish", "coffer tree 1\n", "missing", "half", "flipped", "folder"}) {
    SCOPED_TRACE(rubbish);
    Log log = Open();
    Append(log, 3);
    const std::string cache = *test::ReadFile(Path() + "/tree");
    if (rubbish == "missing") {
      std::filesystem::remove(Path() + "/tree");
    } else if (rubbish == "folder") {
      std::filesystem::remove(Path() + "/tree");
      std::filesystem::create_directory(Path() + "/tree");
    } else if (rubbish == "half") {
      dir_.Write("log/tree", cache.substr(0, cache.size() / 2), 0600);
    } else if (rubbish == "flipped") {
      std::string text = cache;
      text[60] = text[60] == 'a' ? 'b' : 'a';
      dir_.Write("log/tree", text, 0600);
    } else {
      dir_.Write("log/tree", rubbish, 0600);
    }
    Log again = Open();
    Append(again, 2);
  }
  ExpectGood(35);
}

TEST_F(LogTest, AnOldCacheIsAsGood) {
  Log log = Open();
  Append(log, 3);
  const std::string cache = *test::ReadFile(Path() + "/tree");
  Append(log, 5);
  dir_.Write("log/tree", cache, 0600);
  Log again = Open();
  Append(again, 2);
  ExpectGood(10);
}

TEST_F(LogTest, LostRecordsAreNoticed) {
  std::string before;
  {
    Log log = Open();
    Append(log, 3);
    before = Text();
    Append(log, 3);
  }
  const std::string whole = Text();
  dir_.Write("log/records", before, 0600);
  EXPECT_EQ(OpenError(), "audit.log.damaged");
  EXPECT_EQ(Text(), before) << "nothing is touched";
  dir_.Write("log/records", whole, 0600);
  EXPECT_EQ(OpenError(), "");
  std::filesystem::remove(Path() + "/records");
  EXPECT_EQ(OpenError(), "audit.log.damaged");
}

TEST_F(LogTest, ALogThatIsCutShortUnderAProcessIsRefused) {
  Log log = Open();
  Append(log, 2);
  const std::string before = Text();
  Append(log, 2);
  const std::string whole = Text();
  std::filesystem::resize_file(Path() + "/records", before.size());
  for (int i = 0; i < 2; ++i) {
    const Result<Appended> at = log.Append(Event(9));
    ASSERT_FALSE(at.ok());
    EXPECT_EQ(at.error().code, "audit.log.damaged");
  }
  EXPECT_EQ(Text(), before);
  dir_.Write("log/records", whole, 0600);
  EXPECT_TRUE(log.Append(Event(9)).ok()) << "restored, it goes on";
  ExpectGood(5);
}

TEST_F(LogTest, ARemovedLogIsRefused) {
  Log log = Open();
  Append(log, 2);
  std::filesystem::remove(Path() + "/records");
  const Result<Appended> at = log.Append(Event(9));
  ASSERT_FALSE(at.ok()) << "it would be written to a file that nobody can open";
  EXPECT_FALSE(log.Append(Event(9)).ok());
}

TEST_F(LogTest, TheKeyIsGuarded) {
  {
    Log log = Open();
    Append(log, 2);
  }
  const std::string key = *test::ReadFile(Path() + "/key");
  const std::string text = Text();
  std::filesystem::remove(Path() + "/key");
  EXPECT_EQ(OpenError(), "audit.log.key");
  dir_.Write("log/key", std::string(64, '1') + "\n", 0600);
  EXPECT_EQ(OpenError(), "audit.log.damaged") << "another key";
  dir_.Write("log/key", "rubbish", 0600);
  EXPECT_EQ(OpenError(), "audit.log.key");
  std::filesystem::remove(Path() + "/key");
  dir_.Write("log/key", key, 0644);
  EXPECT_EQ(OpenError(), "audit.log.key") << "others can read it";
  std::filesystem::remove(Path() + "/key");
  dir_.Write("log/key", key, 0600);
  EXPECT_EQ(OpenError(), "");
  EXPECT_EQ(Text(), text) << "nothing of this touched the log";
}

TEST_F(LogTest, ADirectoryThatOthersCanWriteIsRefused) {
  dir_.MakeDir("log", 0777);
  std::filesystem::permissions(Path(), std::filesystem::perms::all);
  EXPECT_EQ(OpenError(), "audit.log");
}

// Others are told before what a crash left is cut off; while they cannot be, the log stays as the crash left it.
TEST_F(LogTest, NothingIsCutOffBeforeOthersCouldBeTold) {
  {
    Log log = Open();
    Append(log, 3);
  }
  const std::string whole = Text();
  dir_.Write("log/records", whole + "torn", 0600);
  Status answer = HostFault("test", "not now");
  int asked = 0;
  LogOptions options;
  options.recovering = [&](const EventRecord& event) {
    ++asked;
    EXPECT_EQ(event.name, "log.recovered");
    EXPECT_TRUE(Text().ends_with("torn")) << "still there";
    return answer;
  };
  const Result<Log> refused = Log::Open(Path(), options);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, "test");
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(Text(), whole + "torn");

  answer = {};
  Result<Log> log = Log::Open(Path(), options);
  ASSERT_TRUE(log.ok()) << log.error().message;
  EXPECT_EQ(asked, 2);
  ExpectGood(4);

  // Another process tears it under ours.
  const std::string now = Text();
  std::ofstream(Path() + "/records", std::ios::app) << "torn";
  answer = HostFault("test", "not now");
  EXPECT_FALSE(log->Append(Event(1)).ok());
  EXPECT_EQ(Text(), now + "torn");
  dir_.Write("log/records", now, 0600);
  EXPECT_TRUE(log->Append(Event(1)).ok()) << "nothing is left to be told";
  ExpectGood(5);
}

}  // namespace
}  // namespace coffer::audit
