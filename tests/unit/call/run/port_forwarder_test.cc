// SPDX-License-Identifier: Apache-2.0
#include "call/run/port_forwarder.h"

#include <gtest/gtest.h>
#include <linux/seccomp.h>
#include <sys/socket.h>

#include "isolation/seccomp/evaluator.h"
#include "isolation/seccomp/syscall_table.h"

namespace coffer::call {
namespace {

constexpr uint64_t kPool = 16;
constexpr uint64_t kFlags = MSG_DONTWAIT | MSG_NOSIGNAL;

class ForwarderFilterTest : public ::testing::Test {
 protected:
  bool Allows(const char* name, std::initializer_list<uint64_t> arguments = {}) const {
    seccomp_data call{};
    call.nr = isolation::SyscallNumber(name);
    call.arch = isolation::NativeSyscalls().audit_arch;
    size_t at = 0;
    for (const uint64_t argument : arguments) {
      call.args[at++] = argument;
    }
    const Result<uint32_t> verdict = isolation::Evaluate(*filter_, call);
    EXPECT_TRUE(verdict.ok());
    return verdict.ok() && *verdict == SECCOMP_RET_ALLOW;
  }
  const Result<std::vector<sock_filter>> filter_ = ForwarderFilter(kPool);
};

TEST_F(ForwarderFilterTest, OnlySocketsOfTheBoundaryConnect) {
  ASSERT_TRUE(filter_.ok());
  EXPECT_TRUE(Allows("connect", {1}));
  EXPECT_TRUE(Allows("connect", {kPool}));
  EXPECT_FALSE(Allows("connect", {0})) << "the channel";
  EXPECT_FALSE(Allows("connect", {kPool + 1})) << "a listener of the host, or what it accepted";
  EXPECT_FALSE(Allows("connect", {(uint64_t{1} << 32) + kPool + 1})) << "the kernel drops the bit";
}

TEST_F(ForwarderFilterTest, AConnectingNumberIsNeverAnotherSocket) {
  ASSERT_TRUE(filter_.ok());
  EXPECT_TRUE(Allows("close", {kPool + 1}));
  for (const uint64_t fd : {uint64_t{0}, uint64_t{1}, kPool, (uint64_t{1} << 32) + 1}) {
    EXPECT_FALSE(Allows("close", {fd})) << fd;
  }
  for (const char* name : {"dup", "dup3", "fcntl", "close_range", "pidfd_getfd", "socket",
                           "socketpair", "openat", "clone", "execve"}) {
    EXPECT_FALSE(Allows(name)) << name;
  }
}

TEST_F(ForwarderFilterTest, NoMessageNamesItsReceiver) {
  ASSERT_TRUE(filter_.ok());
  EXPECT_TRUE(Allows("sendto", {20, 1, 1, kFlags, 0}));
  EXPECT_FALSE(Allows("sendto", {20, 1, 1, kFlags, 4096}));
  EXPECT_FALSE(Allows("sendto", {20, 1, 1, kFlags | MSG_FASTOPEN, 0})) << "it connects";
  EXPECT_FALSE(Allows("sendmsg"));
  EXPECT_FALSE(Allows("sendmmsg"));
}

}  // namespace
}  // namespace coffer::call
