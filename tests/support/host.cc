// SPDX-License-Identifier: Apache-2.0
#include "tests/support/host.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "isolation/landlock.h"

namespace coffer::test {
namespace {

namespace fs = std::filesystem;

std::string StatText(const std::string& path) {
  struct stat info = {};
  if (lstat(path.c_str(), &info) != 0) {
    return "absent";
  }
  std::ostringstream text;
  text << std::oct << info.st_mode << std::dec << " " << info.st_uid << ":" << info.st_gid << " "
       << info.st_rdev;
  return text.str();
}

bool AllDigits(const std::string& text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::vector<pid_t> AllPids() {
  std::vector<pid_t> pids;
  DIR* proc = opendir("/proc");
  while (const dirent* entry = proc != nullptr ? readdir(proc) : nullptr) {
    if (AllDigits(entry->d_name)) {
      pids.push_back(static_cast<pid_t>(strtol(entry->d_name, nullptr, 10)));
    }
  }
  if (proc != nullptr) {
    closedir(proc);
  }
  return pids;
}

}  // namespace

HostSnapshot HostSnapshot::Take() {
  HostSnapshot snapshot;
  auto& facts = snapshot.facts_;
  for (const char* device :
       {"null", "zero", "full", "tty", "urandom", "random", "ptmx", "pts", "shm"}) {
    facts["stat /dev/" + std::string(device)] = StatText("/dev/" + std::string(device));
  }
  for (const char* place : {"/etc/passwd", "/etc/group", "/etc/shadow", "/etc/hosts", "/tmp",
                            "/proc", "/usr", "/etc"}) {
    facts["stat " + std::string(place)] = StatText(place);
  }
  for (const char* setting : {"kernel/core_pattern",
                              "kernel/hostname",
                              "kernel/domainname",
                              "kernel/modprobe",
                              "kernel/hotplug",
                              "kernel/randomize_va_space",
                              "kernel/yama/ptrace_scope",
                              "kernel/unprivileged_bpf_disabled",
                              "kernel/panic",
                              "kernel/sysrq",
                              "kernel/pid_max",
                              "kernel/shmmax",
                              "vm/overcommit_memory",
                              "vm/swappiness",
                              "vm/drop_caches",
                              "fs/suid_dumpable",
                              "fs/file-max",
                              "user/max_user_namespaces",
                              "net/ipv4/ip_forward",
                              "net/ipv4/conf/all/route_localnet"}) {
    facts["sysctl " + std::string(setting)] =
        ReadFile("/proc/sys/" + std::string(setting)).value_or("unreadable");
  }
  facts["coffer's bytes"] = ReadFile(CofferPath()).value_or("unreadable");
  facts["/etc/passwd"] = ReadFile("/etc/passwd").value_or("unreadable");
  return snapshot;
}

Strings HostSnapshot::DifferencesFrom(const HostSnapshot& before) const {
  Strings differences;
  for (const auto& [name, value] : facts_) {
    const std::string& old = before.facts_.at(name);
    if (old != value) {
      differences.push_back(name + (value.size() < 500 ? ": was " + old + ", is " + value : ""));
    }
  }
  return differences;
}

void HostWatchTest::SetUp() { before_ = HostSnapshot::Take(); }

void HostWatchTest::TearDown() {
  for (const std::string& difference : HostSnapshot::Take().DifferencesFrom(before_)) {
    ADD_FAILURE() << "FS-36: the run changed the host: " << difference;
  }
}

Strings LevelTest::Flags(const Strings& more) const {
  Strings flags = {"--level", level()};
  flags.insert(flags.end(), more.begin(), more.end());
  return flags;
}

bool LevelTest::SignalsStayInside() const {
  return container() || IsRoot() || isolation::LandlockAbi() >= 6;
}

bool LevelTest::MountsAreRefused(const Strings& flags) const {
  if (container() || !IsRoot()) {
    return false;
  }
  const RunResult result = RunProbe(flags, {"args", "it-ran"});
  if (result.ErrorClass() != "policy.mount.level") {
    return false;
  }
  EXPECT_EQ(result.exit, 120) << result.Describe();
  EXPECT_TRUE(Contains(result.err, "--level container")) << result.Describe();
  EXPECT_FALSE(Contains(result.out, "it-ran")) << result.Describe();
  return true;
}

std::string LevelTestName(const ::testing::TestParamInfo<const char*>& info) { return info.param; }

std::vector<pid_t> FindProcesses(const std::string& token, Supervisors supervisors) {
  std::vector<pid_t> found;
  const std::string coffer = fs::path(CofferPath()).filename();
  for (const pid_t pid : AllPids()) {
    if (pid == getpid()) {
      continue;
    }
    const auto arguments = ReadFile("/proc/" + std::to_string(pid) + "/cmdline");
    if (!arguments || !Contains(*arguments, token)) {
      continue;
    }
    const std::string first = arguments->c_str();
    if (supervisors == Supervisors::kCount || fs::path(first).filename() != coffer) {
      found.push_back(pid);
    }
  }
  return found;
}

ProgramCopy::ProgramCopy(const std::string& program)
    : path_(dir_ / fs::path(program).filename().string()) {
  fs::copy_file(program, path_);
  chmod(path_.c_str(), 0755);
}

bool ProgramCopy::IsRunning() const {
  const int fd = open(path_.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd >= 0) {
    close(fd);
    return false;
  }
  EXPECT_EQ(errno, ETXTBSY) << path_;
  return true;
}

std::vector<pid_t> ProgramCopy::Processes() const {
  std::vector<pid_t> found;
  for (const pid_t pid : AllPids()) {
    char target[4096] = {};
    if (readlink(("/proc/" + std::to_string(pid) + "/exe").c_str(), target, sizeof target - 1) >
            0 &&
        path_ == target) {
      found.push_back(pid);
    }
  }
  return found;
}

Strings CgroupDirs(pid_t pid) {
  Strings dirs;
  for (const std::string& line :
       Lines(ReadFile("/proc/" + std::to_string(pid) + "/cgroup").value_or(""))) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) {
      continue;
    }
    std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    if (controllers.rfind("name=", 0) == 0) {
      controllers = controllers.substr(5);
    }
    for (const std::string& base :
         {"/sys/fs/cgroup/" + controllers, std::string("/sys/fs/cgroup/unified"),
          std::string("/sys/fs/cgroup")}) {
      if (controllers.empty() != (base.size() == 14 || base.ends_with("/unified")) || path == "/") {
        continue;
      }
      if (Exists(base + path)) {
        dirs.push_back(base + path);
        break;
      }
    }
  }
  return dirs;
}

