// SPDX-License-Identifier: Apache-2.0
#include "limits/tree_usage.h"

#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "base/sys.h"
#include "limits/cgroup/control_file.h"
#include "limits/deadline.h"
#include "limits/held_files.h"
#include "limits/queue_memory.h"
#include "limits/task_life.h"

namespace coffer::limits {
namespace {

constexpr size_t kMostProcesses =
    65536;  // a walk must end even if the tree grows faster than it is walked

// Field `index` (1 is the first) of a space-separated line.
uint64_t Field(std::string_view text, int index) {
  for (; index > 1; --index) {
    const size_t space = text.find(' ');
    if (space == std::string_view::npos) {
      return 0;
    }
    text.remove_prefix(space + 1);
  }
  uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

void AppendPids(std::string_view text, std::vector<pid_t>& pids) {
  const char* at = text.data();
  const char* end = at + text.size();
  while (at < end) {
    pid_t pid = 0;
    const auto [rest, problem] = std::from_chars(at, end, pid);
    if (problem != std::errc()) {
      return;
    }
    pids.push_back(pid);
    at = rest + 1;
  }
}

uint64_t SharedMemoryOfHost(const std::string& proc) {
  std::array<char, 4096> buffer;
  const std::string path = proc + "/meminfo";
  return 1024 * KeyedNumber(ReadControl(AT_FDCWD, path.c_str(), buffer).value_or(""), "Shmem:");
}

bool IsNumber(std::string_view name) {
  return !name.empty() && name.front() >= '1' && name.front() <= '9';
}

// Of this thread: a busy machine makes a sample take longer, not cost more.
Nanos OwnCpuTime() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::chrono::seconds(now.tv_sec) + Nanos(now.tv_nsec);
}

constexpr Nanos kMostOfASample = std::chrono::milliseconds(500);

}  // namespace

TreeUsage::TreeUsage(pid_t init, uint64_t memory_cap, std::string proc)
    : init_(init),
      memory_cap_(memory_cap),
      proc_(std::move(proc)),
      page_size_(static_cast<uint64_t>(::sysconf(_SC_PAGESIZE))),
      tick_(Nanos(std::chrono::seconds(1)) / ::sysconf(_SC_CLK_TCK)),
      memfd_device_(MemfdDevice()),
      start_shmem_(SharedMemoryOfHost(proc_)),
      sampled_at_(BootTime()) {}

std::string TreeUsage::PathOf(pid_t pid, std::string_view name) const {
  std::string path = proc_ + "/" + std::to_string(pid) + "/";
  path += name;
  return path;
}

bool TreeUsage::ReadStat(pid_t pid, Process& out) const {
  std::array<char, 1024> buffer;
  const std::optional<std::string_view> text =
      ReadControl(AT_FDCWD, PathOf(pid, "stat").c_str(), buffer);
  if (!text) {
    return false;
  }
  // The name is in parentheses and may contain anything, so count from the last one: the state is field 3.
  const size_t name_end = text->rfind(')');
  if (name_end == std::string_view::npos || name_end + 2 > text->size()) {
    return false;
  }
  const std::string_view rest = text->substr(name_end + 2);
  const auto field = [&](int number) { return Field(rest, number - 2); };
  out.dead = rest.front() == 'Z' || rest.front() == 'X';
  out.running = rest.front() == 'R';
  out.parent = static_cast<pid_t>(field(4));
  out.own_ticks = field(14) + field(15);
  out.children_ticks = field(16) + field(17);
  out.threads = field(20);
  out.start = field(22);
  return true;
}

std::string_view TreeUsage::ReadMemory(pid_t pid, const char* name, std::span<char> buffer) const {
  const std::string_view first =
      ReadControl(AT_FDCWD, PathOf(pid, name).c_str(), buffer).value_or("");
  if (!first.empty() && !first.starts_with("0 0 ")) {
    return first;
  }
  const Result<UniqueFd> dir = sys::Open(PathOf(pid, "task"), O_RDONLY | O_DIRECTORY);
  const Result<std::vector<sys::DirEntry>> tasks =
      dir.ok() ? sys::ListDir(dir->get()) : std::vector<sys::DirEntry>();
  for (const sys::DirEntry& task : tasks.ok() ? *tasks : std::vector<sys::DirEntry>()) {
    const std::string path = PathOf(pid, "task/" + task.name + "/" + name);
    const std::string_view text = ReadControl(AT_FDCWD, path.c_str(), buffer).value_or("");
    if (!text.empty() && !text.starts_with("0 0 ")) {
      return text;
    }
  }
  return {};
}

bool TreeUsage::OutOfTime() const { return OwnCpuTime() - sample_began_ > kMostOfASample; }

bool TreeUsage::MustStop() const { return OutOfTime() || BootTime() >= stop_at_; }

bool TreeUsage::FindByChildren(std::vector<Process>& processes) {
  pids_.assign(1, init_);
  size_t kept = 0;
  for (size_t at = 0; at < pids_.size() && pids_.size() < kMostProcesses && !MustStop(); ++at) {
    const pid_t pid = pids_[at];
    Process process;
    if (!ReadStat(pid, process)) {
      continue;  // gone; its children are now init's, and seen next time
    }
    pids_[kept++] = pid;
    processes.push_back(process);
    std::vector<std::string> threads = {std::to_string(pid)};
    if (process.threads > 1) {
      const Result<UniqueFd> dir = sys::Open(PathOf(pid, "task"), O_RDONLY | O_DIRECTORY);
      Result<std::vector<sys::DirEntry>> tasks =
          dir.ok() ? sys::ListDir(dir->get()) : std::vector<sys::DirEntry>();
      threads.clear();
      for (sys::DirEntry& task : tasks.ok() ? *tasks : std::vector<sys::DirEntry>()) {
        threads.push_back(std::move(task.name));
      }
    }
    bool listed = false;
    for (const std::string& thread : threads) {
      const Result<std::string> children =
          sys::ReadFile(PathOf(pid, "task/" + thread + "/children"));
      if (children.ok()) {
        listed = true;
        AppendPids(*children, pids_);
      }
    }
    if (!listed && pid == init_ && ReadStat(pid, process)) {
      return false;  // no such file for a process that lives: the kernel has no CONFIG_PROC_CHILDREN
    }
  }
  pids_.resize(kept);
  return true;
}

void TreeUsage::FindByScan(std::vector<Process>& processes) {
  struct Entry {
    pid_t pid;
    Process process;
  };
  std::vector<Entry> all;
  const Result<UniqueFd> dir = sys::Open(proc_, O_RDONLY | O_DIRECTORY);
  const Result<std::vector<sys::DirEntry>> names =
      dir.ok() ? sys::ListDir(dir->get()) : std::vector<sys::DirEntry>();
  for (const sys::DirEntry& name : names.ok() ? *names : std::vector<sys::DirEntry>()) {
    Entry entry{};
    if (IsNumber(name.name)) {
      std::from_chars(name.name.data(), name.name.data() + name.name.size(), entry.pid);
      if (ReadStat(entry.pid, entry.process)) {
        all.push_back(entry);
      }
    }
  }
  pids_.clear();
  processes.clear();
  for (const Entry& entry : all) {
    if (entry.pid == init_) {
      pids_.push_back(init_);
      processes.push_back(entry.process);
    }
  }
  for (size_t at = 0; at < pids_.size(); ++at) {
    for (const Entry& entry : all) {
      if (entry.process.parent == pids_[at] && entry.pid != init_) {
        pids_.push_back(entry.pid);
        processes.push_back(entry.process);
      }
    }
  }
}

// How much of the time that it could have run a process did run: less than all where others want the CPU too.
double TreeUsage::ShareOf(pid_t pid) const {
  std::array<char, 256> buffer;
  const std::string_view text =
      ReadControl(AT_FDCWD, PathOf(pid, "schedstat").c_str(), buffer).value_or("");
  const auto ran = static_cast<double>(Field(text, 1));
  const auto waited = static_cast<double>(Field(text, 2));
  return ran + waited > 0 ? ran / (ran + waited) : 1.0;
}

Nanos TreeUsage::CpuTime(const std::vector<Process>& processes) {
  ++sample_;
  const Nanos now = BootTime();
  const Nanos interval = std::min<Nanos>(now - sampled_at_, kLongestCheck);
  sampled_at_ = now;
  uint64_t kernel_sum = 0;
  for (size_t i = 0; i < processes.size(); ++i) {
    const Process& process = processes[i];
    kernel_sum += process.own_ticks + process.children_ticks;
    Seen& seen = seen_[pids_[i]];
    if (seen.start != process.start) {
      seen = {process.start, 0, 0, 0};
    }
    seen_ticks_ += process.own_ticks - std::min(seen.ticks, process.own_ticks);
    seen.ticks = process.own_ticks;
    seen.sample = sample_;
    // The state is that of the first thread only.
    seen.share = process.running || (process.threads > 1 && !process.dead) ? ShareOf(pids_[i]) : 0;
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

std::vector<uint64_t> TreeUsage::MemoryDevices() const {
  std::vector<uint64_t> devices = {memfd_device_};
  for (const int fd : tmpfs_) {
    struct stat info{};
    if (raw::Syscall(SYS_fstat, fd, raw::Arg(&info)) == 0) {
      devices.push_back(info.st_dev);
    }
  }
  return devices;
}

uint64_t TreeUsage::FilesInMemory() const {
  uint64_t bytes = held_.BytesOn(memfd_device_);
  for (const int fd : tmpfs_) {
    struct statfs info{};
    if (raw::Syscall(SYS_fstatfs, fd, raw::Arg(&info)) == 0) {
      bytes += (static_cast<uint64_t>(info.f_blocks) - info.f_bfree) *
               static_cast<uint64_t>(info.f_bsize);
    }
  }
  const bool unmeasured =
      held_.unmeasured_flights > 0 ||
      std::any_of(held_.mapped.begin(), held_.mapped.end(),
                  [this](const auto& entry) { return entry.first.device == memfd_device_; });
  if (unmeasured) {
    const uint64_t shmem = SharedMemoryOfHost(proc_);
    bytes = std::max(bytes, shmem - std::min(shmem, start_shmem_));
  }
  return bytes;
}

uint64_t TreeUsage::PageTables() const {
  uint64_t bytes = 0;
  for (const pid_t pid : pids_) {
    std::array<char, 4096> buffer;
    const std::string_view status =
        ReadControl(AT_FDCWD, PathOf(pid, "status").c_str(), buffer).value_or("");
    const size_t line = status.find("\nVmPTE:");
    if (line != std::string_view::npos) {
      const size_t digit = status.find_first_of("0123456789", line);
      uint64_t kilobytes = 0;
      std::from_chars(status.data() + std::min(digit, status.size()), status.data() + status.size(),
                      kilobytes);
      bytes += kilobytes * 1024;
    }
  }
  return bytes;
}

uint64_t TreeUsage::Queues(const std::optional<SocketsInUse>& before, std::string& unreadable) {
  uint64_t hidden = held_.closed_senders;
  uint64_t tcp = 0;
  if (own_network_) {
    // Sockets that come or go while the descriptors are read are in one of the two counts only.
    const std::optional<SocketsInUse> after = CountSockets(proc_, init_);
    const std::optional<uint64_t> bytes =
        after && after->tcp_sockets > 0 ? HiddenTcpBytes(proc_, init_, held_.sockets) : 0;
    if (before && after && bytes) {
      const uint64_t sockets = std::min(before->unix_sockets, after->unix_sockets);
      hidden = std::max(hidden, sockets - std::min(sockets, held_.unix_sockets));
      tcp = *bytes;
    } else if (LifeOfTask(PathOf(init_, "")) == TaskLife::kAlive && unreadable.empty()) {
      unreadable = "the sockets of the call's network cannot be counted";
    }
  }
  return held_.QueuedBytes() + tcp + (hidden + held_.unmeasured_flights) * MostOfAQueue();
}

uint64_t TreeUsage::MemoryNow(uint64_t queues) const {
  uint64_t resident = 0;
  uint64_t unshared = 0;
  for (const pid_t pid : pids_) {
    std::array<char, 256> buffer;
    const std::string_view statm = ReadMemory(pid, "statm", buffer);
    const uint64_t pages = Field(statm, 2);
    resident += pages * page_size_;
    unshared += (pages - std::min(pages, Field(statm, 3))) * page_size_;
  }
  const uint64_t files = FilesInMemory();
  const uint64_t kernel = PageTables() + queues;
  if (resident + files + kernel <= memory_cap_) {
    return unshared + files + kernel;
  }
  if (files + kernel > memory_cap_) {
    return files +
           kernel;  // too much already; exact sizes take long where there are many page tables
  }
  uint64_t anonymous = 0;
  uint64_t mapped_files = 0;
  for (const pid_t pid : pids_) {
    std::array<char, 4096> buffer;
    if (MustStop()) {
      break;
    }
    const std::string_view rollup = ReadMemory(pid, "smaps_rollup", buffer);
    if (rollup.find("Pss_Anon:") == std::string_view::npos) {
      // Not readable, or it just died: what is known is an overstatement, and a limit errs that way.
      const std::string_view statm = ReadMemory(pid, "statm", buffer);
      anonymous += (Field(statm, 2) - std::min(Field(statm, 2), Field(statm, 3))) * page_size_;
      continue;
    }
    anonymous += 1024 * (KeyedNumber(rollup, "Pss_Anon:") + KeyedNumber(rollup, "SwapPss:"));
    mapped_files += 1024 * KeyedNumber(rollup, "Pss_Shmem:");
  }
  return anonymous + std::max(files, mapped_files) + kernel;
}

uint64_t ReadIoOf(pid_t pid, const std::string& proc) {
  std::array<char, 512> buffer;
  const std::string path = proc + "/" + std::to_string(pid) + "/io";
  const std::string_view io = ReadControl(AT_FDCWD, path.c_str(), buffer).value_or("");
  return KeyedNumber(io, "read_bytes:") + KeyedNumber(io, "write_bytes:");
}

uint64_t TreeUsage::IoNow() {
  uint64_t sum = 0;
  for (const pid_t pid : pids_) {
    sum += ReadIoOf(pid, proc_);
  }
  io_lost_ += io_sum_ - std::min(io_sum_, sum);
  io_sum_ = sum;
  return io_sum_ + io_lost_;
}

// Everything but init, which is our own, holds nothing of the payload's, and is not for a user to look at.
std::vector<pid_t> TreeUsage::Payload() {
  std::vector<Process> processes;
  if (!has_children_files_ || !FindByChildren(processes)) {
    processes.clear();
    FindByScan(processes);
  }
  return {pids_.begin() + (pids_.empty() ? 0 : 1), pids_.end()};
}

std::vector<TreeUsage::Process> TreeUsage::FindProcesses() {
  sample_began_ = OwnCpuTime();
  std::vector<Process> processes;
  if (has_children_files_ && !FindByChildren(processes)) {
    has_children_files_ = false;
  }
  if (!has_children_files_) {
    FindByScan(processes);
  }
  return processes;
}

uint64_t TreeUsage::TasksOf(const std::vector<Process>& processes) const {
  uint64_t tasks = 0;
  for (const Process& process : processes) {
    tasks += process.dead && process.parent == init_ ? 0 : process.threads;
  }
  return tasks;
}

uint64_t TreeUsage::CountTasks() {
  const std::vector<Process> processes = FindProcesses();
  return processes.empty() || pids_.front() != init_ ? 0 : TasksOf(processes);
}

Result<Usage> TreeUsage::Measure() {
  const std::vector<Process> processes = FindProcesses();
  if (processes.empty() || pids_.front() != init_) {
    return HostFault("limits.tree", "the boundary's init is gone");
  }
  Usage usage;
  usage.cpu = CpuTime(processes);
  usage.pids = TasksOf(processes);
  const std::vector<pid_t> counted = pids_;
  const std::optional<SocketsInUse> sockets =
      own_network_ ? CountSockets(proc_, init_) : std::nullopt;
  held_ = FindHeldFiles([this] { return Payload(); }, proc_, [this] { return MustStop(); });
  pids_ = counted;
  if (BootTime() >= stop_at_) {
    return last_;  // cut short: sockets of processes that were not looked at would seem hidden
  }
  usage.unreadable = held_.unreadable;
  usage.memory = MemoryNow(Queues(sockets, usage.unreadable));
  usage.io_bytes = IoNow();
  if (OutOfTime() && usage.unreadable.empty()) {
    usage.unreadable = "the call makes processes or mappings faster than they can be counted";
  }
  KeepPeaks(last_, usage);
  last_ = usage;
  return usage;
}

}  // namespace coffer::limits
