// SPDX-License-Identifier: Apache-2.0
#include "limits/tree_cpu.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string>

#include "base/sys.h"
#include "limits/cgroup/control_file.h"

namespace coffer::limits {
namespace {

struct Schedule {
  uint64_t ran = 0, waited = 0;  // nanoseconds
};

// Of a process's first thread, or of the thread whose directory is `task`.
Schedule ScheduleOf(const ProcTree& tree, pid_t pid, const std::string& task = "") {
  std::array<char, 256> buffer;
  const std::string path = tree.PathOf(pid, (task + "schedstat").c_str());
  const std::string_view text = ReadControl(AT_FDCWD, path.c_str(), buffer).value_or("");
  return {FieldNumber(text, 1), FieldNumber(text, 2)};
}

// How much of the time that it could have run a process did run: less than all where others want the CPU too.
double ShareOf(const Schedule& schedule) {
  const auto ran = static_cast<double>(schedule.ran);
  const auto waited = static_cast<double>(schedule.waited);
  return ran + waited > 0 ? ran / (ran + waited) : 1.0;
}

// Of all threads that it has now.
Nanos RanOf(const ProcTree& tree, const TreeProcess& process, const Schedule& first) {
  const Result<UniqueFd> tasks = process.threads > 1 ? sys::Open(tree.PathOf(process.pid, "task"),
                                                                 O_RDONLY | O_DIRECTORY | O_CLOEXEC)
                                                     : Result<UniqueFd>(UniqueFd());
  const Result<std::vector<sys::DirEntry>> threads =
      tasks.ok() && *tasks ? sys::ListDir(tasks->get()) : std::vector<sys::DirEntry>();
  if (!threads.ok() || threads->empty()) {
    return Nanos(first.ran);
  }
  uint64_t ran = 0;
  for (const sys::DirEntry& thread : *threads) {
    ran += ScheduleOf(tree, process.pid, "task/" + thread.name + "/").ran;
  }
  return Nanos(ran);
}

}  // namespace

TreeCpu::TreeCpu()
    : tick_(Nanos(std::chrono::seconds(1)) / ::sysconf(_SC_CLK_TCK)), sampled_at_(BootTime()) {}

Nanos TreeCpu::Add(const ProcTree& tree, const std::vector<TreeProcess>& processes) {
  ++sample_;
  const Nanos now = BootTime();
  const Nanos interval = std::min<Nanos>(now - sampled_at_, kLongestCheck);
  sampled_at_ = now;
  uint64_t kernel_sum = 0;
  for (const TreeProcess& process : processes) {
    kernel_sum += process.own_ticks + process.children_ticks;
    Seen& seen = seen_[process.pid];
    if (seen.start != process.start) {
      seen = {.start = process.start};
    }
    seen_ticks_ += process.own_ticks - std::min(seen.ticks, process.own_ticks);
    seen.ticks = process.own_ticks;
    seen.sample = sample_;
    const Schedule schedule = ScheduleOf(tree, process.pid);
    const Nanos ran = RanOf(tree, process, schedule);
    ran_ += ran - std::min(seen.ran, ran);
    seen.ran = ran;
    // The state is that of the first thread only.
    const bool may_run = process.running || (process.threads > 1 && !process.dead);
    seen.share = may_run ? ShareOf(schedule) : 0;
  }
  double shares = 0;
  for (const auto& [pid, seen] : seen_) {
    shares += seen.sample != sample_ ? seen.share : 0;
  }
  shares = std::min(shares, static_cast<double>(cpus_));
  charged_ += Nanos(static_cast<int64_t>(shares * static_cast<double>(interval.count())));
  std::erase_if(seen_, [this](const auto& entry) { return entry.second.sample != sample_; });
  return std::max(tick_ * kernel_sum, tick_ * seen_ticks_ + charged_);
}

}  // namespace coffer::limits
