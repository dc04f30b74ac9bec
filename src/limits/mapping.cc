// SPDX-License-Identifier: Apache-2.0
#include "limits/mapping.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#include <charconv>

#include "base/sys.h"

namespace coffer::limits {
namespace {

constexpr size_t kPiece = 4096;  // the kernel gives no more at once

bool ParseHex(std::string_view& text, char end, uint64_t& number) {
  const auto [rest, problem] = std::from_chars(text.data(), text.data() + text.size(), number, 16);
  if (problem != std::errc() || rest == text.data() + text.size() || *rest != end) {
    return false;
  }
  text.remove_prefix(static_cast<size_t>(rest - text.data()) + 1);
  return true;
}

}  // namespace

std::optional<Mapping> ParseMapping(std::string_view line) {
  Mapping mapping;
  mapping.range = line.substr(0, line.find(' '));
  mapping.deleted = line.ends_with(" (deleted)");
  const size_t name = line.find('/');
  mapping.anonymous = name != std::string_view::npos && line.substr(name) == "/dev/zero (deleted)";
  uint64_t start = 0;
  uint64_t end = 0;
  uint64_t offset = 0;
  uint64_t major = 0;
  uint64_t minor = 0;
  if (!ParseHex(line, '-', start) || !ParseHex(line, ' ', end) || line.size() < 5) {
    return std::nullopt;
  }
  line.remove_prefix(5);  // permissions
  if (!ParseHex(line, ' ', offset) || !ParseHex(line, ':', major) || !ParseHex(line, ' ', minor)) {
    return std::nullopt;
  }
  std::from_chars(line.data(), line.data() + line.size(), mapping.file.inode);
  mapping.file.device = ::makedev(static_cast<unsigned>(major), static_cast<unsigned>(minor));
  mapping.end_offset = offset + (end - start);
  return mapping;
}

MappingWalk WalkMappings(const std::string& maps, const std::function<bool()>& out_of_time,
                         const std::function<void(const Mapping&)>& each) {
  MappingWalk walk;
  const Result<UniqueFd> file = sys::Open(maps, O_RDONLY);
  if (!file.ok()) {
    walk.error = file.error().sys_errno;
    return walk;
  }
  std::string text;
  while (!out_of_time()) {
    const size_t rest = text.size();
    text.resize(rest + kPiece);
    const long got = raw::Syscall(SYS_read, file->get(), raw::Arg(text.data() + rest), kPiece);
    if (got <= 0) {
      walk.error = static_cast<int>(-got);
      return walk;
    }
    walk.any = true;
    text.resize(rest + static_cast<size_t>(got));
    size_t begin = 0;
    for (size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', begin)) {
      if (const std::optional<Mapping> mapping =
              ParseMapping(std::string_view(text).substr(begin, end - begin))) {
        each(*mapping);
      }
      begin = end + 1;
    }
    text.erase(0, begin);
  }
  walk.complete = false;
  return walk;
}

}  // namespace coffer::limits
