// SPDX-License-Identifier: Apache-2.0
//
// The record as an operator and an auditor meet it: calls are made, then listed, told, proven, tampered with and pruned.
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/mount.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>

#include "tests/support/run.h"

namespace coffer::test {
namespace {

class AuditTest : public ::testing::Test {
 protected:
  RunResult Coffer(Strings words, const RunOptions& options = {}) {
    words.insert(words.begin(), CofferPath());
    words.insert(words.end(), {"--state", state_});
    return RunProgram(words, options);
  }
  Json Ask(Strings words) {
    words.push_back("--json");
    const RunResult result = Coffer(std::move(words));
    EXPECT_EQ(result.exit, 0) << result.Describe();
    return Json::parse(result.out, nullptr, false);
  }
  std::string Call(const std::string& tool, const std::string& args, const Strings& more = {}) {
    Strings words = {"call", tool, "--args", args, "--json"};
    words.insert(words.end(), more.begin(), more.end());
    const RunResult result = Coffer(words);
    const Json answer = Json::parse(result.out, nullptr, false);
    EXPECT_TRUE(answer.is_object()) << result.Describe();
    return answer.is_object() ? answer.value("call_id", "") : "";
  }
  Strings Ids(const Strings& filters) {
    Strings words = {"audit", "list"};
    words.insert(words.end(), filters.begin(), filters.end());
    Strings ids;
    const Json answer = Ask(words);
    for (const Json& call : answer.at("calls")) {
      ids.push_back(call.at("call_id"));
    }
    return ids;
  }
  std::string Log() const { return state_ + "/log/records"; }

