// SPDX-License-Identifier: Apache-2.0
//
// A recorder and a ladder on a store and a log of their own, and what a test asks of them.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "audit/log/verify_log.h"
#include "audit/log/verify_store.h"
#include "audit/seal.h"
#include "base/json.h"
#include "call/ladder.h"
#include "call/recorder.h"
#include "tests/support/run.h"

namespace coffer::call {

class RecorderTest : public ::testing::Test {
 protected:
  RecorderTest() : shelf_({}) {
    Result<store::Store> opened = store::Store::Open(dir_ / "state");
    EXPECT_TRUE(opened.ok()) << opened.error().message;
    store_ = std::make_unique<store::Store>(std::move(opened).value());
    EXPECT_TRUE(shelf_.Reload().ok());
    EXPECT_TRUE(store::EnsureTenant(*store_, store::TenantId::Local()).ok());
    Result<audit::Log> log = audit::Log::Open(dir_ / "state/log");
    EXPECT_TRUE(log.ok()) << log.error().message;
    log_ = std::make_unique<audit::Log>(std::move(log).value());
    dir_.MakeDir("sessions");
    Begin({});
  }
  static ToolRequest Asking(const std::string& tool, const std::string& args) {
    ToolRequest request;
    request.identity.agent = "tester";
    request.identity.tool = tool;
    request.args_json = args;
    return request;
  }
  ToolReply Refused(const ToolRequest& request) {
    std::variant<ReadyCall, ToolReply> climbed = ladder_->Climb(request);
    auto* reply = std::get_if<ToolReply>(&climbed);
    EXPECT_NE(reply, nullptr) << "it may run";
    return reply == nullptr ? ToolReply() : *reply;
  }
  audit::LogVerdict Verify() {
    audit::StoreCheck check(*store_, dir_ / "state/log");
    audit::VerifyOptions options;
    options.on_record = [&](const audit::LeafFacts& facts) {
      check.Note(facts);
      return std::optional<audit::LogFinding>();
    };
    Result<audit::LogVerdict> verdict = audit::VerifyLog(dir_ / "state/log", options);
    EXPECT_TRUE(verdict.ok());
    EXPECT_TRUE(check.Finish(*verdict).ok());
    return std::move(verdict).value();
  }
  // What a call that ran would have been told.
  ToolReply Descend(const ReadyCall& ready) {
    Collected collected;
    audit::Receipt receipt;
    receipt.outcome = "success";
    receipt.started_at = receipt.finished_at = store_->Now();
    receipt.exit_code = 0;
    collected.report = RunReport{0, std::nullopt, receipt, {}};
    return ladder_->Descend(ready, std::move(collected));
  }

  // A recorder that keeps `allowance` of a tenant's refusals, and a ladder on it.
  void Begin(RefusalFlood::Allowance allowance) {
    EndRecorder();
    recorder_ = std::make_unique<Recorder>(*store_, *log_, Recorder::kMostUnwritten, allowance);
    LadderOptions options;
    options.sessions = dir_ / "sessions";
    options.quotas = [this](const store::TenantId&) { return quotas_; };
    ladder_ = std::make_unique<Ladder>(*recorder_, shelf_, options);
  }
  void EndRecorder() {
    ladder_.reset();
    recorder_.reset();
  }
  // Leaves of this name.
  std::vector<Json> Events(const std::string& name) {
    std::vector<Json> events;
    for (const std::string& line : test::Lines(*test::ReadFile(dir_ / "state/log/records"))) {
      const Result<Json> leaf = ParseJson(line);
      if (leaf.ok() && leaf->value("name", "") == name) {
        events.push_back(*leaf);
      }
    }
    return events;
  }

  test::TempDir dir_;
  store::Quotas quotas_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<audit::Log> log_;
  std::unique_ptr<Recorder> recorder_;
  ToolShelf shelf_;
  std::unique_ptr<Ladder> ladder_;
};

}  // namespace coffer::call
