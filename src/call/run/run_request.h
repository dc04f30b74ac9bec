// SPDX-License-Identifier: Apache-2.0
//
// The request of `coffer run`, after its flags were read and before anything was opened.
#pragma once

#include <string>
#include <vector>

#include "isolation/boundary.h"
#include "isolation/plan.h"
#include "policy/egress_texts.h"
#include "policy/envelope.h"

namespace coffer::call {

class AccessDecider;
class RunJournal;
class ToolsServer;

inline constexpr size_t kMostTools = 64;
inline constexpr uint64_t kMostToolCalls = 10000;

struct RunRequest {
  policy::Envelope envelope;
  std::string entry;                 // the declared tool that this is a call of; empty: none
  std::vector<std::string> command;  // CMD ARG..., or FILE ARG...
  bool script = false;               // command[0] is a FILE to bring in
  std::string out_dir;               // --out: made if missing; also in envelope.mounts at /out
  std::string project;  // --project: the host path of one of envelope.mounts (project.h)
  std::string profile;  // --profile: of the caller's run.toml, for what the flags do not say
  std::vector<std::string> project_read_only;  // relative paths that its own file protects too
  bool keep_planted = false;                   // what is planted in the project stays where it is
  std::vector<std::string> caches;             // --cache, by name (cache_dirs.h)
  bool marks_cut = true;         // output that is cut ends with a marker, for a model to read
  bool cut_is_breach = false;    // output that is cut ends the call with exit 122
  std::string session;           // --session: the id; its files are in envelope.workspace
  std::string reason;            // --reason: the purpose, in the caller's words
  std::string receipt_path;      // empty: none is written
  std::string state;             // --state: where it is recorded; empty: not named
  RunJournal* record = nullptr;  // the same, opened; null: it is not recorded
  bool quiet = false;
  bool trace = false;
  bool reads_config =
      false;  // files may name what lies in toolchains of the caller's run.toml (run_config.h)
  bool runtimes_only = false;  // the program is one of the runtimes', never another of the host
  isolation::OwnWords own;
  // A process that lives as long as its session, and the ports on which it is reached there (port_forwarder.h).
  bool background = false;
  std::vector<uint16_t> ports;
  // Ports of the session's other processes, reachable inside on the same numbers: which of `port_channels` leads there.
  struct Forward {
    uint16_t port = 0;
    uint32_t channel = 0;
  };
  std::vector<Forward> forwards;
  // Never on the wire: descriptors of seqpacket sockets. With `ports`, the first is this process's own.
  std::vector<int> port_channels;
  // --publish: a port inside that is reached on `host` of the host's loopback; 0: any that is free (published_ports.h).
  // Never on the wire: `coffer run` alone.
  struct Publish {
    uint16_t host = 0;
    uint16_t inside = 0;
  };
  std::vector<Publish> publish;
  // --allow and what belongs to it; for a declared tool, what envelope.network becomes
  // (call/warden/grant_network.h). Never on the wire.
  policy::EgressTexts egress;
  // Whether a rule judges requests, not only hosts. kPerhaps: the egress process will say.
  enum class Judging { kNone, kPerhaps, kSome };
  Judging egress_judging = Judging::kNone;
  // Who is asked for access that a rule with `ask` covers; null: it is refused at once.
  AccessDecider* access = nullptr;
  int egress_door = -1;  // to the daemon's egress role; -1: the call has a process of its own
  // --tools, or [calls] of a manifest: declared tools that the command may call (launch_tools.h), and how many calls.
  std::vector<std::string> tools;
  uint64_t tool_calls = 100;           // --tool-calls
  std::vector<std::string> tool_dirs;  // --tools-dir; empty: the usual ones. `coffer run` alone
  // Never on the wire. In the daemon: the relay's socket to the gateway (cli/relay_process.h).
  int tools_channel = -1;
  ToolsServer* tools_server = nullptr;  // not null if there are tools
  // In the daemon: the call that makes this one through the socket of its tools; empty: none.
  // Beside the request on the wire.
  std::string parent;
  uint32_t tenant = 0;  // its number in the store; 0: none
  // In the daemon: in its tenant's share of the processors (limits/cgroup/tenant_level.h). Never on the wire.
  bool shares_cycles = false;
  isolation::UidRange
      uids;  // as root: made from the tenant by the warden, or by `coffer call` (tenant_uids.h)
};

}  // namespace coffer::call
