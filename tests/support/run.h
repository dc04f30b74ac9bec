// SPDX-License-Identifier: Apache-2.0
//
// Running `coffer run`, the probe and plain programs from a test, and keeping what came out.
//
// A run owns its processes: a test that fails half way leaves none behind. Nothing here judges; see verdicts.h.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/temp_dir.h"

namespace coffer::test {

using Json = nlohmann::ordered_json;
using Strings = std::vector<std::string>;
using Seconds = std::chrono::duration<double>;

// The program under test: $COFFER, $COFFER_BIN, or the one beside the tests.
std::string CofferPath();
// The attack program (tests/probes): $COFFER_PROBES/probe, or the one beside the tests.
std::string ProbePath();

bool IsRoot();

// 32 random letters: cannot occur anywhere by accident.
std::string NewToken();

// The whole file, or nothing. Works on /proc.
std::optional<std::string> ReadFile(const std::string& path);
bool Exists(const std::string& path);
bool Contains(const std::string& text, const std::string& part);
Strings Lines(const std::string& text);

// Polls every few milliseconds; true as soon as `condition` holds, false after `limit`.
bool WaitUntil(const std::function<bool()>& condition, Seconds limit = Seconds(10));

struct RunOptions {
  std::string input;                   // bytes for stdin; then end of file
  std::optional<Strings> environment;  // "K=V"; otherwise the test's own
  std::string cwd;
  Seconds timeout{60};
  std::function<void()>
      in_child;         // last thing before exec: may rearrange descriptors, drop rights, ...
  std::string receipt;  // RunCoffer writes the receipt here instead of a file of its own
};

struct RunResult {
  int exit = -1;   // exit status, or -1
  int signal = 0;  // the signal that ended it, or 0
  bool timed_out = false;
  std::string out;
  std::string err;
  Seconds took{0};
  Json receipt;  // null if none was written
  std::string ErrorClass() const;
  // Everything in one string, for failure messages.
  std::string Describe() const;
};

RunResult RunProgram(const Strings& argv, const RunOptions& options = {});

// coffer run --receipt FILE FLAGS... -- COMMAND...
RunResult RunCoffer(const Strings& flags, const Strings& command, const RunOptions& options = {});
// coffer run FLAGS... -- probe VERB...
RunResult RunProbe(const Strings& flags, const Strings& verb, const RunOptions& options = {});
// The control: probe VERB... with nothing around it.
RunResult RunOutside(const Strings& verb, const RunOptions& options = {});
// The control for what needs rights: in a user and mount namespace of its own (as an ordinary user), or in a mount
// namespace of its own (as root), so that nothing it does reaches the machine.
RunResult RunOutsideInNamespace(const Strings& verb, const RunOptions& options = {});

// A program that runs while the test looks at it. stdout and stderr are collected as they come.
class Background {
 public:
  explicit Background(const Strings& argv, const RunOptions& options = {});
  ~Background();
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;
  pid_t pid() const { return pid_; }
  const std::string& out() const { return out_; }
  const std::string& err() const { return err_; }
  // Reads until stdout holds `text`.
  bool WaitForOutput(const std::string& text, Seconds limit = Seconds(20));
  void Signal(int number) const;
  void CloseInput();
  // Waits for the end; kills and says so after `limit`.
  RunResult Wait(Seconds limit = Seconds(60));
  bool ended();

 private:
  void Pump(int milliseconds);
  pid_t pid_ = -1;
  int in_ = -1, out_fd_ = -1, err_fd_ = -1;
  std::string to_write_, out_, err_;
  bool keep_input_open_ = false;
  std::optional<int> status_;
  std::chrono::steady_clock::time_point begin_;

 public:
  // Leaves stdin open after `input` was written.
  static constexpr const char* kKeepOpen = "\0keep";
};

}  // namespace coffer::test
