// SPDX-License-Identifier: Apache-2.0
//
// Finds out whether this host allows namespaces by making some, and which rule of the host forbids them if it does not.
//
// Used by `coffer doctor`, and by the launcher after a container could not be made. An ordinary call never probes.
#pragma once

#include <string>

namespace coffer::isolation {

struct HostSupport {
  bool containers = false;  // every namespace can be made and a file system mounted in it
  std::string cause;        // if not: which rule of the host forbids it
  std::string fix;          // and what would allow it
  int landlock_abi = 0;
  bool seccomp = false;
  bool seccomp_notify = false;  // refused calls can be recorded (Linux 5.0)
  bool duplicates = false;      // the supervisor may duplicate a payload's descriptors (Linux 5.6)
  bool cgroup_clone = false;    // clone3 (Linux 5.3); CLONE_INTO_CGROUP needs 5.7
  std::string kernel;           // release
  std::string machine;
};

HostSupport ProbeHost();

// Cause and fix for a container that failed with this errno, from the settings below `proc_sys` (/proc/sys).
void ExplainContainer(int error, bool root, const std::string& proc_sys, HostSupport& support);

}  // namespace coffer::isolation
