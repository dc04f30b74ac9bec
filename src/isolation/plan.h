// SPDX-License-Identifier: Apache-2.0
//
// A BoundaryPlan is everything a boundary needs: the child only carries it out.
//
// It is built in the supervisor, where memory, formatting and errors are free, and read in the child, where they
// are not. Order matters: directories before what is inside them, mounts from the outside in. It has two halves. The
// BoundaryStart follows from the envelope alone and is complete before the clone: init reads it from its copy of the
// memory. The rest follows from the command, and may be made while init works on the first half (child/plan_block.h).
// Nothing in a plan says which command will run: that is the Call (boundary.h).
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

// Something of the host that becomes visible: what OpenHostPath examined (host_path.h), or one of a few devices.
// With privilege the supervisor mounts the examined descriptor itself. Without, the child opens `host` again inside
// its own mount namespace, without following links, and refuses anything but the same device, inode and type.
struct BindMount {
  std::string host;
  std::string at;  // absolute inside
  bool directory = false;
  bool writable = false;
  bool executable = false;  // otherwise noexec
  bool supervised = false;  // a privileged supervisor clones it; otherwise the child does
  bool id_mapped = false;   // supervised: files of the source's owner belong to the boundary's user
  int source = -1;          // the examined descriptor, in the table of the supervisor
  dev_t expected_dev = 0;
  ino_t expected_ino = 0;
  // The inode that it covers in another mount (mount_place.h); 0: whatever is there, or a place of its own.
  dev_t place_dev = 0;
  ino_t place_ino = 0;
  dev_t device = 0;  // not 0: a character device with this number, instead of a file or directory
  bool covers = false;         // a fifo in another mount
  bool link = false;           // a link, mounted on itself so that it cannot be replaced
  bool usable_device = false;  // a device that can be opened: the only mounts without nodev
  // Not empty: an overlay lies on top of it (child/overlay.h), with these two directories of RootPart::overlays.
  std::string overlay_upper;
  std::string overlay_work;
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

// A private file that lies over a file of the host: `from` is seen at `at`, and the host's own file is not.
struct FileCover {
  std::string from;  // absolute inside, as `at`
  std::string at;
};

// A tmpfs of its own: the only writable places of a boundary beside writable binds.
struct PrivateTmpfs {
  std::string at;
  uint64_t bytes = 0;
  uint64_t inodes = 0;
  mode_t mode = 01777;
  bool executable = false;
};

// A kernel-wide name of /proc that is shown: `from` lies over `at`.
struct ProcCover {
  std::string from;  // absolute inside
  std::string at;
  bool follows_clock = false;  // with a clock of its own the kernel's file is right
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
  std::vector<std::string> hidden;  // directories in a bind, each covered by an empty one
  std::vector<FileCover> covers;    // over files in a bind, where the host has them
  std::string overlays;             // the tmpfs with the upper layers, sealed at the end; or empty
};

// Host uids of boundaries (ADR 4): first + pid of the supervisor, modulo the count. The default is a range that neither
// users, containers nor systemd hand out, as large as pid_max can be, so that no two live boundaries share a uid.
struct UidRange {
  uint32_t first = 0x70000000;
  uint32_t count = 1U << 22;
};

struct BoundaryStart {
  policy::Level level = policy::Level::kContainer;
  uint32_t uid = 1000;       // inside (container), or on the host (process level as root)
  bool own_uid = false;      // as root: a host uid of its own; otherwise the caller's
  UidRange uids;             // which one
  bool scoped_kill = false;  // process level: kill(-1) from inside reaches only the boundary
  bool tty = false;          // stdio is a terminal on its own /dev/pts
  bool want_proc = true;
  std::vector<ProcCover> proc;
  std::string clock_offsets;   // child/clock.h
  int clone_into_cgroup = -1;  // v2 cgroup directory, or -1
  const char* cgroup_type =
      nullptr;  // its own cgroup at /sys/fs/cgroup: "cgroup2", or "cgroup" for v1's memory
  uint32_t port_sockets = 0;  // how many TCP sockets of its network the supervisor gets
  bool name_sockets = false;  // and those of child/report.h's NameSocket
  std::string hostname = "coffer";
  RootPart root;
};

struct BoundaryPlan : BoundaryStart {
  RootPart call_root;
  int landlock_abi = 0;  // 0: Landlock is not used
  std::vector<LandlockRule> landlock;
  std::string landlock_canary;  // a file that no rule grants; opening it must fail
  std::span<const sock_filter> filter;
  std::vector<sock_filter> own_filter;  // where `filter` points unless it is a built-in one
  // Instead of `filter` where another sandbox around us answers notifications: nothing is left to
  // the supervisor. Empty if there is no such sandbox.
  std::vector<sock_filter> unserved_filter;
  bool serve_connect = false;  // seccomp/connect_server.h
  bool serve_sysinfo = false;  // seccomp/sysinfo_server.h
  bool serve_locks = false;    // seccomp/lock_server.h
  std::vector<sock_filter>
      served;  // process level: the metadata calls this allows are made by the supervisor (seccomp/attribute_server.h)
};

}  // namespace coffer::isolation
