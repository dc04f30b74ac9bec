// SPDX-License-Identifier: Apache-2.0
//
// The host's side of the story: what a boundary must leave as it was, and how a live one looks from outside.
#pragma once

#include <gtest/gtest.h>
#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "tests/support/run.h"

namespace coffer::test {

// Things of the machine that no run may move: device nodes, system settings, the host's name, coffer's own bytes,
// /etc/passwd. Two snapshots are compared field by field.
class HostSnapshot {
 public:
  static HostSnapshot Take();
  // The names of what differs from `before`, with both values.
  Strings DifferencesFrom(const HostSnapshot& before) const;

 private:
  std::map<std::string, std::string> facts_;
};

// A test whose every run is judged by the host as well (FS-36).
class HostWatchTest : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

 private:
  HostSnapshot before_;
};

// The same, for each isolation level.
class LevelTest : public HostWatchTest, public ::testing::WithParamInterface<const char*> {
 protected:
  std::string level() const { return GetParam(); }
  bool container() const { return level() == "container"; }
  // Without a pid namespace and with one uid for everything, only Landlock's ABI 6 (Linux 6.12) keeps signals inside.
  bool SignalsStayInside() const;
  // The process level cannot id-map, so as root it may take no mounts: then it must say so, and run nothing. True if it
  // did; false if the mounts are there, and are to be attacked like any other.
  bool MountsAreRefused(const Strings& flags) const;
  // {"--level", LEVEL} and more.
  Strings Flags(const Strings& more = {}) const;
};

std::string LevelTestName(const ::testing::TestParamInfo<const char*>& info);

// Processes whose arguments hold `token`, without the test; coffer's own only if asked for.
enum class Supervisors { kLeaveOut, kCount };
std::vector<pid_t> FindProcesses(const std::string& token,
                                 Supervisors supervisors = Supervisors::kLeaveOut);

// A copy of a program under a name of its own, so that the kernel can be asked whether anybody still runs it. A process
// can hide its arguments, and another user's cannot be looked at, but its file cannot be written while it runs (ETXTBSY).
class ProgramCopy {
 public:
  explicit ProgramCopy(const std::string& program);
  const std::string& path() const { return path_; }
  bool IsRunning() const;
  // Those that can be seen (all of them, as root).
  std::vector<pid_t> Processes() const;

 private:
  TempDir dir_;
  std::string path_;
};

struct ProcessView {
  pid_t pid = 0;
  std::map<std::string, std::string> status;  // /proc/PID/status
  std::map<std::string, std::string> namespaces;
  Strings cgroups;  // directories that exist on this host
  pid_t parent = 0;
};
ProcessView LookAt(pid_t pid);

// The cgroup directories (all hierarchies) of a process, as paths under /sys/fs/cgroup.
Strings CgroupDirs(pid_t pid);

// A boundary that runs `probe wait TOKEN` (or another verb) until it is destroyed.
class LiveBoundary {
 public:
  explicit LiveBoundary(const Strings& flags, const std::string& verb = "wait",
                        const RunOptions& options = {});
  bool ok() const { return payload_ > 0; }
  pid_t payload() const { return payload_; }
  pid_t init() const { return init_; }  // the payload's parent, as the host sees it
  pid_t supervisor() const { return process_.pid(); }
  const std::string& token() const { return token_; }
  Background& process() { return process_; }
  Json Receipt() const;
  std::string Why();

 private:
  std::string token_ = NewToken();
  TempDir dir_;
  Background process_;
  pid_t payload_ = 0;
  pid_t init_ = 0;
};

// Paths with "coffer" in their names in the places where a run might leave something.
std::vector<std::string> CofferTraces();
// Those in `after` that were not in `before` and are still there when nothing has changed for `limit`.
std::vector<std::string> StayingTraces(const std::vector<std::string>& before,
                                       Seconds limit = Seconds(40));

}  // namespace coffer::test
