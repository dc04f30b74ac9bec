// SPDX-License-Identifier: Apache-2.0
#include "isolation/unrouted_sends.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string>

#include "base/sys.h"

namespace coffer::isolation {
namespace {

// Ip comes first in the one text, Ip6 in the other.
constexpr size_t kMostCounterBytes = 4096;

std::string_view TakeUntil(std::string_view& text, char end) {
  const std::string_view part = text.substr(0, text.find(end));
  text.remove_prefix(std::min(part.size() + 1, text.size()));
  return part;
}

std::optional<uint64_t> WholeNumber(std::string_view word) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  const bool whole = error == std::errc() && end == word.data() + word.size();
  return whole ? std::optional(number) : std::nullopt;
}

// One read: the kernel writes the text anew for each that starts at 0.
std::optional<std::string> ReadCounters(int fd) {
  std::array<char, kMostCounterBytes> text;
  const long got =
      raw::Syscall(SYS_pread64, fd, raw::Arg(text.data()), static_cast<long>(text.size()), 0);
  return got < 0 ? std::nullopt : std::optional(std::string(text.data(), static_cast<size_t>(got)));
}

}  // namespace

// "Ip: Forwarding DefaultTTL ...", and below it "Ip: 2 64 ...".
std::optional<uint64_t> ParseOutNoRoutes(std::string_view snmp) {
  std::string_view names = TakeUntil(snmp, '\n');
  std::string_view values = TakeUntil(snmp, '\n');
  if (!names.starts_with("Ip: ") || !values.starts_with("Ip: ")) {
    return std::nullopt;
  }
  while (!names.empty()) {
    const std::string_view name = TakeUntil(names, ' ');
    const std::string_view value = TakeUntil(values, ' ');
    if (name == "OutNoRoutes") {
      return WholeNumber(value);
    }
  }
  return std::nullopt;
}

// "Ip6InReceives      0", one line for each.
std::optional<uint64_t> ParseOutNoRoutes6(std::string_view snmp6) {
  while (!snmp6.empty()) {
    const std::string_view line = TakeUntil(snmp6, '\n');
    const std::string_view name = line.substr(0, line.find_first_of(" \t"));
    if (name == "Ip6OutNoRoutes") {
      const size_t value = line.find_first_not_of(" \t", name.size());
      return value == std::string_view::npos ? std::nullopt : WholeNumber(line.substr(value));
    }
  }
  return std::nullopt;
}

Result<UnroutedSends> UnroutedSends::Open(pid_t pid) {
  const std::string net = "/proc/" + std::to_string(pid) + "/net/";
  UnroutedSends sends;
  TRY_ASSIGN(sends.ipv4_, sys::Open(net + "snmp", O_RDONLY));
  Result<UniqueFd> ipv6 = sys::Open(net + "snmp6", O_RDONLY);
  if (!ipv6.ok() && ipv6.error().sys_errno != ENOENT) {
    return std::move(ipv6.error());
  }
  sends.ipv6_ = ipv6.ok() ? std::move(ipv6).value() : UniqueFd();
  return sends;
}

std::optional<uint64_t> UnroutedSends::Count() const {
  if (!ipv4_.valid()) {
    return std::nullopt;
  }
  const std::optional<std::string> snmp = ReadCounters(ipv4_.get());
  std::optional<uint64_t> count = snmp ? ParseOutNoRoutes(*snmp) : std::nullopt;
  if (count && ipv6_.valid()) {
    const std::optional<std::string> snmp6 = ReadCounters(ipv6_.get());
    const std::optional<uint64_t> more = snmp6 ? ParseOutNoRoutes6(*snmp6) : std::nullopt;
    count = more ? std::optional(*count + *more) : std::nullopt;
  }
  return count;
}

}  // namespace coffer::isolation
