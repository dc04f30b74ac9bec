// SPDX-License-Identifier: Apache-2.0
//
// Every comparison is made on the bits that the kernel keeps. It takes an ioctl command, a socket family, a prctl
// option, open flags and a personality as 32-bit values, clone's flags as the lower half of a register and a file
// mode as 16 bits; whatever a caller puts above them is dropped by the kernel and must be ignored here as well.
#include "isolation/seccomp/argument_rules.h"

#include <asm/ioctls.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <initializer_list>
#include <iterator>
#include <utility>

#include "isolation/seccomp/identity_rules.h"

namespace coffer::isolation {
namespace {

constexpr uint64_t kRenameWhiteout =
    1U << 2;  // linux/fs.h, which cannot be included beside sys/mount.h
// asm-generic/fcntl.h, the same on both architectures; O_TMPFILE itself includes O_DIRECTORY, which is not.
constexpr uint64_t kTmpfileBit = 020000000;
constexpr uint64_t kSpecialModes = S_ISUID | S_ISGID;
constexpr uint64_t kSocketTypeMask = 0xf;  // the rest of the type is SOCK_NONBLOCK and SOCK_CLOEXEC
constexpr uint64_t kProtocolMptcp = 262;   // IPPROTO_MPTCP, Linux 5.6
constexpr uint64_t kIpv6FlowlabelMgr =
    32;  // linux/in6.h, which cannot be included beside netinet/in.h
constexpr uint64_t kIpv6PacketOptions = 6;  // IPV6_2292PKTOPTIONS, there too
constexpr uint64_t kTimestamping = 37;      // SO_TIMESTAMPING, with both sizes of time
constexpr uint64_t kTimestampingNew = 65;
// linux/tcp.h, which cannot be included beside netinet/tcp.h.
constexpr uint64_t kTcpMd5sig = 14;
constexpr uint64_t kTcpUlp = 31;
constexpr uint64_t kTcpMd5sigExt = 32;
constexpr uint64_t kTcpAoAddKey = 38;
// MFD_HUGETLB and SHM_HUGETLB differ; the size of the pages is in the same upper six bits of the flags.
constexpr uint64_t kHugeSizeBits = uint64_t{MAP_HUGE_MASK} << MAP_HUGE_SHIFT;
constexpr uint64_t kOrdinaryPipe = 64UL * 1024;
constexpr uint64_t kSmallSegment = 16UL * 1024;  // bytes
constexpr uint64_t kSmallSet = 32;               // semaphores

// The second byte of an ioctl command says whom it is for. These two are terminals (with FIONREAD
// and its kin, which every descriptor answers) and sockets; no file system has them.
constexpr uint64_t kIoctlType = 0xff00;
constexpr uint64_t kOfTerminals = 'T' << 8;
constexpr uint64_t kOfSockets = 0x8900;
// linux/fs.h and linux/random.h: what programs ask of files. Cloning writes only where the descriptor may.
constexpr unsigned kKnownFileIoctls[] = {
    0x40049409 /* FICLONE */, 0x4020940d /* FICLONERANGE */, 0x80086601 /* FS_IOC_GETFLAGS */,
    0x80087601 /* FS_IOC_GETVERSION */, 0x80045200 /* RNDGETENTCNT */};
// linux/falloc.h: FS_IOC_RESVSP, RESVSP64, UNRESVSP, UNRESVSP64, ZERO_RANGE: fallocate by another name.
constexpr unsigned kAllocatingIoctls[] = {0x40305828, 0x4030582a, 0x40305829, 0x4030582b,
                                          0x40305839};

constexpr unsigned kHarmlessIoctls[] = {
    TCGETS,  TIOCGWINSZ, FIONREAD,  FIONBIO,   FIOCLEX,    FIONCLEX, TCSETS,    TCSETSW,
    TCSETSF, TIOCGPGRP,  TIOCSPGRP, TIOCSCTTY, TIOCSWINSZ, TIOCGSID, TIOCNOTTY,
};

Condition Is(uint8_t arg, uint64_t value, uint64_t mask = kLowHalf) {
  return {arg, Compare::kEqual, value, mask};
}
Condition HasAny(uint8_t arg, uint64_t bits) { return {arg, Compare::kNotEqual, 0, bits}; }
Condition HasNone(uint8_t arg, uint64_t bits) { return {arg, Compare::kEqual, 0, bits}; }

class Builder {
 public:
  explicit Builder(Profile* profile) : profile_(profile) {}
  void Allow(const char* name, std::vector<Condition> when = {}) {
    Add(name, kAllow, std::move(when));
  }
  void Refuse(const char* name, std::vector<Condition> when = {}) {
    Add(name, kNotify, std::move(when));
  }
  void Fail(const char* name, int error, std::vector<Condition> when = {}) {
    Add(name, FailWith(error), std::move(when));
  }
  // Allowed if argument `arg`, as an int, is one of `values`.
  void AllowValues(const char* name, uint8_t arg, std::initializer_list<unsigned> values) {
    AllowValues(name, arg, std::span(values.begin(), values.size()));
  }
  void AllowValues(const char* name, uint8_t arg, std::span<const unsigned> values) {
    for (const unsigned value : values) {
      Allow(name, {Is(arg, value)});
    }
  }

