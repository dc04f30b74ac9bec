// SPDX-License-Identifier: Apache-2.0
//
// A BoundaryPlan is everything a boundary needs: the child only carries it out.
//
// It is built in the supervisor, where memory, formatting and errors are free, and read in the child, where they
// are not. Order matters and is the plan's: directories before what is inside them, mounts from the outside in.
// It has two halves. The first (everything above `call_root`) follows from the envelope alone and is complete before
// the clone. The second follows from the command; a child that shares our memory can be cloned before it is known, and
// reads it only once it was admitted. Nothing in a plan says which command will run; that is the Call (boundary.h).
#pragma once

#include <linux/filter.h>
#include <sys/types.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "isolation/landlock.h"
#include "policy/envelope.h"

namespace coffer::isolation {

inline constexpr size_t kMaxBinds = 512;

// Something of the host that becomes visible. Bound by descriptor, never by name: the child (or, with privilege,
// the supervisor) opens `host` without following links, and compares device and inode with what was checked.
struct BindMount {
  std::string host;
  std::string at;  // absolute inside
  bool directory = false;
  bool writable = false;
  bool executable = false;    // otherwise noexec
  bool device = false;        // a device node: the only mounts without nodev
  bool follow_links = false;  // system files only (libraries): their links are the host's own
  bool supervised = false;    // a privileged supervisor clones it; otherwise the child does
  bool prepared = false;      // a prepared tree, opened by the supervisor: `host` only names it
  bool placed = false;        // what it is mounted on is there already
  bool by_name =
      false;  // a file of the runtime: init mounts it by its name, in one call (RootPart::by_name_in)
  dev_t expected_dev = 0;  // 0: not compared
  ino_t expected_ino = 0;
};

struct PrivateFile {
  std::string at;
  std::string content;
  mode_t mode = 0444;
};

struct PrivateLink {
  std::string at;
  std::string target;
};

// A tmpfs of its own: the only writable places of a boundary beside writable binds.
struct PrivateTmpfs {
  std::string at;
  uint64_t bytes = 0;
  uint64_t inodes = 0;
  mode_t mode = 01777;
};

struct Rlimit {
  int resource = 0;
  uint64_t soft = 0;
  uint64_t hard = 0;
};

// What a private root holds.
struct RootPart {
  std::vector<std::string> dirs;  // parents first
  std::vector<PrivateTmpfs>
      tmpfs;  // mounted as soon as their directory exists, so that files may lie in them
  std::vector<PrivateFile> files;
  std::vector<PrivateLink> links;
  std::vector<BindMount> binds;
  std::string
      by_name_in;  // the prepared tree of all binds with `by_name`; its mounts get their attributes at once
};

struct DeviceNode {
  std::string at;
  unsigned major = 0;
  unsigned minor = 0;
};

// What a prepared tree holds (prepared_tree.h); paths start with a slash, which is the tree's own.
struct TreeContent {
  std::vector<std::string> dirs;  // parents first
  std::vector<PrivateFile> files;
  std::vector<PrivateLink> links;
  std::vector<DeviceNode> devices;
};

// A directory of the boundary that is a prepared tree.
struct PreparedPlace {
  std::string at;
  TreeContent content;
};

// Host uids of boundaries (ADR 4): first + pid of init, modulo the count. The default is a range that neither users,
// containers nor systemd hand out, as large as pid_max can be, so that no two live boundaries share a uid.
struct UidRange {
  uint32_t first = 0x70000000;
  uint32_t count = 1U << 22;
};

struct BoundaryPlan {
  policy::Level level = policy::Level::kContainer;
  uint32_t uid = 1000;       // inside (container), or on the host (process level as root)
  bool own_uid = false;      // as root: a host uid of its own; otherwise the caller's
  UidRange uids;             // which one
  bool scoped_kill = false;  // process level: kill(-1) from inside reaches only the boundary
  bool tty = false;          // give it /dev/pts and /dev/tty
  bool want_proc = true;
  bool shares_memory = false;  // init runs in our memory until its end (boundary.h)
  int clone_into_cgroup = -1;  // v2 cgroup directory, or -1
  bool prepared = false;  // /dev and the `places` are prepared trees, the first binds of call_root
  std::string hostname = "coffer";
  RootPart root;

  RootPart call_root;
  std::vector<PreparedPlace> places;  // if `prepared`, in the order of their binds
  int landlock_abi = 0;               // 0: Landlock is not used
  std::vector<LandlockRule> landlock;
  std::string landlock_canary;  // a file that no rule grants; opening it must fail
  std::span<const sock_filter> filter;
  std::vector<sock_filter> own_filter;  // where `filter` points unless it is a built-in one
  std::vector<sock_filter>
      served;  // process level: the metadata calls this allows are made by the supervisor (seccomp/attribute_server.h)
};

}  // namespace coffer::isolation
