// SPDX-License-Identifier: Apache-2.0
#include "policy/manifest/keys.h"

#include <span>

namespace coffer::policy {
namespace {

constexpr std::string_view kFile[] = {"tool",  "input",      "run",         "isolation", "limits",
                                      "files", "network",    "credentials", "approval",  "output",
                                      "rate",  "background", "calls",       "examples"};
constexpr std::string_view kTool[] = {"name",   "version",         "owner", "summary",
                                      "effect", "idempotency_key", "record"};
constexpr std::string_view kInput[] = {"schema"};
constexpr std::string_view kRun[] = {
    "runtime", "dangerously_runtime", "reason", "also", "argv", "env", "stdin", "cwd", "paths"};
constexpr std::string_view kPath[] = {"mount", "mode"};
constexpr std::string_view kIsolation[] = {"level", "floor", "syscalls"};
constexpr std::string_view kLimits[] = {"cpu",         "wall", "memory", "processes",
                                        "open_files",  "disk", "inodes", "tmp",
                                        "connections", "io",   "output"};
constexpr std::string_view kFiles[] = {"workspace", "exec", "overlay", "exports", "mount"};
constexpr std::string_view kMount[] = {"host", "dangerously_host", "reason", "at", "mode"};
constexpr std::string_view kNetwork[] = {"allow"};
constexpr std::string_view kAllow[] = {"host",
                                       "dangerously_host",
                                       "dangerously_allow_any_host",
                                       "ports",
                                       "dangerously_port_range",
                                       "reason",
                                       "tls",
                                       "methods",
                                       "paths",
                                       "rate",
                                       "bytes_out",
                                       "bytes_in",
                                       "connections",
                                       "time",
                                       "ask"};
constexpr std::string_view kCredentials[] = {"name", "scope", "hosts", "header"};
constexpr std::string_view kApproval[] = {"when", "approvers", "quorum", "expires", "window"};
constexpr std::string_view kOutput[] = {"schema"};
constexpr std::string_view kRate[] = {"calls", "burst", "concurrency", "retry"};
constexpr std::string_view kBackground[] = {"wall", "cpu", "ports"};
constexpr std::string_view kCalls[] = {"tools", "most"};
constexpr std::string_view kExamples[] = {"allow", "deny"};
constexpr std::string_view kExample[] = {"args", "why"};

struct KeyTable {
  std::string_view path;
  std::span<const std::string_view> keys;
};

// run.env has the names of variables as keys, and run.paths those of parameters: kPath is what each of the latter
// holds.
constexpr KeyTable kTables[] = {
    {"", kFile},
    {"tool", kTool},
    {"input", kInput},
    {"run", kRun},
    {"run.paths.*", kPath},
    {"isolation", kIsolation},
    {"limits", kLimits},
    {"files", kFiles},
    {"files.mount", kMount},
    {"network", kNetwork},
    {"network.allow", kAllow},
    {"credentials", kCredentials},
    {"approval", kApproval},
    {"output", kOutput},
    {"rate", kRate},
    {"background", kBackground},
    {"calls", kCalls},
    {"examples", kExamples},
    {"examples.allow", kExample},
    {"examples.deny", kExample},
};

}  // namespace

std::vector<std::string_view> KeysOf(std::string_view path) {
  for (const KeyTable& table : kTables) {
    if (table.path == path) {
      return {table.keys.begin(), table.keys.end()};
    }
  }
  return {};
}

}  // namespace coffer::policy
