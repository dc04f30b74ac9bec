// SPDX-License-Identifier: Apache-2.0
#include "audit/receipt.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/json.h"

namespace coffer::audit {
namespace {

// Every field set to something that is not its default.
Receipt Full() {
  Receipt receipt;
  receipt.identity.call_id = "0190d8f0-0000-7000-8000-000000000000";
  receipt.identity.user = "uid:1000";
  receipt.envelope_id = "sha256:aa";
  receipt.effect = "read-only";
  receipt.blast_radius = "can change nothing";
  receipt.args_hash = "sha256:bb";
  receipt.args_redacted = {"python3", "sha256:cc", "with \"quotes\"\n and \x01 controls"};
  receipt.code_hash = "sha256:dd";
  receipt.requested_at = std::chrono::milliseconds(1763175325123);
  receipt.started_at = std::chrono::milliseconds(1763175325130);
  receipt.finished_at = std::chrono::milliseconds(1763175326999);
  receipt.duration = std::chrono::microseconds(1876543);
  receipt.level = "container";
  receipt.layers = {"userns", "seccomp"};
  receipt.floor = {"seccomp"};
  receipt.missing = {{"cgroup-io", "no controller", ""},
                     {"disk-quota", "a writable mount", "the supervisor"}};
  receipt.runtimes = {"python3"};
  receipt.limits = {{"wall", {30000000000, 5, "ns", true, true}},
                    {"open_files", {100, std::nullopt, "count", false}},
                    {"io", {UINT64_MAX, UINT64_MAX, "bytes", false}}};
  receipt.denials = {
      {"isolation", "syscall", "unshare(0x10000000)", "seccomp.default", "why", "fix", 3},
      {"isolation", "syscall", "bpf", "seccomp.default", "why", "", UINT64_MAX}};
  const Nanos kTime = receipt.requested_at;
  receipt.access = {
      {1, "api.test", 443, "api.test:443", kTime, "granted", "alice",
       kTime + std::chrono::seconds(1), 5, "time", kTime + std::chrono::seconds(301)},
      {2, "b.test", 22, "tcp://b.test:22", kTime, "unanswered", "", kTime, 0, "", {}}};
  receipt.denials_recorded = false;
  receipt.syscalls_denied = {{"bpf", 1}, {"unshare", 3}};
  receipt.output_bytes = 10;
  receipt.output_produced = 20;
  receipt.output_truncated = true;
  receipt.output_sha256 = "sha256:ee";
  receipt.stderr_sha256 = "sha256:ff";
  receipt.outcome = "terminated";
  receipt.error_class = "limit.wall";
  receipt.error_message = "took too long";
  receipt.exit_code = -1;
  receipt.exit_signal = 9;
  receipt.steps_us = {{"mounts", 120}, {"exec", 900}};
  return receipt;
}

TEST(Receipt, EveryFieldOfTheContractIsAlwaysThere) {
  const char* const kFields[] = {
      "schema",        "call_id",      "parent_id",  "session_id",   "trace_id",    "parent_span",
      "tenant",        "agent",        "user",       "reason",       "tool",        "tool_version",
      "manifest_hash", "envelope_id",  "effect",     "blast_radius", "args_hash",   "args_redacted",
      "code_hash",     "requested_at", "started_at", "finished_at",  "duration_ms", "isolation",
      "limits",        "denials",      "scan",       "approval",     "leases",      "network",
      "syscalls",      "files",        "output",     "incidents",    "outcome",     "error",
      "exit",          "cost",         "log",        "signature",    "access"};
  for (const Receipt& receipt : {Receipt(), Full()}) {
    const Json json = *ParseJson(FormatReceipt(receipt));
    EXPECT_EQ(json.size(), std::size(kFields));
    for (const char* field : kFields) {
      EXPECT_TRUE(json.contains(field)) << field;
    }
    for (const char* field : {"level", "layers", "floor", "missing", "runtimes"}) {
      EXPECT_TRUE(json["isolation"].contains(field)) << field;
    }
    for (const char* field :
         {"bytes", "truncated", "sha256", "redactions", "findings", "provenance"}) {
      EXPECT_TRUE(json["output"].contains(field)) << field;
    }
    EXPECT_TRUE(json["exit"].contains("code") && json["exit"].contains("signal"));
    EXPECT_TRUE(json["syscalls"].contains("denied") && json["syscalls"].contains("summary"));
    EXPECT_TRUE(json["log"].contains("index") && json["log"].contains("root"));
  }
}

TEST(Receipt, RoundTrip) {
  for (const Receipt& receipt : {Receipt(), Full()}) {
    const std::string text = FormatReceipt(receipt);
    const Result<Receipt> back = ParseReceipt(text);
    ASSERT_TRUE(back.ok()) << back.error().message;
    EXPECT_EQ(FormatReceipt(*back), text);
  }
  const Receipt back = *ParseReceipt(FormatReceipt(Full()));
  const Receipt full = Full();
  EXPECT_EQ(back.args_redacted, full.args_redacted);
  EXPECT_EQ(back.duration, full.duration);
  EXPECT_EQ(back.requested_at, full.requested_at);
  EXPECT_EQ(back.limits[2].second.used, UINT64_MAX);
  EXPECT_EQ(back.limits[1].second.used, std::nullopt);
  for (const auto& [name, use] : back.limits) {
    EXPECT_EQ(use.enforced, name == "wall") << name;
  }
  EXPECT_EQ(back.denials[1].count, UINT64_MAX);
  EXPECT_EQ(back.exit_code, -1);
  EXPECT_EQ(back.exit_signal, 9);
  EXPECT_EQ(back.missing[1].stand_in, "the supervisor");
  EXPECT_FALSE(back.denials_recorded);
}

TEST(Receipt, ALimitThatDoesNotSayThatItIsEnforcedIsNot) {
  std::string text = FormatReceipt(Full());
  const std::string field = "\"enforced\": true,";
  const size_t at = text.find(field);
  ASSERT_NE(at, std::string::npos);
  text.erase(at, field.size());
  const Result<Receipt> back = ParseReceipt(text);
  ASSERT_TRUE(back.ok()) << back.error().message;
  for (const auto& [name, use] : back->limits) {
    EXPECT_FALSE(use.enforced) << name;
  }
}

TEST(Receipt, BytesThatAreNotTextDoNoHarm) {
  Receipt receipt = Full();
  receipt.args_redacted = {"\xff\xfe", std::string("a\0b", 3)};
  receipt.error_message = "\xc0";
  const std::string text = FormatReceipt(receipt);
  const Result<Receipt> back = ParseReceipt(text);
  ASSERT_TRUE(back.ok()) << back.error().message;
  EXPECT_EQ(FormatReceipt(*back), text);
}

TEST(Receipt, AnythingElseIsRefused) {
  const std::string good = FormatReceipt(Full());
  for (const std::string& text : {std::string(), std::string("null"), std::string("[]"),
                                  std::string("{}"), good.substr(0, good.size() / 2), good + "x",
                                  good + good, std::string(R"({"schema":"coffer.receipt/1"})")}) {
    EXPECT_FALSE(ParseReceipt(text).ok()) << text.substr(0, 40);
  }
  const std::pair<const char*, const char*> changes[] = {
      {"coffer.receipt/1", "coffer.receipt/2"},
      {"\"call_id\":", "\"callid\":"},
      {"2025-11-15T02:55:25.123Z", "2025-11-15"},
      {"2025-11-15T02:55:25.123Z", "2025-02-30T02:55:25.123Z"},
      {"2025-11-15T02:55:25.123Z", "9999-99-99T99:99:99.999Z"},
      {"\"truncated\": true", "\"truncated\": 1"},
      {"\"truncated\": true", "\"truncated\": null"},
      {"\"duration_ms\": 1876.543", "\"duration_ms\": -1"},
      {"\"duration_ms\": 1876.543", "\"duration_ms\": \"1\""},
      {"\"layers\": [", "\"layers\": [1,"},
      {"\"breached\": true", "\"breached\": \"yes\""},
      {"\"enforced\": true", "\"enforced\": \"yes\""},
      {"\"exit\": {", "\"exit\": {}, \"exit\": {"},
  };
  for (const auto& [from, to] : changes) {
    std::string text = good;
    const size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    text.replace(at, std::string(from).size(), to);
    EXPECT_FALSE(ParseReceipt(text).ok()) << to;
  }
}

}  // namespace
}  // namespace coffer::audit
