// SPDX-License-Identifier: Apache-2.0
#include "limits/breach.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <array>

#include "base/quantity.h"

namespace coffer::limits {
namespace {

struct CapText {
  std::string_view error_class;
  std::string_view flag;
};

// The set of error classes is closed; I/O is a use of the disk.
constexpr std::array<CapText, 7> kTexts = {{
    {"limit.cpu", "--cpu"},
    {"limit.wall", "--wall"},
    {"limit.memory", "--memory"},
    {"limit.processes", "--processes"},
    {"limit.disk", "--disk"},
    {"limit.disk", "--io"},
    {"limit.output", "--output"},
}};

const CapText& TextOf(Cap cap) { return kTexts[static_cast<size_t>(cap)]; }

std::string Seconds(Nanos time) {
  return fmt::format("{:.2f}s", std::chrono::duration<double>(time).count());
}

std::string Size(uint64_t bytes) {
  constexpr double kMiB = 1 << 20;
  return bytes < (1 << 20) ? fmt::format("{} bytes", bytes)
                           : fmt::format("{:.1f}MiB", static_cast<double>(bytes) / kMiB);
}

Breach Make(Cap cap, std::string message) {
  return {cap, std::move(message),
          fmt::format("raise the cap with {} if the call needs it", TextOf(cap).flag)};
}

uint64_t AllMemory(const Usage& usage) { return std::max(usage.memory, usage.with_uncounted); }

bool MemoryExceeded(const policy::Limits& caps, const Usage& usage) {
  return usage.oom_kills > 0 || AllMemory(usage) > caps.memory;
}

bool MemoryBreached(const policy::Limits& caps, const Usage& usage) {
  return MemoryExceeded(caps, usage) || !usage.unreadable.empty();
}

bool DiskReached(const policy::Limits& caps, const Events& events) {
  return events.disk_bytes >= caps.disk || events.disk_inodes >= caps.inodes ||
         !events.disk_unknown.empty() || events.exit_signal == SIGXFSZ;
}

Breach DiskBreach(const policy::Limits& caps, const Events& events) {
  if (events.disk_inodes >= caps.inodes) {
    return Make(Cap::kDisk,
                fmt::format("made {} files, the cap is {}", events.disk_inodes, caps.inodes));
  }
  if (events.disk_bytes >= caps.disk) {
    return Make(Cap::kDisk, fmt::format("wrote {} to a writable place, the cap is {}",
                                        Size(events.disk_bytes), FormatSize(caps.disk)));
  }
  return Make(Cap::kDisk, fmt::format("wrote a file beyond the cap of {}", FormatSize(caps.disk)));
}

Breach PlaceBreach(const Events::FullPlace& place) {
  return {Cap::kDisk,
          place.of_files ? fmt::format("{} is full: it holds {} files", place.name, place.inodes)
                         : fmt::format("{} is full: it holds {}", place.name, Size(place.bytes)),
          fmt::format("give it more room with {} SIZE if the call needs it", place.flag)};
}

// A program that was refused threads may wait for them for ever.
std::string WallHint(const Usage& usage) {
  return usage.pids_denied == 0
             ? fmt::format("raise the cap with {} if the call needs it", TextOf(Cap::kWall).flag)
             : fmt::format("{} processes or threads were refused meanwhile: raise {}",
                           usage.pids_denied, TextOf(Cap::kProcesses).flag);
}

Breach CpuBreach(const policy::Limits& caps, const Usage& usage) {
  return Make(Cap::kCpu, fmt::format("used {} of CPU, the cap is {}", Seconds(usage.cpu),
                                     FormatDuration(caps.cpu)));
}

}  // namespace

std::string_view CapClass(Cap cap) { return TextOf(cap).error_class; }

std::optional<Breach> FindBreach(const policy::Limits& caps, const Usage& usage,
                                 const Events& events) {
  // What cannot be read counts as too much. After the wall time it decides nothing: the call has ended by then.
  if (!usage.unreadable.empty() && !events.wall_spent) {
    return Breach{Cap::kMemory, usage.unreadable,
                  "its memory cannot be bounded without a cgroup; see coffer doctor"};
  }
  // Memory first: a boundary that thrashes at its cap also spends time, and memory is the reason.
  if (MemoryExceeded(caps, usage)) {
    return Make(Cap::kMemory, AllMemory(usage) > caps.memory
                                  ? fmt::format("used {} of memory, the cap is {}",
                                                Size(AllMemory(usage)), FormatSize(caps.memory))
                                  : fmt::format("needed more memory than the cap of {}",
                                                FormatSize(caps.memory)));
  }
  if (usage.cpu >= caps.cpu) {
    return CpuBreach(caps, usage);
  }
  if (events.wall_spent || events.wall >= caps.wall) {
    return Breach{
        Cap::kWall,
        fmt::format("ran for {}, the cap is {}", Seconds(events.wall), FormatDuration(caps.wall)),
        WallHint(usage)};
  }
  if (!events.disk_unknown.empty()) {
    return Breach{Cap::kDisk, events.disk_unknown,
                  "what cannot be measured counts as more than the cap"};
  }
  if (events.disk_bytes > caps.disk || events.disk_inodes > caps.inodes) {
    return DiskBreach(caps, events);
  }
  if (usage.io_bytes > caps.io) {
    return Make(Cap::kIo, fmt::format("moved {} to and from disks, the cap is {}",
                                      Size(usage.io_bytes), FormatSize(caps.io)));
  }
  // Only without a pids cgroup: the kernel refuses otherwise.
  if (usage.pids > caps.processes + 1 + kSpareTasks) {
    return Make(Cap::kProcesses, fmt::format("ran {} processes and threads, the cap is {}",
                                             usage.pids - 1, caps.processes));
  }
  return std::nullopt;
}

void ExplainWall(const Usage& usage, Breach& breach) {
  if (breach.cap == Cap::kWall) {
    breach.hint = WallHint(usage);
  }
}

std::optional<Breach> FindRefusedTasks(const policy::Limits& caps, const Usage& usage,
                                       const Events& events) {
  if (usage.pids_denied > 0) {
    return Make(Cap::kProcesses,
                fmt::format("wanted more than {} processes and threads at once ({} refused)",
                            caps.processes, usage.pids_denied));
  }
  if (events.refusals_unseen && usage.pids_peak > caps.processes + 1) {  // with init
    return Make(Cap::kProcesses,
                fmt::format("wanted more than {} processes and threads at once", caps.processes));
  }
  return std::nullopt;
}

std::optional<Breach> ExplainFailure(const policy::Limits& caps, const Usage& usage,
                                     const Events& events) {
  if (std::optional<Breach> breach = FindBreach(caps, usage, events)) {
    return breach;
  }
  if (!events.failed) {
    return std::nullopt;
  }
  if (events.exit_signal == SIGXCPU) {
    return CpuBreach(caps, usage);
  }
  if (DiskReached(caps, events)) {
    return DiskBreach(caps, events);
  }
  if (events.full_place) {
    return PlaceBreach(*events.full_place);
  }
  return FindRefusedTasks(caps, usage, events);
}

bool Reached(Cap cap, const policy::Limits& caps, const Usage& usage, const Events& events) {
  switch (cap) {
    case Cap::kCpu:
      return usage.cpu >= caps.cpu || events.exit_signal == SIGXCPU;
    case Cap::kWall:
      return events.wall_spent || events.wall >= caps.wall;
    case Cap::kMemory:
      return MemoryBreached(caps, usage);
    case Cap::kProcesses:
      return usage.pids > caps.processes + 1 + kSpareTasks ||
             FindRefusedTasks(caps, usage, events).has_value();
    case Cap::kDisk:
      return DiskReached(caps, events) || events.full_place.has_value();
    case Cap::kIo:
      return usage.io_bytes > caps.io;
    case Cap::kOutput:
      return events.output_bytes > caps.output;
  }
  return false;
}

}  // namespace coffer::limits
