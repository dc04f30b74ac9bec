// SPDX-License-Identifier: Apache-2.0
//
// The files that a call exports, from its boundary to the client: what is fetched is what it wrote and what its receipt
// names, other tenants and agents get nothing, and no payload makes the daemon read anything but its own regular files.
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include <fstream>

#include "base/hash.h"
#include "tests/daemon/daemon.h"

namespace coffer::test {
namespace {

std::string Manifest(const std::string& name, const std::string& level,
                     const std::string& workspace) {
  return "[tool]\nname = \"" + name + "\"\nversion = \"1\"\neffect = \"reversible\"\n" +
         R"(
[input]
schema = { type = "object", required = ["command"], properties = { command = { type = "string" } } }
[run]
runtime = "bash"
also = ["python3"]
argv = ["bash", "-c", "--", "{command}"]
[limits]
cpu = "2m"
wall = "5m"
memory = "512MiB"
inodes = 120000
)" + "[isolation]\nlevel = \"" +
         level + "\"\n[files]\nworkspace = \"" + workspace +
         "\"\nexports = [\"report.html\", \"plots/*.png\", \"all/**\"]\n" +
         (workspace == "fresh" ? "" : "[background]\nwall = \"10m\"\n");
}

class Exports : public ::testing::Test {
 protected:
  void Start(const std::string& config = {}) {
    const std::string file = dir_.Write("coffer.toml", config, 0644);
    ASSERT_TRUE(daemon_.Start({"--config", file}));
    Declare("once", "container", "fresh");
    Declare("kept", "container", "session-write");
    Declare("low", "process", "fresh");
  }
  void Declare(const std::string& name, const std::string& level, const std::string& workspace) {
    const std::string path = daemon_.tools() + "/" + name + ".toml";
    std::ofstream(path + ".new") << Manifest(name, level, workspace);
    ASSERT_EQ(::chmod((path + ".new").c_str(), 0644), 0);
    ASSERT_EQ(::rename((path + ".new").c_str(), path.c_str()), 0);
    ASSERT_TRUE(WaitUntil(
        [&] { return daemon_.Ask("GET", "/v1/tools/" + name, daemon_.key()).status == 200; },
        Seconds(30)));
  }
  HttpAnswer Call(const std::string& tool, const std::string& command,
                  const std::string& session = {}) const {
    Json body = {{"tool", tool}, {"args", {{"command", command}}}};
    if (!session.empty()) {
      body["session_id"] = session;
    }
    return daemon_.Call(daemon_.key(), body);
  }
  HttpAnswer Get(const std::string& call, const std::string& path = {},
                 const std::string& key = {}) const {
    return daemon_.Ask("GET", "/v1/calls/" + call + "/files" + path,
                       key.empty() ? daemon_.key() : key);
  }
  Json Receipt(const std::string& call) const {
    return daemon_.Ask("GET", "/v1/calls/" + call + "/receipt", daemon_.key()).body;
  }
  static Strings PathsIn(const Json& files) {
    Strings paths;
    for (const Json& file : files) {
      paths.push_back(file.value("path", ""));
    }
    return paths;
  }
  uint64_t LeftOut(const std::string& call, const std::string& words) const {
    uint64_t count = 0;
    const Json receipt = Receipt(call);
    for (const Json& left : receipt["files"]["left_out"]) {
      count += Contains(left["why"], words) ? left["count"].get<uint64_t>() : 0;
    }
    return count;
  }
  RunResult Verify() const {
    return RunProgram({CofferPath(), "audit", "verify", "--state", daemon_.state()});
  }
  void Sql(const std::string& sql) const {
    sqlite3* db = nullptr;
    ASSERT_EQ(::sqlite3_open((daemon_.state() + "/coffer.db").c_str(), &db), SQLITE_OK);
    ::sqlite3_busy_timeout(db, 30000);
    EXPECT_EQ(::sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK)
        << ::sqlite3_errmsg(db);
    ::sqlite3_close(db);
  }

