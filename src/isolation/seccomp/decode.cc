// SPDX-License-Identifier: Apache-2.0
#include "isolation/seccomp/decode.h"

#include <asm/ioctls.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <span>

namespace coffer::isolation {
namespace {

struct Named {
  uint64_t value;
  std::string_view name;
};
#define COFFER_NAMED(constant) {static_cast<uint64_t>(constant), #constant}

constexpr Named kCloneFlags[] = {
    COFFER_NAMED(CLONE_NEWUSER),
    COFFER_NAMED(CLONE_NEWNS),
    COFFER_NAMED(CLONE_NEWPID),
    COFFER_NAMED(CLONE_NEWNET),
    COFFER_NAMED(CLONE_NEWIPC),
    COFFER_NAMED(CLONE_NEWUTS),
    COFFER_NAMED(CLONE_NEWCGROUP),
    COFFER_NAMED(CLONE_VM),
    COFFER_NAMED(CLONE_FS),
    COFFER_NAMED(CLONE_FILES),
    COFFER_NAMED(CLONE_SIGHAND),
    COFFER_NAMED(CLONE_PIDFD),
    COFFER_NAMED(CLONE_PTRACE),
    COFFER_NAMED(CLONE_VFORK),
    COFFER_NAMED(CLONE_PARENT),
    COFFER_NAMED(CLONE_THREAD),
    COFFER_NAMED(CLONE_SYSVSEM),
    COFFER_NAMED(CLONE_SETTLS),
    COFFER_NAMED(CLONE_UNTRACED),
    COFFER_NAMED(CLONE_IO),
    COFFER_NAMED(CLONE_PARENT_SETTID),
    COFFER_NAMED(CLONE_CHILD_SETTID),
    COFFER_NAMED(CLONE_CHILD_CLEARTID),
};
constexpr Named kUnshareFlags[] = {
    COFFER_NAMED(CLONE_NEWUSER),   COFFER_NAMED(CLONE_NEWNS),   COFFER_NAMED(CLONE_NEWPID),
    COFFER_NAMED(CLONE_NEWNET),    COFFER_NAMED(CLONE_NEWIPC),  COFFER_NAMED(CLONE_NEWUTS),
    COFFER_NAMED(CLONE_NEWCGROUP), {0x80, "CLONE_NEWTIME"},     COFFER_NAMED(CLONE_FILES),
    COFFER_NAMED(CLONE_FS),        COFFER_NAMED(CLONE_SYSVSEM),
};
constexpr Named kMountFlags[] = {
    COFFER_NAMED(MS_RDONLY), COFFER_NAMED(MS_NOSUID),  COFFER_NAMED(MS_NODEV),
    COFFER_NAMED(MS_NOEXEC), COFFER_NAMED(MS_REMOUNT), COFFER_NAMED(MS_BIND),
    COFFER_NAMED(MS_MOVE),   COFFER_NAMED(MS_REC),     COFFER_NAMED(MS_PRIVATE),
    COFFER_NAMED(MS_SLAVE),  COFFER_NAMED(MS_SHARED),
};
constexpr Named kOpenFlags[] = {
    COFFER_NAMED(O_WRONLY),   COFFER_NAMED(O_RDWR),    COFFER_NAMED(O_CREAT),
    COFFER_NAMED(O_EXCL),     COFFER_NAMED(O_TRUNC),   COFFER_NAMED(O_APPEND),
    COFFER_NAMED(O_CLOEXEC),  COFFER_NAMED(O_TMPFILE), COFFER_NAMED(O_DIRECTORY),
    COFFER_NAMED(O_NOFOLLOW), COFFER_NAMED(O_PATH),
};
constexpr Named kFamilies[] = {
    COFFER_NAMED(AF_UNSPEC), COFFER_NAMED(AF_UNIX),       COFFER_NAMED(AF_INET),
    COFFER_NAMED(AF_INET6),  COFFER_NAMED(AF_NETLINK),    COFFER_NAMED(AF_PACKET),
    COFFER_NAMED(AF_VSOCK),  COFFER_NAMED(AF_ALG),        COFFER_NAMED(AF_BLUETOOTH),
    COFFER_NAMED(AF_CAN),    COFFER_NAMED(AF_TIPC),       COFFER_NAMED(AF_KCM),
    COFFER_NAMED(AF_XDP),    COFFER_NAMED(AF_RDS),        COFFER_NAMED(AF_KEY),
    COFFER_NAMED(AF_NFC),    COFFER_NAMED(AF_QIPCRTR),    COFFER_NAMED(AF_SMC),
    COFFER_NAMED(AF_AX25),   COFFER_NAMED(AF_APPLETALK),  COFFER_NAMED(AF_IPX),
    COFFER_NAMED(AF_X25),    COFFER_NAMED(AF_PPPOX),      COFFER_NAMED(AF_LLC),
    COFFER_NAMED(AF_IB),     COFFER_NAMED(AF_MPLS),       COFFER_NAMED(AF_RXRPC),
    COFFER_NAMED(AF_PHONET), COFFER_NAMED(AF_IEEE802154), COFFER_NAMED(AF_CAIF),
    COFFER_NAMED(AF_ISDN),
};
constexpr Named kSocketTypes[] = {
    COFFER_NAMED(SOCK_STREAM), COFFER_NAMED(SOCK_DGRAM),     COFFER_NAMED(SOCK_RAW),
    COFFER_NAMED(SOCK_RDM),    COFFER_NAMED(SOCK_SEQPACKET), COFFER_NAMED(SOCK_PACKET),
};
constexpr Named kIoctls[] = {
    COFFER_NAMED(TIOCSTI),
    COFFER_NAMED(TIOCLINUX),
    COFFER_NAMED(TIOCSETD),
    COFFER_NAMED(TIOCCONS),
    COFFER_NAMED(TIOCEXCL),
    COFFER_NAMED(TIOCGPTN),
    COFFER_NAMED(TCSBRK),
    COFFER_NAMED(TIOCSPTLCK),
    {0x40086602, "FS_IOC_SETFLAGS"},
    {0x80086601, "FS_IOC_GETFLAGS"},
    {0x40049409, "FICLONE"},  // linux/fs.h cannot be included beside sys/mount.h
};
constexpr Named kFcntls[] = {
    COFFER_NAMED(F_SETLEASE),    COFFER_NAMED(F_NOTIFY),           COFFER_NAMED(F_SETPIPE_SZ),
    COFFER_NAMED(F_SETOWN),      COFFER_NAMED(F_SETOWN_EX),        COFFER_NAMED(F_SETSIG),
    COFFER_NAMED(F_SET_RW_HINT), COFFER_NAMED(F_SET_FILE_RW_HINT),
};
constexpr Named kPrctls[] = {
    COFFER_NAMED(PR_SET_SECCOMP),
    COFFER_NAMED(PR_SET_MM),
    COFFER_NAMED(PR_SET_SECUREBITS),
    COFFER_NAMED(PR_CAPBSET_DROP),
    COFFER_NAMED(PR_CAP_AMBIENT),
    COFFER_NAMED(PR_SET_SPECULATION_CTRL),
    COFFER_NAMED(PR_SET_PTRACER),
    COFFER_NAMED(PR_SCHED_CORE),
    COFFER_NAMED(PR_SET_IO_FLUSHER),
    COFFER_NAMED(PR_MCE_KILL),
    COFFER_NAMED(PR_SET_SYSCALL_USER_DISPATCH),
    COFFER_NAMED(PR_SET_TSC),
    COFFER_NAMED(PR_TASK_PERF_EVENTS_DISABLE),
    COFFER_NAMED(PR_TASK_PERF_EVENTS_ENABLE),
    COFFER_NAMED(PR_SET_KEEPCAPS),
    {67, "PR_SET_MEMORY_MERGE"},
};
constexpr Named kPtraceRequests[] = {
    {0, "PTRACE_TRACEME"},  {1, "PTRACE_PEEKTEXT"}, {2, "PTRACE_PEEKDATA"},
    {4, "PTRACE_POKETEXT"}, {5, "PTRACE_POKEDATA"}, {7, "PTRACE_CONT"},
    {16, "PTRACE_ATTACH"},  {17, "PTRACE_DETACH"},  {0x4206, "PTRACE_SEIZE"},
};
#undef COFFER_NAMED

// One letter per argument:
//   d int   x 32 bits in hex   X 64 bits in hex   p pointer   o octal mode
//   c clone flags   u unshare flags   m mount flags   f open flags
//   F socket family   T socket type   I ioctl command   C fcntl command   P prctl option   R ptrace request
struct Signature {
  std::string_view syscall;
  std::string_view letters;
};
constexpr Signature kSignatures[] = {
    {"accept", "dpp"},
    {"accept4", "dppx"},
    {"acct", "p"},
    {"add_key", "pppxd"},
    {"adjtimex", "p"},
    {"bind", "dpd"},
    {"bpf", "dpd"},
    {"chmod", "po"},
    {"chroot", "p"},
    {"clock_adjtime", "dp"},
    {"clock_settime", "dp"},
    {"clone", "c"},
    {"connect", "dpd"},
    {"creat", "po"},
    {"delete_module", "px"},
    {"fanotify_init", "xx"},
    {"fanotify_mark", "dxXdp"},
    {"fchmod", "do"},
    {"fchmodat", "dpo"},
    {"fchmodat2", "dpox"},
    {"finit_module", "dpx"},
    {"fsconfig", "ddppd"},
    {"fsmount", "dxx"},
    {"fsopen", "px"},
    {"fspick", "dpx"},
    {"init_module", "pXp"},
    {"io_setup", "dp"},
    {"io_uring_enter", "dddxpX"},
    {"io_uring_register", "ddpd"},
    {"io_uring_setup", "dp"},
    {"ioctl", "dI"},
    {"ioperm", "XXd"},
    {"iopl", "d"},
    {"kcmp", "dddXX"},
    {"kexec_file_load", "ddXpX"},
    {"kexec_load", "XXpX"},
    {"keyctl", "d"},
    {"landlock_add_rule", "ddpx"},
    {"landlock_create_ruleset", "pXx"},
    {"landlock_restrict_self", "dx"},
    {"listen", "dd"},
    {"lookup_dcookie", "XpX"},
    {"mbind", "pXdpXx"},
    {"memfd_secret", "x"},
    {"migrate_pages", "dXpp"},
    {"mkdir", "po"},
    {"mkdirat", "dpo"},
    {"mknod", "poX"},
    {"mknodat", "dpoX"},
    {"modify_ldt", "dpX"},
    {"mount", "pppmp"},
    {"mount_setattr", "dpxpX"},
    {"move_mount", "dpdpx"},
    {"move_pages", "dXpppx"},
    {"mq_open", "pfop"},
    {"msgget", "xx"},
    {"name_to_handle_at", "dpppx"},
    {"open", "pfo"},
    {"open_by_handle_at", "dpf"},
    {"open_tree", "dpx"},
    {"openat", "dpfo"},
    {"perf_event_open", "pdddx"},
    {"personality", "x"},
    {"pidfd_getfd", "ddx"},
    {"pivot_root", "pp"},
    {"prctl", "PX"},
    {"prlimit64", "ddpp"},
    {"process_madvise", "dpXdx"},
    {"process_vm_readv", "dpXpXX"},
    {"process_vm_writev", "dpXpXX"},
    {"ptrace", "Rd"},
    {"quotactl", "xpdp"},
    {"quotactl_fd", "dxdp"},
    {"reboot", "xxxp"},
    {"renameat2", "dpdpx"},
    {"request_key", "pppd"},
    {"sched_setattr", "dpx"},
    {"sched_setscheduler", "ddp"},
    {"seccomp", "dxp"},
    {"semget", "xdx"},
    {"setdomainname", "pd"},
    {"sethostname", "pd"},
    {"setns", "du"},
    {"settimeofday", "pp"},
    {"shmget", "xXx"},
    {"socket", "FTd"},
    {"socketpair", "FTdp"},
    {"swapoff", "p"},
    {"swapon", "px"},
    {"sync", ""},
    {"syslog", "dpd"},
    {"umount2", "px"},
    {"unshare", "u"},
    {"userfaultfd", "x"},
    {"set_mempolicy_home_node", "pXXx"},
    {"vhangup", ""},
    {"splice", "dpdpXx"},
    {"vmsplice", "dpXx"},
    {"tee", "ddXx"},
    {"setuid", "d"},
    {"setgid", "d"},
    {"chown", "pdd"},
    {"fchown", "ddd"},
    {"fchownat", "dpddx"},
    {"setgroups", "dp"},
    {"capset", "pp"},
    {"setresuid", "ddd"},
    {"setresgid", "ddd"},
    {"setreuid", "dd"},
    {"setregid", "dd"},
    {"setpriority", "ddd"},
    {"setxattr", "pppXx"},
    {"lsetxattr", "pppXx"},
    {"fsetxattr", "dppXx"},
    {"inotify_init1", "x"},
    {"futimesat", "dpp"},
    {"utimes", "pp"},
    {"utime", "pp"},
    {"utimensat", "dppx"},
    {"lchown", "pdd"},
    {"removexattr", "pp"},
    {"lremovexattr", "pp"},
    {"fremovexattr", "dp"},
    {"setxattrat", "dpxppX"},
    {"removexattrat", "dpxp"},
    {"file_setattr", "dppXx"},
    {"inotify_init", ""},
    {"inotify_add_watch", "dpx"},
    {"shmat", "dpx"},
    {"shmdt", "p"},
    {"shmctl", "ddp"},
    {"semop", "dpX"},
    {"semtimedop", "dpXp"},
    {"semctl", "ddd"},
    {"msgsnd", "dpXx"},
    {"msgrcv", "dpXdx"},
    {"msgctl", "ddp"},
    {"mq_unlink", "p"},
    {"mq_timedsend", "dpXdp"},
    {"mq_timedreceive", "dpXpp"},
    {"mq_notify", "dp"},
    {"mq_getsetattr", "dpp"},
    {"process_mrelease", "dx"},
    {"sched_setaffinity", "dXp"},
    {"sched_setparam", "dp"},
    {"get_robust_list", "dpp"},
    {"ioprio_set", "ddx"},
    {"truncate", "pX"},
    {"mmap", "pXxx"},
    {"memfd_create", "px"},
    {"fcntl", "dC"},
    {"io_destroy", "p"},
    {"io_submit", "pXp"},
    {"io_cancel", "ppp"},
    {"io_getevents", "pXXpp"},
    {"io_pgetevents", "pXXppp"},
    {"syncfs", "d"},
};

std::string Hex(uint64_t value) {
  std::array<char, 20> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, 16);
  return "0x" + std::string(buffer.data(), end.ptr);
}

std::string Octal(uint64_t value) {
  std::array<char, 24> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, 8);
  return "0" + std::string(buffer.data(), end.ptr);
}

