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
#include <utility>

#include "base/sys.h"
#include "limits/cgroup/control_file.h"
#include "limits/deadline.h"
#include "limits/held_files.h"
#include "limits/queue_memory.h"
#include "limits/task_life.h"

namespace coffer::limits {
namespace {

uint64_t OfHost(const std::string& proc, std::string_view key) {
  std::array<char, 4096> buffer;
  const std::string path = proc + "/meminfo";
  return 1024 * KeyedNumber(ReadControl(AT_FDCWD, path.c_str(), buffer).value_or(""), key);
}

uint64_t SharedMemoryOfHost(const std::string& proc) { return OfHost(proc, "Shmem:"); }
uint64_t KernelMemoryOfHost(const std::string& proc) { return OfHost(proc, "SUnreclaim:"); }

constexpr Nanos kMostOfASample = std::chrono::milliseconds(500);

// Of struct file_lock and vm_area_struct, rounded up.
constexpr uint64_t kBytesOfALock = 256;
constexpr uint64_t kBytesOfAMapping = 256;
// A lock takes about a microsecond of CPU time: this is some ten megabytes of them.
constexpr Nanos kCpuOfLocks = std::chrono::milliseconds(50);
constexpr int kLookShare = 50;  // looks for locks take a fiftieth of a processor
constexpr int kManyLocks = 8;   // unless they are an eighth of the cap: then up to a half
constexpr int kSlowLookShare =
    10;  // and a tenth, if a fiftieth would be less than once in this time
constexpr Nanos kRarestLook = std::chrono::seconds(1);
constexpr size_t kSwarm = 64;  // processes

}  // namespace

TreeUsage::TreeUsage(pid_t init, uint64_t memory_cap, std::string proc)
    : init_(init),
      memory_cap_(memory_cap),
      proc_(std::move(proc)),
      tree_(init_, proc_),
      page_size_(static_cast<uint64_t>(::sysconf(_SC_PAGESIZE))),
      memfd_device_(MemfdDevice()),
      start_shmem_(SharedMemoryOfHost(proc_)),
      lowest_shmem_(start_shmem_),
      start_kernel_(KernelMemoryOfHost(proc_)) {}

std::string_view TreeUsage::ReadMemory(pid_t pid, const char* name, std::span<char> buffer) const {
  const std::string_view first =
      ReadControl(AT_FDCWD, tree_.PathOf(pid, name).c_str(), buffer).value_or("");
  if (!first.empty() && !first.starts_with("0 0 ")) {
    return first;
  }
  const Result<UniqueFd> dir = sys::Open(tree_.PathOf(pid, "task"), O_RDONLY | O_DIRECTORY);
  const Result<std::vector<sys::DirEntry>> tasks =
      dir.ok() ? sys::ListDir(dir->get()) : std::vector<sys::DirEntry>();
  for (const sys::DirEntry& task : tasks.ok() ? *tasks : std::vector<sys::DirEntry>()) {
    const std::string path = tree_.PathOf(pid, "task/" + task.name + "/" + name);
    const std::string_view text = ReadControl(AT_FDCWD, path.c_str(), buffer).value_or("");
    if (!text.empty() && !text.starts_with("0 0 ")) {
      return text;
    }
  }
  return {};
}

bool TreeUsage::OutOfTime() const { return ThreadCpuTime() - sample_began_ > kMostOfASample; }

bool TreeUsage::MustStop() const { return OutOfTime() || BootTime() >= stop_at_; }

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

uint64_t TreeUsage::FilesInMemory() {
  uint64_t bytes = held_.BytesOn(memfd_device_);
  for (const int fd : tmpfs_) {
    struct statfs info{};
    if (raw::Syscall(SYS_fstatfs, fd, raw::Arg(&info)) == 0) {
      bytes += (static_cast<uint64_t>(info.f_blocks) - info.f_bfree) *
               static_cast<uint64_t>(info.f_bsize);
    }
  }
  const uint64_t shared = SharedAnonymous();
  const bool unmeasured =
      held_.unmeasured_flights > 0 ||
      std::any_of(held_.mapped.begin(), held_.mapped.end(),
                  [this](const auto& entry) { return entry.first.device == memfd_device_; });
  if (unmeasured || shared > 0) {
    // The host's figure has what is in `bytes` as well.
    const uint64_t shmem = SharedMemoryOfHost(proc_);
    // What others free meanwhile must not hide it: `shared` bounds what they can be charged for, so
    // the lowest figure serves.
    lowest_shmem_ = std::min(lowest_shmem_, shmem);
    const uint64_t growth = shmem - std::min(shmem, start_shmem_);
    const uint64_t since_lowest = shmem - lowest_shmem_;
    const uint64_t of_shared = std::min(since_lowest - std::min(since_lowest, bytes), shared);
    bytes += std::max(unmeasured ? growth - std::min(growth, bytes) : 0, of_shared);
  }
  return bytes;
}

uint64_t TreeUsage::SharedAnonymous() const {
  uint64_t sum = 0;
  for (const auto& [file, end] : most_shared_) {
    sum += end;
  }
  return sum;
}

// A program may unmap the end of it, and the pages stay.
void TreeUsage::RememberShared() {
  std::map<FileId, uint64_t> most;
  for (const auto& [file, end] : held_.shared) {
    const auto before = most_shared_.find(file);
    most[file] = before == most_shared_.end() ? end : std::max(end, before->second);
  }
  most_shared_ = std::move(most);
}

uint64_t TreeUsage::PageTables() const {
  uint64_t bytes = 0;
  for (const pid_t pid : pids_) {
    std::array<char, 4096> buffer;
    const std::string_view status =
        ReadControl(AT_FDCWD, tree_.PathOf(pid, "status").c_str(), buffer).value_or("");
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

uint64_t TreeUsage::KernelGrowth() const {
  const uint64_t now = KernelMemoryOfHost(proc_);
  return now - std::min(now, start_kernel_);
}

bool TreeUsage::LocksAreDue(Nanos cpu) const {
  const bool used =
      cpu - cpu_at_lock_look_ >= kCpuOfLocks || cpu_.ran() - ran_at_lock_look_ >= kCpuOfLocks;
  return used && BootTime() >= next_lock_look_;
}

// A look of its own, with as much time as a sample. The kernel prints all that a descriptor has
// beside its locks: 16,384 watches of inotify take half a second on a slow machine, and are no
// reason to end a call. A look that is cut short counts what the kernel's memory has grown by.
void TreeUsage::LookAtLocks(Nanos cpu) {
  if (!LocksAreDue(cpu)) {
    return;
  }
  const Nanos began = ThreadCpuTime();
  const Nanos before = began - std::exchange(sample_began_, began);
  const HeldFiles held = FindHeldFiles([this] { return Payload(); }, proc_,
                                       [this] { return MustStop(); }, Locks::kOnly);
  lock_bytes_ = held.locks * kBytesOfALock;
  if (!held.all_locks || held.unmeasured_flights > 0) {
    lock_bytes_ = std::max(lock_bytes_, KernelGrowth());
  }
  cpu_at_lock_look_ = cpu;
  ran_at_lock_look_ = cpu_.ran();
  const Nanos now = ThreadCpuTime();
  const Nanos took = now - began;
  sample_began_ = now - before;
  const bool many = lock_bytes_ >= memory_cap_ / kManyLocks;
  // Looks that take long are still so frequent that what passes between two is not several times
  // the cap. But a swarm, whose looks are the longest, has to be ended by a supervisor that has its
  // time for that.
  const Nanos seldom =
      pids_.size() > kSwarm
          ? took * kLookShare
          : std::min(took * kLookShare, std::max(kRarestLook, took * kSlowLookShare));
  next_lock_look_ = BootTime() + (many ? took : seldom);
}

// Apart from locks, whose looks can be far apart where there are many descriptors: this is one file.
void TreeUsage::LookAtNetlink(Nanos cpu) {
  if (!own_network_ || cpu - cpu_at_netlink_look_ < kCpuOfLocks ||
      BootTime() < next_netlink_look_) {
    return;
  }
  const Nanos began = ThreadCpuTime();
  const std::optional<uint64_t> bytes = NetlinkBytes(proc_, init_);
  if (bytes) {
    netlink_bytes_ = *bytes;
  } else if (LifeOfTask(tree_.PathOf(init_, "")) == TaskLife::kAlive) {
    netlink_bytes_ = KernelGrowth();
  }
  cpu_at_netlink_look_ = cpu;
  next_netlink_look_ = BootTime() + (ThreadCpuTime() - began) * HiddenTcp::kPause;
}

// A datagram of 64 KiB takes some microseconds, so any CPU time is reason to look.
void TreeUsage::LookAtUdp(Nanos cpu) {
  if (!own_network_ || cpu == cpu_at_udp_look_ || BootTime() < next_udp_look_) {
    return;
  }
  const Nanos began = ThreadCpuTime();
  if (const std::optional<uint64_t> bytes = UncountedUdpBytes(proc_, init_)) {
    udp_bytes_ = *bytes;
  } else if (LifeOfTask(tree_.PathOf(init_, "")) == TaskLife::kAlive) {
    udp_bytes_ = KernelGrowth();
  }
  cpu_at_udp_look_ = cpu;
  next_udp_look_ = BootTime() + (ThreadCpuTime() - began) * HiddenTcp::kPause;
}

uint64_t TreeUsage::MeasureUncounted(Nanos cpu) {
  LookAtNetlink(cpu);
  LookAtUdp(cpu);
  LookAtLocks(cpu);
  return lock_bytes_ + netlink_bytes_ + udp_bytes_;
}

uint64_t TreeUsage::Queues(const std::optional<SocketsInUse>& before, std::string& unreadable) {
  uint64_t hidden = held_.closed_senders;
  uint64_t tcp = 0;
  if (own_network_) {
    // Sockets that come or go while the descriptors are read are in one of the two counts only.
    const std::optional<SocketsInUse> after = CountSockets(proc_, init_);
    const Nanos began = ThreadCpuTime();
    const std::optional<uint64_t> bytes =
        after && after->tcp_sockets > 0 ? hidden_tcp_.Bytes(proc_, init_, held_.sockets, BootTime())
                                        : 0;
    // It has a pace of its own. While it is read the kernel may also deliver packets of others in this thread's time.
    sample_began_ += ThreadCpuTime() - began;
    if (before && after && bytes) {
      const uint64_t sockets = std::min(before->unix_sockets, after->unix_sockets);
      hidden = std::max(hidden, sockets - std::min(sockets, held_.unix_sockets));
      tcp = *bytes == 0 ? 0 : std::min(*bytes, MostTcpBytes(*after, proc_));
    } else if (LifeOfTask(tree_.PathOf(init_, "")) == TaskLife::kAlive && unreadable.empty()) {
      unreadable = "the sockets of the call's network cannot be counted";
    }
  }
  return held_.QueuedBytes() + tcp + (hidden + held_.unmeasured_flights) * MostOfAQueue();
}

uint64_t TreeUsage::MemoryNow(uint64_t queues) {
  uint64_t resident = 0;
  uint64_t unshared = 0;
  for (const pid_t pid : pids_) {
    std::array<char, 256> buffer;
    const std::string_view statm = ReadMemory(pid, "statm", buffer);
    const uint64_t pages = FieldNumber(statm, 2);
    resident += pages * page_size_;
    unshared += (pages - std::min(pages, FieldNumber(statm, 3))) * page_size_;
  }
  const uint64_t files = FilesInMemory();
  const uint64_t kernel = PageTables() + queues + held_.mappings * kBytesOfAMapping + lock_bytes_;
  // Resident pages count what is shared once for each process. If even that is within the cap,
  // exact figures are not needed: the kernel adds them up page by page.
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
      anonymous +=
          (FieldNumber(statm, 2) - std::min(FieldNumber(statm, 2), FieldNumber(statm, 3))) *
          page_size_;
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
  // A process that ended takes its figure along, so the sum can sink.
  io_lost_ += io_sum_ - std::min(io_sum_, sum);
  io_sum_ = sum;
  return io_sum_ + io_lost_;
}

// Everything but init, which is our own, holds nothing of the payload's, and is not for a user to look at.
std::vector<pid_t> TreeUsage::Payload() {
  std::vector<pid_t> pids;
  for (const TreeProcess& process : tree_.Find([this] { return MustStop(); })) {
    if (process.pid != init_) {
      pids.push_back(process.pid);
    }
  }
  return pids;
}

std::vector<TreeProcess> TreeUsage::FindProcesses() {
  sample_began_ = ThreadCpuTime();
  std::vector<TreeProcess> processes = tree_.Find([this] { return MustStop(); });
  pids_.clear();
  for (const TreeProcess& process : processes) {
    pids_.push_back(process.pid);
  }
  return processes;
}

uint64_t TreeUsage::TasksOf(const std::vector<TreeProcess>& processes) const {
  uint64_t tasks = 0;
  for (const TreeProcess& process : processes) {
    // A dead child of init only waits for init to reap it.
    tasks += process.dead && process.parent == init_ ? 0 : process.threads;
  }
  return tasks;
}

uint64_t TreeUsage::CountTasks() { return TasksOf(FindProcesses()); }

Result<Usage> TreeUsage::Measure() {
  const std::vector<TreeProcess> processes = FindProcesses();
  if (processes.empty()) {
    return HostFault("limits.tree", "the boundary's init is gone");
  }
  Usage usage;
  usage.cpu = cpu_.Add(tree_, processes);
  usage.pids = TasksOf(processes);
  const std::optional<SocketsInUse> sockets =
      own_network_ ? CountSockets(proc_, init_) : std::nullopt;
  LookAtLocks(usage.cpu);
  held_ = FindHeldFiles([this] { return Payload(); }, proc_, [this] { return MustStop(); },
                        Locks::kIgnore);
  if (BootTime() >= stop_at_) {
    return last_;  // cut short: sockets of processes that were not looked at would seem hidden
  }
  RememberShared();
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
