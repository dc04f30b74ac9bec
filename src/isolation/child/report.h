// SPDX-License-Identifier: Apache-2.0
//
// What crosses between the supervisor and init, with a fixed, versioned layout.
//
// ChildReport flows out, in shared memory: how far setup came, and how the payload ended.
// BoundaryAdmission flows in, in the same memory. CallBlock flows in too: the call that a boundary
// is given, at the end of its plan (plan_block.h). Both ends check bounds and versions; the
// supervisor treats every field of a report as hostile, because a boundary may have been broken
// into by the time it is read. The payload never has these pages: execve drops them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace coffer::isolation {

inline constexpr uint32_t kReportVersion = 1;

// The rungs of child/enter.cc, in order. The first one that fails is reported with its errno.
enum class Stage : uint32_t {
  kStart,
  kNetwork,
  kAwaitIdentity,
  kIdentity,
  kCounters,
  kRootMount,
  kPopulate,
  kDevices,
  kProc,
  kAwaitPlan,  // everything above needs nothing but the envelope
  kSources,
  kPivot,
  kPopulateCall,
  kAttach,
  kPty,
  kHostname,
  kKeyring,
  kSession,
  kBoundingSet,
  kLandlockRules,
  kAwaitAdmission,  // everything above needs no cgroup
  kSealRoot,
  kJoinCgroup,
  kCgroupNamespace,
  kLoopback,
  kCapabilities,
  kNoNewPrivs,
  kLandlock,
  kSeccomp,
  kLandlockProbe,
  kDescriptors,
  kRlimits,
  kDetach,
  kReady,  // prepared; waiting for a call
  kCall,   // the call block was refused
  kSpawn,
  kTerminal,
  kWorkingDir,
  kExec,
  kRunning,
  kDone,
};
inline constexpr uint32_t kStageCount = static_cast<uint32_t>(Stage::kDone) + 1;
const char* StageName(Stage stage);

// TCP sockets in the boundary's network namespace that the supervisor holds (BoundaryPlan::port_sockets).
inline constexpr uint32_t kMostPortSockets = 32;

// Sockets in the boundary's network namespace with which a supervisor leads names to itself
// (BoundaryPlan::name_sockets). The two of netlink configure that network, which takes the powers
// that the helper has over it. A kernel may lack one.
enum class NameSocket : uint32_t { kDatagram, kRoute, kNetfilter, kStream6 };
inline constexpr uint32_t kNameSockets = 4;

struct ChildReport {
  uint32_t version;
  std::atomic<uint32_t> stage;  // the last stage entered
  int32_t error;                // errno of the stage that failed, 0 otherwise
  uint32_t item;                // which mount, file or rule the failing stage was at
  int32_t
      listener_fd;     // seccomp notification descriptor, in the descriptor table still shared then
  int32_t pty_master;  // the boundary's own terminal, likewise; -1 without --tty
  int32_t tmpfs
      [4];  // the private writable places, likewise: how full they are can be seen from outside
  int32_t pty_slave;                   // its other end, which the supervisor must close
  uint32_t proc_mounted;               // 1 if /proc is there
  uint32_t denials_unrecorded;         // 1 if the filter has no listener
  uint32_t landlock_held;              // 1 if the canary was refused
  uint32_t counters_bounded;           // 1 if EnforceCounters could do all it does
  std::atomic<uint32_t> network_made;  // 1 once the next two are final
  int32_t network;         // a descriptor of the boundary's network namespace, or -errno
  int32_t network_socket;  // one in it, in the table that is still shared: what raises its loopback
  int32_t
      ports[kMostPortSockets];  // TCP sockets in it, likewise; -1 for those that were not asked for
  int32_t names[kNameSockets];  // by NameSocket, likewise; or -errno
  uint32_t ended;               // 1 once wait_status is final
  int32_t wait_status;          // of the payload, as wait4 gives it
  int32_t exec_error;           // errno of execve, 0 if it succeeded
  int64_t entered_ns[kStageCount];  // boot-time clock at the entry of each stage
};

inline constexpr size_t kMaxTrees = 512;

// What the supervisor tells the child after clone, through shared memory.
struct BoundaryAdmission {
  // Valid once 'I' has come on the control socket.
  uint32_t groups_allowed = 0;  // setgroups works in this user namespace
  uint32_t host_uid = 0;        // process level as root: the uid to become

  // Valid once 'P' has come, and with it the plan's second half.
  int32_t stdio[3] = {-1, -1, -1};  // the payload's ends
  int32_t trees[kMaxTrees] = {};    // detached mount trees, by the index of the bind
  int32_t plan_block = -1;          // the plan's second half: a sealed memory file (plan_block.h)
  uint64_t plan_size = 0;           // in bytes

  // Valid once 'A' has come.
  int32_t ends_block = -1;  // the ends of private files, packed as a plan
  uint64_t ends_size = 0;   // 0: there are none
  uint32_t tasks_count = 0;
  int32_t tasks[8] = {};  // v1 cgroups: descriptors of `tasks` files
  uint32_t rlimit_count = 0;
  struct {
    int32_t resource;
    uint64_t soft;
    uint64_t hard;
  } rlimits[20] = {};
};

inline constexpr uint32_t kCallMagic = 0xc0ffe701;
inline constexpr uint32_t kMaxArguments = 65536;

// Header of the call block; `size` bytes of strings follow. Offsets count from the first byte after the header.
// argv and envp are `argc` + `envc` consecutive NUL-terminated strings starting at offset 0.
struct CallBlock {
  uint32_t magic;
  uint32_t size;  // bytes of strings
  uint32_t argc;
  uint32_t envc;
  uint32_t program;  // offset of the path to execute
  uint32_t cwd;      // offset of the working directory
  uint32_t tty;      // 1: stdin is a terminal that becomes the controlling one
  uint32_t reserved;
};

// True if every offset and string of the block lies inside it. `capacity` is the size of the mapping.
bool ValidCallBlock(const CallBlock* block, uint64_t capacity);

}  // namespace coffer::isolation
