// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal_access.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/syscall.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "base/sys.h"

namespace coffer::cli {
namespace {

using egress::AccessChoice;
using raw::Arg;
using raw::Syscall;

// No person reads a question and answers it faster.
constexpr Nanos kSoonest = std::chrono::milliseconds(300);
constexpr size_t kLongestLine = 64;

std::optional<egress::AccessDecision> ParseAnswer(std::string_view line, uint32_t id) {
  if (line.empty() || line == "n" || line == "no") {
    return egress::AccessDecision{id, AccessChoice::kDeny, 0};
  }
  if (line == "y" || line == "yes") {
    return egress::AccessDecision{id, AccessChoice::kForCall, 0};
  }
  uint32_t minutes = 0;
  const char* const end = line.data() + line.size();
  const auto [stop, problem] = std::from_chars(line.data(), end, minutes);
  if (problem != std::errc() || stop != end || minutes < 1 ||
      minutes > egress::kMostAccessMinutes) {
    return std::nullopt;
  }
  return egress::AccessDecision{id, AccessChoice::kForMinutes, minutes};
}

}  // namespace

Result<TerminalAccess> TerminalAccess::Open() {
  const long opened =
      Syscall(SYS_openat, AT_FDCWD, Arg("/dev/tty"), O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0);
  if (opened < 0) {
    return Refused("policy.egress", "--hold asks on the terminal, and there is none",
                   "run it in a terminal, or name the hosts instead: --allow HOST");
  }
  return TerminalAccess(UniqueFd(static_cast<int>(opened)));
}

void TerminalAccess::Say(std::string_view text) const {
  (void)Syscall(SYS_write, terminal_.get(), Arg(text.data()), text.size());
}

void TerminalAccess::Ask(const egress::AccessNotice& asked) {
  waiting_.push_back(asked);
  if (waiting_.size() == 1) {
    Show();
  }
}

void TerminalAccess::Show() {
  const egress::AccessNotice& asked = waiting_.front();
  Say(fmt::format("\r\ncoffer: the command wants to reach {}, port {}. A yes opens {}\r\n",
                  asked.host, asked.port, asked.opens));
  Prompt();
}

void TerminalAccess::Prompt() {
  Say("coffer: allow it? y: while this call runs; 5: for 5 minutes; n: no [n] ");
  line_.clear();
  shown_at_ = BootTime();
  ::tcflush(terminal_.get(), TCIFLUSH);
}

void TerminalAccess::Withdraw(const egress::AccessNotice& over) {
  const auto found = std::find_if(waiting_.begin(), waiting_.end(),
                                  [&](const auto& one) { return one.id == over.id; });
  if (found == waiting_.end()) {
    return;
  }
  const bool shown = found == waiting_.begin();
  waiting_.erase(found);
  if (shown) {
    Say(over.kind == egress::AccessNotice::Kind::kUnanswered
            ? "\r\ncoffer: no answer, so no\r\n"
            : "\r\ncoffer: the command no longer waits for it\r\n");
    if (!waiting_.empty()) {
      Show();
    }
  }
}

// In the background the terminal is another program's, and what is typed is for that one.
int TerminalAccess::fd() const {
  return !waiting_.empty() && ::tcgetpgrp(terminal_.get()) == ::getpgrp() ? terminal_.get() : -1;
}

std::optional<call::AccessAnswer> TerminalAccess::Read() {
  // A read from the background would stop us.
  sigset_t stop;
  sigset_t before;
  sigemptyset(&stop);
  sigaddset(&stop, SIGTTIN);
  ::sigprocmask(SIG_BLOCK, &stop, &before);
  std::array<char, 256> typed;
  const long got = Syscall(SYS_read, terminal_.get(), Arg(typed.data()), typed.size());
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  if (got < 0 || waiting_.empty()) {
    return std::nullopt;
  }
  // The end of input (Ctrl-D, or a terminal that is gone) is a no.
  line_.append(typed.data(), static_cast<size_t>(got));
  const size_t end = got == 0 ? line_.size() : line_.find('\n');
  if (end == std::string::npos) {
    line_.resize(std::min(line_.size(), kLongestLine));
    return std::nullopt;
  }
  const std::optional<egress::AccessDecision> decision =
      BootTime() - shown_at_ < kSoonest && got != 0
          ? std::nullopt
          : ParseAnswer(got == 0 ? std::string_view() : std::string_view(line_).substr(0, end),
                        waiting_.front().id);
  if (!decision) {
    Prompt();
    return std::nullopt;
  }
  waiting_.pop_front();
  if (!waiting_.empty()) {
    Show();
  }
  return call::AccessAnswer{*decision, "terminal"};
}

}  // namespace coffer::cli
