// SPDX-License-Identifier: Apache-2.0
#include "isolation/runtime/busybox.h"

#include <sys/syscall.h>

#include <algorithm>
#include <string_view>

#include "base/sys.h"
#include "isolation/runtime/real_path.h"
#include "isolation/runtime/shell_tools.h"

namespace coffer::isolation {

namespace {

constexpr off_t kMaxProgram = 16 << 20;
constexpr std::string_view kStart("\0[\0[[\0", 6);

bool IsAppletName(std::string_view name) {
  return !name.empty() && name.size() < 32 &&
         std::all_of(
             name.begin(), name.end(),
             [](char c) {
               return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
                      c == '.' || c == '[' || c == '+';
             });
}

bool IsEveryday(std::string_view name) {
  constexpr std::string_view kMore[] = {
      "[[",      "ash",     "awk",   "clear",   "crc32",    "dos2unix", "ed",      "less",  "more",
      "patch",   "hexdump", "hd",    "strings", "unix2dos", "usleep",   "vi",      "unzip", "cpio",
      "bunzip2", "unxz",    "xzcat", "bzcat",   "dc",       "tree",     "ttysize", "watch"};
  const auto tools = ShellTools();
  return std::find(tools.begin(), tools.end(), name) != tools.end() ||
         std::find(std::begin(kMore), std::end(kMore), name) != std::end(kMore);
}

}  // namespace

std::vector<std::string> BusyboxApplets(const std::string& file) {
  std::vector<std::string> applets;
  RealPaths paths;
  const Result<RealPaths::OpenedFile> opened = paths.Open(file);
  if (!opened.ok() || opened->status.st_size > kMaxProgram) {
    return applets;
  }
  std::string text(static_cast<size_t>(opened->status.st_size), '\0');
  const long got = raw::Syscall(SYS_pread64, opened->fd.get(), raw::Arg(text.data()),
                                static_cast<long>(text.size()), 0);
  const size_t start = got == opened->status.st_size ? text.find(kStart) : std::string::npos;
  if (start == std::string::npos) {
    return applets;
  }
  std::string_view rest = std::string_view(text).substr(start + 1);
  std::string_view before;
  for (;;) {
    const std::string_view name = rest.substr(0, rest.find('\0'));
    if (!IsAppletName(name) || name <= before || name.size() == rest.size()) {
      return applets;
    }
    if (IsEveryday(name)) {
      applets.emplace_back(name);
    }
    before = name;
    rest.remove_prefix(name.size() + 1);
  }
}

}  // namespace coffer::isolation
