// SPDX-License-Identifier: Apache-2.0
#include "tests/support/run.h"

#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace coffer::test {
namespace {

std::string OwnDirectory() {
  char path[4096] = {};
  const ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
  return n > 0 ? std::filesystem::path(path).parent_path().string() : ".";
}

// The first of these that names something: a variable, then the places where a build puts it.
std::string FindProgram(const Strings& variables, const Strings& beside) {
  for (const std::string& variable : variables) {
    if (const char* value = getenv(variable.c_str()); value != nullptr && *value != '\0') {
      return std::filesystem::absolute(value);
    }
  }
  for (const std::string& name : beside) {
    if (const std::string path = OwnDirectory() + "/" + name; Exists(path)) {
      return std::filesystem::canonical(path);
    }
  }
  return OwnDirectory() + "/" + beside.front();
}

void WriteProcFile(const char* path, const std::string& text) {
  const int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0 || write(fd, text.data(), text.size()) < 0) {
    _exit(98);
  }
  close(fd);
}

}  // namespace

std::string CofferPath() { return FindProgram({"COFFER", "COFFER_BIN"}, {"../coffer", "coffer"}); }

std::string ProbePath() {
  if (const char* directory = getenv("COFFER_PROBES"); directory != nullptr && *directory != '\0') {
    return std::filesystem::absolute(directory) / "probe";
  }
  return FindProgram({"COFFER_PROBE"}, {"probes/probe", "probe"});
}

bool IsRoot() { return geteuid() == 0; }

std::string NewToken() {
  unsigned char bytes[32] = {};
  if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes) {
    abort();
  }
  std::string token;
  for (const unsigned char byte : bytes) {
    token += static_cast<char>('a' + byte % 26);
  }
  return token;
}

std::optional<std::string> ReadFile(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    return std::nullopt;
  }
  std::string bytes;
  char buffer[65536];
  ssize_t n = 0;
  while ((n = read(fd, buffer, sizeof buffer)) > 0) {
    bytes.append(buffer, static_cast<size_t>(n));
  }
  close(fd);
  if (n < 0) {
    return std::nullopt;
  }
  return bytes;
}

bool Exists(const std::string& path) {
  struct stat info = {};
  return lstat(path.c_str(), &info) == 0;
}

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

Strings Lines(const std::string& text) {
  Strings lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    lines.push_back(line);
  }
  return lines;
}

bool WaitUntil(const std::function<bool()>& condition, Seconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) {
      return false;
    }
    usleep(5000);
  }
  return true;
}

std::string RunResult::ErrorClass() const {
  if (!receipt.is_object() || !receipt.contains("error") || !receipt["error"].is_object()) {
    return "";
  }
  return receipt["error"].value("class", "");
}

std::string RunResult::Describe() const {
  const auto brief = [](const std::string& text) {
    return text.size() > 3000 ? text.substr(0, 1500) + "\n[...]\n" + text.substr(text.size() - 1000)
                              : text;
  };
  std::ostringstream text;
  text << "exit " << exit << " signal " << signal << (timed_out ? " TIMED OUT" : "") << " after "
       << took.count() << " s\nstdout: " << brief(out) << "\nstderr: " << brief(err);
  if (receipt.is_object()) {
    for (const char* field :
         {"outcome", "error", "exit", "isolation", "limits", "syscalls", "output"}) {
      if (receipt.contains(field)) {
        text << "\n"
             << field << ": "
             << brief(receipt[field].dump(-1, ' ', false, Json::error_handler_t::replace));
      }
    }
  } else {
    text << "\nno receipt";
  }
  return text.str();
}

Background::Background(const Strings& argv, const RunOptions& options)
    : begin_(std::chrono::steady_clock::now()) {
  int in[2], out[2], err[2];
  if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0) {
    ADD_FAILURE() << "pipe failed";
    abort();
  }
  std::vector<char*> arguments;
  for (const std::string& word : argv) {
    arguments.push_back(const_cast<char*>(word.c_str()));
  }
  arguments.push_back(nullptr);
  std::vector<char*> environment;
  if (options.environment) {
    for (const std::string& entry : *options.environment) {
      environment.push_back(const_cast<char*>(entry.c_str()));
    }
    environment.push_back(nullptr);
  }
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) {
      _exit(99);
    }
    dup2(in[0], 0);
    dup2(out[1], 1);
    dup2(err[1], 2);
    signal(SIGPIPE, SIG_DFL);
    if (!options.cwd.empty() && chdir(options.cwd.c_str()) != 0) {
      _exit(99);
    }
    if (options.in_child) {
      options.in_child();
    }
    if (options.environment) {
      execvpe(arguments[0], arguments.data(), environment.data());
    } else {
      execvp(arguments[0], arguments.data());
    }
    _exit(97);
  }
  close(in[0]);
  close(out[1]);
  close(err[1]);
  in_ = in[1];
  out_fd_ = out[0];
  err_fd_ = err[0];
  keep_input_open_ = options.input == std::string(kKeepOpen, 5);
  if (!keep_input_open_) {
    to_write_ = options.input;
  }
  fcntl(in_, F_SETFL, O_NONBLOCK);
  if (to_write_.empty() && !keep_input_open_) {
    CloseInput();
  }
}

