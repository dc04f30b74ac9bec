// SPDX-License-Identifier: Apache-2.0
//
// Somebody edits the database behind our back, with SQLite's own library: whatever is shown of a call, and whatever call
// is made up or removed, `audit verify` names it. The control of all of them is the store that nobody touched.
#include "audit/log/verify_store.h"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "audit/seal.h"
#include "audit/sealed_call.h"
#include "base/hash.h"
#include "base/json.h"
#include "call/ladder.h"
#include "tests/support/run.h"

namespace coffer::audit {
namespace {

namespace fs = std::filesystem;

// A state directory with everything that writes to it.
struct Opened {
  Opened(const std::string& directory, const std::function<Nanos()>& clock) {
    store::StoreOptions options;
    options.clock = clock;
    options.fsync = false;
    Result<store::Store> opened = store::Store::Open(directory, options);
    EXPECT_TRUE(opened.ok()) << opened.error().message;
    store = std::make_unique<store::Store>(std::move(opened).value());
    EXPECT_TRUE(store::EnsureTenant(*store, store::TenantId::Local()).ok());
    Result<Log> made = Log::Open(directory + "/log");
    EXPECT_TRUE(made.ok()) << made.error().message;
    log = std::make_unique<Log>(std::move(made).value());
    recorder = std::make_unique<call::Recorder>(*store, *log);
    EXPECT_TRUE(recorder->Settle(store->recovered()).ok());
  }
  std::unique_ptr<store::Store> store;
  std::unique_ptr<Log> log;
  std::unique_ptr<call::Recorder> recorder;
};

class VerifyStore : public ::testing::Test {
 protected:
  VerifyStore() : shelf_({}) {
    EXPECT_TRUE(shelf_.Reload().ok());
    Opened opened = Open(Original());
    // Two that ran, one that is refused after admission, one before.
    ran_ = Run(opened, "alice", "four\n");
    other_ = Run(opened, "bob", "five\n");
    refused_ = Ask(opened, "mallory", "python", R"({"code":7})");
    unknown_ = Ask(opened, "mallory", "no-such-tool", "{}");
  }
  std::string Original() const { return dir_ / "state"; }
  std::function<Nanos()> Clock() {
    return [this] {
      later_ += each_look_;
      return WallTime() + later_;
    };
  }
  Opened Open(const std::string& directory) { return Opened(directory, Clock()); }
  call::Ladder LadderOf(Opened& opened) {
    call::LadderOptions options;
    options.sessions = dir_ / "sessions";
    return call::Ladder(*opened.recorder, shelf_, options);
  }
  static call::ToolRequest Request(const std::string& agent, const std::string& tool,
                                   const std::string& args) {
    call::ToolRequest request;
    request.identity.agent = agent;
    request.identity.user = "uid:1000";
    request.identity.tool = tool;
    request.args_json = args;
    return request;
  }
  // With the text of a file that the call exports; "": none.
  std::string Run(Opened& opened, const std::string& agent, const std::string& prints,
                  const std::string& exports = "") {
    call::Ladder ladder = LadderOf(opened);
    auto climbed = ladder.Climb(Request(agent, "python", R"({"code":"1"})"));
    auto* const ready = std::get_if<call::ReadyCall>(&climbed);
    EXPECT_NE(ready, nullptr);
    call::Collected collected;
    collected.stdout_text = prints;
    Receipt receipt;
    receipt.outcome = "error";
    receipt.error_class = "limit.wall";
    receipt.error_message = "it ran for too long";
    receipt.started_at = receipt.finished_at = opened.store->Now();
    receipt.exit_code = 3;
    receipt.exit_signal = 9;
    receipt.output_bytes = prints.size();
    receipt.limits = {{"cpu", {10, 7, "ns", false}}};
    receipt.denials = {{"isolation", "syscall", "unshare(0)", "seccomp.default", "", "", 3}};
    std::vector<std::string> files;
    if (!exports.empty()) {
      receipt.exported = {{"report.txt", exports.size(), HashOf(exports)}};
      files = {exports};
    }
    collected.report = call::RunReport{0, std::nullopt, receipt, files};
    return ladder.Descend(*ready, std::move(collected)).call_id;
  }
  std::string Ask(Opened& opened, const std::string& agent, const std::string& tool,
                  const std::string& args) {
    call::Ladder ladder = LadderOf(opened);
    auto climbed = ladder.Climb(Request(agent, tool, args));
    auto* const reply = std::get_if<call::ToolReply>(&climbed);
    EXPECT_NE(reply, nullptr);
    return reply == nullptr ? "" : reply->call_id;
  }
  static LogVerdict Verify(Opened& opened, uint64_t* compared = nullptr) {
    const std::string log = opened.store->directory() + "/log";
    StoreCheck check(*opened.store, log);
    VerifyOptions options;
    options.on_record = [&](const LeafFacts& facts) {
      check.Note(facts);
      return std::optional<LogFinding>();
    };
    Result<LogVerdict> verdict = VerifyLog(log, options);
    EXPECT_TRUE(verdict.ok());
    const Status finished = check.Finish(*verdict);
    EXPECT_TRUE(finished.ok()) << finished.error().message;
    if (compared != nullptr) {
      *compared = check.compared();
    }
    return std::move(verdict).value();
  }
  // Past every rule of ours: constraints are what a forger switches off first.
  static void Edit(const std::string& directory, const std::string& sql) {
    sqlite3* db = nullptr;
    ASSERT_EQ(::sqlite3_open((directory + "/coffer.db").c_str(), &db), SQLITE_OK);
    char* problem = nullptr;
    ::sqlite3_exec(db, ("PRAGMA ignore_check_constraints = ON;" + sql).c_str(), nullptr, nullptr,
                   &problem);
    EXPECT_EQ(problem, nullptr) << problem << ": " << sql;
    EXPECT_GT(::sqlite3_total_changes(db), 0) << "it changed nothing: " << sql;
    ::sqlite3_free(problem);
    ::sqlite3_close(db);
  }
  // A copy of the state directory, edited and verified.
  LogVerdict VerifyEdited(const std::string& sql) {
    const std::string copy = dir_ / ("copy" + std::to_string(++copies_));
    fs::copy(Original(), copy, fs::copy_options::recursive);
    Edit(copy, sql);
    Opened opened = Open(copy);
    return Verify(opened);
  }
  // The codes that the verifier in Python has, without a daemon.
  static test::Strings VerifyInPython(const std::string& directory) {
    const char* const source = std::getenv("COFFER_SOURCE");
    EXPECT_NE(source, nullptr) << "COFFER_SOURCE must be the checkout";
    const test::RunResult said = test::RunProgram(
        {"python3", std::string(source == nullptr ? "." : source) + "/sdk/python/coffer_verify.py",
         "store", directory, "--json"});
    const Result<Json> verdict = ParseJson(said.out);
    EXPECT_TRUE(verdict.ok()) << said.Describe();
    test::Strings codes;
    for (const Json& finding : verdict.ok() ? verdict->at("findings") : Json::array()) {
      codes.push_back(finding.at("code"));
    }
    return codes;
  }
  // How often the log of the original has an event of this name.
  size_t Events(const std::string& name) const {
    size_t found = 0;
    for (const std::string& line : test::Lines(*test::ReadFile(Original() + "/log/records"))) {
      found += test::Contains(line, "\"" + name + "\"") ? 1 : 0;
    }
    return found;
  }
  // As a crash would leave the row, and as if the store had never had the end of the call.
  static std::string Reopened(const std::string& id, const std::string& state,
                              const std::string& change = "") {
    std::string sql =
        "UPDATE calls SET state = '" + state +
        "', finished_at = NULL, outcome = NULL, error_class = NULL, error_message = NULL, "
        "exit_code = NULL, exit_signal = NULL, cpu = 0, bytes_out = 0, denials = 0, approval = '', "
        "log_index = NULL" +
        (change.empty() ? "" : ", " + change) + " WHERE id = '" + id + "';";
    for (const char* table : {"documents", "results", "transcripts"}) {
      sql += std::string("DELETE FROM ") + table + " WHERE call_id = '" + id + "'" +
             (table == std::string("documents") ? " AND kind = 'receipt';" : ";");
    }
    return sql;
  }
  static std::optional<SealedCall> Sealed(Opened& opened, const std::string& id) {
    const auto row = store::FindCall(*opened.store, store::TenantId::Local(), id);
    EXPECT_TRUE(row.ok() && *row);
    if (!row.ok() || !*row) {
      return std::nullopt;
    }
    Result<SealedCall> sealed = opened.recorder->ReadSealed(**row);
    EXPECT_TRUE(sealed.ok());
    return sealed.ok() ? std::optional(std::move(sealed).value()) : std::nullopt;
  }
  static std::string Notes(const LogVerdict& verdict) {
    std::string text;
    for (const LogFinding& note : verdict.notes) {
      text += note.code + ": " + note.message + "\n";
    }
    return text;
  }
  static bool Names(const LogVerdict& verdict, const std::string& code, const std::string& call) {
    for (const LogFinding& finding : verdict.findings) {
      if (finding.code == code && test::Contains(finding.message, call)) {
        return true;
      }
    }
    return false;
  }
  static std::string Said(const LogVerdict& verdict) {
    std::string text;
    for (const LogFinding& finding : verdict.findings) {
      text += finding.code + ": " + finding.message + "\n";
    }
    return text;
  }

