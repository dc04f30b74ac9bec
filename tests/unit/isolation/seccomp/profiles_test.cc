// SPDX-License-Identifier: Apache-2.0
//
// What each profile decides about calls that matter, on both architectures, through the compiled program.
#include <asm/ioctls.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <map>
#include <set>

#include "seccomp_testing.h"

namespace coffer::isolation {
namespace {

using policy::SyscallProfile;

constexpr std::array kAll = {SyscallProfile::kStrict, SyscallProfile::kDefault,
                             SyscallProfile::kCompat};
constexpr FilterOptions kNothing = {};
constexpr FilterOptions kEverything = {
    .inet_sockets = true, .unix_sockets = true, .host_paths = false};

std::string AskProfile(SyscallProfile profile, FilterOptions options, uint32_t arch,
                       const std::string& name, const Args& args = {}) {
  const SyscallTable& table = TableFor(arch);
  const std::optional<uint32_t> number = table.Find(name);
  if (!number) {
    return "no such call";
  }
  const auto program = Compile(BuiltinProfile(profile, options), table);
  EXPECT_TRUE(program.ok());
  return Verdict(*program, Call(table.audit_arch, *number, args));
}

// The three verdicts of strict, default, compat, which must be the same on both architectures.
std::string Three(const std::string& name, const Args& args = {},
                  FilterOptions options = kNothing) {
  std::string answers[2];
  for (size_t i = 0; i < kArches.size(); ++i) {
    for (const SyscallProfile profile : kAll) {
      answers[i] +=
          (answers[i].empty() ? "" : ", ") + AskProfile(profile, options, kArches[i], name, args);
    }
  }
  if (answers[0] == answers[1] || answers[0].starts_with("no such call")) {
    return answers[1];
  }
  return answers[1].starts_with("no such call") ? answers[0] : answers[0] + " / " + answers[1];
}

constexpr const char* kAllowed = "allow, allow, allow";
constexpr const char* kRefused = "notify, notify, notify";

TEST(Profiles, WhatEveryProgramNeeds) {
  for (const char* name : {"read",
                           "write",
                           "close",
                           "mmap",
                           "mprotect",
                           "munmap",
                           "brk",
                           "futex",
                           "execve",
                           "execveat",
                           "exit_group",
                           "wait4",
                           "waitid",
                           "rt_sigaction",
                           "rt_sigreturn",
                           "newfstatat",
                           "getdents64",
                           "getrandom",
                           "clock_gettime",
                           "rseq",
                           "set_robust_list",
                           "set_tid_address",
                           "memfd_create",
                           "close_range",
                           "statx",
                           "faccessat2",
                           "pipe2",
                           "epoll_pwait",
                           "eventfd2",
                           "membarrier",
                           "sched_getaffinity",
                           "setsid",
                           "setpgid",
                           "kill",
                           "sendmsg",
                           "recvmsg",
                           "vfork",
                           "fork",
                           "arch_prctl",
                           "getppid"}) {
    EXPECT_EQ(Three(name), kAllowed) << name;
  }
}

TEST(Profiles, NeverListIsRefusedByAllWhateverTheArgumentsAndOptions) {
  size_t checked = 0;
  for (const uint32_t arch : kArches) {
    const SyscallTable& table = TableFor(arch);
    for (const SyscallProfile profile : kAll) {
      const auto program = Compile(BuiltinProfile(profile, kEverything), table);
      ASSERT_TRUE(program.ok());
      for (const std::string& name : NeverAllowed()) {
        const std::optional<uint32_t> number = table.Find(name);
        for (const uint64_t value : {uint64_t{0}, uint64_t{1}, ~uint64_t{0}}) {
          if (number) {
            const Args args = {value, value, value, value, value, value};
            EXPECT_EQ(Verdict(*program, Call(table.audit_arch, *number, args)), "notify") << name;
            ++checked;
          }
        }
      }
    }
  }
  EXPECT_GT(checked, 1000U);
}

TEST(Profiles, WhatCompatAddsIsKnownByName) {
  for (const char* name : {"mq_open", "msgget", "landlock_create_ruleset", "shmget"}) {
    EXPECT_TRUE(CompatAllowsMore(name, SyscallProfile::kDefault)) << name;
    EXPECT_FALSE(CompatAllowsMore(name, SyscallProfile::kCompat)) << name;
  }
  EXPECT_TRUE(CompatAllowsMore("socket", SyscallProfile::kStrict));
  for (const char* name : {"read", "socket", "clone", "syscall_9999"}) {
    EXPECT_FALSE(CompatAllowsMore(name, SyscallProfile::kDefault)) << name;
  }
  EXPECT_TRUE(CompatAllowsMore("mkdir", SyscallProfile::kImported));
  for (const std::string& name : NeverAllowed()) {
    for (const SyscallProfile profile : kAll) {
      EXPECT_FALSE(CompatAllowsMore(name, profile)) << name;
    }
    EXPECT_FALSE(CompatAllowsMore(name, SyscallProfile::kImported)) << name;
  }
}

// The list, spelt out again so that dropping a name from the table is noticed.
TEST(Profiles, NeverListIsComplete) {
  const std::vector<std::string> names = NeverAllowed();
  const std::set<std::string> never(names.begin(), names.end());
  for (const char* name : {"io_uring_setup",
                           "io_uring_enter",
                           "io_uring_register",
                           "bpf",
                           "userfaultfd",
                           "perf_event_open",
                           "ptrace",
                           "process_vm_readv",
                           "process_vm_writev",
                           "keyctl",
                           "add_key",
                           "request_key",
                           "mount",
                           "umount2",
                           "pivot_root",
                           "chroot",
                           "fsopen",
                           "fsconfig",
                           "fsmount",
                           "fspick",
                           "open_tree",
                           "move_mount",
                           "mount_setattr",
                           "unshare",
                           "setns",
                           "open_by_handle_at",
                           "name_to_handle_at",
                           "kexec_load",
                           "kexec_file_load",
                           "init_module",
                           "finit_module",
                           "delete_module",
                           "quotactl",
                           "quotactl_fd",
                           "acct",
                           "swapon",
                           "swapoff",
                           "reboot",
                           "settimeofday",
                           "clock_settime",
                           "adjtimex",
                           "clock_adjtime",
                           "lookup_dcookie",
                           "fanotify_init",
                           "pidfd_getfd",
                           "kcmp",
                           "syslog",
                           "vhangup",
                           "sethostname",
                           "setdomainname",
                           "iopl",
                           "ioperm",
                           "modify_ldt",
                           "memfd_secret",
                           "move_pages",
                           "mbind",
                           "migrate_pages",
                           "statmount",
                           "listmount"}) {
    EXPECT_TRUE(never.contains(name)) << name;
  }
}

TEST(Profiles, NoNameHasTwoUnconditionalRules) {
  for (const SyscallProfile profile : kAll) {
    std::set<std::string> seen;
    for (const Rule& rule : BuiltinProfile(profile, kEverything).rules) {
      EXPECT_FALSE(seen.contains(rule.syscall))
          << rule.syscall << " comes again after an unconditional rule";
      if (rule.conditions.empty()) {
        seen.insert(rule.syscall);
      }
    }
    EXPECT_GT(seen.size(), 50U);
  }
}

TEST(Profiles, CompatAllowsWhatDefaultAllowsAndDefaultWhatStrictAllows) {
  for (const uint32_t arch : kArches) {
    const SyscallTable& table = TableFor(arch);
    const auto strict = Compile(BuiltinProfile(SyscallProfile::kStrict, kEverything), table);
    const auto normal = Compile(BuiltinProfile(SyscallProfile::kDefault, kEverything), table);
    const auto compat = Compile(BuiltinProfile(SyscallProfile::kCompat, kEverything), table);
    ASSERT_TRUE(strict.ok() && normal.ok() && compat.ok());
    for (uint32_t number = 0; number <= table.highest(); ++number) {
      for (const uint64_t value :
           {uint64_t{0}, uint64_t{1}, uint64_t{2}, uint64_t{0x5401}, ~uint64_t{0}}) {
        const seccomp_data call =
            Call(table.audit_arch, number, {value, value, value, value, value, value});
        if (Verdict(*strict, call) == "allow") {
          EXPECT_EQ(Verdict(*normal, call), "allow") << table.Find(number);
        }
        if (Verdict(*normal, call) == "allow") {
          EXPECT_EQ(Verdict(*compat, call), "allow") << table.Find(number);
        }
      }
    }
  }
}

TEST(Profiles, CloneWithoutNamespaces) {
  EXPECT_EQ(Three("clone", {SIGCHLD}), kAllowed);
  EXPECT_EQ(Three("clone", {CLONE_VM | CLONE_VFORK | SIGCHLD}), kAllowed);
  EXPECT_EQ(
      Three("clone", {CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
                      CLONE_SYSVSEM | CLONE_SETTLS | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID}),
      kAllowed);
  for (const uint64_t flag : {CLONE_NEWNS, CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC,
                              CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET}) {
    EXPECT_EQ(Three("clone", {flag | SIGCHLD}), kRefused) << std::hex << flag;
    EXPECT_EQ(Three("clone", {kUpperHalf | flag | SIGCHLD}), kRefused) << std::hex << flag;
  }
  EXPECT_EQ(Three("clone3"), "errno 38, errno 38, errno 38");
  EXPECT_EQ(Three("unshare", {CLONE_NEWUSER}), kRefused);
}

TEST(Profiles, SocketsOfNoFamilyWithoutOptions) {
  for (uint64_t family = 0; family < 64; ++family) {
    for (const uint64_t type :
         {SOCK_STREAM, SOCK_DGRAM, SOCK_RAW, SOCK_RDM, SOCK_SEQPACKET, SOCK_PACKET}) {
      EXPECT_EQ(Three("socket", {family, type, 0}), kRefused) << family << " " << type;
    }
  }
}

TEST(Profiles, SocketsWithOptions) {
  const FilterOptions inet = {.inet_sockets = true, .unix_sockets = false};
  const FilterOptions local = {.inet_sockets = false, .unix_sockets = true, .host_paths = false};
  constexpr const char* kNotStrict = "notify, allow, allow";
  for (const uint64_t family : {AF_INET, AF_INET6}) {
    EXPECT_EQ(Three("socket", {family, SOCK_STREAM, 0}, inet), kNotStrict);
    EXPECT_EQ(
        Three("socket", {family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP}, inet),
        kNotStrict);
    EXPECT_EQ(Three("socket", {family, SOCK_DGRAM | SOCK_CLOEXEC, IPPROTO_UDP}, inet), kNotStrict);
    EXPECT_EQ(Three("socket", {family, SOCK_STREAM, 0}, local), kRefused);
    EXPECT_EQ(Three("socket", {family, SOCK_RAW, IPPROTO_TCP}, kEverything), kRefused);
    EXPECT_EQ(Three("socket", {family, SOCK_PACKET, 0}, kEverything), kRefused);
    EXPECT_EQ(Three("socket", {family, SOCK_DGRAM, IPPROTO_ICMP}, kEverything), kRefused);
    EXPECT_EQ(Three("socket", {family, SOCK_DGRAM, IPPROTO_ICMPV6}, kEverything), kRefused);
    EXPECT_EQ(Three("socket", {family, SOCK_SEQPACKET, 0}, kEverything), kRefused);
    for (const uint64_t protocol :
         std::initializer_list<uint64_t>{IPPROTO_SCTP, IPPROTO_UDPLITE, 262 /* MPTCP */}) {
      for (const uint64_t type : {SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET}) {
        EXPECT_EQ(Three("socket", {family, type, protocol}, inet), "notify, errno 93, errno 93");
      }
    }
  }
  EXPECT_EQ(Three("socket", {AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0}, local), kNotStrict);
  EXPECT_EQ(Three("socket", {AF_UNIX, SOCK_DGRAM, 0}, local), kNotStrict);
  EXPECT_EQ(Three("socket", {AF_UNIX, SOCK_RAW, 0}, local), kRefused);
  EXPECT_EQ(Three("socket", {AF_UNIX, SOCK_STREAM, 0}, inet), kRefused);
  EXPECT_EQ(Three("socket", {AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0}, kEverything), kNotStrict);
  EXPECT_EQ(Three("socket", {AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0}, local), kRefused)
      << "the network it would show is the host's";
  EXPECT_EQ(Three("socket", {AF_NETLINK, SOCK_RAW, 12 /* NETLINK_NETFILTER */}, kEverything),
            kRefused);
  // The kernel drops the upper half of an int, so it must neither hide a family nor lend one.
  EXPECT_EQ(Three("socket", {kUpperHalf | AF_INET, SOCK_STREAM, 0}, inet), kNotStrict);
  EXPECT_EQ(Three("socket", {kUpperHalf | AF_VSOCK, SOCK_STREAM, 0}, kEverything), kRefused);
  for (uint64_t family = 0; family < 64; ++family) {
    if (family != AF_INET && family != AF_INET6 && family != AF_UNIX && family != AF_NETLINK) {
      EXPECT_EQ(Three("socket", {family, SOCK_STREAM, 0}, kEverything), kRefused) << family;
      EXPECT_EQ(Three("socket", {family, SOCK_DGRAM, 0}, kEverything), kRefused) << family;
    }
  }
}

TEST(Profiles, SocketpairsAreUnixOnly) {
  EXPECT_EQ(Three("socketpair", {AF_UNIX, SOCK_STREAM, 0}), kAllowed);
  // A datagram end is not bound to its peer.
  EXPECT_EQ(Three("socketpair", {AF_UNIX, SOCK_DGRAM, 0}), kRefused);
  EXPECT_EQ(Three("socketpair", {AF_UNIX, SOCK_RAW, 0}, kEverything), kRefused);
  EXPECT_EQ(Three("socketpair", {AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0}, kEverything),
            "notify, allow, allow");
  EXPECT_EQ(Three("socketpair", {AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0}), kAllowed);
  EXPECT_EQ(Three("socketpair", {AF_INET, SOCK_STREAM, 0}, kEverything), kRefused);
  EXPECT_EQ(Three("socketpair", {AF_TIPC, SOCK_STREAM, 0}, kEverything), kRefused);
}

TEST(Profiles, BesideHostPathsConnectIsServedAndDatagramsAreRefused) {
  const FilterOptions served = {.inet_sockets = true, .unix_sockets = true, .host_paths = true};
  EXPECT_EQ(Three("connect", {}, served), kRefused);
  EXPECT_EQ(Three("connect", {}, kEverything), "notify, allow, allow");
  for (const uint64_t type : {SOCK_STREAM, SOCK_SEQPACKET}) {
    EXPECT_EQ(Three("socket", {AF_UNIX, type, 0}, served), "notify, allow, allow");
    EXPECT_EQ(Three("socketpair", {AF_UNIX, type, 0}, served), kAllowed);
  }
  // A datagram carries its address behind a pointer. SOCK_RAW is the same for this family.
  for (const FilterOptions& options : {served, kNothing}) {
    for (const uint64_t type :
         std::initializer_list<uint64_t>{SOCK_DGRAM, SOCK_RAW, SOCK_DGRAM | SOCK_CLOEXEC}) {
      EXPECT_EQ(Three("socket", {AF_UNIX, type, 0}, options), kRefused);
      EXPECT_EQ(Three("socketpair", {AF_UNIX, type, 0}, options), kRefused);
    }
  }
  EXPECT_EQ(Three("socketpair", {AF_UNIX, SOCK_DGRAM, 0}, kEverything), "notify, allow, allow");
}

TEST(Profiles, SystemVObjectsAreSmallInDefault) {
  EXPECT_EQ(Three("shmget", {1, 16384, 0600}), "notify, allow, allow");
  EXPECT_EQ(Three("shmget", {1, 16385, 0600}), "notify, notify, allow");
  EXPECT_EQ(Three("shmget", {1, kUpperHalf | 1, 0600}), "notify, notify, allow")
      << "a size is 64 bits";
  EXPECT_EQ(Three("semget", {1, 32, 0600}), "notify, allow, allow");
  EXPECT_EQ(Three("semget", {1, kUpperHalf | 32, 0600}), "notify, notify, allow")
      << "no libc sets the upper half";
  EXPECT_EQ(Three("semget", {1, 33, 0600}), "notify, notify, allow");
  EXPECT_EQ(Three("msgget", {1, 0600}), "notify, notify, allow");
}

TEST(Profiles, SysinfoIsAnsweredByTheSupervisor) {
  EXPECT_EQ(Three("sysinfo"), kAllowed);
  EXPECT_EQ(Three("sysinfo", {}, {.own_figures = true}), kRefused);
}

TEST(Profiles, ExclusiveLocksAreTakenByTheSupervisor) {
  const FilterOptions own{.own_locks = true};
  EXPECT_EQ(Three("flock", {3, LOCK_EX}), kAllowed);
  for (const uint64_t how : {uint64_t{LOCK_EX}, uint64_t{LOCK_EX | LOCK_NB},
                             uint64_t{LOCK_EX | LOCK_SH}, kUpperHalf | LOCK_EX}) {
    EXPECT_EQ(Three("flock", {3, how}, own), kRefused) << how;
  }
  for (const uint64_t how : {LOCK_SH, LOCK_SH | LOCK_NB, LOCK_UN}) {
    EXPECT_EQ(Three("flock", {3, how}, own), kAllowed) << how;
  }
}

TEST(Profiles, TerminalInjection) {
  for (const uint64_t command : {TIOCSTI, TIOCLINUX, TIOCSETD, TIOCCONS}) {
    EXPECT_EQ(Three("ioctl", {0, command}), kRefused);
    EXPECT_EQ(Three("ioctl", {0, 0x1'0000'0000 | command}), kRefused) << "the kernel keeps 32 bits";
    EXPECT_EQ(Three("ioctl", {0, 0xffff'ffff'0000'0000 | command}), kRefused);
  }
  EXPECT_EQ(Three("ioctl", {0, TCGETS}), kAllowed);
  EXPECT_EQ(Three("ioctl", {0, TIOCGWINSZ}), kAllowed);
  EXPECT_EQ(Three("ioctl", {0, FIONBIO}), kAllowed);
  EXPECT_EQ(Three("ioctl", {0, 0x8004'5430 /* TIOCGPTN */}), "notify, allow, allow");
}

TEST(Profiles, IoctlsOfFilesByAList) {
  constexpr const char* kUnknown = "notify, errno 25, errno 25";      // ENOTTY
  constexpr const char* kUnsupported = "notify, errno 95, errno 95";  // EOPNOTSUPP
  constexpr const char* kFromDefaultOn = "notify, allow, allow";
  for (const uint64_t command : std::initializer_list<uint64_t>{
           0x40305828 /* FS_IOC_RESVSP */, 0x4030582a /* FS_IOC_RESVSP64 */,
           0x40305829 /* FS_IOC_UNRESVSP */, 0x4030582b /* FS_IOC_UNRESVSP64 */,
           0x40305839 /* FS_IOC_ZERO_RANGE */}) {
    EXPECT_EQ(Three("ioctl", {3, command}), kUnsupported) << std::hex << command;
    EXPECT_EQ(Three("ioctl", {3, kUpperHalf | command}), kUnsupported) << std::hex << command;
  }
  for (const uint64_t command : std::initializer_list<uint64_t>{
           0x40086602 /* FS_IOC_SETFLAGS */, 0x401c5820 /* FS_IOC_FSSETXATTR */,
           0xc0189436 /* FIDEDUPERANGE */, 0xc020660b /* FS_IOC_FIEMAP */,
           0x80111500 /* FS_IOC_GETFSUUID */, 0x5000940e /* BTRFS_IOC_SUBVOL_CREATE */,
           0xc028660f /* EXT4_IOC_MOVE_EXT */, 0x6611 /* EXT4_IOC_SWAP_BOOT */,
           0x40047211 /* FAT_IOCTL_SET_ATTRIBUTES */, 0xf501 /* F2FS_IOC_START_ATOMIC_WRITE */,
           0x1}) {
    EXPECT_EQ(Three("ioctl", {3, command}), kUnknown) << std::hex << command;
    EXPECT_EQ(Three("ioctl", {3, kUpperHalf | command}), kUnknown) << std::hex << command;
  }
  for (const uint64_t command : std::initializer_list<uint64_t>{
           0x40049409 /* FICLONE */, 0x4020940d /* FICLONERANGE */,
           0x80086601 /* FS_IOC_GETFLAGS */, 0x8901 /* FIOSETOWN */, 0x8912 /* SIOCGIFCONF */,
           0x8933 /* SIOCGIFINDEX */, FIOASYNC, TIOCGPTPEER, 0x40045431 /* TIOCSPTLCK */,
           0x802c542a /* TCGETS2 */, TIOCOUTQ}) {
    EXPECT_EQ(Three("ioctl", {3, command}), kFromDefaultOn) << std::hex << command;
  }
}

TEST(Profiles, NoKernelMemoryByOptionsOfSockets) {
  constexpr const char* kNoSuchOption = "errno 92, errno 92, errno 92";
  constexpr FilterOptions kInet = {.inet_sockets = true};
  for (const uint64_t option :
       {SO_ATTACH_FILTER, SO_ATTACH_BPF, SO_ATTACH_REUSEPORT_CBPF, SO_ATTACH_REUSEPORT_EBPF}) {
    for (const FilterOptions options : {kNothing, kInet}) {
      EXPECT_EQ(Three("setsockopt", {3, SOL_SOCKET, option}, options), kNoSuchOption) << option;
      EXPECT_EQ(Three("setsockopt", {3, kUpperHalf | SOL_SOCKET, kUpperHalf | option}, options),
                kNoSuchOption)
          << option;
    }
  }
  EXPECT_EQ(Three("setsockopt", {3, IPPROTO_IPV6, 32 /* IPV6_FLOWLABEL_MGR */}, kInet),
            kNoSuchOption);
  EXPECT_EQ(Three("setsockopt", {3, IPPROTO_IPV6, 6 /* IPV6_2292PKTOPTIONS */}, kInet),
            kNoSuchOption);
  for (const uint64_t option :
       std::initializer_list<uint64_t>{14 /* TCP_MD5SIG */, 31 /* TCP_ULP */,
                                       32 /* TCP_MD5SIG_EXT */, 38 /* TCP_AO_ADD_KEY */}) {
    EXPECT_EQ(Three("setsockopt", {3, IPPROTO_TCP, option}, kInet), kNoSuchOption) << option;
  }
  EXPECT_EQ(Three("setsockopt", {3, IPPROTO_TCP, 1 /* TCP_NODELAY */}, kInet), kAllowed);
  for (const uint64_t option : std::initializer_list<uint64_t>{37 /* SO_TIMESTAMPING */, 65}) {
    EXPECT_EQ(Three("setsockopt", {3, SOL_SOCKET, option}, kInet), kNoSuchOption) << option;
  }
  EXPECT_EQ(Three("setsockopt", {3, IPPROTO_IP, IP_RECVERR}, kInet), "errno 0, errno 0, errno 0");
  EXPECT_EQ(Three("setsockopt", {3, IPPROTO_IPV6, IPV6_RECVERR}, kInet),
            "errno 0, errno 0, errno 0");
  EXPECT_EQ(Three("setsockopt", {3, SOL_SOCKET, SO_DETACH_FILTER}, kInet), kAllowed);
  EXPECT_EQ(Three("setsockopt", {3, SOL_SOCKET, 32 /* SO_SNDBUFFORCE */}, kInet), kAllowed);
  EXPECT_EQ(Three("setsockopt", {3, IPPROTO_IPV6, IPV6_V6ONLY}, kInet), kAllowed);
}

TEST(Profiles, Prctl) {
  for (const uint64_t option : {PR_SET_NAME, PR_GET_NAME, PR_SET_PDEATHSIG, PR_SET_NO_NEW_PRIVS,
                                PR_SET_VMA, PR_CAPBSET_READ, PR_SET_CHILD_SUBREAPER}) {
    EXPECT_EQ(Three("prctl", {option}), kAllowed) << option;
    EXPECT_EQ(Three("prctl", {kUpperHalf | option}), kAllowed) << option;
  }
  for (const uint64_t option :
       {PR_SET_MM, PR_SET_SECUREBITS, PR_CAPBSET_DROP, PR_SET_SPECULATION_CTRL, PR_SCHED_CORE,
        67 /* PR_SET_MEMORY_MERGE */, 0x7fffffff}) {
    EXPECT_EQ(Three("prctl", {option}), kRefused) << option;
  }
  EXPECT_EQ(Three("prctl", {PR_SET_SECCOMP, 2}), "notify, notify, allow");
  EXPECT_EQ(Three("prctl", {PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE}), kRefused);
  EXPECT_EQ(Three("prctl", {PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET}), "notify, notify, allow");
}

TEST(Profiles, SeccompWithoutAListener) {
  EXPECT_EQ(Three("seccomp", {SECCOMP_SET_MODE_FILTER, 0}), "notify, notify, allow");
  EXPECT_EQ(Three("seccomp", {SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER}),
            kRefused);
  EXPECT_EQ(Three("seccomp", {SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER | 1}),
            kRefused);
}

TEST(Profiles, Personality) {
  EXPECT_EQ(Three("personality", {0}), kAllowed);
  EXPECT_EQ(Three("personality", {0xffffffff}), kAllowed);
  EXPECT_EQ(Three("personality", {~uint64_t{0}}), kAllowed);
  EXPECT_EQ(Three("personality", {0x0040000 /* ADDR_NO_RANDOMIZE */}), kRefused);
  EXPECT_EQ(Three("personality", {0x1'0004'0000}), kRefused);
}

TEST(Profiles, NoSetuidFiles) {
  struct Case {
    const char* name;
    size_t mode_at;
    Args args;
  };
  const Case cases[] = {
      {"chmod", 1, {}},
      {"fchmod", 1, {}},
      {"fchmodat", 2, {}},
      {"fchmodat2", 2, {}},
      {"mkdir", 1, {}},
      {"mkdirat", 2, {}},
      {"mknod", 1, {}},
      {"mknodat", 2, {}},
      {"creat", 1, {}},
      {"open", 2, {0, O_CREAT | O_WRONLY}},
      {"openat", 3, {0, 0, O_CREAT | O_WRONLY}},
      {"open", 2, {0, O_TMPFILE | O_RDWR}},
      {"openat", 3, {0, 0, O_TMPFILE | O_RDWR}},
  };
  for (const Case& test : cases) {
    const auto with = [&](uint64_t mode) {
      Args args = test.args;
      args[test.mode_at] = mode;
      return Three(test.name, args);
    };
    EXPECT_EQ(with(0644), kAllowed) << test.name;
    EXPECT_EQ(with(01777), kAllowed) << test.name;
    EXPECT_EQ(with(04755), kRefused) << test.name;
    EXPECT_EQ(with(02755), kRefused) << test.name;
    EXPECT_EQ(with(kUpperHalf | 06755), kRefused) << test.name;
  }
  EXPECT_EQ(Three("openat", {0, 0, O_RDONLY, 06777}), kAllowed) << "the mode is not used";
  EXPECT_EQ(Three("openat2"), "errno 38, errno 38, errno 38");
}

TEST(Profiles, NoDeviceNodes) {
  for (const uint64_t type : {S_IFCHR, S_IFBLK, S_IFSOCK, S_IFDIR, S_IFLNK}) {
    EXPECT_EQ(Three("mknodat", {0, 0, type | 0600}), kRefused);
    EXPECT_EQ(Three("mknod", {0, type | 0600}), kRefused);
  }
  EXPECT_EQ(Three("mknodat", {0, 0, S_IFIFO | 0600}), kAllowed);
  EXPECT_EQ(Three("mknodat", {0, 0, S_IFREG | 0600}), kAllowed);
  EXPECT_EQ(Three("renameat2", {0, 0, 0, 0, 1}), kAllowed);
  EXPECT_EQ(Three("renameat2", {0, 0, 0, 0, 4 /* RENAME_WHITEOUT */}), kRefused);
}

TEST(Profiles, OnlyWhereTheyBelong) {
  for (const char* name :
       {"bind", "connect", "accept4", "listen", "splice", "inotify_init1", "chown", "setgroups"}) {
    EXPECT_EQ(Three(name), "notify, allow, allow") << name;
  }
  for (const char* name : {"msgget", "mq_open", "landlock_create_ruleset", "sched_setattr"}) {
    EXPECT_EQ(Three(name), "notify, notify, allow") << name;
  }
  EXPECT_EQ(Three("sched_setscheduler", {0, SCHED_OTHER}), "notify, allow, allow");
  EXPECT_EQ(Three("sched_setscheduler", {0, SCHED_FIFO}), kRefused);
  EXPECT_EQ(Three("prlimit64", {0, 7, 1, 1}), kAllowed);
  EXPECT_EQ(Three("prlimit64", {4711, 7, 0, 1}), kAllowed);
  EXPECT_EQ(Three("prlimit64", {4711, 7, 1, 1}), "notify, notify, allow");
}

TEST(Profiles, TheCoreLimitIsNotChanged) {
  constexpr uint64_t kHigh = uint64_t{1} << 32;  // the kernel takes the number as 32 bits
  for (const uint64_t core : {uint64_t{RLIMIT_CORE}, kHigh + RLIMIT_CORE}) {
    EXPECT_EQ(Three("setrlimit", {core, 1}), "errno 0, errno 0, errno 0");
    EXPECT_EQ(Three("prlimit64", {0, core, 1, 0}), "errno 0, errno 0, errno 0");
    EXPECT_EQ(Three("prlimit64", {0, core, kHigh, 0}), "errno 0, errno 0, errno 0");
    EXPECT_EQ(Three("prlimit64", {0, core, 1, 1}), "errno 1, errno 1, errno 1");
    EXPECT_EQ(Three("prlimit64", {0, core, 0, 1}), kAllowed);
  }
  EXPECT_EQ(Three("setrlimit", {RLIMIT_NOFILE, 1}), kAllowed);
}

TEST(Profiles, NoHugePagesOfTheHost) {
  constexpr uint64_t kTwoMiB = uint64_t{21} << MAP_HUGE_SHIFT;
  EXPECT_EQ(Three("mmap", {0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS}), kAllowed);
  EXPECT_EQ(Three("mmap", {0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE}),
            kAllowed);
  EXPECT_EQ(Three("memfd_create", {0, MFD_CLOEXEC | MFD_ALLOW_SEALING}), kAllowed);
  EXPECT_EQ(Three("shmget", {0, 4096, IPC_CREAT | 0600}), "notify, allow, allow");
  for (const uint64_t high : {uint64_t{0}, kUpperHalf}) {
    EXPECT_EQ(Three("mmap", {0, 4096, PROT_READ, high | MAP_PRIVATE | MAP_HUGETLB}), kRefused);
    EXPECT_EQ(Three("mmap", {0, 4096, PROT_READ, high | MAP_PRIVATE | MAP_HUGETLB | kTwoMiB}),
              kRefused);
    EXPECT_EQ(Three("memfd_create", {0, high | MFD_HUGETLB}), kRefused);
    EXPECT_EQ(Three("memfd_create", {0, high | MFD_HUGETLB | kTwoMiB}), kRefused);
    EXPECT_EQ(Three("memfd_create", {0, high | (uint64_t{34} << MAP_HUGE_SHIFT)}), kRefused);
    EXPECT_EQ(Three("shmget", {0, 4096, high | IPC_CREAT | SHM_HUGETLB}), kRefused);
    EXPECT_EQ(Three("shmget", {0, 4096, high | IPC_CREAT | kTwoMiB}), kRefused);
  }
}

TEST(Profiles, NoMergedPages) {
  EXPECT_EQ(Three("madvise", {0, 4096, MADV_DONTNEED}), kAllowed);
  EXPECT_EQ(Three("madvise", {0, 4096, MADV_UNMERGEABLE}), kAllowed);
  for (const uint64_t high : {uint64_t{0}, kUpperHalf}) {
    EXPECT_EQ(Three("madvise", {0, 4096, high | MADV_MERGEABLE}), "errno 22, errno 22, errno 22");
  }
}

TEST(Profiles, FcntlIsAListOfWhatIsAllowed) {
  for (const uint64_t command :
       {F_DUPFD, F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_GETLK, F_SETLK, F_SETLKW, F_OFD_SETLK,
        F_DUPFD_CLOEXEC, F_ADD_SEALS, F_GET_SEALS, F_GETPIPE_SZ}) {
    EXPECT_EQ(Three("fcntl", {3, command}), kAllowed) << command;
  }
  for (const uint64_t high : {uint64_t{0}, kUpperHalf}) {
    EXPECT_EQ(Three("fcntl", {3, high | F_SETLEASE, F_RDLCK}), kRefused);
    EXPECT_EQ(Three("fcntl", {3, high | F_SETLEASE, F_WRLCK}), kRefused);
    EXPECT_EQ(Three("fcntl", {3, high | F_NOTIFY, 2}), kRefused);
    EXPECT_EQ(Three("fcntl", {3, high | 1040 /* F_SETDELEG, 6.19 */}), kRefused);
    EXPECT_EQ(Three("fcntl", {3, high | 4711}), kRefused) << "what no kernel of today has";
    EXPECT_EQ(Three("fcntl", {3, high | F_SETPIPE_SZ, 65536}), kAllowed);
    EXPECT_EQ(Three("fcntl", {3, high | F_SETPIPE_SZ, 65537}), kRefused);
    EXPECT_EQ(Three("fcntl", {3, high | F_SETPIPE_SZ, high | 1048576}), kRefused);
  }
}

// Numbers that the kernel keeps per user or for the whole host; docs/SECCOMP.md has the table.
TEST(Profiles, SharedCountersAreOutOfReach) {
  for (const char* name :
       {"io_setup", "io_submit", "sync", "syncfs", "add_key", "request_key", "keyctl",
        "fanotify_init", "fanotify_mark", "bpf", "perf_event_open", "io_uring_setup"}) {
    EXPECT_EQ(Three(name), kRefused) << name;
  }
}

TEST(Profiles, ImportedHasNoTextOfItsOwn) {
  EXPECT_TRUE(BuiltinProfile(SyscallProfile::kImported, kEverything).rules.empty());
}

TEST(Profiles, ForeignAbisDie) {
  for (const uint32_t arch : kArches) {
    const SyscallTable& table = TableFor(arch);
    const auto program = Compile(BuiltinProfile(SyscallProfile::kCompat, kEverything), table);
    ASSERT_TRUE(program.ok());
    for (uint32_t number = 0; number < 600; ++number) {
      const uint32_t other = arch == SCMP_ARCH_X86_64 ? AUDIT_ARCH_AARCH64 : AUDIT_ARCH_X86_64;
      for (const uint32_t foreign : std::initializer_list<uint32_t>{AUDIT_ARCH_ARM, AUDIT_ARCH_I386,
                                                                    AUDIT_ARCH_RISCV64, 0, other}) {
        ASSERT_EQ(Verdict(*program, Call(foreign, number)), "kill");
      }
      if (table.has_x32) {
        ASSERT_EQ(Verdict(*program, Call(table.audit_arch, 0x40000000 | number)), "kill");
      }
    }
    EXPECT_EQ(Verdict(*program, Call(table.audit_arch, table.highest() + 1)), "errno 38");
    EXPECT_EQ(Verdict(*program, Call(table.audit_arch, 0x3fffffff)), "errno 38");
  }
}

// As for every ordinary user outside: an id that is not the own one is EPERM, and the kernel's EINVAL is not seen.
TEST(Profiles, BecomingAnotherUserIsNotPermitted) {
  constexpr uint64_t kUnchanged = 0xffffffff;
  const std::string refused = "notify, errno 1, errno 1";
  const std::string allowed = "notify, allow, allow";
  for (const char* const name : {"setuid", "setgid"}) {
    EXPECT_EQ(Three(name, {1000}), allowed) << name;
    EXPECT_EQ(Three(name, {0}), refused) << name;
    EXPECT_EQ(Three(name, {uint64_t{1} << 32 | 1000}), allowed)
        << "the kernel drops the upper half";
  }
  for (const char* const name : {"setreuid", "setregid"}) {
    EXPECT_EQ(Three(name, {1000, kUnchanged}), allowed) << name;
    EXPECT_EQ(Three(name, {kUnchanged, 65534}), refused) << name;
    EXPECT_EQ(Three(name, {65534, 1000}), refused) << name;
  }
  for (const char* const name : {"setresuid", "setresgid"}) {
    EXPECT_EQ(Three(name, {kUnchanged, 1000, 1000}), allowed) << name;
    EXPECT_EQ(Three(name, {1000, 1000, 0}), refused) << name;
  }
  FilterOptions root_inside;
  root_inside.own_id = 0;
  EXPECT_EQ(Three("setuid", {0}, root_inside), allowed);
  EXPECT_EQ(Three("setuid", {1000}, root_inside), refused);
  FilterOptions no_namespace;
  no_namespace.own_id = kEveryId;
  EXPECT_EQ(Three("setuid", {0}, no_namespace), allowed) << "there the kernel says EPERM itself";
}

}  // namespace
}  // namespace coffer::isolation
