// SPDX-License-Identifier: Apache-2.0
#include "isolation/etc.h"

#include <fmt/format.h>

namespace coffer::isolation {
namespace {

// A TZif version 2 file (RFC 8536) with no transitions and one type, UTC: twice the same header and body, then the
// footer with the POSIX rule.
std::string UtcZone() {
  std::string block = "TZif2";
  block.append(15, '\0');  // reserved
  const unsigned char counts[6] = {0, 0, 0,
                                   0, 1, 4};  // isut, isstd, leap, transitions, types, characters
  for (const unsigned char count : counts) {
    block.append(3, '\0');
    block.push_back(static_cast<char>(count));
  }
  block.append(6, '\0');  // offset 0, not daylight saving, name at 0
  block.append("UTC", 4);
  return block + block + "\nUTC0\n";
}

}  // namespace

std::vector<PrivateFile> SyntheticEtc(uint32_t uid, const std::string& hostname) {
  const std::string user =
      fmt::format("{0}:x:{1}:{1}:{0}:/workspace:/bin/sh\n", uid == 0 ? "root" : kUserName, uid);
  const std::string group = fmt::format("{}:x:{}:\n", uid == 0 ? "root" : kUserName, uid);
  return {
      {"/etc/passwd", user + (uid == 65534 ? "" : "nobody:x:65534:65534:nobody:/:/bin/false\n"),
       0444},
      {"/etc/group", group + (uid == 65534 ? "" : "nogroup:x:65534:\n"), 0444},
      {"/etc/hosts", fmt::format("127.0.0.1 localhost {0}\n::1 localhost {0}\n", hostname), 0444},
      {"/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n", 0444},
  };
}

PrivateFile SyntheticLocaltime() { return {"/etc/localtime", UtcZone(), 0444}; }

}  // namespace coffer::isolation
