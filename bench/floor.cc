// SPDX-License-Identifier: Apache-2.0
//
// bench_floor [--beside] COMMAND ARG...: what the kernel alone costs. Asks it for the same layers as `coffer run` (all
// namespaces, a private root, cgroups with limits, no capabilities, Landlock, the very same filter) and does nothing
// else: it looks at no path, resolves nothing, watches nothing, keeps no output, writes no receipt, and
// trusts everything. Never use it as a boundary: it runs as root only, for the page of benchmarks. With --beside the
// network, which takes longest, is made by another process while the rest is built, as coffer does it: shorter, and more
// work.
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <linux/sched.h>
#include <net/if.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "isolation/seccomp/builtin.h"
#include "isolation/seccomp/install.h"

namespace coffer::bench {
namespace {

constexpr int kUid = 1000;
constexpr int kHostUid = 1879048192;

struct Cgroup {
  std::string path;
  int joins = -1;  // v1: its tasks; v2: itself, to be born in
};

// What the one process that made it must remove, whatever happens.
pid_t g_owner = -1;
pid_t g_init = -1;
std::vector<Cgroup> g_cgroups;

void CleanUp() {
  if (g_init > 0) {
    ::kill(g_init, SIGKILL);
    ::waitpid(g_init, nullptr, 0);
  }
  for (const Cgroup& cgroup : g_cgroups) {
    if (::rmdir(cgroup.path.c_str()) < 0) {
      ::perror(cgroup.path.c_str());
    }
  }
}

void Must(long answer, const char* what) {
  if (answer < 0) {
    ::perror(what);
    if (::getpid() == g_owner) {
      CleanUp();
    }
    ::_exit(125);
  }
}

void Write(const char* path, const char* text) {
  const int fd = ::open(path, O_WRONLY | O_CLOEXEC);
  Must(fd, path);
  Must(::write(fd, text, ::strlen(text)), path);
  ::close(fd);
}

bool Unified() { return ::access("/sys/fs/cgroup/cgroup.controllers", F_OK) == 0; }

const Cgroup& MakeCgroup(const char* hierarchy) {
  Cgroup cgroup{fmt::format("/sys/fs/cgroup/{}floor-{}", hierarchy, ::getpid())};
  Must(::mkdir(cgroup.path.c_str(), 0755), cgroup.path.c_str());
  Cgroup& made = g_cgroups.emplace_back(std::move(cgroup));
  const std::string joins = Unified() ? made.path : made.path + "/tasks";
  made.joins = ::open(joins.c_str(), (Unified() ? O_RDONLY : O_WRONLY) | O_CLOEXEC);
  Must(made.joins, joins.c_str());
  return made;
}

void Limit(const Cgroup& cgroup, const char* file, const char* value) {
  Write((cgroup.path + "/" + file).c_str(), value);
}

void MakeCgroups() {
  g_cgroups.reserve(3);  // they are referred to
  if (Unified()) {
    const Cgroup& all = MakeCgroup("");
    Limit(all, "memory.max", "268435456");
    Limit(all, "pids.max", "32");
    return;
  }
  Limit(MakeCgroup("memory/"), "memory.limit_in_bytes", "268435456");
  Limit(MakeCgroup("pids/"), "pids.max", "32");
  MakeCgroup("cpuacct/");
}

void BuildRoot() {
  Must(::mount("none", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, "size=64k"), "root");
  Must(::chdir("/tmp"), "root");
  for (const char* place : {"usr", "proc", "tmp"}) {
    Must(::mkdir(place, 0755), place);
  }
  for (const char* name : {"bin", "lib", "lib64"}) {
    Must(::symlink((std::string("usr/") + name).c_str(), name), name);
  }
  Must(::mkdir("dev", 0755), "dev");
  Must(::mknod("dev/null", S_IFREG | 0444, 0), "dev");
  for (const char* place : {"usr", "dev/null"}) {
    Must(::mount((std::string("/") + place).c_str(), place, nullptr, MS_BIND | MS_REC, nullptr),
         place);
  }
  Must(::mount(nullptr, "usr", nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID, nullptr),
       "usr");
  Must(::mount("none", "tmp", "tmpfs", MS_NOSUID | MS_NODEV, "size=100m"), "tmp");
  Must(::mount("none", "proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, "subset=pid"), "proc");
  Must(::syscall(SYS_pivot_root, ".", "."), "pivot_root");
  Must(::umount2(".", MNT_DETACH), "umount");
  Must(::chdir("/"), "root");
}

void RaiseLoopback() {
  const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ifreq request{};
  ::memcpy(request.ifr_name, "lo", 3);
  request.ifr_flags = IFF_UP;
  Must(::ioctl(fd, SIOCSIFFLAGS, &request), "loopback");
  ::close(fd);
}

struct Beside {
  alignas(16) char stack[8192];
  int network = -1;
};

int MakeNetwork(void* given) {
  Must(::unshare(CLONE_NEWNET), "network");
  static_cast<Beside*>(given)->network = ::open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
  RaiseLoopback();
  ::_exit(0);
}

pid_t StartBeside(Beside* beside) {
  const pid_t process = ::clone(MakeNetwork, beside->stack + sizeof(beside->stack),
                                CLONE_VM | CLONE_FILES | SIGCHLD, beside);
  Must(process, "clone");
  return process;
}

void EnterNetwork(pid_t process, const Beside& beside) {
  int status = 0;
  Must(::waitpid(process, &status, 0), "network");
  Must(::setns(beside.network, CLONE_NEWNET), "network");
}

void DropCapabilities() {
  for (int i = 0; ::prctl(PR_CAPBSET_DROP, i, 0, 0, 0) == 0; ++i) {
  }
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct none[2] = {};
  Must(::syscall(SYS_capset, &header, none), "capset");
}

void Confine() {
  DropCapabilities();
  Must(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs");
  landlock_ruleset_attr rules{};
  rules.handled_access_fs = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE |
                            LANDLOCK_ACCESS_FS_READ_DIR | LANDLOCK_ACCESS_FS_WRITE_FILE;
  const int ruleset = static_cast<int>(
      ::syscall(SYS_landlock_create_ruleset, &rules, sizeof(rules.handled_access_fs), 0));
  Must(ruleset, "Landlock");
  for (const char* place : {"/usr", "/proc", "/dev", "/tmp"}) {
    landlock_path_beneath_attr rule{};
    rule.allowed_access = rules.handled_access_fs;
    rule.parent_fd = ::open(place, O_PATH | O_CLOEXEC);
    Must(::syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0), place);
    ::close(rule.parent_fd);
  }
  Must(::syscall(SYS_landlock_restrict_self, ruleset, 0), "Landlock");
  const long listener = isolation::InstallFilter(
      isolation::BuiltinFilter(policy::SyscallProfile::kDefault,
                               {.inet_sockets = true, .unix_sockets = true, .host_paths = false}));
  Must(listener, "filter");
  ::close(static_cast<int>(listener));  // nobody answers here
}

int Status(int wait_status) { return WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 125; }

struct Plan {
  char** argv;
  bool beside;
  bool unified;
  int told;  // the end that init reads
};

void BecomeUser() {
  Must(::setresgid(kUid, kUid, kUid), "gid");
  Must(::prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0), "uid");
  Must(::setresuid(kUid, kUid, kUid), "uid");
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct all[2] = {};
  Must(::syscall(SYS_capget, &header, all), "capget");
  all[0].effective = all[0].permitted;
  all[1].effective = all[1].permitted;
  Must(::syscall(SYS_capset, &header, all), "capset");
}

// The boundary's init. It shares our descriptors.
[[noreturn]] void Inside(const Plan& plan) {
  Beside other;
  const pid_t network = plan.beside ? StartBeside(&other) : -1;
  char word = 0;
  Must(::read(plan.told, &word, 1) == 1 ? 0 : -1, "identity");
  BecomeUser();
  BuildRoot();
  if (!plan.unified) {
    int joins[3];
    Must(::read(plan.told, joins, sizeof(joins)) == sizeof(joins) ? 0 : -1, "cgroups");
    for (const int tasks : joins) {
      Must(::write(tasks, "0", 1), "cgroup");
    }
  }
  Must(::unshare(CLONE_NEWCGROUP), "cgroup namespace");
  if (plan.beside) {
    EnterNetwork(network, other);
  } else {
    RaiseLoopback();
  }
  Confine();
  const pid_t payload = ::vfork();
  if (payload == 0) {
    ::setsid();
    ::signal(SIGINT, SIG_DFL);
    ::signal(SIGTERM, SIG_DFL);
    ::execv(plan.argv[0], plan.argv);
    ::_exit(127);
  }
  int status = 0;
  Must(::waitpid(payload, &status, 0), "wait");
  ::_exit(Status(status));
}

// On v2 the cgroup must be there first; on v1 it is made while init already works, as coffer does it.
int Run(char** argv, bool beside) {
  Plan plan{argv, beside, Unified(), -1};
  g_owner = ::getpid();
  ::signal(SIGINT, SIG_IGN);  // nothing here lasts, and what was made must go
  ::signal(SIGTERM, SIG_IGN);
  int told[2];
  Must(::pipe2(told, O_CLOEXEC), "pipe");
  plan.told = told[0];
  clone_args args{};
  args.flags = CLONE_FILES | CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC |
               CLONE_NEWUTS | (beside ? 0 : CLONE_NEWNET);
  args.exit_signal = SIGCHLD;
  if (plan.unified) {
    MakeCgroups();
    args.flags |= CLONE_INTO_CGROUP;
    args.cgroup = static_cast<uint64_t>(g_cgroups[0].joins);
  }
  const pid_t init = static_cast<pid_t>(::syscall(SYS_clone3, &args, sizeof(args)));
  Must(init, "clone3");
  if (init == 0) {
    Inside(plan);
  }
  g_init = init;
  for (const char* kind : {"uid", "gid"}) {
    Write(fmt::format("/proc/{}/{}_map", init, kind).c_str(),
          fmt::format("{} {} 1", kUid, kHostUid).c_str());
  }
  Must(::write(told[1], "I", 1), "identity");
  if (!plan.unified) {
    MakeCgroups();
    const int joins[3] = {g_cgroups[0].joins, g_cgroups[1].joins, g_cgroups[2].joins};
    Must(::write(told[1], joins, sizeof(joins)), "cgroups");
  }
  int status = 0;
  Must(::waitpid(init, &status, 0), "wait");
  g_init = -1;
  CleanUp();
  return Status(status);
}

}  // namespace
}  // namespace coffer::bench

int main(int argc, char** argv) {
  const bool beside = argc > 1 && ::strcmp(argv[1], "--beside") == 0;
  if (argc < (beside ? 3 : 2)) {
    ::fputs("usage: bench_floor [--beside] COMMAND ARG...\n", stderr);
    return 120;
  }
  return coffer::bench::Run(argv + (beside ? 2 : 1), beside);
}
