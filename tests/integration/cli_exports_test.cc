// SPDX-License-Identifier: Apache-2.0
//
// The files that a call of the command line exported, without a daemon: what is fetched is what the call wrote and what its
// receipt names, and nothing else.
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "tests/support/host.h"

namespace coffer::test {
namespace {

constexpr const char* kManifest = R"([tool]
name = "report"
version = "1"
effect = "reversible"
[input]
schema = { type = "object", required = ["command"], properties = { command = { type = "string" } } }
[run]
runtime = "bash"
argv = ["bash", "-c", "--", "{command}"]
[files]
exports = ["report.txt", "plots/**"]
)";

class CliExports : public ::testing::Test {
 protected:
  CliExports() {
    dir_.MakeDir("home");
    dir_.MakeDir("tools");
    dir_.Write("tools/report.toml", kManifest, 0644);
    options_.environment = {
        {"HOME=" + (dir_ / "home"), "PATH=/usr/bin:/bin", "COFFER_STATE=" + (dir_ / "state")}};
  }
  RunResult Coffer(Strings words) {
    words.insert(words.begin(), CofferPath());
    return RunProgram(words, options_);
  }
  RunResult Call(const std::string& command, const Strings& flags = {}) {
    Strings words = {"call",    "report",      "--args", Json{{"command", command}}.dump(),
                     "--tools", dir_ / "tools"};
    words.insert(words.end(), flags.begin(), flags.end());
    return Coffer(words);
  }
  // The id of a call that made two files that are kept and one that is not.
  std::string Made() {
    const RunResult made =
        Call("mkdir plots; echo good > report.txt; printf 'a\\0b' > plots/one; echo no > other",
             {"--json"});
    EXPECT_EQ(made.exit, 0) << made.Describe();
    const Json answer = Json::parse(made.out, nullptr, false);
    return answer.is_object() ? answer.value("call_id", "") : "";
  }
  void Sql(const std::string& sql) {
    sqlite3* db = nullptr;
    ASSERT_EQ(::sqlite3_open((dir_ / "state/coffer.db").c_str(), &db), SQLITE_OK);
    ::sqlite3_busy_timeout(db, 30000);
    EXPECT_EQ(::sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK)
        << ::sqlite3_errmsg(db);
    ::sqlite3_close(db);
  }

  TempDir dir_;
  RunOptions options_;
};

TEST_F(CliExports, AreListedAndFetched) {
  const std::string call = Made();
  const Json all = Json::parse(Coffer({"audit", "files", call, "--json"}).out)["files"];
  ASSERT_EQ(all.size(), 2U) << all;
  EXPECT_EQ(all[0]["path"], "plots/one");
  EXPECT_EQ(all[1]["path"], "report.txt");
  EXPECT_EQ(all[1]["size"], 5);
  const RunResult text = Coffer({"audit", "files", call, "plots/"});
  EXPECT_TRUE(Contains(text.out, "plots/one") && !Contains(text.out, "report.txt")) << text.out;
  EXPECT_EQ(Coffer({"audit", "fetch", call, "report.txt"}).out, "good\n");
  EXPECT_EQ(Coffer({"audit", "fetch", call, "plots/one"}).out, std::string("a\0b", 3));

  const std::string to = dir_ / "fetched";
  const RunResult fetched = Coffer({"audit", "fetch", call, "report.txt", "--out", to, "--json"});
  EXPECT_EQ(fetched.exit, 0) << fetched.Describe();
  EXPECT_EQ(Json::parse(fetched.out)["sha256"], all[1]["sha256"]);
  EXPECT_EQ(ReadFile(to), "good\n");
  const RunResult again = Coffer({"audit", "fetch", call, "report.txt", "--out", to});
  EXPECT_EQ(again.exit, 120) << "nothing is overwritten\n" << again.Describe();
}

TEST_F(CliExports, TheCallSaysWhereItsFilesAre) {
  const RunResult made = Call("echo good > report.txt");
  EXPECT_EQ(made.exit, 0) << made.Describe();
  EXPECT_TRUE(Contains(made.err, "a file of this call is kept; `coffer audit files ")) << made.err;
  EXPECT_EQ(Call("true").err, "") << "the control";
}

TEST_F(CliExports, WhatIsNotThereIsSaid) {
  const std::string call = Made();
  for (const Strings& words : {Strings{"fetch", call, "other"}, Strings{"fetch", call, "../state"},
                               Strings{"fetch", call, ""}, Strings{"files", "no-such-call"},
                               Strings{"fetch", "no-such-call", "report.txt"}}) {
    Strings all = {"audit"};
    all.insert(all.end(), words.begin(), words.end());
    const RunResult result = Coffer(all);
    EXPECT_EQ(result.exit, 120) << result.Describe();
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(Lines(result.err).size(), 2U) << result.err;
  }
  Sql("DELETE FROM call_files");
  const RunResult forgotten = Coffer({"audit", "fetch", call, "report.txt"});
  EXPECT_EQ(forgotten.exit, 120) << forgotten.Describe();
  EXPECT_TRUE(Contains(forgotten.err, "no longer kept")) << forgotten.err;
}

TEST_F(CliExports, WhatWasChangedInTheStoreIsNotGivenOut) {
  const std::string call = Made();
  EXPECT_EQ(Coffer({"audit", "fetch", call, "report.txt"}).out, "good\n") << "the control";
  Sql("UPDATE call_files SET body = CAST('evil' || char(10) AS BLOB) WHERE path = 'report.txt'");
  const std::string to = dir_ / "fetched";
  for (const Strings& flags : {Strings{}, Strings{"--out", to}}) {
    Strings words = {"audit", "fetch", call, "report.txt"};
    words.insert(words.end(), flags.begin(), flags.end());
    const RunResult changed = Coffer(words);
    EXPECT_EQ(changed.exit, 1) << changed.Describe();
    EXPECT_EQ(changed.out, "");
    EXPECT_TRUE(Contains(changed.err, "differs from its seal")) << changed.err;
  }
  EXPECT_FALSE(Exists(to));
}

}  // namespace
}  // namespace coffer::test