  TempDir dir_;
  std::string state_ = dir_ / "state";
};

// Denied is a call that was refused. A program that tried something and was told no has run.
TEST_F(AuditTest, AProgramThatProbesWasNotDenied) {
  const std::string probed = Call(
      "python", R"j({"code":"import ctypes; ctypes.CDLL(None).unshare(0x10000000); print(1)"})j");
  const std::string denied = Call("python", R"j({"code":7})j");
  EXPECT_EQ(Ids({"--denied"}), Strings{denied});
  EXPECT_EQ(Ids({"--probed"}), (Strings{denied, probed}))
      << "the control: something was refused in it";
}

TEST_F(AuditTest, PruneSaysWhatItKeptAndWhy) {
  (void)Call("python", R"j({"code":"print(1)"})j");
  const RunResult pruned = Coffer({"audit", "prune", "--older-than", "1ms"});
  EXPECT_EQ(pruned.exit, 0) << pruned.Describe();
  EXPECT_TRUE(Contains(pruned.out, "0 calls were forgotten")) << pruned.out;
  EXPECT_TRUE(Contains(pruned.out, "1 that are older than asked were kept")) << pruned.out;
  EXPECT_TRUE(Contains(pruned.out, "idempotency key")) << pruned.out;
  const RunResult nothing = Coffer({"audit", "prune", "--older-than", "10d"});
  EXPECT_FALSE(Contains(nothing.out, "kept:")) << "the control: " << nothing.out;
  EXPECT_EQ(Lines(nothing.out).size(), 1U) << nothing.out;
}

TEST_F(AuditTest, ACallCanBeFoundToldAndProven) {
  const std::string ran =
      Call("python", R"j({"code":"print(2 + 2)"})j", {"--receipt", dir_ / "receipt"});
  const std::string denied = Call("python", R"j({"code":7})j");
  const std::string nothing = Call("no-such-tool", "{}");

  EXPECT_EQ(Ids({}), (Strings{nothing, denied, ran})) << "newest first";
  EXPECT_EQ(Ids({"--outcome", "success"}), Strings{ran});
  EXPECT_EQ(Ids({"--tool", "python"}), (Strings{denied, ran}));
  EXPECT_EQ(Ids({"--class", "policy.tool"}), Strings{nothing});
  EXPECT_EQ(Ids({"--denied"}), (Strings{nothing, denied}));
  EXPECT_EQ(Ids({"--tenant", "somebody-else"}), Strings{});
  EXPECT_EQ(Ids({"--since", "1h"}).size(), 3U);
  EXPECT_EQ(Ids({"--until", "1h"}).size(), 0U);
  EXPECT_EQ(Ids({"--limit", "1"}), Strings{nothing});
  EXPECT_EQ(Ids({"--limit", "1", "--cursor", nothing}), Strings{denied});

  const RunResult story = Coffer({"audit", "show", ran});
  for (const char* part :
       {"asked", "believed", "came out", "success", "the ladder", "its seal is good"}) {
    EXPECT_TRUE(Contains(story.out, part)) << part << "\n" << story.Describe();
  }
  EXPECT_EQ(Ask({"audit", "show", denied}).at("seal"), "good");

  const RunResult key = Coffer({"audit", "key"});
  const std::string key_file = dir_.Write("key.pub", key.out);
  EXPECT_EQ(
      RunProgram({CofferPath(), "audit", "verify-receipt", dir_ / "receipt", "--key", key_file})
          .exit,
      0);
  const Json verdict = Ask({"audit", "verify"});
  EXPECT_EQ(verdict.at("ok"), true);
  EXPECT_EQ(verdict.at("records"), 4);  // one decision, three receipts
  EXPECT_EQ(verdict.at("calls_compared"), 3);
  EXPECT_EQ(verdict.at("key_from"), "beside the log");
  EXPECT_EQ(Ask({"audit", "verify", "--key", key_file}).at("key_from"), "given");
}

// The database is edited: verify names the call, and nobody is shown what was written.
TEST_F(AuditTest, AnEditedDatabaseIsFoundAndNotShown) {
  const std::string ran = Call("python", R"j({"code":"print('truth')"})j");
  const std::string denied = Call("python", R"j({"code":7})j");
  const auto edit = [&](const std::string& sql) {
    sqlite3* db = nullptr;
    ASSERT_EQ(::sqlite3_open((state_ + "/coffer.db").c_str(), &db), SQLITE_OK);
    ASSERT_EQ(::sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK) << sql;
    ::sqlite3_close(db);
  };
  ASSERT_EQ(Coffer({"audit", "verify"}).exit, 0) << "the control";
  ASSERT_EQ(Coffer({"audit", "list"}).exit, 0) << "the control";
  edit("UPDATE calls SET outcome = 'error', agent = 'mallory' WHERE id = '" + denied + "'");
  edit("UPDATE results SET body = replace(body, 'truth', 'forged') WHERE call_id = '" + ran + "'");
  const RunResult verdict = Coffer({"audit", "verify"});
  EXPECT_EQ(verdict.exit, 1);
  EXPECT_TRUE(Contains(verdict.out, "the row of call " + denied)) << verdict.Describe();
  EXPECT_TRUE(Contains(verdict.out, "outcome")) << verdict.Describe();
  EXPECT_TRUE(Contains(verdict.out, "the stored result of call " + ran)) << verdict.Describe();
  EXPECT_TRUE(Contains(verdict.out, "beside the log")) << "whose key was believed";
  const RunResult list = Coffer({"audit", "list"});
  EXPECT_EQ(list.exit, 1);
  EXPECT_TRUE(Contains(list.out, "BROKEN")) << list.Describe();
  EXPECT_FALSE(Contains(list.out, "mallory")) << list.Describe();
  for (const std::string& id : {ran, denied}) {
    const RunResult shown = Coffer({"audit", "show", id});
    EXPECT_EQ(shown.exit, 1) << shown.Describe();
    EXPECT_FALSE(Contains(shown.out, "mallory")) << shown.Describe();
    EXPECT_EQ(Coffer({"audit", "chain", id}).exit, 1);
  }
  const RunResult exported = Coffer({"audit", "export", "--format", "jsonl"});
  EXPECT_EQ(exported.exit, 1);
  EXPECT_EQ(exported.out, "") << "neither is sealed as it stands";
}

// The verifier in Python, which was written from docs/AUDIT_LOG.md, finds the same in an edited database.
TEST_F(AuditTest, BothVerifiersSayTheSameOfAStore) {
  const std::string ran = Call("python", R"j({"code":"print('truth')"})j");
  const std::string denied = Call("python", R"j({"code":7})j");
  const std::string other = Call("no-such-tool", "{}");
  const char* const source = ::getenv("COFFER_SOURCE");
  ASSERT_NE(source, nullptr) << "COFFER_SOURCE must be the checkout";
  const std::string python = std::string(source) + "/sdk/python/coffer_verify.py";
  const auto codes = [](const RunResult& result) {
    Strings found;
    const Json verdict = Json::parse(result.out, nullptr, false);
    if (!verdict.is_object()) {
      ADD_FAILURE() << result.Describe();
      return found;
    }
    for (const Json& finding : verdict.value("findings", Json::array())) {
      found.push_back(finding.at("code"));
    }
    std::sort(found.begin(), found.end());
    return found;
  };
  const auto both = [&](const std::string& sql) {
    const std::string copy = dir_ / "copy";
    std::filesystem::remove_all(copy);
    std::filesystem::copy(state_, copy, std::filesystem::copy_options::recursive);
    sqlite3* db = nullptr;
    EXPECT_EQ(::sqlite3_open((copy + "/coffer.db").c_str(), &db), SQLITE_OK);
    EXPECT_EQ(::sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK) << sql;
    ::sqlite3_close(db);
    const RunResult theirs = RunProgram({"python3", python, "store", copy, "--json"});
    const RunResult ours = RunProgram({CofferPath(), "audit", "verify", "--json", "--state", copy});
    EXPECT_EQ(codes(theirs), codes(ours)) << sql << theirs.Describe() << ours.Describe();
    EXPECT_EQ(theirs.exit, ours.exit) << sql << theirs.Describe();
    return codes(ours);
  };
  EXPECT_EQ(both("SELECT 1"), Strings{}) << "the control";
  const std::string of_ran = " WHERE id = '" + ran + "'";
  const std::string of_denied = " WHERE id = '" + denied + "'";
  for (const char* change : {"agent = 'x'",
                             "user = 'x'",
                             "tool = 'x'",
                             "outcome = 'error'",
                             "exit_code = 9",
                             "requested_at = requested_at + 5000000",
                             "started_at = started_at + 5000000",
                             "finished_at = finished_at + 5000000",
                             "cpu = cpu + 1",
                             "bytes_out = 0",
                             "denials = 3",
                             "effect = 'x'",
                             "tool_version = 'x'",
                             "manifest_hash = 'x'",
                             "envelope_id = 'x'",
                             "session_id = 'x'",
                             "parent_id = 'x'",
                             "trace_id = 'x'",
                             "approval = 'x'",
                             "error_class = 'x'",
                             "error_message = 'x'",
                             "exit_signal = 9"}) {
    EXPECT_EQ(both(std::string("UPDATE calls SET ") + change + of_ran), Strings{"store.row"})
        << change;
  }
  EXPECT_EQ(both("UPDATE results SET body = replace(body, 'truth', 'lies')"),
            Strings{"store.result"});
  EXPECT_EQ(both("DELETE FROM results WHERE call_id = '" + ran + "'"), Strings{"store.result"});
  EXPECT_EQ(both("DELETE FROM calls WHERE id = '" + other + "'"), Strings{"store.gone"});
  EXPECT_EQ(both("UPDATE documents SET body = replace(body, 'denied', 'success') WHERE kind = "
                 "'receipt' AND call_id = '" +
                 denied + "'"),
            Strings{"store.receipt"});
  EXPECT_EQ(both("UPDATE documents SET body = '[]' WHERE kind = 'args'"), Strings{"store.row"});
  for (const char* column : {"manifest_hash", "envelope_id"}) {
    const std::string object =
        std::string(" WHERE hash = (SELECT ") + column + " FROM calls" + of_ran + ")";
    EXPECT_EQ(both("DELETE FROM objects" + object), Strings{"store.object"});
    EXPECT_EQ(both("UPDATE objects SET body = body || ' '" + object), Strings{"store.object"});
  }
  EXPECT_EQ(both("ATTACH ':memory:' AS aside;"
                 "CREATE TABLE aside.hidden AS SELECT * FROM calls" +
                 of_denied +
                 ";"
                 "CREATE TABLE aside.entry AS SELECT * FROM sqlite_schema WHERE name = "
                 "'calls_by_outcome';"
                 "DELETE FROM calls" +
                 of_denied +
                 ";"
                 "PRAGMA writable_schema = ON;"
                 "DELETE FROM sqlite_schema WHERE name = 'calls_by_outcome';"
                 "PRAGMA writable_schema = RESET;"
                 "INSERT INTO calls SELECT * FROM aside.hidden;"
                 "PRAGMA writable_schema = ON;"
                 "INSERT INTO sqlite_schema SELECT * FROM aside.entry;"
                 "PRAGMA writable_schema = RESET"),
            Strings{"store.index"});
  EXPECT_EQ(both("UPDATE calls SET log_index = 99" + of_ran), (Strings{"store.unlogged"}));
  EXPECT_EQ(both("UPDATE calls SET id = 'made-up'" + of_ran),
            (Strings{"store.gone", "store.unlogged"}));
}

// A call's end is taken out of the database, and the next coffer recovers it: what is sealed then is what the log says, or
// it is found. Verified with ours, which recovers first, and then with the verifier in Python.
TEST_F(AuditTest, RecoveryMakesNoForgeryGood) {
  const std::string ran = Call("python", R"j({"code":"print('truth')"})j");
  const std::string denied = Call("python", R"j({"code":7})j");
  const char* const source = ::getenv("COFFER_SOURCE");
  ASSERT_NE(source, nullptr) << "COFFER_SOURCE must be the checkout";
  const auto codes = [](const RunResult& result, const char* list) {
    Strings found;
    const Json verdict = Json::parse(result.out, nullptr, false);
    EXPECT_TRUE(verdict.is_object()) << result.Describe();
    for (const Json& one : verdict.is_object() ? verdict.value(list, Json::array()) : Json()) {
      found.push_back(one.at("code"));
    }
    std::sort(found.begin(), found.end());
    return found;
  };
  struct Seen {
    Strings findings, notes;
    std::string list;
  };
  const auto after = [&](const std::string& sql) {
    const std::string copy = dir_ / "copy";
    std::filesystem::remove_all(copy);
    std::filesystem::copy(state_, copy, std::filesystem::copy_options::recursive);
    sqlite3* db = nullptr;
    EXPECT_EQ(::sqlite3_open((copy + "/coffer.db").c_str(), &db), SQLITE_OK);
    EXPECT_EQ(::sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK) << sql;
    ::sqlite3_close(db);
    const RunResult ours = RunProgram({CofferPath(), "audit", "verify", "--json", "--state", copy});
    const RunResult theirs = RunProgram(
        {"python3", std::string(source) + "/sdk/python/coffer_verify.py", "store", copy, "--json"});
    EXPECT_EQ(theirs.exit, ours.exit) << sql << theirs.Describe() << ours.Describe();
    const Seen seen = {codes(ours, "findings"), codes(ours, "notes"),
                       RunProgram({CofferPath(), "audit", "list", "--state", copy}).out};
    EXPECT_EQ(codes(theirs, "findings"), seen.findings) << sql << theirs.Describe();
    EXPECT_EQ(codes(theirs, "notes"), seen.notes) << sql << theirs.Describe();
    return seen;
  };
  const auto reopened = [](const std::string& id, const std::string& state,
                           const std::string& change) {
    return "UPDATE calls SET state = '" + state +
           "', finished_at = NULL, outcome = NULL, error_class = NULL, error_message = NULL, "
           "exit_code = NULL, exit_signal = NULL, cpu = 0, bytes_out = 0, denials = 0, approval = "
           "'', log_index = NULL" +
           change + " WHERE id = '" + id + "'; DELETE FROM documents WHERE kind = 'receipt' AND " +
           "call_id = '" + id + "'; DELETE FROM results WHERE call_id = '" + id +
           "'; DELETE FROM transcripts WHERE call_id = '" + id + "';";
  };
  EXPECT_EQ(after("SELECT 1").findings, Strings{}) << "the control";
  EXPECT_EQ(after("SELECT 1").notes, Strings{}) << "the control";
  for (const auto& [id, state] :
       std::map<std::string, std::string>{{denied, "admitted"}, {ran, "started"}}) {
    for (const char* change : {", agent = 'bob', reason = 'forged'", ", tool = 'bash'",
                               ", user = 'bob'", ", session_id = 'bob'"}) {
      const Seen seen = after(reopened(id, state, change));
      EXPECT_EQ(seen.findings, (Strings{"store.gone", "store.unlogged"})) << state << change;
      EXPECT_TRUE(Contains(seen.list, "BROKEN")) << seen.list;
      EXPECT_FALSE(Contains(seen.list, "bob")) << seen.list;
    }
    const Seen crashed = after(reopened(id, state, ""));
    EXPECT_EQ(crashed.findings, Strings{}) << "a crash may leave that";
    EXPECT_EQ(crashed.notes, Strings{"store.lost"});
    EXPECT_TRUE(Contains(crashed.list, id == denied ? "policy.args.schema" : "unknown"))
        << crashed.list;
  }
  const std::string made_up = "01890000-0000-7000-8000-00000000000a";
  const Seen alone = after(
      "CREATE TABLE made AS SELECT * FROM calls WHERE id = '" + denied +
      "'; UPDATE made SET id = '" + made_up +
      "', agent = 'victim', tool = 'payments', state = 'admitted', finished_at = NULL, outcome = "
      "NULL, error_class = NULL, error_message = NULL, denials = 0, log_index = NULL; INSERT INTO "
      "calls SELECT * FROM made; DROP TABLE made;");
  EXPECT_EQ(alone.findings, Strings{});
  EXPECT_EQ(alone.notes, Strings{"store.alone"});
}

// As root it would write where the link leads.
TEST_F(AuditTest, ALinkInTheStateDirectoryIsNotFollowed) {
  (void)Call("no-such-tool", "{}");
  const std::string elsewhere = dir_.MakeDir("elsewhere", 0700);
  ASSERT_EQ(::rename((state_ + "/log").c_str(), (dir_ / "kept").c_str()), 0);
  ASSERT_EQ(::symlink(elsewhere.c_str(), (state_ + "/log").c_str()), 0);
  for (const Strings& words : {Strings{"call", "no-such-tool"}, Strings{"audit", "list"},
                               Strings{"audit", "verify"}, Strings{"audit", "checkpoint"}}) {
    const RunResult refused = Coffer(words);
    EXPECT_EQ(refused.exit, 125) << refused.Describe();
    EXPECT_TRUE(Contains(refused.err, "symbolic link")) << refused.Describe();
    EXPECT_TRUE(Contains(refused.err, "hint")) << refused.Describe();
  }
  EXPECT_FALSE(Exists(elsewhere + "/records"));
  ASSERT_EQ(::unlink((state_ + "/log").c_str()), 0);
  ASSERT_EQ(::rename((dir_ / "kept").c_str(), (state_ + "/log").c_str()), 0);
  EXPECT_EQ(Coffer({"audit", "verify"}).exit, 0) << "the control";
}

// Every byte of a receipt is held by its seal: one of each kind is changed, and white space is not meaning.
TEST_F(AuditTest, AChangedReceiptIsNotGood) {
  (void)Call("python", R"j({"code":"print(1)"})j", {"--receipt", dir_ / "receipt"});
  const std::string key_file = dir_.Write("key.pub", Coffer({"audit", "key"}).out);
  const Json good = Json::parse(*ReadFile(dir_ / "receipt"));
  const auto verify = [&](const Json& receipt) {
    const std::string file = dir_.Write("changed", receipt.dump());
    return RunProgram({CofferPath(), "audit", "verify-receipt", file, "--key", key_file}).exit;
  };
  EXPECT_EQ(verify(good), 0) << "the control";
  for (const auto& [name, value] : good.items()) {
    Json changed = good;
    changed[name] = "changed";
    EXPECT_EQ(verify(changed), 1) << name;
    changed = good;
    changed.erase(name);
    EXPECT_EQ(verify(changed), 1) << name;
  }
  for (const char* pointer :
       {"/log/index", "/log/size", "/log/root", "/log/leaf", "/signature/value", "/exit/code",
        "/isolation/level", "/output/sha256"}) {
    Json changed = good;
    changed[Json::json_pointer(pointer)] = 99;
    EXPECT_EQ(verify(changed), 1) << pointer;
  }
}

TEST_F(AuditTest, AnEditedLogIsFoundAndNamed) {
  for (int i = 0; i < 3; ++i) {
    (void)Call("no-such-tool", "{}");
  }
  const std::string good = *ReadFile(Log());
  ASSERT_EQ(Coffer({"audit", "verify"}).exit, 0) << "the control";
  Strings lines = Lines(good);
  const auto write = [&](const Strings& changed) {
    std::ofstream file(Log(), std::ios::trunc);
    for (const std::string& line : changed) {
      file << line << "\n";
    }
  };
  std::vector<Strings> edits;
  for (size_t i = 0; i < lines.size(); ++i) {
    Strings flipped = lines;
    flipped[i][flipped[i].size() / 2] ^= 1;
    edits.push_back(flipped);
    Strings dropped = lines;
    dropped.erase(dropped.begin() + static_cast<long>(i));
    edits.push_back(dropped);
    Strings doubled = lines;
    doubled.insert(doubled.begin() + static_cast<long>(i), lines[i]);
    edits.push_back(doubled);
    if (i + 1 < lines.size()) {
      Strings swapped = lines;
      std::swap(swapped[i], swapped[i + 1]);
      edits.push_back(swapped);
    }
  }
  for (const Strings& edit : edits) {
    write(edit);
    const RunResult verdict = Coffer({"audit", "verify"});
    EXPECT_EQ(verdict.exit, 1) << verdict.Describe();
    EXPECT_TRUE(Contains(verdict.out, "NOT GOOD")) << verdict.Describe();
  }
  write(lines);
  EXPECT_EQ(Coffer({"audit", "verify"}).exit, 0) << "and it is good again";
}

// A log that was cut back to an earlier checkpoint is good in itself; the store and a kept checkpoint both miss the rest.
TEST_F(AuditTest, ACutLogIsMissedByTheStoreAndByAKeptCheckpoint) {
  (void)Call("no-such-tool", "{}");
  const std::string early = *ReadFile(Log());
  (void)Call("another-tool", "{}");
  const std::string kept = dir_.Write("checkpoint", Coffer({"audit", "checkpoint"}).out);
  EXPECT_EQ(Coffer({"audit", "verify", "--checkpoint", kept}).exit, 0) << "the control";
  std::ofstream(Log(), std::ios::trunc) << early;
  EXPECT_EQ(Coffer({"audit", "verify", "--log-only"}).exit, 0) << "by itself it looks good";
  EXPECT_EQ(Coffer({"audit", "verify", "--log-only", "--checkpoint", kept}).exit, 1);
  const RunResult store = Coffer({"audit", "verify"});
  EXPECT_EQ(store.exit, 1);
  EXPECT_TRUE(Contains(store.out, "store.unlogged")) << store.Describe();
}

TEST_F(AuditTest, ExportsAreOneDocumentALine) {
  (void)Call("python", R"j({"code":"print(1)"})j",
             {"--traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"});
  (void)Call("no-such-tool", "{}");
  for (const char* format : {"jsonl", "ocsf", "otlp"}) {
    const RunResult exported = Coffer({"audit", "export", "--format", format});
    EXPECT_EQ(exported.exit, 0) << exported.Describe();
    const Strings lines = Lines(exported.out);
    EXPECT_GE(lines.size(), 2U) << format;
    for (const std::string& line : lines) {
      EXPECT_FALSE(Json::parse(line, nullptr, false).is_discarded()) << line;
    }
  }
  EXPECT_TRUE(Contains(Coffer({"audit", "export", "--format", "otlp"}).out,
                       "0af7651916cd43dd8448eb211c80319c"));
  EXPECT_EQ(Coffer({"audit", "export", "--format", "xml"}).exit, 120);
  EXPECT_TRUE(
      Contains(Coffer({"audit", "chain", "0af7651916cd43dd8448eb211c80319c"}).out, "python"));
}

TEST_F(AuditTest, TailFollows) {
  (void)Call("no-such-tool", "{}");
  Background tail({CofferPath(), "audit", "tail", "--state", state_});
  ASSERT_TRUE(tail.WaitForOutput("no-such-tool"));
  (void)Call("a-later-tool", "{}");
  EXPECT_TRUE(tail.WaitForOutput("a-later-tool"));
  tail.Signal(SIGINT);
  (void)tail.Wait();
}

// Root only: a disk of 2 MiB in a mount namespace of the test's own. Nothing is lost, and it goes on when there is room.
TEST_F(AuditTest, AFullDiskRefusesCallsAndRecovers) {
  if (!IsRoot()) {
    GTEST_SKIP() << "only root can mount a small disk";
  }
  const std::string script = R"sh(
set -e
mount -t tmpfs -o size=2m small "$1"; cd "$1"
"$2" call no-such-tool --state "$1/s" >/dev/null 2>&1 || true
"$2" audit verify --state "$1/s" >/dev/null
dd if=/dev/zero of=filler bs=1k 2>/dev/null || true
code=0; "$2" call python --args '{"code":"print(1)"}' --state "$1/s" >out 2>&1 || code=$?
echo "full: $code"; cat out
rm filler
"$2" call python --args '{"code":"print(40 + 2)"}' --state "$1/s"
"$2" audit verify --state "$1/s"
)sh";
  const std::string disk = dir_.MakeDir("disk");
  const std::string file = dir_.Write("script.sh", script, 0755);
  const RunResult result =
      RunProgram({"unshare", "-m", "--propagation", "private", "sh", file, disk, CofferPath()});
  EXPECT_EQ(result.exit, 0) << result.Describe();
  EXPECT_TRUE(Contains(result.out, "full: 125")) << result.Describe();
  EXPECT_TRUE(Contains(result.out, "42\n")) << result.Describe();
  EXPECT_TRUE(Contains(result.out, "good: ")) << result.Describe();
}

// A database that is damaged beside a log that is not, and the other way round: nothing runs, the answer says what to do,
// and when the file is back everything goes on where it was.
TEST_F(AuditTest, ADamagedStoreOrLogRefusesCallsAndRecovers) {
  const std::string first = Call("python", R"j({"code":"print(1)"})j");
  const Strings database = {state_ + "/coffer.db", state_ + "/coffer.db-wal"};
  struct Damage {
    const char* what;
    Strings files;
    std::function<std::string(std::string)> done;
    const char* words;
    const char* hint;
  };
  const auto half = [](const std::string& text) { return text.substr(0, text.size() / 2); };
  const auto noise = [](std::string text) {
    std::fill(text.begin(), text.end(), 'x');
    return text;
  };
  const auto nothing = [](const std::string&) { return std::string(); };
  int round = 0;
  for (const Damage& damage :
       {Damage{"the log is cut", {Log()}, half, "log", "coffer audit verify"},
        Damage{"the log is noise", {Log()}, noise, "log", "coffer audit verify"},
        Damage{"the log is empty", {Log()}, nothing, "log", "coffer audit verify"},
        Damage{"the database is noise", database, noise, "damaged", "restore coffer.db"},
        Damage{"the database is empty", database, nothing, "coffer.db", "restore it"}}) {
    Strings good;
    for (const std::string& file : damage.files) {
      good.push_back(ReadFile(file).value_or(""));
      std::ofstream(file, std::ios::trunc) << damage.done(good.back());
    }
    const RunResult refused = Coffer({"call", "python", "--args", R"j({"code":"print('ran')"})j"});
    EXPECT_EQ(refused.exit, 125) << damage.what << refused.Describe();
    EXPECT_EQ(refused.out, "") << damage.what;
    EXPECT_TRUE(Contains(refused.err, damage.words)) << damage.what << refused.Describe();
    EXPECT_TRUE(Contains(refused.err, damage.hint)) << damage.what << refused.Describe();
    EXPECT_NE(Coffer({"audit", "verify"}).exit, 0) << damage.what;
    for (size_t i = 0; i < good.size(); ++i) {
      std::ofstream(damage.files[i], std::ios::trunc) << good[i];
    }
    const std::string again =
        Call("python", "{\"code\":\"print(" + std::to_string(++round) + ")\"}");
    EXPECT_FALSE(again.empty()) << damage.what;
    const RunResult verdict = Coffer({"audit", "verify"});
    EXPECT_EQ(verdict.exit, 0) << damage.what << verdict.Describe();
    const Strings ids = Ids({});
    EXPECT_EQ(ids.size(), 1U + static_cast<size_t>(round)) << damage.what;
    EXPECT_EQ(ids.back(), first) << damage.what;
  }
}

TEST_F(AuditTest, WrongUseIsRefusedWithAHint) {
  for (const Strings& words :
       {Strings{"audit", "nothing"}, Strings{"audit", "show"},
        Strings{"audit", "show", "no-such-call"}, Strings{"audit", "list", "--outcome", "great"},
        Strings{"audit", "list", "--since", "yesterday"},
        Strings{"audit", "verify-receipt", "/nonexistent"}, Strings{"audit", "chain", "nothing"},
        Strings{"audit", "prune"}}) {
    const RunResult result = Coffer(words);
    EXPECT_EQ(result.exit, 120) << result.Describe();
    EXPECT_TRUE(Contains(result.err, "coffer: ")) << result.Describe();
  }
}

}  // namespace
}  // namespace coffer::test
