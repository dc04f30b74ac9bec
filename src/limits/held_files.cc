// SPDX-License-Identifier: Apache-2.0
#include "limits/held_files.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <linux/memfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>
#include <vector>

#include "base/sys.h"
#include "limits/cgroup/control_file.h"
#include "limits/in_flight.h"
#include "limits/mapping.h"
#include "limits/queue_memory.h"
#include "limits/task_life.h"

namespace coffer::limits {
namespace {

using raw::Arg;
using raw::Syscall;

constexpr int kWalks = 4;                  // until nothing comes or goes meanwhile
constexpr int kDeepestFlight = 8;          // sockets in flight inside sockets in flight
constexpr unsigned kPidfdThread = O_EXCL;  // PIDFD_THREAD, Linux 6.9

constexpr std::string_view kInotify = "anon_inode:inotify";

constexpr uint64_t kMostLocks =
    200'000;  // on one descriptor; the kernel writes all lines for a reader of one

uint64_t AllocatedBytes(const struct stat& info) {
  return static_cast<uint64_t>(info.st_blocks) * 512;
}

class Walk {
 public:
  Walk(const std::string& proc, uint64_t memfd_device, const std::function<bool()>& out_of_time,
       Locks locks, HeldFiles& held)
      : proc_(proc),
        memfd_device_(memfd_device),
        out_of_time_(out_of_time),
        locks_(locks),
        held_(held) {}

  void LookAt(pid_t pid) {
    pid_ = pid;
    dir_ = proc_ + "/" + std::to_string(pid) + "/";
    const Result<UniqueFd> tasks = sys::Open(dir_ + "task", O_RDONLY | O_DIRECTORY);
    const Result<std::vector<sys::DirEntry>> threads =
        tasks.ok() ? sys::ListDir(tasks->get()) : std::vector<sys::DirEntry>();
    if (!tasks.ok() || !threads.ok() || threads->empty()) {
      held_.settled = false;
      return;
    }
    bool mapped = false;
    std::vector<pid_t> tables;  // one thread for each table of descriptors
    for (const sys::DirEntry& thread : *threads) {
      if (out_of_time_()) {
        held_.settled = false;
        return;
      }
      pid_t tid = 0;
      std::from_chars(thread.name.data(), thread.name.data() + thread.name.size(), tid);
      const std::string task = dir_ + "task/" + thread.name + "/";
      // Threads share one table, as a rule; 0 means that these two do.
      if (std::none_of(tables.begin(), tables.end(), [tid](pid_t other) {
            return Syscall(SYS_kcmp, other, tid, KCMP_FILES, 0, 0) == 0;
          })) {
        tables.push_back(tid);
        LookAtDescriptors(task, tid);
      }
      if (locks_ != Locks::kOnly) {
        LookAtDirectory(task + "cwd");
        mapped = mapped || LookAtMappings(task);
      }
    }
  }

 private:
  // A process without memory is root's for a moment, while it starts a program or ends. One that stays unreadable is
  // not dumpable.
  Result<UniqueFd> OpenPatiently(const std::string& task, const char* name) {
    for (int attempt = 0;; ++attempt) {
      Result<UniqueFd> dir = sys::Open(task + name, O_RDONLY | O_DIRECTORY);
      if (dir.ok() || dir.error().sys_errno != EACCES || attempt == 3 ||
          LifeOfTask(task) != TaskLife::kAlive) {
        return dir;
      }
      timespec pause{0, 1000000};
      Syscall(SYS_nanosleep, Arg(&pause), 0);
    }
  }

  void CannotLookAt(const std::string& task) {
    switch (LifeOfTask(task)) {
      case TaskLife::kGone:
        return;
      case TaskLife::kEnding:
        held_.settled = false;
        return;
      case TaskLife::kAlive:
        held_.unreadable = "process " + std::to_string(pid_) +
                           " hides what it holds (it is not dumpable, or not ours to look at)";
    }
  }

