// SPDX-License-Identifier: Apache-2.0
//
// A manifest: everything that is declared about one tool, as one value. A tool without a manifest does not exist.
//
// Every default denies: no parameter, no host path, no network, no credential, small limits, the container level, and
// an effect that counts as irreversible. Made by parse.h only, which has checked what is written beside each
// field; nothing here has looked at the host, so a path may still be missing or a link (host_paths() is what a loader
// must look at). docs/MANIFEST.md describes every field for the people who write them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "policy/egress_rule.h"
#include "policy/envelope.h"
#include "policy/manifest/mistake.h"
#include "policy/rate.h"
#include "policy/template.h"

namespace coffer::policy {

enum class Effect : uint8_t { kReadOnly, kReversible, kIrreversible, kPrivileged };
std::string_view EffectName(Effect effect);

// Lower-case letters, digits and "-", beginning with a letter, not ending with "-", at most 63.
bool IsToolName(std::string_view name);

// What the record keeps of a call beside its receipt: what it ran and printed, or only the hashes in the receipt.
enum class RecordKind : uint8_t { kFull, kHashes };

struct ToolInfo {
  std::string name;     // IsToolName
  std::string version;  // letters, digits, ".", "+", "-"
  std::string owner;
  std::string summary;
  Effect effect = Effect::kIrreversible;  // unless it is declared
  bool effect_declared = false;
  RecordKind record = RecordKind::kFull;
  std::optional<bool> needs_key;  // tool.idempotency_key; nothing: as the effect says
};

// A parameter that names a file: its value is taken beneath `mount` (path_param.h).
struct PathParameter {
  std::string parameter;
  std::string mount;  // "/workspace", or the `at` of a mount
  Access access = Access::kRead;
  Position at;
};

struct RunSpec {
  std::string runtime;            // the only thing that is executable inside
  std::vector<std::string> also;  // further runtimes, where the host has them
  std::vector<WordGroup> argv;
  std::vector<std::pair<std::string, Word>> env;
  std::optional<Word> stdin_word;
  std::string cwd = "/workspace";
  std::vector<PathParameter> paths;
};

struct IsolationSpec {
  Level level = Level::kContainer;
  LayerSet floor;
  SyscallProfile syscalls = SyscallProfile::kDefault;
};

// What /workspace is: empty and private to the call, or the session's own, which survives between the session's calls.
enum class Workspace : uint8_t { kFresh, kSessionRead, kSessionWrite };
std::string_view WorkspaceName(Workspace workspace);

enum class MountMode : uint8_t { kRead, kStaged, kWrite };
std::string_view MountModeName(MountMode mode);

struct FileMount {
  std::string host;  // absolute and clean
  std::string at;
  MountMode mode = MountMode::kRead;
  bool dangerous = false;  // granted by dangerously_host
  Position position;
};

struct NetworkRule {
  std::string host;  // exact, "*.d" (subdomains), "**.d" (subdomains and d); empty if any_host
  bool any_host = false;
  std::vector<PortRange> ports = {{443, 443}};
  TlsMode tls = TlsMode::kIntercept;
  std::vector<std::string> methods = {"GET"};  // empty: every method, where requests are not judged
  std::vector<std::string> paths;              // never empty: "/v1/x", "/v1/**"
  std::optional<RateRule> rate;
  uint64_t bytes_out = 0;  // of one call; 0: no limit of its own
  uint64_t bytes_in = 0;
  uint64_t connections = 0;  // at the same time; 0: no limit of its own
  Nanos time{0};             // of one connection or request; 0: no limit of its own
  bool ask = false;          // what these hosts are not allowed may be asked for
  bool dangerous = false;
  Position position;
};

struct CredentialRule {
  std::string name;
  std::string scope;
  std::vector<std::string> hosts;  // each allowed by a NetworkRule
  std::string header;              // "Authorization: Bearer {}"
  Position position;
};

enum class ApprovalWhen : uint8_t { kNever, kFlagged, kIrreversible, kDiff, kAlways };
std::string_view ApprovalWhenName(ApprovalWhen when);

struct ApprovalSpec {
  ApprovalWhen when = ApprovalWhen::kIrreversible;
  std::vector<std::string> approvers;
  uint64_t quorum = 1;
  Nanos expires = std::chrono::minutes(15);
  Nanos window{0};  // a delay in which a call can be cancelled
  bool declared = false;
  Position position;
};

// [background]: the tool may run as a process that lives as long as its session. Its own time
// instead of limits.wall and limits.cpu, and the ports on which the session's later calls may reach
// it.
struct BackgroundSpec {
  Nanos wall{0};
  Nanos cpu{0};
  std::vector<PortRange> ports;  // none below kFirstBackgroundPort
  bool operator==(const BackgroundSpec&) const = default;
};
inline constexpr uint16_t kFirstBackgroundPort = 1024;
// No process in the background lives longer, whatever its manifest says: as long as the longest session.
inline constexpr Nanos kLongestBackground = std::chrono::hours(24);
// Every port of `ports` is within one of `ranges`.
bool AllowsPorts(const std::vector<PortRange>& ranges, const std::vector<uint16_t>& ports);

// [calls]: declared tools that the program may call from inside its boundary, each call as a child of its own.
struct CallsSpec {
  std::vector<std::string> tools;  // sorted; empty: it calls none
  uint64_t most = 100;             // calls, refused ones included
  bool operator==(const CallsSpec&) const = default;
};
inline constexpr size_t kMostCalledTools = 64;
inline constexpr uint64_t kMostCalls = 10'000;

struct Example {
  std::string args;  // JSON, an object
  std::string why;
  Position position;
};

// A grant that was made with a dangerously_ key; shown wherever the tool is shown.
struct Danger {
  std::string key;     // "files.mount.dangerously_host"
  std::string value;   // "/etc"
  std::string reason;  // never empty
  Position position;
};

struct Manifest {
  ToolInfo tool;
  std::string input_schema;  // JSON text; always of type object
  RunSpec run;
  IsolationSpec isolation;
  Limits limits;
  uint64_t connections = 0;  // at the same time, through the egress proxy
  Workspace workspace = Workspace::kFresh;
  bool exec = false;                 // files in /workspace, /tmp and mounts can be executed
  bool overlay = false;              // read-only mounts lie behind an overlay
  std::vector<std::string> exports;  // files of /workspace that are kept: IsExportPattern
  std::vector<FileMount> mounts;
  std::vector<NetworkRule> network;
  std::vector<CredentialRule> credentials;
  ApprovalSpec approval;
  std::string output_schema;  // JSON text, or empty
  RateLimits rate;
  Nanos retry = std::chrono::seconds(10);  // rate.retry; 0: identical calls that fail never wait
  std::optional<BackgroundSpec> background;
  CallsSpec calls;
  std::vector<Example> allow_examples;
  std::vector<Example> deny_examples;

  std::vector<Danger> dangers;
  std::string file;  // as the loader called it
  // Where everything stands, by JSON Pointer ("/input/schema/properties/code"), sorted by pointer. No part of the
  // value.
  std::vector<std::pair<std::string, Position>> places;

  // The position of a pointer, or of the nearest thing around it that has one.
  Position PlaceOf(std::string_view pointer) const;
  // What the loader must open and find to be neither a link nor an alias of something broad.
  std::vector<std::pair<std::string, Position>> host_paths() const;
  // True if a person must be asked before a call with this effect.
  bool AsksForApproval() const;
  // True if a call is refused that has no idempotency key. Unless the manifest says otherwise: one
  // that cannot be taken back.
  bool NeedsIdempotencyKey() const;
};

}  // namespace coffer::policy
