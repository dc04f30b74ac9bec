// SPDX-License-Identifier: Apache-2.0
#include "isolation/seccomp/shared_host.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>

#include <iterator>

#include "isolation/seccomp/argument_rules.h"

namespace coffer::isolation {
namespace {

constexpr uint64_t kWhoProcess = 1;  // IOPRIO_WHO_PROCESS, linux/ioprio.h
constexpr int kTruncateAbi = 3;
// linux/fs.h, which cannot be included beside sys/mount.h: FICLONE and FICLONERANGE write only
// where the descriptor may.
constexpr unsigned kFileIoctls[] = {0x40049409 /* FICLONE */, 0x4020940d /* FICLONERANGE */,
                                    0x80086601 /* FS_IOC_GETFLAGS */};

// Changes of metadata. The supervisor makes those that stay inside (attribute_server.h).
constexpr const char* kMetadata[] = {
    "chmod",        "fchmod",        "fchmodat",     "fchmodat2",  "chown",       "lchown",
    "fchown",       "fchownat",      "utime",        "utimes",     "futimesat",   "utimensat",
    "setxattr",     "lsetxattr",     "fsetxattr",    "setxattrat", "removexattr", "lremovexattr",
    "fremovexattr", "removexattrat", "file_setattr",
};

// Landlock does not govern these either, and their values are data. By descriptor they stay: that
// was opened for reading.
constexpr const char* kReadAttributes[] = {
    "getxattr", "lgetxattr", "getxattrat", "listxattr", "llistxattr", "listxattrat",
};

// Watches on directories that cannot be read, IPC and sockets of the host's namespaces (netlink
// shows its network), memory of a dying process.
constexpr const char* kWhole[] = {
    "inotify_init",  "inotify_init1",    "inotify_add_watch",
    "socket",        "shmget",           "shmat",
    "shmdt",         "shmctl",           "semget",
    "semop",         "semtimedop",       "semctl",
    "msgget",        "msgsnd",           "msgrcv",
    "msgctl",        "mq_open",          "mq_unlink",
    "mq_timedsend",  "mq_timedreceive",  "mq_notify",
    "mq_getsetattr", "process_mrelease",
};

// Calls whose first argument is a pid; 0 is the caller. Those that only ask are left, except for the one that answers
// with an address.
constexpr const char* kByPid[] = {
    "sched_setaffinity", "sched_setscheduler", "sched_setparam",
    "sched_setattr",     "prlimit64",          "get_robust_list",
};

Condition IsNot(uint8_t arg, uint64_t value) { return {arg, Compare::kNotEqual, value, kLowHalf}; }
Condition Equals(uint8_t arg, uint64_t value, uint64_t mask = kLowHalf) {
  return {arg, Compare::kEqual, value, mask};
}

// `flags` is the argument with the open flags.
void Opening(const char* name, uint8_t flags, int landlock_abi, std::vector<Rule>& rules) {
  // The fourth access mode opens for neither reading nor writing, so Landlock asks for no right.
  rules.push_back({name, kNotify, {Equals(flags, O_ACCMODE, O_ACCMODE)}});
  if (landlock_abi < kTruncateAbi) {
    rules.push_back({name, kNotify, {Equals(flags, O_RDONLY | O_TRUNC, O_ACCMODE | O_TRUNC)}});
  }
}

}  // namespace

void KeepToOwnProcess(int landlock_abi, Profile& profile) {
  std::vector<Rule> rules;
  for (const char* name : kMetadata) {
    rules.push_back({name, kNotify, {}});
  }
  for (const char* name : kWhole) {
    rules.push_back({name, kNotify, {}});
  }
  for (const char* name : kReadAttributes) {
    rules.push_back({name, FailWith(EOPNOTSUPP), {}});  // a file system that has none
  }
  for (const char* name : kByPid) {
    rules.push_back({name, kNotify, {IsNot(0, 0)}});
  }
  rules.push_back({"setpriority", kNotify, {IsNot(0, PRIO_PROCESS)}});
  rules.push_back({"setpriority", kNotify, {IsNot(1, 0)}});
  rules.push_back({"ioprio_set", kNotify, {IsNot(0, kWhoProcess)}});
  rules.push_back({"ioprio_set", kNotify, {IsNot(1, 0)}});
  // A descriptor's owner is signalled by the kernel, whatever process that is.
  for (const uint64_t command : {F_SETOWN, F_SETOWN_EX, F_SETSIG}) {
    rules.push_back({"fcntl", kNotify, {Equals(1, command)}});
  }
  // The owner of a file can change its flags through a descriptor that only reads (FS_IOC_SETFLAGS), and file systems
  // have more of the kind: a list of what is refused would never be complete.
  Rule ioctl{"ioctl", kNotify, {}};
  for (const unsigned command : kFileIoctls) {
    ioctl.conditions.push_back(IsNot(1, command));
  }
  for (const unsigned command : HarmlessIoctls()) {
    ioctl.conditions.push_back(IsNot(1, command));
  }
  rules.push_back(std::move(ioctl));
  Opening("open", 1, landlock_abi, rules);
  Opening("openat", 2, landlock_abi, rules);
  if (landlock_abi < kTruncateAbi) {
    rules.push_back({"truncate", kNotify, {}});
  }
  profile.rules.insert(profile.rules.begin(), std::make_move_iterator(rules.begin()),
                       std::make_move_iterator(rules.end()));
}

}  // namespace coffer::isolation
