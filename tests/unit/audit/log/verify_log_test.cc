// SPDX-License-Identifier: Apache-2.0
//
// The verifier says what is wrong, by name and place. That it finds every change, and agrees with the one in Python, is
// the business of tests/conformance/log_agreement.
#include "audit/log/verify_log.h"

#include <gtest/gtest.h>

#include <set>

#include "audit/log/log.h"
#include "tests/support/run.h"
#include "tests/unit/audit/log/forged_log.h"

namespace coffer::audit {
namespace {

using F = ForgedLog;

class VerifyLogTest : public ::testing::Test {
 protected:
  // "line seq code", one after the other.
  std::string Findings(const ForgedLog& log, const VerifyOptions& options = {}) {
    const Result<LogVerdict> verdict = VerifyLog(log.WriteTo(dir_ / "log"), options);
    EXPECT_TRUE(verdict.ok()) << verdict.error().message;
    std::string text;
    for (const LogFinding& finding : verdict->findings) {
      text += (text.empty() ? "" : ", ") + std::to_string(finding.line) + " " +
              (finding.seq ? std::to_string(*finding.seq) : "-") + " " + finding.code;
    }
    return text;
  }
  test::TempDir dir_;
};

TEST_F(VerifyLogTest, GoodLogs) {
  EXPECT_EQ(Findings(F()), "");
  EXPECT_EQ(Findings(F().Add(F::Decision("c")).Add(F::Receipt("c", true)).Sign()), "");
  EXPECT_EQ(Findings(F().Add(F::Receipt("c", false)).Sign()), "") << "refused: nothing ran";
}

TEST_F(VerifyLogTest, NothingRunsWithoutADecision) {
  EXPECT_EQ(Findings(F().Add(F::Receipt("c", true)).Sign()), "3 0 log.decision");
  EXPECT_EQ(Findings(F().Add(F::Receipt("c", true)).Add(F::Decision("c")).Sign()),
            "3 0 log.decision");
  EXPECT_EQ(Findings(F().Add(F::Decision("c", "a")).Add(F::Receipt("c", true, false, "b")).Sign()),
            "4 1 log.decision");
}

TEST_F(VerifyLogTest, ACallEndsOnce) {
  const auto begin = [] { return std::move(F().Add(F::Decision("c")).Add(F::Receipt("c", true))); };
  EXPECT_EQ(Findings(begin().Add(F::Receipt("c", true)).Sign()), "5 2 log.receipt");
  EXPECT_EQ(Findings(begin().Add(F::Receipt("c", true, true)).Sign()), "");
}

TEST_F(VerifyLogTest, OneMissingRecordIsOneFinding) {
  F log;
  log.AddAs(F::Decision("a"), 0).AddAs(F::Decision("b"), 2).AddAs(F::Decision("c"), 3).Sign();
  EXPECT_EQ(Findings(log), "4 2 log.seq");
  F twice;
  twice.AddAs(F::Decision("a"), 0).AddAs(F::Decision("b"), 0).AddAs(F::Decision("c"), 1).Sign();
  EXPECT_EQ(Findings(twice), "4 0 log.seq");
}

TEST_F(VerifyLogTest, Checkpoints) {
  EXPECT_EQ(Findings(F().Add(F::Decision("c"))), "0 - log.tail");
  EXPECT_EQ(Findings(F().Add(F::Decision("c")).Sign([](Checkpoint& c) { ++c.size; })),
            "4 - log.size");
  EXPECT_EQ(Findings(F().Sign()), "3 - log.size") << "for nothing new";
  EXPECT_EQ(Findings(F().Add(F::Decision("c")).Sign([](Checkpoint& c) { c.root[0] ^= 1; })),
            "4 - log.root");
  // An old one that was wrong when it was signed is found, although the last one is right.
  EXPECT_EQ(Findings(F().Add(F::Decision("c"))
                         .Sign([](Checkpoint& c) { c.root[0] ^= 1; })
                         .Add(F::Decision("d"))
                         .Sign()),
            "4 - log.root");
  EXPECT_EQ(Findings(F().Add(F::Decision("c")).Sign([](Checkpoint& c) { c.prev[0] ^= 1; })),
            "4 - log.chain");
  EXPECT_EQ(Findings(F().Raw("= 0\n").Add(F::Decision("c")).Sign()),
            "3 - log.checkpoint, 5 - log.chain");
}

TEST_F(VerifyLogTest, Lines) {
  EXPECT_EQ(Findings(F().Raw("\n")), "3 - log.line");
  EXPECT_EQ(Findings(F().Raw("half")), "3 - log.line");
  EXPECT_EQ(Findings(F().Leaf("{}").Sign()), "3 0 log.line");
  EXPECT_EQ(Findings(F().Leaf("{" + std::string(3 << 20, 'x')).Sign()), "3 0 log.line")
      << "longer than a chunk";
}

TEST_F(VerifyLogTest, TheKeyMatters) {
  F log;
  log.Add(F::Decision("c")).Sign();
  VerifyOptions options;
  options.key = F().signer().public_key();
  EXPECT_EQ(Findings(log, options), "4 - log.signature");
  options.key = log.signer().public_key();
  EXPECT_EQ(Findings(log, options), "");
}

TEST_F(VerifyLogTest, AKeptCheckpointShowsWhatTheFileCannot) {
  const std::string path = dir_ / "real";
  const auto verify = [&](const std::string& note) {
    VerifyOptions options;
    options.kept_checkpoint = note;
    const Result<LogVerdict> verdict = VerifyLog(path, options);
    EXPECT_TRUE(verdict.ok());
    return verdict->ok() ? "" : verdict->findings.front().code;
  };
  std::vector<std::string> notes, states;
  Log log = Log::Open(path).value();
  for (int i = 0; i < 6; ++i) {
    notes.push_back(*log.Checkpoint());
    states.push_back(*test::ReadFile(path + "/records"));
    ASSERT_TRUE(log.Append(F::Decision("c" + std::to_string(i))).ok());
  }
  for (const std::string& note : notes) {
    EXPECT_EQ(verify(note), "");
  }
  // Cut back to an earlier state: good by itself, and not against what was kept later.
  dir_.Write("real/records", states[3], 0600);
  EXPECT_EQ(verify(notes[2]), "");
  EXPECT_EQ(verify(notes[3]), "");
  EXPECT_EQ(verify(notes[4]), "log.kept");
  Log other = Log::Open(dir_ / "other").value();
  EXPECT_EQ(verify(*other.Checkpoint()), "log.kept");
  EXPECT_FALSE(VerifyLog(path, {.kept_checkpoint = "rubbish"}).ok());
}

TEST_F(VerifyLogTest, RecordsAreShownInOrderAndMayBeObjectedTo) {
  F log;
  log.Add(F::Decision("c")).Add(F::Receipt("c", true)).Sign();
  std::vector<std::string> seen;
  VerifyOptions options;
  options.on_record = [&](const LeafFacts& facts) -> std::optional<LogFinding> {
    seen.push_back(std::to_string(facts.seq) + std::string(facts.call));
    if (facts.kind == LeafFacts::Kind::kReceipt) {
      return LogFinding{0, std::nullopt, "log.body", "not that"};
    }
    return std::nullopt;
  };
  EXPECT_EQ(Findings(log, options), "4 1 log.body");
  EXPECT_EQ(seen, (std::vector<std::string>{"0c", "1c"}));
}

TEST_F(VerifyLogTest, ThreadsDoNotMatter) {
  F log;
  for (int i = 0; i < 9000; ++i) {
    log.Add(F::Decision("call-" + std::to_string(i)));
    if (i % 7 == 0) {
      log.Sign();
    }
  }
  log.Sign([](Checkpoint& c) { c.root[0] ^= 1; });
  std::set<std::string> answers;
  for (const int threads : {1, 2, 3, 8}) {
    answers.insert(Findings(log, {.threads = threads}));
  }
  EXPECT_EQ(answers.size(), 1u);
  EXPECT_TRUE(answers.begin()->ends_with("log.root")) << *answers.begin();
}

TEST_F(VerifyLogTest, ThereIsAnEndToFindings) {
  F log;
  for (int i = 0; i < 50; ++i) {
    log.Raw("rubbish\n");
  }
  const Result<LogVerdict> verdict = VerifyLog(log.WriteTo(dir_ / "log"), {.max_findings = 10});
  ASSERT_TRUE(verdict.ok());
  EXPECT_EQ(verdict->findings.size(), 10u);
  EXPECT_TRUE(verdict->more_findings);
}

TEST_F(VerifyLogTest, WhatIsNotThereIsAnError) {
  const Result<LogVerdict> verdict = VerifyLog(dir_ / "nowhere");
  ASSERT_FALSE(verdict.ok());
  EXPECT_EQ(verdict.error().code, "audit.verify");
}

}  // namespace
}  // namespace coffer::audit