std::string OneOf(std::span<const Named> names, uint32_t value) {
  const auto found =
      std::find_if(names.begin(), names.end(), [&](const Named& n) { return n.value == value; });
  return found != names.end() ? std::string(found->name) : Hex(value);
}

// "A|B|0x8": the names of the bits, and what is left in hex.
std::string Bits(std::span<const Named> names, uint64_t value) {
  std::string text;
  const auto append = [&text](std::string_view part) {
    text += text.empty() ? "" : "|";
    text += part;
  };
  for (const Named& named : names) {
    if (named.value != 0 && (value & named.value) == named.value) {
      append(named.name);
      value &= ~named.value;
    }
  }
  if (value != 0 || text.empty()) {
    append(value == 0 ? "0" : Hex(value));
  }
  return text;
}

std::string CloneFlags(uint64_t value) {
  constexpr uint64_t kSignal = 0xff;
  std::string text = Bits(kCloneFlags, value & 0xffffffff & ~kSignal);
  const uint64_t signal = value & kSignal;
  if (signal == SIGCHLD) {
    text += "|SIGCHLD";
  } else if (signal != 0) {
    text += "|signal " + std::to_string(signal);
  }
  return text;
}

std::string SocketType(uint32_t value) {
  std::string text = OneOf(kSocketTypes, value & 0xf);
  value &= ~0xfU;
  text += (value & SOCK_CLOEXEC) != 0 ? "|SOCK_CLOEXEC" : "";
  text += (value & SOCK_NONBLOCK) != 0 ? "|SOCK_NONBLOCK" : "";
  value &= ~static_cast<uint32_t>(SOCK_CLOEXEC | SOCK_NONBLOCK);
  return value == 0 ? text : text + "|" + Hex(value);
}

