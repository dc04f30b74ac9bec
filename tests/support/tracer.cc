// SPDX-License-Identifier: Apache-2.0
#include "tests/support/tracer.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>

namespace coffer::test {
namespace {

constexpr long kOptions = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
                          PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;
constexpr int kOrphanDepth = 100;  // nobody knows whose it was
constexpr int kSyscallStop = SIGTRAP | 0x80;

// ptrace(2) as the kernel has it: the C library's enumeration of requests does not know all of them.
long Trace(int request, pid_t pid, long address = 0, long data = 0) {
  return ::ptrace(static_cast<__ptrace_request>(request), pid, address, data);
}

// A number in /proc/PID/status, or 0.
pid_t NumberOf(pid_t thread, const std::string& field) {
  const std::string status = ReadFile("/proc/" + std::to_string(thread) + "/status").value_or("");
  const size_t at = status.find("\n" + field + ":");
  return at == std::string::npos ? 0 : std::atoi(status.c_str() + at + field.size() + 2);
}

// Kills a family that does not come to its end.
class Watchdog {
 public:
  Watchdog(pid_t root, Seconds limit)
      : thread_([this, root, limit] {
          std::unique_lock lock(mutex_);
          if (!wake_.wait_for(lock, limit, [this] { return done_; })) {
            barked_ = true;
            ::kill(root, SIGKILL);
          }
        }) {}
  ~Watchdog() {
    if (thread_.joinable()) {
      End();
    }
  }
  bool End() {
    {
      const std::lock_guard lock(mutex_);
      done_ = true;
    }
    wake_.notify_all();
    thread_.join();
    return barked_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  bool done_ = false, barked_ = false;
  std::thread thread_;
};

class Tracing {
 public:
  Tracing(pid_t root, const KillRule& rule, Traced& traced)
      : root_(root), rule_(rule), traced_(traced) {
    threads_[root] = root;
    traced_.family[root].pid = root;
  }

  void Run() {
    int status = 0;
    for (;;) {
      const pid_t thread = ::waitpid(-1, &status, __WALL | __WNOTHREAD);
      if (thread < 0 && errno == EINTR) {
        continue;
      }
      if (thread < 0) {
        return;  // ECHILD: nobody is left
      }
      if (WIFSTOPPED(status)) {
        Stopped(thread, status);
      } else {
        Ended(thread, status);
      }
    }
  }

 private:
  // Met for the first time, it is asked who it is.
  TracedProcess& Of(pid_t thread) {
    const auto known = threads_.find(thread);
    if (known != threads_.end()) {
      return traced_.family[known->second];
    }
    const pid_t group = NumberOf(thread, "Tgid");
    const pid_t pid = group == 0 ? thread : group;
    threads_[thread] = pid;
    const bool fresh = !traced_.family.contains(pid);
    TracedProcess& process = traced_.family[pid];
    if (fresh) {
      process.pid = pid;
      process.parent = NumberOf(thread, "PPid");
      const auto parent = traced_.family.find(process.parent);
      process.depth = parent == traced_.family.end() ? kOrphanDepth : parent->second.depth + 1;
      process.ordinal = children_[process.parent]++;
    }
    return process;
  }

  void Stopped(pid_t thread, int status) {
    TracedProcess& process = Of(thread);
    const int signal = WSTOPSIG(status);
    const int event = status >> 16;
    long pass = 0;
    if (signal == kSyscallStop) {
      __ptrace_syscall_info info{};
      if (Trace(PTRACE_GET_SYSCALL_INFO, thread, sizeof(info), reinterpret_cast<long>(&info)) > 0 &&
          info.op == PTRACE_SYSCALL_INFO_ENTRY) {
        ++process.calls;
        process.number = static_cast<long>(info.entry.nr);
        std::copy(std::begin(info.entry.args), std::end(info.entry.args), process.words.begin());
        Ask(process);
      }
    } else if (event == PTRACE_EVENT_FORK || event == PTRACE_EVENT_VFORK ||
               event == PTRACE_EVENT_CLONE) {
      // The new one is met here, not at its own first stop: on a busy machine its parent can have gone on for long by then, or
      // have killed and reaped it.
      unsigned long made = 0;
      if (Trace(PTRACE_GETEVENTMSG, thread, 0, reinterpret_cast<long>(&made)) == 0) {
        Of(static_cast<pid_t>(made));
      }
    } else if (event == PTRACE_EVENT_EXEC) {
      process.execs += 1;
      process.calls = thread == root_ && process.execs == 1 ? 0 : process.calls;
    } else if (event == 0) {
      pass = signal;  // meant for it
    }
    // Fails only for one that is being killed, whose end comes by itself.
    (void)Trace(let_go_ ? PTRACE_CONT : PTRACE_SYSCALL, thread, 0, pass);
  }

  void Ask(const TracedProcess& caller) {
    if (let_go_ || traced_.killed || traced_.family[root_].execs == 0) {
      return;
    }
    const pid_t victim = rule_(caller, traced_.family);
    let_go_ = victim == kLetGo;
    if (victim > 0) {
      traced_.at_kill = traced_.family;
      traced_.killed = true;
      ::kill(victim, SIGKILL);
    }
  }

  void Ended(pid_t thread, int status) {
    const pid_t group = Of(thread).pid;
    threads_.erase(thread);
    const bool others = std::any_of(threads_.begin(), threads_.end(),
                                    [&](const auto& one) { return one.second == group; });
    traced_.family[group].alive = others;
    if (thread == group) {
      traced_.family[group].signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    }
    if (thread == root_) {
      traced_.exit = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
      traced_.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    }
  }

  const pid_t root_;
  const KillRule& rule_;
  Traced& traced_;
  bool let_go_ = false;
  std::map<pid_t, pid_t> threads_;  // to the process it belongs to
  std::map<pid_t, int> children_;
};

}  // namespace

Traced RunTraced(const Strings& argv, const std::string& out, const std::string& err,
                 const KillRule& rule, Seconds limit) {
  Traced traced;
  std::vector<char*> words;
  for (const std::string& word : argv) {
    words.push_back(const_cast<char*>(word.c_str()));
  }
  words.push_back(nullptr);
  int go[2] = {-1, -1};
  if (::pipe2(go, O_CLOEXEC) != 0) {
    traced.why = "no pipe";
    return traced;
  }
  const pid_t root = ::fork();
  if (root == 0) {
    // Not before it is traced.
    char byte = 0;
    ::close(go[1]);
    const int in = ::open("/dev/null", O_RDONLY);
    const int to = ::open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    const int errors = ::open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (::read(go[0], &byte, 1) == 1 && ::dup2(in, 0) == 0 && ::dup2(to, 1) == 1 &&
        ::dup2(errors, 2) == 2) {
      ::close(in), ::close(to), ::close(errors);
      ::execv(words[0], words.data());
    }
    ::_exit(99);
  }
  ::close(go[0]);
  int status = 0;
  traced.started = root > 0 && Trace(PTRACE_SEIZE, root, 0, kOptions) == 0 &&
                   Trace(PTRACE_INTERRUPT, root) == 0 && ::waitpid(root, &status, __WALL) == root &&
                   Trace(PTRACE_SYSCALL, root) == 0;
  if (!traced.started) {
    traced.why = std::string("ptrace: ") + ::strerror(errno);
  }
  Watchdog watchdog(root, limit);
  if (!traced.started || ::write(go[1], "g", 1) != 1) {
    ::kill(root, SIGKILL);
  }
  ::close(go[1]);
  Tracing(root, rule, traced).Run();
  traced.timed_out = watchdog.End();
  return traced;
}

}  // namespace coffer::test
