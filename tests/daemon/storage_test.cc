// SPDX-License-Identifier: Apache-2.0
//
// What a tenant keeps on the disk is bounded, and removed with a record; a full disk is said, and survived.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <thread>

#include "tests/daemon/daemon.h"

namespace coffer::test {
namespace {

class Storage : public ::testing::Test {
 protected:
  void Start(const std::string& config) {
    const std::string file = dir_.Write("coffer.toml", config, 0644);
    ASSERT_TRUE(daemon_.Start({"--config", file}));
  }
  Json Records(const std::string& name) {
    Json found = Json::array();
    for (const std::string& line : Lines(ReadFile(daemon_.state() + "/log/records").value_or(""))) {
      const Json leaf = Json::parse(line, nullptr, false);
      if (leaf.is_object() && leaf.value("name", "") == name) {
        found.push_back(leaf);
      }
    }
    return found;
  }
  RunResult Verify() {
    return RunProgram({CofferPath(), "audit", "verify", "--state", daemon_.state()});
  }
  TempDir dir_;
  Daemon daemon_;
};

TEST_F(Storage, TheOldestResultsGoFirstWithARecord) {
  Start("[storage]\ntenant = \"16MiB\"\n");
  const std::string other = daemon_.NewKey("other", "agent", "x")["key"];
  const std::string kept = daemon_.Call(other, Bash("head -c 500000 /dev/zero")).At("call_id");
  std::vector<std::string> calls;
  for (int i = 0; i < 8; ++i) {
    // 500,000 NULs are 3 MB of JSON: together three times what the tenant may keep.
    const HttpAnswer answer =
        daemon_.Call(daemon_.key(), Bash("head -c 500000 /dev/zero; : " + std::to_string(i)));
    ASSERT_EQ(answer.status, 200) << answer.text.substr(0, 300);
    if (answer.Outcome() == "success") {
      calls.push_back(answer.At("call_id"));
    }
    EXPECT_TRUE(WaitUntil([&] { return i < 3 || !Records("results.pruned").empty(); }, Seconds(5)));
  }
  const auto has_result = [&](const std::string& call, const std::string& key) {
    return daemon_.Ask("GET", "/v1/calls/" + call, key).text.size() > 1'000'000;
  };
  EXPECT_TRUE(WaitUntil([&] { return !has_result(calls.front(), daemon_.key()); }, Seconds(5)));
  EXPECT_EQ(daemon_.Ask("GET", "/v1/calls/" + calls.front() + "/receipt", daemon_.key()).status,
            200)
      << "receipts stay";
  EXPECT_TRUE(has_result(calls.back(), daemon_.key())) << "the newest stays";
  EXPECT_TRUE(has_result(kept, other)) << "another tenant's are its own";
  for (const Json& leaf : Records("results.pruned")) {
    EXPECT_EQ(leaf["tenant"], "local");
    EXPECT_GT(leaf["detail"]["count"], 0);
    EXPECT_GT(leaf["detail"]["bytes"], 1'000'000);
  }
  const RunResult verified = Verify();
  EXPECT_EQ(verified.exit, 0) << verified.Describe();
}

// A retry whose result was removed is told so, and nothing runs again.
TEST_F(Storage, ARetryOfWhatWasRemovedDoesNotRunAgain) {
  Start("[storage]\ntenant = \"16MiB\"\n");
  const std::string session = daemon_.NewSession(daemon_.key());
  const Json once = Bash("echo >> ran; head -c 500000 /dev/zero", session);
  const std::string key = "Idempotency-Key: once\r\n";
  const std::string call = daemon_.Call(daemon_.key(), once, key).At("call_id");
  EXPECT_EQ(daemon_.Call(daemon_.key(), once, key).status, 200) << "the control: a retry hears it";
  for (int i = 0; i < 6; ++i) {
    (void)daemon_.Call(daemon_.key(), Bash("head -c 500000 /dev/zero; : " + std::to_string(i)));
  }
  ASSERT_TRUE(WaitUntil(
      [&] { return daemon_.Ask("GET", "/v1/calls/" + call, daemon_.key()).text.size() < 500'000; },
      Seconds(5)));
  const HttpAnswer again = daemon_.Call(daemon_.key(), once, key);
  EXPECT_EQ(again.status, 200) << again.text.substr(0, 300);
  EXPECT_EQ(again.At("call_id"), call);
  EXPECT_EQ(again.Outcome(), "success") << "it did";
  EXPECT_EQ(again.body["error"]["class"], "policy.storage") << again.text.substr(0, 300);
  EXPECT_EQ(Lines(ReadFile(daemon_.Workspace(session) + "/ran").value_or("")).size(), 1U);
}

TEST_F(Storage, OpenSessionsTogetherHaveABound) {
  Start("[storage]\ntenant = \"100MiB\"\nsession = \"10MiB\"\n");
  std::string last;
  int made = 0;
  for (; made < 10; ++made) {
    const HttpAnswer answer = daemon_.Ask("POST", "/v1/sessions", daemon_.key(), "{}");
    if (answer.status != 201) {
      EXPECT_EQ(answer.status, 429) << answer.text;
      EXPECT_EQ(answer.At("code"), "policy.storage");
      break;
    }
    last = answer.At("session_id");
  }
  EXPECT_EQ(made, 5);
  EXPECT_EQ(daemon_.Ask("DELETE", "/v1/sessions/" + last, daemon_.key()).status, 200);
  EXPECT_EQ(daemon_.Ask("POST", "/v1/sessions", daemon_.key(), "{}").status, 201);
}

TEST_F(Storage, ATenantHasItsShareOfTheHost) {
  Start("[host]\ncalls = 4\n");
  const std::string other = daemon_.NewKey("other", "agent", "x")["key"];
  const std::string session = daemon_.NewSession(daemon_.key());
  std::vector<std::string> running;
  for (int i = 0; i < 2; ++i) {
    const HttpAnswer began = daemon_.Call(daemon_.key(), Bash(WaitForGo(), session), kAsync);
    ASSERT_EQ(began.status, 202) << began.text;
    running.push_back(began.At("call_id"));
  }
  const HttpAnswer third = daemon_.Call(daemon_.key(), Bash("echo third"));
  EXPECT_EQ(third.DeniedBy(), "policy.host") << third.text;
  EXPECT_FALSE(third.Field("Retry-After").empty());
  EXPECT_EQ(daemon_.Call(other, Bash("echo hello")).Outcome(), "success") << "the others' half";
  // The control: what ends makes room.
  daemon_.Ask("POST", "/v1/calls/" + running[0] + "/cancel", daemon_.key());
  EXPECT_TRUE(WaitUntil(
      [&] { return daemon_.Call(daemon_.key(), Bash("echo " + NewToken())).status == 200; }));
}

// A tenant that is refused as fast as it can, without any rate in the configuration: its refusals are recorded until
// what the log keeps of them for one tenant is spent, and from then on they are counted.
TEST_F(Storage, RefusalsFillTheLogOnlyUpToABound) {
  Start("");
  const std::string hostile = daemon_.NewKey("hostile", "agent", "h")["key"];
  const std::string victim = daemon_.NewKey("victim", "agent", "v")["key"];
  std::atomic<uint64_t> refused = 0;
  const auto ask = [&] {
    ++refused;
    return daemon_.Call(hostile, {{"tool", "no-such-tool"}, {"args", Json::object()}});
  };
  const auto leaves_of = [&](const std::string& tenant) {
    uint64_t leaves = 0;
    for (const std::string& line : Lines(ReadFile(daemon_.state() + "/log/records").value_or(""))) {
      leaves += line.find("\"tenant\":\"" + tenant + "\"") != std::string::npos ? 1 : 0;
    }
    return leaves;
  };
  const uint64_t own = leaves_of("hostile");  // of its key
  const auto begun = std::chrono::steady_clock::now();
  constexpr uint64_t kThreads = 4;
  constexpr uint64_t kFar = 10'000;
  std::vector<std::thread> threads;
  for (uint64_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      while (refused < kFar && ask().DeniedBy() == "policy.tool") {
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  ASSERT_LT(refused, kFar) << "nothing bounded them";
  const uint64_t until_bound = refused;
  const uint64_t recorded = leaves_of("hostile") - own;
  EXPECT_GE(recorded + kThreads, until_bound) << "the control: each of these was a record";

  constexpr uint64_t kMore = 1000;
  for (uint64_t i = 0; i < kMore; ++i) {
    const HttpAnswer later = ask();
    if (later.DeniedBy() != "policy.tool") {  // one now and then is allowed again
      ASSERT_EQ(later.DeniedBy(), "policy.rate") << later.text;
      EXPECT_FALSE(later.Field("Retry-After").empty());
    }
  }
  const HttpAnswer served = daemon_.Call(victim, Bash("echo hello"));
  EXPECT_EQ(served.Outcome(), "success") << served.text;
  const HttpAnswer denied =
      daemon_.Call(victim, {{"tool", "no-such-tool"}, {"args", Json::object()}});
  EXPECT_EQ(denied.DeniedBy(), "policy.tool") << "another tenant's are recorded as always";
  EXPECT_EQ(daemon_.Call(hostile, Bash("echo hello")).Outcome(), "success")
      << "what is allowed runs";
  const auto took = std::chrono::steady_clock::now() - begun;
  EXPECT_EQ(daemon_.Stop(), 0);

  const uint64_t more = leaves_of("hostile") - own - recorded;
  constexpr uint64_t kOfTheCall = 2;
  EXPECT_LE(more, kOfTheCall + 2 * kThreads + static_cast<uint64_t>(took / Seconds(5)) + 1)
      << "of " << kMore;
  uint64_t receipts = 0, counted = 0;
  for (const std::string& line : Lines(ReadFile(daemon_.state() + "/log/records").value_or(""))) {
    const Json leaf = Json::parse(line, nullptr, false);
    if (!leaf.is_object() || leaf["tenant"] != "hostile") {
      continue;
    }
    if (leaf["kind"] == "receipt" && leaf["outcome"] == "denied") {
      ++receipts;
    } else if (leaf.value("name", "") == "refusals.counted") {
      counted += leaf["detail"]["count"].get<uint64_t>();
    }
  }
  EXPECT_EQ(receipts + counted, refused) << "none is forgotten";
  const RunResult verified = Verify();
  EXPECT_EQ(verified.exit, 0) << verified.Describe();
}

// The state directory on a small file system that something else fills.
class FullDisk : public Storage {
 protected:
  static constexpr uint64_t kAlmostNothing = 1ULL << 20;
  void SetUp() override {
    if (::geteuid() != 0) {
      GTEST_SKIP() << "only root can mount the small file system";
    }
    ASSERT_EQ(::mkdir(daemon_.state().c_str(), 0700), 0);
    ASSERT_EQ(::mount("none", daemon_.state().c_str(), "tmpfs", 0, "size=48m,mode=0700"), 0);
  }
  void TearDown() override {
    if (::geteuid() == 0) {
      (void)daemon_.Stop();
      (void)::umount2(daemon_.state().c_str(), MNT_DETACH);
    }
  }
  void Fill() {
    std::ofstream file(daemon_.state() + "/ballast", std::ios::binary);
    const std::string block(65536, 'x');
    struct statvfs info{};
    // Not to the last byte: what the reserve gives back while this runs would be taken at once.
    do {
      file.write(block.data(), static_cast<std::streamsize>(block.size())).flush();
      ASSERT_EQ(::statvfs(daemon_.state().c_str(), &info), 0);
    } while (file && uint64_t{info.f_bavail} * info.f_frsize > kAlmostNothing);
  }
};

TEST_F(FullDisk, IsSaidAndSurvived) {
  Start("");
  const std::string session = daemon_.NewSession(daemon_.key());
  const HttpAnswer running = daemon_.Call(daemon_.key(), Bash(WaitForGo(), session), kAsync);
  ASSERT_EQ(running.status, 202) << running.text;
  Fill();
  const auto full = [&] { return daemon_.Ask("GET", "/readyz", "").status == 503; };
  ASSERT_TRUE(WaitUntil(full, Seconds(5)));
  EXPECT_EQ(daemon_.Call(daemon_.key(), Bash("echo no")).status, 503);
  const HttpAnswer no_session = daemon_.Ask("POST", "/v1/sessions", daemon_.key(), "{}");
  EXPECT_EQ(no_session.status, 503) << no_session.text;
  EXPECT_EQ(no_session.At("code"), "storage.full");
  EXPECT_EQ(daemon_.Ask("GET", "/v1/audit", daemon_.key()).status, 200) << "reading goes on";
  // What ran is recorded to its end: that is what the reserve is for.
  daemon_.Ask("POST", "/v1/calls/" + running.At("call_id") + "/cancel", daemon_.key());
  EXPECT_TRUE(WaitUntil([&] {
    return daemon_.Ask("GET", "/v1/calls/" + running.At("call_id"), daemon_.key()).At("state") ==
           "finished";
  }));
  const RunResult meanwhile = Verify();
  EXPECT_EQ(meanwhile.exit, 0) << meanwhile.Describe();
  ASSERT_EQ(::unlink((daemon_.state() + "/ballast").c_str()), 0);
  ASSERT_TRUE(WaitUntil([&] { return !full(); }, Seconds(5)));
  EXPECT_EQ(daemon_.Call(daemon_.key(), Bash("echo yes")).Outcome(), "success");
  const RunResult verified = Verify();
  EXPECT_EQ(verified.exit, 0) << verified.Describe();
}

// Nothing is left, the reserve included: the end of a call is in the log, or in neither, and no verifier takes a receipt
// for removed.
TEST_F(FullDisk, VerifyingOnItNamesNoReceiptAsGone) {
  Start("");
  const std::string session = daemon_.NewSession(daemon_.key());
  const std::string ended = daemon_.Call(daemon_.key(), Bash("echo hello")).At("call_id");
  const HttpAnswer running = daemon_.Call(daemon_.key(), Bash(WaitForGo(), session), kAsync);
  ASSERT_EQ(running.status, 202) << running.text;
  const std::string call = "/v1/calls/" + running.At("call_id");
  std::ofstream ballast(daemon_.state() + "/ballast", std::ios::binary);
  const auto fill = [&] {
    for (const size_t size : {size_t{65536}, size_t{1}}) {
      const std::string block(size, 'x');
      while (ballast.write(block.data(), static_cast<std::streamsize>(size)).flush()) {
      }
      ballast.clear();
    }
    struct statvfs info{};
    return ::statvfs(daemon_.state().c_str(), &info) == 0 && info.f_bavail == 0;
  };
  ASSERT_TRUE(WaitUntil([&] { return fill() && daemon_.Ask("GET", "/readyz", "").status == 503; }));
  ASSERT_TRUE(fill()) << "what the reserve gave back is taken too";
  daemon_.Ask("POST", call + "/cancel", daemon_.key());
  const auto finished = [&] {
    return daemon_.Ask("GET", call, daemon_.key()).At("state") == "finished";
  };
  (void)WaitUntil(finished, Seconds(3));
  ASSERT_TRUE(fill());
  const RunResult meanwhile = Verify();
  // All that it may find is an end that the store has not yet.
  EXPECT_TRUE(meanwhile.exit == 0 || Contains(meanwhile.out, "store.behind"))
      << meanwhile.Describe();
  EXPECT_FALSE(Contains(meanwhile.out + meanwhile.err, "gone")) << meanwhile.Describe();
  EXPECT_FALSE(Contains(meanwhile.out + meanwhile.err, ended)) << meanwhile.Describe();

  ballast.close();
  ASSERT_EQ(::unlink((daemon_.state() + "/ballast").c_str()), 0);
  EXPECT_TRUE(WaitUntil(finished));
  EXPECT_TRUE(WaitUntil([&] {
    return daemon_.Call(daemon_.key(), Bash("echo " + NewToken())).Outcome() == "success";
  }));
  const RunResult verified = Verify();
  EXPECT_EQ(verified.exit, 0) << verified.Describe();
  // The control: a receipt that is gone is named.
  ASSERT_EQ(daemon_.Stop(), 0);
  sqlite3* db = nullptr;
  ASSERT_EQ(::sqlite3_open((daemon_.state() + "/coffer.db").c_str(), &db), SQLITE_OK);
  const std::string sql = "DELETE FROM calls WHERE id = '" + ended + "'";
  EXPECT_EQ(::sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK);
  ::sqlite3_close(db);
  const RunResult control = Verify();
  EXPECT_NE(control.exit, 0) << "NO-CONTROL";
  EXPECT_TRUE(Contains(control.out + control.err, ended)) << "NO-CONTROL: " << control.Describe();
}

}  // namespace
}  // namespace coffer::test