  void LookAtDescriptors(const std::string& task, pid_t tid) {
    // Before Linux 6.9 only the table of the first thread can be copied from.
    pidfd_ = UniqueFd(static_cast<int>(
        std::max(Syscall(SYS_pidfd_open, tid, tid == pid_ ? 0 : kPidfdThread), -1L)));
    Result<UniqueFd> dir = OpenPatiently(task, "fd");
    const bool hidden = !dir.ok() && dir.error().sys_errno == EACCES;
    if (hidden) {
      // Not dumpable: the numbers are public to a process that may trace it, and so are copies.
      dir = sys::Open(task + "fdinfo", O_RDONLY | O_DIRECTORY);
    }
    const Result<std::vector<sys::DirEntry>> entries =
        dir.ok() ? sys::ListDir(dir->get()) : std::vector<sys::DirEntry>();
    if (!dir.ok() || !entries.ok()) {
      CannotLookAt(task);
      return;
    }
    for (const sys::DirEntry& entry : *entries) {
      if (out_of_time_()) {
        held_.settled = false;
        held_.all_locks = false;
        return;
      }
      const uint64_t flying = CountLocks(task + "fdinfo/" + entry.name);
      int number = -1;
      std::from_chars(entry.name.data(), entry.name.data() + entry.name.size(), number);
      if (locks_ == Locks::kOnly) {
        if (flying > 0) {
          const UniqueFd copy(static_cast<int>(std::max(CopyNumber(number), -1L)));
          LookAtFlights(copy.get(), flying, 0);
        }
        continue;
      }
      struct stat info{};
      if (hidden) {
        const UniqueFd copy(static_cast<int>(std::max(CopyNumber(number), -1L)));
        if (!copy || Syscall(SYS_fstat, copy.get(), Arg(&info)) < 0) {
          CannotLookAt(task);
          return;
        }
      } else if (const long answer =
                     Syscall(SYS_newfstatat, dir->get(), Arg(entry.name.c_str()), Arg(&info), 0);
                 answer < 0) {
        if (answer != -ENOENT && answer != -ESRCH) {
          CannotLookAt(task);
        }
        continue;  // closed meanwhile
      }
      Note(info);
      if (MayBeInotify(info, dir->get(), entry.name)) {
        LookAtEvents(tid, number);
      }
      if ((S_ISSOCK(info.st_mode) || S_ISFIFO(info.st_mode)) &&
          !held_.queues.contains({info.st_dev, info.st_ino})) {
        const long answer = CopyNumber(number);
        if (answer < 0 && ((answer == -EBADF && pidfd_) || LifeOfTask(task) != TaskLife::kAlive)) {
          continue;  // closed meanwhile, or the thread has ended
        }
        const UniqueFd copy(static_cast<int>(std::max(answer, -1L)));
        LookAtQueue(copy.get(), info, task + "fdinfo/" + entry.name, 0);
      }
    }
  }

  // How many descriptors are in flight in it, if it is a UNIX socket.
  uint64_t CountLocks(const std::string& fdinfo) {
    if (locks_ == Locks::kIgnore) {
      return 0;
    }
    const Result<UniqueFd> file = sys::Open(fdinfo, O_RDONLY);
    std::array<char, 16384> buffer;
    uint64_t lines = 0;
    uint64_t flying = 0;
    bool at_start = true;
    while (file.ok()) {
      const long got = Syscall(SYS_read, file->get(), Arg(buffer.data()), buffer.size());
      if (got <= 0 || lines > kMostLocks) {
        // A descriptor that was closed since the file was opened reads as ENOENT, as it would have
        // if it had been closed before.
        const bool whole = got == 0 || got == -ESRCH || got == -ENOENT;
        held_.all_locks = held_.all_locks && lines <= kMostLocks && whole;
        break;
      }
      const std::string_view text(buffer.data(), static_cast<size_t>(got));
      flying = std::max(flying, KeyedNumber(text, "scm_fds:", ' '));
      for (const char c : text) {
        lines += at_start && c == 'l' ? 1 : 0;  // "lock:"; no other line begins so
        at_start = c == '\n';
      }
    }
    held_.locks += lines;
    return flying;
  }

  // Our own descriptor of one of theirs, or -errno. Needs what tracing needs.
  long CopyNumber(int number) const { return Syscall(SYS_pidfd_getfd, pidfd_.get(), number, 0); }

  void Note(const struct stat& info) {
    if (info.st_nlink == 0 && (S_ISREG(info.st_mode) || S_ISDIR(info.st_mode))) {
      uint64_t& bytes = held_.files[{info.st_dev, info.st_ino}];
      bytes = std::max(bytes, AllocatedBytes(info));
    }
  }

