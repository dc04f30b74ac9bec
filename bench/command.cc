// SPDX-License-Identifier: Apache-2.0
#include "command.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/unique_fd.h"

namespace coffer::bench {
namespace {

// Only what a tool may need to find itself; the same for all.
std::vector<std::string> MakeEnvironment() {
  std::vector<std::string> env = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C"};
  for (const char* name : {"HOME", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS"}) {
    if (const char* value = std::getenv(name); value != nullptr) {
      env.push_back(fmt::format("{}={}", name, value));
    }
  }
  return env;
}

std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (const std::string& text : strings) {
    pointers.push_back(const_cast<char*>(text.c_str()));
  }
  pointers.push_back(nullptr);
  return pointers;
}

// Made once per process: a worker that was forked makes its own, so that error texts do not mix.
struct Streams {
  pid_t owner = 0;
  UniqueFd null;
  UniqueFd
      errors;  // a memory file: writing to it never blocks and costs the same as /dev/null if nothing is written
  UniqueFd home_view;  // our own mount namespace
  UniqueFd home_dir;   // and working directory, which entering another one loses
  std::vector<std::string> env_strings;
  std::vector<char*> env;
};

Streams& GetStreams() {
  static Streams streams;
  if (streams.owner != ::getpid()) {
    streams.owner = ::getpid();
    streams.null.Reset(::open("/dev/null", O_RDWR | O_CLOEXEC));
    streams.errors.Reset(::memfd_create("errors", MFD_CLOEXEC));
    streams.home_view.Reset(::open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC));
    streams.home_dir.Reset(::open(".", O_PATH | O_DIRECTORY | O_CLOEXEC));
    ::fcntl(streams.errors.get(), F_SETFL, O_APPEND);
    streams.env_strings = MakeEnvironment();
    streams.env = Pointers(streams.env_strings);
  }
  return streams;
}

// A mount namespace is a property of this process while it starts a child: enter, start, come back.
class ViewGuard {
 public:
  explicit ViewGuard(int view) : view_(view) {
    if (view_ >= 0 && ::setns(view_, CLONE_NEWNS) != 0) {
      Fail(fmt::format("cannot enter a mount namespace: {}", std::strerror(errno)));
    }
  }
  ~ViewGuard() {
    if (view_ >= 0 && (::setns(GetStreams().home_view.get(), CLONE_NEWNS) != 0 ||
                       ::fchdir(GetStreams().home_dir.get()) != 0)) {
      Fail(fmt::format("cannot come back from a mount namespace: {}", std::strerror(errno)));
    }
  }
  ViewGuard(const ViewGuard&) = delete;
  ViewGuard& operator=(const ViewGuard&) = delete;

 private:
  int view_;
};

class FileActions {
 public:
  FileActions(int in, int out, int err) {
    ::posix_spawn_file_actions_init(&actions_);
    ::posix_spawn_file_actions_adddup2(&actions_, in, 0);
    ::posix_spawn_file_actions_adddup2(&actions_, out, 1);
    ::posix_spawn_file_actions_adddup2(&actions_, err, 2);
  }
  ~FileActions() { ::posix_spawn_file_actions_destroy(&actions_); }
  FileActions(const FileActions&) = delete;
  FileActions& operator=(const FileActions&) = delete;
  const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_{};
};

pid_t Spawn(const FileActions& actions, char* const* argv) {
  pid_t pid = 0;
  const int error =
      ::posix_spawn(&pid, argv[0], actions.get(), nullptr, argv, GetStreams().env.data());
  if (error != 0) {
    Fail(fmt::format("cannot start {}: {}", argv[0], std::strerror(error)));
  }
  return pid;
}

std::string TakeErrors() {
  const int fd = GetStreams().errors.get();
  struct stat info{};
  ::fstat(fd, &info);
  std::string text(static_cast<size_t>(info.st_size), '\0');
  const ssize_t got = ::pread(fd, text.data(), text.size(), 0);
  text.resize(got < 0 ? 0 : static_cast<size_t>(got));
  if (::ftruncate(fd, 0) != 0) {
    Fail("cannot clear the error buffer");
  }
  return text;
}

int ExitCode(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int WaitFor(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) {
      Fail(fmt::format("waitpid: {}", std::strerror(errno)));
    }
  }
  return ExitCode(status);
}

}  // namespace

void Fail(const std::string& message) {
  fmt::print(stderr, "bench: {}\n", message);
  std::exit(1);
}

double NowMicros() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
}

void SleepMicros(double micros) {
  const auto nanos = static_cast<long long>(micros * 1e3);
  timespec left{static_cast<time_t>(nanos / 1'000'000'000),
                static_cast<long>(nanos % 1'000'000'000)};
  while (::clock_nanosleep(CLOCK_MONOTONIC, 0, &left, &left) == EINTR) {
  }
}

pid_t Start(const Command& command) {
  const Streams& streams = GetStreams();
  const FileActions actions(streams.null.get(), streams.null.get(), streams.errors.get());
  const std::vector<char*> argv = Pointers(command.argv);
  const ViewGuard view(command.mount_view);
  return Spawn(actions, argv.data());
}

double RunTimed(const Command& command) {
  const Streams& streams = GetStreams();
  const FileActions actions(streams.null.get(), streams.null.get(), streams.errors.get());
  const std::vector<char*> argv = Pointers(command.argv);
  const ViewGuard view(command.mount_view);
  const double begin = NowMicros();
  const pid_t pid = Spawn(actions, argv.data());
  const int code = WaitFor(pid);
  const double end = NowMicros();
  if (code != 0) {
    std::string line;
    for (const std::string& word : command.argv) {
      line += (line.empty() ? "" : " ") + word;
    }
    Fail(fmt::format("a measured call failed with exit code {}: {}\n{}", code, line, TakeErrors()));
  }
  return end - begin;
}

Captured RunCaptured(const Command& command) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    Fail("cannot make a pipe");
  }
  const UniqueFd read_end(ends[0]);
  UniqueFd write_end(ends[1]);
  const Streams& streams = GetStreams();
  TakeErrors();
  const FileActions actions(streams.null.get(), write_end.get(), streams.errors.get());
  const std::vector<char*> argv = Pointers(command.argv);
  Captured captured;
  pid_t pid = 0;
  {
    const ViewGuard view(command.mount_view);
    pid = Spawn(actions, argv.data());
  }
  write_end.Reset();
  char buffer[4096];
  ssize_t got = 0;
  while ((got = ::read(read_end.get(), buffer, sizeof buffer)) > 0) {
    captured.out.append(buffer, static_cast<size_t>(got));
  }
  captured.exit_code = WaitFor(pid);
  captured.err = TakeErrors();
  return captured;
}

std::string FindOnPath(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::string rest = path != nullptr ? path : "/usr/bin:/bin";
  rest += ":/usr/sbin:/sbin";
  while (!rest.empty()) {
    const size_t colon = rest.find(':');
    const std::string candidate = rest.substr(0, colon) + "/" + name;
    if (candidate[0] == '/' && ::access(candidate.c_str(), X_OK) == 0) {
      return candidate;
    }
    rest = colon == std::string::npos ? "" : rest.substr(colon + 1);
  }
  return "";
}

}  // namespace coffer::bench