Background::~Background() {
  if (pid_ > 0 && !status_) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  for (const int fd : {in_, out_fd_, err_fd_}) {
    if (fd >= 0) {
      close(fd);
    }
  }
}

void Background::CloseInput() {
  if (in_ >= 0) {
    close(in_);
    in_ = -1;
  }
}

void Background::Signal(int number) const {
  if (pid_ > 0 && !status_) {
    kill(pid_, number);
  }
}

bool Background::ended() {
  if (!status_) {
    int status = 0;
    if (waitpid(pid_, &status, WNOHANG) == pid_) {
      status_ = status;
    }
  }
  return status_.has_value();
}

void Background::Pump(int milliseconds) {
  signal(SIGPIPE, SIG_IGN);
  pollfd waits[3] = {{out_fd_, POLLIN, 0}, {err_fd_, POLLIN, 0}, {in_, POLLOUT, 0}};
  if (to_write_.empty()) {
    waits[2].fd = -1;
  }
  if (poll(waits, 3, milliseconds) <= 0) {
    return;
  }
  static char buffer[1 << 18];
  const auto take = [&](int& fd, std::string& text, short events) {
    if (fd < 0 || events == 0) {
      return;
    }
    const ssize_t n = read(fd, buffer, sizeof buffer);
    if (n > 0) {
      text.append(buffer, static_cast<size_t>(n));
    } else {
      close(fd);
      fd = -1;
    }
  };
  take(out_fd_, out_, waits[0].revents);
  take(err_fd_, err_, waits[1].revents);
  if (in_ >= 0 && waits[2].revents != 0) {
    const ssize_t n = write(in_, to_write_.data(), to_write_.size());
    if (n > 0) {
      to_write_.erase(0, static_cast<size_t>(n));
    } else {
      to_write_.clear();
    }
    if (to_write_.empty()) {
      CloseInput();
    }
  }
}

bool Background::WaitForOutput(const std::string& text, Seconds limit) {
  return WaitUntil(
             [&] {
               Pump(20);
               return Contains(out_, text) || (out_fd_ < 0 && ended());
             },
             limit) &&
         Contains(out_, text);
}

RunResult Background::Wait(Seconds limit) {
  RunResult result;
  // Ended means: the process is gone and both streams are at their end. A stream that outlives the process would
  // mean that something of the run is still there.
  const bool in_time = WaitUntil(
      [&] {
        Pump(20);
        return ended() && out_fd_ < 0 && err_fd_ < 0;
      },
      limit);
  result.timed_out = !in_time;
  if (!ended()) {
    kill(pid_, SIGKILL);
    int status = 0;
    waitpid(pid_, &status, 0);
    status_ = status;
  }
  result.exit = WIFEXITED(*status_) ? WEXITSTATUS(*status_) : -1;
  result.signal = WIFSIGNALED(*status_) ? WTERMSIG(*status_) : 0;
  result.out = out_;
  result.err = err_;
  result.took = std::chrono::steady_clock::now() - begin_;
  return result;
}

RunResult RunProgram(const Strings& argv, const RunOptions& options) {
  return Background(argv, options).Wait(options.timeout);
}

RunResult RunCoffer(const Strings& flags, const Strings& command, const RunOptions& options) {
  TempDir dir;
  const std::string file = options.receipt.empty() ? dir / "receipt.json" : options.receipt;
  Strings argv = {CofferPath(), "run", "--receipt", file};
  argv.insert(argv.end(), flags.begin(), flags.end());
  if (!command.empty()) {
    argv.push_back("--");
    argv.insert(argv.end(), command.begin(), command.end());
  }
  RunResult result = RunProgram(argv, options);
  if (const auto text = ReadFile(file)) {
    result.receipt = Json::parse(*text, nullptr, false);
    if (result.receipt.is_discarded()) {
      ADD_FAILURE() << "the receipt is not JSON: " << *text;
      result.receipt = nullptr;
    }
  }
  return result;
}

RunResult RunProbe(const Strings& flags, const Strings& verb, const RunOptions& options) {
  Strings command = {ProbePath()};
  command.insert(command.end(), verb.begin(), verb.end());
  return RunCoffer(flags, command, options);
}

RunResult RunOutside(const Strings& verb, const RunOptions& options) {
  Strings command = {ProbePath()};
  command.insert(command.end(), verb.begin(), verb.end());
  return RunProgram(command, options);
}

RunResult RunOutsideInNamespace(const Strings& verb, const RunOptions& options) {
  RunOptions inside = options;
  inside.in_child = [before = options.in_child] {
    const uid_t uid = geteuid();
    const gid_t gid = getegid();
    if (unshare(CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWNET | CLONE_NEWIPC |
                (uid == 0 ? 0 : CLONE_NEWUSER)) != 0) {
      _exit(96);
    }
    if (uid != 0) {
      WriteProcFile("/proc/self/setgroups", "deny");
      WriteProcFile("/proc/self/uid_map", "0 " + std::to_string(uid) + " 1");
      WriteProcFile("/proc/self/gid_map", "0 " + std::to_string(gid) + " 1");
    }
    if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
      _exit(95);
    }
    if (before) {
      before();
    }
  };
  return RunOutside(verb, inside);
}

}  // namespace coffer::test
