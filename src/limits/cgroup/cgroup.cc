// SPDX-License-Identifier: Apache-2.0
#include "limits/cgroup/cgroup.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/syscall.h>

#include <algorithm>
#include <utility>

#include "base/sys.h"
#include "limits/cgroup/control_file.h"
#include "limits/cgroup/kill.h"
#include "limits/cgroup/mounts.h"
#include "limits/cgroup/name.h"
#include "limits/cgroup/v1.h"
#include "limits/cgroup/v2.h"

namespace coffer::limits {

using policy::Layer;
using raw::Arg;
using raw::Syscall;

namespace {

// The first is made first and removed last, which is what the sweep relies on.
constexpr Controller kOrder[] = {Controller::kMemory, Controller::kPids, Controller::kCpuacct,
                                 Controller::kIo, Controller::kFreezer};

bool Wanted(Controller controller, const CgroupWants& wants) {
  return controller == Controller::kIo ? wants.io
                                       : controller != Controller::kFreezer || wants.freezer;
}

Layer LayerOf(Controller controller) {
  switch (controller) {
    case Controller::kMemory:
      return Layer::kCgroupMemory;
    case Controller::kPids:
      return Layer::kCgroupPids;
    case Controller::kIo:
      return Layer::kCgroupIo;
    default:
      return Layer::kCgroupCpu;
  }
}

Error MakeError(const std::string& path, long negative_errno) {
  Error error =
      sys::ErrnoError("limits.cgroup.create", "cannot create the cgroup " + path, negative_errno);
  if (negative_errno == -EAGAIN) {
    error.hint = "the cgroup above has reached cgroup.max.descendants or cgroup.max.depth";
  }
  return error;
}

}  // namespace

Cgroup::Cgroup(Cgroup&& other) noexcept { *this = std::move(other); }

Cgroup& Cgroup::operator=(Cgroup&& other) noexcept {
  if (this == &other) {
    return *this;
  }
  Destroy();
  level_ = std::move(other.level_);  // the inner one is left first
  calls_level_ = std::move(other.calls_level_);
  name_ = std::move(other.name_);
  layers_ = std::exchange(other.layers_, {});
  memory_cap_ = other.memory_cap_;
  pids_cap_ = other.pids_cap_;
  v1_ = std::move(other.v1_);
  tasks_ = std::exchange(other.tasks_, {-1, -1, -1, -1, -1, -1});
  v1_count_ = std::exchange(other.v1_count_, 0);
  tasks_count_ = std::exchange(other.tasks_count_, 0);
  v2_path_ = std::exchange(other.v2_path_, {});
  v2_controllers_ = std::exchange(other.v2_controllers_, 0);
  v2_ = std::move(other.v2_);
  oom_event_ = std::move(other.oom_event_);
  oom_source_ = std::move(other.oom_source_);
  return *this;
}

Cgroup::~Cgroup() { Destroy(); }

void Cgroup::Destroy() {
  if (v1_count_ > 0 || !v2_path_.empty()) {
    (void)Kill();
    (void)Remove();
  }
  CloseTasks();
}

void Cgroup::CloseTasks() {
  for (size_t i = 0; i < tasks_count_; ++i) {
    const UniqueFd closed(std::exchange(tasks_[i], -1));
  }
  tasks_count_ = 0;
}

const Cgroup::V1Dir* Cgroup::FindV1(Controller controller) const {
  for (size_t i = 0; i < v1_count_; ++i) {
    if ((v1_[i].controllers & Bit(controller)) != 0) {
      return &v1_[i];
    }
  }
  return nullptr;
}

Status Cgroup::AddV1(const CgroupHost& host, Controller controller) {
  const std::string& parent = host.at(controller).dir;
  for (size_t i = 0; i < v1_count_; ++i) {
    if (v1_[i].path.size() == parent.size() + 1 + name_.size() && v1_[i].path.starts_with(parent)) {
      v1_[i].controllers |= Bit(controller);  // mounted together, such as cpu,cpuacct
      return {};
    }
  }
  V1Dir& dir = v1_[v1_count_];
  dir.path.reserve(parent.size() + name_.size() + 8);
  dir.path.append(parent).append("/").append(name_);
  const long made = Syscall(SYS_mkdirat, AT_FDCWD, Arg(dir.path.c_str()), 0755);
  if (made < 0) {
    return MakeError(dir.path, made);
  }
  dir.controllers = Bit(controller);
  ++v1_count_;
  return OpenTasks(dir.path);
}

Status Cgroup::OpenTasks(std::string dir) {
  dir += "/tasks";
  const long tasks = Syscall(SYS_openat, AT_FDCWD, Arg(dir.c_str()), O_WRONLY | O_CLOEXEC);
  if (tasks < 0) {
    return MakeError(dir, tasks);
  }
  tasks_[tasks_count_++] = static_cast<int>(tasks);
  return {};
}

bool Cgroup::LiesInLevel() const {
  if (level_.path().empty()) {
    return false;
  }
  const std::string below = level_.path() + "/";
  return v2_path_.starts_with(below) ||
         std::any_of(v1_.begin(), v1_.begin() + v1_count_,
                     [&](const V1Dir& dir) { return dir.path.starts_with(below); });
}

Status Cgroup::CreateV1(const CgroupHost& host, const CgroupWants& wants) {
  for (const Controller controller : kOrder) {
    const ControllerPlace& place = host.at(controller);
    if (place.version != CgroupVersion::kV1 || !place.usable || !Wanted(controller, wants)) {
      continue;
    }
    TRY(AddV1(host, controller));
    if (controller == Controller::kMemory) {
      const std::string& dir = FindV1(Controller::kMemory)->path;
      TRY(WriteMemoryCapsV1(dir, memory_cap_));
      if (wants.sockets) {
        TRY(WriteSocketCapV1(dir, memory_cap_ / 4));
      }
    } else if (controller == Controller::kPids) {
      TRY(WritePidsCapV1(FindV1(Controller::kPids)->path, pids_cap_));
    }
    if (controller != Controller::kFreezer) {
      layers_.Add(LayerOf(controller));
    }
  }
  return {};
}

Status Cgroup::CreateV2(const CgroupHost& host, const CgroupWants& wants) {
  if (host.v2_dir.empty()) {
    return {};
  }
  TRY(PrepareV2Parent(host, wants.io));
  std::string path = host.v2_dir + "/" + name_;
  const long made = Syscall(SYS_mkdirat, AT_FDCWD, Arg(path.c_str()), 0755);
  if (made < 0) {
    return MakeError(path, made);
  }
  v2_path_ = std::move(path);
  TRY_ASSIGN(v2_, sys::Open(v2_path_, O_RDONLY | O_DIRECTORY));
  for (const Controller controller : kOrder) {
    const ControllerPlace& place = host.at(controller);
    if (place.version != CgroupVersion::kV2 || !place.usable || !Wanted(controller, wants)) {
      continue;
    }
    if (controller == Controller::kMemory) {
      TRY(WriteMemoryCapsV2(v2_.get(), memory_cap_));
    } else if (controller == Controller::kPids) {
      TRY(WritePidsCapV2(v2_.get(), pids_cap_));
    }
    v2_controllers_ |= Bit(controller);
    if (controller != Controller::kFreezer) {
      layers_.Add(LayerOf(controller));
    }
  }
  return {};
}

Result<Cgroup> Cgroup::Create(const CgroupHost& host, const policy::Limits& caps,
                              const CgroupWants& wants) {
  Cgroup cgroup;
  cgroup.memory_cap_ = caps.memory;
  cgroup.pids_cap_ = caps.processes + 1;  // init is not the call's
  TRY_ASSIGN(cgroup.name_, NewCgroupName(host.pid_namespace));
  if (wants.level.empty()) {
    TRY(cgroup.CreateV1(host, wants));
    TRY(cgroup.CreateV2(host, wants));
    return cgroup;
  }
  if (!wants.calls_level.empty()) {
    TRY_ASSIGN(cgroup.calls_level_, TenantLevel::Enter(host, wants.calls_level, wants.io));
    cgroup.calls_level_.WeighAsProcessors(host);
  }
  const CgroupHost around = cgroup.calls_level_.Below(host);
  TRY_ASSIGN(cgroup.level_, TenantLevel::Enter(around, wants.level, wants.io));
  const CgroupHost below = cgroup.level_.Below(around);
  TRY(cgroup.CreateV1(below, wants));
  TRY(cgroup.CreateV2(below, wants));
  if (!cgroup.level_.path().empty() && !cgroup.LiesInLevel()) {
    TRY(cgroup.OpenTasks(cgroup.level_.path()));  // v1, `cpu` by itself: init joins the level
  }
  return cgroup;
}

Result<Nanos> Cgroup::ReadCpu() const {
  if (const V1Dir* dir = FindV1(Controller::kCpuacct)) {
    return ReadCpuV1(dir->path);
  }
  if (v2_) {
    return ReadCpuV2(v2_.get());
  }
  return Nanos(0);
}

void Cgroup::ReadPids(Usage& usage) const {
  if (const V1Dir* pids = FindV1(Controller::kPids)) {
    ReadPidsV1(pids->path, pids_cap_, usage);
  } else if ((v2_controllers_ & Bit(Controller::kPids)) != 0) {
    ReadPidsV2(v2_.get(), pids_cap_, usage);
  }
}

Result<Usage> Cgroup::ReadUsage(Detail detail) const {
  Usage usage;
  TRY_ASSIGN(usage.cpu, ReadCpu());
  const V1Dir* memory = FindV1(Controller::kMemory);
  const V1Dir* pids = FindV1(Controller::kPids);
  if (memory != nullptr) {
    ReadMemoryV1(memory->path, memory_cap_, usage);
  } else if ((v2_controllers_ & Bit(Controller::kMemory)) != 0) {
    ReadMemoryV2(v2_.get(), memory_cap_, usage);
  }
  ReadPids(usage);
  if (const V1Dir* io = FindV1(Controller::kIo)) {
    ReadIoV1(io->path, usage);
  } else if ((v2_controllers_ & Bit(Controller::kIo)) != 0) {
    ReadIoV2(v2_.get(), usage);
  }
  if (detail == Detail::kLive) {
    usage.memory =
        memory != nullptr
            ? ReadNumber(AT_FDCWD, (memory->path + "/memory.usage_in_bytes").c_str()).value_or(0)
            : ReadNumber(v2_.get(), "memory.current").value_or(0);
    usage.pids = pids != nullptr
                     ? ReadNumber(AT_FDCWD, (pids->path + "/pids.current").c_str()).value_or(0)
                     : ReadNumber(v2_.get(), "pids.current").value_or(0);
  }
  return usage;
}

uint64_t Cgroup::ReadHeldMemory() const {
  if (const V1Dir* memory = FindV1(Controller::kMemory)) {
    return ReadHeldMemoryV1(memory->path);
  }
  return (v2_controllers_ & Bit(Controller::kMemory)) != 0 ? ReadHeldMemoryV2(v2_.get()) : 0;
}

int Cgroup::oom_event_fd() {
  if (oom_event_) {
    return oom_event_.get();
  }
  if (const V1Dir* memory = FindV1(Controller::kMemory)) {
    UniqueFd event(static_cast<int>(Syscall(SYS_eventfd2, 0, EFD_CLOEXEC | EFD_NONBLOCK)));
    Result<UniqueFd> source = sys::Open(memory->path + "/memory.oom_control", O_RDONLY);
    if (!event || !source.ok()) {
      return -1;
    }
    // v1 signals an eventfd that is named in cgroup.event_control together with memory.oom_control
    // (the kernel's cgroup-v1/memory.rst, "OOM Control").
    const std::string line = std::to_string(event.get()) + " " + std::to_string(source->get());
    if (WriteControl(AT_FDCWD, (memory->path + "/cgroup.event_control").c_str(), line) < 0) {
      return -1;
    }
    oom_event_ = std::move(event);
    oom_source_ = std::move(*source);
  } else if ((v2_controllers_ & Bit(Controller::kMemory)) != 0) {
    // The kernel reports a modification of memory.events for every counter in it; OomHappened tells which.
    UniqueFd event(static_cast<int>(Syscall(SYS_inotify_init1, IN_CLOEXEC | IN_NONBLOCK)));
    const std::string path = v2_path_ + "/memory.events";
    if (!event || Syscall(SYS_inotify_add_watch, event.get(), Arg(path.c_str()), IN_MODIFY) < 0) {
      return -1;
    }
    oom_event_ = std::move(event);
  }
  return oom_event_.get();
}

bool Cgroup::OomHappened() {
  if (oom_event_) {
    std::array<char, 1024> buffer;
    // Only to make it unreadable again: the counters below say what happened.
    Syscall(SYS_read, oom_event_.get(), Arg(buffer.data()), buffer.size());
  }
  if (const V1Dir* memory = FindV1(Controller::kMemory)) {
    return ReadOomKillsV1(memory->path) > 0;
  }
  return (v2_controllers_ & Bit(Controller::kMemory)) != 0 && ReadOomKillsV2(v2_.get()) > 0;
}

Status Cgroup::Kill() {
  if (!v2_path_.empty()) {
    TRY(KillV2(v2_path_));
  }
  if (v1_count_ == 0) {
    return {};
  }
  const V1Dir* freezer = FindV1(Controller::kFreezer);
  const V1Dir* pids = FindV1(Controller::kPids);
  if (pids != nullptr) {
    // From here on no process inside can fork, so one pass over the list reaches every process.
    WriteControl(AT_FDCWD, (pids->path + "/pids.max").c_str(), "0");
  }
  if (freezer != nullptr) {
    // A frozen process takes no SIGKILL before it is thawed, so: freeze, signal all, thaw, and look again.
    const std::string state = freezer->path + "/freezer.state";
    WriteControl(AT_FDCWD, state.c_str(), "FROZEN");
    Status signalled = SignalOnce(freezer->path);
    WriteControl(AT_FDCWD, state.c_str(), "THAWED");
    TRY(std::move(signalled));
  }
  return KillByPid(v1_[0].path);
}

Status Cgroup::Remove() {
  CloseTasks();
  oom_event_.Reset();
  oom_source_.Reset();
  if (!v2_path_.empty()) {
    TRY(RemoveCgroupDir(v2_path_));
    v2_path_.clear();
    v2_.Reset();
    v2_controllers_ = 0;
  }
  while (v1_count_ > 0) {
    TRY(RemoveCgroupDir(v1_[v1_count_ - 1].path));
    --v1_count_;
  }
  level_.Leave();
  calls_level_.LeaveAtOnce();
  return {};
}

}  // namespace coffer::limits
