// SPDX-License-Identifier: Apache-2.0
#include "isolation/etc.h"

#include <fmt/format.h>

#include <string_view>

#include "isolation/etc_names.h"

namespace coffer::isolation {
namespace {

constexpr uint32_t kNobody = 65534;

struct User {
  std::string_view name;
  uint32_t id;
  const char* home;
  const char* shell;
};

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

std::string Switch(std::string_view hosts) {
  return fmt::format("passwd: files\ngroup: files\nhosts: {}\nservices: files\nprotocols: files\n",
                     hosts);
}

}  // namespace

std::string SwitchWithNames() { return Switch("files dns"); }

std::vector<PrivateFile> SyntheticEtc(uint32_t uid, const std::string& hostname) {
  // The boundary's own user lives in /workspace, also if its uid is one of the others'.
  std::string users;
  std::string groups;
  for (const auto& [name, id, home, shell] :
       std::initializer_list<User>{{"root", 0, "/root", "/bin/sh"},
                                   {kUserName, uid, "/workspace", "/bin/sh"},
                                   {"nobody", kNobody, "/nonexistent", "/usr/sbin/nologin"}}) {
    const bool own = id == uid;
    if (name == kUserName && (uid == 0 || uid == kNobody)) {
      continue;
    }
    users += fmt::format("{0}:x:{1}:{1}:{0}:{2}:{3}\n", name, id, own ? "/workspace" : home, shell);
    groups += fmt::format("{}:x:{}:\n", id == kNobody ? "nogroup" : name, id);
  }
  return {
      {"/etc/passwd", std::move(users), 0444},
      {"/etc/group", std::move(groups), 0444},
      {"/etc/hosts",
       fmt::format("127.0.0.1 localhost {0}\n::1 localhost ip6-localhost {0}\n", hostname), 0444},
      {"/etc/nsswitch.conf", Switch("files"), 0444},
      {"/etc/services", kServices, 0444},
      {"/etc/protocols", kProtocols, 0444},
  };
}

PrivateFile SyntheticLocaltime() { return {"/etc/localtime", UtcZone(), 0444}; }

}  // namespace coffer::isolation
