// SPDX-License-Identifier: Apache-2.0
#include "isolation/home_directories.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <functional>

#include "base/split.h"
#include "base/sys.h"

namespace coffer::isolation {
namespace {

constexpr size_t kMostBytes = 4 << 20;
constexpr size_t kName = 0;
constexpr size_t kUid = 2;
constexpr size_t kHome = 5;

// Calls `found` with a field and the home of each user until it returns true.
bool FindUser(size_t field, const std::function<bool(std::string_view, std::string_view)>& found) {
  const Result<std::string> users = sys::ReadFile("/etc/passwd", kMostBytes);
  if (!users.ok()) {
    return false;
  }
  for (const std::string_view line : SplitText(*users, '\n')) {
    const std::vector<std::string_view> fields = SplitText(line, ':');
    if (fields.size() > kHome && found(fields[field], fields[kHome])) {
      return true;
    }
  }
  return false;
}

std::string HomeWith(size_t field, std::string_view wanted) {
  std::string own;
  FindUser(field, [&](std::string_view value, std::string_view home) {
    if (value == wanted) {
      own = home;
    }
    return value == wanted;
  });
  return own;
}

}  // namespace

std::string OwnHome() { return HomeWith(kUid, std::to_string(::geteuid())); }

std::string HomeOf(std::string_view user) { return HomeWith(kName, user); }

bool IsAnyHome(const std::string& directory) {
  // By number: a home may have several names, through links and bind mounts. Nothing is mounted to find out.
  const auto look = [](const std::string& path, struct stat& info) {
    return ::fstatat(AT_FDCWD, path.c_str(), &info, AT_NO_AUTOMOUNT) == 0;
  };
  struct stat asked{};
  const bool there = look(directory, asked);
  return FindUser(kUid, [&](std::string_view, std::string_view home) {
    struct stat info{};
    return home == directory || (there && look(std::string(home), info) &&
                                 info.st_dev == asked.st_dev && info.st_ino == asked.st_ino);
  });
}

}  // namespace coffer::isolation
