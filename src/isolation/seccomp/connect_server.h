// SPDX-License-Identifier: Apache-2.0
//
// connect(2) at the container level beside directories of the host, made by the supervisor.
//
// A mounted directory may hold sockets of the host, now or later. Connecting to one needs neither write access nor a
// network, and Landlock does not see it. So the filter hands every connect to this server. It takes a duplicate of the
// payload's socket and a copy of the address, and connects the duplicate:
//
//   AF_INET, AF_INET6    to that address: the socket belongs to the boundary's own network. What
//                        has no route there, or looks for a name server, is recorded: programs
//                        seldom say why they failed.
//   AF_UNIX, abstract    likewise: abstract names belong to the network namespace
//   AF_UNIX, a path      the path is opened below the payload's root, as the payload's user. If it leads to one of the
//                        boundary's own tmpfs, the socket that was opened is connected to, by its descriptor.
//                        Everything else is a socket of the host: EPERM, recorded.
//
// The payload's own call never goes on, and its memory is read once, so nothing that it changes meanwhile decides.
// Connecting can wait for ever, on a full queue or a hanging file system; threads wait, never the supervisor's loop. A
// payload that keeps all of them waiting keeps its own further connects waiting.
#pragma once

#include <linux/seccomp.h>
#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/unique_fd.h"

namespace coffer::isolation {

// A connect that could not be. Where it went, as the payload wrote it.
struct RefusedConnect {
  enum class Why : uint8_t {
    kHostSocket,  // the path leads to a socket of the host
    kNoRoute,     // an address outside, and the boundary's network is its loopback
    kNoNames,  // a name server; nothing in a boundary can listen on its port but the resolver of its egress
  };
  Why why = Why::kHostSocket;
  std::string to;
};

class ConnectServer {
 public:
  // `places` are the boundary's own tmpfs. `uid` is the boundary's on the host, and the one to connect as.
  ConnectServer(std::span<const UniqueFd> places, uint32_t uid);
  ~ConnectServer();
  ConnectServer(const ConnectServer&) = delete;
  ConnectServer& operator=(const ConnectServer&) = delete;

  // -errno to answer at once; 0: the answer comes later, or the caller is gone. Nothing: refuse and record it, because
  // the caller cannot be read or its socket is of another family.
  std::optional<long> Take(int notify_fd, const seccomp_notif& request);

  // Since the last time.
  std::vector<RefusedConnect> TakeRefused();

  // How many connects the kernel refused because no route leads there. Never less than it has counted itself of those.
  uint64_t unrouted() const;

  // Threads at most, and calls that wait for one of them at most.
  static constexpr size_t kMostThreads = 32;
  static constexpr size_t kMostWaiting = 64;

 private:
  struct Work;
  struct Shared;

  bool Start(Work work);  // false if too many wait already

  std::shared_ptr<Shared> shared_;
};

}  // namespace coffer::isolation
