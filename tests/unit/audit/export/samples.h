// SPDX-License-Identifier: Apache-2.0
//
// Receipts to export: one for each outcome, and one with everything in it.
#pragma once

#include "audit/receipt.h"

namespace coffer::audit {

inline constexpr const char* kSecretWord = "hunter2-do-not-tell";
inline constexpr const char* kCall = "0190d8f0-0000-7000-8000-000000000001";
inline constexpr const char* kParent = "0190d8f0-0000-7000-8000-000000000002";
inline constexpr const char* kOutcomes[] = {"success", "error",      "denied",
                                            "gated",   "terminated", "unknown"};

inline Receipt Sample(const std::string& outcome = "success") {
  Receipt receipt;
  receipt.identity.call_id = kCall;
  receipt.identity.session_id = "0190d8f0-0000-7000-8000-000000000003";
  receipt.identity.tenant = *store::TenantId::Parse("acme");
  receipt.identity.agent = "bot";
  receipt.identity.user = "uid:1000";
  receipt.identity.tool = "python";
  receipt.tool_version = "1.2.0";
  receipt.manifest_hash = "sha256:aa";
  receipt.envelope_id = "sha256:bb";
  receipt.effect = "reversible";
  receipt.args_hash = "sha256:cc";
  receipt.args_redacted = {std::string("code=") + kSecretWord};
  receipt.requested_at = std::chrono::milliseconds(1763175325123);
  receipt.started_at = std::chrono::milliseconds(1763175325140);
  receipt.finished_at = std::chrono::milliseconds(1763175326999);
  receipt.duration = receipt.finished_at - receipt.requested_at;
  receipt.level = "container";
  receipt.layers = {"userns", "seccomp"};
  receipt.limits = {{"wall", {30000000000, 5, "ns", outcome == "terminated"}}};
  receipt.outcome = outcome;
  if (outcome != "success") {
    receipt.error_class = outcome == "terminated" ? "limit.wall" : "policy.args";
    receipt.error_message = "what went wrong";
  }
  receipt.exit_code = outcome == "success" ? 0 : 1;
  receipt.output_bytes = 10;
  receipt.output_sha256 = "sha256:dd";
  receipt.steps_us = {{"spawned", 100}, {"mounts", 2000}, {"exec", 9000}};
  return receipt;
}

inline Receipt Attack() {
  Receipt receipt = Sample("denied");
  receipt.denials = {
      {"isolation", "syscall", "bpf()", "seccomp.default", "not for tools", "", 3},
      {"policy", "call", "python", "policy.args", "no such argument", "leave it out", 1},
      {"isolation", "file", "/etc/shadow", "landlock", "not in the envelope", "", 1}};
  receipt.incidents = {"canary: touched"};
  return receipt;
}

}  // namespace coffer::audit
