// SPDX-License-Identifier: Apache-2.0
//
// The record, from the cause to whoever is told: an anomaly, what the command line did beside the daemon, a log that a crash
// tore; and a daemon whose log or database is damaged.
#include <gtest/gtest.h>
#include <signal.h>
#include <sqlite3.h>

#include <cmath>
#include <cstdlib>
#include <fstream>

#include "store/baseline.h"
#include "store/store.h"
#include "tests/daemon/daemon.h"
#include "tests/daemon/http_receiver.h"
#include "tests/support/export_rules.h"

namespace coffer::test {
namespace {

class Record : public ::testing::Test {
 protected:
  Record() : secret_(NewToken()), secret_file_(dir_.Write("secret", secret_ + "\n", 0600)) {}

  bool Start(const std::string& more = {}) {
    const std::string file = dir_.Write("coffer.toml",
                                        "[[webhook]]\nurl = \"" + receiver_.Url("/hook") +
                                            "\"\nsecret_file = \"" + secret_file_ + "\"\n" + more,
                                        0600);
    return daemon_.Start({"--config", file});
  }
  RunResult Coffer(Strings words) const {
    words.insert(words.begin(), CofferPath());
    words.insert(words.begin() + 2, {"--state", daemon_.state()});
    return RunProgram(words);
  }
  // The events of this type that came, as they came.
  std::vector<Posted> Came(const std::string& type) const {
    std::vector<Posted> found;
    for (const Posted& post : receiver_.posts()) {
      if (post.json().value("type", "") == "io.cofferdam." + type) {
        found.push_back(post);
      }
    }
    return found;
  }
  bool WaitFor(const std::string& type) const {
    return WaitUntil([&] { return !Came(type).empty(); }, Seconds(30));
  }
  void ExpectSigned(const Posted& post) const {
    EXPECT_EQ(CheckCloudEvent(post.json()), Strings()) << post.body;
    std::map<std::string, std::string> fields = post.fields;
    const std::string time = fields["webhook-timestamp"];
    EXPECT_EQ(fields["webhook-id"], post.json()["id"]);
    EXPECT_EQ(fields["webhook-signature"],
              "t=" + time +
                  ",v1=" + HmacHex(secret_, fields["webhook-id"] + "." + time + "." + post.body));
  }
  double Metric(const std::string& series) const {
    const HttpAnswer scrape = daemon_.Ask("GET", "/metrics", daemon_.key());
    EXPECT_EQ(scrape.status, 200) << scrape.text;
    for (const std::string& line : Lines(scrape.text)) {
      if (line.starts_with(series + " ")) {
        return std::strtod(line.c_str() + series.size(), nullptr);
      }
    }
    return std::nan("");
  }
  HttpAnswer Work(const std::string& word) const {
    return daemon_.Call(daemon_.key(), Bash("echo " + word));
  }
  std::string Log() const { return daemon_.state() + "/log/records"; }

