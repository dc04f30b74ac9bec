// SPDX-License-Identifier: Apache-2.0
//
// The three profiles, as one table of names. Each group says what it is for and from which profile on it is allowed:
//
//   strict    compute, files, threads, child processes and pipes; no sockets
//   default   what Python, Node, Bash, Perl, Go, Rust and the JVM need, and nothing that is only for administrators
//   compat    older or stranger programs: message queues, sandboxes that nest their own seccomp or Landlock
//   never     refused by all three, and named so that a refusal is a decision and not an oversight
//
// Names exist for aarch64 and x86_64 together; one that an architecture lacks has no effect there. Calls that are
// allowed only with some arguments are in argument_rules.cc and in no group here. What is in neither place is refused.
#include <algorithm>
#include <string_view>

#include "isolation/seccomp/argument_rules.h"
#include "isolation/seccomp/profile.h"

namespace coffer::isolation {
namespace {

struct Group {
  Tier from;
  std::string_view names;  // separated by spaces
};

constexpr Group kGroups[] = {
    // Bytes in and out of descriptors that are already open.
    {Tier::kStrict,
     "read readv pread64 preadv preadv2 write writev pwrite64 pwritev pwritev2 lseek sendfile "
     "copy_file_range "
     "fsync fdatasync sync_file_range fadvise64 readahead fallocate ftruncate truncate flock"},

    // Making, copying and closing descriptors. memfd_create (argument_rules.cc) stays although it gives executable
    // memory without a file: JITs and multiprocessing use it, and what runs from it is under this same filter.
    {Tier::kStrict, "close close_range dup dup2 dup3 pipe pipe2 eventfd eventfd2"},

    // Waiting for descriptors.
    {Tier::kStrict,
     "poll ppoll select pselect6 epoll_create epoll_create1 epoll_ctl epoll_wait epoll_pwait "
     "epoll_pwait2 "
     "signalfd signalfd4 timerfd_create timerfd_settime timerfd_gettime"},

    // Looking at files and directories.
    {Tier::kStrict,
     "stat lstat fstat newfstatat statx access faccessat faccessat2 readlink readlinkat getcwd "
     "chdir fchdir "
     "getdents getdents64 statfs fstatfs umask cachestat getxattr lgetxattr fgetxattr listxattr "
     "llistxattr flistxattr"},

    // Changing names and times. What can be reached is decided by the mount table and Landlock.
    {Tier::kStrict,
     "rename renameat link linkat symlink symlinkat unlink unlinkat rmdir utime utimes utimensat "
     "futimesat"},

    // Owners and attributes. Without capabilities the kernel refuses all that matters.
    {Tier::kDefault,
     "chown lchown fchown fchownat setxattr lsetxattr fsetxattr removexattr lremovexattr "
     "fremovexattr"},

    // Memory. mmap is in argument_rules.cc.
    {Tier::kStrict,
     "brk munmap mremap mprotect madvise msync mincore mlock mlock2 munlock mlockall "
     "munlockall "
     "pkey_alloc pkey_free pkey_mprotect membarrier mseal map_shadow_stack"},

    // Threads and locks.
    {Tier::kStrict,
     "futex futex_waitv futex_wait futex_wake futex_requeue set_robust_list get_robust_list "
     "set_tid_address rseq "
     "gettid sched_yield sched_getaffinity sched_setaffinity sched_getscheduler sched_getparam "
     "sched_getattr "
     "sched_get_priority_max sched_get_priority_min sched_rr_get_interval getcpu arch_prctl"},

    // Starting, waiting for and ending processes. clone is in argument_rules.cc.
    {Tier::kStrict,
     "execve execveat fork vfork exit exit_group wait4 waitid getpid getppid getpgid getpgrp "
     "setpgid getsid setsid "
     "kill tkill tgkill pidfd_open pidfd_send_signal restart_syscall"},

    // Signals to oneself, and with data to others inside.
    {Tier::kStrict,
     "rt_sigaction rt_sigprocmask rt_sigreturn rt_sigpending rt_sigsuspend rt_sigtimedwait "
     "sigaltstack pause "
     "rt_sigqueueinfo rt_tgsigqueueinfo"},

    // Clocks to read and timers to set; setting a clock is under "never".
    {Tier::kStrict,
     "clock_gettime clock_getres clock_nanosleep nanosleep gettimeofday time times alarm getitimer "
     "setitimer "
     "timer_create timer_settime timer_gettime timer_getoverrun timer_delete"},

    // Who and where am I.
    {Tier::kStrict,
     "getuid geteuid getgid getegid getresuid getresgid getgroups uname getrusage "
     "getrlimit getpriority "
     "capget getrandom"},

    // Becoming another user or group: without capabilities only to what one already is, and programs do call them.
    // setuid and its kin are in argument_rules.cc.
    {Tier::kDefault, "setfsuid setfsgid setgroups capset"},

    // Own limits and priorities. Hard limits only go down without CAP_SYS_RESOURCE.
    {Tier::kStrict, "setrlimit"},
    {Tier::kDefault, "setpriority sched_setparam ioprio_get ioprio_set get_mempolicy"},

    // Talking over sockets that exist. In strict these can only be ends of a socketpair, which are already connected.
    // connect is in argument_rules.cc.
    {Tier::kStrict,
     "sendmsg recvmsg sendto recvfrom sendmmsg recvmmsg shutdown getsockname getpeername "
     "getsockopt setsockopt"},
    {Tier::kDefault, "bind listen accept accept4"},

    // Moving pages between pipes, watching files: ordinary programs use them, computation does not.
    {Tier::kDefault, "splice tee inotify_init inotify_init1 inotify_add_watch inotify_rm_watch"},

    // System V memory and semaphores, in an IPC namespace of its own; at the process level, without
    // one, they are refused in every profile (shared_host.cc). shmget and semget are in
    // argument_rules.cc.
    {Tier::kDefault, "shmat shmdt shmctl semop semtimedop semctl"},

    // Older programs. Message queues are kernel memory that no rlimit and no sample counts.
    // sched_setattr hides its policy behind a pointer.
    {Tier::kCompat,
     "msgget msgsnd msgrcv msgctl mq_open mq_unlink "
     "mq_timedsend mq_timedreceive mq_notify mq_getsetattr remap_file_pages sched_setattr "
     "set_mempolicy process_mrelease"},

    // Landlock can only take rights away; for programs that confine themselves further.
    {Tier::kCompat, "landlock_create_ruleset landlock_add_rule landlock_restrict_self"},

    // Namespaces and the mount table: the walls themselves.
    {Tier::kNever,
     "unshare setns mount umount2 pivot_root chroot fsopen fsconfig fsmount fspick open_tree "
     "open_tree_attr "
     "move_mount mount_setattr statmount listmount listns"},

    // Opening files by handle walks around every path rule.
    {Tier::kNever, "open_by_handle_at name_to_handle_at"},

    // Other processes' memory, descriptors and pages.
    {Tier::kNever,
     "ptrace process_vm_readv process_vm_writev process_madvise pidfd_getfd kcmp move_pages "
     "migrate_pages mbind "
     "set_mempolicy_home_node"},

    // Large interfaces with a long record of kernel bugs. io_uring also does I/O that no filter sees.
    {Tier::kNever,
     "io_uring_setup io_uring_enter io_uring_register bpf userfaultfd perf_event_open memfd_secret "
     "fanotify_init fanotify_mark"},

    // Native AIO takes from a number that the whole host shares (fs.aio-max-nr), and flushing whole file systems stalls
    // every writer of the host. fsync does for one file what a program may ask for.
    {Tier::kNever,
     "io_setup io_destroy io_submit io_cancel io_getevents io_pgetevents sync syncfs"},

    // Kernel keyrings are shared by uid, across namespaces.
    {Tier::kNever, "keyctl add_key request_key"},

    // Administering the machine.
    {Tier::kNever,
     "kexec_load kexec_file_load init_module finit_module delete_module create_module query_module "
     "get_kernel_syms "
     "quotactl quotactl_fd acct swapon swapoff reboot settimeofday clock_settime adjtimex "
     "clock_adjtime syslog "
     "vhangup sethostname setdomainname lookup_dcookie nfsservctl _sysctl sysfs ustat uselib "
     "lsm_set_self_attr"},

    // Ports, segments and what else only emulators of the last century need.
    {Tier::kNever, "iopl ioperm modify_ldt vserver security tuxcall afs_syscall getpmsg putpmsg"},
};

std::vector<std::string> Split(std::string_view names) {
  std::vector<std::string> words;
  for (size_t at = 0; at < names.size();) {
    const size_t end = std::min(names.find(' ', at), names.size());
    if (end > at) {
      words.emplace_back(names.substr(at, end - at));
    }
    at = end + 1;
  }
  return words;
}

Tier TierOf(policy::SyscallProfile name) {
  switch (name) {
    case policy::SyscallProfile::kStrict:
      return Tier::kStrict;
    case policy::SyscallProfile::kDefault:
      return Tier::kDefault;
    case policy::SyscallProfile::kCompat:
      return Tier::kCompat;
    case policy::SyscallProfile::kImported:
      break;
  }
  return Tier::kNever;
}

}  // namespace

Profile BuiltinProfile(policy::SyscallProfile name, FilterOptions options) {
  Profile profile;
  const Tier tier = TierOf(name);
  if (tier == Tier::kNever) {
    return profile;
  }
  for (const Group& group : kGroups) {
    const bool allowed = group.from != Tier::kNever && group.from <= tier;
    for (std::string& syscall : Split(group.names)) {
      profile.rules.push_back({std::move(syscall), allowed ? kAllow : kNotify, {}});
    }
  }
  AddArgumentRules(tier, options, &profile);
  if (options.own_locks) {
    AskForLocks(profile);
  }
  return profile;
}

bool CompatAllowsMore(std::string_view syscall, policy::SyscallProfile name) {
  const auto rules = [&](policy::SyscallProfile profile) {
    Profile all = BuiltinProfile(profile, {.inet_sockets = true, .unix_sockets = true});
    std::erase_if(all.rules, [&](const Rule& rule) {
      return rule.syscall != syscall || (rule.action == kNotify && rule.conditions.empty());
    });
    return std::move(all.rules);
  };
  return rules(policy::SyscallProfile::kCompat) != rules(name);
}

std::vector<std::string> NeverAllowed() {
  std::vector<std::string> names;
  for (const Group& group : kGroups) {
    if (group.from == Tier::kNever) {
      for (std::string& syscall : Split(group.names)) {
        names.push_back(std::move(syscall));
      }
    }
  }
  return names;
}

}  // namespace coffer::isolation
