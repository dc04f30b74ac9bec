// SPDX-License-Identifier: Apache-2.0
#include "isolation/seccomp/decode.h"

#include <asm/ioctls.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/socket.h>

#include "seccomp_testing.h"

namespace coffer::isolation {
namespace {

constexpr auto kHere = static_cast<uint64_t>(AT_FDCWD);

std::string Decode(std::string_view syscall, const Args& args) {
  return DecodeArguments(syscall, Call(0, 0, args));
}

TEST(Decode, SaysWhatWasTried) {
  EXPECT_EQ(Decode("clone", {CLONE_NEWUSER | SIGCHLD, 0x7fff1234}), "CLONE_NEWUSER|SIGCHLD");
  EXPECT_EQ(Decode("unshare", {CLONE_NEWUSER | CLONE_NEWNS | 0x80}),
            "CLONE_NEWUSER|CLONE_NEWNS|CLONE_NEWTIME");
  EXPECT_EQ(Decode("socket", {AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC, 0}),
            "AF_VSOCK, SOCK_STREAM|SOCK_CLOEXEC, 0");
  EXPECT_EQ(Decode("socket", {63, SOCK_RAW, 0}), "0x3f, SOCK_RAW, 0");
  EXPECT_EQ(Decode("ioctl", {3, 0x1'0000'0000 | TIOCSTI, 0x1234}), "3, TIOCSTI");
  EXPECT_EQ(Decode("ioctl", {static_cast<uint64_t>(-1), 0xabcd}), "-1, 0xabcd");
  EXPECT_EQ(Decode("mount", {1, 1, 0, MS_BIND | MS_REC, 0}),
            "ptr, ptr, null, MS_BIND|MS_REC, null");
  EXPECT_EQ(Decode("fchmodat", {kHere, 1, 04755}), "-100, ptr, 04755");
  EXPECT_EQ(Decode("openat", {kHere, 1, O_CREAT | O_WRONLY, 06755}),
            "-100, ptr, O_WRONLY|O_CREAT, 06755");
  EXPECT_EQ(Decode("ptrace", {16, 1}), "PTRACE_ATTACH, 1");
  EXPECT_EQ(Decode("vhangup", {1, 2, 3}), "");
}

TEST(Decode, UnknownCallsAreSixRegisters) {
  EXPECT_EQ(Decode("syscall_999", {1, 0, ~uint64_t{0}, 3, 4, 5}),
            "0x1, 0, 0xffffffffffffffff, 0x3, 0x4, 0x5");
}

TEST(Decode, PointersDoNotMakeOneCallLookLikeMany) {
  EXPECT_EQ(Decode("mount", {0x1000, 0x2000, 0x3000, 0, 0}),
            Decode("mount", {0x4000, 0x5000, 0x6000, 0, 0}));
}

TEST(Decode, CommandsOfFcntl) {
  EXPECT_EQ(Decode("fcntl", {3, 1024, 0x7fff0000}), "3, F_SETLEASE");
  EXPECT_EQ(Decode("fcntl", {3, 4711}), "3, 0x1267");
}

// Every call that the profiles always refuse is decoded by a line of its own.
TEST(Decode, KnowsTheCallsThatAreAlwaysRefused) {
  const std::string six = Decode("no such call", {1, 1, 1, 1, 1, 1});
  int known = 0;
  for (const std::string& name : NeverAllowed()) {
    const bool obsolete = name == "create_module" || name == "query_module" ||
                          name == "get_kernel_syms" || name == "nfsservctl" || name == "_sysctl" ||
                          name == "sysfs" || name == "ustat" || name == "uselib" ||
                          name == "vserver" || name == "security" || name == "tuxcall" ||
                          name == "afs_syscall" || name == "getpmsg" || name == "putpmsg";
    const bool newer_than_the_table = !TableFor(SCMP_ARCH_X86_64).Find(name).has_value();
    if (!obsolete && !newer_than_the_table) {
      ++known;
      EXPECT_NE(Decode(name, {1, 1, 1, 1, 1, 1}), six) << name;
    }
  }
  EXPECT_GT(known, 50);
}

}  // namespace
}  // namespace coffer::isolation
