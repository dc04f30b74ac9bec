// SPDX-License-Identifier: Apache-2.0
//
// A cgroup that limits the memory of the gateway alone.
//
// The gateway's own counting (memory_budget.h) refuses and recovers. At this limit the kernel kills
// the gateway, and everything ends. So the limit lies above everything that clients can fill at
// once, and the cgroup is for what is not counted: a leak, or a gateway that was broken into.
//
// The monitor makes and removes it, and the gateway enters it when it listens. On v2 the cgroup
// lies beside that of the monitor, as those of boundaries do (limits/cgroup/host.h), so settings of
// the service manager for the unit alone do not hold there. A socket stays in the cgroup that it
// was made in, and a connection in that of its listener: address filters of the unit
// (IPAddressDeny=) hold for all connections of the gateway.
//
// What a killed monitor leaves has the name of a boundary's cgroup (limits/cgroup/name.h), so the
// next warden's sweep removes it.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "base/unique_fd.h"
#include "limits/cgroup/cgroup.h"

namespace coffer::daemon {

// Of what counts, clients can fill at once: about 256 MiB of the heap, two files in memory of up to
// 1 MiB for each of 256 calls, and 208 KiB in each of 4096 unix sockets. That is 1.6 GiB.
inline constexpr uint64_t kGatewayWall = uint64_t{2} << 30;

class GatewayWall {
 public:
  // As the monitor, before the roles are started. There may be no wall: why_not().
  static GatewayWall Make(const std::string& state);

  // A file to which the gateway writes "0" to enter; -1 if there is no wall. Borrowed.
  int entrance() const;
  void CloseEntrance();
  // Why the gateway's memory is limited by its own counting alone. Empty if there is a wall, or if
  // a limit around the daemon is as tight as this one would be.
  const std::string& why_not() const { return why_not_; }
  uint64_t limit() const { return limit_; }
  // Whether the kernel killed the gateway for want of memory, here or on the whole host.
  bool WasHit() { return cgroup_.OomHappened(); }

 private:
  limits::Cgroup cgroup_;
  UniqueFd procs_;  // of v2; the cgroup itself has that of v1
  uint64_t limit_ = 0;
  std::string why_not_;
};

// Moves this process behind the wall; without an entrance it does nothing. With one thread, before
// privileges are dropped.
Status EnterGatewayWall(const UniqueFd& entrance);

}  // namespace coffer::daemon
