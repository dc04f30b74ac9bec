// SPDX-License-Identifier: Apache-2.0
#include "limits/tree_cpu.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "limits/cgroup/control_file.h"

namespace coffer::limits {
namespace {

// How much of the time that it could have run a process did run: less than all where others want the CPU too.
double ShareOf(const ProcTree& tree, pid_t pid) {
  std::array<char, 256> buffer;
  const std::string_view text =
      ReadControl(AT_FDCWD, tree.PathOf(pid, "schedstat").c_str(), buffer).value_or("");
  const auto ran = static_cast<double>(FieldNumber(text, 1));
  const auto waited = static_cast<double>(FieldNumber(text, 2));
  return ran + waited > 0 ? ran / (ran + waited) : 1.0;
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
      seen = {process.start, 0, 0, 0};
    }
    seen_ticks_ += process.own_ticks - std::min(seen.ticks, process.own_ticks);
    seen.ticks = process.own_ticks;
    seen.sample = sample_;
    // The state is that of the first thread only.
    const bool may_run = process.running || (process.threads > 1 && !process.dead);
    seen.share = may_run ? ShareOf(tree, process.pid) : 0;
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
