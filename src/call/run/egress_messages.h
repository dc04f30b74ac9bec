// SPDX-License-Identifier: Apache-2.0
//
// The messages between a supervisor and the egress process (egress_process.h, daemon/egress_call.h).
//
// The grants go there once, as JSON in a sealed memory file; a supervisor writes JSON and never
// reads it. What the process did comes back in another memory file, the log, that it appends to
// while it runs: a process that is killed loses nothing that it had written, and never waits for a
// reader. The process parses bytes of the payload and of strangers, so its log is hostile input to
// the supervisor, which may be root: its size is bounded before it is read, it is a list of values
// with their lengths (base/wire_bytes.h), and what is not exactly an entry makes the whole log
// count as broken.
//
// Both kinds of process speak the same on one seqpacket socket of the call: 'K' and the CA (nothing
// if no rule needs one) out, then 'R' once it is confined; or 'E' (refused) or 'H' (this host
// cannot) and a message instead of either. 'L' and the listeners in, then the supervisor's end of
// file, and at last 'F' out: everything is written down. In between, 'Q' and a notice out about
// access that is asked for, and 'D' and a decision in.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "egress/access.h"
#include "egress/traffic.h"
#include "policy/egress_texts.h"

namespace coffer::call {

// The descriptors of a process for one call, beside stdio.
// A seqpacket socket: the listeners in, the boundary's CA out.
inline constexpr int kEgressControl = 3;
inline constexpr int kEgressGrants = 4;
inline constexpr int kEgressLog = 5;

inline constexpr size_t kMostGrantBytes = 4 << 20;
inline constexpr size_t kMostLogBytes = 1 << 20;
inline constexpr size_t kMostEntryBytes = 4096;
inline constexpr size_t kMostCaBytes = 16 << 10;

// The order to the process: the grants, and the addresses of this host, which no name may lead to.
struct EgressOrder {
  policy::EgressTexts grants;
  std::vector<std::string> own;
};
std::string EncodeGrants(const policy::EgressTexts& grants);
std::string EncodeOrder(const EgressOrder& order);
Result<EgressOrder> DecodeOrder(std::string_view text);

inline constexpr size_t kMostNoticeBytes = 2048;  // of a notice or a decision, with its first byte
std::string EncodeNotice(const egress::AccessNotice& notice);
std::optional<egress::AccessNotice> DecodeNotice(std::string_view message);
std::string EncodeDecision(const egress::AccessDecision& decision);
std::optional<egress::AccessDecision> DecodeDecision(std::string_view message);

// One connection or request, when it is over.
using EgressEntry = egress::Traffic;

// At the start of the log, rewritten in place: the sums of the entries that did not fit.
struct EgressLogHead {
  uint64_t omitted = 0;
  uint64_t bytes_out = 0;
  uint64_t bytes_in = 0;
};

// Its length and its values, at most kMostEntryBytes: long texts are cut.
std::string EncodeEntry(const EgressEntry& entry);

struct EgressLog {
  EgressLogHead head;
  std::vector<EgressEntry> entries;
  bool broken = false;  // not everything could be read
};
EgressLog DecodeLog(std::string_view text);

}  // namespace coffer::call