std::string One(char letter, uint64_t value) {
  const auto low = static_cast<uint32_t>(value);
  switch (letter) {
    case 'd':
      return std::to_string(static_cast<int32_t>(low));
    case 'x':
      return low == 0 ? "0" : Hex(low);
    case 'p':
      return value == 0 ? "null" : "ptr";
    case 'o':
      return Octal(low & 0xffff);
    case 'c':
      return CloneFlags(value);
    case 'u':
      return Bits(kUnshareFlags, low);
    case 'm':
      return Bits(kMountFlags, value);
    case 'f':
      return Bits(kOpenFlags, low);
    case 'F':
      return OneOf(kFamilies, low);
    case 'T':
      return SocketType(low);
    case 'I':
      return OneOf(kIoctls, low);
    case 'C':
      return OneOf(kFcntls, low);
    case 'P':
      return OneOf(kPrctls, low);
    case 'R':
      return OneOf(kPtraceRequests, low);
    default:
      return value == 0 ? "0" : Hex(value);
  }
}

}  // namespace

std::string DecodeArguments(std::string_view syscall, const seccomp_data& data) {
  const auto known =
      std::find_if(std::begin(kSignatures), std::end(kSignatures),
                   [&](const Signature& signature) { return signature.syscall == syscall; });
  const std::string_view letters = known != std::end(kSignatures) ? known->letters : "XXXXXX";
  std::string text;
  for (size_t i = 0; i < letters.size(); ++i) {
    text += i == 0 ? "" : ", ";
    text += One(letters[i], data.args[i]);
  }
  return text;
}

}  // namespace coffer::isolation
