// SPDX-License-Identifier: Apache-2.0
#include "call/warden/wire.h"

#include <gtest/gtest.h>

#include "base/hash.h"
#include "policy/export_pattern.h"

namespace coffer::call {
namespace {

RunRequest Sample() {
  RunRequest request;
  request.command = {"python3", "-I", "-"};
  policy::Envelope& envelope = request.envelope;
  envelope.level = policy::Level::kContainer;
  envelope.floor = {policy::Layer::kSeccomp, policy::Layer::kCgroupMemory};
  envelope.limits.memory = 12345678;
  envelope.limits.wall = std::chrono::milliseconds(1500);
  envelope.mounts = {{"/srv/a", "/data", policy::Access::kWrite, true}, {"/srv/b", "/b"}};
  envelope.workspace = "/state/sessions/x";
  envelope.workspace_access = policy::Access::kRead;
  envelope.runtimes = {"python3"};
  envelope.exports = {"report.html", "plots/**"};
  envelope.network = {"@sets", "{\"host\":\"a.example.com\"}"};
  envelope.connections = 7;
  envelope.env = {{"A", "1"}, {"EMPTY", ""}};
  envelope.cwd = "/workspace/sub";
  envelope.uid = 77;
  envelope.syscalls = policy::SyscallProfile::kStrict;
  request.background = true;
  request.ports = {8000, 65535};
  request.forwards = {{3000, 1}, {3001, 2}};
  return request;
}

TEST(Wire, ARequestComesBackAsItWas) {
  const RunRequest sent = Sample();
  const Result<RunRequest> got = DecodeRun(EncodeRun(sent));
  ASSERT_TRUE(got.ok()) << got.error().message;
  EXPECT_EQ(got->command, sent.command);
  EXPECT_EQ(policy::CanonicalForm(got->envelope), policy::CanonicalForm(sent.envelope));
  EXPECT_EQ(got->envelope.workspace, sent.envelope.workspace);
  EXPECT_EQ(got->envelope.workspace_access, sent.envelope.workspace_access);
  EXPECT_EQ(got->envelope.mounts, sent.envelope.mounts);
  EXPECT_TRUE(got->background);
  EXPECT_EQ(got->ports, sent.ports);
  ASSERT_EQ(got->forwards.size(), 2U);
  EXPECT_EQ(got->forwards[1].port, 3001);
  EXPECT_EQ(got->forwards[1].channel, 2U);
  EXPECT_EQ(EncodeRun(*got), EncodeRun(sent));
}

TEST(Wire, WhatDecidesForTheAskerDoesNotCross) {
  RunRequest sent = Sample();
  sent.receipt_path = "/etc/shadow";
  sent.out_dir = "/etc";
  sent.envelope.tty = true;
  sent.egress.allow = {"evil.example.com"};
  sent.egress.lines = {"{}"};
  sent.egress.addresses = {"127.0.0.0/8"};
  sent.egress_door = 7;
  const Result<RunRequest> got = DecodeRun(EncodeRun(sent));
  ASSERT_TRUE(got.ok());
  EXPECT_TRUE(got->egress.empty() && got->egress.addresses.empty());
  EXPECT_EQ(got->egress_door, -1);
  EXPECT_TRUE(got->receipt_path.empty() && got->out_dir.empty());
  EXPECT_FALSE(got->envelope.tty);
}

TEST(Wire, EveryCutIsRefused) {
  const std::string whole = EncodeRun(Sample());
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(DecodeRun(std::string_view(whole).substr(0, size)).ok()) << size;
  }
  EXPECT_FALSE(DecodeRun(whole + "x").ok());
  EXPECT_TRUE(DecodeRun(whole).ok());
}

TEST(Wire, NoChangedByteCrashesOrWidensTheMessage) {
  const std::string whole = EncodeRun(Sample());
  size_t refused = 0;
  for (size_t at = 0; at < whole.size(); ++at) {
    for (const char flip : {'\x01', '\x80', '\xff'}) {
      std::string changed = whole;
      changed[at] = static_cast<char>(changed[at] ^ flip);
      const Result<RunRequest> got = DecodeRun(changed);
      refused += got.ok() ? 0 : 1;
      if (got.ok()) {
        EXPECT_EQ(EncodeRun(*got).size(), whole.size()) << at;
      }
    }
  }
  EXPECT_GT(refused, whole.size()) << "lengths, versions and choices are checked";
}

TEST(Wire, RefusesWhatCannotBeRun) {
  const auto refused = [](const auto& change) {
    RunRequest request = Sample();
    change(request);
    return !DecodeRun(EncodeRun(request)).ok();
  };
  EXPECT_TRUE(refused([](RunRequest& r) { r.command.clear(); }));
  EXPECT_TRUE(refused([](RunRequest& r) { r.command[1] = std::string("a\0b", 3); }));
  EXPECT_TRUE(refused([](RunRequest& r) { r.envelope.workspace += std::string("\0x", 2); }));
  EXPECT_TRUE(refused([](RunRequest& r) { r.envelope.mounts[0].host += std::string("\0x", 2); }));
  EXPECT_TRUE(refused([](RunRequest& r) { r.envelope.env = {{"A", std::string("\0x", 2)}}; }));
  EXPECT_TRUE(refused([](RunRequest& r) { r.envelope.env = {{"A=B", "1"}}; }));
  EXPECT_TRUE(refused([](RunRequest& r) { r.envelope.env = {{"", "1"}}; }));
  EXPECT_TRUE(refused([](RunRequest& r) { r.envelope.limits.memory = 0; }));
  EXPECT_TRUE(refused([](RunRequest& r) { r.envelope.limits.memory = ~0ULL; }));
  EXPECT_TRUE(refused([](RunRequest& r) { r.envelope.limits.cpu = Nanos(-1); }));
  EXPECT_FALSE(refused([](RunRequest&) {}));
}

// Every field that a runner reports, with a value of its own.
audit::Receipt Full() {
  audit::Receipt receipt;
  receipt.started_at = Nanos(1'700'000'000'000'000'001);
  receipt.finished_at = Nanos(1'700'000'000'500'000'002);
  receipt.duration = Nanos(500'000'001);
  receipt.code_hash = "sha256:code";
  receipt.level = "container";
  receipt.layers = {"userns", "seccomp"};
  receipt.floor = {"userns"};
  receipt.missing = {{"landlock", "the kernel has none", "mounts"}};
  receipt.runtimes = {"python3"};
  receipt.program = "/usr/bin/python3";
  receipt.exec = true;
  receipt.overlay = true;
  receipt.bound = {{"/usr/lib", "system", "library", 7}};
  receipt.blast_radius = "can read /usr/lib";
  receipt.planted = {".git/hooks/post-commit"};
  receipt.limits = {{"cpu", {10, 7, "ns", true, true}}, {"disk", {20, std::nullopt, "bytes"}}};
  receipt.denials = {{"isolation", "syscall", "unshare(0)", "seccomp.default", "why", "fix", 3}};
  receipt.denials_recorded = false;
  receipt.syscalls_denied = {{"unshare", 3}};
  receipt.output_bytes = 11;
  receipt.output_produced = 12;
  receipt.output_truncated = true;
  receipt.output_sha256 = "sha256:out";
  receipt.stderr_sha256 = "sha256:err";
  receipt.outcome = "terminated";
  receipt.error_class = "limit.wall";
  receipt.error_message = "it ran for too long";
  receipt.exit_code = 255;
  receipt.exit_signal = 9;
  receipt.steps_us = {{"clone", 120}, {"skew", -1}};
  return receipt;
}

Result<RunReport> Back(const audit::Receipt& receipt) {
  return DecodeReport(EncodeReport({0, std::nullopt, receipt}));
}

TEST(Wire, AReportComesBackAsItWas) {
  Result<RunReport> got = DecodeReport(EncodeReport({3, std::nullopt, audit::Receipt()}));
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(got->exit_status, 3);
  EXPECT_FALSE(got->error.has_value());
  const RunReport failed{125, HostFault("isolation.x", "what", "hint"), Full()};
  got = DecodeReport(EncodeReport(failed));
  ASSERT_TRUE(got.ok() && got->error.has_value());
  EXPECT_EQ(got->error->code, "isolation.x");
  EXPECT_EQ(got->error->hint, "hint");
  EXPECT_EQ(audit::FormatReceipt(got->receipt), audit::FormatReceipt(Full()));
  EXPECT_EQ(got->receipt.started_at, Full().started_at);
  const std::string bytes = EncodeReport(failed);
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(DecodeReport(std::string_view(bytes).substr(0, size)).ok()) << size;
  }
  EXPECT_FALSE(DecodeReport(EncodeRun(Sample())).ok()) << "another kind of message";
}

