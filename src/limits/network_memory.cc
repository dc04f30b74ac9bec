// SPDX-License-Identifier: Apache-2.0
#include "limits/network_memory.h"

#include <errno.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "base/sys.h"

namespace coffer::limits {
namespace {

constexpr size_t kTableLimit = 32UL << 20;
constexpr std::string_view kListening = "0A";
// A segment of one byte takes up to two kilobytes, until the receive buffer is full (6 MiB by default).
constexpr uint64_t kWorstSegment = 2048;
constexpr uint64_t kMostOverhead = 6UL << 20;
constexpr uint64_t kReserveOfAProcessor = 1UL << 20;  // PROTO_MEMORY_PCPU_RESERVE

std::string_view NextLine(std::string_view& text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(line.size() + 1, text.size()));
  return line;
}

std::string_view NextWord(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  const std::string_view word = line.substr(0, line.find(' '));
  line.remove_prefix(word.size());
  return word;
}

uint64_t Number(std::string_view word, int base = 10) {
  uint64_t number = 0;
  std::from_chars(word.data(), word.data() + word.size(), number, base);
  return number;
}

}  // namespace

// "protocol size sockets ...", one line for each.
SocketsInUse ParseProtocols(std::string_view text) {
  SocketsInUse in_use;
  while (!text.empty()) {
    std::string_view line = NextLine(text);
    const std::string_view name = NextWord(line);
    NextWord(line);
    const uint64_t sockets = Number(NextWord(line));
    const std::string_view pages = NextWord(line);
    if (name == "UNIX" || name == "UNIX-STREAM") {  // one or two lines, by the kernel's version
      in_use.unix_sockets += sockets;
    } else if (name == "TCP" || name == "TCPv6") {
      in_use.tcp_sockets += sockets;
      // Both lines have the same number: there is one count for both.
      if (!pages.empty() && pages.find_first_not_of("0123456789") == std::string_view::npos) {
        in_use.tcp_pages_of_host = std::max(in_use.tcp_pages_of_host.value_or(0), Number(pages));
      }
    } else if (name == "UDP" || name == "UDPv6") {
      in_use.udp_sockets += sockets;
      in_use.udp_pages_of_host = std::max(in_use.udp_pages_of_host, Number(pages));
    }
  }
  return in_use;
}

// "sl local remote st tx:rx timer retransmits uid timeout inode ...".
uint64_t ParseTcp(std::string_view text, const std::set<uint64_t>& seen) {
  uint64_t sum = 0;
  NextLine(text);  // the heading
  while (!text.empty()) {
    std::string_view line = NextLine(text);
    NextWord(line);
    NextWord(line);
    NextWord(line);
    const std::string_view state = NextWord(line);
    const std::string_view queues = NextWord(line);
    const size_t colon = queues.find(':');
    for (int skipped = 0; skipped < 4; ++skipped) {
      NextWord(line);
    }
    const uint64_t inode = Number(NextWord(line));
    if (state == kListening || colon == std::string_view::npos || seen.contains(inode)) {
      continue;
    }
    const uint64_t bytes =
        Number(queues.substr(0, colon), 16) + Number(queues.substr(colon + 1), 16);
    sum += 2 * bytes + std::min(bytes * kWorstSegment, kMostOverhead);
  }
  return sum;
}

// "sk Eth Pid Groups Rmem Wmem ...".
uint64_t ParseNetlink(std::string_view text) {
  uint64_t sum = 0;
  NextLine(text);  // the heading
  while (!text.empty()) {
    std::string_view line = NextLine(text);
    for (int skipped = 0; skipped < 4; ++skipped) {
      NextWord(line);
    }
    sum += Number(NextWord(line));
    sum += Number(NextWord(line));
  }
  return sum;
}

std::optional<uint64_t> NetlinkBytes(const std::string& proc, pid_t pid) {
  const Result<std::string> text =
      sys::ReadFile(proc + "/" + std::to_string(pid) + "/net/netlink", kTableLimit);
  return text.ok() ? std::optional(ParseNetlink(*text)) : std::nullopt;
}

// "sl local remote st tx:rx ...", as of TCP.
uint64_t ParseUdp(std::string_view text) {
  uint64_t sum = 0;
  NextLine(text);  // the heading
  while (!text.empty()) {
    std::string_view line = NextLine(text);
    for (int skipped = 0; skipped < 4; ++skipped) {
      NextWord(line);
    }
    const std::string_view queues = NextWord(line);
    if (const size_t colon = queues.find(':'); colon != std::string_view::npos) {
      sum += Number(queues.substr(0, colon), 16) + Number(queues.substr(colon + 1), 16);
    }
  }
  return sum;
}

std::optional<uint64_t> UncountedUdpBytes(const std::string& proc, pid_t pid) {
  const std::optional<SocketsInUse> in_use = CountSockets(proc, pid);
  if (!in_use || in_use->udp_sockets == 0) {
    return in_use ? std::optional<uint64_t>(0) : std::nullopt;
  }
  const std::string net = proc + "/" + std::to_string(pid) + "/net/";
  uint64_t sum = 0;
  for (const char* const table : {"udp", "udp6"}) {
    const Result<std::string> text = sys::ReadFile(net + table, kTableLimit);
    if (!text.ok() && text.error().sys_errno != ENOENT) {
      return std::nullopt;
    }
    sum += text.ok() ? ParseUdp(*text) : 0;
  }
  const uint64_t received =
      in_use->udp_pages_of_host * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  return sum - std::min(sum, received);
}

std::optional<SocketsInUse> CountSockets(const std::string& proc, pid_t pid) {
  const Result<std::string> text =
      sys::ReadFile(proc + "/" + std::to_string(pid) + "/net/protocols");
  if (!text.ok()) {
    return std::nullopt;
  }
  return ParseProtocols(*text);
}

uint64_t MostTcpBytes(const SocketsInUse& in_use, const std::string& proc) {
  if (!in_use.tcp_pages_of_host) {
    return std::numeric_limits<uint64_t>::max();
  }
  const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  // The C library reads a directory for it, and a sample has little time.
  static const auto processors =
      static_cast<uint64_t>(std::max(1L, ::sysconf(_SC_NPROCESSORS_CONF)));
  uint64_t reserve = kReserveOfAProcessor;
  // A setting since Linux 6.10.
  if (const Result<std::string> text = sys::ReadFile(proc + "/sys/net/core/mem_pcpu_rsv");
      text.ok()) {
    reserve = std::max(reserve, Number(*text) * page);
  }
  return *in_use.tcp_pages_of_host * page + processors * reserve;
}

std::optional<uint64_t> HiddenTcpBytes(const std::string& proc, pid_t pid,
                                       const std::set<uint64_t>& seen) {
  uint64_t sum = 0;
  for (const char* name : {"/net/tcp", "/net/tcp6"}) {
    const Result<std::string> text =
        sys::ReadFile(proc + "/" + std::to_string(pid) + name, kTableLimit);
    if (!text.ok() && text.error().sys_errno == ENOENT) {
      continue;  // a kernel without IPv6
    }
    if (!text.ok()) {
      return std::nullopt;
    }
    sum += ParseTcp(*text, seen);
  }
  return sum;
}

std::optional<uint64_t> HiddenTcp::Bytes(const std::string& proc, pid_t pid,
                                         const std::set<uint64_t>& seen, Nanos now) {
  if (now >= next_) {
    const Nanos began = cpu_time_();
    last_ = HiddenTcpBytes(proc, pid, seen);
    next_ = now + std::min(kPause * (cpu_time_() - began), kMostPause);
  }
  return last_;
}

}  // namespace coffer::limits
