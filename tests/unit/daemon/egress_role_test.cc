// SPDX-License-Identifier: Apache-2.0
//
// What the egress role and the gateway can and cannot do once they have entered their roles, asked of the kernel.
#include "daemon/egress_role.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <optional>
#include <thread>

#include "base/sys.h"
#include "daemon/role.h"
#include "isolation/landlock.h"

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

// The egress process of one call may do what the role may, and accept on the listener that it was given.
TEST(RoleFilter, TheEgressProcessOfACallAcceptsAndMakesNoListener) {
  const long listener =
      raw::Syscall(SYS_socket, AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  ASSERT_GE(listener, 0);
  ASSERT_EQ(raw::Syscall(SYS_listen, listener, 1), 0);
  const auto accept = [&] {
    const long answer = raw::Syscall(SYS_accept4, listener, 0, 0, SOCK_CLOEXEC);
    return answer == -EAGAIN ? kMay : Made(answer);
  };
  EXPECT_EQ(InRole(std::nullopt, accept), kMay) << "the control";
  EXPECT_EQ(InRole(RoleKind::kEgress, accept), EPERM) << "the control";
  EXPECT_EQ(InRole(RoleKind::kCallEgress, accept), kMay);
  EXPECT_EQ(InRole(RoleKind::kCallEgress, [] { return Socket(AF_INET, SOCK_STREAM); }), kMay);
  const std::pair<const char*, std::function<int()>> refused[] = {
      {"bind", Bind},
      {"listen", Listen},
      {"execve", Execute},
      {"unix", [] { return Socket(AF_UNIX, SOCK_STREAM); }},
      {"netlink", [] { return Socket(AF_NETLINK, SOCK_RAW); }},
      {"ptrace", [] { return Made(raw::Syscall(SYS_ptrace, 0, 0, 0, 0)); }}};
  for (const auto& [what, act] : refused) {
    EXPECT_NE(InRole(RoleKind::kCallEgress, act), kMay) << what;
    EXPECT_EQ(InRole(std::nullopt, act), kMay) << "the control: " << what;
  }
  ::close(static_cast<int>(listener));
}

TEST(EgressFiles, OnlyWhatNamesNeedIsLeft) {
  if (isolation::LandlockAbi() <= 0) {
    GTEST_SKIP() << "this kernel has no Landlock";
  }
  const auto open = [](const char* path, int flags) {
    return Made(raw::Syscall(SYS_openat, AT_FDCWD, raw::Arg(path), flags | O_CLOEXEC));
  };
  struct File {
    const char* path;
    int flags;
    bool left;
  };
  const File files[] = {
      {"/etc/hosts", O_RDONLY, true},          {"/etc/passwd", O_RDONLY, false},
      {"/proc/self/maps", O_RDONLY, false},    {"/", O_RDONLY | O_DIRECTORY, false},
      {"/tmp", O_RDONLY | O_DIRECTORY, false}, {"/dev/null", O_RDWR, false}};
  for (const File& file : files) {
    EXPECT_EQ(InRole(std::nullopt, [&] { return open(file.path, file.flags); }), kMay)
        << "the control: " << file.path;
    const int answer = InRole(
        std::nullopt, [&] { return EnforceNoFiles().ok() ? open(file.path, file.flags) : 200; });
    EXPECT_EQ(answer, file.left ? kMay : EACCES) << file.path;
  }
  // And it can still dial: Landlock's rights of sockets are not among those it gave up.
  EXPECT_EQ(InRole(std::nullopt,
                   [] {
                     if (!EnforceNoFiles().ok() || !EnterRole(RoleKind::kEgress).ok()) {
                       return 200;
                     }
                     const long fd =
                         raw::Syscall(SYS_socket, AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
                     sockaddr_in nobody{};
                     nobody.sin_family = AF_INET;
                     nobody.sin_port = htons(1);
                     nobody.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
                     return Made(raw::Syscall(SYS_connect, fd, raw::Arg(&nobody), sizeof(nobody)));
                   }),
            ECONNREFUSED);
}

}  // namespace
}  // namespace coffer::daemon
