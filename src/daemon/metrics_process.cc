// SPDX-License-Identifier: Apache-2.0
#include "daemon/metrics_process.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <charconv>
#include <limits>

#include "base/sys.h"

namespace coffer::daemon {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

// The second number of /proc/self/statm is the resident pages (proc(5)).
double ResidentBytes() {
  const Result<std::string> text = sys::ReadFile("/proc/self/statm");
  if (!text.ok()) {
    return kUnknown;
  }
  const size_t at = text->find(' ');
  uint64_t pages = 0;
  if (at == std::string::npos ||
      std::from_chars(text->data() + at + 1, text->data() + text->size(), pages).ec !=
          std::errc()) {
    return kUnknown;
  }
  return static_cast<double>(pages) * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

// A process may always list its own descriptors, also when it is not dumpable (fs/proc/fd.c, proc_fd_permission).
double OpenFiles() {
  const Result<UniqueFd> dir = sys::Open("/proc/self/fd", O_RDONLY | O_DIRECTORY);
  if (!dir.ok()) {
    return kUnknown;
  }
  const Result<std::vector<sys::DirEntry>> entries = sys::ListDir(dir->get());
  return entries.ok() ? static_cast<double>(entries->size()) - 1 : kUnknown;  // without our own
}

double CpuSeconds() {
  timespec used{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) / 1e9;
}

}  // namespace

void ReadProcessUse(audit::ProcessUse& use) {
  use.resident_bytes = ResidentBytes();
  use.open_files = OpenFiles();
  use.cpu_seconds = CpuSeconds();
}

}  // namespace coffer::daemon
