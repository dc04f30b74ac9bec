// SPDX-License-Identifier: Apache-2.0
//
// Runs a command in a root that holds exactly one runtime set, /proc, /dev/null and an empty /tmp: if something is
// missing from the set, the command fails. For tests of completeness; it confines nothing.
#pragma once

#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "isolation/runtime/runtime_set.h"
#include "tests/support/temp_dir.h"

namespace coffer::isolation {

struct InsideResult {
  bool supported = false;  // namespaces and mounts are allowed here
  int status = -1;         // exit code, 128 + signal
  std::string output;      // stdout and stderr
};

namespace inside {

inline constexpr int kUnsupported = 250;
inline constexpr int kBroken = 251;

inline void Touch(const std::string& path) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path).put('\n');
}

inline bool Bind(const std::string& from, const std::string& to) {
  return ::mount(from.c_str(), to.c_str(), nullptr, MS_BIND, nullptr) == 0;
}

inline bool Enter() {
  const uid_t uid = ::geteuid();
  const gid_t gid = ::getegid();
  if (uid == 0) {
    return ::unshare(CLONE_NEWNS) == 0;
  }
  if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) {
    return false;
  }
  std::ofstream("/proc/self/setgroups") << "deny";
  std::ofstream("/proc/self/uid_map") << "0 " << uid << " 1";
  std::ofstream("/proc/self/gid_map") << "0 " << gid << " 1";
  return ::getuid() == 0;
}

[[noreturn]] inline void Child(const RuntimeSet& set, const std::string& root,
                               const std::string& program, const std::vector<std::string>& argv) {
  if (!Enter() || ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      ::mount("tmpfs", root.c_str(), "tmpfs", 0, nullptr) != 0) {
    ::_exit(kUnsupported);
  }
  for (const RuntimeFile& file : set.files) {
    const std::string at = root + file.inside;
    if (file.directory) {
      std::filesystem::create_directories(at);
    } else {
      Touch(at);
    }
    if (!Bind(file.host, at)) {
      ::_exit(kBroken);
    }
  }
  for (const auto& [name, target] : set.links) {
    std::filesystem::create_directories(std::filesystem::path(root + name).parent_path());
    if (::symlink(target.c_str(), (root + name).c_str()) != 0) {
      ::_exit(kBroken);
    }
  }
  std::filesystem::create_directories(root + "/tmp");
  std::filesystem::create_directories(root + "/proc");
  Touch(root + "/dev/null");
  std::filesystem::create_symlink("/proc/self/fd", root + "/dev/fd");
  if (!Bind("/dev/null", root + "/dev/null") ||
      ::mount("/proc", (root + "/proc").c_str(), nullptr, MS_BIND | MS_REC, nullptr) != 0 ||
      ::chroot(root.c_str()) != 0 || ::chdir("/tmp") != 0) {
    ::_exit(kBroken);
  }
  std::vector<char*> arguments;
  for (const std::string& argument : argv) {
    arguments.push_back(const_cast<char*>(argument.c_str()));
  }
  arguments.push_back(nullptr);
  std::string path = "PATH=/usr/local/bin:/usr/bin:/bin";
  std::string home = "HOME=/tmp";
  char* environment[] = {path.data(), home.data(), nullptr};
  ::execve(program.c_str(), arguments.data(), environment);
  ::_exit(127);
}

}  // namespace inside

inline InsideResult RunInside(const RuntimeSet& set, const std::string& program,
                              const std::vector<std::string>& argv) {
  InsideResult result;
  const test::TempDir root;
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    return result;
  }
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(ends[1], 1);
    ::dup2(ends[1], 2);
    inside::Child(set, root.path(), program, argv);
  }
  ::close(ends[1]);
  char buffer[4096];
  for (ssize_t got = 0; (got = ::read(ends[0], buffer, sizeof(buffer))) > 0;) {
    result.output.append(buffer, static_cast<size_t>(got));
  }
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  result.supported = result.status != inside::kUnsupported;
  return result;
}

}  // namespace coffer::isolation
