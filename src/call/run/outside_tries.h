// SPDX-License-Identifier: Apache-2.0
//
// What a program tried to reach outside without a name, or not over TCP: denials for the receipt, and the line for stderr.
//
// The supervisor makes the connects of calls that are shown directories of the host, so it knows those addresses
// (isolation/seccomp/connect_server.h). Of everything else the kernel counts how often there was no route
// (isolation/unrouted_sends.h): datagrams without a connection, and connects that the kernel makes by itself. Those are one
// denial with a count and no address. Datagrams to the addresses of names are another one (isolation/name_datagrams.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "audit/receipt.h"
#include "call/run/launch.h"
#include "call/run/run_request.h"
#include "isolation/seccomp/notify.h"

namespace coffer::call {

class OutsideTries {
 public:
  // Reading the kernel's counters takes some 20 us. A call that says nothing of them need not.
  enum class Counters : uint8_t { kRead, kLeave };

  // When everything inside has ended, and `denials` has taken its late refusals.
  OutsideTries(const RunRequest& request, const Launched& launched,
               const isolation::DenialRecorder& denials, Counters counters);

  const std::vector<audit::Denial>& denials() const { return denials_; }

  // The kernel's counters were opened, and cannot be read.
  bool unreadable() const { return unreadable_; }

  // One line for a call that reaches hosts by their names. Nothing: it tried no address.
  std::optional<std::string> Note() const;

  // Whether this denied call is one of them, and no matter of the filter.
  static bool IsOne(const isolation::DeniedCall& denied);

 private:
  bool has_network_;
  bool unreadable_ = false;
  std::vector<audit::Denial> denials_;
};

// The incident that a denied call is, which no flood of other denials may hide: the name of the system call, or the kind
// of the destination. Nothing: it is a denial like any other.
std::optional<std::string> IncidentGroupOf(const isolation::DeniedCall& denied);

}  // namespace coffer::call