// A runner that was broken into reports what no runner can have seen.
TEST(Wire, AReportThatCannotBeIsRefused) {
  const auto refused = [](const auto& change) {
    audit::Receipt receipt = Full();
    change(receipt);
    return !Back(receipt).ok();
  };
  EXPECT_FALSE(refused([](audit::Receipt&) {})) << "the control";
  for (const char* outcome : {"", "unknown", "gated", "fine"}) {
    EXPECT_TRUE(refused([&](audit::Receipt& r) { r.outcome = outcome; })) << outcome;
  }
  EXPECT_TRUE(refused([](audit::Receipt& r) { r.finished_at = Nanos(-1); }));
  EXPECT_TRUE(refused([](audit::Receipt& r) { r.started_at = Nanos::max(); }));
  EXPECT_TRUE(refused([](audit::Receipt& r) { r.duration = Nanos(-1); }));
  EXPECT_TRUE(refused([](audit::Receipt& r) { r.error_message += std::string("\0x", 2); }));
}

RunReport WithExports() {
  RunReport report{0, std::nullopt, Full(), {std::string("a\0b", 3), "", "third"}};
  const char* const paths[] = {"plots/a.png", "empty", "report.html"};
  for (size_t i = 0; i < report.exports.size(); ++i) {
    report.receipt.exported.push_back(
        {paths[i], report.exports[i].size(), HashOf(report.exports[i])});
  }
  report.receipt.left_out.push_back({"it is not a regular file", 2, "fifo"});
  return report;
}

