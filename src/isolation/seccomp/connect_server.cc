// SPDX-License-Identifier: Apache-2.0
#include "isolation/seccomp/connect_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

#include "base/sys.h"
#include "isolation/seccomp/waiting_thread.h"

namespace coffer::isolation {

using raw::Arg;
using raw::Syscall;

// One connect that waits for a thread, or that a thread is at.
struct ConnectServer::Work {
  UniqueFd listener;
  uint64_t id = 0;
  UniqueFd socket;      // a duplicate of the payload's
  std::string address;  // as the payload gave it
  UniqueFd root;        // the payload's, if the address is a path
  std::string path;     // absolute below `root`
  std::string said;     // the path as the payload wrote it
};

struct ConnectServer::Shared {
  std::vector<dev_t> own;  // devices of the boundary's tmpfs
  uint32_t uid = 0;

  std::mutex mutex;  // of what follows
  std::condition_variable more;
  std::deque<Work> waiting;
  std::vector<RefusedConnect> refused;
  uint64_t unrouted = 0;
  size_t threads = 0;
  size_t idle = 0;
  bool ending = false;

  long Make(const Work& work);  // 0 or -errno, for the payload
  long MakeByAddress(const Work& work);
  void Run();
  void Refused(RefusedConnect::Why why, std::string to);
};

namespace {

constexpr size_t kPathAt = offsetof(sockaddr_un, sun_path);

// The payload's user, for this thread only: the kernel then judges paths as it would for the payload, and the other end
// sees the payload's uid. Without privilege it is ours already.
bool BecomeUser(uint32_t uid) {
  if (::geteuid() != 0) {
    return true;
  }
  return Syscall(SYS_setgroups, 0, 0) >= 0 && Syscall(SYS_setresgid, -1, uid, -1) >= 0 &&
         Syscall(SYS_setresuid, -1, uid, -1) >= 0;
}

long ConnectTo(int socket, const std::string& address) {
  return Syscall(SYS_connect, socket, Arg(address.data()), static_cast<long>(address.size()));
}

// The socket that `file` is, whatever its name leads to by now.
long ConnectToFile(int socket, int file) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = "/proc/self/fd/" + std::to_string(file);
  name.copy(address.sun_path, sizeof(address.sun_path) - 1);
  return Syscall(SYS_connect, socket, Arg(&address), sizeof(address));
}

constexpr uint16_t kNameServerPort = 53;

struct InternetAddress {
  std::string text;  // "192.0.2.1:443", "[2001:db8::1]:443"
  uint16_t port = 0;
};

// Nothing for another family, or if it is cut off.
std::optional<InternetAddress> ReadInternetAddress(const std::string& address) {
  char text[INET6_ADDRSTRLEN] = {};
  sa_family_t family = AF_UNSPEC;
  if (address.size() < sizeof(family)) {
    return std::nullopt;
  }
  memcpy(&family, address.data(), sizeof(family));
  if (family == AF_INET && address.size() >= sizeof(sockaddr_in)) {
    sockaddr_in four;
    memcpy(&four, address.data(), sizeof(four));
    ::inet_ntop(AF_INET, &four.sin_addr, text, sizeof(text));
    const uint16_t port = ntohs(four.sin_port);
    return InternetAddress{std::string(text) + ":" + std::to_string(port), port};
  }
  if (family == AF_INET6 && address.size() >= sizeof(sockaddr_in6)) {
    sockaddr_in6 six;
    memcpy(&six, address.data(), sizeof(six));
    ::inet_ntop(AF_INET6, &six.sin6_addr, text, sizeof(text));
    const uint16_t port = ntohs(six.sin6_port);
    return InternetAddress{"[" + std::string(text) + "]:" + std::to_string(port), port};
  }
  return std::nullopt;
}

}  // namespace

ConnectServer::ConnectServer(std::span<const UniqueFd> places, uint32_t uid)
    : shared_(std::make_shared<Shared>()) {
  shared_->uid = uid;
  for (const UniqueFd& place : places) {
    struct stat info;
    if (::fstat(place.get(), &info) == 0) {
      shared_->own.push_back(info.st_dev);
    }
  }
}

ConnectServer::~ConnectServer() {
  const std::lock_guard lock(shared_->mutex);
  shared_->ending = true;
  shared_->waiting.clear();
  shared_->more.notify_all();
}

std::vector<RefusedConnect> ConnectServer::TakeRefused() {
  const std::lock_guard lock(shared_->mutex);
  return std::exchange(shared_->refused, {});
}

uint64_t ConnectServer::unrouted() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->unrouted;
}