  // An inode of the kernel's own, without a type, that is not known to be something else: where the
  // link cannot be read, the descriptor itself is asked.
  static bool MayBeInotify(const struct stat& info, int dir, const std::string& name) {
    if ((info.st_mode & S_IFMT) != 0) {
      return false;
    }
    std::array<char, 64> target;
    const long size =
        Syscall(SYS_readlinkat, dir, Arg(name.c_str()), Arg(target.data()), target.size());
    return size <= 0 || std::string_view(target.data(), static_cast<size_t>(size)) == kInotify;
  }

  // All instances have the same inode, so kcmp tells which descriptors are the same one. Our copy
  // is closed at once: if the payload closes its own meanwhile, ours is the last, and the kernel
  // takes its time to remove the watches.
  void LookAtEvents(pid_t tid, int number) {
    const Descriptor own{tid, number};
    const auto at = std::lower_bound(
        instances_.begin(), instances_.end(), own,
        [](const Descriptor& a, const Descriptor& b) { return CompareFiles(a, b) == 1; });
    if (at != instances_.end() && CompareFiles(*at, own) == 0) {
      return;
    }
    const long answer = CopyNumber(number);
    if (answer < 0) {
      const bool gone = (answer == -EBADF && pidfd_) || answer == -ESRCH;
      held_.unread_events += gone ? 0 : MostOfAQueue();
      return;
    }
    const UniqueFd copy(static_cast<int>(answer));
    if (const uint64_t bytes = MeasureEvents(copy.get()); bytes > 0) {
      held_.unread_events += bytes;
      instances_.insert(at, own);
    }
  }

  struct Descriptor {
    pid_t tid;
    int number;
  };
  // 0 if both are one open file, 1 if `a` comes first in the kernel's order.
  static long CompareFiles(const Descriptor& a, const Descriptor& b) {
    return Syscall(SYS_kcmp, a.tid, b.tid, KCMP_FILE, a.number, b.number);
  }

  // `fd` is ours, or -1 if we could not get one.
  void LookAtQueue(int fd, const struct stat& info, const std::string& fdinfo, int depth) {
    const bool socket = S_ISSOCK(info.st_mode);
    const QueueMemory memory = socket ? MeasureSocket(fd) : MeasurePipe(fd);
    if (memory.holds_nothing) {
      return;
    }
    held_.queues[{info.st_dev, info.st_ino}] = memory.bytes;
    if (!socket) {
      return;
    }
    held_.closed_senders += memory.unread_from_closed ? 1 : 0;
    held_.unix_sockets += memory.family == AF_UNIX ? 1 : 0;
    if (fd >= 0) {
      held_.sockets.insert(info.st_ino);
    }
    std::array<char, 1024> buffer;
    const uint64_t flying =
        KeyedNumber(ReadControl(AT_FDCWD, fdinfo.c_str(), buffer).value_or(""), "scm_fds:", ' ');
    if (flying > 0) {
      LookAtFlights(fd, flying, depth);
    }
  }

  void LookAtFlights(int socket, uint64_t flying, int depth) {
    if (depth >= kDeepestFlight) {
      held_.unmeasured_flights += flying;
      return;
    }
    const std::vector<UniqueFd> seen = PeekAtFlights(socket);
    held_.unmeasured_flights += flying - std::min<uint64_t>(flying, seen.size());
    for (const UniqueFd& fd : seen) {
      struct stat inner{};
      if (Syscall(SYS_fstat, fd.get(), Arg(&inner)) < 0) {
        ++held_.unmeasured_flights;
        continue;
      }
      Note(inner);
      if (locks_ != Locks::kOnly && MayBeInotify(inner, -1, "")) {
        held_.unread_events += MeasureEvents(fd.get());
      }
      const uint64_t deeper = CountLocks("/proc/self/fdinfo/" + std::to_string(fd.get()));
      if (locks_ == Locks::kOnly) {
        if (deeper > 0) {
          LookAtFlights(fd.get(), deeper, depth + 1);
        }
        continue;
      }
      if ((S_ISSOCK(inner.st_mode) || S_ISFIFO(inner.st_mode)) &&
          !held_.queues.contains({inner.st_dev, inner.st_ino})) {
        LookAtQueue(fd.get(), inner, "/proc/self/fdinfo/" + std::to_string(fd.get()), depth + 1);
      }
    }
  }