 private:
  void Add(const char* name, Action action, std::vector<Condition> when) {
    profile_->rules.push_back({name, action, std::move(when)});
  }
  Profile* profile_;
};

// A child in a new user namespace has every capability there, and with them most of the kernel's attack surface.
// clone3 keeps its flags behind a pointer; answered ENOSYS, libc falls back to clone.
void Processes(Builder& rules) {
  rules.Allow("clone", {HasNone(0, kNamespaceFlags)});
  rules.Fail("clone3", ENOSYS);
}

// A boundary must not leave a setuid file in a directory it shares with the host, so no call that sets a mode may
// carry those bits. Device nodes are refused as well, also the one that RENAME_WHITEOUT leaves behind.
void Files(Builder& rules) {
  constexpr uint64_t kCreates =
      O_CREAT | kTmpfileBit;  // without one of these the mode is an unused register
  rules.Allow("open", {HasNone(1, kCreates)});
  rules.Allow("open", {HasNone(2, kSpecialModes)});
  rules.Allow("openat", {HasNone(2, kCreates)});
  rules.Allow("openat", {HasNone(3, kSpecialModes)});
  rules.Fail("openat2",
             ENOSYS);  // flags and mode are behind a pointer; callers fall back to openat
  rules.Allow("creat", {HasNone(1, kSpecialModes)});
  rules.Allow("mkdir", {HasNone(1, kSpecialModes)});
  rules.Allow("mkdirat", {HasNone(2, kSpecialModes)});
  rules.Allow("chmod", {HasNone(1, kSpecialModes)});
  rules.Allow("fchmod", {HasNone(1, kSpecialModes)});
  rules.Allow("fchmodat", {HasNone(2, kSpecialModes)});
  rules.Allow("fchmodat2", {HasNone(2, kSpecialModes)});
  for (const uint64_t type : {0, S_IFREG, S_IFIFO}) {
    rules.Allow("mknod", {Is(1, type, S_IFMT | kSpecialModes)});
    rules.Allow("mknodat", {Is(2, type, S_IFMT | kSpecialModes)});
  }
  rules.Allow("renameat2", {HasNone(4, kRenameWhiteout)});
}

// A datagram socket can name another receiver with every message, behind a pointer, also one that came from socketpair.
// A stream or a sequence of packets has one peer for life, so connect is the only door.
void UnixSockets(Tier tier, FilterOptions options, Builder& rules) {
  const bool datagrams = options.unix_sockets && !options.host_paths && tier >= Tier::kDefault;
  for (const uint64_t type : {SOCK_STREAM, SOCK_SEQPACKET, SOCK_DGRAM}) {
    if (type == SOCK_DGRAM && !datagrams) {
      continue;
    }
    rules.Allow("socketpair", {Is(0, AF_UNIX), Is(1, type, kSocketTypeMask)});
    if (options.unix_sockets && tier >= Tier::kDefault) {
      rules.Allow("socket", {Is(0, AF_UNIX), Is(1, type, kSocketTypeMask)});
    }
  }
  if (tier >= Tier::kDefault && !(options.unix_sockets && options.host_paths)) {
    rules.Allow("connect");  // otherwise the supervisor connects
  }
}

// Families and protocols by name; vsock, packet, alg, bluetooth and all others never: each is a driver that a
// network namespace does not confine, or a module that the call itself would load. Raw sockets forge packets.
void NetworkSockets(Tier tier, FilterOptions options, Builder& rules) {
  if (!options.inet_sockets || tier < Tier::kDefault) {
    return;
  }
  static_assert(AF_INET == 2 && AF_INET6 == 10);
  const Condition inet =
      Is(0, AF_INET, kLowHalf & ~uint64_t{8});  // both families, which differ in one bit
  const Condition stream = Is(1, SOCK_STREAM, kSocketTypeMask);
  const Condition datagram = Is(1, SOCK_DGRAM, kSocketTypeMask);
  rules.Allow("socket", {inet, stream, Is(2, 0)});
  rules.Allow("socket", {inet, stream, Is(2, IPPROTO_TCP)});
  rules.Allow("socket", {inet, datagram, Is(2, 0)});
  rules.Allow("socket", {inet, datagram, Is(2, IPPROTO_UDP)});
  // As a kernel without these protocols answers. Go asks for MPTCP, and goes on; test suites ask for the others.
  for (const uint64_t protocol :
       {uint64_t{IPPROTO_SCTP}, uint64_t{IPPROTO_UDPLITE}, kProtocolMptcp}) {
    rules.Fail("socket", EPROTONOSUPPORT, {inet, Is(2, protocol)});
  }
  // getifaddrs, Node, Go and ip(8); for netlink, raw and datagram are the same thing. Without
  // capabilities it only reads, and what it reads is the boundary's own network.
  for (const uint64_t type : {SOCK_RAW, SOCK_DGRAM}) {
    rules.Allow("socket",
                {Is(0, AF_NETLINK), Is(1, type, kSocketTypeMask), Is(2, 0 /* NETLINK_ROUTE */)});
  }
}

// Groups and their sources are kernel memory that no cgroup counts, a hundred kilobytes for a
// socket. A boundary has loopback alone, so joining answers as where no device has a route for
// groups.
void RefuseGroups(std::vector<Rule>& rules) {
  constexpr uint64_t kOfIp[] = {IP_ADD_MEMBERSHIP,
                                IP_BLOCK_SOURCE,
                                IP_UNBLOCK_SOURCE,
                                IP_ADD_SOURCE_MEMBERSHIP,
                                IP_MSFILTER,
                                MCAST_JOIN_GROUP,
                                MCAST_BLOCK_SOURCE,
                                MCAST_UNBLOCK_SOURCE,
                                MCAST_JOIN_SOURCE_GROUP,
                                MCAST_MSFILTER};
  constexpr uint64_t kOfIpv6[] = {IPV6_JOIN_GROUP,    IPV6_JOIN_ANYCAST,    MCAST_JOIN_GROUP,
                                  MCAST_BLOCK_SOURCE, MCAST_UNBLOCK_SOURCE, MCAST_JOIN_SOURCE_GROUP,
                                  MCAST_MSFILTER};
  for (const uint64_t option : kOfIp) {
    rules.push_back({"setsockopt", FailWith(ENODEV), {Is(1, IPPROTO_IP), Is(2, option)}});
  }
  for (const uint64_t option : kOfIpv6) {
    rules.push_back({"setsockopt", FailWith(ENODEV), {Is(1, IPPROTO_IPV6), Is(2, option)}});
  }
}

// A filter of a socket is a program in the kernel's memory, up to 32 KiB before it is compiled,
// which RLIMIT_MEMLOCK and sampling do not see. Without such options a kernel answers that there is
// none of that name. Detaching may stay.
void RefuseSocketFilters(std::vector<Rule>& rules) {
  for (const uint64_t option :
       {SO_ATTACH_FILTER, SO_ATTACH_BPF, SO_ATTACH_REUSEPORT_CBPF, SO_ATTACH_REUSEPORT_EBPF}) {
    rules.push_back({"setsockopt", FailWith(ENOPROTOOPT), {Is(1, SOL_SOCKET), Is(2, option)}});
  }
}

// Labels of IPv6 flows come out of one table of 4,096 for all network namespaces of the host, and a
// boundary's user namespace does not own it.
void RefuseFlowLabels(std::vector<Rule>& rules) {
  rules.push_back(
      {"setsockopt", FailWith(ENOPROTOOPT), {Is(1, IPPROTO_IPV6), Is(2, kIpv6FlowlabelMgr)}});
}

// Keys that sign segments, a protocol on top of TCP with keys and buffers of its own, and headers to be sent: up to
// `optmem_max` (128 KiB) for each socket, in memory that no cgroup counts. Without such options a kernel answers that
// there is none of that name.
void RefuseKeys(std::vector<Rule>& rules) {
  for (const uint64_t option : {kTcpMd5sig, kTcpMd5sigExt, kTcpAoAddKey, kTcpUlp}) {
    rules.push_back({"setsockopt", FailWith(ENOPROTOOPT), {Is(1, IPPROTO_TCP), Is(2, option)}});
  }
  rules.push_back(
      {"setsockopt", FailWith(ENOPROTOOPT), {Is(1, IPPROTO_IPV6), Is(2, kIpv6PacketOptions)}});
}

// What comes back to a socket beside data, errors of ICMP and the moments when packets left, waits in a queue of up to
// 400 KiB that no cgroup counts. Without errors a connected socket still fails with ECONNREFUSED. Asking for them is
// answered as if it were done: the C library opens no name server without.
void RefuseErrorQueues(std::vector<Rule>& rules) {
  for (const uint64_t option : {kTimestamping, kTimestampingNew}) {
    rules.push_back({"setsockopt", FailWith(ENOPROTOOPT), {Is(1, SOL_SOCKET), Is(2, option)}});
  }
  rules.push_back({"setsockopt", kAsIfDone, {Is(1, IPPROTO_IP), Is(2, IP_RECVERR)}});
  rules.push_back({"setsockopt", kAsIfDone, {Is(1, IPPROTO_IPV6), Is(2, IPV6_RECVERR)}});
}

void RefuseSocketOptions(FilterOptions options, Profile* profile) {
  std::vector<Rule> rules;
  RefuseSocketFilters(rules);
  if (options.inet_sockets) {
    RefuseFlowLabels(rules);
    RefuseKeys(rules);
    RefuseErrorQueues(rules);
    RefuseGroups(rules);
  }
  profile->rules.insert(profile->rules.begin(), rules.begin(), rules.end());
}

// System V segments and sets live in kernel memory or outside every process, where sampling does
// not see them: without a memory cgroup only their number (4,096 and 32,000) and these sizes bound
// them. Databases take a page and a few.
void SystemV(Tier tier, Builder& rules) {
  if (tier == Tier::kCompat) {
    rules.Allow("shmget", {HasNone(2, SHM_HUGETLB | kHugeSizeBits)});
    rules.Allow("semget");
  } else if (tier == Tier::kDefault) {
    rules.Allow("shmget",
                {{1, Compare::kLessEqual, kSmallSegment}, HasNone(2, SHM_HUGETLB | kHugeSizeBits)});
    rules.Allow("semget", {{1, Compare::kLessEqual, kSmallSet}});
  }
}

// TIOCSTI types into the caller's terminal, TIOCLINUX pastes into a console, TIOCSETD loads line
// disciplines, TIOCCONS takes over the console's output. Of files there is a list of what is
// allowed: each file system has commands of its own, that take space past every limit, change flags
// of the caller's files or tell of the host's disk. The rest is answered as by a file that does not
// know the command. strict has a list for everything.
void Ioctls(Tier tier, Builder& rules) {
  if (tier == Tier::kStrict) {
    rules.AllowValues("ioctl", 1, kHarmlessIoctls);
    return;
  }
  for (const uint64_t command : {TIOCSTI, TIOCLINUX, TIOCSETD, TIOCCONS}) {
    rules.Refuse("ioctl", {Is(1, command)});
  }
  for (const uint64_t type : {kOfTerminals, kOfSockets}) {
    rules.Allow("ioctl", {Is(1, type, kIoctlType)});
  }
  rules.AllowValues("ioctl", 1, kKnownFileIoctls);
  for (const unsigned command : kAllocatingIoctls) {
    rules.Fail("ioctl", EOPNOTSUPP, {Is(1, command)});
  }
  rules.Fail("ioctl", ENOTTY);
}

// Options that read something, or change only the caller in ways that cannot widen anything. Left out on purpose:
// speculation control (could switch a mitigation off), PR_SET_MM, core scheduling, memory merging (a side channel).
void Prctl(Tier tier, Builder& rules) {
  rules.AllowValues("prctl", 0,
                    {PR_SET_NAME,
                     PR_GET_NAME,
                     PR_SET_PDEATHSIG,
                     PR_GET_PDEATHSIG,
                     PR_GET_DUMPABLE,
                     PR_SET_DUMPABLE,
                     PR_SET_NO_NEW_PRIVS,
                     PR_GET_NO_NEW_PRIVS,
                     PR_SET_VMA,
                     PR_CAPBSET_READ,
                     PR_GET_SECCOMP,
                     PR_GET_TID_ADDRESS,
                     PR_SET_CHILD_SUBREAPER,
                     PR_GET_CHILD_SUBREAPER,
                     PR_SET_TIMERSLACK,
                     PR_GET_TIMERSLACK,
                     PR_SET_THP_DISABLE,
                     PR_GET_THP_DISABLE,
                     PR_PAC_RESET_KEYS,
                     PR_SET_TAGGED_ADDR_CTRL,
                     PR_GET_TAGGED_ADDR_CTRL,
                     65 /* PR_SET_MDWE, 6.3 */,
                     66 /* PR_GET_MDWE, 6.3 */,
                     0x41555856 /* PR_GET_AUXV, 6.4 */});
  if (tier >= Tier::kDefault) {
    rules.AllowValues(
        "prctl", 0,
        {PR_GET_KEEPCAPS, PR_SET_KEEPCAPS, PR_GET_SECUREBITS, PR_GET_SPECULATION_CTRL,
         PR_SVE_SET_VL, PR_SVE_GET_VL, 63 /* PR_SME_SET_VL, 5.19 */, 64 /* PR_SME_GET_VL, 5.19 */});
  }
  if (tier == Tier::kCompat) {
    rules.AllowValues(
        "prctl", 0,
        {PR_GET_TIMING, PR_GET_TSC, PR_MCE_KILL_GET, PR_PAC_GET_ENABLED_KEYS, PR_GET_IO_FLUSHER});
    rules.Allow("prctl", {Is(0, PR_CAP_AMBIENT), Is(1, PR_CAP_AMBIENT_IS_SET, kWholeArgument)});
    rules.Allow("prctl", {Is(0, PR_CAP_AMBIENT), Is(1, PR_CAP_AMBIENT_CLEAR_ALL, kWholeArgument)});
    // A further filter can only narrow: the kernel takes the strictest answer of all of them.
    rules.AllowValues("prctl", 0, {PR_SET_SECCOMP, PR_SET_PTRACER, PR_SET_SYSCALL_USER_DISPATCH});
    rules.Refuse("seccomp",
                 {HasAny(1, SECCOMP_FILTER_FLAG_NEW_LISTENER)});  // it would answer in our place
    rules.AllowValues("seccomp", 0,
                      {SECCOMP_SET_MODE_STRICT, SECCOMP_SET_MODE_FILTER, SECCOMP_GET_ACTION_AVAIL,
                       SECCOMP_GET_NOTIF_SIZES});
  }
}

// Merged pages tell by the time of a write who else has the same content: another boundary, a virtual machine of the host.
// Without a rule for it prctl(PR_SET_MEMORY_MERGE) is refused too. As a kernel without the feature answers.
void MergedPages(Profile* profile) {
  profile->rules.insert(profile->rules.begin(),
                        Rule{"madvise", FailWith(EINVAL), {Is(2, MADV_MERGEABLE)}});
}

// Where dumps are piped to a program (core(5)), the host's root runs it on the host, outside of every limit, for each
// process that crashes, whatever RLIMIT_CORE is. Only the value 1 keeps it from being started, which
// child/confine.h sets. So the limit stays, also where a program lowers it to 0: that is answered as if it were done.
void CoreLimit(Profile* profile) {
  const Condition set = {2, Compare::kNotEqual, 0, kWholeArgument};
  const Rule rules[] = {
      {"setrlimit", kAsIfDone, {Is(0, RLIMIT_CORE)}},
      {"prlimit64", kAsIfDone, {Is(1, RLIMIT_CORE), set, Is(3, 0, kWholeArgument)}},
      {"prlimit64",
       FailWith(EPERM),
       {Is(1, RLIMIT_CORE), set}},  // it wants to know the old one too
  };
  profile->rules.insert(profile->rules.begin(), std::begin(rules), std::end(rules));
}

// Huge pages come out of a pool of the host that no memory cgroup counts.
void HugePages(Builder& rules) {
  rules.Allow("mmap", {HasNone(3, MAP_HUGETLB)});
  rules.Allow("memfd_create", {HasNone(1, MFD_HUGETLB | kHugeSizeBits)});
}

// A list of what is allowed, because newer kernels add commands. Left out on purpose: leases and
// delegations, which make the host's writers wait, also on a file that may only be read; F_NOTIFY,
// which is inotify by another name; and pipes larger than the usual, whose pages are counted for
// the user.
void Fcntl(Builder& rules) {
  rules.AllowValues("fcntl", 1, {F_DUPFD,      F_GETFD,     F_SETFD,         F_GETFL,
                                 F_SETFL,      F_GETLK,     F_SETLK,         F_SETLKW,
                                 F_SETOWN,     F_GETOWN,    F_SETSIG,        F_GETSIG,
                                 F_SETOWN_EX,  F_GETOWN_EX, F_OFD_GETLK,     F_OFD_SETLK,
                                 F_OFD_SETLKW, F_GETLEASE,  F_DUPFD_CLOEXEC, F_GETPIPE_SZ,
                                 F_ADD_SEALS,  F_GET_SEALS, F_GET_RW_HINT,   F_GET_FILE_RW_HINT,
                                 1027 /* F_DUPFD_QUERY, 6.10 */});
  rules.Allow("fcntl", {Is(1, F_SETPIPE_SZ), HasNone(2, kLowHalf & ~(kOrdinaryPipe - 1))});
  rules.Allow("fcntl", {Is(1, F_SETPIPE_SZ), Is(2, kOrdinaryPipe)});
}

void Scheduling(Tier tier, Builder& rules) {
  rules.AllowValues("personality", 0, {0xffffffff /* only asks */, 0 /* PER_LINUX */});
  // Without SCHED_FIFO and SCHED_RR: where the host's limits allow real-time priorities they would own a core.
  if (tier >= Tier::kDefault) {
    rules.AllowValues("sched_setscheduler", 1, {SCHED_OTHER, SCHED_BATCH, SCHED_IDLE});
  }
  // Without a pid namespace another process's limits are in reach; asking for them changes nothing.
  if (tier == Tier::kCompat) {
    rules.Allow("prlimit64");
  } else {
    rules.Allow("prlimit64", {Is(0, 0)});
    rules.Allow("prlimit64", {Is(2, 0, kWholeArgument)});
  }
}

}  // namespace

void AskForLocks(Profile& profile) {
  profile.rules.insert(profile.rules.begin(),
                       Rule{"flock", kNotify, {{1, Compare::kEqual, LOCK_EX, LOCK_EX}}});
}

std::span<const unsigned> HarmlessIoctls() { return kHarmlessIoctls; }

void AddArgumentRules(Tier tier, FilterOptions options, Profile* profile) {
  Builder rules(profile);
  Processes(rules);
  Files(rules);
  UnixSockets(tier, options, rules);
  NetworkSockets(tier, options, rules);
  RefuseSocketOptions(options, profile);
  if (!options.own_figures) {
    rules.Allow("sysinfo");  // otherwise the supervisor answers
  }
  Ioctls(tier, rules);
  Prctl(tier, rules);
  MergedPages(profile);
  CoreLimit(profile);
  HugePages(rules);
  SystemV(tier, rules);
  Fcntl(rules);
  Scheduling(tier, rules);
  AddIdentityRules(tier, options, profile);
}

}  // namespace coffer::isolation
