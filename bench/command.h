// SPDX-License-Identifier: Apache-2.0
//
// A Command is started the same way for every tool: posix_spawn (vfork and exec), standard input and output on
// /dev/null, a fixed environment, and then waited for. What is measured lies between the two clock readings in
// RunTimed and nothing else does.
//
// A benchmark that quietly counts failed starts measures nothing: a call that exits with anything but 0 ends the
// whole run, with what the tool wrote on standard error.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace coffer::bench {

struct Command {
  std::vector<std::string> argv;  // argv[0] is an absolute path
  int mount_view = -1;  // a mount namespace to start it in, or -1; entered before the clock starts
};

// Prints one line on standard error and exits with 1.
[[noreturn]] void Fail(const std::string& message);

// CLOCK_MONOTONIC in microseconds.
double NowMicros();
void SleepMicros(double micros);

// Starts it and does not wait. Standard error goes where RunTimed keeps it.
pid_t Start(const Command& command);

// Microseconds from before posix_spawn until after waitpid. Fails loudly if the exit status is not 0.
double RunTimed(const Command& command);

struct Captured {
  int exit_code = -1;  // 128 + signal if it was killed
  std::string out;
  std::string err;
};
Captured RunCaptured(const Command& command);

// The absolute path of `name` in PATH, or an empty string.
std::string FindOnPath(const std::string& name);

}  // namespace coffer::bench