  TempDir dir_;
  Daemon daemon_;
};

TEST_F(Exports, WhatACallWroteIsFetchedAndIsInItsReceipt) {
  Start();
  for (const std::string tool : {"once", "low", "kept"}) {
    SCOPED_TRACE(tool);
    // Longer than one piece of the store, and binary; the exit status does not matter.
    const HttpAnswer answer =
        Call(tool,
             "mkdir plots all; for i in {1..20000}; do echo \"line $i\"; done > report.html; "
             "printf 'a\\0b' > plots/a.png; echo no > plots/b.txt; : > all/empty; echo no > other; "
             "exit 3");
    ASSERT_EQ(answer.Outcome(), "error") << answer.text;
    const std::string call = answer.At("call_id");
    const HttpAnswer listed = Get(call);
    ASSERT_EQ(listed.status, 200) << listed.text;
    EXPECT_EQ(PathsIn(listed.body["files"]), (Strings{"all/empty", "plots/a.png", "report.html"}))
        << listed.text;
    EXPECT_EQ(listed.body["next"], nullptr);
    const Json receipt = Receipt(call);
    ASSERT_EQ(receipt["files"]["exported"].size(), 3U) << receipt["files"];
    for (const Json& file : receipt["files"]["exported"]) {
      const HttpAnswer got = Get(call, "/" + file["path"].get<std::string>());
      EXPECT_EQ(got.status, 200);
      EXPECT_EQ(got.text.size(), file["size"].get<uint64_t>());
      EXPECT_EQ(HashOf(got.text), file["sha256"]);
      EXPECT_EQ(got.Field("Content-Type"), "application/octet-stream");
      EXPECT_EQ(got.Field("Content-Disposition"), "attachment");
      EXPECT_TRUE(Contains(got.Field("Content-Security-Policy"), "sandbox"));
    }
    EXPECT_TRUE(Contains(Get(call, "/report.html").text, "\nline 20000\n"));
    EXPECT_EQ(Get(call, "/plots/a.png").text, std::string("a\0b", 3));
    const HttpAnswer first =
        daemon_.Ask("GET", "/v1/calls/" + call + "/files?limit=2", daemon_.key());
    EXPECT_EQ(first.body["files"].size(), 2U);
    const HttpAnswer second = daemon_.Ask(
        "GET", "/v1/calls/" + call + "/files?limit=2&cursor=" + first.At("next"), daemon_.key());
    EXPECT_EQ(PathsIn(second.body["files"]), Strings{"report.html"}) << second.text;
    EXPECT_EQ(Get(call, "/other").status, 404) << "not one that is exported";
    EXPECT_EQ(Get(call, "/plots/b.txt").status, 404);
    EXPECT_EQ(
        daemon_.Ask("PUT", "/v1/calls/" + call + "/files/report.html", daemon_.key(), "x").status,
        405);
  }
  const HttpAnswer none = daemon_.Call(daemon_.key(), Bash("echo x > report.html"));
  const HttpAnswer empty = Get(none.At("call_id"));
  EXPECT_EQ(empty.status, 200);
  EXPECT_TRUE(empty.body["files"].empty()) << "bash exports nothing";
  const RunResult verified = Verify();
  EXPECT_EQ(verified.exit, 0) << verified.Describe();
}

TEST_F(Exports, OnlyWhoMaySeeTheCallMayHaveItsFiles) {
  Start();
  const std::string agent = daemon_.NewKey("alpha", "agent", "one")["key"];
  const Json body = {{"tool", "once"}, {"args", {{"command", "echo mine > report.html"}}}};
  const std::string call = daemon_.Call(agent, body).At("call_id");
  EXPECT_EQ(Get(call, "/report.html", agent).text, "mine\n") << "the control";
  EXPECT_EQ(Get(call, "/report.html", daemon_.NewKey("alpha", "operator", "lead")["key"]).status,
            200)
      << "the control: its tenant's operator";
  const std::string beta = daemon_.NewKey("beta", "operator", "one")["key"];
  const std::string sibling = daemon_.NewKey("alpha", "agent", "two")["key"];
  for (const std::string& other : {beta, sibling}) {
    for (const char* path : {"", "/report.html", "/missing"}) {
      const HttpAnswer answer = Get(call, path, other);
      EXPECT_EQ(answer.status, 404) << answer.text;
      EXPECT_EQ(answer.At("code"), Get(kNoSuchId, path, other).At("code"))
          << "another's is like one that is not there";
    }
  }
}

TEST_F(Exports, ACallThatRunsHasNoFilesYet) {
  Start();
  const std::string session = daemon_.NewSession(daemon_.key());
  const Json body = {{"tool", "kept"},
                     {"args", {{"command", "echo x > report.html; " + WaitForGo()}}},
                     {"session_id", session},
                     {"reason", "see the report"}};
  const HttpAnswer began = daemon_.Call(daemon_.key(), body, kAsync);
  ASSERT_EQ(began.status, 202) << began.text;
  const std::string call = began.At("call_id");
  ASSERT_TRUE(
      WaitUntil([&] { return Exists(daemon_.Workspace(session) + "/began"); }, Seconds(60)));
  EXPECT_EQ(Get(call).status, 409);
  EXPECT_EQ(Get(call, "/report.html").At("code"), "call.running");
  EXPECT_EQ(daemon_.Ask("GET", "/v1/calls/" + call, daemon_.key()).At("reason"), "see the report");
  EXPECT_EQ(daemon_.Ask("PUT", "/v1/sessions/" + session + "/files/go", daemon_.key(), "x").status,
            201);
  EXPECT_TRUE(WaitUntil([&] { return Get(call).status == 200; }, Seconds(60)));
  EXPECT_EQ(Get(call, "/report.html").text, "x\n");
  EXPECT_EQ(daemon_.Ask("GET", "/v1/calls/" + call, daemon_.key()).At("reason"), "see the report");
}

// What a payload leaves is never followed, waited for, or read beyond the bounds.
TEST_F(Exports, AHostileWorkspaceGivesOnlyItsRegularFiles) {
  Start();
  for (const std::string tool : {"once", "low", "kept"}) {
    SCOPED_TRACE(tool);
    const std::string session = tool == "kept" ? daemon_.NewSession(daemon_.key()) : "";
    const HttpAnswer answer = Call(
        tool,
        "mkdir all plots; ln -s /etc/passwd report.html; ln -s ../../../../etc all/etc; "
        "ln -s /proc/1/root/etc/passwd all/magic; truncate -s 90M all/hole; "
        "echo x > $'all/a\\nb'; echo x > $'all/\\xff'; ln -s / plots/x.png; echo good > all/good; "
        "chmod 0 all/good; chmod 600 all/good; test -L report.html -a -s all/hole" +
            // In a directory of the host no fifo can be made.
            std::string(session.empty() ? " && python3 -c 'import os; os.mkfifo(\"all/fifo\")'"
                                        : ""),
        session);
    ASSERT_EQ(answer.Outcome(), "success") << answer.text;
    const std::string call = answer.At("call_id");
    EXPECT_EQ(PathsIn(Get(call).body["files"]), Strings{"all/good"}) << Get(call).text;
    EXPECT_EQ(Get(call, "/all/good").text, "good\n");
    EXPECT_EQ(Get(call, "/report.html").status, 404);
    EXPECT_EQ(Get(call, "/all/etc/passwd").status, 404);
    EXPECT_EQ(Get(call, "/all/..%2F..%2Fetc%2Fpasswd").status, 400);
    EXPECT_EQ(LeftOut(call, "not a regular file"), session.empty() ? 5U : 4U)
        << Receipt(call)["files"];
    EXPECT_EQ(LeftOut(call, "MiB together"), 1U);
    EXPECT_EQ(LeftOut(call, "control characters"), 2U);
  }
  EXPECT_EQ(Verify().exit, 0);
}

TEST_F(Exports, AHundredThousandFilesAreBounded) {
  Start();
  const HttpAnswer answer =
      Call("once", "mkdir all; cd all; seq 100000 | xargs touch; echo x > ../report.html");
  ASSERT_EQ(answer.Outcome(), "success") << answer.text;
  const std::string call = answer.At("call_id");
  EXPECT_EQ(Receipt(call)["files"]["exported"].size(), 64U);
  EXPECT_GT(LeftOut(call, "more than 64 files"), 1000U) << Receipt(call)["files"]["left_out"];
  EXPECT_EQ(LeftOut(call, "too many names"), 1U);
  EXPECT_EQ(Get(call, "/report.html").text, "x\n") << "named first, so it is among them";
}

// A process in the background of the same session swaps the file, without end, while calls export it.
TEST_F(Exports, AFileThatIsSwappedMeanwhileIsOneOrTheOther) {
  Start();
  const std::string session = daemon_.NewSession(daemon_.key());
  const std::string processes = "/v1/sessions/" + session + "/processes";
  const Json swapper = {
      {"tool", "kept"},
      {"args",
       {{"command",
         "mkdir -p all; exec python3 -c '\n"
         "import os\n"
         "while True:\n"
         "  os.symlink(\"/etc/passwd\", \"l\"); os.rename(\"l\", \"all/target\")\n"
         "  with open(\"f\", \"w\") as f: f.write(\"ours\\n\")\n"
         "  os.rename(\"f\", \"all/target\")\n"
         "  open(\"began\", \"w\").close()\n'"}}}};
  const HttpAnswer began = daemon_.Ask("POST", processes, daemon_.key(), swapper.dump());
  ASSERT_EQ(began.status, 201) << began.text;
  ASSERT_TRUE(
      WaitUntil([&] { return Exists(daemon_.Workspace(session) + "/began"); }, Seconds(60)));
  for (int i = 0; i < 15; ++i) {
    const HttpAnswer answer = Call("kept", "echo " + std::to_string(i), session);
    ASSERT_EQ(answer.Outcome(), "success") << answer.text;
    const std::string call = answer.At("call_id");
    const Json exported = Receipt(call)["files"]["exported"];
    if (!exported.empty()) {
      EXPECT_EQ(PathsIn(exported), Strings{"all/target"});
      EXPECT_EQ(Get(call, "/all/target").text, "ours\n");
    }
  }
  EXPECT_EQ(
      daemon_.Ask("DELETE", processes + "/" + began.At("process_id"), daemon_.key()).status / 100,
      2);
}

TEST_F(Exports, AnAlteredFileIsNoticed) {
  Start();
  const std::string good = Call("once", "echo good > report.html").At("call_id");
  const std::string altered = Call("once", "echo honest > report.html").At("call_id");
  const std::string added = Call("once", "echo added > report.html").At("call_id");
  const std::string gone = Call("once", "echo gone > report.html").At("call_id");
  EXPECT_EQ(Get(altered, "/report.html").text, "honest\n") << "the control";
  EXPECT_EQ(Verify().exit, 0) << "the control: " << Verify().Describe();
  Sql("UPDATE call_files SET body = CAST('forged' AS BLOB) WHERE call_id = '" + altered +
      "'; INSERT INTO call_files SELECT tenant, call_id, 'planted.html', piece, body FROM "
      "call_files WHERE call_id = '" +
      added + "'; DELETE FROM call_files WHERE call_id = '" + gone + "'");
  const HttpAnswer forged = Get(altered, "/report.html");
  EXPECT_EQ(forged.status, 500) << forged.text;
  EXPECT_EQ(forged.At("code"), "record.broken");
  EXPECT_EQ(Get(added, "/planted.html").status, 404) << "no receipt names it";
  EXPECT_EQ(PathsIn(Get(added).body["files"]), Strings{"report.html"});
  EXPECT_EQ(Get(gone, "/report.html").At("code"), "file.pruned");
  EXPECT_EQ(Get(gone).At("code"), "file.pruned");
  EXPECT_EQ(Get(good, "/report.html").text, "good\n");
  const RunResult verified = Verify();
  EXPECT_EQ(verified.exit, 1) << verified.Describe();
  EXPECT_TRUE(Contains(verified.out, "the stored file report.html of call " + altered))
      << verified.out;
  EXPECT_TRUE(Contains(verified.out, "the stored file planted.html of call " + added))
      << verified.out;
  EXPECT_TRUE(Contains(verified.out, "a file that call " + gone + " exported is gone"))
      << verified.out;
  EXPECT_FALSE(Contains(verified.out, good)) << verified.out;
}

TEST_F(Exports, TheOldestGoWhenTheTenantKeepsTooMuch) {
  Start("[storage]\ntenant = \"16MiB\"\n");
  std::vector<std::string> calls;
  for (int i = 0; i < 6; ++i) {
    // A call is refused while the tenant keeps too much, until the oldest are removed.
    HttpAnswer answer;
    const std::string command = "head -c 5000000 /dev/zero > report.html; : " + std::to_string(i);
    ASSERT_TRUE(WaitUntil(
        [&] {
          answer = Call("once", command);
          return answer.Outcome() == "success";
        },
        Seconds(60)))
        << answer.text;
    calls.push_back(answer.At("call_id"));
  }
  ASSERT_TRUE(
      WaitUntil([&] { return Get(calls.front()).At("code") == "file.pruned"; }, Seconds(60)))
      << Get(calls.front()).text;
  EXPECT_EQ(Get(calls.front(), "/report.html").At("code"), "file.pruned");
  EXPECT_EQ(Receipt(calls.front())["files"]["exported"].size(), 1U) << "the receipt still names it";
  EXPECT_EQ(Get(calls.back(), "/report.html").text.size(), 5'000'000U) << "the newest stays";
  EXPECT_TRUE(Contains(ReadFile(daemon_.state() + "/log/records").value_or(""), "results.pruned"));
  const RunResult verified = Verify();
  EXPECT_EQ(verified.exit, 0) << verified.Describe();
}

}  // namespace
}  // namespace coffer::test
