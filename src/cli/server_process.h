// SPDX-License-Identifier: Apache-2.0
//
// An MCP server of another author in a boundary: a child that is `coffer run`, with its stdin,
// stdout and stderr as lines.
//
// The boundary is that of `coffer run` and of nothing else, so what its flags promise holds here.
// Nothing here waits, but for Stop. What the server writes to stderr is shown line by line on ours,
// with its name in front and bounded. Not thread-safe.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "cli/line_stream.h"

namespace coffer::cli {

class ServerProcess {
 public:
  // `words` are those after `coffer`; `name` is for what it says on stderr.
  static Result<std::unique_ptr<ServerProcess>> Start(const std::string& name,
                                                      const std::vector<std::string>& words);
  ~ServerProcess();  // kills it, if it still runs
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  void Send(std::string line) { in_.Add(std::move(line)); }
  // What to poll for; then, for the same list, what came of it.
  void AddTo(std::vector<pollfd>* polled) const;
  void Handle(const std::vector<pollfd>& polled, const std::function<void(std::string_view)>& line);
  // It has closed its stdout.
  bool ended() const { return out_.ended(); }
  bool behind() const;
  // It has closed its stdin, so that it hears nothing more; what it had said before has come by now.
  bool deaf() const;
  // It has sent a line that no message may be as long as. What comes after it is not looked at.
  bool too_long() const { return too_long_; }
  // Asks it to end, then makes it; returns the exit status of `coffer run`.
  int Stop();
  // Prints one line of its stderr on ours, with its name in front, unless it has written too much.
  void Say(std::string_view line);

 private:
  ServerProcess(std::string name, pid_t pid, UniqueFd in, UniqueFd out, UniqueFd err);
  bool Gone(int* status) const;

  const std::string name_;
  pid_t pid_;
  UniqueFd in_fd_, out_fd_, err_fd_;
  LineWriter in_;
  LineReader out_, err_;
  size_t said_ = 0;  // bytes of its stderr
  bool too_long_ = false;
  std::optional<std::chrono::steady_clock::time_point> hung_up_;  // since when nothing reads there
};

}  // namespace coffer::cli