  TempDir dir_;
  const std::string secret_, secret_file_;
  HttpReceiver receiver_;
  Daemon daemon_;
};

TEST_F(Record, AnAnomalyBecomesAMetricAndASignedEvent) {
  ASSERT_TRUE(Start());
  ASSERT_EQ(daemon_.Stop(), 0);
  const auto into_the_hour = [] { return WallTime() % std::chrono::hours(1); };
  ASSERT_TRUE(WaitUntil([&] { return into_the_hour() < std::chrono::seconds(3540); }, Seconds(70)));
  const int64_t hour = std::chrono::duration_cast<std::chrono::hours>(WallTime()).count();
  {
    // A day in which bash was called twice an hour and printed ten bytes.
    Result<store::Store> store = store::Store::Open(daemon_.state());
    ASSERT_TRUE(store.ok());
    std::vector<store::BaselineHour> past;
    for (int64_t before = 2; before <= 26; ++before) {
      past.push_back({"bash", "rate", hour - before, 2, 2, 2});
      past.push_back({"bash", "denials", hour - before, 2, 0, 0});
      past.push_back({"bash", "output", hour - before, 4, 40, 400});
    }
    ASSERT_TRUE(store::AddBaselines(*store, store::TenantId::Local(), past).ok());
  }
  ASSERT_TRUE(Start());
  const std::string series = R"(coffer_alerts_total{kind="output"})";
  ASSERT_EQ(Work("small").Outcome(), "success");
  EXPECT_EQ(Metric(series), 0) << "the control: what is usual is no alert";
  ASSERT_EQ(daemon_.Call(daemon_.key(), Bash("head -c 500000 /dev/zero")).Outcome(), "success");
  EXPECT_EQ(Metric(series), 1);
  ASSERT_TRUE(WaitFor("alert.output")) << daemon_.Said();
  const Posted alert = Came("alert.output").front();
  ExpectSigned(alert);
  EXPECT_EQ(alert.json()["data"]["tool"], "bash");
  EXPECT_FALSE(alert.json()["data"].value("words", "").empty());
  EXPECT_TRUE(Contains(alert.json().value("source", ""), "local"));
}

// Who flips a switch from the command line, or runs something on record, leaves it for the daemon to tell; also for one that is
// not there at the moment.
// The database is edited while the daemon runs: what it says of a call is what was sealed, or that it cannot say.
TEST_F(Record, TheApiTellsWhatWasSealedOrNothing) {
  ASSERT_TRUE(Start());
  const std::string good = Work("good").At("call_id");
  const std::string edited = Work("edited").At("call_id");
  const std::string replaced = Work("replaced").At("call_id");
  const auto get = [&](const std::string& path) { return daemon_.Ask("GET", path, daemon_.key()); };
  const auto seal_of = [&](const std::string& id) {
    const HttpAnswer page = get("/v1/audit");
    for (const Json& call : page.body["calls"]) {
      if (call["call_id"] == id) {
        return call;
      }
    }
    return Json();
  };
  EXPECT_EQ(seal_of(edited)["seal"], "good") << "the control";
  EXPECT_EQ(seal_of(edited)["agent"], seal_of(good)["agent"]);
  EXPECT_EQ(get("/v1/calls/" + replaced).body["result"]["stdout"], "replaced\n") << "the control";
  sqlite3* db = nullptr;
  ASSERT_EQ(::sqlite3_open((daemon_.state() + "/coffer.db").c_str(), &db), SQLITE_OK);
  ::sqlite3_busy_timeout(db, 5000);
  const std::string sql =
      "UPDATE calls SET outcome = 'denied', tool = 'python' WHERE id = '" + edited +
      "'; UPDATE results SET body = replace(body, 'replaced', 'forged') WHERE call_id = '" +
      replaced + "'";
  ASSERT_EQ(::sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK);
  ::sqlite3_close(db);
  for (const std::string& id : {edited, replaced}) {
    const Json shown = seal_of(id);
    EXPECT_EQ(shown["seal"], "broken") << shown;
    EXPECT_EQ(shown["tool"], nullptr);
    EXPECT_EQ(shown["outcome"], nullptr);
    for (const char* part : {"", "/receipt"}) {
      const HttpAnswer answer = get("/v1/calls/" + id + part);
      EXPECT_EQ(answer.status, 500) << answer.text;
      EXPECT_EQ(answer.body.value("code", ""), "record.broken") << answer.text;
      EXPECT_FALSE(Contains(answer.text, "forged"));
    }
  }
  EXPECT_EQ(seal_of(good)["seal"], "good");
  EXPECT_EQ(get("/v1/calls/" + good).body["result"]["stdout"], "good\n");
}

TEST_F(Record, WhatTheCommandLineDoesIsTold) {
  ASSERT_TRUE(Start());
  ASSERT_EQ(Coffer({"tools", "disable", "python", "--reason", "drill"}).exit, 0);
  ASSERT_TRUE(WaitFor("switch.on")) << daemon_.Said();
  ExpectSigned(Came("switch.on").front());
  EXPECT_TRUE(Contains(Came("switch.on").front().body, "python"));

  const RunResult ran = Coffer({"run", "--", "/bin/true"});
  EXPECT_EQ(ran.exit, 0) << ran.Describe();
  ASSERT_TRUE(WaitFor("call.finished")) << daemon_.Said();
  EXPECT_EQ(Came("call.finished").front().json()["data"]["tool"], "run");

  ASSERT_EQ(daemon_.Stop(), 0);
  ASSERT_EQ(Coffer({"tools", "enable", "python"}).exit, 0);
  EXPECT_TRUE(Came("switch.off").empty()) << "the control: nobody is there to send it";
  ASSERT_TRUE(Start());
  ASSERT_TRUE(WaitFor("switch.off")) << daemon_.Said();
}

// No receivers any more: nobody leaves anything for them.
TEST_F(Record, ADaemonWithoutReceiversIsLeftNothing) {
  ASSERT_TRUE(Start());
  ASSERT_EQ(daemon_.Stop(), 0);
  ASSERT_TRUE(daemon_.Start());
  ASSERT_EQ(daemon_.Stop(), 0);
  ASSERT_EQ(Coffer({"tools", "disable", "python", "--reason", "drill"}).exit, 0);
  ASSERT_TRUE(Start());
  ASSERT_EQ(Coffer({"tools", "enable", "python"}).exit, 0);
  ASSERT_TRUE(WaitFor("switch.off")) << "the control";
  EXPECT_TRUE(Came("switch.on").empty());
}

TEST_F(Record, ALogThatACrashToreIsToldOf) {
  ASSERT_TRUE(Start());
  ASSERT_EQ(Work("one").Outcome(), "success");
  ASSERT_EQ(daemon_.Stop(), 0);
  std::ofstream(Log(), std::ios::app) << "{\"torn\":";
  ASSERT_TRUE(Start());
  ASSERT_TRUE(WaitFor("log.recovered")) << daemon_.Said();
  ExpectSigned(Came("log.recovered").front());
  EXPECT_EQ(Came("log.recovered").front().json()["data"]["bytes"], 8);
  // Found by the command line, told by the daemon.
  ASSERT_EQ(daemon_.Stop(), 0);
  std::ofstream(Log(), std::ios::app) << "torn again";
  ASSERT_EQ(Coffer({"tools", "disable", "python", "--reason", "drill"}).exit, 0);
  ASSERT_TRUE(Start());
  EXPECT_TRUE(WaitUntil([&] { return Came("log.recovered").size() == 2; }, Seconds(30)));
  EXPECT_EQ(Coffer({"audit", "verify"}).exit, 0);
}

// Under the running daemon the log goes, and comes back.
TEST_F(Record, WithoutItsLogTheDaemonRunsNothingAndGoesOnWhenItIsBack) {
  ASSERT_TRUE(Start());
  ASSERT_EQ(Work("one").Outcome(), "success");
  EXPECT_EQ(daemon_.Ask("GET", "/readyz", daemon_.key()).status, 200);
  const std::string good = *ReadFile(Log());
  std::ofstream(Log(), std::ios::trunc) << good.substr(0, good.size() / 2);
  const HttpAnswer refused = Work("two");
  EXPECT_NE(refused.Outcome(), "success") << refused.text;
  EXPECT_EQ(refused.status, 503) << refused.text;
  EXPECT_EQ(refused.At("code"), "record.unavailable");
  EXPECT_FALSE(Contains(refused.text, daemon_.state())) << "nothing of the host";
  EXPECT_TRUE(WaitUntil([&] { return Contains(daemon_.Said(), "coffer audit verify"); }))
      << "the operator is told what to do: " << daemon_.Said();
  EXPECT_TRUE(WaitUntil([&] { return daemon_.Ask("GET", "/readyz", daemon_.key()).status == 503; },
                        Seconds(20)));
  std::ofstream(Log(), std::ios::trunc) << good;
  EXPECT_TRUE(WaitUntil([&] { return Work("three").Outcome() == "success"; }, Seconds(20)));
  EXPECT_TRUE(WaitUntil([&] { return daemon_.Ask("GET", "/readyz", daemon_.key()).status == 200; },
                        Seconds(20)));
  const RunResult verdict = Coffer({"audit", "verify"});
  EXPECT_EQ(verdict.exit, 0) << verdict.Describe();
}

// Under the running daemon the database is overwritten, and restored. SQLite would go on from memory for long.
TEST_F(Record, WithoutItsDatabaseTheDaemonRunsNothingAndGoesOnWhenItIsBack) {
  ASSERT_TRUE(Start());
  const std::string before = Work("one").At("call_id");
  const HttpAnswer running =
      daemon_.Call(daemon_.key(), Bash("echo begun; sleep 2; echo over"), kAsync);
  ASSERT_EQ(running.status, 202) << running.text;
  const std::string database = daemon_.state() + "/coffer.db";
  const Strings files = {database, database + "-wal"};
  ASSERT_TRUE(WaitUntil([&] { return !daemon_.Runners().empty(); }));
  Strings good;
  for (const std::string& file : files) {
    good.push_back(ReadFile(file).value_or(""));
    std::ofstream(file, std::ios::in | std::ios::out) << std::string(good.back().size(), 'x');
  }
  const HttpAnswer refused = Work("two");
  EXPECT_NE(refused.Outcome(), "success") << refused.text;
  EXPECT_EQ(refused.status, 503) << refused.text;
  EXPECT_EQ(refused.At("code"), "record.unavailable");
  EXPECT_FALSE(Contains(refused.text, daemon_.state())) << "nothing of the host";
  EXPECT_TRUE(WaitUntil([&] { return Contains(daemon_.Said(), "store.corrupt"); }));
  EXPECT_TRUE(WaitUntil([&] { return Contains(daemon_.Said(), "restore the state directory"); }))
      << daemon_.Said();
  EXPECT_TRUE(
      WaitUntil([&] { return daemon_.Ask("GET", "/readyz", daemon_.key()).status == 503; }));
  EXPECT_TRUE(WaitUntil([&] { return daemon_.Runners().empty(); }, Seconds(20)));

  for (size_t i = 0; i < files.size(); ++i) {
    std::ofstream(files[i], std::ios::in | std::ios::out) << good[i];
  }
  EXPECT_TRUE(WaitUntil([&] { return Work("three").Outcome() == "success"; }, Seconds(20)))
      << daemon_.Said();
  EXPECT_TRUE(
      WaitUntil([&] { return daemon_.Ask("GET", "/readyz", daemon_.key()).status == 200; }));
  EXPECT_TRUE(WaitUntil([&] { return Contains(daemon_.Said(), "the store can be used again"); }));
  EXPECT_EQ(daemon_.Ask("GET", "/v1/calls/" + before, daemon_.key()).Outcome(), "success");
  EXPECT_TRUE(WaitUntil([&] {
    return daemon_.Ask("GET", "/v1/calls/" + running.At("call_id"), daemon_.key()).Outcome() ==
           "success";
  })) << "what ended meanwhile was kept";
  const RunResult verdict = Coffer({"audit", "verify"});
  EXPECT_EQ(verdict.exit, 0) << verdict.Describe();
}

TEST_F(Record, ADamagedStoreOrLogKeepsTheDaemonFromStarting) {
  ASSERT_TRUE(Start());
  const std::string call = Work("one").At("call_id");
  ASSERT_EQ(daemon_.Stop(), 0);
  const std::string database = daemon_.state() + "/coffer.db";
  for (const Strings& files : {Strings{Log()}, Strings{database, database + "-wal"}}) {
    Strings good;
    for (const std::string& file : files) {
      good.push_back(ReadFile(file).value_or(""));
      std::ofstream(file, std::ios::trunc) << std::string(good.back().size(), 'x');
    }
    const RunResult refused = RunProgram(
        {CofferPath(), "serve", "--state", daemon_.state(), "--listen", "127.0.0.1:0", "--json"},
        {.timeout = Seconds(30)});
    EXPECT_EQ(refused.exit, 125) << refused.Describe();
    EXPECT_TRUE(Contains(refused.err, "hint: ")) << refused.Describe();
    EXPECT_TRUE(Contains(refused.err, "restore")) << refused.Describe();
    for (size_t i = 0; i < files.size(); ++i) {
      std::ofstream(files[i], std::ios::trunc) << good[i];
    }
  }
  ASSERT_TRUE(Start());
  EXPECT_EQ(daemon_.Ask("GET", "/v1/calls/" + call, daemon_.key()).status, 200)
      << "nothing was lost";
  EXPECT_EQ(Work("two").Outcome(), "success");
  EXPECT_EQ(Coffer({"audit", "verify"}).exit, 0);
}

}  // namespace
}  // namespace coffer::test
