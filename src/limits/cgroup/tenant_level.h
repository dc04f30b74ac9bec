// SPDX-License-Identifier: Apache-2.0
//
// A TenantLevel is a cgroup that the boundaries of one tenant of one daemon have in common, so that the kernel first
// shares the processors between tenants, and then within each. Around the levels of all tenants is one more of the same
// kind, the level of the daemon's calls: whatever all boundaries do together, the daemon and the rest of the host
// compete with one cgroup, not with one for each tenant (docs/adr/0082).
//
// The first runner makes its directory, and the last one removes it. Each holds a shared lock (flock) on it until its
// boundary's own cgroups are gone; a runner that then gets an exclusive one is the last. Locks end with their process,
// so a killed runner leaves at most an empty directory, for the next last runner or the sweep. The directory's mode
// lets no other user open it, so no other user can hold a lock on it. Locks are seen through mounts of one cgroup
// namespace only: a sweep from another one, of the same pid namespace, could remove a level before its first process has
// joined, and then that call fails.
//
// A level shares out cycles and nothing else. No cap is written to it: caps, kill and accounting are those of the
// boundary's own cgroups. Where boundaries have no `cpu` controller there is no level. Where they have one and the
// level cannot be made, no cgroup of the boundary is made either: a tenant gets no more by making its level fail.
#pragma once

#include <string>
#include <utility>

#include "base/result.h"
#include "base/unique_fd.h"
#include "limits/cgroup/host.h"

namespace coffer::limits {

// The directory in which levels are made; empty if boundaries get no `cpu` controller here. On v1 it has to be writable
// for us; on v2 it is the parent of the boundaries, if that distributes `cpu` already. That it should is not ours to
// decide: it would change how the kernel weighs all other cgroups there.
std::string TenantLevelParent(const CgroupHost& host);

class TenantLevel {
 public:
  TenantLevel() = default;  // none
  // `name` is a TenantLevelName or a CallsLevelName. `io` as in CgroupWants. None where the host has no place for one, and on v1 where
  // `cpu` is mounted together with `cpuset`, whose new directories take no process.
  static Result<TenantLevel> Enter(const CgroupHost& host, const std::string& name, bool io);
  TenantLevel(TenantLevel&& other) noexcept { *this = std::move(other); }
  TenantLevel& operator=(TenantLevel&& other) noexcept;
  ~TenantLevel() { Leave(); }

  const std::string& path() const { return path_; }  // empty: there is none

  // Of the level of all calls: on v1 as much weight as one process has on each processor, because there it competes with
  // processes, the daemon's threads among them. On v2 it competes with cgroups, and the kernel's default is right. A
  // weight that cannot be written leaves all calls the weight of one process.
  void WeighAsProcessors(const CgroupHost& host) const;

  // The host for Cgroup::Create: in the hierarchy of the level, the boundary's own cgroup is made below it.
  CgroupHost Below(CgroupHost host) const;

  // Ends the share in it, and removes it if no other runner has one. Nothing of the boundary may be in it any more.
  void Leave();
  // Does not wait for processes that the kernel has not taken out yet.
  void LeaveAtOnce();

 private:
  std::string path_;
  UniqueFd lock_;
};

// Removes a level that no runner uses. False if it is in use, or not empty.
bool RemoveUnusedLevel(const std::string& path);

}  // namespace coffer::limits
