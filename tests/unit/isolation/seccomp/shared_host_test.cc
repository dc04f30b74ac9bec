// SPDX-License-Identifier: Apache-2.0
//
// The filter of the process level, on both architectures: each refusal beside the same call without the narrowing.
#include "isolation/seccomp/shared_host.h"

#include <asm/ioctls.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "isolation/seccomp/oci_import.h"
#include "seccomp_testing.h"

namespace coffer::isolation {
namespace {

using policy::SyscallProfile;

constexpr int kNewestAbi = 7;

std::string AskNarrowed(const Profile& profile, uint32_t arch, const std::string& name,
                        const Args& args) {
  const SyscallTable& table = TableFor(arch);
  const std::optional<uint32_t> number = table.Find(name);
  if (!number) {
    return "no such call";
  }
  const auto program = Compile(profile, table);
  EXPECT_TRUE(program.ok());
  return Verdict(*program, Call(table.audit_arch, *number, args));
}

// "WITHOUT -> WITH" for compat, the widest profile; the same on both architectures.
std::string Narrowing(const std::string& name, const Args& args = {}, int abi = kNewestAbi) {
  const Profile wide = BuiltinProfile(SyscallProfile::kCompat, {.inet_sockets = true});
  Profile narrow = wide;
  KeepToOwnProcess(abi, narrow);
  std::string answer;
  for (const uint32_t arch : kArches) {
    const std::string before = AskNarrowed(wide, arch, name, args);
    if (before != "no such call") {
      const std::string here = before + " -> " + AskNarrowed(narrow, arch, name, args);
      EXPECT_TRUE(answer.empty() || answer == here) << name << ": " << answer << " / " << here;
      answer = here;
    }
  }
  return answer.empty() ? "no such call" : answer;
}

constexpr const char* kNarrowed = "allow -> notify";
constexpr const char* kStays = "allow -> allow";

TEST(SharedHost, MetadataGoesToTheSupervisor) {
  for (const char* name : {"chmod", "fchmod", "fchmodat", "chown", "lchown", "fchown", "fchownat",
                           "utime", "utimes", "futimesat", "utimensat", "setxattr", "lsetxattr",
                           "fsetxattr", "removexattr", "lremovexattr", "fremovexattr"}) {
    EXPECT_EQ(Narrowing(name), kNarrowed) << name;
  }
  for (const char* name : {"fchmodat2", "setxattrat", "removexattrat", "file_setattr"}) {
    const std::string answer = Narrowing(name);
    EXPECT_TRUE(answer == "no such call" || answer.ends_with("-> notify")) << name << answer;
  }
}

TEST(SharedHost, AttributesAreReadByDescriptorOnly) {
  for (const char* name : {"getxattr", "lgetxattr", "listxattr", "llistxattr"}) {
    EXPECT_EQ(Narrowing(name), "allow -> errno 95") << name;
  }
  EXPECT_EQ(Narrowing("fgetxattr"), kStays);
  EXPECT_EQ(Narrowing("flistxattr"), kStays);
}

TEST(SharedHost, OtherProcessesAreLeftAlone) {
  for (const char* name : {"sched_setaffinity", "sched_setparam", "sched_setattr", "prlimit64",
                           "get_robust_list", "sched_setscheduler"}) {
    EXPECT_EQ(Narrowing(name, {0}), kStays) << name;
    EXPECT_EQ(Narrowing(name, {kUpperHalf}), kStays) << name << ": the kernel keeps 32 bits";
    EXPECT_EQ(Narrowing(name, {4711}), kNarrowed) << name;
    EXPECT_EQ(Narrowing(name, {kUpperHalf | 4711}), kNarrowed) << name;
  }
  EXPECT_EQ(Narrowing("setpriority", {PRIO_PROCESS, 0, 5}), kStays);
  EXPECT_EQ(Narrowing("setpriority", {PRIO_PROCESS, 4711, 5}), kNarrowed);
  EXPECT_EQ(Narrowing("setpriority", {PRIO_PGRP, 0, 5}), kNarrowed);
  EXPECT_EQ(Narrowing("setpriority", {PRIO_USER, 0, 5}), kNarrowed);
  EXPECT_EQ(Narrowing("ioprio_set", {1, 0, 0}), kStays);
  EXPECT_EQ(Narrowing("ioprio_set", {1, 4711, 0}), kNarrowed);
  EXPECT_EQ(Narrowing("ioprio_set", {2, 0, 0}), kNarrowed);
  EXPECT_EQ(Narrowing("ioprio_set", {3, 0, 0}), kNarrowed);
  EXPECT_EQ(Narrowing("process_mrelease"), kNarrowed);
  for (const uint64_t command : {F_SETOWN, F_SETOWN_EX, F_SETSIG}) {
    EXPECT_EQ(Narrowing("fcntl", {3, command}), kNarrowed);
  }
  EXPECT_EQ(Narrowing("fcntl", {3, F_SETFD}), kStays);
}

TEST(SharedHost, NoWatchesAndNoSharedIpc) {
  for (const char* name :
       {"inotify_init", "inotify_init1", "inotify_add_watch", "shmget", "shmat", "shmctl", "semget",
        "semop", "semctl", "msgget", "msgsnd", "msgrcv", "mq_open", "mq_unlink", "mq_notify"}) {
    EXPECT_EQ(Narrowing(name), kNarrowed) << name;
  }
  EXPECT_EQ(Narrowing("socket", {AF_NETLINK, SOCK_RAW, 0}), kNarrowed);
  EXPECT_EQ(Narrowing("socketpair", {AF_UNIX, SOCK_STREAM, 0}), kStays);
}

TEST(SharedHost, IoctlsByAList) {
  EXPECT_EQ(Narrowing("ioctl", {0, TCGETS}), kStays);
  EXPECT_EQ(Narrowing("ioctl", {0, kUpperHalf | FIONREAD}), kStays);
  EXPECT_EQ(Narrowing("ioctl", {0, 0x40049409 /* FICLONE */}), kStays);
  EXPECT_EQ(Narrowing("ioctl", {0, 0x40086602 /* FS_IOC_SETFLAGS */}), "errno 25 -> notify");
  EXPECT_EQ(Narrowing("ioctl", {0, 0x401c5820 /* FS_IOC_FSSETXATTR */}), "errno 25 -> notify");
  EXPECT_EQ(Narrowing("ioctl", {0, 0x4030582a /* FS_IOC_RESVSP64 */}), "errno 95 -> notify");
  EXPECT_EQ(Narrowing("ioctl", {0, FIOASYNC}), kNarrowed);
  EXPECT_EQ(Narrowing("ioctl", {0, 0x8901 /* FIOSETOWN */}), kNarrowed);
}

TEST(SharedHost, WhatLandlockDoesNotSeeOfOpening) {
  EXPECT_EQ(Narrowing("openat", {0, 0, O_RDONLY}), kStays);
  EXPECT_EQ(Narrowing("openat", {0, 0, O_WRONLY | O_CREAT | O_TRUNC, 0644}), kStays);
  EXPECT_EQ(Narrowing("openat", {0, 0, O_RDWR | O_TRUNC}, 1), kStays) << "governed as writing";
  EXPECT_EQ(Narrowing("openat", {0, 0, O_ACCMODE}), kNarrowed);
  EXPECT_EQ(Narrowing("open", {0, O_ACCMODE | O_CLOEXEC}), kNarrowed);
  for (const int abi : {1, 2}) {
    EXPECT_EQ(Narrowing("openat", {0, 0, O_RDONLY | O_TRUNC}, abi), kNarrowed);
    EXPECT_EQ(Narrowing("open", {0, O_RDONLY | O_TRUNC}, abi), kNarrowed);
    EXPECT_EQ(Narrowing("truncate", {}, abi), kNarrowed);
  }
  EXPECT_EQ(Narrowing("openat", {0, 0, O_RDONLY | O_TRUNC}, 3), kStays);
  EXPECT_EQ(Narrowing("truncate", {}, 3), kStays);
}

TEST(SharedHost, NothingBecomesAllowed) {
  const Result<Profile> imported = ImportOciProfile(
      R"({"defaultAction": "SCMP_ACT_ERRNO",
          "syscalls": [{"names": ["read", "openat", "setpriority"], "action": "SCMP_ACT_ALLOW"}]})",
      {{}, "arm64", 6, 1});
  ASSERT_TRUE(imported.ok());
  size_t compared = 0;
  for (Profile wide : {BuiltinProfile(SyscallProfile::kStrict, {}),
                       BuiltinProfile(SyscallProfile::kDefault, {}), *imported}) {
    Profile narrow = wide;
    KeepToOwnProcess(1, narrow);
    for (const uint32_t arch : kArches) {
      const SyscallTable& table = TableFor(arch);
      const auto before = Compile(wide, table);
      const auto after = Compile(narrow, table);
      ASSERT_TRUE(before.ok() && after.ok());
      for (uint32_t number = 0; number <= table.highest(); ++number) {
        for (const uint64_t value : {uint64_t{0}, uint64_t{1}, uint64_t{3}, ~uint64_t{0}}) {
          const seccomp_data call =
              Call(table.audit_arch, number, {value, value, value, value, value, value});
          if (Verdict(*before, call) != "allow") {
            EXPECT_NE(Verdict(*after, call), "allow") << table.Find(number);
            ++compared;
          }
        }
      }
    }
  }
  EXPECT_GT(compared, 1000U);
}

}  // namespace
}  // namespace coffer::isolation
