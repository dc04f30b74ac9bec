// SPDX-License-Identifier: Apache-2.0
#include "limits/cgroup/control_file.h"

#include <errno.h>
#include <sys/syscall.h>

#include <array>
#include <charconv>

#include "base/sys.h"

namespace coffer::limits {

using raw::Arg;
using raw::Syscall;

long WriteControl(int dir, const char* name, std::string_view value) {
  const long opened = Syscall(SYS_openat, dir, Arg(name), O_WRONLY | O_CLOEXEC);
  if (opened < 0) {
    return opened;
  }
  const UniqueFd fd(static_cast<int>(opened));
  long wrote = 0;
  do {
    wrote = Syscall(SYS_write, fd.get(), Arg(value.data()), static_cast<long>(value.size()));
  } while (wrote == -EINTR);
  if (wrote < 0) {
    return wrote;
  }
  // The kernel reads each write as a whole value: the rest of a short one would be another value.
  return static_cast<size_t>(wrote) == value.size() ? 0 : -EIO;
}

std::optional<std::string_view> ReadControl(int dir, const char* name, std::span<char> buffer) {
  const long opened = Syscall(SYS_openat, dir, Arg(name), O_RDONLY | O_CLOEXEC);
  if (opened < 0) {
    return std::nullopt;
  }
  const UniqueFd fd(static_cast<int>(opened));
  long got = 0;
  do {
    got = Syscall(SYS_read, fd.get(), Arg(buffer.data()), static_cast<long>(buffer.size()));
  } while (got == -EINTR);
  if (got < 0) {
    return std::nullopt;
  }
  return std::string_view(buffer.data(), static_cast<size_t>(got));
}

std::optional<uint64_t> ReadNumber(int dir, const char* name) {
  std::array<char, 64> buffer;
  const std::optional<std::string_view> text = ReadControl(dir, name, buffer);
  uint64_t number = 0;
  if (!text ||
      std::from_chars(text->data(), text->data() + text->size(), number).ec != std::errc()) {
    return std::nullopt;
  }
  return number;
}

uint64_t KeyedNumber(std::string_view text, std::string_view key, char separator) {
  for (size_t at = text.find(key); at != std::string_view::npos; at = text.find(key, at + 1)) {
    size_t value = at + key.size();
    if ((at == 0 || text[at - 1] == '\n') && value < text.size() && text[value] == separator) {
      while (value < text.size() && text[value] == separator) {
        ++value;
      }
      uint64_t number = 0;
      std::from_chars(text.data() + value, text.data() + text.size(), number);
      return number;
    }
  }
  return 0;
}

std::vector<pid_t> ParsePids(std::string_view text) {
  std::vector<pid_t> pids;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end) {
    pid_t pid = 0;
    const auto [rest, problem] = std::from_chars(at, end, pid);
    if (problem != std::errc()) {
      break;
    }
    if (pid > 0) {
      pids.push_back(pid);
    }
    at = rest + 1;
  }
  return pids;
}

}  // namespace coffer::limits