std::optional<long> ConnectServer::Take(int notify_fd, const seccomp_notif& request) {
  const auto size = static_cast<int>(request.data.args[2]);
  if (size < 0 || size > static_cast<int>(sizeof(sockaddr_storage))) {
    return -EINVAL;
  }
  WaitingThread caller(notify_fd, request);
  Work work;
  work.id = request.id;
  const long socket = caller.Duplicate(static_cast<int>(request.data.args[0]));
  if (socket < 0) {
    return socket == -EBADF ? std::optional<long>(socket) : std::nullopt;
  }
  work.socket = UniqueFd(static_cast<int>(socket));
  if (size > 0) {
    std::optional<std::string> address =
        caller.Read(request.data.args[1], static_cast<size_t>(size));
    if (!address || address->size() != static_cast<size_t>(size)) {
      return -EFAULT;
    }
    work.address = std::move(*address);
  }
  int family = AF_UNSPEC;
  socklen_t length = sizeof(family);
  if (::getsockopt(work.socket.get(), SOL_SOCKET, SO_DOMAIN, &family, &length) != 0) {
    return -ENOTSOCK;
  }
  if (family == AF_UNIX) {
    sa_family_t named = AF_UNSPEC;
    if (work.address.size() <= kPathAt || work.address.size() > sizeof(sockaddr_un) ||
        (memcpy(&named, work.address.data(), sizeof(named)), named != AF_UNIX)) {
      return -EINVAL;
    }
    if (work.address[kPathAt] != '\0') {
      work.said = work.address.substr(kPathAt);
      work.said.resize(std::min(work.said.find('\0'), work.said.size()));
      Result<UniqueFd> root = sys::Open(caller.Root(), O_PATH | O_DIRECTORY);
      const Result<std::string> cwd = sys::ReadLinkAt(AT_FDCWD, caller.Descriptor(AT_FDCWD));
      if (!root.ok() || !cwd.ok()) {
        return std::nullopt;
      }
      work.root = std::move(root).value();
      work.path = work.said.starts_with('/') ? work.said : *cwd + "/" + work.said;
    }
  } else if (family != AF_INET && family != AF_INET6) {
    return std::nullopt;
  }
  if (!caller.StillWaits()) {
    return 0;  // all of this may have been another's
  }
  const long listener = Syscall(SYS_fcntl, notify_fd, F_DUPFD_CLOEXEC, 3);
  if (listener < 0) {
    return -EAGAIN;
  }
  work.listener = UniqueFd(static_cast<int>(listener));
  return Start(std::move(work)) ? 0 : -EAGAIN;
}

void ConnectServer::Shared::Refused(RefusedConnect::Why why, std::string to) {
  const std::lock_guard lock(mutex);
  if (refused.size() < kMostWaiting) {
    refused.push_back({why, std::move(to)});
  }
}

// Counted before it is made: at no moment may the kernel's count be ahead of ours (unrouted_sends.h).
long ConnectServer::Shared::MakeByAddress(const Work& work) {
  const std::optional<InternetAddress> to = ReadInternetAddress(work.address);
  const auto count = [&](uint64_t change) {
    const std::lock_guard lock(mutex);
    unrouted += change;
  };
  count(to ? 1 : 0);
  const long made = ConnectTo(work.socket.get(), work.address);
  if (to && made == -ENETUNREACH) {
    Refused(RefusedConnect::Why::kNoRoute, to->text);
    return made;
  }
  count(to ? -uint64_t{1} : 0);
  if (to && to->port == kNameServerPort) {
    Refused(RefusedConnect::Why::kNoNames, to->text);
  }
  return made;
}

long ConnectServer::Shared::Make(const Work& work) {
  if (!work.root.valid()) {
    return MakeByAddress(work);
  }
  const long opened =
      sys::OpenAt2(work.root.get(), work.path, O_PATH, RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);
  if (opened < 0) {
    return opened;
  }
  const UniqueFd file(static_cast<int>(opened));
  struct stat info;
  if (::fstat(file.get(), &info) != 0) {
    return -EIO;
  }
  if (!S_ISSOCK(info.st_mode)) {
    return -ECONNREFUSED;
  }
  if (std::find(own.begin(), own.end(), info.st_dev) == own.end()) {
    Refused(RefusedConnect::Why::kHostSocket, work.said);
    return -EPERM;
  }
  return ConnectToFile(work.socket.get(), file.get());
}

void ConnectServer::Shared::Run() {
  const bool ready = BecomeUser(uid);
  std::unique_lock lock(mutex);
  while (!ending) {
    if (waiting.empty()) {
      ++idle;
      more.wait(lock, [&] { return ending || !waiting.empty(); });
      --idle;
      continue;
    }
    const Work work = std::move(waiting.front());
    waiting.pop_front();
    lock.unlock();
    (void)AnswerCall(work.listener.get(), work.id, ready ? Make(work) : -EPERM);
    lock.lock();
  }
  --threads;
}

bool ConnectServer::Start(Work work) {
  const std::lock_guard lock(shared_->mutex);
  if (shared_->waiting.size() >= kMostWaiting) {
    return false;
  }
  shared_->waiting.push_back(std::move(work));
  if (shared_->waiting.size() > shared_->idle && shared_->threads < kMostThreads) {
    ++shared_->threads;
    // Detached: one that waits in connect(2) must not hold up the end of a call. It keeps what it uses alive.
    std::thread([shared = shared_] { shared->Run(); }).detach();
  }
  shared_->more.notify_one();
  return true;
}

}  // namespace coffer::isolation
