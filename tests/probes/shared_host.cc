// SPDX-License-Identifier: Apache-2.0
//
// What a process can do to files and processes of its own user without opening them for writing: metadata, scheduling,
// limits, watches, leases; and pools of the host that no memory cgroup counts.
#include <fcntl.h>
#include <ifaddrs.h>
#include <linux/aio_abi.h>
#include <mqueue.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fanotify.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <utime.h>

#include "probe.h"

namespace probe {
namespace {

constexpr int kNobodyElse = 0666;
constexpr unsigned long kGetFlags = 0x80086601;  // FS_IOC_GETFLAGS
constexpr unsigned long kSetFlags = 0x40086602;  // FS_IOC_SETFLAGS
constexpr int kNodump = 0x40;                    // FS_NODUMP_FL, which every owner may set
constexpr int kWhoProcess = 1;                   // IOPRIO_WHO_PROCESS
constexpr int kIdleClass = 3 << 13;

// `metadata PATH`: every call by name, and the ways to truncate without opening for writing.
int Metadata(int argc, char** argv) {
  if (argc < 2) {
    return 2;
  }
  const char* path = argv[1];
  const timespec past[2] = {{1000, 0}, {1000, 0}};
  const timeval older[2] = {{2000, 0}, {2000, 0}};
  Verdict("fchmodat", Call(SYS_fchmodat, AT_FDCWD, path, kNobodyElse));
#ifdef SYS_fchmodat2
  Verdict("fchmodat2", Call(SYS_fchmodat2, AT_FDCWD, path, kNobodyElse, 0));
#endif
  Verdict("fchownat", Call(SYS_fchownat, AT_FDCWD, path, getuid(), getgid(), 0));
  Verdict("fchownat-link",
          Call(SYS_fchownat, AT_FDCWD, path, getuid(), getgid(), AT_SYMLINK_NOFOLLOW));
  Verdict("utimensat", Call(SYS_utimensat, AT_FDCWD, path, past, 0));
  Verdict("utimensat-now", Call(SYS_utimensat, AT_FDCWD, path, nullptr, 0));
  Verdict("setxattr", Call(SYS_setxattr, path, "user.probe", "x", 1UL, 0));
  Verdict("lsetxattr", Call(SYS_lsetxattr, path, "user.probe", "x", 1UL, 0));
  Verdict("lremovexattr", Call(SYS_lremovexattr, path, "user.probe"));
  Call(SYS_setxattr, path, "user.probe", "x", 1UL, 0);
  Verdict("removexattr", Call(SYS_removexattr, path, "user.probe"));
  Verdict("truncate", Call(SYS_truncate, path, 0L));
  Verdict("open-truncate", Call(SYS_openat, AT_FDCWD, path, O_RDONLY | O_TRUNC | O_CLOEXEC));
  Verdict("open-neither", Call(SYS_openat, AT_FDCWD, path, O_ACCMODE | O_TRUNC | O_CLOEXEC));
#ifdef SYS_chmod
  Verdict("chmod", Call(SYS_chmod, path, kNobodyElse));
  Verdict("chown", Call(SYS_chown, path, getuid(), getgid()));
  Verdict("lchown", Call(SYS_lchown, path, getuid(), getgid()));
  const utimbuf oldest = {3000, 3000};
  Verdict("utime", Call(SYS_utime, path, &oldest));
  Verdict("utimes", Call(SYS_utimes, path, older));
  Verdict("futimesat", Call(SYS_futimesat, AT_FDCWD, path, older));
#else
  (void)older;
#endif
  return 0;
}

// `metadata-fd PATH`: the same through descriptors that may not write: for reading, for nothing (O_PATH), and with the
// access mode that is neither.
int MetadataFd(int argc, char** argv) {
  if (argc < 2) {
    return 2;
  }
  const timespec past[2] = {{1000, 0}, {1000, 0}};
  struct Way {
    const char* name;
    int flags;
  };
  for (const Way& way : {Way{"read", O_RDONLY}, {"path", O_PATH}, {"neither", O_ACCMODE}}) {
    const int fd = open(argv[1], way.flags | O_CLOEXEC);
    char label[64];
    const auto verdict = [&](const char* what, long answer) {
      const int error_number = errno;
      snprintf(label, sizeof label, "%s-%s", way.name, what);
      errno = error_number;
      Verdict(label, answer);
    };
    if (fd < 0) {
      verdict("open", -1);
      continue;
    }
    if ((way.flags & O_PATH) == 0) {
      verdict("fchmod", Call(SYS_fchmod, fd, kNobodyElse));
      verdict("fchown", Call(SYS_fchown, fd, getuid(), getgid()));
      verdict("futimens", Call(SYS_utimensat, fd, nullptr, past, 0));
      verdict("fsetxattr", Call(SYS_fsetxattr, fd, "user.probe", "x", 1UL, 0));
      verdict("fremovexattr", Call(SYS_fremovexattr, fd, "user.probe"));
      int flags = 0;
      ioctl(fd, kGetFlags, &flags);
      flags ^= kNodump;
      verdict("setflags", Call(SYS_ioctl, fd, kSetFlags, &flags));
    }
    char name[64];
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    verdict("chmod-by-proc", Call(SYS_fchmodat, AT_FDCWD, name, kNobodyElse));
    verdict("chown-empty", Call(SYS_fchownat, fd, "", getuid(), getgid(), AT_EMPTY_PATH));
    verdict("utimensat-empty", Call(SYS_utimensat, fd, "", past, AT_EMPTY_PATH));
    close(fd);
  }
  return 0;
}

// `attribute PATH NAME`: reads an extended attribute, by path and through descriptors that the file does not have to be
// opened for reading for.
int Attribute(int argc, char** argv) {
  if (argc < 3) {
    return 2;
  }
  char value[256] = {};
  const auto verdict = [&](const char* label, long size) {
    if (size < 0) {
      Refused(label, errno);
    } else {
      Open(label, "%.*s", static_cast<int>(size), value);
    }
  };
  verdict("getxattr", Call(SYS_getxattr, argv[1], argv[2], value, sizeof value));
  verdict("lgetxattr", Call(SYS_lgetxattr, argv[1], argv[2], value, sizeof value));
  verdict("listxattr", Call(SYS_listxattr, argv[1], value, sizeof value));
  verdict("llistxattr", Call(SYS_llistxattr, argv[1], value, sizeof value));
  const int neither = open(argv[1], O_ACCMODE | O_CLOEXEC);
  verdict("fgetxattr-neither", Call(SYS_fgetxattr, neither, argv[2], value, sizeof value));
  char name[64];
  snprintf(name, sizeof name, "/proc/self/fd/%d", open(argv[1], O_PATH | O_CLOEXEC));
  verdict("getxattr-by-proc", Call(SYS_getxattr, name, argv[2], value, sizeof value));
  return 0;
}

// `reschedule PID`: another process's turn at the processor and the disk, and its limits.
int Reschedule(int argc, char** argv) {
  if (argc < 2) {
    return 2;
  }
  const pid_t pid = atoi(argv[1]);
  const sched_param zero = {};
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(0, &one);
  struct {
    uint32_t size = 48, policy = SCHED_BATCH;
    uint64_t flags = 0;
    int32_t nice = 6;
    uint32_t priority = 0;
    uint64_t runtime = 0, deadline = 0, period = 0;
  } attributes;
  Verdict("setpriority", Call(SYS_setpriority, PRIO_PROCESS, pid, 5));
  Verdict("sched_setaffinity", Call(SYS_sched_setaffinity, pid, sizeof one, &one));
  Verdict("sched_setscheduler", Call(SYS_sched_setscheduler, pid, SCHED_BATCH, &zero));
  Verdict("sched_setparam", Call(SYS_sched_setparam, pid, &zero));
  Verdict("sched_setattr", Call(SYS_sched_setattr, pid, &attributes, 0));
  Verdict("ioprio_set", Call(SYS_ioprio_set, kWhoProcess, pid, kIdleClass));
  struct {
    uint64_t soft, hard;
  } limit = {};
  Verdict("prlimit-read", Call(SYS_prlimit64, pid, RLIMIT_CORE, nullptr, &limit));
  limit = {64, 64};
  Verdict("prlimit-write", Call(SYS_prlimit64, pid, RLIMIT_NOFILE, &limit, nullptr));
  return 0;
}

// `reschedule-all PID`: everything of the user, and everything of another's process group.
int RescheduleAll(int argc, char** argv) {
  if (argc < 2) {
    return 2;
  }
  const pid_t group = atoi(argv[1]);
  Verdict("setpriority-group", Call(SYS_setpriority, PRIO_PGRP, group, 7));
  Verdict("ioprio-group", Call(SYS_ioprio_set, 2, group, kIdleClass));
  Verdict("setpriority-user", Call(SYS_setpriority, PRIO_USER, 0, 9));
  Verdict("ioprio-user", Call(SYS_ioprio_set, 3, getuid(), kIdleClass));
  return 0;
}

// `own-schedule`: the same for oneself, which every program may.
int OwnSchedule(int, char**) {
  const sched_param zero = {};
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(0, &one);
  Verdict("setpriority", Call(SYS_setpriority, PRIO_PROCESS, 0, 5));
  Verdict("sched_setaffinity", Call(SYS_sched_setaffinity, 0, sizeof one, &one));
  Verdict("sched_setscheduler", Call(SYS_sched_setscheduler, 0, SCHED_BATCH, &zero));
  Verdict("ioprio_set", Call(SYS_ioprio_set, kWhoProcess, 0, kIdleClass));
  uint64_t limit[2] = {};
  Verdict("prlimit", Call(SYS_prlimit64, 0, RLIMIT_NOFILE, nullptr, limit));
  return 0;
}

// `meddle PID`: everything else that names another process. Arguments are such that nothing comes of it.
int Meddle(int argc, char** argv) {
  if (argc < 2) {
    return 2;
  }
  const pid_t pid = atoi(argv[1]);
  char byte = 0;
  iovec vector = {&byte, 1};
  unsigned long nodes = 1;
  void* head = nullptr;
  size_t length = 0;
  Verdict("kill", Call(SYS_kill, pid, 0));
  Verdict("tgkill", Call(SYS_tgkill, pid, pid, 0));
  siginfo_t info = {};
  info.si_code = SI_QUEUE;
  Verdict("rt_sigqueueinfo", Call(SYS_rt_sigqueueinfo, pid, 0, &info));
  ReachVerdict("process_vm_readv",
               Call(SYS_process_vm_readv, pid, &vector, 1UL, &vector, 1UL, 0UL));
  ReachVerdict("process_vm_writev",
               Call(SYS_process_vm_writev, pid, &vector, 1UL, &vector, 0UL, 0UL));
  ReachVerdict("kcmp", Call(SYS_kcmp, pid, pid, 0, 0UL, 0UL));
  ReachVerdict("move_pages", Call(SYS_move_pages, pid, 0UL, nullptr, nullptr, nullptr, 0));
  ReachVerdict("migrate_pages", Call(SYS_migrate_pages, pid, 1UL, &nodes, &nodes));
  Verdict("get_robust_list", Call(SYS_get_robust_list, pid, &head, &length));
  const long handle = Verdict("pidfd_open", Call(SYS_pidfd_open, pid, 0));
  if (handle < 0) {
    return 0;
  }
  ReachVerdict("pidfd_send_signal", Call(SYS_pidfd_send_signal, handle, 0, nullptr, 0));
  ReachVerdict("pidfd_getfd", Call(SYS_pidfd_getfd, handle, 0, 0));
  ReachVerdict("process_madvise", Call(SYS_process_madvise, handle, &vector, 0UL, 21, 0));
  ReachVerdict("process_mrelease", Call(SYS_process_mrelease, handle, 0));
  return 0;
}

// `own-signal PID`: a pipe that signals another process when it fills.
int OwnSignal(int argc, char** argv) {
  int ends[2];
  if (argc < 2 || pipe(ends) != 0) {
    return 2;
  }
  Verdict("f_setown", Call(SYS_fcntl, ends[0], F_SETOWN, atoi(argv[1])));
  Verdict("f_setsig", Call(SYS_fcntl, ends[0], F_SETSIG, SIGUSR1));
  return 0;
}

// `watch DIR`: being told what others do in a directory.
int Watch(int argc, char** argv) {
  if (argc < 2) {
    return 2;
  }
  const long instance = Verdict("inotify_init1", Call(SYS_inotify_init1, IN_CLOEXEC));
  Verdict("inotify_add_watch", Call(SYS_inotify_add_watch, instance, argv[1], IN_ALL_EVENTS));
  Verdict("fanotify_init", Call(SYS_fanotify_init, 0x200 /* FAN_REPORT_FID */, O_RDONLY));
  return 0;
}

// `hold FILE`: what a reader of FILE can do to its writers.
int Hold(int argc, char** argv) {
  if (argc < 2) {
    return 2;
  }
  const int file = open(argv[1], O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    Refused("open", errno);
    return 0;
  }
  Verdict("lease", Call(SYS_fcntl, file, F_SETLEASE, F_RDLCK));
  Verdict("lease-high", Call(SYS_fcntl, file, (1UL << 32) | F_SETLEASE, F_RDLCK));
  Call(SYS_fcntl, file, F_SETLEASE, F_UNLCK);
  const int here = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  Verdict("dnotify", Call(SYS_fcntl, here, F_NOTIFY, 2 /* DN_MODIFY */));
  Verdict("syncfs", Call(SYS_syncfs, file));
  return 0;
}

// `pools`: memory and numbers that belong to the whole host or the whole user.
int Pools(int, char**) {
  constexpr size_t kHuge = 2UL << 20;
  const auto mapped = [](int flags) {
    void* at =
        mmap(nullptr, kHuge, PROT_READ | PROT_WRITE, flags | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return at == MAP_FAILED ? -1L : 0L;
  };
  // Without huge pages in the pool the kernel says ENOMEM, ENOSPC or ENOENT: then its own code did run.
  ReachVerdict("mmap-huge", mapped(MAP_HUGETLB));
  ReachVerdict("mmap-huge-2m", mapped(MAP_HUGETLB | (21 << MAP_HUGE_SHIFT)));
  ReachVerdict("memfd-huge", Call(SYS_memfd_create, "x", MFD_HUGETLB));
  ReachVerdict("memfd-huge-2m", Call(SYS_memfd_create, "x", MFD_HUGETLB | (21U << MAP_HUGE_SHIFT)));
  const long segment = ReachVerdict(
      "shmget-huge", Call(SYS_shmget, IPC_PRIVATE, kHuge, IPC_CREAT | SHM_HUGETLB | 0600));
  if (segment >= 0) {
    shmctl(static_cast<int>(segment), IPC_RMID, nullptr);
  }
  aio_context_t context = 0;
  if (ReachVerdict("io_setup", Call(SYS_io_setup, 128, &context)) == 0) {
    Call(SYS_io_destroy, context);
  }
  int ends[2];
  if (pipe(ends) == 0) {
    ReachVerdict("pipe-size", Call(SYS_fcntl, ends[0], F_SETPIPE_SZ, 1 << 20));
  }
  void* const page =
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  Verdict("merged-page", Call(SYS_madvise, page, 4096UL, MADV_MERGEABLE));
  return 0;
}

// `ipc-leave KEY`: objects of System V and POSIX that stay when their maker ends.
int IpcLeave(int argc, char** argv) {
  const key_t key = argc > 1 ? static_cast<key_t>(strtol(argv[1], nullptr, 0)) : IPC_PRIVATE;
  Verdict("shmget", shmget(key, 4096, IPC_CREAT | 0600));
  Verdict("semget", semget(key, 1, IPC_CREAT | 0600));
  Verdict("msgget", msgget(key, IPC_CREAT | 0600));
  char name[32];
  snprintf(name, sizeof name, "/coffer-%d", key);
  Verdict("mq_open", mq_open(name, O_CREAT | O_RDWR, 0600, nullptr));
  return 0;
}

int IpcRemove(int argc, char** argv) {
  const key_t key = argc > 1 ? static_cast<key_t>(strtol(argv[1], nullptr, 0)) : IPC_PRIVATE;
  Verdict("shm", shmctl(shmget(key, 0, 0), IPC_RMID, nullptr));
  Verdict("sem", semctl(semget(key, 0, 0), 0, IPC_RMID));
  Verdict("msg", msgctl(msgget(key, 0), IPC_RMID, nullptr));
  char name[32];
  snprintf(name, sizeof name, "/coffer-%d", key);
  Verdict("mq", mq_unlink(name));
  return 0;
}

// `netlink`: the interfaces that the kernel tells of by netlink, and through a socket that is connected to nothing.
int Netlink(int, char**) {
  const long asked = Verdict("netlink", socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0));
  ifaddrs* list = nullptr;
  if (asked >= 0 && getifaddrs(&list) == 0) {
    for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
      Say("interface %s", entry->ifa_name);
    }
    freeifaddrs(list);
  }
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) {
    Refused("socketpair", errno);
    return 0;
  }
  for (int index = 1; index <= 16; ++index) {
    ifreq request = {};
    request.ifr_ifindex = index;
    if (ioctl(pair[0], SIOCGIFNAME, &request) == 0) {
      Say("interface %s", request.ifr_name);
    }
  }
  Say("done");
  return 0;
}

constexpr Verb kVerbs[] = {
    {"metadata", Metadata, "PATH"},
    {"metadata-fd", MetadataFd, "PATH"},
    {"attribute", Attribute, "PATH NAME"},
    {"reschedule", Reschedule, "PID"},
    {"reschedule-all", RescheduleAll, "GROUP"},
    {"own-schedule", OwnSchedule, ""},
    {"meddle", Meddle, "PID"},
    {"own-signal", OwnSignal, "PID"},
    {"watch", Watch, "DIR"},
    {"hold", Hold, "FILE"},
    {"pools", Pools, ""},
    {"netlink", Netlink, ""},
    {"ipc-leave", IpcLeave, "KEY"},
    {"ipc-remove", IpcRemove, "KEY"},
};

}  // namespace

std::span<const Verb> SharedHostVerbs() { return kVerbs; }

}  // namespace probe
