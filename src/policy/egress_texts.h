// SPDX-License-Identifier: Apache-2.0
//
// What a call may reach outside, as its caller or its manifest wrote it. policy/egress_grants.h makes values of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace coffer::policy {

// Empty: nothing.
struct EgressTexts {
  std::vector<std::string> allow;      // --allow, one rule each
  std::vector<std::string> resolve;    // --resolve NAME=ADDRESS
  std::vector<std::string> addresses;  // --dangerously-allow-address, CIDRs
  std::string upstream_ca;  // --upstream-ca: PEM text of certificates that count as trusted too
  // --upstream-proxy: where hosts are dialled through ("http://proxy.example.com:3128"), and which:
  // patterns; none: all.
  std::string upstream_proxy;
  std::vector<std::string> proxied;
  // --never-send: the text of a file of values that no request may hold (policy/never_send.h).
  std::string never_send;
  // What the operator denies every tool ("**.example.net", "files.example.com:22"), and the most
  // that each rule lets one call send and receive; 0: no limit. Never from flags.
  std::vector<std::string> deny;
  uint64_t most_bytes_out = 0;
  uint64_t most_bytes_in = 0;
  // Of a declared tool: rules of its manifest (policy/egress_line.h), and how many connections at
  // once (0: the proxy's own bound). Never from flags.
  std::vector<std::string> lines;
  uint64_t connections = 0;
  // --hold: every host and port may be asked for. A connection that is asked for waits so long for
  // an answer; 0: there is no person to ask, and it is refused at once.
  bool hold = false;
  uint32_t hold_seconds = 0;
  bool of_tool = false;  // a refusal names the manifest, not a flag
  bool empty() const { return allow.empty() && lines.empty() && !hold; }
};

}  // namespace coffer::policy