  test::TempDir dir_;
  Nanos later_{0};
  Nanos each_look_{0};  // passes whenever the clock is looked at
  int copies_ = 0;
  call::ToolShelf shelf_;
  std::string ran_, other_, refused_, unknown_;
};

TEST_F(VerifyStore, WhatNobodyTouchedIsGood) {
  Opened opened = Open(Original());
  uint64_t compared = 0;
  const LogVerdict verdict = Verify(opened, &compared);
  EXPECT_TRUE(verdict.ok()) << Said(verdict);
  EXPECT_EQ(Notes(verdict), "");
  EXPECT_EQ(compared, 4U);
  for (const std::string& id : {ran_, other_, refused_, unknown_}) {
    const auto row = store::FindCall(*opened.store, store::TenantId::Local(), id);
    ASSERT_TRUE(row.ok() && *row);
    const Result<SealedCall> sealed = opened.recorder->ReadSealed(**row);
    ASSERT_TRUE(sealed.ok());
    EXPECT_EQ(sealed->state, SealState::kGood) << sealed->problem;
  }
}

// Lists search indexes: a row that one of them leaves out is verified, and in no list of that kind.
TEST_F(VerifyStore, ACallThatAnIndexLeavesOutIsFound) {
  for (const char* index : {"calls_by_outcome", "calls_by_tool", "calls_by_log"}) {
    const std::string name = index;
    const LogVerdict verdict = VerifyEdited(
        "ATTACH ':memory:' AS aside;"
        "CREATE TABLE aside.hidden AS SELECT * FROM calls WHERE id = '" +
        refused_ +
        "';"
        "CREATE TABLE aside.entry AS SELECT * FROM sqlite_schema WHERE name = '" +
        name +
        "';"
        "DELETE FROM calls WHERE id = '" +
        refused_ +
        "';"
        "PRAGMA writable_schema = ON;"
        "DELETE FROM sqlite_schema WHERE name = '" +
        name +
        "';"
        "PRAGMA writable_schema = RESET;"
        "INSERT INTO calls SELECT * FROM aside.hidden;"
        "PRAGMA writable_schema = ON;"
        "INSERT INTO sqlite_schema SELECT * FROM aside.entry;"
        "PRAGMA writable_schema = RESET");
    EXPECT_TRUE(Names(verdict, "store.index", name)) << Said(verdict);
  }
}

TEST_F(VerifyStore, ATenantThatIsGoneIsFound) {
  const LogVerdict verdict =
      VerifyEdited("UPDATE calls SET tenant = 'acme' WHERE id = '" + refused_ + "'");
  EXPECT_TRUE(Names(verdict, "store.tenant", "acme")) << Said(verdict);
}

// A view in the place of a table shows what its maker likes, and a trigger changes what is written.
TEST_F(VerifyStore, ASchemaThatIsNotOursIsFound) {
  for (const auto& [sql, object] : std::map<std::string, std::string>{
           {"CREATE TRIGGER hide AFTER INSERT ON calls BEGIN DELETE FROM calls WHERE id = NEW.id; "
            "END",
            "trigger hide"},
           {"PRAGMA writable_schema = ON; INSERT INTO sqlite_schema VALUES ('trigger', "
            "'sqlite_hide', "
            "'switches', 0, 'CREATE TRIGGER sqlite_hide AFTER INSERT ON switches BEGIN DELETE FROM "
            "switches; END'); PRAGMA writable_schema = RESET",
            "trigger sqlite_hide"},
           {"CREATE VIEW extra AS SELECT 1", "view extra"},
           {"DROP INDEX calls_by_agent", "index calls_by_agent"},
           {"DROP INDEX calls_by_agent; CREATE INDEX calls_by_agent ON calls (tenant, agent, id) "
            "WHERE agent <> 'mallory'",
            "index calls_by_agent"}}) {
    const LogVerdict verdict = VerifyEdited("UPDATE calls SET waiting = waiting;" + sql);
    EXPECT_TRUE(Names(verdict, "store.schema", object)) << sql << Said(verdict);
  }
}

// Every column of a row is one that somebody is shown, and then an edit is found, or stands in the second list with its
// reason. A new column must go into one of them.
TEST_F(VerifyStore, EveryColumnThatIsShownIsCompared) {
  const std::map<std::string, std::string> shown = {{"id", "'0190-made-up'"},
                                                    {"tenant", "'acme'"},
                                                    {"state", "'unknown'"},
                                                    {"parent_id", "'p'"},
                                                    {"session_id", "'s'"},
                                                    {"agent", "'mallory'"},
                                                    {"user", "'uid:0'"},
                                                    {"reason", "'it was ordered'"},
                                                    {"tool", "'bash'"},
                                                    {"requested_at", "requested_at - 1000000"},
                                                    {"tool_version", "'9'"},
                                                    {"manifest_hash", "'sha256:0'"},
                                                    {"envelope_id", "NULL"},
                                                    {"effect", "'read-only'"},
                                                    {"started_at", "started_at + 1000000"},
                                                    {"finished_at", "finished_at + 1000000"},
                                                    {"outcome", "'success'"},
                                                    {"error_class", "NULL"},
                                                    {"error_message", "'it is fine'"},
                                                    {"exit_code", "0"},
                                                    {"exit_signal", "NULL"},
                                                    {"cpu", "cpu + 1"},
                                                    {"bytes_out", "0"},
                                                    {"trace_id", "'t'"},
                                                    {"denials", "0"},
                                                    {"approval", "'approved'"},
                                                    {"log_index", "log_index + 1"}};
  const std::set<std::string> not_shown = {
      "owner",           "supervisor_pid",  "supervisor_start",
      "supervisor_boot", "cleanup",          // of processes
      "args_hash",       "idempotency_key",  // keyed; they decide about retries only
      "depth",           "decided_at",      "waiting"};
  sqlite3* db = nullptr;
  ASSERT_EQ(::sqlite3_open((Original() + "/coffer.db").c_str(), &db), SQLITE_OK);
  sqlite3_stmt* columns = nullptr;
  ASSERT_EQ(::sqlite3_prepare_v2(db, "SELECT name FROM pragma_table_info('calls')", -1, &columns,
                                 nullptr),
            SQLITE_OK);
  size_t seen = 0;
  while (::sqlite3_step(columns) == SQLITE_ROW) {
    const std::string name = reinterpret_cast<const char*>(::sqlite3_column_text(columns, 0));
    EXPECT_NE(shown.contains(name), not_shown.contains(name)) << name;
    ++seen;
  }
  ::sqlite3_finalize(columns);
  ::sqlite3_close(db);
  EXPECT_EQ(seen, shown.size() + not_shown.size());
  for (const auto& [column, value] : shown) {
    const LogVerdict verdict =
        VerifyEdited("UPDATE calls SET " + column + " = " + value + " WHERE id = '" + ran_ + "'");
    const bool moved = column == "id" || column == "tenant" || column == "log_index";
    EXPECT_TRUE(Names(verdict, moved ? "store.unlogged" : "store.row", column == "id" ? "" : ran_))
        << column << "\n"
        << Said(verdict);
  }
}

TEST_F(VerifyStore, ADenialMadeASuccessIsFound) {
  for (const std::string& id : {refused_, unknown_}) {
    const LogVerdict verdict = VerifyEdited(
        "UPDATE calls SET outcome = 'success', agent = 'alice', error_class = NULL, "
        "error_message = NULL, denials = 0, state = 'finished', started_at = "
        "requested_at, exit_code = 0 WHERE id = '" +
        id + "'");
    EXPECT_TRUE(Names(verdict, "store.row", id)) << Said(verdict);
  }
}

TEST_F(VerifyStore, ACallThatWasMadeUpIsFound) {
  const std::string like = "INSERT INTO calls SELECT * FROM made; DROP TABLE made;";
  const auto copy = [&](const std::string& change) {
    return "CREATE TABLE made AS SELECT * FROM calls WHERE id = '" + ran_ +
           "'; UPDATE made SET id = 'made-up'" + change + ";" + like +
           "INSERT INTO documents SELECT tenant, 'made-up', kind, body FROM documents WHERE "
           "call_id = '" +
           ran_ + "';";
  };
  for (const char* change :
       {"", ", log_index = NULL", ", log_index = 1000000", ", log_index = -5",
        ", finished_at = 9000000000000000000", ", finished_at = 1, requested_at = 1",
        ", cleanup = 1", ", tenant = 'acme', log_index = NULL"}) {
    const LogVerdict verdict = VerifyEdited(copy(change));
    EXPECT_TRUE(Names(verdict, "store.unlogged", "made-up") ||
                Names(verdict, "store.row", "made-up"))
        << change << "\n"
        << Said(verdict);
  }
}

// Recovery ends calls of dead processes and seals that. It must not seal what somebody wrote into a row.
TEST_F(VerifyStore, RecoverySealsNothingThatWasMadeUp) {
  const LogVerdict verdict = VerifyEdited(
      "CREATE TABLE made AS SELECT * FROM calls WHERE id = '" + ran_ +
      "'; UPDATE made SET id = 'made-up', cleanup = 1, log_index = NULL, outcome = 'success';"
      "INSERT INTO calls SELECT * FROM made; DROP TABLE made;");
  EXPECT_TRUE(Names(verdict, "store.unlogged", "made-up")) << Said(verdict);
  EXPECT_EQ(verdict.records, 6U) << "nothing was added to the log";
}

// The ends of calls are taken out of the database, something of them is changed, and recovery is left to seal that. The
// control is the next test: the same rows without a change are sealed.
TEST_F(VerifyStore, RecoveryDoesNotSealWhatTheLogSaysOtherwise) {
  const std::vector<std::pair<std::string, std::string>> all = {
      {refused_, "admitted"}, {unknown_, "admitted"}, {ran_, "started"}, {other_, "admitted"}};
  const std::vector<std::pair<std::string, std::string>> started = {{ran_, "started"}};
  struct Change {
    std::string sql;  // without the call, which comes last
    bool only_started;
  };
  std::vector<Change> changes;
  for (const char* who : {"agent = 'carol'", "user = 'uid:0'", "tool = 'bash'", "session_id = 's'",
                          "parent_id = 'p'", "trace_id = 't'"}) {
    changes.push_back({std::string("UPDATE calls SET ") + who + " WHERE id = ", false});
  }
  // Of a call that ran, the decision has the tool's part and a hash of the words that are shown.
  for (const char* what :
       {"reason = 'it was ordered'", "effect = 'read-only'", "tool_version = '9'",
        "manifest_hash = 'sha256:0'", "envelope_id = 'sha256:0'"}) {
    changes.push_back({std::string("UPDATE calls SET ") + what + " WHERE id = ", true});
  }
  changes.push_back({"UPDATE documents SET body = '[\"code=x\"]' WHERE call_id = ", true});
  for (const auto& [sql, only_started] : changes) {
    SCOPED_TRACE(sql);
    const std::string copy = dir_ / ("edited" + std::to_string(++copies_));
    fs::copy(Original(), copy, fs::copy_options::recursive);
    for (const auto& [id, state] : only_started ? started : all) {
      Edit(copy, Reopened(id, state, state == "admitted" ? "started_at = NULL" : "") + sql + "'" +
                     id + "'");
    }
    Opened opened = Open(copy);
    for (const auto& [id, state] : only_started ? started : all) {
      const std::optional<SealedCall> shown = Sealed(opened, id);
      ASSERT_TRUE(shown.has_value());
      EXPECT_EQ(shown->state, SealState::kBroken) << id << " " << state;
      EXPECT_EQ(shown->call.identity.agent, "");
    }
    EXPECT_EQ(test::ReadFile(copy + "/log/records"), test::ReadFile(Original() + "/log/records"))
        << "it was sealed";
    if (sql == changes.front().sql) {  // each verification waits for what may be under way
      const LogVerdict verdict = Verify(opened);
      for (const auto& [id, state] : all) {
        EXPECT_TRUE(Names(verdict, "store.unlogged", id)) << id << "\n" << Said(verdict);
      }
    }
  }
}

// What a crash between the log and the store leaves, or an attacker who takes the end away: the record still says how the
// call ended, and verification says that its receipt was lost.
TEST_F(VerifyStore, RecoveryTellsTheEndThatTheLogHas) {
  for (const auto& [id, state] : std::map<std::string, std::string>{{refused_, "admitted"},
                                                                    {unknown_, "admitted"},
                                                                    {ran_, "started"},
                                                                    {other_, "admitted"}}) {
    const std::string copy = dir_ / ("crashed" + std::to_string(++copies_));
    std::string before;
    {
      Opened opened = Open(Original());
      before = Sealed(opened, id)->call.error_class;
    }
    fs::copy(Original(), copy, fs::copy_options::recursive);
    const bool refused = id == refused_ || id == unknown_;
    // What recovery cannot know of a call that did not run, it does not say.
    const bool never = id == other_;
    Edit(copy, Reopened(id, state,
                        never     ? "started_at = NULL"
                        : refused ? "reason = 'forged'"
                                  : ""));
    Opened opened = Open(copy);
    const LogVerdict verdict = Verify(opened);
    EXPECT_TRUE(verdict.ok()) << Said(verdict);
    EXPECT_EQ(verdict.records, 7U);
    ASSERT_EQ(verdict.notes.size(), 1U) << Notes(verdict);
    EXPECT_EQ(verdict.notes[0].code, "store.lost") << Notes(verdict);
    EXPECT_TRUE(test::Contains(verdict.notes[0].message, id)) << Notes(verdict);
    const std::optional<SealedCall> shown = Sealed(opened, id);
    ASSERT_TRUE(shown.has_value());
    ASSERT_EQ(shown->state, SealState::kGood) << shown->problem;
    EXPECT_EQ(shown->call.outcome, refused ? store::Outcome::kDenied : store::Outcome::kUnknown);
    EXPECT_EQ(shown->call.identity.reason, "");
    if (refused) {
      EXPECT_EQ(shown->call.error_class, before);
    } else {
      EXPECT_TRUE(test::Contains(shown->call.error_message, "error, limit.wall"))
          << shown->call.error_message;
    }
  }
}

// Recovery of an earlier version sealed what a row said. Verification finds such a receipt by itself.
TEST_F(VerifyStore, ASecondReceiptThatTheLogContradictsIsFound) {
  struct Case {
    std::string id, agent, outcome, error_class, found;
  };
  for (const Case& one : {Case{refused_, "carol", "denied", "policy.args.schema", "agent"},
                          Case{refused_, "mallory", "error", "internal", "outcome"},
                          Case{refused_, "mallory", "denied", "policy.args.schema", ""}}) {
    const std::string copy = dir_ / ("sealed" + std::to_string(++copies_));
    fs::copy(Original(), copy, fs::copy_options::recursive);
    Edit(copy, Reopened(one.id, "refused",
                        "owner = -1, agent = '" + one.agent +
                            "', finished_at = requested_at, outcome = 'error'"));
    Opened opened = Open(copy);
    const auto row = store::FindCall(*opened.store, store::TenantId::Local(), one.id);
    ASSERT_TRUE(row.ok() && *row);
    Receipt receipt;
    receipt.identity = (*row)->identity;
    receipt.requested_at = receipt.finished_at = (*row)->requested_at;
    receipt.outcome = one.outcome;
    receipt.error_class = one.error_class;
    receipt.error_message = "coffer was killed";
    const Result<ReceiptBody> body = MakeBody(FormatReceipt(receipt));
    ASSERT_TRUE(body.ok());
    ReceiptRecord record;
    record.at = receipt.finished_at;
    record.identity = receipt.identity;
    record.outcome = receipt.outcome;
    record.error_class = receipt.error_class;
    record.recovered = true;
    record.body = body->hash;
    const Result<Appended> appended = opened.log->Append(record);
    ASSERT_TRUE(appended.ok());
    const Result<std::string> sealed = SealReceipt(*body, *appended, *opened.log);
    ASSERT_TRUE(sealed.ok());
    store::SettledEnd end;
    end.state = store::CallState::kRefused;
    end.outcome = *store::FindOutcome(one.outcome);
    end.error_class = one.error_class;
    end.error_message = receipt.error_message;
    end.finished_at = receipt.finished_at;
    ASSERT_TRUE(store::AddReceipt(*opened.store, store::TenantId::Local(), one.id, *sealed,
                                  appended->position.index, end)
                    .ok());
    const LogVerdict verdict = Verify(opened);
    if (one.found.empty()) {
      EXPECT_TRUE(verdict.ok()) << "the control\n" << Said(verdict);
      continue;
    }
    EXPECT_TRUE(Names(verdict, "store.recovered", one.id)) << Said(verdict);
    EXPECT_TRUE(Names(verdict, "store.recovered", ": " + one.found)) << Said(verdict);
    EXPECT_EQ(verdict.findings.size(), 1U) << Said(verdict);
  }
}

// A row that is only admitted is in no log: a crash may have left it, or it was made up. The receipt and the
// verification say that nothing but the store knows of it.
TEST_F(VerifyStore, WhatOnlyTheStoreKnowsIsTold) {
  const std::string id = "01890000-0000-7000-8000-00000000000a";
  const std::string copy = dir_ / "alone";
  fs::copy(Original(), copy, fs::copy_options::recursive);
  Edit(copy, "CREATE TABLE made AS SELECT * FROM calls WHERE id = '" + refused_ +
                 "'; UPDATE made SET id = '" + id +
                 "', agent = 'victim', tool = 'payments', reason = 'it was ordered', state = "
                 "'admitted', finished_at = NULL, outcome = NULL, error_class = NULL, "
                 "error_message = NULL, denials = 0, log_index = NULL;"
                 "INSERT INTO calls SELECT * FROM made; DROP TABLE made;");
  Opened opened = Open(copy);
  const LogVerdict verdict = Verify(opened);
  EXPECT_TRUE(verdict.ok()) << Said(verdict);
  ASSERT_EQ(verdict.notes.size(), 1U) << Notes(verdict);
  EXPECT_EQ(verdict.notes[0].code, "store.alone");
  EXPECT_TRUE(test::Contains(verdict.notes[0].message, id)) << Notes(verdict);
  const std::optional<SealedCall> shown = Sealed(opened, id);
  ASSERT_TRUE(shown.has_value());
  EXPECT_EQ(shown->state, SealState::kGood) << shown->problem;
  EXPECT_EQ(shown->call.outcome, store::Outcome::kError);
  EXPECT_TRUE(test::Contains(shown->call.error_message, "from the store alone"))
      << shown->call.error_message;
  EXPECT_EQ(shown->call.identity.reason, "");
}

TEST_F(VerifyStore, ResultsAndReceiptsAreThoseThatWereSealed) {
  const auto result_of = [](const std::string& id) {
    return "(SELECT body FROM results WHERE call_id = '" + id + "')";
  };
  struct Case {
    std::string sql, code;
  };
  const Case cases[] = {
      {"UPDATE results SET body = replace(body, 'four', 'nine') WHERE call_id = '" + ran_ + "'",
       "store.result"},
      {"UPDATE results SET body = " + result_of(other_) + " WHERE call_id = '" + ran_ + "'",
       "store.result"},
      {"DELETE FROM results WHERE call_id = '" + ran_ + "'", "store.result"},
      {"UPDATE documents SET body = replace(body, 'alice', 'admin') WHERE call_id = '" + ran_ +
           "' AND kind = 'receipt'",
       "store.receipt"},
      {"UPDATE documents SET body = (SELECT body FROM documents WHERE call_id = '" + other_ +
           "' AND kind = 'receipt') WHERE call_id = '" + ran_ + "' AND kind = 'receipt'",
       "store.receipt"},
      {"DELETE FROM documents WHERE kind = 'receipt' AND call_id = '" + ran_ + "'",
       "store.receipt"},
      {"UPDATE documents SET body = '[\"code=x\"]' WHERE kind = 'args' AND call_id = '" + ran_ +
           "'",
       "store.row"},
      {"DELETE FROM documents WHERE kind = 'args' AND call_id = '" + ran_ + "'", "store.row"},
      {"INSERT INTO results SELECT tenant, '" + unknown_ +
           "', body FROM results WHERE call_id = '" + ran_ + "'",
       "store.result"},
      {"DELETE FROM calls WHERE id = '" + ran_ + "'", "store.gone"},
      {"UPDATE transcripts SET body = replace(body, 'four', 'nine') WHERE call_id = '" + ran_ + "'",
       "store.transcript"},
      {"UPDATE transcripts SET body = (SELECT body FROM transcripts WHERE call_id = '" + other_ +
           "') WHERE call_id = '" + ran_ + "'",
       "store.transcript"},
      {"DELETE FROM transcripts WHERE call_id = '" + ran_ + "'", "store.transcript"},
      {"INSERT INTO transcripts SELECT tenant, '" + unknown_ +
           "', body FROM transcripts WHERE call_id = '" + ran_ + "'",
       "store.transcript"},
  };
  for (const Case& one : cases) {
    const LogVerdict verdict = VerifyEdited(one.sql);
    EXPECT_TRUE(Names(verdict, one.code, test::Contains(one.sql, unknown_) ? unknown_ : ran_))
        << one.sql << "\n"
        << Said(verdict);
  }
  // Two exchanged: both are named.
  const LogVerdict swapped = VerifyEdited(
      "CREATE TABLE kept AS SELECT * FROM results; DELETE FROM results;"
      "INSERT INTO results SELECT tenant, CASE call_id WHEN '" +
      ran_ + "' THEN '" + other_ + "' WHEN '" + other_ + "' THEN '" + ran_ +
      "' ELSE call_id END, body FROM kept; DROP TABLE kept;");
  EXPECT_TRUE(Names(swapped, "store.result", ran_)) << Said(swapped);
  EXPECT_TRUE(Names(swapped, "store.result", other_)) << Said(swapped);
}

// Transcripts go before their calls. The log says so first, so the rest of the record still verifies, and one that was taken
// out by hand is told from one that was pruned.
TEST_F(VerifyStore, TranscriptsThatWerePrunedAreCovered) {
  later_ = std::chrono::hours(24 * 31);
  std::string young;
  {
    Opened opened = Open(Original());
    young = Run(opened, "carol", "six\n");
    const Result<store::Pruned> pruned =
        opened.recorder->Prune(store::TenantId::Local(), store::Retention());
    ASSERT_TRUE(pruned.ok());
    EXPECT_EQ(pruned->transcripts, 2U) << "of the two calls that ran";
    EXPECT_EQ(pruned->calls, 0U);
    const LogVerdict verdict = Verify(opened);
    EXPECT_TRUE(verdict.ok()) << Said(verdict);
    for (const std::string& id : {ran_, young}) {
      const auto row = store::FindCall(*opened.store, store::TenantId::Local(), id);
      ASSERT_TRUE(row.ok() && *row);
      const Result<SealedCall> sealed = opened.recorder->ReadSealed(**row);
      ASSERT_TRUE(sealed.ok());
      EXPECT_EQ(sealed->state, SealState::kGood) << sealed->problem;
      EXPECT_EQ(sealed->transcript.has_value(), id == young);
    }
  }
  const LogVerdict taken = VerifyEdited("DELETE FROM transcripts WHERE call_id = '" + young + "'");
  EXPECT_TRUE(Names(taken, "store.transcript", young)) << Said(taken);
}

// Results and files go after a day, long before their calls and their transcripts. The log says so first.
TEST_F(VerifyStore, ResultsThatWerePrunedAreCovered) {
  std::string exported, young;
  const auto without = [](const std::string& table, const std::string& call) {
    return "DELETE FROM " + table + " WHERE call_id = '" + call + "'";
  };
  {
    Opened opened = Open(Original());
    exported = Run(opened, "dave", "six\n", "a report");
  }
  later_ = std::chrono::hours(25);
  // The control: as old, and taken out by hand.
  const LogVerdict result = VerifyEdited(without("results", ran_));
  EXPECT_TRUE(Names(result, "store.result", ran_)) << Said(result);
  EXPECT_EQ(result.findings.size(), 1U) << Said(result);
  const LogVerdict file = VerifyEdited(without("call_files", exported));
  EXPECT_TRUE(Names(file, "store.file", exported)) << Said(file);
  EXPECT_EQ(file.findings.size(), 1U) << Said(file);
  {
    Opened opened = Open(Original());
    young = Run(opened, "carol", "seven\n", "another");
    const Result<store::Pruned> pruned =
        opened.recorder->Prune(store::TenantId::Local(), store::Retention());
    ASSERT_TRUE(pruned.ok());
    EXPECT_EQ(pruned->results, 4U) << "of the four calls that were admitted";
    EXPECT_EQ(pruned->calls + pruned->transcripts, 0U);
    EXPECT_EQ(Events("results.expired"), 1U);
    const LogVerdict verdict = Verify(opened);
    EXPECT_TRUE(verdict.ok()) << Said(verdict);
    ASSERT_TRUE(opened.recorder->Prune(store::TenantId::Local(), store::Retention()).ok());
    EXPECT_EQ(Events("results.expired"), 1U) << "nothing more goes, so nothing more is said";
  }
  EXPECT_EQ(VerifyInPython(Original()), test::Strings{});
  // What the event does not cover: what is younger, and transcripts, which stay longer.
  for (const auto& [sql, code, call] :
       {std::tuple{without("results", young), "store.result", young},
        std::tuple{without("call_files", young), "store.file", young},
        std::tuple{without("transcripts", ran_), "store.transcript", ran_}}) {
    const LogVerdict verdict = VerifyEdited(sql);
    EXPECT_TRUE(Names(verdict, code, call)) << sql << "\n" << Said(verdict);
    EXPECT_EQ(verdict.findings.size(), 1U) << Said(verdict);
  }
  Edit(Original(), without("results", young));
  EXPECT_EQ(VerifyInPython(Original()), test::Strings{"store.result"});
}

// Earlier versions removed results by age and did not say so. The first pruning of this version does, once.
TEST_F(VerifyStore, TheFirstPruningCoversWhatEarlierVersionsRemoved) {
  later_ = std::chrono::hours(25);
  {
    Opened opened = Open(Original());
    ASSERT_TRUE(store::Prune(*opened.store, store::TenantId::Local(), {}).ok());
    EXPECT_TRUE(Names(Verify(opened), "store.result", ran_)) << "the control";
    ASSERT_TRUE(opened.recorder->Prune(store::TenantId::Local(), {}).ok());
    const LogVerdict verdict = Verify(opened);
    EXPECT_TRUE(verdict.ok()) << Said(verdict);
  }
  const std::string young = [&] {
    Opened opened = Open(Original());
    return Run(opened, "carol", "six\n");
  }();
  const LogVerdict taken = VerifyEdited("DELETE FROM results WHERE call_id = '" + young + "'");
  EXPECT_TRUE(Names(taken, "store.result", young)) << Said(taken);
}

// Time goes on between the event and the removal.
TEST_F(VerifyStore, NothingGoesThatItsEventDoesNotCover) {
  later_ = std::chrono::minutes(20);
  Opened opened = Open(Original());
  const std::string later = Run(opened, "carol", "six\n");
  later_ = std::chrono::hours(24);
  each_look_ = std::chrono::minutes(15);
  const Result<store::Pruned> pruned = opened.recorder->Prune(store::TenantId::Local(), {});
  ASSERT_TRUE(pruned.ok());
  EXPECT_EQ(pruned->results, 3U) << "not that of the later call";
  const LogVerdict verdict = Verify(opened);
  EXPECT_TRUE(verdict.ok()) << Said(verdict);
}

// A record is taken out of the log, whole batches from its end: the rows are left without a record.
TEST_F(VerifyStore, ARowWithoutItsRecordIsFound) {
  const std::string copy = dir_ / "cut";
  fs::copy(Original(), copy, fs::copy_options::recursive);
  const test::Strings lines = test::Lines(*test::ReadFile(copy + "/log/records"));
  std::string cut;
  for (size_t i = 0; i + 2 < lines.size(); ++i) {  // without the last receipt and its checkpoint
    cut += lines[i] + "\n";
  }
  dir_.Write("cut/log/records", cut, 0600);
  fs::remove(copy + "/log/tree");
  Opened opened = Open(copy);
  const LogVerdict verdict = Verify(opened);
  EXPECT_TRUE(Names(verdict, "store.unlogged", unknown_)) << Said(verdict);
  EXPECT_EQ(verdict.findings.size(), 1U) << Said(verdict);
}

// What a call was allowed is looked up by the hashes in its receipt.
TEST_F(VerifyStore, ManifestsAndEnvelopesAreThoseThatCallsName) {
  {
    Opened opened = Open(Original());
    EXPECT_TRUE(Verify(opened).ok()) << "NO-CONTROL: " << Said(Verify(opened));
  }
  for (const char* const column : {"manifest_hash", "envelope_id"}) {
    const std::string object =
        std::string(" WHERE hash = (SELECT ") + column + " FROM calls WHERE id = '" + ran_ + "')";
    for (const std::string& sql :
         {"DELETE FROM objects" + object, "UPDATE objects SET body = body || ' '" + object,
          "UPDATE objects SET hash = 'sha256:00'" + object,
          "UPDATE objects SET tenant = 'other'" + object}) {
      const LogVerdict verdict = VerifyEdited(sql);
      bool found = false;
      for (const LogFinding& finding : verdict.findings) {
        found = found || finding.code == "store.object";
      }
      EXPECT_TRUE(found) << sql << ": " << Said(verdict);
    }
  }
}

// What retention removed is covered by an event of the log, and by nothing else.
TEST_F(VerifyStore, OnlyWhatWasPrunedMayBeGone) {
  {
    Opened opened = Open(Original());
    later_ = std::chrono::hours(24 * 91);
    const std::string young = Run(opened, "alice", "later\n");
    const Result<store::Pruned> pruned =
        opened.recorder->Prune(store::TenantId::Local(), store::Retention());
    ASSERT_TRUE(pruned.ok());
    EXPECT_EQ(pruned->calls, 4U);
    uint64_t compared = 0;
    const LogVerdict verdict = Verify(opened, &compared);
    EXPECT_TRUE(verdict.ok()) << Said(verdict);
    EXPECT_EQ(compared, 1U);
    ran_ = young;
  }
  const LogVerdict verdict = VerifyEdited("DELETE FROM calls WHERE id = '" + ran_ + "'");
  EXPECT_TRUE(Names(verdict, "store.gone", ran_)) << Said(verdict);
}

// A call that seems to run: the log has its decision, or it was made up.
// A tenant that keeps too much loses its results, then its calls, before their time. The log covers both; the controls
// are the same rows removed by hand (ResultsAndReceiptsAreThoseThatWereSealed, OnlyWhatWasPrunedMayBeGone).
TEST_F(VerifyStore, WhatWasRemovedToMakeRoomIsCovered) {
  Opened opened = Open(Original());
  uint64_t gone = 0;
  for (int part = 0; part < 10; ++part) {
    const Result<uint64_t> now = opened.recorder->PruneToSize(store::TenantId::Local(), 1);
    ASSERT_TRUE(now.ok()) << now.error().message;
    const LogVerdict verdict = Verify(opened);
    EXPECT_TRUE(verdict.ok()) << Said(verdict);
    gone += *now;
    if (*now == 0) {
      break;
    }
  }
  EXPECT_GE(gone, 4U);
  const auto row = store::FindCall(*opened.store, store::TenantId::Local(), ran_);
  EXPECT_TRUE(row.ok() && !*row);
}

// As on a full disk: the log has the end of a call, and the store has not.
TEST_F(VerifyStore, AnEndThatIsNotYetInTheStoreIsNotGone) {
  Opened opened = Open(Original());
  const std::string call = Run(opened, "carol", "six\n");
  EXPECT_TRUE(Verify(opened).ok()) << "the control";
  Edit(Original(),
       "UPDATE calls SET state = 'started', finished_at = NULL, outcome = NULL, log_index = NULL "
       "WHERE id = '" +
           call + "'");
  const LogVerdict verdict = Verify(opened);
  EXPECT_TRUE(Names(verdict, "store.behind", call)) << Said(verdict);
  EXPECT_EQ(verdict.findings.size(), 1U) << Said(verdict);
}

TEST_F(VerifyStore, WhatRunsWasDecided) {
  Opened opened = Open(Original());
  call::Ladder ladder = LadderOf(opened);
  auto climbed = ladder.Climb(Request("alice", "python", R"({"code":"2"})"));
  auto* const ready = std::get_if<call::ReadyCall>(&climbed);
  ASSERT_NE(ready, nullptr);
  EXPECT_TRUE(Verify(opened).ok()) << "the control";
  Edit(Original(), "UPDATE calls SET agent = 'mallory' WHERE id = '" + ready->call_id() + "'");
  LogVerdict verdict = Verify(opened);
  EXPECT_TRUE(Names(verdict, "store.row", ready->call_id())) << Said(verdict);
  Edit(Original(),
       "UPDATE calls SET agent = 'alice', id = 'made-up' WHERE id = '" + ready->call_id() + "'");
  verdict = Verify(opened);
  EXPECT_TRUE(Names(verdict, "store.undecided", "made-up")) << Said(verdict);
}

// What is edited is not shown, whoever asks, and a retry is not answered with it.
TEST_F(VerifyStore, WhatIsEditedIsNotShown) {
  Opened opened = Open(Original());
  const auto state_of = [&](const std::string& id) {
    const auto row = store::FindCall(*opened.store, store::TenantId::Local(), id);
    return opened.recorder->ReadSealed(**row).value();
  };
  EXPECT_EQ(state_of(ran_).state, SealState::kGood) << "the control";
  Edit(Original(), "UPDATE calls SET agent = 'mallory' WHERE id = '" + ran_ + "'");
  EXPECT_EQ(state_of(ran_).state, SealState::kBroken);
  EXPECT_EQ(state_of(ran_).call.identity.agent, "");
  EXPECT_TRUE(test::Contains(state_of(ran_).problem, "agent"));
  Edit(Original(),
       "UPDATE results SET body = replace(body, 'five', 'nine') WHERE call_id = '" + other_ + "'");
  EXPECT_EQ(state_of(other_).state, SealState::kBroken);
  EXPECT_FALSE(state_of(other_).result.has_value());
}

}  // namespace
}  // namespace coffer::audit
