// SPDX-License-Identifier: Apache-2.0
#include "call/run/working_directory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include "base/path_words.h"
#include "base/text.h"
#include "isolation/runtime/real_path.h"

namespace coffer::call {
namespace {

// Where `path` is below `at`, relative; "" if it is `at` itself.
std::string Below(const std::string& path, const std::string& at) {
  return path.size() > at.size() ? path.substr(at.size() + 1) : "";
}

}  // namespace

Status CheckWorkingDirectory(const std::string& cwd,
                             const std::vector<isolation::OpenedMount>& mounts,
                             const isolation::OpenedRuntime& runtime) {
  const std::string path = isolation::Normalize(cwd);
  for (const char* own : {"/", "/workspace", "/tmp", "/in", "/etc", "/dev", "/proc"}) {
    if (path == own) {
      return {};
    }
  }
  for (const isolation::OpenedMount& mount : mounts) {
    if (isolation::IsAtOrBelow(mount.at, path)) {
      return mount.path.directory || mount.at != path
                 ? Status()
                 : Status(Refused("policy.cwd",
                                  fmt::format("--cwd: {} is a file", PathInWords(Printable(cwd))),
                                  "name a directory"));
    }
    struct stat info{};
    // Links are followed: inside they may lead elsewhere, and the kernel has the last word.
    if (isolation::IsAtOrBelow(path, mount.at) &&
        ::fstatat(mount.path.fd.get(), Below(path, mount.at).c_str(), &info, 0) == 0) {
      return {};
    }
  }
  for (const isolation::RuntimeFile& file : runtime.set.files) {
    struct stat info{};
    if (isolation::IsAtOrBelow(file.inside, path) ||
        (file.directory && isolation::IsAtOrBelow(path, file.inside) &&
         ::stat((file.host + path.substr(file.inside.size())).c_str(), &info) == 0)) {
      return {};
    }
  }
  for (const auto& [name, target] : runtime.set.links) {
    if (isolation::IsAtOrBelow(path, name)) {
      return {};
    }
  }
  return Refused("policy.cwd",
                 fmt::format("--cwd: there is no directory {} inside", PathInWords(Printable(cwd))),
                 "use /workspace or the target of a mount, as in --ro ./data:/data --cwd /data");
}

}  // namespace coffer::call
