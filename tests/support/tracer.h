// SPDX-License-Identifier: Apache-2.0
//
// A program and everything it starts, held at every system call, so that one process can be killed at exactly that one.
//
// What a process changes outside its own memory it changes with system calls (the store's shared memory aside, which is
// made anew after a crash), so a kill before the Nth, for every N, is a kill at every instruction as far as anybody can
// tell afterwards. It is the real program that is traced: nothing in it knows. ptrace(2), so Linux only, one thread.
#pragma once

#include <sys/types.h>

#include <array>
#include <functional>
#include <map>
#include <string>

#include "tests/support/run.h"

namespace coffer::test {

struct TracedProcess {
  pid_t pid = 0;    // of the process; threads are not told apart
  int depth = 0;    // 0: the program itself, 1: its children, ...
  int ordinal = 0;  // among the children of its parent, in the order in which they were made
  pid_t parent = 0;
  long calls = 0;                   // system calls it has begun, also this one
  long number = -1;                 // of the one that it begins now
  std::array<uint64_t, 6> words{};  // its arguments
  int execs = 0;
  bool alive = true;
  int signal = 0;  // that ended it
};

// A rule's answer: the tracer kills no process any more. The family then runs on without being held.
inline constexpr pid_t kLetGo = -1;

// Asked before every system call, on the tracing thread: who is to be killed now? 0: nobody. Asked until somebody was.
using KillRule =
    std::function<pid_t(const TracedProcess& caller, const std::map<pid_t, TracedProcess>& family)>;

struct Traced {
  bool started = false;  // false: `why` says what the host does not allow
  std::string why;
  bool killed = false;
  int exit = -1;
  int signal = 0;
  bool timed_out = false;
  std::map<pid_t, TracedProcess> family;   // at the end; all are gone
  std::map<pid_t, TracedProcess> at_kill;  // as it was when somebody was killed
};

// Runs to the end of the whole family. Output goes to the files `out` and `err`.
Traced RunTraced(const Strings& argv, const std::string& out, const std::string& err,
                 const KillRule& rule, Seconds limit = Seconds(60));

}  // namespace coffer::test