  void LookAtDirectory(const std::string& link) {
    struct stat info{};
    if (Syscall(SYS_newfstatat, AT_FDCWD, Arg(link.c_str()), Arg(&info), 0) == 0) {
      Note(info);
    }
  }

  // True if this thread has memory, which then is that of all threads of the process.
  bool LookAtMappings(const std::string& task) {
    const MappingWalk walk =
        WalkMappings(task + "maps", out_of_time_, [this](const Mapping& mapping) {
          ++held_.mappings;
          // A name that the process gives to shared anonymous memory (PR_SET_VMA) takes the place of "(deleted)".
          const bool shared = mapping.file.device == memfd_device_ && memfd_device_ != 0 &&
                              (mapping.anonymous || !mapping.deleted);
          if (!mapping.deleted && !shared) {
            return;
          }
          struct stat info{};
          const std::string entry = dir_ + "map_files/" + std::string(mapping.range);
          if (Syscall(SYS_newfstatat, AT_FDCWD, Arg(entry.c_str()), Arg(&info), 0) == 0) {
            Note(info);
          } else {
            uint64_t& end = (shared ? held_.shared : held_.mapped)[mapping.file];
            end = std::max(end, mapping.end_offset);
          }
        });
    if (walk.error != 0 && walk.error != ENOENT && walk.error != ESRCH) {
      CannotLookAt(task);
    }
    held_.settled = held_.settled && walk.complete;
    return walk.any;
  }

  const std::string& proc_;
  uint64_t memfd_device_;
  const std::function<bool()>& out_of_time_;
  Locks locks_;
  HeldFiles& held_;
  pid_t pid_ = 0;
  std::string dir_;
  UniqueFd pidfd_;
  std::vector<Descriptor> instances_;  // of inotify with unread events, in the order of kcmp
};

}  // namespace

uint64_t HeldFiles::BytesOn(uint64_t device) const {
  uint64_t sum = 0;
  for (const auto& [file, bytes] : files) {
    sum += file.device == device ? bytes : 0;
  }
  return sum;
}

uint64_t HeldFiles::BytesElsewhere(std::span<const uint64_t> devices) const {
  uint64_t sum = 0;
  for (const auto& [file, bytes] : files) {
    sum += std::find(devices.begin(), devices.end(), file.device) == devices.end() ? bytes : 0;
  }
  return sum;
}

uint64_t HeldFiles::QueuedBytes() const {
  uint64_t sum = unread_events;
  for (const auto& [inode, bytes] : queues) {
    sum += bytes;
  }
  return sum;
}

HeldFiles FindHeldFiles(const std::function<std::vector<pid_t>()>& list, const std::string& proc,
                        const std::function<bool()>& out_of_time, Locks locks) {
  HeldFiles held;
  const uint64_t memfd_device = MemfdDevice();
  std::vector<pid_t> before = list();
  for (int attempt = 0; attempt < kWalks; ++attempt) {
    HeldFiles found;
    Walk walk(proc, memfd_device, out_of_time, locks, found);
    for (const pid_t pid : before) {
      walk.LookAt(pid);
    }
    std::vector<pid_t> after = list();
    std::sort(before.begin(), before.end());
    std::sort(after.begin(), after.end());
    found.settled = found.settled && before == after;
    before = std::move(after);
    // A file seen in any of the walks counts: the peak matters.
    found.files.merge(held.files);
    found.mapped.merge(held.mapped);
    found.shared.merge(held.shared);
    held = std::move(found);
    if ((held.settled && held.unmeasured_flights == 0) || !held.unreadable.empty() ||
        out_of_time()) {
      break;
    }
  }
  held.all_locks = held.all_locks && !out_of_time();
  // A size that was read for one holder is the size for all.
  const auto measured = [&](const auto& entry) { return held.files.contains(entry.first); };
  std::erase_if(held.mapped, measured);
  std::erase_if(held.shared, measured);
  return held;
}

uint64_t MemfdDevice() {
  const UniqueFd fd(static_cast<int>(Syscall(SYS_memfd_create, Arg("coffer-probe"), MFD_CLOEXEC)));
  struct stat info{};
  const long answer = fd ? Syscall(SYS_fstat, fd.get(), Arg(&info)) : -1;
  return answer == 0 ? info.st_dev : 0;
}

}  // namespace coffer::limits
