// SPDX-License-Identifier: Apache-2.0
//
// The receipt: one JSON document per call, also for calls that were refused, failed or killed.
//
// The field names are a public contract (schema "coffer.receipt/1") and all of them are always present; those of
// surfaces that took no part are empty. Nothing here decides or measures: the code that ran the call fills the struct.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "store/call_identity.h"

namespace coffer::audit {

// The name under which calls of `coffer run` are recorded, and can be switched off. No manifest has it.
inline constexpr std::string_view kRunTool = "run";

// Where the log has a receipt.
struct LogPosition {
  uint64_t index = 0;  // of the record: its seq
  uint64_t size = 0;   // records in the log, as of the checkpoint that covers it
  std::string root;    // of those, hex
};

struct Denial {
  std::string surface;    // "isolation"
  std::string operation;  // "syscall"
  std::string target;     // "unshare(CLONE_NEWUSER)"
  std::string rule;       // "seccomp.default"
  std::string reason;
  std::string fix;
  uint64_t count = 1;
};

struct CapUse {
  uint64_t cap = 0;
  std::optional<uint64_t> used;  // nothing measured it
  std::string unit;              // "ns", "bytes", "count"
  bool breached = false;
  bool enforced = false;  // false: sampled, and `used` is a lower bound
};

// A layer that is not there, why, and what stood in for it.
struct MissingLayer {
  std::string layer;
  std::string reason;
  std::string stand_in;
};

// A port inside that was reached on the host's loopback (--publish).
struct PublishedPort {
  uint64_t host = 0;
  uint64_t inside = 0;
};

// Connections or requests that the call made, or tried to (--allow). Equal ones are one entry, with their sums.
struct NetworkUse {
  std::string host;  // "others" for those beyond the list
  uint64_t port = 0;
  std::string method;    // empty: not looked at (a spliced connection)
  std::string path;      // likewise
  std::string decision;  // "allow" or "deny"
  std::string rule;      // that allowed it; empty: none did
  std::string error;     // why an allowed one failed; empty: it did not
  uint64_t bytes_out = 0;
  uint64_t bytes_in = 0;
  Nanos duration{0};
  uint64_t count = 1;
};

// Access that the call asked for while it ran (--hold, network.allow.ask), and what became of it.
struct AccessRequest {
  uint64_t id = 0;  // of this call's requests, from 1
  std::string host;
  uint64_t port = 0;
  std::string opens;  // what a yes opens, as --allow would write it
  Nanos requested_at{0};
  std::string decision;  // "granted", "denied", "unanswered" or "withdrawn"
  std::string by;        // who decided; empty: no person did
  Nanos decided_at{0};
  uint64_t minutes = 0;  // granted: 0 is for the call
  std::string ended;     // granted: "time" or "call"; otherwise empty
  Nanos ended_at{0};     // likewise
};

// Something of the host that the call was shown.
struct BoundPath {
  std::string path;
  std::string path_class;  // "system" or "caller"
  std::string why;         // "program", "library", "mount", ...
  uint64_t count = 1;      // of files; more than one only where they are summarised
};

// A file of /workspace that is kept with the call (files.exports of its manifest).
struct ExportedFile {
  std::string path;  // relative to /workspace
  uint64_t size = 0;
  std::string sha256;
};

// Files that were to be exported, and are not for one reason.
struct LeftOut {
  std::string why;
  uint64_t count = 0;
  std::string path;  // of the first; printable ASCII
};

struct Receipt {
  store::CallIdentity identity{.tool = std::string(kRunTool)};
  std::string tool_version;   // empty: no manifest
  std::string manifest_hash;  // empty: no manifest
  std::string envelope_id;
  std::string effect = "irreversible";
  std::string blast_radius;
  std::string args_hash;
  std::vector<std::string> args_redacted;
  std::string code_hash;
  Nanos requested_at{0};
  Nanos started_at{0};
  Nanos finished_at{0};
  Nanos duration{0};

  std::string level;
  std::vector<std::string> layers;
  std::vector<std::string> floor;
  std::vector<MissingLayer> missing;
  std::vector<std::string> runtimes;
  std::string program;  // the executed file: its path inside; empty if the call did not come so far
  std::vector<PublishedPort> published;
  bool exec = false;     // files in /workspace, /tmp and mounts could be executed
  bool overlay = false;  // read-only directories of the host lay behind an overlay
  std::vector<BoundPath> bound;
  std::vector<std::string>
      planted;  // paths in a project that a program on the host would run (--project)
  std::vector<ExportedFile> exported;
  std::vector<LeftOut> left_out;

  std::vector<std::pair<std::string, CapUse>> limits;
  std::vector<NetworkUse> network;
  std::vector<AccessRequest> access;
  std::vector<Denial> denials;
  bool denials_recorded = true;
  std::vector<std::pair<std::string, uint64_t>> syscalls_denied;

  uint64_t output_bytes = 0;
  uint64_t output_produced = 0;
  bool output_truncated = false;
  std::string output_sha256;
  std::string stderr_sha256;
  std::string result_sha256;      // of the result as the store keeps it; empty: it keeps none
  std::string transcript_sha256;  // the same of the transcript (call/transcript.h)

  std::vector<std::string> incidents;  // sentences

  // A dry run. Not in the text, where policy.dry_run says it of one that would be allowed.
  bool rehearsed = false;
  std::string outcome = "error";  // success | error | denied | gated | terminated | unknown
  std::string error_class;        // empty: no error
  std::string error_message;
  std::optional<int> exit_code;
  std::optional<int> exit_signal;
  std::vector<std::pair<std::string, int64_t>> steps_us;
};

// Not sealed: `log` and `signature` are empty until it is in the log (audit/seal.h).
std::string FormatReceipt(const Receipt& receipt);

// Reads back what FormatReceipt wrote; refuses anything else. Format(Parse(Format(r))) is Format(r).
// The seal of a sealed one is not looked at and not kept.
Result<Receipt> ParseReceipt(std::string_view text);

}  // namespace coffer::audit