ProcessView LookAt(pid_t pid) {
  ProcessView view;
  view.pid = pid;
  const std::string base = "/proc/" + std::to_string(pid);
  for (const std::string& line : Lines(ReadFile(base + "/status").value_or(""))) {
    const size_t colon = line.find(':');
    if (colon != std::string::npos) {
      const size_t value = line.find_first_not_of(" \t", colon + 1);
      view.status[line.substr(0, colon)] = value == std::string::npos ? "" : line.substr(value);
    }
  }
  for (const char* name : {"user", "mnt", "pid", "net", "ipc", "uts", "cgroup", "time"}) {
    char target[128] = {};
    if (readlink((base + "/ns/" + name).c_str(), target, sizeof target - 1) > 0) {
      view.namespaces[name] = target;
    }
  }
  view.cgroups = CgroupDirs(pid);
  view.parent = static_cast<pid_t>(strtol(view.status["PPid"].c_str(), nullptr, 10));
  return view;
}

LiveBoundary::LiveBoundary(const Strings& flags, const std::string& verb, const RunOptions& options)
    : process_(
          [&] {
            Strings argv = {CofferPath(), "run", "--receipt", dir_ / "receipt.json"};
            argv.insert(argv.end(), flags.begin(), flags.end());
            for (const std::string& word : {std::string("--"), ProbePath(), verb, token_}) {
              argv.push_back(word);
            }
            return argv;
          }(),
          options) {
  if (!process_.WaitForOutput("ready")) {
    return;
  }
  WaitUntil([&] { return !FindProcesses(token_).empty(); });
  const auto found = FindProcesses(token_);
  if (!found.empty()) {
    payload_ = found.front();
    init_ = LookAt(payload_).parent;
  }
}

Json LiveBoundary::Receipt() const {
  const auto text = ReadFile(dir_ / "receipt.json");
  return text ? Json::parse(*text, nullptr, false) : Json();
}

std::string LiveBoundary::Why() {
  return "the boundary did not start: stdout " + process_.out() + " stderr " + process_.err();
}

std::vector<std::string> CofferTraces() {
  std::vector<std::string> traces;
  const auto look = [&](const std::string& place, int depth, const auto& self) -> void {
    std::error_code error;
    for (const auto& entry :
         fs::directory_iterator(place, fs::directory_options::skip_permission_denied, error)) {
      const std::string name = entry.path().filename();
      const std::string path = entry.path();
      if (Contains(path.substr(place.find('/')), "coffer") && !Contains(path, "/build")) {
        traces.push_back(path);
      }
      if (depth > 0 && entry.is_directory(error) && !entry.is_symlink(error)) {
        self(path, depth - 1, self);
      }
    }
  };
  for (const char* place : {"/tmp", "/var/tmp", "/dev/shm", "/run", "/var/run", "/dev/mqueue"}) {
    look(place, Contains(place, "/run") ? 2 : 0, look);
  }
  look("/sys/fs/cgroup", 4, look);
  std::sort(traces.begin(), traces.end());
  return traces;
}

namespace {

// True for the scratch directory of a supervisor that still runs, and for the cgroup of such a supervisor or daemon: that
// of another test, since ours have ended.
bool IsInUse(const std::string& trace) {
  for (const std::string name : {"/coffer-scratch-", "/coffer-"}) {
    const size_t at = trace.rfind(name);
    const int pid = at == std::string::npos ? 0 : ::atoi(trace.c_str() + at + name.size());
    if (pid > 0 && Exists("/proc/" + std::to_string(pid))) {
      return true;
    }
  }
  return false;
}

}  // namespace

std::vector<std::string> StayingTraces(const std::vector<std::string>& before, Seconds limit) {
  std::vector<std::string> fresh;
  for (const std::string& trace : CofferTraces()) {
    if (!std::binary_search(before.begin(), before.end(), trace) && !IsInUse(trace)) {
      fresh.push_back(trace);
    }
  }
  // Others may run boundaries at the same time; theirs go away by themselves.
  WaitUntil(
      [&] {
        std::erase_if(fresh, [](const std::string& trace) { return !Exists(trace); });
        return fresh.empty();
      },
      limit);
  return fresh;
}

}  // namespace coffer::test