TEST(Wire, ExportedBytesFollowTheReport) {
  const RunReport report = WithExports();
  const std::string bytes = EncodeReport(report);
  const Result<RunReport> got = DecodeReport(bytes);
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(got->exports, report.exports);
  EXPECT_EQ(audit::FormatReceipt(got->receipt), audit::FormatReceipt(report.receipt));
  EXPECT_TRUE(CheckExports(*got).ok());
  for (size_t size = bytes.size() - 20; size < bytes.size(); ++size) {
    EXPECT_FALSE(DecodeReport(std::string_view(bytes).substr(0, size)).ok()) << size;
  }
  EXPECT_FALSE(DecodeReport(bytes + "x").ok()) << "bytes that no file has";
}

TEST(Wire, ExportsThatAreNotWhatIsSaidAreRefused) {
  const auto refused = [](const auto& change) {
    RunReport report = WithExports();
    change(report);
    return !CheckExports(report).ok();
  };
  EXPECT_FALSE(refused([](RunReport&) {})) << "the control";
  EXPECT_TRUE(refused([](RunReport& r) { r.exports[2] = "forgd"; }));
  EXPECT_TRUE(refused([](RunReport& r) { r.exports.pop_back(); }));
  EXPECT_TRUE(refused([](RunReport& r) { r.receipt.exported[0].sha256 = HashOf("x"); }));
  EXPECT_TRUE(refused([](RunReport& r) { r.receipt.exported[0].size = 4; }));
  for (const char* path : {"", "/etc/passwd", "../x", "a\nb", "report.html"}) {
    EXPECT_TRUE(refused([&](RunReport& r) { r.receipt.exported[0].path = path; })) << path;
  }
  EXPECT_TRUE(refused([](RunReport& r) {
    for (size_t i = 0; i < policy::kMostExports; ++i) {
      r.exports.emplace_back();
      r.receipt.exported.push_back({"f" + std::to_string(i), 0, HashOf("")});
    }
  }));
  EXPECT_TRUE(refused([](RunReport& r) {
    r.exports[1].assign(policy::kMostExportBytes, 'x');
    r.receipt.exported[1].size = r.exports[1].size();
    r.receipt.exported[1].sha256 = HashOf(r.exports[1]);
  }));
}

// Who asked for what is not a runner's to say: it does not even cross.
TEST(Wire, AReportHasNoIdentity) {
  audit::Receipt receipt = Full();
  receipt.identity.call_id = "forged";
  receipt.identity.agent = "mallory";
  receipt.identity.tool = "forged";
  receipt.manifest_hash = receipt.envelope_id = receipt.args_hash = "forged";
  const std::string bytes = EncodeReport({0, std::nullopt, receipt});
  EXPECT_EQ(bytes.find("forged"), std::string::npos);
  EXPECT_EQ(bytes.find("mallory"), std::string::npos);
  EXPECT_NE(bytes.find("sha256:code"), std::string::npos) << "the control";
}

}  // namespace
}  // namespace coffer::call
