// SPDX-License-Identifier: Apache-2.0
//
// Sockets of a network namespace that no descriptor leads to: connections that were not accepted yet, and sockets that
// were closed while their data was not read. They hold memory, no process has them, and the kernel lists them for the
// whole namespace: /proc/PID/net/protocols counts every UNIX socket until its last message is gone, and
// /proc/PID/net/tcp shows what each TCP connection has in its queues.
//
// Only for a namespace that belongs to one boundary. The text of /proc/PID/net/unix is not used: it
// holds names that the payload chose, line feeds included.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/thread_time.h"

namespace coffer::limits {

// How many UNIX and TCP sockets there are, closed ones included. Nothing if it cannot be read.
struct SocketsInUse {
  uint64_t unix_sockets = 0;
  uint64_t tcp_sockets = 0;
  // In the queues of all TCP sockets of the host, of every namespace. Nothing if the kernel does not say.
  std::optional<uint64_t> tcp_pages_of_host;
  // UDP: how many of this namespace, and the pages of received datagrams of all namespaces.
  uint64_t udp_sockets = 0;
  uint64_t udp_pages_of_host = 0;
};
std::optional<SocketsInUse> CountSockets(const std::string& proc, pid_t pid);

// The most bytes that TCP sockets can have in their queues, by the kernel's own count. It keeps a
// part of that count for each processor apart (since Linux 6.0), which is added.
uint64_t MostTcpBytes(const SocketsInUse& in_use, const std::string& proc);

// Memory of TCP connections whose inode is not in `seen`. Nothing if it cannot be read. The tables
// say how many bytes are in a queue, not in how many segments, so each byte counts as one: a
// thousand connections that wait with a short request each seem to hold 100 MiB and hold one.
// MostTcpBytes bounds that.
std::optional<uint64_t> HiddenTcpBytes(const std::string& proc, pid_t pid,
                                       const std::set<uint64_t>& seen);

// The same for a sampler. The kernel writes a line for every connection that ended within a minute,
// thousands after a busy program. So a reading is followed by a pause of kPause times the CPU time
// that it took, and the last reading counts meanwhile.
class HiddenTcp {
 public:
  static constexpr int kPause = 9;  // a tenth of a processor
  static constexpr Nanos kMostPause = std::chrono::milliseconds(200);

  // `cpu_time` is that of this thread; another clock in tests.
  explicit HiddenTcp(Nanos (*cpu_time)() = ThreadCpuTime) : cpu_time_(cpu_time) {}
  std::optional<uint64_t> Bytes(const std::string& proc, pid_t pid, const std::set<uint64_t>& seen,
                                Nanos now);

 private:
  Nanos (*cpu_time_)();
  Nanos next_{0};
  std::optional<uint64_t> last_ = 0;
};

// Answers that wait in netlink sockets. No cgroup counts them, with or without a descriptor.
// Nothing if they cannot be read.
std::optional<uint64_t> NetlinkBytes(const std::string& proc, pid_t pid);

// What UDP sockets hold beside received datagrams, which a cgroup counts: datagrams that a program has not finished
// (MSG_MORE), errors and timestamps that wait. No cgroup counts these. A lower bound: a socket that left its port is in no
// table. Nothing if they cannot be read.
std::optional<uint64_t> UncountedUdpBytes(const std::string& proc, pid_t pid);

// The four formats.
uint64_t ParseNetlink(std::string_view text);
uint64_t ParseUdp(std::string_view text);
SocketsInUse ParseProtocols(std::string_view text);
uint64_t ParseTcp(std::string_view text, const std::set<uint64_t>& seen);

}  // namespace coffer::limits
