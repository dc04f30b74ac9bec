// SPDX-License-Identifier: Apache-2.0
//
// What the egress role and the gateway can and cannot do once they have entered their roles, asked of the kernel.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <thread>

#include "base/sys.h"
#include "daemon/role.h"

namespace coffer::daemon {
namespace {

// What `act` returns in a child that has entered `kind`: 0 to 200; 255: it could not enter.
int InRole(std::optional<RoleKind> kind, const std::function<int()>& act) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    if (kind && !EnterRole(*kind).ok()) {
      ::_exit(255);
    }
    ::_exit(act());
  }
  int status = 0;
  EXPECT_EQ(::waitpid(pid, &status, 0), pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 254;
}

constexpr int kMay = 0;

int Made(long answer) { return answer >= 0 ? kMay : static_cast<int>(-answer); }

int Socket(int family, int type) {
  return Made(raw::Syscall(SYS_socket, family, type | SOCK_CLOEXEC, 0));
}

int Bind() {
  const long fd = raw::Syscall(SYS_socket, AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return fd < 0 ? Made(fd) : Made(raw::Syscall(SYS_bind, fd, raw::Arg(&address), sizeof(address)));
}

int Listen() {
  const long fd = raw::Syscall(SYS_socket, AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  return fd < 0 ? Made(fd) : Made(raw::Syscall(SYS_listen, fd, 1));
}

int Execute() {
  const char* const argv[] = {"true", nullptr};
  const char* const none[] = {nullptr};
  return Made(raw::Syscall(SYS_execve, raw::Arg("/bin/true"), raw::Arg(argv), raw::Arg(none)));
}

struct Case {
  const char* what;
  std::function<int()> act;
  bool gateway, egress;
};

TEST(RoleFilter, TheEgressRoleDialsAndNothingElse) {
  const Case cases[] = {
      {"tcp", [] { return Socket(AF_INET, SOCK_STREAM); }, false, true},
      {"tcp6", [] { return Socket(AF_INET6, SOCK_STREAM); }, false, true},
      {"udp", [] { return Socket(AF_INET, SOCK_DGRAM); }, false, true},
      {"unix", [] { return Socket(AF_UNIX, SOCK_STREAM); }, false, false},
      {"netlink", [] { return Socket(AF_NETLINK, SOCK_RAW); }, false, false},
      {"packet", [] { return Socket(AF_PACKET, SOCK_RAW); }, false, false},
      {"vsock", [] { return Socket(AF_VSOCK, SOCK_STREAM); }, false, false},
      {"bind", Bind, false, false},
      {"listen", Listen, false, false},
      {"execve", Execute, false, false},
      {"unlink",
       [] {
         return Made(raw::Syscall(SYS_unlinkat, AT_FDCWD, raw::Arg("/nowhere/x"), 0)) == ENOENT
                    ? kMay
                    : EPERM;
       },
       true, false},
      {"thread",
       [] {
         std::thread([] {}).join();
         return kMay;
       },
       true, true},
  };
  for (const Case& one : cases) {
    EXPECT_EQ(InRole(RoleKind::kGateway, one.act) == kMay, one.gateway) << one.what;
    EXPECT_EQ(InRole(RoleKind::kEgress, one.act) == kMay, one.egress) << one.what;
  }
  // The control: without a role all of it that needs no privilege works.
  for (const Case& one : cases) {
    if (one.what != std::string("packet") && one.what != std::string("vsock")) {
      EXPECT_EQ(InRole(std::nullopt, one.act), kMay) << one.what;
    }
  }
}

}  // namespace
}  // namespace coffer::daemon
